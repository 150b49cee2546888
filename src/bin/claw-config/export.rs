//! export: print a shell command that sets or unsets the variable of a setting.

use crate::all::{self, All};
use crate::shell::ShellCode;
use clawutils::cli::arguments;
use clawutils::exit::{Error, Exit, fail};
use clawutils::settings::decide::{self, CommandLineError, Parsed};
use clawutils::settings::mistakes;
use clawutils::settings::{Setting, ValueKind};
use std::ffi::{OsStr, OsString};

/// Print the shell command that sets the variable of a setting
#[derive(Clone, Debug, clap::Args)]
pub struct Export {
    /// Key of the setting
    key: String,
    /// Value, in the form that the variable holds; empty for no value. Without VALUE, the variable is unset
    #[arg(allow_negative_numbers = true)]
    value: Option<OsString>,
}

impl Export {
    pub fn run(&self) -> anyhow::Result<Exit> {
        let setting = all::definition(&self.key)?;
        let mut text = ShellCode::default();
        match &self.value {
            Some(value) => text.exports(&parsed(&setting, value)?),
            None => text.unset(&setting.variable),
        }
        text.print()
    }
}

/// Parses a value as if its option were given on the command line. As on the command line, a setting that this one
/// excludes loses its value.
fn parsed(setting: &Setting, value: &OsStr) -> anyhow::Result<Parsed> {
    let texts = if value.is_empty() { Vec::new() } else { setting.split(value) };
    if let Err(why) = decide::check(setting, &texts, &format!("'{}'", setting.key)) {
        return fail(Exit::Usage, why);
    }
    let mut line = vec![OsString::from("claw-config")];
    line.extend(flags(setting, &texts));
    arguments::read::<crate::Args<All>>(&line).map_err(|failed| match failed {
        CommandLineError::Config(error) => error,
        CommandLineError::Usage(command, error) => {
            Error::new(Exit::Usage, mistakes::usage_error(&error, &command, &line)).into()
        }
    })
}

/// Returns the options that give a setting these values.
pub fn flags(setting: &Setting, texts: &[OsString]) -> Vec<OsString> {
    let is_on = |text: &OsString| (*text == *"true") != setting.is_negative();
    let flag = |text: &OsString| match setting.kind {
        ValueKind::Switch if is_on(text) => setting.flag().into(),
        ValueKind::Switch => setting.opposite().into(),
        _ => {
            let mut flag = OsString::from(setting.flag() + "=");
            flag.push(text);
            flag
        }
    };
    match texts {
        [] => vec![setting.opposite().into()],
        texts => texts.iter().map(flag).collect(),
    }
}
