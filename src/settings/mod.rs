//! Settings: options that can also be given by a variable or in the configuration file.
//!
//! A setting is a clap argument whose `env` begins with `CLAW_`; nothing else defines it. Its key in the file is
//! derived from the variable: `CLAW_BASE_URL` becomes `base-url`. [`decide`] finds its value.
//!
//! This module does not read the environment or files: the caller passes a function that looks up variables, and the
//! text of the file.

pub mod decide;
pub mod file;
pub mod groups;
pub mod mistakes;
pub mod place;
pub mod values;
mod variables;

use clap::{Arg, ArgAction, Command};
use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use values::ExtraArg;
pub use variables::Variables;

/// The kind of value that a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// True or false.
    Switch,
    /// A number.
    Number,
    /// The path of a file or directory.
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
    /// The variable, such as `CLAW_BASE_URL`.
    pub variable: String,
    /// The key in the configuration file, such as `base-url`.
    pub key: String,
    /// The kind of its value, or of each element of a list.
    pub kind: ValueKind,
    /// True if the setting takes several values.
    pub is_list: bool,
}

/// The place that a value comes from, in order of precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment.
    Variable,
    /// The configuration file: its path, and the profile if the key is in one.
    File(PathBuf, Option<String>),
    /// No place has a value, and the built-in default applies, if there is one.
    Default,
}

/// The value of a setting.
#[derive(Clone, Debug)]
pub struct SettingValue {
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
        let (key, kind) = (key(&variable)?, ValueKind::of(arg));
        Some(Setting { key, variable, kind, is_list, arg: arg.clone() })
    }

    /// Returns the name of the option, such as `--window`.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.arg.get_long().unwrap_or(&self.key))
    }

    /// Returns the name of the hidden option that unsets the setting, such as `--no-window`.
    #[must_use]
    pub fn opposite(&self) -> String {
        let opposite = opposite(&self.arg);
        format!("--{}", opposite.as_ref().and_then(Arg::get_long).unwrap_or_default())
    }

    /// Returns the default value, or the elements of a default list.
    #[must_use]
    pub fn defaults(&self) -> Vec<OsString> {
        if self.kind == ValueKind::Switch {
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

    /// Returns true if the option itself is `--no-NAME`, which sets the switch to false.
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
            Some("1" | "yes" | "on") if self.kind == ValueKind::Switch => vec!["true".into()],
            Some("0" | "no" | "off") if self.kind == ValueKind::Switch => vec!["false".into()],
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

impl ValueKind {
    fn of(arg: &Arg) -> ValueKind {
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
            ArgAction::SetTrue | ArgAction::SetFalse => ValueKind::Switch,
            _ if is_any(&numbers) => ValueKind::Number,
            _ if is_any(&[TypeId::of::<PathBuf>()]) => ValueKind::Path,
            _ if is_any(&[TypeId::of::<ExtraArg>()]) => ValueKind::Object,
            _ => ValueKind::Text,
        }
    }
}

impl Origin {
    /// Returns the rank of the place: 0 has the highest precedence. A profile comes before the rest of its file.
    fn rank(&self) -> u8 {
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

/// Returns the definitions of the settings of `command`.
#[must_use]
pub fn of(command: &Command) -> Vec<Setting> {
    command.get_arguments().filter_map(Setting::of).collect()
}

/// Returns the id of the option that unsets the option with this id.
#[must_use]
pub fn opposite_id(id: &str) -> String {
    format!("not {id}")
}

/// Returns the option that unsets a setting: `--no-stream` for `--stream`, `--guard` for `--no-guard`.
fn opposite(arg: &Arg) -> Option<Arg> {
    arg.get_env()?;
    let (id, long) = (arg.get_id(), arg.get_long()?);
    let name = long.strip_prefix("no-").map_or_else(|| format!("no-{long}"), str::to_owned);
    let opposite = Arg::new(opposite_id(id.as_str())).long(name).hide(true);
    let opposite = opposite.action(ArgAction::SetTrue).overrides_with(id.clone());
    Some(opposite.global(arg.is_global_set()))
}
