//! The settings of all programs, from the options that define them.

use crate::scripts::{Chat, Turn};
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches};
use clawutils::cli::call::CallArgs;
use clawutils::cli::settings::{self, Setting, Value};
use clawutils::cli::{arguments, config};
use clawutils::exit::{Error, Exit};

/// Each setting of any program as a hidden option.
#[derive(Clone, Copy, Debug)]
pub struct All;

/// The options of the scripts and programs that have settings.
fn options() -> impl Iterator<Item = Arg> {
    let call = CallArgs::augment_args(Command::new("claw-call"));
    let commands = [Turn::command(), Chat::command(), call];
    commands.into_iter().flat_map(|command| command.get_arguments().cloned().collect::<Vec<_>>())
}

impl Args for All {
    fn augment_args(command: Command) -> Command {
        options().filter(|option| option.get_env().is_some()).fold(command, |command, option| {
            let is_there = command.get_arguments().any(|other| other.get_env() == option.get_env());
            if is_there {
                return command;
            }
            // An alias of one program is an option of another.
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

/// The command line of this program, which has all settings.
pub fn command() -> Command {
    crate::Args::<All>::command()
}

/// Decides all settings.
///
/// # Errors
/// 78 when a variable or the file is wrong.
pub fn decided() -> anyhow::Result<Vec<(Setting, Value)>> {
    arguments::decided::<crate::Args<All>>()
}

/// The definition of the setting with this key.
///
/// # Errors
/// 2 when there is none, with the nearest.
pub fn definition(key: &str) -> anyhow::Result<Setting> {
    let found = settings::of(&command()).into_iter().find(|setting| setting.key == key);
    let unknown = || Error::new(Exit::Usage, config::unknown(key, key, config::KEYS));
    Ok(found.filter(is_listed).ok_or_else(unknown)?)
}

/// Returns whether a setting can be in the file. The one that selects the file cannot.
pub fn is_listed(setting: &Setting) -> bool {
    setting.key != "config"
}
