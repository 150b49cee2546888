//! check: every value in the file and its profiles, the settings in effect, and the files and programs that they name.

use crate::all;
use crate::list::warn_not_used;
use clap::{ArgMatches, Command};
use clawutils::cli::call::key::Source;
use clawutils::cli::config::{self, ConfigFile};
use clawutils::cli::settings::{self, Kind, Origin, Setting};
use clawutils::cli::{Log, read_file};
use clawutils::exit::{self, Exit};
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command as Process, Stdio};

/// Keys of folders that programs create if they are missing.
const MADE: [&str; 2] = ["record", "workspace"];

/// Reports each problem on a line of its own.
pub fn check(given: &ArgMatches, log: Log) -> anyhow::Result<Exit> {
    let path = config::path(given).ok().filter(|path| path.symlink_metadata().is_ok());
    let mut problems = path.map_or_else(|| Ok(Vec::new()), |path| in_file(&path, log))?;
    if problems.is_empty() {
        problems = in_effect();
    }
    problems.iter().for_each(|problem| log.note(problem));
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Config })
}

/// Returns the problems of a file and all its profiles.
fn in_file(path: &Path, log: Log) -> anyhow::Result<Vec<String>> {
    let bytes = read_file(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let read = |profile: &str| ConfigFile::read(path, &text, Some(profile.to_owned()));
    let file = match read("") {
        Ok(file) => file,
        Err(why) => return Ok(vec![config::unusable(path, &why)]),
    };
    warn_not_used(&file.not_used, log);
    let mut problems: Vec<String> =
        file.problems.iter().map(|why| config::unusable(path, why)).collect();
    let command = all::command();
    for profile in [String::new()].iter().chain(&file.profiles) {
        let file = read(profile).unwrap_or_default();
        problems.extend(in_profile(&file, profile, &command));
        let together = settings::check_together(&command, &file).err();
        let together = together.map(|error| exit::text(&error));
        problems.extend(together.filter(|problem| !problems.contains(problem)));
    }
    Ok(problems)
}

/// Returns the problems of the values in one profile, or of those outside all profiles if `profile` is empty.
fn in_profile(file: &ConfigFile, profile: &str, command: &Command) -> Vec<String> {
    let mut problems = Vec::new();
    for setting in settings::of(command) {
        let (name, value) = match (file.name(&setting), file.value(&setting)) {
            (Some(name), value) if name.starts_with("profiles.") != profile.is_empty() => {
                (name, value)
            }
            _ => continue,
        };
        let place = file.path.as_deref().unwrap_or(Path::new(""));
        let name = format!("'{name}' in '{}'", place.display());
        match value {
            Err(error) => problems.push(exit::text(&error)),
            Ok(Some(value)) => {
                problems.extend(settings::check(command, &setting, &value.texts, &name).err());
                let texts = value.texts.iter();
                problems.extend(texts.filter_map(|text| missing(&setting, text, &name)));
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
            problems.extend(texts.iter().filter_map(|text| missing(setting, text, &name)));
        }
    }
    problems
}

/// Returns the reason why the file or program that a value names cannot be used, if there is one.
fn missing(setting: &Setting, text: &OsStr, name: &str) -> Option<String> {
    let path = Path::new(text);
    let is_path = match setting.kind {
        Kind::Path => true,
        Kind::Object => !text.to_string_lossy().trim_start().starts_with('{'),
        _ => false,
    };
    let why = match setting.key.as_str() {
        "call" => return why_no_command(&text.to_string_lossy(), name),
        "key-file" => Source::File(path.to_owned()).read().err()?,
        key if !is_path || MADE.contains(&key) && !path.exists() => return None,
        _ => anyhow::Error::from(File::open(path).err()?)
            .context(format!("cannot read '{}'", path.display())),
    };
    Some(format!("{name}: {}", exit::text(&why)))
}

/// Returns an error if the shell does not find a command. Anything but a word with arguments is not checked.
fn why_no_command(command: &str, name: &str) -> Option<String> {
    let mut words = command.split_whitespace();
    let word = words.find(|word| !word.contains('=')).unwrap_or_default();
    if word.contains(|c: char| !c.is_alphanumeric() && !"/._-+@%:".contains(c)) {
        return None;
    }
    let mut shell = Process::new("/bin/sh");
    shell.args(["-c", "command -v -- \"$1\"", "sh", word]);
    let status = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = status.is_ok_and(|status| status.success());
    (!is_there).then(|| {
        format!("{name}: cannot run '{word}': no such command; give its path, or install it")
    })
}
