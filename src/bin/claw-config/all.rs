//! The settings of all programs, collected from the options that define them.

use crate::scripts::{Chat, Turn};
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, ValueEnum};
use clawutils::cli::arguments;
use clawutils::cli::budget::WindowArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::estimate::windows::Window;
use clawutils::exit::{Error, Exit};
use clawutils::provider::Provider;
use clawutils::settings::file::{KEYS, unknown};
use clawutils::settings::{self, Setting, SettingValue};
use std::path::PathBuf;

/// The settings of all programs as hidden options.
#[derive(Clone, Copy, Debug)]
pub struct All;

/// Returns options that together define all settings: those of claw-turn and claw-chat, and the window's in claw-call.
fn options() -> impl Iterator<Item = Arg> {
    let call = WindowArgs::augment_args(Command::new("claw-call"));
    let commands = [Turn::command(), Chat::command(), call];
    commands.into_iter().flat_map(|command| command.get_arguments().cloned().collect::<Vec<_>>())
}

impl Args for All {
    fn augment_args(command: Command) -> Command {
        options().filter(|option| option.get_env().is_some()).fold(command, |command, option| {
            let is_known = command.get_arguments().any(|other| other.get_env() == option.get_env());
            if is_known {
                return command;
            }
            // An alias in one program may be the name of an option in another.
            let plain = option.hide(true).global(true).alias(None).visible_alias(None);
            command.arg(plain)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        All::augment_args(command)
    }
}

impl FromArgMatches for All {
    fn from_arg_matches(_: &ArgMatches) -> Result<All, clap::Error> {
        Ok(All)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

/// Returns the command line definition of this program with all settings.
pub fn command() -> Command {
    crate::Args::<All>::command()
}

/// Returns all settings with their values.
///
/// # Errors
/// Fails with 78 if an environment variable or the settings file is invalid.
pub fn decided() -> anyhow::Result<Vec<(Setting, SettingValue)>> {
    arguments::decided::<crate::Args<All>>()
}

/// Returns the definition of the setting with this key.
///
/// # Errors
/// Fails with 2 for an unknown key; the error suggests the most similar one.
pub fn definition(key: &str) -> anyhow::Result<Setting> {
    let found = settings::of(&command()).into_iter().find(|setting| setting.key == key);
    let why = || Error::new(Exit::Usage, unknown(key, key, KEYS));
    Ok(found.filter(is_listed).ok_or_else(why)?)
}

/// Returns true if the settings file may contain this setting. It cannot contain `config`, which selects the file.
pub fn is_listed(setting: &Setting) -> bool {
    setting.key != "config"
}

/// Returns the window of the model that these settings select, as far as it is known without a setting of its own. It is
/// unknown if the file of `models` cannot be used: listing the settings must work nevertheless.
pub fn window(all: &[(Setting, SettingValue)]) -> Option<Window> {
    let text = |key: &str| {
        let (_, value) = all.iter().find(|(setting, _)| setting.key == key)?;
        value.texts.first().map(|text| text.to_string_lossy().into_owned())
    };
    let model = ModelArgs {
        provider: text("provider").and_then(|name| Provider::from_str(&name, true).ok()),
        model: text("model"),
        base_url: text("base-url"),
        models: text("models").map(PathBuf::from),
    };
    model.window(None).ok().flatten()
}
