//! `claw-config check`: checks every value in the file and its profiles, then the settings in effect that come from
//! elsewhere. Also checks that the files and programs that the values name can be used.

use crate::all;
use crate::program::not_found;
use clap::ArgMatches;
use clawutils::cli::budget::read_extra;
use clawutils::cli::{ENVIRONMENT, Log, read_file};
use clawutils::exit::{self, Exit};
use clawutils::provider::key::KeySource;
use clawutils::settings::decide;
use clawutils::settings::file::{ConfigFile, unusable};
use clawutils::settings::place;
use clawutils::settings::values::ExtraArg;
use clawutils::settings::{self, Origin, Setting, ValueKind};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

/// Keys of files and directories that programs create if they are missing.
const CREATED: [&str; 3] = ["record", "store-path", "workspace"];

/// Reports each problem on its own line. The settings in effect are checked only if the file has no problem.
pub fn check(given: &ArgMatches, log: Log) -> anyhow::Result<Exit> {
    let path = place::path(given, ENVIRONMENT).ok().filter(|path| path.symlink_metadata().is_ok());
    let mut problems = path.map_or_else(|| Ok(Vec::new()), |path| in_file(&path))?;
    if problems.is_empty() {
        problems = in_effect();
    }
    problems.iter().for_each(|problem| log.note(problem));
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Config })
}

/// Returns the problems of a file and all its profiles.
fn in_file(path: &Path) -> anyhow::Result<Vec<String>> {
    let bytes = read_file(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut file =
        match ConfigFile::read(path, &text, Some(String::new()), place::home(ENVIRONMENT)) {
            Ok(file) => file,
            Err(why) => return Ok(vec![unusable(path, &why)]),
        };
    let mut problems: Vec<String> = file.problems.iter().map(|why| unusable(path, why)).collect();
    let command = all::command();
    let settings = settings::of(&command);
    // A conflict between values outside profiles is found again with each profile, but must be reported only once.
    let mut conflicts = HashSet::new();
    for profile in [None].into_iter().chain(file.profiles().into_iter().map(Some)) {
        file.profile = profile;
        problems.extend(in_profile(&file, &settings));
        let conflict = decide::check_together(&command, &settings, &file).err();
        let conflict = conflict.map(|error| exit::text(&error));
        problems.extend(conflict.filter(|conflict| conflicts.insert(conflict.clone())));
    }
    Ok(problems)
}

/// Returns the problems of the values in the profile in use, or of those outside all profiles if there is none.
fn in_profile(file: &ConfigFile, settings: &[Setting]) -> Vec<String> {
    let mut problems = Vec::new();
    for setting in settings {
        let is_here = |name: &&str| name.starts_with("profiles.") == file.profile.is_some();
        let Some(name) = file.name(setting).filter(is_here) else { continue };
        let place = file.path.as_deref().unwrap_or(Path::new(""));
        let name = format!("'{name}' in '{}'", place.display());
        match file.value(setting) {
            Err(error) => problems.push(exit::text(&error)),
            Ok(Some(value)) => {
                problems.extend(decide::check(setting, &value.texts, &name).err());
                let texts = value.texts.iter();
                problems.extend(texts.filter_map(|text| why_unusable(setting, text, &name)));
            }
            Ok(None) => {}
        }
    }
    problems
}

/// Returns the problems of settings in effect that do not come from the file.
fn in_effect() -> Vec<String> {
    let settings = match all::decided() {
        Ok(settings) => settings,
        Err(error) => return vec![exit::text(&error)],
    };
    let mut problems = Vec::new();
    for (setting, value) in &settings {
        if !matches!(value.origin, Origin::File(..)) {
            let (name, default) = (value.origin.name(setting), setting.defaults());
            let texts = if value.texts.is_empty() { &default } else { &value.texts };
            problems.extend(texts.iter().filter_map(|text| why_unusable(setting, text, &name)));
        }
    }
    problems
}

/// Returns the reason why the file, object or program that a value names cannot be used, if there is one.
fn why_unusable(setting: &Setting, text: &OsStr, name: &str) -> Option<String> {
    let (path, text) = (Path::new(text), text.to_string_lossy());
    let why = match setting.key.as_str() {
        "call" => {
            let program = not_found(&text)?;
            return Some(format!(
                "{name}: cannot run '{program}': no such command; give its path, or install it"
            ));
        }
        "key-file" => KeySource::File(path.to_owned()).read().err()?,
        _ if setting.kind == ValueKind::Object => read_extra(&ExtraArg::new(&text)).err()?,
        key if setting.kind != ValueKind::Path || CREATED.contains(&key) && !path.exists() => {
            return None;
        }
        _ => anyhow::Error::from(File::open(path).err()?)
            .context(format!("cannot read '{}'", path.display())),
    };
    Some(format!("{name}: {}", exit::text(&why)))
}
