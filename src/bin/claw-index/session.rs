//! The state of a session while an update writes its rows.

use clawutils::index::rows::SessionRow;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;

/// The number of bits of a row's number that count the rows of its session.
const BITS: u32 = 23;

/// Returns the first and the last number that a row of a session can have.
pub fn rows_of(number: i64) -> [i64; 2] {
    [number << BITS, ((number + 1) << BITS) - 1]
}

/// A session that is being written.
#[derive(Debug, Default)]
pub struct Session {
    /// The path of the transcript.
    pub key: String,
    /// Its number, the upper bits of the numbers of its rows.
    pub number: i64,
    /// The number of the next row within the session, that is, without the upper bits.
    pub next: i64,
    /// The id in its header, or else the name of its file.
    pub id: String,
    /// True if a header was read.
    pub has_header: bool,
    /// The key in its header.
    pub header_key: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// The dialect of the transcript, if another program wrote it.
    pub dialect: Option<String>,
    /// The id of the session that it was copied from.
    pub parent: Option<String>,
    /// The time of its header or first record.
    pub created: Option<f64>,
    /// The time of its last record.
    pub updated: Option<f64>,
    /// The model of the last reply.
    pub model: Option<String>,
    /// The number of messages.
    pub messages: i64,
    /// The number of compactions.
    pub compactions: i64,
    /// The sum of all tokens.
    pub tokens: i64,
    /// The number of findings.
    pub findings: i64,
    /// The current turn.
    pub turn: Turn,
    /// The rows of calls that have no result yet, by the id of the call. Has only calls that this update has read.
    pub open: HashMap<String, Vec<i64>>,
    /// True if an earlier update wrote rows.
    pub is_continued: bool,
    /// The texts that are not yet in the full-text index, with their rows.
    pub texts: Vec<(i64, String)>,
    /// The length of these texts in bytes.
    pub waiting: usize,
}

/// The current turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// The row of its first message.
    pub row: i64,
    /// Its number, from 1; 0 before the first turn.
    pub turn: i64,
    /// The time of its first record.
    pub started: Option<f64>,
    /// The time of its last record.
    pub ended: Option<f64>,
    /// The number of messages.
    pub messages: i64,
    /// The number of tool calls.
    pub calls: i64,
    /// The sum of all tokens.
    pub tokens: i64,
}

impl Session {
    /// Returns the session with this key, which continues at row `next`, or creates it.
    pub fn open(database: &Connection, key: &str, next: i64) -> rusqlite::Result<Session> {
        let mut session = Session { key: key.to_owned(), next, ..Session::default() };
        if session.load(database)? {
            session.is_continued = true;
            return Ok(session);
        }
        session.number = free_number(database, key)?;
        // A session without a header is named after its file.
        session.id = Path::new(key).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        database.execute(
            "INSERT INTO sessions (key, number, id) VALUES (?, ?, ?)",
            params![key, session.number, session.id],
        )?;
        Ok(session)
    }

    /// Reads what an earlier update wrote about a session. Returns false if no update has.
    fn load(&mut self, database: &Connection) -> rusqlite::Result<bool> {
        let session = self;
        let found = database.query_row(
            "SELECT number, id, header_key, label, dialect, parent, created_at, updated_at, model, \
            message_count, turn_count, compaction_count, total_tokens, has_header, \
            (SELECT count(*) FROM findings WHERE session_key = key) FROM sessions WHERE key = ?",
            [&session.key],
            |row| {
                session.number = row.get(0)?;
                session.id = row.get(1)?;
                session.header_key = row.get(2)?;
                session.label = row.get(3)?;
                session.dialect = row.get(4)?;
                session.parent = row.get(5)?;
                session.created = row.get(6)?;
                session.updated = row.get(7)?;
                session.model = row.get(8)?;
                session.messages = row.get(9)?;
                session.turn.turn = row.get(10)?;
                session.compactions = row.get(11)?;
                session.tokens = row.get(12)?;
                session.has_header = row.get(13)?;
                session.findings = row.get(14)?;
                Ok(())
            },
        );
        if found.optional()?.is_none() {
            return Ok(false);
        }
        let turn = &mut session.turn;
        let current = database.query_row(
            "SELECT row, started_at, ended_at, message_count, tool_call_count, tokens FROM turns \
            WHERE session_key = ? ORDER BY row DESC LIMIT 1",
            [&session.key],
            |row| {
                (turn.row, turn.started, turn.ended) = (row.get(0)?, row.get(1)?, row.get(2)?);
                (turn.messages, turn.calls, turn.tokens) = (row.get(3)?, row.get(4)?, row.get(5)?);
                Ok(())
            },
        );
        current.optional()?;
        Ok(true)
    }

    /// Returns the number of a row, given its number `next` within the session.
    pub fn row(&self, next: i64) -> i64 {
        (self.number << BITS) + next
    }

    /// Takes the number of the next row.
    pub fn take(&mut self) -> i64 {
        self.next += 1;
        self.row(self.next - 1)
    }

    /// Updates the times of the session and the turn with the time of a record.
    pub fn see(&mut self, time: Option<f64>) {
        self.created = self.created.or(time);
        self.updated = time.or(self.updated);
        self.turn.ended = time.or(self.turn.ended);
    }

    /// Takes over the members of a header. The session keeps the id of its first header.
    pub fn header(&mut self, header: SessionRow) {
        let SessionRow { id, key, label, created, dialect, parent } = header;
        if !std::mem::replace(&mut self.has_header, true) {
            self.id = id.unwrap_or_else(|| std::mem::take(&mut self.id));
            self.created = created.or(self.created);
        }
        self.header_key = self.header_key.take().or(key);
        self.label = label.or(self.label.take());
        self.dialect = self.dialect.take().or(dialect);
        self.parent = self.parent.take().or(parent);
    }
}

/// Returns a number for a new session. It is a hash of the key, so that an index that is rebuilt has the same row
/// numbers. If another session already has the number, returns the next free one.
fn free_number(database: &Connection, key: &str) -> rusqlite::Result<i64> {
    let hash = Sha256::digest(key);
    let mut number = hash.iter().take(5).fold(0, |number, byte| (number << 8) | i64::from(*byte));
    let mut used = database.prepare("SELECT 1 FROM sessions WHERE number = ?")?;
    while used.exists([number])? {
        number = (number + 1) & 0xff_ffff_ffff;
    }
    Ok(number)
}
