//! The ledger of the batches that were sent. It is written before a batch is sent, so that no batch is forgotten and paid for
//! twice, whenever a process is killed.
//!
//! Lines are only appended, and each reaches the disk before the next step. What a line is about reaches it before the line:
//! the requests before `begun`, and the answers before `over`. `begun` comes before a batch is sent, with its
//! name and its requests. `sent` has the id that the service gave it. If that line is missing, the batch is looked for in the
//! service's list: `found` has the id of one that may be it, and `other` the id of one that is not. `over` comes when all
//! answers are stored, or when it is certain that the service has no such batch.

use crate::exit::{Exit, fail};
use crate::json::write::Members;
use crate::json::{Object, elements, quote, string};
use crate::system::sync_file_system;
use anyhow::Context;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the file.
const NAME: &str = ".ledger";

/// The ledger, locked until the process ends.
pub struct Ledger {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

/// A batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The name that it was sent with, which is the beginning of the ids of its requests.
    pub name: String,
    /// The time before it was sent, in Unix seconds.
    pub time: f64,
    /// The place that it was sent to.
    pub place: String,
    /// Its requests, as directories below that of the ledger.
    pub requests: Vec<String>,
    /// The id that the service gave it.
    pub id: Option<String>,
    /// True if the id is from the service's list, so that the batch may be another one.
    pub is_found: bool,
    /// The ids of batches in the list that are not this one.
    pub others: Vec<String>,
    /// True if nothing more is expected of it.
    pub is_over: bool,
}

impl Ledger {
    /// Opens the ledger in a directory, or creates it. A line that was cut off when a process was killed is removed. While another
    /// process is using the ledger, calls `wait`, until that returns false.
    ///
    /// # Errors
    /// Fails with 75 if another process is still using it, 65 if it is damaged, and 74 or 77 if it cannot be read or written.
    pub fn open(dir: &Path, mut wait: impl FnMut() -> bool) -> anyhow::Result<Ledger> {
        let path = dir.join(NAME);
        let cannot = || format!("cannot open '{}'", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let mut file = options.open(&path).with_context(cannot)?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if wait() => {}
                Err(TryLockError::WouldBlock) => {
                    let text = format!(
                        "cannot use '{}': another process waits for these batches; wait until it ends",
                        path.display()
                    );
                    return fail(Exit::TryLater, text);
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
            }
        }
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(cannot)?;
        text.truncate(text.rfind('\n').map_or(0, |feed| feed + 1));
        file.set_len(text.len() as u64).with_context(cannot)?;
        let mut ledger = Ledger { path, file, entries: Vec::new() };
        for line in text.lines() {
            if ledger.take(line).is_none() {
                let text = format!(
                    "cannot use '{}': it has a damaged line; restore it from a backup, because it says which batches are paid for",
                    ledger.path.display()
                );
                return fail(Exit::Data, text);
            }
        }
        Ok(ledger)
    }

    /// Returns the batches at a place that have no answers yet.
    #[must_use]
    pub fn pending(&self, place: &str) -> Vec<Entry> {
        let is_pending = |entry: &&Entry| !entry.is_over && entry.place == place;
        self.entries.iter().filter(is_pending).cloned().collect()
    }

    /// Returns true if the id is that of a batch in the ledger, or known to be none of them.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        let has = |entry: &Entry| {
            entry.id.as_deref() == Some(id) || entry.others.iter().any(|other| other == id)
        };
        self.entries.iter().any(has)
    }

    /// Notes that a batch is about to be sent.
    ///
    /// # Errors
    /// Fails with 74 if the line cannot be written.
    pub fn begin(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let line = Members::new()
            .string("batch", &entry.name)
            .string("event", "begun")
            .decimal("time", entry.time)
            .string("place", &entry.place)
            .list("requests", entry.requests.iter().map(|name| quote(name)));
        self.sync()?;
        self.append(line)
    }

    /// Notes the id of a batch that was sent.
    ///
    /// # Errors
    /// As [`Ledger::begin`].
    pub fn sent(&mut self, name: &str, id: &str) -> anyhow::Result<()> {
        self.append(event(name, "sent").string("id", id))
    }

    /// Notes the id of a batch in the service's list. It may be another one unless the service keeps names.
    ///
    /// # Errors
    /// As [`Ledger::begin`].
    pub fn found(&mut self, name: &str, id: &str) -> anyhow::Result<()> {
        self.append(event(name, "found").string("id", id))
    }

    /// Notes that the batch with this id is another one.
    ///
    /// # Errors
    /// As [`Ledger::begin`].
    pub fn other(&mut self, name: &str, id: &str) -> anyhow::Result<()> {
        self.append(event(name, "other").string("id", id))
    }

    /// Notes that nothing more is expected of a batch.
    ///
    /// # Errors
    /// As [`Ledger::begin`].
    pub fn over(&mut self, name: &str) -> anyhow::Result<()> {
        self.sync()?;
        self.append(event(name, "over"))
    }

    /// Waits until the requests and answers that a line is about, and the name of the ledger, are on the disk.
    fn sync(&self) -> anyhow::Result<()> {
        let synced = sync_file_system(&self.file);
        synced.with_context(|| format!("cannot write '{}'", self.path.display()))
    }

    fn append(&mut self, line: Members) -> anyhow::Result<()> {
        let line = line.into_line();
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write '{}'", self.path.display()))?;
        let _ = self.take(line.trim_end());
        Ok(())
    }

    /// Takes a line. Returns `None` if it is damaged.
    fn take(&mut self, line: &str) -> Option<()> {
        let line = Object::parse(line).ok()?;
        let text = |name: &str| line.string(name).map(|text| text.into_owned());
        let name = text("batch")?;
        let event = text("event")?;
        if event == "begun" {
            let requests = elements(line.get("requests")?)?.into_iter();
            self.entries.push(Entry {
                name,
                time: line.get("time")?.parse().ok()?,
                place: text("place")?,
                requests: requests
                    .map(|it| Some(string(it)?.into_owned()))
                    .collect::<Option<_>>()?,
                ..Entry::default()
            });
            return Some(());
        }
        let entry = self.entries.iter_mut().rfind(|entry| entry.name == name)?;
        match event.as_str() {
            "sent" | "found" => {
                (entry.id, entry.is_found) = (Some(text("id")?), event == "found");
            }
            "other" => {
                entry.others.push(text("id")?);
                entry.id = None;
            }
            "over" => entry.is_over = true,
            _ => return None,
        }
        Some(())
    }
}

fn event(name: &str, event: &str) -> Members {
    Members::new().string("batch", name).string("event", event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_ledger_survives_a_kill_at_any_byte() {
        let directory = tempfile::tempdir().unwrap();
        let entry = |name: &str| Entry {
            name: name.to_owned(),
            time: 1.5,
            place: "p".to_owned(),
            requests: vec!["a/b".to_owned()],
            ..Entry::default()
        };
        let mut ledger = Ledger::open(directory.path(), || false).unwrap();
        assert!(Ledger::open(directory.path(), || false).is_err(), "two processes with one ledger");
        ledger.begin(&entry("one")).unwrap();
        ledger.begin(&entry("two")).unwrap();
        ledger.found("one", "1").unwrap();
        ledger.other("one", "1").unwrap();
        ledger.sent("one", "2").unwrap();
        ledger.over("two").unwrap();
        drop(ledger);
        // A process that another test is just starting may keep the lock for a moment.
        let begun = Instant::now();
        let wait = || {
            std::thread::sleep(Duration::from_millis(1));
            begun.elapsed() < Duration::from_secs(60)
        };
        let path = directory.path().join(NAME);
        let whole = std::fs::read_to_string(&path).unwrap();
        let expected =
            Entry { id: Some("2".to_owned()), others: vec!["1".to_owned()], ..entry("one") };
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let ledger = Ledger::open(directory.path(), wait).unwrap();
            let lines = whole[..cut].matches('\n').count();
            let pending = ledger.pending("p");
            assert_eq!(pending.len(), [0, 1, 2, 2, 2, 2, 1][lines], "{cut}");
            assert_eq!(pending.first() == Some(&expected), lines >= 5, "{cut}");
            assert_eq!((ledger.knows("1"), ledger.knows("2")), (lines >= 3, lines >= 5));
        }
        std::fs::write(&path, "{}\n").unwrap();
        let error = Ledger::open(directory.path(), wait).err().unwrap();
        assert_eq!(crate::exit::status(&error), Exit::Data, "a damaged ledger");
    }
}
