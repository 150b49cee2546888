//! Keys: from a file, a command or the environment, and never from an argument.

use crate::cli::model::Provider;
use crate::cli::variable;
use crate::exit::{Exit, fail};
use crate::process::{self, Limits};
use crate::provider::address::{Address, is_azure};
use anyhow::Context;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The option group for the key.
#[derive(Clone, Debug, clap::Args)]
pub struct KeyArgs {
    /// File with the API key, readable only by its owner
    #[arg(long, value_name = "FILE", env = "CLAW_KEY_FILE", conflicts_with = "key_cmd")]
    pub key_file: Option<PathBuf>,
    /// Shell command that prints the API key
    #[arg(long, value_name = "COMMAND", env = "CLAW_KEY_CMD")]
    pub key_cmd: Option<String>,
}

/// Where a key is to come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// What a command prints.
    Command(String),
    /// The environment; a bearer token or not.
    Variable {
        /// Its value.
        key: String,
        /// Whether it is a token and no key.
        is_token: bool,
    },
}

impl KeyArgs {
    /// Returns where the key of a provider comes from, if there is one: the settings, then the provider's own
    /// variables.
    ///
    /// # Errors
    /// 78 when two of the provider's variables are set.
    pub fn source(&self, provider: Provider, base_url: &str) -> anyhow::Result<Option<Source>> {
        if let Some(path) = &self.key_file {
            return Ok(Some(Source::File(path.clone())));
        }
        if let Some(command) = &self.key_cmd {
            return Ok(Some(Source::Command(command.clone())));
        }
        from_environment(provider, base_url)
    }
}

/// The variables of a provider that can hold its key, for those who look for one.
#[must_use]
pub fn variables(provider: Provider, base_url: &str) -> &'static [&'static str] {
    match provider {
        Provider::Anthropic => &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        Provider::Openai if Address::parse(base_url).is_below("openrouter.ai") => {
            &["OPENROUTER_API_KEY"]
        }
        Provider::Openai if is_azure(base_url) => {
            &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"]
        }
        Provider::Openai => &["OPENAI_API_KEY"],
        Provider::Ollama => &["OLLAMA_API_KEY"],
        Provider::Offline => &[],
    }
}

fn from_environment(provider: Provider, base_url: &str) -> anyhow::Result<Option<Source>> {
    let names = variables(provider, base_url);
    let mut set = names.iter().filter_map(|name| Some((*name, variable(name)?)));
    let Some((first, key)) = set.next() else { return Ok(None) };
    if let Some((second, _)) = set.next() {
        // Sent together they are refused.
        return fail(Exit::Config, format!("both {first} and {second} are set; unset one"));
    }
    Ok(Some(Source::Variable { key, is_token: first.ends_with("TOKEN") }))
}

impl Source {
    /// Reads the key.
    ///
    /// # Errors
    /// 77 when others may read the file, when the command fails, or when there is no key in it; 74 when
    /// the file cannot be read; 78 when it is no key that could be sent.
    pub fn read(&self) -> anyhow::Result<String> {
        let key = match self {
            Source::File(path) => read_file(path)?,
            Source::Command(command) => run(command)?,
            Source::Variable { key, .. } => key.clone().into_bytes(),
        };
        let key = String::from_utf8_lossy(&key);
        let key = key.trim();
        if key.is_empty() {
            return fail(Exit::Permission, format!("no key {}; check it", self.place()));
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let text = format!(
                "cannot use the key {}: it has white space or other bytes; check it",
                self.place()
            );
            return fail(Exit::Config, text);
        }
        Ok(key.to_owned())
    }

    fn place(&self) -> String {
        match self {
            Source::File(path) => format!("in '{}'", path.display()),
            Source::Command(_) => "in what the key command printed".to_owned(),
            Source::Variable { .. } => "in the environment".to_owned(),
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
    let ended = process::run(command, &[], Vec::new(), Limits::default())
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
