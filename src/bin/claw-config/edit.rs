//! `claw-config set` and `unset`: change one setting in the configuration file, and keep the rest of the file
//! unchanged.

use crate::all;
use crate::value::{absolute, is_object, to_json};
use anyhow::Context;
use clap::ArgMatches;
use clawutils::cli::ENVIRONMENT;
use clawutils::cli::budget::read_extra;
use clawutils::exit::{self, Error, Exit, fail};
use clawutils::json::edit;
use clawutils::new_file::directory_of;
use clawutils::session::index;
use clawutils::settings::decide;
use clawutils::settings::file::ConfigFile;
use clawutils::settings::place::{self, home};
use clawutils::settings::values::ExtraArg;
use clawutils::settings::{self, Setting, ValueKind};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

/// The mode of a new file.
const MODE: u32 = 0o600;

/// Write a setting into the configuration file
#[derive(Clone, Debug, clap::Args)]
pub struct Set {
    /// Key of the setting
    key: String,
    /// Value; several for a list
    #[arg(required = true, allow_negative_numbers = true)]
    value: Vec<OsString>,
}

/// Remove a setting from the configuration file
#[derive(Clone, Debug, clap::Args)]
pub struct Unset {
    /// Key of the setting
    key: String,
}

impl Set {
    pub fn run(&self, given: &ArgMatches) -> anyhow::Result<Exit> {
        let setting = all::definition(&self.key)?;
        let json = self.json(&setting)?;
        let place = EditedObject::of(given)?;
        if place.profile.is_some() && setting.key == "profile" {
            return fail(Exit::Usage, "a profile cannot select a profile; leave --profile out");
        }
        place.change(|text| {
            let changed = edit::with(text, &place.path(&self.key), &json, 0)?;
            place.check(text, &changed)?;
            Ok(changed)
        })?;
        Ok(Exit::Done)
    }

    /// Returns the value as JSON.
    ///
    /// # Errors
    /// Fails with 2 if the value is invalid.
    fn json(&self, setting: &Setting) -> anyhow::Result<String> {
        if !setting.is_list && self.value.len() > 1 {
            return fail(Exit::Usage, format!("'{}' takes one value; give one", setting.key));
        }
        let split = self.value.iter().flat_map(|value| setting.split_element(value));
        let texts: Vec<OsString> = split.map(|text| stored(setting, text)).collect();
        let is_empty = texts.iter().all(|text| text.is_empty());
        if setting.is_list && texts.iter().any(|text| text.is_empty()) {
            let key = &setting.key;
            let text =
                format!("a value is required for '{key}'; 'claw-config unset {key}' removes it");
            return fail(Exit::Usage, text);
        }
        if is_empty && !matches!(setting.kind, ValueKind::Switch | ValueKind::Number) {
            // An empty value means no value: a profile can thus cancel a value that is set outside profiles.
            return Ok("\"\"".to_owned());
        }
        if let Some(text) = texts.iter().find(|text| text.to_str().is_none()) {
            let text = text.display();
            return fail(Exit::Usage, format!("invalid value '{text}': not UTF-8; use UTF-8"));
        }
        let name = format!("'{}'", setting.key);
        decide::check(setting, &texts, &name).map_err(|why| Error::new(Exit::Usage, why))?;
        for object in
            texts.iter().filter(|text| setting.kind == ValueKind::Object && is_object(text))
        {
            let read = read_extra(&ExtraArg::new(&object.to_string_lossy()));
            read.map_err(|why| Error::new(Exit::Usage, exit::text(&why)))?;
        }
        Ok(to_json(setting, &texts))
    }
}

impl Unset {
    pub fn run(&self, given: &ArgMatches) -> anyhow::Result<Exit> {
        let place = EditedObject::of(given)?;
        if place.profile.is_none() && ["profiles", "session"].contains(&self.key.as_str()) {
            let text =
                format!("'{}' is not a setting but an object of settings; edit the file", self.key);
            return fail(Exit::Usage, text);
        }
        let path = place.path(&self.key);
        let was_present = place.change(|text| edit::without(text, &path))?;
        // An unknown key is an error only if the file does not have it.
        let known = if was_present { Ok(()) } else { all::definition(&self.key).map(drop) };
        known.map(|()| Exit::Done)
    }
}

/// Returns a value as the file stores it. A path on the command line is relative to the working directory, but a path in
/// the file is relative to the file's directory, so the path is made absolute.
fn stored(setting: &Setting, text: OsString) -> OsString {
    match text.to_str() {
        Some("1" | "yes" | "on") if setting.kind == ValueKind::Switch => "true".into(),
        Some("0" | "no" | "off") if setting.kind == ValueKind::Switch => "false".into(),
        _ if text.to_string_lossy().starts_with("~/") => text,
        _ => absolute(setting, text),
    }
}

/// The object to change: the whole file, or one profile.
struct EditedObject {
    file: PathBuf,
    profile: Option<String>,
}

impl EditedObject {
    fn of(given: &ArgMatches) -> anyhow::Result<EditedObject> {
        let profile = given.try_get_one::<String>("profile").ok().flatten().cloned();
        Ok(EditedObject { file: place::path(given, ENVIRONMENT)?, profile })
    }

    /// Returns the path of a key in the file.
    fn path<'k>(&'k self, key: &'k str) -> Vec<&'k str> {
        match &self.profile {
            Some(name) => vec!["profiles", name, key],
            None => vec![key],
        }
    }

    /// Checks that a change of the file's text adds no problem, for example that it does not select a profile that is
    /// missing, or combine two settings that exclude each other.
    ///
    /// # Errors
    /// Returns the first problem, and what to do.
    fn check(&self, old: &str, new: &str) -> Result<(), String> {
        let (before, after) = (self.problems(old), self.problems(new));
        after.into_iter().find(|problem| !before.contains(problem)).map_or(Ok(()), Err)
    }

    /// Returns the problems of a file with this text, except for invalid values.
    fn problems(&self, text: &str) -> Vec<String> {
        let file = match ConfigFile::read(&self.file, text, self.profile.clone(), home(ENVIRONMENT))
        {
            Ok(file) => file,
            Err(why) => return vec![why],
        };
        let command = all::command();
        let conflict = decide::check_together(&command, &settings::of(&command), &file).err();
        file.problems.into_iter().chain(conflict.map(|error| exit::text(&error))).collect()
    }

    /// Replaces the file's text with the result of `changed`. Returns true if the two differ.
    fn change(&self, changed: impl FnOnce(&str) -> Result<String, String>) -> anyhow::Result<bool> {
        let path = target(&self.file);
        let refused = |why: String| {
            Error::new(Exit::Config, format!("cannot change '{}': {why}", path.display()))
        };
        // Another process that changes the file waits, so that no change is lost. The lock is only missing where it cannot
        // be taken.
        let lock = File::open(directory_of(&path)).ok().filter(|lock| lock.lock().is_ok());
        let found = std::fs::metadata(&path).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            let text =
                format!("cannot change '{}': not a regular file; name a file", path.display());
            return fail(Exit::Io, text);
        }
        let old = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.with_context(|| format!("cannot read '{}'", path.display()))?,
        };
        let old = String::from_utf8(old).map_err(|_| refused("not UTF-8; correct it".into()))?;
        let old = if old.trim().is_empty() { "{}\n".to_owned() } else { old };
        let new = changed(&old).map_err(refused)?;
        if new == old {
            return Ok(false);
        }
        let mode = found.as_ref().map_or(MODE, |found| found.mode() & 0o777);
        write(&path, &new, mode).with_context(|| format!("cannot write '{}'", path.display()))?;
        if let Some(found) = found {
            // The new file belongs to this user; only the superuser can restore the owner.
            let _ = chown(&path, Some(found.uid()), Some(found.gid()));
        }
        drop(lock);
        Ok(true)
    }
}

/// Follows symbolic links, even to a file that does not exist yet.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // Linux follows 40 links at most.
    for _ in 0..40 {
        let Ok(next) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    path
}

fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory_of(path))?;
    index::replace(path, text, mode)
}
