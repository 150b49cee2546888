//! The state file. It holds the reports of earlier runs, so that a run continues where an interrupted one stopped.
//!
//! Each line has a key and a report. The key is a hash of everything that the report depends on: the version of the
//! program, the mode, its options and the files that it reads besides the transcript, and the path, the size and the
//! modification time of the transcript. Lines are only appended, in the order of the output. A line that was cut off
//! when a run was killed is removed by the next run.

use crate::report::Report;
use anyhow::Context;
use clawutils::exit::{Exit, fail};
use clawutils::json::Object;
use clawutils::json::write::Members;
use foldhash::fast::RandomState;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The number of hexadecimal digits of a key.
const DIGITS: usize = 32;
/// The number of bytes at the beginning of a line that hold the key.
const BEGINNING: usize = KEY.len() + DIGITS + 1;
/// The longest line that is used, in bytes. The report of a longer one is made again.
const MAX_LINE: usize = 64 * 1024 * 1024;

/// Returns the directory beside a state file that has the answers of batches.
pub fn answers_beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".batch");
    name.into()
}

/// The key of a report, described at the top of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Returns the key of the report on a transcript. `run` describes everything else that the report depends on.
    pub fn new(run: &str, path: &Path, meta: &Metadata) -> Key {
        let mut hash = Sha256::new();
        hash_text(&mut hash, run.as_bytes());
        hash_file(&mut hash, path, meta);
        let first = hash.finalize().first_chunk().copied().unwrap_or_default();
        Key(format!("{:0DIGITS$x}", u128::from_be_bytes(first)))
    }

    /// Returns the first half of the key as a number.
    fn number(digits: &str) -> Option<u64> {
        u64::from_str_radix(digits.get(..16)?, 16).ok()
    }
}

fn hash_text(hash: &mut Sha256, text: &[u8]) {
    hash.update(text.len().to_be_bytes());
    hash.update(text);
}

/// Adds the path of a file, its size and its modification time to a hash, which therefore changes when the file does.
pub fn hash_file(hash: &mut Sha256, path: &Path, meta: &Metadata) {
    hash_text(hash, path.as_os_str().as_bytes());
    for number in [meta.size().cast_signed(), meta.mtime(), meta.mtime_nsec()] {
        hash.update(number.to_be_bytes());
    }
}

/// The reports of earlier runs.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    /// Opened for appending, and locked until the end of the run.
    file: File,
    /// The offset and the length of each line, by the first half of its key.
    places: HashMap<u64, (u64, usize), RandomState>,
}

impl State {
    /// Opens a state file, or creates it.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be opened, 75 if another run is using it, and 65 if it is not a state file.
    pub fn open(path: &Path) -> anyhow::Result<State> {
        let name = path.display();
        let cannot = || format!("cannot open '{name}'");
        let mut options = OpenOptions::new();
        // Opening a pipe or a device must not block: it is refused below.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        options.read(true).append(true).create(true).mode(0o600).custom_flags(flags);
        let file = options.open(path).with_context(cannot)?;
        if !file.metadata().with_context(cannot)?.is_file() {
            return refuse(path);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text =
                    format!("cannot use '{name}': another run is using it; wait until it ends");
                return fail(Exit::TryLater, text);
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        let mut state = State { path: path.to_owned(), file, places: HashMap::default() };
        let read = state.read().with_context(|| format!("cannot read '{name}'"))?;
        let Some(end) = read else { return refuse(path) };
        state.file.set_len(end).with_context(|| format!("cannot write '{name}'"))?;
        Ok(state)
    }

    /// Stores where each line is, and returns the end of the last complete line; `None` if this is not a state file.
    /// Only the beginning of a line is held in memory.
    fn read(&mut self) -> io::Result<Option<u64>> {
        let (mut reader, mut begin) = (BufReader::new(&self.file), 0);
        loop {
            let mut line = Vec::with_capacity(BEGINNING);
            reader.by_ref().take(BEGINNING as u64).read_until(b'\n', &mut line)?;
            let key = digits_of(&line);
            if begin == 0 && !line.is_empty() && key.is_none() && !is_beginning(&line) {
                return Ok(None);
            }
            let rest = if line.ends_with(b"\n") { 0 } else { reader.skip_until(b'\n')? };
            let length = line.len() + rest;
            let end = begin + length as u64;
            let is_last = reader.fill_buf()?.is_empty();
            if length == 0 || is_last && !self.ends_a_line(end)? {
                return Ok(Some(begin));
            }
            if let Some(number) = key.and_then(Key::number).filter(|_| length <= MAX_LINE) {
                self.places.insert(number, (begin, length));
            }
            begin = end;
        }
    }

    /// Returns true if the byte before `end` is a line feed.
    fn ends_a_line(&self, end: u64) -> io::Result<bool> {
        let mut last = [0];
        self.file.read_exact_at(&mut last, end - 1)?;
        Ok(last == *b"\n")
    }

    /// Returns the report with this key, if there is one.
    pub fn get(&self, key: &Key) -> Option<Report> {
        let (begin, length) = self.places.get(&Key::number(&key.0)?).copied()?;
        let mut line = vec![0; length];
        self.file.read_exact_at(&mut line, begin).ok()?;
        let line = Object::parse(std::str::from_utf8(&line).ok()?.trim_end()).ok()?;
        let report =
            line.get("report").filter(|_| line.string("key").is_some_and(|it| it == key.0));
        Report::parse(report?)
    }

    /// Appends lines.
    ///
    /// # Errors
    /// Fails with 74 if the file cannot be written.
    pub fn append(&self, lines: &str) -> anyhow::Result<()> {
        let written = (&self.file).write_all(lines.as_bytes());
        written.with_context(|| format!("cannot write '{}'", self.path.display()))
    }
}

fn refuse<T>(path: &Path) -> anyhow::Result<T> {
    let text = format!("cannot use '{}': not a state file", path.display());
    fail(Exit::Data, text + "; give another file, or one that does not exist")
}

/// Returns the line of the state file for a report, which is given as JSON.
pub fn line(key: &Key, report: &str) -> String {
    Members::with_capacity(report.len() + 64)
        .string("key", &key.0)
        .raw("report", report)
        .into_line()
}

/// Returns the digits of the key at the beginning of a line.
fn digits_of(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(KEY)?;
    let digits = std::str::from_utf8(rest.get(..DIGITS)?).ok()?;
    let is_whole = rest.get(DIGITS) == Some(&b'"');
    (is_whole && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

const KEY: &[u8] = b"{\"key\":\"";

/// Returns true if a line may be the beginning of the first line of a state file.
fn is_beginning(line: &[u8]) -> bool {
    let is_key = line.iter().zip(KEY).all(|(own, known)| own == known);
    let digits = line.get(KEY.len()..).unwrap_or_default();
    is_key && digits.len() <= DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_file_survives_a_kill_at_any_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let meta = directory.path().metadata().unwrap();
        let report = |path: &str| Report::new("check", path, Vec::new(), Members::new());
        let key = |path: &str| Key::new("check", Path::new(path), &meta);
        let lines = ["a", "b"].map(|name| line(&key(name), &report(name).to_json()));
        let whole = lines.concat();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let state = State::open(&path).unwrap();
            let known = ["a", "b"].map(|name| state.get(&key(name)).is_some());
            assert_eq!(known, [cut >= lines[0].len(), cut == whole.len()], "{cut}");
            assert!(State::open(&path).is_err(), "two runs with one state file");
            state.append(&lines[1]).unwrap();
            drop(state);
            assert_eq!(State::open(&path).unwrap().get(&key("b")), Some(report("b")));
        }
    }

    #[test]
    fn another_file_is_not_used_as_a_state_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        for text in ["{\"type\":\"user\",\"content\":\"a\"}\n", "text", "{\"key\":\"a\",", "\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(State::open(&path).is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
