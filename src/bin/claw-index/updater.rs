//! An index that is being updated, and the number of transcripts with each outcome.

use crate::database;
use crate::files::{Files, FoundFile, is_missing};
use crate::insert::Inserter;
use crate::prices;
use crate::read_state::{self, ReadState};
use crate::transcript::{self, Outcome, Redaction};
use clawutils::cli::{self, Log};
use clawutils::cost::PriceList;
use clawutils::exit::{self, Exit, fail};
use clawutils::json::write::Members;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An index that is being updated.
pub struct Updater {
    pub path: PathBuf,
    pub database: Connection,
    pub redaction: Redaction,
    pub prices: PriceList,
    pub log: Log,
    pub is_full: bool,
    pub is_quiet: bool,
}

/// The name of each outcome in objects, and its name for people, in the order of reports.
const OUTCOMES: [(&str, &str); 6] = [
    ("new", "new"),
    ("grown", "grown"),
    ("read_again", "read again"),
    ("removed", "removed"),
    ("unchanged", "unchanged"),
    ("not_transcripts", "not transcripts"),
];

/// Returns the index of an outcome in [`OUTCOMES`].
fn index_of(outcome: Outcome) -> usize {
    match outcome {
        Outcome::New => 0,
        Outcome::Grown => 1,
        Outcome::Again(_) => 2,
        Outcome::Removed => 3,
        Outcome::Unchanged => 4,
        Outcome::NotATranscript => 5,
    }
}

/// The number of transcripts with each outcome, in the order of [`OUTCOMES`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals([usize; OUTCOMES.len()]);

impl Totals {
    pub fn text(self) -> String {
        let parts = OUTCOMES.iter().zip(self.0).filter(|(_, count)| *count > 0);
        let parts: Vec<String> =
            parts.map(|((_, what), count)| format!("{count} {what}")).collect();
        match parts.is_empty() {
            true => "no transcripts".to_owned(),
            false => format!("transcripts: {}", parts.join(", ")),
        }
    }

    pub fn members(self) -> Members {
        let counts = OUTCOMES.iter().zip(self.0);
        counts.fold(Members::new(), |members, ((name, _), count)| members.number(name, count))
    }
}

impl Updater {
    /// Adds an exit status and advice to an error of SQLite. Returns other errors unchanged.
    pub fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        database::explain(error, &self.path)
    }

    /// Updates the index for these files. For each session that changed, calls `changed` with what was done and the
    /// session's key. Stores the status of the first error about a file in `first`.
    ///
    /// # Errors
    /// If the database cannot be used, or `changed` fails.
    pub fn update(
        &self,
        files: &Files,
        first: &mut Option<Exit>,
        changed: &mut dyn FnMut(&'static str, &str) -> anyhow::Result<()>,
    ) -> anyhow::Result<Totals> {
        let mut note = |error: &anyhow::Error| {
            first.get_or_insert(cli::diagnostics::report("claw-index", error));
        };
        files.errors.iter().for_each(&mut note);
        let database = &self.database;
        let known = read_state::states(database, files)?;
        let mut inserter = Inserter::new(database);
        let (mut totals, done) = (Totals::default(), Arc::new(AtomicUsize::new(0)));
        let (all, counter) = (files.found.len(), done.clone());
        let progress = move || Some(format!("{} of {all} files", counter.load(Ordering::Relaxed)));
        let _progress = (!self.is_quiet).then(|| self.log.progress(progress));
        let mut report = |outcome, key: &str| {
            let index = index_of(outcome);
            totals.0[index] += 1;
            match outcome {
                Outcome::Unchanged | Outcome::NotATranscript => Ok(()),
                _ => changed(OUTCOMES[index].1, key),
            }
        };
        for file in &files.found {
            let before = known.get(&file.key());
            let outcome = match self.one(&mut inserter, file, before) {
                Ok(None) if before.is_some() => {
                    remove(database, &file.key())?;
                    Ok(Some(Outcome::Removed))
                }
                outcome => outcome,
            };
            match outcome {
                Ok(Some(outcome)) => {
                    self.note_again(file, outcome);
                    report(outcome, &file.key())?;
                }
                Ok(None) => {}
                Err(error) if error.is::<rusqlite::Error>() => return Err(error),
                Err(error) => note(&error),
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        for key in remove_missing(database, files)? {
            report(Outcome::Removed, &key)?;
        }
        prices::refresh(database, &self.prices)?;
        Ok(totals)
    }

    /// Updates one transcript. Returns `None` if its file does not exist; the caller then removes its session from the
    /// index.
    ///
    /// # Errors
    /// If the file or the database cannot be read, or a file that is not in the index was given but does not exist.
    fn one(
        &self,
        inserter: &mut Inserter<'_>,
        file: &FoundFile,
        before: Option<&ReadState>,
    ) -> anyhow::Result<Option<Outcome>> {
        let Some(stamp) = file.stamp else {
            if file.is_given && before.is_none() {
                let text = format!(
                    "cannot read '{}': no such file or directory; check the path",
                    file.key()
                );
                return fail(Exit::Io, text);
            }
            return Ok(None);
        };
        let is_same = |before: &&ReadState| {
            before.stamp == stamp && before.redaction == self.redaction.digest && !self.is_full
        };
        if before.filter(is_same).is_some() {
            return Ok(Some(Outcome::Unchanged));
        }
        let how = (&self.redaction, self.is_full);
        match transcript::update(&self.database, inserter, file, how) {
            Err(error) if exit::status(&error) == Exit::Io && is_missing(&file.path) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn note_again(&self, file: &FoundFile, outcome: Outcome) {
        if let Outcome::Again(why) = outcome
            && !self.is_quiet
            && !self.is_full
        {
            self.log.note(&format!("reading '{}' again: {why}", file.key()));
        }
    }
}

fn remove(database: &Connection, key: &str) -> rusqlite::Result<()> {
    let change = Transaction::new_unchecked(database, TransactionBehavior::Immediate)?;
    transcript::delete(&change, key)?;
    change.commit()
}

/// Removes the sessions in searched directories whose files no longer exist, and returns their keys.
///
/// The sessions are read while the database is locked. Another update may have added one since this update began, and its
/// file may have been deleted after that.
fn remove_missing(database: &Connection, files: &Files) -> rusqlite::Result<Vec<String>> {
    if files.directories.is_empty() {
        return Ok(Vec::new());
    }
    let found: HashSet<String> = files.found.iter().map(FoundFile::key).collect();
    let is_searched =
        |key: &String| files.directories.iter().any(|directory| key.starts_with(directory));
    // A file that was not found may still exist: its directory may be unreadable.
    let is_gone = |key: &String| !found.contains(key) && is_missing(Path::new(key));
    let change = Transaction::new_unchecked(database, TransactionBehavior::Immediate)?;
    let mut keys = read_state::keys(&change)?;
    keys.retain(|key| is_searched(key) && is_gone(key));
    for key in &keys {
        transcript::delete(&change, key)?;
    }
    change.commit()?;
    Ok(keys)
}
