//! Brings the rows of one transcript up to date, in one transaction.
//!
//! A transcript that has grown is read from where the last update ended. To make sure that it has only grown, a digest
//! of the end of the part already read is compared first. A transcript of another program is translated as a whole, so
//! its digest covers everything already read of the translation, not just the end. If the digest differs, all rows are
//! deleted, and the transcript is read again from the beginning.
//!
//! A last line without a line feed may be incomplete. If it is a valid record, it is indexed, but after the next change
//! of the transcript, the whole transcript is read again.

use crate::asides::SourceCalls;
use crate::files::FoundFile;
use crate::insert::Inserter;
use crate::read_state::{self, ReadState};
use crate::reader::SessionReader;
use clawutils::cli::DialectArgs;
use clawutils::exit::{self, Exit};
use clawutils::index::{rows, words};
use clawutils::input::Input;
use clawutils::redact::Patterns;
use clawutils::session::probe::Stamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};

/// The number of bytes, at the end of the part already read, whose digest shows whether a file has only grown.
const COMPARED: u64 = 4096;
/// The number of bytes that are hashed at a time.
const BLOCK: usize = 64 * 1024;

/// The patterns to redact, and their digest.
#[derive(Debug, Default)]
pub struct Redaction {
    /// The patterns.
    pub patterns: Option<Patterns>,
    /// The digest of the file of patterns; empty if there is none.
    pub digest: String,
}

/// The outcome of an update of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has not changed, so nothing was read.
    Unchanged,
    /// It was read for the first time.
    New,
    /// Its new part was read.
    Grown,
    /// It was read again, for this reason.
    Again(&'static str),
    /// Its file no longer exists.
    Removed,
    /// The file is not a transcript, and has no rows.
    NotATranscript,
}

/// Deletes a session with all its rows.
pub fn delete(database: &Connection, key: &str) -> rusqlite::Result<()> {
    let number = database
        .query_row("SELECT number FROM sessions WHERE key = ?", [key], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(number) = number else { return Ok(()) };
    delete_texts(database, crate::session::rows_of(number))?;
    database.execute("DELETE FROM sessions WHERE key = ?", [key])?;
    Ok(())
}

/// Deletes rows from the full-text index.
fn delete_texts(database: &Connection, range: [i64; 2]) -> rusqlite::Result<()> {
    let mut select = database.prepare(
        "SELECT row, content, thinking, tool_name, tool_input, tool_result FROM messages \
        WHERE row BETWEEN ? AND ? AND role <> 'program'",
    )?;
    let mut delete = database
        .prepare("INSERT INTO messages_fts (messages_fts, rowid, text) VALUES ('delete', ?, ?)")?;
    let mut messages = select.query(range)?;
    while let Some(message) = messages.next()? {
        let text = |index: usize| -> rusqlite::Result<Option<&str>> {
            Ok(message.get_ref(index)?.as_str_or_null()?)
        };
        let parts = [text(1)?, text(2)?, text(3)?];
        let searched = rows::searched(parts, text(4)?, text(5)?);
        delete.execute(params![message.get::<_, i64>(0)?, words::indexed(&searched)])?;
    }
    Ok(())
}

/// Brings the rows of a transcript up to date. If `is_full`, always reads all of it.
///
/// The database is locked before the file is opened. So if several updates run at the same time, each of them sees the
/// file in the same state as the one before it, or in a later one, and the last one decides.
///
/// # Errors
/// If the transcript cannot be read or the database cannot be written to.
pub fn update(
    database: &Connection,
    inserter: &mut Inserter<'_>,
    file: &FoundFile,
    (redaction, is_full): (&Redaction, bool),
) -> anyhow::Result<Outcome> {
    let change = Transaction::new_unchecked(database, TransactionBehavior::Immediate)?;
    // If the file grows after this, its state is another one than that stored here, and the next update reads it again.
    let stamp = Stamp::of_file(&file.path)?;
    let source = Input::open(&file.path)?;
    let input = match DialectArgs::default().open(source.clone()) {
        Ok(input) => input,
        Err(error) if exit::status(&error) == Exit::Data && !file.is_given => {
            delete(&change, &file.key())?;
            change.commit()?;
            return Ok(Outcome::NotATranscript);
        }
        Err(error) => return Err(error),
    };
    let key = file.key();
    let before = read_state::of(&change, &key)?;
    let outcome = match &before {
        None => Outcome::New,
        Some(_) if is_full => Outcome::Again("--full is given"),
        Some(before) => compare(before, &input, stamp, &redaction.digest)?,
    };
    let mut state = match before {
        Some(before) if outcome == Outcome::Grown => before,
        before => {
            if before.is_some() {
                delete(&change, &key)?;
            }
            ReadState::default()
        }
    };
    state.stamp = stamp;
    state.is_translated = input.origin().is_some();
    state.redaction.clone_from(&redaction.digest);
    let calls = SourceCalls::read(&source, &input)?;
    let source = (&input, redaction.patterns.as_ref());
    let mut reader = SessionReader::begin(&change, inserter, &key, &state, source)?;
    reader.read(&mut state)?;
    reader.finish(calls.as_ref())?;
    state.digest = digest(&input, &state)?;
    read_state::write(&change, &key, &state)?;
    change.commit()?;
    Ok(outcome)
}

/// Compares a transcript with its state at the last update. Returns [`Outcome::Grown`] if it has only grown, else
/// [`Outcome::Again`] with the reason.
fn compare(
    before: &ReadState,
    input: &Input,
    stamp: Stamp,
    redaction: &str,
) -> anyhow::Result<Outcome> {
    Ok(if before.redaction != redaction {
        Outcome::Again("the redaction patterns have changed")
    } else if before.is_translated != input.origin().is_some() {
        Outcome::Again("its format has changed")
    } else if input.length < before.read_to {
        Outcome::Again("it has become shorter")
    } else if before.has_tail {
        Outcome::Again("its last line was not complete")
    } else if before.is_translated && digest(input, before)? != before.digest {
        // For example, another branch has become the current one, or parts were added to a reply.
        Outcome::Again("its earlier part now reads differently")
    } else if !before.is_translated
        && (stamp.size == before.stamp.size || digest(input, before)? != before.digest)
    {
        Outcome::Again("it has changed in place")
    } else {
        Outcome::Grown
    })
}

/// Returns the digest of the last [`COMPARED`] bytes of the part that was read, or of all of it if it is a translation.
fn digest(input: &Input, state: &ReadState) -> anyhow::Result<String> {
    let mut at = if state.is_translated { 0 } else { state.read_to.saturating_sub(COMPARED) };
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; BLOCK]);
    while at < state.read_to {
        let most = usize::try_from(state.read_to - at).unwrap_or(BLOCK).min(BLOCK);
        let count = input.read_at(at, &mut buffer[..most])?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        at += count as u64;
    }
    Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}
