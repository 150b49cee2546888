//! Settings: options that can also be given by a variable or in the configuration file.
//!
//! A setting is a clap argument whose `env` begins with `CLAW_`; nothing else defines it. Its key in the file is
//! derived from the variable: `CLAW_BASE_URL` becomes `base-url`. The first of these places that has a value decides: the
//! flag, the variable, the profile in use, the rest of the file, the default.
//!
//! - An empty variable and `--no-NAME` mean no value: the file is not consulted, and the default applies.
//! - Two settings that exclude each other (`conflicts_with`) are an error if both come from the same place. Otherwise
//!   the one from the earlier place applies: `--key-file` is used even if `CLAW_KEY_CMD` is set.
//! - A setting that may be repeated is a list. One place gives the whole list; lists are not merged.

use crate::cli::arguments;
use crate::cli::budget::ExtraArg;
use crate::cli::config::{self, ConfigFile};
use crate::exit::{Error, Exit};
use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The kind of value that a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Switch,
    /// A number.
    Number,
    /// The path of a file or folder.
    Path,
    /// A JSON object, or the path of a file with one.
    Object,
    /// Any other text.
    Text,
}

/// The definition of a setting.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its clap argument.
    pub arg: Arg,
    /// The variable, `CLAW_BASE_URL`.
    pub variable: String,
    /// The key in the configuration file, `base-url`.
    pub key: String,
    /// The kind of its value, or of each element of a list.
    pub kind: Kind,
    /// True if it takes several values.
    pub is_list: bool,
}

/// The place that a value comes from, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment.
    Variable,
    /// The configuration file: its path, and the profile that has the key.
    File(PathBuf, Option<String>),
    /// No place: the built-in default applies, if there is one.
    Default,
}

/// The value of a setting.
#[derive(Clone, Debug)]
pub struct Value {
    /// The place that the value comes from.
    pub origin: Origin,
    /// The value, or the elements of a list. Empty if no place gives a value.
    pub texts: Vec<OsString>,
}

/// Returns the key of a variable: `base-url` for `CLAW_BASE_URL`.
fn key(variable: &str) -> Option<String> {
    Some(variable.strip_prefix("CLAW_")?.to_lowercase().replace('_', "-"))
}

impl Setting {
    fn of(arg: &Arg) -> Option<Setting> {
        let variable = arg.get_env()?.to_str()?.to_owned();
        let is_list =
            matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some();
        let (key, kind) = (key(&variable)?, Kind::of(arg));
        Some(Setting { key, variable, kind, is_list, arg: arg.clone() })
    }

    /// Returns the option, `--window`.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.arg.get_long().unwrap_or(&self.key))
    }

    /// Returns the hidden option that undoes it, `--no-window`.
    #[must_use]
    pub fn opposite(&self) -> String {
        let opposite = opposite(&self.arg);
        format!("--{}", opposite.as_ref().and_then(Arg::get_long).unwrap_or_default())
    }

    /// Returns the default value, or the elements of a default list.
    #[must_use]
    pub fn defaults(&self) -> Vec<OsString> {
        if self.kind == Kind::Switch {
            return vec![self.is_negative().to_string().into()];
        }
        self.arg.get_default_values().iter().flat_map(|text| self.split_element(text)).collect()
    }

    /// Splits one value of the command line at the delimiter of its option, if it has one.
    #[must_use]
    pub fn split_element(&self, text: &OsStr) -> Vec<OsString> {
        match (text.to_str(), self.arg.get_value_delimiter()) {
            (Some(text), Some(by)) => text.split(by).map(OsString::from).collect(),
            _ => vec![text.to_owned()],
        }
    }

    /// Returns whether the option itself is `--no-NAME`, which makes the switch false.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        matches!(self.arg.get_action(), ArgAction::SetFalse)
    }

    /// Splits the text of an environment variable into values.
    #[must_use]
    pub fn split(&self, text: &OsStr) -> Vec<OsString> {
        match text.to_str() {
            Some(text) if self.is_list => {
                let elements = |by| text.split(by).filter(|one: &&str| !one.trim().is_empty());
                match text.contains('\n') {
                    true => elements('\n').map(OsString::from).collect(),
                    false => elements(',').map(|one| one.trim().into()).collect(),
                }
            }
            Some("1" | "yes" | "on") if self.kind == Kind::Switch => vec!["true".into()],
            Some("0" | "no" | "off") if self.kind == Kind::Switch => vec!["false".into()],
            _ => vec![text.to_owned()],
        }
    }

    /// Joins values into the text of an environment variable.
    #[must_use]
    pub fn join(&self, texts: &[OsString]) -> OsString {
        let by = OsStr::new(if self.is_list { "\n" } else { "" });
        let mut joined = texts.join(by);
        if self.is_list && !texts.is_empty() {
            joined.push("\n");
        }
        joined
    }
}

impl Kind {
    fn of(arg: &Arg) -> Kind {
        let value = arg.get_value_parser().type_id();
        let is_any = |types: &[TypeId]| types.iter().any(|it| value == *it);
        let numbers = [
            TypeId::of::<u64>(),
            TypeId::of::<u32>(),
            TypeId::of::<usize>(),
            TypeId::of::<NonZeroUsize>(),
            TypeId::of::<f64>(),
            TypeId::of::<Duration>(),
        ];
        match arg.get_action() {
            ArgAction::SetTrue | ArgAction::SetFalse => Kind::Switch,
            _ if is_any(&numbers) => Kind::Number,
            _ if is_any(&[TypeId::of::<PathBuf>()]) => Kind::Path,
            _ if is_any(&[TypeId::of::<ExtraArg>()]) => Kind::Object,
            _ => Kind::Text,
        }
    }
}

/// A parsed command line with the values of its settings.
#[derive(Debug)]
pub struct Parsed {
    /// The options and operands, including settings from other places.
    pub matches: ArgMatches,
    /// The settings and their values, in the order of their definition.
    pub settings: Vec<(Setting, Value)>,
}

/// An error of [`read`].
#[derive(Debug)]
pub enum Failed {
    /// clap's error about the command line, or the text of help or version.
    Usage(Box<Command>, clap::Error),
    /// An error in a variable or in the file.
    Config(anyhow::Error),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Failed {
        Failed::Config(error)
    }
}

/// Parses `arguments`, the program's name first, and finds the values of the settings of `command`.
///
/// # Errors
/// See [`Failed`].
pub fn read(command: Command, arguments: &[OsString]) -> Result<Parsed, Failed> {
    let mut flags = with_flags_alone(&command);
    let given = given(&command, &mut flags, arguments)?;
    let file = config::open(&given)?;
    let settings = decide(&command, &given, &file)?;
    let mut whole = with_values(flags, &settings);
    match whole.try_get_matches_from_mut(arguments) {
        Ok(matches) => Ok(Parsed { matches, settings }),
        Err(error) => Err(Failed::Config(why_invalid(&settings, &error))),
    }
}

/// Parses only the flags in `arguments`.
///
/// # Errors
/// When they are wrong, or ask for help or version; see [`Failed`].
pub fn flags(command: &Command, arguments: &[OsString]) -> Result<ArgMatches, Failed> {
    given(command, &mut with_flags_alone(command), arguments)
}

/// Parses `arguments` with `flags`, which is `command` without variables.
fn given(
    command: &Command,
    flags: &mut Command,
    arguments: &[OsString],
) -> Result<ArgMatches, Failed> {
    match flags.try_get_matches_from_mut(arguments) {
        Ok(given) => Ok(given),
        Err(error) if error.use_stderr() => Err(Failed::Usage(Box::new(flags.clone()), error)),
        Err(_) => Err(help(command.clone(), arguments)),
    }
}

/// Returns the definitions of the settings of `command`.
#[must_use]
pub fn of(command: &Command) -> Vec<Setting> {
    command.get_arguments().filter_map(Setting::of).collect()
}

/// Checks the values of a setting; errors refer to it as `name`.
///
/// # Errors
/// Says why a value cannot be used.
pub fn check(setting: &Setting, texts: &[OsString], name: &str) -> Result<(), String> {
    if texts.is_empty() {
        return Ok(());
    }
    let alone = setting.arg.clone().env(Resettable::Reset).required(false);
    let alone = alone.conflicts_with(Resettable::Reset).overrides_with(Resettable::Reset);
    let mut command = Command::new("check").arg(alone.default_values(texts.to_vec()));
    let parsed = command.try_get_matches_from_mut(["check"]);
    parsed.map(drop).map_err(|error| arguments::invalid_value(&error, name))
}

/// Checks that a file does not give two of these settings of `command` that exclude each other.
///
/// # Errors
/// 78 if it does.
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

/// Returns the text of help or version, with the names of variables but without their values.
fn help(command: Command, arguments: &[OsString]) -> Failed {
    let mut command = each(command, &|arg| arg.hide_env_values(true));
    match command.try_get_matches_from_mut(arguments) {
        Err(error) => Failed::Usage(Box::new(command), error),
        // Unreachable: help or version is asked for, whatever the variables are.
        Ok(_) => Failed::Config(anyhow::anyhow!("cannot print the help")),
    }
}

/// Applies `change` to each argument of a command and of its subcommands.
fn each(command: Command, change: &dyn Fn(Arg) -> Arg) -> Command {
    command.mut_args(change).mut_subcommands(|sub| each(sub, change))
}

/// Returns the same command without variables, and with the hidden opposites of its settings.
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

/// Returns the id of the option that undoes the one with this id.
#[must_use]
pub fn opposite_id(id: &str) -> String {
    format!("not {id}")
}

/// Returns the option that undoes a setting: `--no-stream` for `--stream`, `--guard` for `--no-guard`.
fn opposite(arg: &Arg) -> Option<Arg> {
    arg.get_env()?;
    let (id, long) = (arg.get_id(), arg.get_long()?);
    let name = long.strip_prefix("no-").map_or_else(|| format!("no-{long}"), str::to_owned);
    let opposite = Arg::new(opposite_id(id.as_str())).long(name).hide(true);
    let opposite = opposite.action(ArgAction::SetTrue).overrides_with(id.clone());
    Some(opposite.global(arg.is_global_set()))
}

/// Adds the values that do not come from flags as clap's default values.
fn with_values(command: Command, settings: &[(Setting, Value)]) -> Command {
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
    file: &ConfigFile,
) -> anyhow::Result<Vec<(Setting, Value)>> {
    let mut decided: Vec<(Setting, Value)> = Vec::new();
    for setting in command.get_arguments().filter_map(Setting::of) {
        let value = match by_flag(&setting, given) {
            Some(value) => {
                if !value.texts.is_empty() {
                    require_elements(&setting, &value.texts, &setting.flag(), Exit::Usage)?;
                }
                value
            }
            None => elsewhere(&setting, file)?,
        };
        decided.push((setting, value));
    }
    exclude(command, &mut decided)?;
    if let Some((name, given)) = given.subcommand()
        && let Some(sub) = command.find_subcommand(name)
    {
        decided.extend(decide(sub, given, file)?);
    }
    Ok(decided)
}

/// Returns whether an option is on the command line.
fn is_given(given: &ArgMatches, id: &str) -> bool {
    given.try_contains_id(id).unwrap_or(false)
        && given.value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the value of a setting on the command line, if it is there.
#[must_use]
pub fn by_flag(setting: &Setting, given: &ArgMatches) -> Option<Value> {
    let id = setting.arg.get_id().as_str();
    let texts = match setting.kind {
        Kind::Switch if is_given(given, &opposite_id(id)) => {
            vec![OsString::from(setting.is_negative().to_string())]
        }
        _ if is_given(given, &opposite_id(id)) => Vec::new(),
        _ if !is_given(given, id) => return None,
        Kind::Switch => vec![OsString::from((!setting.is_negative()).to_string())],
        _ => given.get_raw(id).into_iter().flatten().map(OsString::from).collect(),
    };
    Some(Value { origin: Origin::Flag, texts })
}

/// Checks that a list which is given has values: `--allow ''` must not mean that every tool is allowed.
///
/// # Errors
/// `exit` if it has none.
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
    Err(Error::new(exit, format!("a value is required for {name}; leave it out for none")).into())
}

/// Returns the value of a setting that no flag gives.
fn elsewhere(setting: &Setting, file: &ConfigFile) -> anyhow::Result<Value> {
    if let Some(text) = std::env::var_os(&setting.variable) {
        let texts = if text.is_empty() { Vec::new() } else { setting.split(&text) };
        if !text.is_empty() {
            require_elements(setting, &texts, &setting.variable, Exit::Config)?;
        }
        return Ok(Value { origin: Origin::Variable, texts });
    }
    Ok(file.value(setting)?.unwrap_or(Value { origin: Origin::Default, texts: Vec::new() }))
}

/// Drops each value that a setting from an earlier place excludes.
///
/// # Errors
/// 78 if two that exclude each other come from the same place. clap has checked the command line.
fn exclude(command: &Command, decided: &mut [(Setting, Value)]) -> anyhow::Result<()> {
    let has_value = |(_, value): &&(Setting, Value)| {
        !value.texts.is_empty() && value.texts != [OsStr::new("false")]
    };
    let present: Vec<(Setting, Origin)> = decided
        .iter()
        .filter(has_value)
        .map(|(setting, value)| (setting.clone(), value.origin.clone()))
        .collect();
    for (setting, value) in decided.iter_mut() {
        let rival = present.iter().find(|(other, origin)| {
            origin.distance() <= value.origin.distance()
                && excludes(command, &other.arg, &setting.arg)
        });
        let Some((other, origin)) = rival.filter(|_| !value.texts.is_empty()) else { continue };
        if origin.distance() == value.origin.distance() {
            if *origin == Origin::Flag {
                continue;
            }
            let (first, second) = (origin.name(setting), origin.name(other));
            let text = format!("{first} and {second} exclude each other; unset one");
            return Err(Error::new(Exit::Config, text).into());
        }
        *value = Value { origin: origin.clone(), texts: Vec::new() };
    }
    Ok(())
}

/// Returns whether two options of `command` cannot be given together.
fn excludes(command: &Command, one: &Arg, other: &Arg) -> bool {
    let names = |one: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(one).iter().any(|it| it.get_id() == other.get_id())
    };
    names(one, other) || names(other, one)
}

impl Origin {
    /// Returns the rank of the place: 0 has the highest precedence. A profile comes before the rest of its file.
    fn distance(&self) -> u8 {
        match self {
            Origin::Flag => 0,
            Origin::Variable => 1,
            Origin::File(_, Some(_)) => 2,
            Origin::File(_, None) => 3,
            Origin::Default => 4,
        }
    }

    /// Returns the name of a setting in this place, for errors.
    #[must_use]
    pub fn name(&self, setting: &Setting) -> String {
        match self {
            Origin::Variable => setting.variable.clone(),
            Origin::File(path, None) => format!("'{}' in '{}'", setting.key, path.display()),
            Origin::File(path, Some(profile)) => {
                format!("'profiles.{profile}.{}' in '{}'", setting.key, path.display())
            }
            Origin::Flag | Origin::Default => setting.flag(),
        }
    }
}

/// Returns the error about a value from a variable or the file.
fn why_invalid(settings: &[(Setting, Value)], error: &clap::Error) -> anyhow::Error {
    let option = arguments::subject(error);
    let found = settings.iter().find(|(setting, _)| setting.arg.get_long() == option.as_deref());
    let name = found.map_or_else(String::new, |(it, value)| value.origin.name(it));
    Error::new(Exit::Config, arguments::invalid_value(error, &name)).into()
}
