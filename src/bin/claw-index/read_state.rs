//! How far each transcript was read: a row of the index.

use crate::files::{Files, FoundFile};
use clawutils::session::probe::Stamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::HashMap;

/// If no directory was searched and there are fewer files than this, their states are read one by one.
const FEW: usize = 100;

/// How far a transcript was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadState {
    /// The state of the file.
    pub stamp: Stamp,
    /// True if it was translated.
    pub is_translated: bool,
    /// True if its last line had no line feed, and was indexed.
    pub has_tail: bool,
    /// The length of the part that was read. Offsets are in the translation, if there is one.
    pub read_to: u64,
    /// The digest of the end of that part; if the transcript was translated, of all of it.
    pub digest: String,
    /// The id of the last record that was read.
    pub last_id: Option<String>,
    /// The number of the next row within the session.
    pub next_row: i64,
    /// True if the last message is part of a prompt.
    pub in_prompt: bool,
    /// The digest of the patterns whose matches were redacted; empty if there were none.
    pub redaction: String,
}

/// Returns the keys of all sessions in the index.
pub fn keys(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut select =
        database.prepare("SELECT session_key FROM transcripts ORDER BY session_key")?;
    let keys = select.query_map([], |row| row.get(0))?;
    keys.collect()
}

/// Returns the states of the transcripts among `files`, by the keys of their sessions. If a directory was searched or
/// there are many files, returns those of all transcripts in the index.
pub fn states(
    database: &Connection,
    files: &Files,
) -> rusqlite::Result<HashMap<String, ReadState>> {
    if files.directories.is_empty() && files.found.len() < FEW {
        let mut states = HashMap::new();
        for key in files.found.iter().map(FoundFile::key) {
            states.extend(of(database, &key)?.map(|state| (key, state)));
        }
        return Ok(states);
    }
    let mut select = database.prepare("SELECT session_key, transcripts.* FROM transcripts")?;
    let states = select.query_map([], |row| Ok((row.get(0)?, state(row)?)))?;
    states.collect()
}

/// Returns the state of a session's transcript; `None` if it is not in the index.
pub fn of(database: &Connection, key: &str) -> rusqlite::Result<Option<ReadState>> {
    let select = "SELECT * FROM transcripts WHERE session_key = ?";
    database.query_row(select, [key], state).optional()
}

fn state(row: &Row<'_>) -> rusqlite::Result<ReadState> {
    let number = |name: &str| row.get::<_, i64>(name).map(i64::cast_unsigned);
    let (size, modified, inode) = (number("size")?, number("modified")?, number("inode")?);
    Ok(ReadState {
        stamp: Stamp { size, modified, inode },
        is_translated: row.get("is_translated")?,
        has_tail: row.get("has_tail")?,
        read_to: number("read_to")?,
        digest: row.get("digest")?,
        last_id: row.get("last_id")?,
        next_row: row.get("next_row")?,
        in_prompt: row.get("in_prompt")?,
        redaction: row.get("redaction")?,
    })
}

/// Stores the state of a session's transcript.
pub fn write(database: &Connection, key: &str, state: &ReadState) -> rusqlite::Result<()> {
    let ReadState { stamp, is_translated, has_tail, read_to, digest, last_id, .. } = state;
    let number = |value: u64| value.cast_signed();
    database.execute(
        "INSERT OR REPLACE INTO transcripts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            key,
            number(stamp.size),
            number(stamp.modified),
            number(stamp.inode),
            is_translated,
            has_tail,
            number(*read_to),
            digest,
            last_id,
            state.next_row,
            state.in_prompt,
            state.redaction,
        ],
    )?;
    Ok(())
}
