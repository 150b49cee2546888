//! Looks up exchanges by their request, and describes the nearest one if there is no match.
//!
//! A recorder names each directory after the key of its request. A lookup therefore first reads only the directories
//! named after the key that it looks for, and those named by hand. If none of these match, it reads all directories.

use super::diff::{Difference, compare};
use super::{Exchange, files, key};
use crate::exit::{self, Error, Exit};
use anyhow::Context;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Recorded exchanges. Each is returned once.
#[derive(Debug)]
pub struct Cassette {
    dir: PathBuf,
    recordings: Vec<Recording>,
    /// The number of recordings of each request that are skipped at the beginning.
    skipped: usize,
}

#[derive(Debug)]
struct Recording {
    /// The name of its directory.
    name: String,
    /// Its key and content, once they have been read.
    content: Option<(String, Exchange)>,
    is_returned: bool,
}

/// The reason why a lookup has no result.
#[derive(Debug)]
pub enum LookupError {
    /// Nothing is recorded for the request.
    Miss(Miss),
    /// A recording cannot be read.
    Broken(anyhow::Error),
}

/// A failed lookup: nothing is recorded for the request, or all its recordings were already returned or skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The request's key.
    pub key: String,
    /// The number of exchanges recorded for exactly this request, all of them already returned or skipped.
    pub given: usize,
    /// The directory of the nearest recording, if there is one and `given` is 0.
    pub nearest: Option<String>,
    /// The difference from the nearest recording, as a clause.
    difference: String,
    /// The cassette's directory.
    dir: PathBuf,
}

impl Cassette {
    /// Opens the cassette in the directory `dir`. Files in it, and directories whose names begin with a dot, are
    /// ignored.
    ///
    /// # Errors
    /// Status 65 if the directory is missing; otherwise the status of the read error.
    pub fn open(dir: &Path) -> anyhow::Result<Cassette> {
        let mut names = names(dir)?;
        names.sort_by_cached_key(|name| (number(name), name.clone()));
        let recording = |name| Recording { name, content: None, is_returned: false };
        let recordings = names.into_iter().map(recording).collect();
        Ok(Cassette { dir: dir.to_owned(), recordings, skipped: 0 })
    }

    /// Reads all recordings. Returns their number.
    ///
    /// # Errors
    /// Status 65 if one is invalid; otherwise the status of the read error. The message names the file.
    pub fn check(&mut self) -> anyhow::Result<u64> {
        Ok(self.all()?.len() as u64)
    }

    /// Returns all recordings.
    ///
    /// # Errors
    /// As [`Cassette::check`].
    pub fn all(&mut self) -> anyhow::Result<Vec<&Exchange>> {
        self.read(|_| true)?;
        let contents = self.recordings.iter().filter_map(|recording| recording.content.as_ref());
        Ok(contents.map(|(_, exchange)| exchange).collect())
    }

    /// Skips the first `count` recordings of each request.
    #[must_use]
    pub fn skip(self, count: u64) -> Cassette {
        Cassette { skipped: usize::try_from(count).unwrap_or(usize::MAX), ..self }
    }

    /// Returns the next exchange recorded for a request. Each is returned once, ordered by the number at the end of
    /// its directory's name, then by the name.
    ///
    /// # Errors
    /// Returns a [`Miss`] that describes the nearest recording, or the error of a recording that cannot be read.
    pub fn next(&mut self, path: &str, body: &str) -> Result<Exchange, LookupError> {
        let key = key(path, body);
        self.read(|name| key_of(name).is_none_or(|own| own == key)).map_err(LookupError::Broken)?;
        if let Some(exchange) = self.take(&key) {
            return Ok(exchange);
        }
        // The content of a directory may have been changed after it was recorded.
        self.read(|_| true).map_err(LookupError::Broken)?;
        self.take(&key).ok_or_else(|| LookupError::Miss(self.miss(path, body, key)))
    }

    /// Returns the last recording of a request if it is a failure. It is then the answer to each further attempt, because a
    /// request that failed is sent again only if the user asks for it.
    #[must_use]
    pub fn failure(&self, key: &str) -> Option<Exchange> {
        let last = self.recordings.iter().rfind(|recording| recording.has_key(key))?;
        let (_, exchange) = last.content.as_ref()?;
        exchange.is_failure().then(|| exchange.clone())
    }

    /// Reads the recordings whose names `is_needed` accepts.
    fn read(&mut self, is_needed: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        for Recording { name, content, .. } in &mut self.recordings {
            if content.is_none() && is_needed(name) {
                let exchange = files::read(&self.dir.join(&*name))?;
                *content = Some((key(&exchange.path, &exchange.body), exchange));
            }
        }
        Ok(())
    }

    /// Returns the next exchange with this key among the recordings read so far.
    fn take(&mut self, key: &str) -> Option<Exchange> {
        let matching = self.recordings.iter_mut().filter(|recording| recording.has_key(key));
        let next = matching.skip(self.skipped).find(|recording| !recording.is_returned)?;
        next.is_returned = true;
        next.content.as_ref().map(|(_, exchange)| exchange.clone())
    }

    fn miss(&self, path: &str, body: &str, key: String) -> Miss {
        let given = self.recordings.iter().filter(|recording| recording.has_key(&key)).count();
        let (nearest, difference) = match (given == 0).then(|| self.nearest(path, body)).flatten() {
            Some((recording, difference)) => (Some(recording.name.clone()), difference),
            None => (None, String::new()),
        };
        Miss { key, given, nearest, difference, dir: self.dir.clone() }
    }

    /// Returns the recording with the fewest differences, and a description of the first difference. Recordings with
    /// the same path are preferred.
    fn nearest(&self, path: &str, body: &str) -> Option<(&Recording, String)> {
        let differences = self.recordings.iter().filter_map(|recording| {
            let (_, exchange) = recording.content.as_ref()?;
            Some((recording, exchange, compare(&exchange.body, body)))
        });
        let (recording, exchange, found) =
            differences.min_by_key(|(recording, exchange, found)| {
                (exchange.path != path, found.count, recording.name.as_str())
            })?;
        let at = |first: Difference| format!("differs at {first}");
        let difference = match found.first {
            _ if exchange.path != path => {
                format!("was sent to '{}', not to '{path}'", exchange.path)
            }
            first => first.map(at).unwrap_or_default(),
        };
        Some((recording, difference))
    }
}

impl Recording {
    fn has_key(&self, key: &str) -> bool {
        self.content.as_ref().is_some_and(|(own, _)| own == key)
    }
}

/// Returns the key in a name that a recorder gave: `KEY` or `KEY.2`. `None` for other names.
fn key_of(name: &str) -> Option<&str> {
    let stem = match name.rsplit_once('.') {
        Some((stem, number)) if number.parse::<u64>().is_ok() => stem,
        _ => name,
    };
    let is_key = stem.len() == 16 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_key.then_some(stem)
}

/// Returns the names of the exchanges' directories in a cassette.
pub(super) fn names(dir: &Path) -> anyhow::Result<Vec<String>> {
    let subject = || format!("cannot replay from '{}'", dir.display());
    let entries = match fs::read_dir(dir) {
        Err(error) if is_not_directory(&error) => {
            let why = exit::cause(&error.to_string());
            let text = format!("{}: {why}; record into it first", subject());
            return Err(Error::new(Exit::Data, text).into());
        }
        entries => entries.with_context(subject)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(subject)?;
        let name = entry.file_name().into_string();
        // A name that is not UTF-8 was not written by a recorder, and messages could not show it.
        let Ok(name) = name else { continue };
        let kind = entry.file_type().with_context(subject)?;
        let is_dir = kind.is_dir() || kind.is_symlink() && entry.path().is_dir();
        if !name.starts_with('.') && is_dir {
            names.push(name);
        }
    }
    Ok(names)
}

fn is_not_directory(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the number at the end of a directory's name: 2 for `KEY.2`, 1 without a number.
fn number(name: &str) -> u64 {
    name.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(1)
}

impl fmt::Display for Miss {
    /// Writes the message. It may contain line feeds and control characters from the request; the caller escapes
    /// them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Miss { key, given, difference, .. } = self;
        let dir = self.dir.display();
        match &self.nearest {
            _ if *given > 0 => {
                let all =
                    if *given == 1 { "one recording" } else { &format!("{given} recordings") };
                write!(f, "no recording left for this request (key {key}): ")?;
                write!(f, "'{dir}' has {all} of it, already used")
            }
            None => {
                write!(f, "nothing recorded for this request (key {key}): '{dir}' is empty")
            }
            Some(name) => {
                write!(f, "nothing recorded for this request (key {key}): ")?;
                write!(f, "nearest is '{name}', which {difference}")
            }
        }
    }
}

impl std::error::Error for Miss {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::status;
    use crate::provider::cassette::Recorder;

    const PATH: &str = "/v1/messages";

    /// Records an answer to a request and returns the name of its directory.
    fn record(dir: &Path, path: &str, body: &str, answer: &str) -> String {
        let exchange = Exchange {
            path: path.to_owned(),
            body: body.to_owned(),
            status: Some(200),
            answer: answer.into(),
            pieces: vec![answer.len()],
            ..Exchange::default()
        };
        let directory = Recorder::new(dir, vec![]).write(&exchange).unwrap();
        directory.file_name().unwrap().to_str().unwrap().to_owned()
    }

    fn next(cassette: &mut Cassette, body: &str) -> Result<String, String> {
        let found = cassette.next(PATH, body);
        let text = found.map(|exchange| String::from_utf8(exchange.answer).unwrap());
        text.map_err(|error| miss(error).to_string())
    }

    fn miss(error: LookupError) -> Miss {
        match error {
            LookupError::Miss(miss) => miss,
            LookupError::Broken(error) => panic!("{error}"),
        }
    }

    #[test]
    fn each_recording_of_a_request_is_returned_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for number in 1..=12 {
            record(dir.path(), PATH, r#"{"a":1,"b":[2]}"#, &number.to_string());
        }
        record(dir.path(), PATH, r#"{"a":2}"#, "other");
        let mut cassette = Cassette::open(dir.path()).unwrap();
        for number in 1..=12 {
            assert_eq!(next(&mut cassette, r#"{ "b":[2.0], "a":1 }"#), Ok(number.to_string()));
        }
        let left = next(&mut cassette, r#"{"a":1,"b":[2]}"#).unwrap_err();
        assert!(left.starts_with("no recording left for this request (key "), "{left}");
        assert!(left.ends_with("has 12 recordings of it, already used"), "{left}");
        assert_eq!(next(&mut cassette, r#"{"a":2}"#), Ok("other".to_owned()));
        assert!(next(&mut cassette, r#"{"a":2}"#).unwrap_err().contains("has one recording of it"));
        let mut cassette = Cassette::open(dir.path()).unwrap().skip(10);
        for number in [Some("11"), Some("12"), None] {
            let found = next(&mut cassette, r#"{"a":1,"b":[2]}"#);
            assert_eq!(found.ok().as_deref(), number);
        }
        assert!(next(&mut cassette, r#"{"a":2}"#).unwrap_err().contains("has one recording of it"));
    }

    #[test]
    fn a_miss_names_the_nearest_recording_and_the_first_difference() {
        let dir = tempfile::tempdir().unwrap();
        let body = |first: &str, second: &str| {
            format!(r#"{{"m":[{{"c":"{first}"}},{{"c":"{second}"}}],"model":"x"}}"#)
        };
        record(dir.path(), "/other", &body("a", "b"), "");
        record(dir.path(), PATH, &body("x", "y"), "");
        let name = record(dir.path(), PATH, &body("a", "abc"), "");
        let mut cassette = Cassette::open(dir.path()).unwrap();
        let sent = body("a", "b");
        let says = format!(
            "nothing recorded for this request (key {}): nearest is '{name}', which differs at .m[1].c: recorded \"abc\", sent \"b\"",
            key(PATH, &sent)
        );
        assert_eq!(next(&mut cassette, &sent), Err(says));
        let miss = miss(cassette.next("/third", &sent).unwrap_err()).to_string();
        assert!(miss.ends_with("which was sent to '/other', not to '/third'"), "{miss}");
    }

    #[test]
    fn ties_are_broken_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["1", "2", "3", "4"].map(|body| record(dir.path(), PATH, body, ""));
        let mut cassette = Cassette::open(dir.path()).unwrap();
        let miss = miss(cassette.next(PATH, "5").unwrap_err());
        assert_eq!(miss.nearest, names.into_iter().min());
    }

    #[test]
    fn an_empty_cassette_has_no_match_and_a_missing_one_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".recording-1-0")).unwrap();
        fs::write(dir.path().join("README"), "").unwrap();
        let mut cassette = Cassette::open(dir.path()).unwrap();
        assert!(next(&mut cassette, "{}").unwrap_err().ends_with("is empty"));
        for missing in [dir.path().join("none"), dir.path().join("README")] {
            let error = Cassette::open(&missing).unwrap_err();
            assert_eq!(status(&error), Exit::Data);
            let subject = format!("cannot replay from '{}': ", missing.display());
            assert!(error.to_string().starts_with(&subject), "{error}");
        }
    }

    #[test]
    fn an_invalid_exchange_is_named_in_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let name = record(dir.path(), PATH, "{}", "x");
        for file in [files::RESPONSE, files::BODY, files::REQUEST] {
            let path = dir.path().join(&name).join(file);
            fs::remove_file(&path).unwrap();
            let error = Cassette::open(dir.path()).unwrap().check().unwrap_err();
            assert_eq!(status(&error), Exit::Data);
            let subject = format!("cannot use the recording '{}': ", path.display());
            assert!(error.to_string().starts_with(&subject), "{error}");
            let error = Cassette::open(dir.path()).unwrap().next(PATH, "{}").unwrap_err();
            assert!(matches!(error, LookupError::Broken(_)), "{error:?}");
        }
        // A broken recording does not affect requests that have other recordings.
        record(dir.path(), PATH, "[]", "y");
        let mut cassette = Cassette::open(dir.path()).unwrap();
        assert_eq!(next(&mut cassette, "[]"), Ok("y".to_owned()));
    }

    #[test]
    fn a_recording_that_was_changed_or_named_by_hand_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) =
            (record(dir.path(), PATH, "[1]", "x"), record(dir.path(), PATH, "[2]", "y"));
        let request = dir.path().join(&first).join(files::REQUEST);
        let changed = fs::read_to_string(&request).unwrap().replace("[1]", "[3]");
        fs::write(&request, changed).unwrap();
        fs::rename(dir.path().join(second), dir.path().join("greeting")).unwrap();
        let mut cassette = Cassette::open(dir.path()).unwrap();
        assert_eq!(next(&mut cassette, "[2]"), Ok("y".to_owned()));
        assert_eq!(next(&mut cassette, "[3]"), Ok("x".to_owned()));
        assert!(next(&mut cassette, "[1]").unwrap_err().contains("nearest is"));
    }

    #[test]
    fn exchanges_with_real_servers_are_found() {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/http");
        let mut cassette = Cassette::open(&recorded).unwrap();
        cassette.check().unwrap();
        let contents = cassette.recordings.iter().filter_map(|recording| recording.content.clone());
        let exchanges: Vec<Exchange> = contents.map(|(_, exchange)| exchange).collect();
        assert!(!exchanges.is_empty());
        for exchange in exchanges {
            assert_eq!(exchange.pieces, [exchange.answer.len()]);
            assert_eq!(cassette.next(&exchange.path, &exchange.body).unwrap(), exchange);
        }
    }
}
