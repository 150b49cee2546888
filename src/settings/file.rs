//! The configuration file: one JSON object of settings, with named profiles and GoClaw's `session` object.
//!
//! Each program checks all keys in the file, but only the values of its own settings; `claw-config check` checks all
//! values.

use crate::exit::{Error, Exit};
use crate::json::{Object, elements, string};
use crate::settings::{Origin, Setting, SettingValue, ValueKind};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The keys of all settings, sorted. A test compares them with the definitions.
pub const KEYS: &[&str] = &[
    "agent",
    "allow",
    "api",
    "ask",
    "ask-window",
    "base-url",
    "beta",
    "ca",
    "cache",
    "call",
    "checkpoint",
    "checkpoint-min-tokens",
    "checkpoint-percents",
    "checkpoint-turns",
    "compact-when",
    "cost",
    "deny",
    "detect-truncation",
    "effort",
    "emergency",
    "exec-timeout",
    "extra",
    "failure-reset",
    "failures",
    "fallback",
    "guard",
    "history",
    "idle",
    "insecure-http",
    "jobs",
    "key-cmd",
    "key-file",
    "limit-turns",
    "lock-timeout",
    "log",
    "markdown",
    "max-cost",
    "max-failures",
    "max-retries",
    "max-rounds",
    "max-tokens",
    "max-tokens-field",
    "max-total",
    "max-wait",
    "model",
    "models",
    "no-fallback",
    "ollama-model",
    "ollama-timeout",
    "ollama-url",
    "ollama-window",
    "pass-env",
    "prefer-checkpoint",
    "prices",
    "proactive",
    "profile",
    "provider",
    "record",
    "replay",
    "reserve",
    "reset",
    "retry",
    "retry-interval",
    "store",
    "store-path",
    "stream",
    "system",
    "temperature",
    "thinking-budget",
    "timeout",
    "tools",
    "via",
    "window",
    "workspace",
];

/// The names of settings in GoClaw's `session` object, each with our key for the same setting.
pub const GOCLAW: [(&str, &str); 15] = [
    ("store", "store"),
    ("storePath", "store-path"),
    ("checkpoint.enabled", "checkpoint"),
    ("checkpoint.tokenThresholdPercents", "checkpoint-percents"),
    ("checkpoint.turnThreshold", "checkpoint-turns"),
    ("checkpoint.minTokensForGen", "checkpoint-min-tokens"),
    ("compaction.reserveTokens", "reserve"),
    ("compaction.preferCheckpoint", "prefer-checkpoint"),
    ("compaction.retryIntervalSeconds", "retry-interval"),
    ("compaction.ollamaFailureThreshold", "max-failures"),
    ("compaction.ollamaResetMinutes", "failure-reset"),
    ("compaction.ollama.url", "ollama-url"),
    ("compaction.ollama.model", "ollama-model"),
    ("compaction.ollama.timeoutSeconds", "ollama-timeout"),
    ("compaction.ollama.contextTokens", "ollama-window"),
];

/// The maximum size of a configuration file, in bytes.
pub const MAX_BYTES: u64 = 4 << 20;

/// The members of a JSON object.
type RawMembers = BTreeMap<String, Box<RawValue>>;

/// A value in the file.
#[derive(Clone, Debug)]
struct FileEntry {
    /// The full path of the key: `window`, `profiles.local.window`, `session.compaction.reserveTokens`.
    name: String,
    raw: Box<RawValue>,
    profile: Option<String>,
}

/// A configuration file. The default is an empty one.
#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    /// The path of the file, if there is one.
    pub path: Option<PathBuf>,
    /// The home directory, for paths that begin with `~/`.
    home: Option<PathBuf>,
    /// The profile in use.
    pub profile: Option<String>,
    /// The problems with the keys of the file.
    pub problems: Vec<String>,
    /// The settings outside profiles, by key.
    entries: FileEntries,
    profiles: BTreeMap<String, FileEntries>,
}

/// The entries of settings, by key.
type FileEntries = BTreeMap<String, FileEntry>;

/// Returns the bytes of a file as text. A blank file counts as an empty object.
///
/// # Errors
/// Fails with 78 if the file is too large or not UTF-8.
pub fn text(path: &Path, bytes: Vec<u8>) -> anyhow::Result<String> {
    let wrong = |why: &str| Error::new(Exit::Config, unusable(path, why));
    if bytes.len() as u64 > MAX_BYTES {
        return Err(wrong("more than 4 MiB; use a smaller file").into());
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("not UTF-8; correct it"))?;
    Ok(if text.trim().is_empty() { "{}".to_owned() } else { text })
}

/// Returns the text of the error for an unusable file.
#[must_use]
pub fn unusable(path: &Path, why: &str) -> String {
    format!("cannot use configuration '{}': {why}", path.display())
}

impl ConfigFile {
    /// Parses the text of a file. The profile in use is `profile`, or else the one that the file itself selects.
    ///
    /// # Errors
    /// Returns the first problem and what to do about it.
    pub fn parse(
        path: &Path,
        text: &str,
        profile: Option<String>,
        home: Option<PathBuf>,
    ) -> Result<ConfigFile, String> {
        let mut file = ConfigFile::read(path, text, profile, home)?;
        if file.problems.is_empty() { Ok(file) } else { Err(file.problems.swap_remove(0)) }
    }

    /// Parses the text of a file as [`ConfigFile::parse`] does, but collects the problems with its keys.
    ///
    /// # Errors
    /// Fails if the text is not a JSON object.
    pub fn read(
        path: &Path,
        text: &str,
        profile: Option<String>,
        home: Option<PathBuf>,
    ) -> Result<ConfigFile, String> {
        let mut root: RawMembers =
            serde_json::from_str(text).map_err(|error| format!("{error}; correct it"))?;
        let mut file = ConfigFile { path: Some(path.to_owned()), home, ..ConfigFile::default() };
        if let Some(session) = root.remove("session") {
            file.take_goclaw(&session);
        }
        let profiles = root.remove("profiles").map(|raw| file.members("profiles", &raw));
        let own = file.take("", root, None);
        file.entries.extend(own);
        let named = file.entries.get("profile").and_then(|entry| text_of(&entry.raw));
        file.profile = profile.or(named).filter(|name| !name.is_empty());
        file.take_profiles(profiles.unwrap_or_default());
        Ok(file)
    }

    /// Returns the members of `all` whose keys name settings. Adds a problem for each other key.
    fn take(&mut self, path: &str, all: RawMembers, profile: Option<&str>) -> FileEntries {
        let mut entries = FileEntries::new();
        for (key, raw) in all {
            let name = format!("{path}{key}");
            if !KEYS.contains(&key.as_str()) || (key == "profile" && profile.is_some()) {
                self.problems.push(unknown(&name, &key, KEYS));
                continue;
            }
            let profile = profile.map(str::to_owned);
            entries.insert(key, FileEntry { name, raw, profile });
        }
        entries
    }

    /// Adds the members of all profiles. Adds a problem if the profile in use does not exist.
    fn take_profiles(&mut self, profiles: RawMembers) {
        if let Some(name) = self.profile.as_ref().filter(|name| !profiles.contains_key(*name)) {
            let all = profiles.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let all = if all.is_empty() { "none" } else { &all };
            self.problems.push(format!("no profile '{name}'; the file has {all}"));
        }
        for (name, raw) in profiles {
            let path = format!("profiles.{name}");
            let members = self.members(&path, &raw);
            let entries = self.take(&format!("{path}."), members, Some(&name));
            self.profiles.insert(name, entries);
        }
    }

    /// Returns the names of all profiles.
    #[must_use]
    pub fn profiles(&self) -> Vec<String> {
        self.profiles.keys().cloned().collect()
    }

    /// Returns the entry of a key in the profile in use, else the one outside profiles.
    fn entry(&self, key: &str) -> Option<&FileEntry> {
        let profile = self.profile.as_ref().and_then(|name| self.profiles.get(name));
        profile.and_then(|entries| entries.get(key)).or_else(|| self.entries.get(key))
    }

    /// Adds the settings in GoClaw's `session` object. Must be called before the other settings are added, so that a
    /// setting's own key overrides its GoClaw name.
    fn take_goclaw(&mut self, raw: &RawValue) {
        let mut leaves = Vec::new();
        let session = self.members("session", raw);
        self.flatten("", session, &mut leaves);
        let known: Vec<&str> = GOCLAW.iter().map(|(name, _)| *name).collect();
        for (leaf, raw) in leaves {
            let name = format!("session.{leaf}");
            match GOCLAW.iter().find(|(goclaw, _)| *goclaw == leaf) {
                Some((_, key)) => {
                    let entry = FileEntry { name, raw, profile: None };
                    self.entries.insert((*key).to_owned(), entry);
                }
                None => self.problems.push(unknown(&name, &leaf, &known)),
            }
        }
    }

    /// Returns the members of an object in the file. Adds a problem if it is not an object.
    fn members(&mut self, name: &str, raw: &RawValue) -> RawMembers {
        if raw.get() == "null" {
            return RawMembers::new();
        }
        serde_json::from_str(raw.get()).unwrap_or_else(|_| {
            self.problems.push(format!("'{name}' is not an object; correct it"));
            RawMembers::new()
        })
    }

    /// Collects the values of nested objects, each with its path, such as `compaction.ollama.url`.
    fn flatten(&mut self, path: &str, all: RawMembers, leaves: &mut Vec<(String, Box<RawValue>)>) {
        for (key, raw) in all {
            let name = format!("{path}{key}");
            if GOCLAW.iter().any(|(known, _)| known.starts_with(&format!("{name}."))) {
                let inner = self.members(&format!("session.{name}"), &raw);
                self.flatten(&format!("{name}."), inner, leaves);
            } else {
                leaves.push((name, raw));
            }
        }
    }

    /// Returns true if the file selects JSON for diagnostics.
    #[must_use]
    pub fn logs_json(&self) -> bool {
        self.entry("log").is_some_and(|entry| text_of(&entry.raw).as_deref() == Some("json"))
    }

    /// Returns the full path of a setting's key in the file, if the file has it.
    #[must_use]
    pub fn name(&self, setting: &Setting) -> Option<&str> {
        self.entry(&setting.key).map(|entry| entry.name.as_str())
    }

    /// Returns the value of a setting, if the file has one.
    ///
    /// # Errors
    /// Fails with 78 if the value has the wrong type, or is a list that is empty or has an empty element.
    pub fn value(&self, setting: &Setting) -> anyhow::Result<Option<SettingValue>> {
        let (Some(path), Some(entry)) = (&self.path, self.entry(&setting.key)) else {
            return Ok(None);
        };
        if entry.raw.get() == "null" {
            return Ok(None);
        }
        let origin = Origin::File(path.clone(), entry.profile.clone());
        let wrong = || {
            let (name, wanted) = (&entry.name, wanted(setting));
            let text = unusable(path, &format!("'{name}' is not {wanted}; correct it"));
            anyhow::Error::from(Error::new(Exit::Config, text))
        };
        let texts = match setting.is_list {
            true => elements(entry.raw.get())
                .and_then(|all| all.into_iter().map(|raw| self.text(setting.kind, raw)).collect()),
            false => self.text(setting.kind, entry.raw.get()).map(|text| vec![text]),
        };
        let texts: Vec<OsString> = texts.ok_or_else(wrong)?;
        if setting.is_list && (texts.is_empty() || texts.iter().any(|text| text.is_empty())) {
            let why = format!("'{}' has an empty value; remove it, or write null", entry.name);
            return Err(Error::new(Exit::Config, unusable(path, &why)).into());
        }
        Ok(Some(SettingValue {
            origin,
            texts: texts.into_iter().filter(|it| !it.is_empty()).collect(),
        }))
    }

    /// Converts a JSON value to the text of an option. Returns `None` if the value has the wrong type.
    fn text(&self, kind: ValueKind, raw: &str) -> Option<OsString> {
        let is_number = || raw.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        match kind {
            ValueKind::Switch => matches!(raw, "true" | "false").then(|| raw.into()),
            ValueKind::Number => is_number().then(|| raw.into()),
            ValueKind::Object if Object::parse(raw).is_ok() => Some(raw.into()),
            ValueKind::Path | ValueKind::Object => string(raw).map(|text| self.resolve(&text)),
            ValueKind::Text => string(raw).map(|text| text.into_owned().into()),
        }
    }

    /// Resolves a path in the file: relative to the file's directory, or to the home directory if it begins with `~/`.
    fn resolve(&self, text: &str) -> OsString {
        if text.is_empty() {
            return OsString::new();
        }
        if let (Some(rest), Some(home)) = (text.strip_prefix("~/"), &self.home) {
            return home.join(rest).into();
        }
        let directory = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        directory.join(text).into()
    }
}

/// Returns the JSON type that a setting takes, for errors.
fn wanted(setting: &Setting) -> &'static str {
    match (setting.kind, setting.is_list) {
        (ValueKind::Number, true) => "an array of numbers",
        (_, true) => "an array of strings",
        (ValueKind::Switch, false) => "true or false",
        (ValueKind::Number, false) => "a number",
        (ValueKind::Path | ValueKind::Text, false) => "a string",
        (ValueKind::Object, false) => "an object or the path of a file",
    }
}

fn text_of(raw: &RawValue) -> Option<String> {
    string(raw.get()).map(|text| text.into_owned())
}

/// Returns the text of the error for an unknown key. It suggests the most similar known key if one is similar enough.
#[must_use]
pub fn unknown(name: &str, key: &str, known: &[&str]) -> String {
    let distance = |other: &&&str| strsim::damerau_levenshtein(key, other);
    let nearest = known.iter().min_by_key(distance).filter(|other| {
        strsim::jaro_winkler(key, other) > 0.7 || strsim::damerau_levenshtein(key, other) < 3
    });
    match nearest {
        Some(nearest) => format!("unknown key '{name}'; did you mean '{nearest}'?"),
        None => format!("unknown key '{name}'; claw-config list shows all keys"),
    }
}
