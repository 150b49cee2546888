//! Finds the value of each setting, in the first of these places that has one: the flag, the variable, the profile in
//! use, the rest of the configuration file, the default.
//!
//! - An empty variable, or `--no-NAME` for a setting that takes a value, means no value: the file is not consulted,
//!   and the default applies.
//! - Two settings that exclude each other (`conflicts_with`) are an error if both come from the same place. Otherwise
//!   the one from the earlier place applies: `--key-file` is used even if `CLAW_KEY_CMD` is set.
//! - A setting that may be repeated is a list. One place gives the whole list; lists are not merged.

use crate::exit::{Error, Exit};
use crate::settings::file::ConfigFile;
use crate::settings::{
    Origin, Setting, SettingValue, ValueKind, Variables, mistakes, opposite, opposite_id,
};
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::ffi::{OsStr, OsString};

/// A command line whose flags and operands are parsed. Values of settings from other places are not known yet.
#[derive(Debug)]
pub struct CommandLine<'a> {
    command: Command,
    /// The command without variables, and with the hidden options, such as `--no-NAME`, that unset its settings.
    flags: Command,
    arguments: &'a [OsString],
    /// The flags and operands.
    pub given: ArgMatches,
}

/// A parsed command line with the values of its settings.
#[derive(Debug)]
pub struct Parsed {
    /// The options and operands, including settings from other places.
    pub matches: ArgMatches,
    /// The settings and their values, in the order of their definition.
    pub settings: Vec<(Setting, SettingValue)>,
}

/// An error of a command line or of its settings.
#[derive(Debug)]
pub enum CommandLineError {
    /// clap's error about the command line, or the text of help or version.
    Usage(Box<Command>, clap::Error),
    /// An error in a variable or in the file.
    Config(anyhow::Error),
}

impl From<anyhow::Error> for CommandLineError {
    fn from(error: anyhow::Error) -> CommandLineError {
        CommandLineError::Config(error)
    }
}

impl<'a> CommandLine<'a> {
    /// Parses the flags in `arguments`, the program's name first.
    ///
    /// # Errors
    /// Fails if they are invalid, or ask for help or version.
    pub fn parse(
        command: Command,
        arguments: &'a [OsString],
    ) -> Result<CommandLine<'a>, CommandLineError> {
        let command = with_negative_numbers(command);
        let mut flags = with_flags_alone(&command);
        match flags.try_get_matches_from_mut(arguments) {
            Ok(given) => Ok(CommandLine { command, flags, arguments, given }),
            Err(error) if error.use_stderr() => {
                Err(CommandLineError::Usage(Box::new(flags), error))
            }
            // The help shows the name of an argument's variable without its value.
            Err(_) => Err(help(each(command, &|arg| arg.hide_env_values(true)), arguments)),
        }
    }

    /// Finds the values of the settings.
    ///
    /// # Errors
    /// Fails if a value in a variable or in the file is invalid.
    pub fn decide(
        self,
        variables: Variables<'_>,
        file: &ConfigFile,
    ) -> Result<Parsed, CommandLineError> {
        let settings = decide(&self.command, &self.given, variables, file)?;
        let mut whole = with_values(self.flags, &settings);
        match whole.try_get_matches_from_mut(self.arguments) {
            Ok(matches) => Ok(Parsed { matches, settings }),
            Err(error) => Err(CommandLineError::Config(why_invalid(&settings, &error))),
        }
    }
}

/// Checks the values of a setting; errors refer to it as `name`.
///
/// # Errors
/// Returns the reason if a value is invalid.
pub fn check(setting: &Setting, texts: &[OsString], name: &str) -> Result<(), String> {
    if texts.is_empty() {
        return Ok(());
    }
    let alone = setting.arg.clone().env(Resettable::Reset).required(false);
    let alone = alone.conflicts_with(Resettable::Reset).overrides_with(Resettable::Reset);
    let mut command = Command::new("check").arg(alone.default_values(texts.to_vec()));
    let parsed = command.try_get_matches_from_mut(["check"]);
    parsed.map(drop).map_err(|error| mistakes::invalid_value(&error, name))
}

/// Checks that `file` does not set two of these settings of `command` that exclude each other.
///
/// # Errors
/// Fails with 78 if it does.
pub fn check_together(
    command: &Command,
    settings: &[Setting],
    file: &ConfigFile,
) -> anyhow::Result<()> {
    let given = |setting: &Setting| {
        let value = file.value(setting).ok().flatten()?;
        Some((setting.clone(), value))
    };
    exclude(command, &mut settings.iter().filter_map(given).collect::<Vec<_>>())
}

/// Returns the text of help or version.
fn help(mut command: Command, arguments: &[OsString]) -> CommandLineError {
    match command.try_get_matches_from_mut(arguments) {
        Err(error) => CommandLineError::Usage(Box::new(command), error),
        // Unreachable: the arguments ask for help or version, whatever the variables are.
        Ok(_) => CommandLineError::Config(anyhow::anyhow!("cannot print the help")),
    }
}

/// Applies `change` to each argument of a command and of its subcommands.
fn each(command: Command, change: &dyn Fn(Arg) -> Arg) -> Command {
    command.mut_args(change).mut_subcommands(|sub| each(sub, change))
}

/// Lets options take a negative number as their value, so that it is reported as an invalid number and not as an
/// unknown option.
fn with_negative_numbers(command: Command) -> Command {
    let is_option = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
    let allow = |arg: Arg| match is_option(&arg) {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(allow).mut_subcommands(with_negative_numbers)
}

/// Returns `command` without variables, and with the hidden options, such as `--no-NAME`, that unset its settings.
fn with_flags_alone(command: &Command) -> Command {
    let is_free = |it: &Arg| !command.get_arguments().any(|arg| arg.get_long() == it.get_long());
    let opposites: Vec<Arg> =
        command.get_arguments().filter_map(opposite).filter(is_free).collect();
    let plain = |arg: Arg| {
        if arg.get_env().is_none() {
            return arg;
        }
        let opposite = opposite_id(arg.get_id().as_str());
        let arg = arg.env(Resettable::Reset).required(false);
        if opposites.iter().any(|it| it.get_id() == opposite.as_str()) {
            return arg.overrides_with(opposite);
        }
        arg
    };
    let command = command.clone().mut_args(plain).args(opposites.iter());
    command.mut_subcommands(|sub| with_flags_alone(&sub))
}

/// Passes the values that do not come from flags to clap, as default values.
fn with_values(command: Command, settings: &[(Setting, SettingValue)]) -> Command {
    each(command, &|arg| {
        let decided = settings.iter().find(|(setting, _)| setting.arg.get_id() == arg.get_id());
        match decided {
            Some((_, value)) if value.origin != Origin::Flag && !value.texts.is_empty() => {
                arg.default_values(value.texts.clone())
            }
            _ => arg,
        }
    })
}

/// Finds the value of each setting of `command` and of the subcommands that are called.
fn decide(
    command: &Command,
    given: &ArgMatches,
    variables: Variables<'_>,
    file: &ConfigFile,
) -> anyhow::Result<Vec<(Setting, SettingValue)>> {
    let mut decided: Vec<(Setting, SettingValue)> = Vec::new();
    for setting in command.get_arguments().filter_map(Setting::of) {
        let value = match by_flag(&setting, given) {
            Some(value) => {
                if !value.texts.is_empty() {
                    require_elements(&setting, &value.texts, &setting.flag(), Exit::Usage)?;
                }
                value
            }
            None => elsewhere(&setting, variables, file)?,
        };
        decided.push((setting, value));
    }
    exclude(command, &mut decided)?;
    if let Some((name, given)) = given.subcommand()
        && let Some(sub) = command.find_subcommand(name)
    {
        decided.extend(decide(sub, given, variables, file)?);
    }
    Ok(decided)
}

/// Returns true if an option is on the command line.
fn is_given(given: &ArgMatches, id: &str) -> bool {
    given.try_contains_id(id).unwrap_or(false)
        && given.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the value that the command line gives a setting, if it gives one.
#[must_use]
pub fn by_flag(setting: &Setting, given: &ArgMatches) -> Option<SettingValue> {
    let id = setting.arg.get_id().as_str();
    let texts = match setting.kind {
        ValueKind::Switch if is_given(given, &opposite_id(id)) => {
            vec![OsString::from(setting.is_negative().to_string())]
        }
        _ if is_given(given, &opposite_id(id)) => Vec::new(),
        _ if !is_given(given, id) => return None,
        ValueKind::Switch => vec![OsString::from((!setting.is_negative()).to_string())],
        _ => given.get_raw(id).into_iter().flatten().map(OsString::from).collect(),
    };
    Some(SettingValue { origin: Origin::Flag, texts })
}

/// Checks that a given list is not empty: `--allow ''` must not mean that every tool is allowed.
///
/// # Errors
/// Fails with `exit` if it is empty, or one of its elements is blank.
fn require_elements(
    setting: &Setting,
    texts: &[OsString],
    name: &str,
    exit: Exit,
) -> anyhow::Result<()> {
    let is_blank = |text: &OsString| text.to_str().is_some_and(|text| text.trim().is_empty());
    if !setting.is_list || !texts.is_empty() && !texts.iter().any(is_blank) {
        return Ok(());
    }
    Err(Error::new(exit, format!("a value is required for {name}; omit {name} to set none")).into())
}

/// Returns the value of a setting that is not on the command line: from the variable, the file or the default.
fn elsewhere(
    setting: &Setting,
    variables: Variables<'_>,
    file: &ConfigFile,
) -> anyhow::Result<SettingValue> {
    if let Some(text) = variables.get(&setting.variable) {
        let texts = if text.is_empty() { Vec::new() } else { setting.split(&text) };
        if !text.is_empty() {
            require_elements(setting, &texts, &setting.variable, Exit::Config)?;
        }
        return Ok(SettingValue { origin: Origin::Variable, texts });
    }
    Ok(file.value(setting)?.unwrap_or(SettingValue { origin: Origin::Default, texts: Vec::new() }))
}

/// Drops each value that a setting from an earlier place excludes.
///
/// # Errors
/// Fails with 78 if two settings that exclude each other come from the same place. clap has already checked the
/// command line.
fn exclude(command: &Command, decided: &mut [(Setting, SettingValue)]) -> anyhow::Result<()> {
    let has_value = |(_, value): &&(Setting, SettingValue)| {
        !value.texts.is_empty() && value.texts != [OsStr::new("false")]
    };
    let present: Vec<(Setting, Origin)> = decided
        .iter()
        .filter(has_value)
        .map(|(setting, value)| (setting.clone(), value.origin.clone()))
        .collect();
    for (setting, value) in decided.iter_mut() {
        let rival = present.iter().find(|(other, origin)| {
            origin.rank() <= value.origin.rank() && excludes(command, &other.arg, &setting.arg)
        });
        let Some((other, origin)) = rival.filter(|_| !value.texts.is_empty()) else { continue };
        if origin.rank() == value.origin.rank() {
            if *origin == Origin::Flag {
                continue;
            }
            let (first, second) = (origin.name(setting), origin.name(other));
            let text = format!("{first} and {second} exclude each other; unset one");
            return Err(Error::new(Exit::Config, text).into());
        }
        *value = SettingValue { origin: origin.clone(), texts: Vec::new() };
    }
    Ok(())
}

/// Returns true if two options of `command` exclude each other.
fn excludes(command: &Command, one: &Arg, other: &Arg) -> bool {
    let names = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|it| it.get_id() == other.get_id())
    };
    names(one, other) || names(other, one)
}

/// Returns the error for an invalid value from a variable or the file.
fn why_invalid(settings: &[(Setting, SettingValue)], error: &clap::Error) -> anyhow::Error {
    let option = mistakes::subject(error);
    let found = settings.iter().find(|(setting, _)| setting.arg.get_long() == option.as_deref());
    let name = found.map_or_else(String::new, |(it, value)| value.origin.name(it));
    Error::new(Exit::Config, mistakes::invalid_value(error, &name)).into()
}
