//! API keys: from a file, a command or the environment, never from an argument.

use crate::exit::{Exit, fail};
use crate::process::{self, ChildLimits};
use crate::provider::Provider;
use crate::settings::Variables;
use anyhow::Context;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The source of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(PathBuf),
    /// The output of a shell command.
    Command(String),
    /// An environment variable.
    Variable {
        /// The variable's value.
        key: String,
        /// True if the value is a bearer token instead of an API key.
        is_token: bool,
    },
}

/// Returns the key in the provider's own variables, if there is one.
///
/// # Errors
/// Status 78 if two of the variables are set.
pub fn from_environment(
    provider: Provider,
    base_url: &str,
    variables: Variables<'_>,
) -> anyhow::Result<Option<KeySource>> {
    let names = provider.key_variables(base_url);
    let mut set = names.iter().filter_map(|name| Some((*name, variables.text(name)?)));
    let Some((first, key)) = set.next() else { return Ok(None) };
    let is_token = first.ends_with("TOKEN");
    // Google's two variables may hold the same key.
    let is_other =
        |(name, other): &(&str, String)| *other != key || name.ends_with("TOKEN") != is_token;
    if let Some((second, _)) = set.find(is_other) {
        // Providers refuse a request with both.
        return fail(Exit::Config, format!("both {first} and {second} are set; unset one"));
    }
    Ok(Some(KeySource::Variable { key, is_token }))
}

impl KeySource {
    /// Reads the key.
    ///
    /// # Errors
    /// Status 77 if other users have access to the file, the command fails, or there is no key; 74 or 77 if the file
    /// cannot be read; 78 if the key contains white space, control or non-ASCII characters.
    pub fn read(&self) -> anyhow::Result<String> {
        let key = match self {
            KeySource::File(path) => read_file(path)?,
            KeySource::Command(command) => run(command)?,
            KeySource::Variable { key, .. } => key.clone().into_bytes(),
        };
        let key = String::from_utf8_lossy(&key);
        let key = key.trim();
        if key.is_empty() {
            return fail(Exit::Permission, format!("no key {}; check it", self.place()));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let text = format!(
                "cannot use the key {}: it contains white space, control or non-ASCII characters; check it",
                self.place()
            );
            return fail(Exit::Config, text);
        }
        Ok(key.to_owned())
    }

    fn place(&self) -> String {
        match self {
            KeySource::File(path) => format!("in '{}'", path.display()),
            KeySource::Command(_) => "in the output of the key command".to_owned(),
            KeySource::Variable { .. } => "in the environment".to_owned(),
        }
    }
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let what = || format!("cannot read key file '{}'", path.display());
    let mode = std::fs::metadata(path).with_context(what)?.permissions().mode();
    if mode & 0o077 != 0 {
        let text = format!("{}: other users may read it; run chmod 600 on it", what());
        return fail(Exit::Permission, text);
    }
    std::fs::read(path).with_context(what)
}

fn run(command: &str) -> anyhow::Result<Vec<u8>> {
    let ended = process::run(command, &[], Vec::new(), ChildLimits::default())
        .context("cannot run the key command")?;
    let how = match ended.status {
        Some(0) => return Ok(ended.stdout),
        Some(status) => format!("status {status}"),
        None => format!("signal {}", ended.signal.unwrap_or_default()),
    };
    fail(
        Exit::Permission,
        format!("the key command failed with {how}; run it by itself to see why"),
    )
}
