//! Finds the configuration file.

use crate::exit::{Error, Exit};
use crate::settings::Variables;
use crate::settings::opposite_id;
use clap::ArgMatches;
use std::ffi::OsString;
use std::path::PathBuf;

/// Returns the path of the file to use, which need not exist.
///
/// # Errors
/// Fails with 78 if no file is selected: `--no-config` is given, `CLAW_CONFIG` is empty, or there
/// is no home directory.
pub fn path(given: &ArgMatches, variables: Variables<'_>) -> anyhow::Result<PathBuf> {
    let path = match chosen(given, "config", "CLAW_CONFIG", variables) {
        Some(named) if named.is_empty() => {
            Err("disabled by --no-config or CLAW_CONFIG; give --config")
        }
        Some(named) => Ok(named.into()),
        None => default_path(variables).ok_or("no home directory; set HOME, or give --config"),
    };
    path.map_err(|why| Error::new(Exit::Config, format!("no configuration file: {why}")).into())
}

/// Returns the path of the file to read: the one that is named, else the default one if it exists.
/// `None` if there is no file to read.
#[must_use]
pub fn selected(given: &ArgMatches, variables: Variables<'_>) -> Option<PathBuf> {
    let is_named = chosen(given, "config", "CLAW_CONFIG", variables).is_some();
    path(given, variables).ok().filter(|path| is_named || path.exists())
}

/// Returns the name of the profile that the command line selects, or else the one in the variable.
#[must_use]
pub fn profile(given: &ArgMatches, variables: Variables<'_>) -> Option<String> {
    let name = chosen(given, "profile", "CLAW_PROFILE", variables);
    name.map(|name| name.to_string_lossy().into_owned())
}

/// Returns the home directory.
#[must_use]
pub fn home(variables: Variables<'_>) -> Option<PathBuf> {
    variables.text("HOME").map(PathBuf::from)
}

/// Returns the value of an option, or else of its variable. The value is empty for `--no-NAME`.
fn chosen(given: &ArgMatches, id: &str, name: &str, variables: Variables<'_>) -> Option<OsString> {
    if given.try_get_one::<bool>(&opposite_id(id)).ok().flatten() == Some(&true) {
        return Some(OsString::new());
    }
    let flag = given.try_get_raw(id).ok().flatten().and_then(|mut values| values.next());
    flag.map(OsString::from).or_else(|| variables.get(name))
}

/// Returns the path of the configuration file to use if none is named.
fn default_path(variables: Variables<'_>) -> Option<PathBuf> {
    let xdg = variables.text("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let directory = xdg.or_else(|| home(variables).map(|home| home.join(".config")));
    directory.map(|dir| dir.join("clawutils/config.json"))
}
