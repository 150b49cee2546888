//! Writes rows into the tables.

use crate::asides::{SourceCall, SourceCalls};
use crate::prices;
use crate::retract;
use crate::session::{Session, Turn, rows_of};
use clawutils::compact::details::Access;
use clawutils::finding::Finding;
use clawutils::index::rows::{Column, MessageRow, PROGRAM, TableRow, UsageRow};
use clawutils::index::words;
use clawutils::usage::Counts;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Statement, ToSql, params};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

const WRITE_TURN: &str = "INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (row) DO \
    UPDATE SET ended_at = ?5, message_count = ?6, tool_call_count = ?7, tokens = ?8";
const ADD_TEXT: &str = "INSERT INTO messages_fts (rowid, text) VALUES (?, ?)";
const OPEN_CALL: &str = "SELECT row FROM tool_calls WHERE session_key = ? AND tool_call_id = ? \
    AND result_row IS NULL ORDER BY row DESC LIMIT 1";
const ADD_RESULT: &str = "UPDATE tool_calls SET ended_at = ?2, is_error = ?3, result_bytes = ?4, \
    result_row = ?5 WHERE row = ?1";
const WRITE_SESSION: &str = "UPDATE sessions SET id = ?2, header_key = ?3, label = ?4, dialect = ?5, parent = ?6, \
    created_at = ?7, updated_at = ?8, model = ?9, message_count = ?10, turn_count = ?11, \
    compaction_count = ?12, total_tokens = ?13, has_header = ?14 WHERE key = ?1";

/// The length in bytes of the texts that are added to the full-text index together, at which FTS5 writes its changes
/// anyway. It keeps its changes in memory, but writes them to the database as a segment whenever another statement begins
/// that SQLite may have to undo by itself. If each text is added when its message is read, an update of 62 MiB takes 1.7
/// times as long.
const FULL: usize = 1 << 20;

/// The statements that write rows.
pub struct Inserter<'c> {
    database: &'c Connection,
    /// The statements that were prepared: by their SQL or, for those that insert a whole row, by the table.
    statements: HashMap<&'static str, Statement<'c>>,
}

/// The id, place and time of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordPlace<'r> {
    /// The record's id.
    pub id: &'r str,
    /// The byte offset of its line.
    pub offset: i64,
    /// The length of its line in bytes.
    pub length: i64,
    /// Its time.
    pub timestamp: Option<f64>,
}

impl<'c> Inserter<'c> {
    /// Returns an inserter, which prepares each statement when it is first used.
    pub fn new(database: &'c Connection) -> Inserter<'c> {
        Inserter { database, statements: HashMap::new() }
    }

    /// Returns the prepared statement `name`, whose SQL `sql` returns.
    fn statement(
        &mut self,
        name: &'static str,
        sql: impl FnOnce() -> String,
    ) -> rusqlite::Result<&mut Statement<'c>> {
        Ok(match self.statements.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.database.prepare(&sql())?),
        })
    }

    fn execute(&mut self, sql: &'static str, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
        self.statement(sql, || sql.to_owned())?.execute(values).map(drop)
    }

    /// Inserts a row, or replaces it.
    fn insert(&mut self, table: &'static str, values: &[&dyn ToSql]) -> rusqlite::Result<()> {
        let sql = || {
            let values = vec!["?"; values.len()].join(", ");
            format!("INSERT OR REPLACE INTO {table} VALUES ({values})")
        };
        self.statement(table, sql)?.execute(values).map(drop)
    }

    /// Writes the current turn, and begins the next one, whose first message is the next row.
    pub fn begin_turn(
        &mut self,
        session: &mut Session,
        place: &RecordPlace<'_>,
    ) -> rusqlite::Result<()> {
        self.write_turn(session)?;
        let (row, turn) = (session.row(session.next), session.turn.turn + 1);
        let started = place.timestamp;
        session.turn = Turn { row, turn, started, ..Turn::default() };
        Ok(())
    }

    fn write_turn(&mut self, session: &Session) -> rusqlite::Result<()> {
        let Turn { row, turn, started, ended, messages, calls, tokens } = session.turn;
        if turn > 0 {
            let key = &session.key;
            let values = params![row, key, turn, started, ended, messages, calls, tokens];
            self.execute(WRITE_TURN, values)?;
        }
        Ok(())
    }

    /// Adds a message. If it is a tool call, also adds the call and the file that it names. If it is a tool result,
    /// adds the result to the row of its call.
    pub fn message(
        &mut self,
        session: &mut Session,
        place: &RecordPlace<'_>,
        message: &MessageRow<'_>,
        counts: Option<Counts>,
    ) -> rusqlite::Result<()> {
        let row = session.take();
        let tokens = |count: Option<u64>| count.map(u64::cast_signed);
        let values = params![
            row,
            session.key,
            place.id,
            session.turn.turn,
            place.timestamp,
            message.role,
            message.model,
            message.tool_call_id,
            message.tool_name,
            message.is_error,
            message.is_interrupted,
            false,
            tokens(counts.map(|counts| counts.prompt())),
            tokens(counts.map(|counts| counts.output)),
            place.offset,
            place.length,
            message.content,
            message.thinking,
            message.tool_input,
            message.tool_result,
            message.raw,
        ];
        self.insert("messages", values)?;
        // What a program added is not a message of the conversation, and no search finds it.
        if message.role == PROGRAM {
            return Ok(());
        }
        let text = words::indexed(&message.searched()).into_owned();
        session.waiting += text.len();
        session.texts.push((row, text));
        if session.waiting >= FULL {
            self.texts(session)?;
        }
        session.messages += 1;
        session.turn.messages += 1;
        if let Some(model) = &message.model {
            session.model = Some(model.clone().into_owned());
        }
        match (message.role, &message.tool_call_id) {
            ("tool_use", Some(id)) => self.call(session, row, (id, place), message),
            ("tool_result", Some(id)) => self.result(session, row, (id, place), message),
            _ => Ok(()),
        }
    }

    /// Adds the waiting texts to the full-text index.
    fn texts(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        session.waiting = 0;
        for (row, text) in std::mem::take(&mut session.texts) {
            self.execute(ADD_TEXT, params![row, text])?;
        }
        Ok(())
    }

    fn call(
        &mut self,
        session: &mut Session,
        row: i64,
        (id, place): (&str, &RecordPlace<'_>),
        message: &MessageRow<'_>,
    ) -> rusqlite::Result<()> {
        let (key, turn) = (&session.key, session.turn.turn);
        let null: Option<i64> = None;
        let name = message.tool_name.as_deref().unwrap_or_default();
        let length = message.tool_input.as_ref().map_or(0, |input| input.len()) as i64;
        let time = place.timestamp;
        let values = params![row, key, turn, id, name, time, null, null, length, null, null];
        self.insert("tool_calls", values)?;
        if let Some(file) = message.file() {
            let access = if file.access == Access::Read { "read" } else { "write" };
            self.insert("files", params![row, key, turn, file.path, access])?;
        }
        session.turn.calls += 1;
        session.open.entry(id.to_owned()).or_default().push(row);
        Ok(())
    }

    /// Adds a result to the last call before it that has the same id and no result yet.
    fn result(
        &mut self,
        session: &mut Session,
        row: i64,
        (id, place): (&str, &RecordPlace<'_>),
        message: &MessageRow<'_>,
    ) -> rusqlite::Result<()> {
        let mut call = session.open.get_mut(id).and_then(Vec::pop);
        if call.is_none() && session.is_continued {
            let select = self.statement(OPEN_CALL, || OPEN_CALL.to_owned())?;
            call = select.query_row([&session.key, id], |row| row.get(0)).optional()?;
        }
        let Some(call) = call else { return Ok(()) };
        let length = message.tool_result.as_ref().map_or(0, |text| text.len()) as i64;
        self.execute(ADD_RESULT, params![call, place.timestamp, message.is_error, length, row])
    }

    /// Adds the tokens of a call to a provider. `own` is the number of the record's first row.
    pub fn usage(
        &mut self,
        session: &mut Session,
        own: i64,
        place: &RecordPlace<'_>,
        usage: &UsageRow,
    ) -> rusqlite::Result<()> {
        self.usage_row(session, (session.row(own), session.turn.turn), place.timestamp, usage)?;
        let all = number(usage.counts.all());
        session.tokens = session.tokens.saturating_add(all);
        session.turn.tokens = session.turn.tokens.saturating_add(all);
        Ok(())
    }

    fn usage_row(
        &mut self,
        session: &Session,
        (row, turn): (i64, i64),
        timestamp: Option<f64>,
        usage: &UsageRow,
    ) -> rusqlite::Result<()> {
        let Counts { input, cache_read, cache_write, cache_write_1h, output } = usage.counts;
        let values = params![
            row,
            session.key,
            turn,
            timestamp,
            usage.kind,
            usage.call,
            usage.provider,
            usage.model,
            number(input),
            number(cache_read),
            number(cache_write),
            number(output),
            number(cache_write_1h),
        ];
        self.insert("usage", values)?;
        self.execute(prices::ADD, params![usage.model])
    }

    /// Writes the calls that are not part of the conversation. Their row numbers count down from the highest number
    /// that a row of the session can have.
    pub fn asides(&mut self, session: &Session, calls: &SourceCalls) -> rusqlite::Result<()> {
        let own = "DELETE FROM usage WHERE session_key = ? AND kind = 'aside'";
        self.database.execute(own, [&session.key])?;
        let known = "SELECT call FROM usage WHERE session_key = ? AND call IS NOT NULL";
        let mut known = self.database.prepare(known)?;
        let known = known.query_map([&session.key], |row| row.get::<_, String>(0))?;
        let known = known.collect::<rusqlite::Result<HashSet<_>>>()?;
        let is_aside =
            |call: &&SourceCall| call.usage.call.as_ref().is_some_and(|id| !known.contains(id));
        let [_, mut row] = rows_of(session.number);
        for SourceCall { timestamp, usage, .. } in calls.calls.iter().filter(is_aside) {
            self.usage_row(session, (row, 0), *timestamp, usage)?;
            row -= 1;
        }
        Ok(())
    }

    /// Adds the row of a compaction, a checkpoint, a failed call to a provider or a retraction.
    pub fn row(
        &mut self,
        session: &mut Session,
        place: &RecordPlace<'_>,
        row: TableRow,
    ) -> rusqlite::Result<()> {
        let columns = row.columns.into_iter().map(|column| match column {
            Column::Text(text) => Value::from(text),
            Column::Number(number) => Value::from(number.map(u64::cast_signed)),
            Column::Flag(is_set) => Value::from(is_set),
        });
        let columns: Vec<Value> = columns.collect();
        let (own, turn) = (session.take(), session.turn.turn);
        let mut values = params![own, session.key, place.id, turn, place.timestamp].to_vec();
        values.extend(columns.iter().map(|column| column as &dyn ToSql));
        self.insert(row.table, &values)?;
        session.compactions += i64::from(row.table == "compactions");
        Ok(())
    }

    /// Adds a retraction, and marks what it retracts.
    pub fn retraction(
        &mut self,
        session: &mut Session,
        place: &RecordPlace<'_>,
        target: String,
    ) -> rusqlite::Result<()> {
        retract::mark(self.database, session, &target, true)?;
        let columns = vec![Column::Text(Some(target)), Column::Flag(false)];
        self.row(session, place, TableRow { table: "retractions", columns })
    }

    /// Deletes the findings about a session.
    pub fn delete_findings(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        session.findings = 0;
        self.database.execute("DELETE FROM findings WHERE session_key = ?", [&session.key])?;
        Ok(())
    }

    /// Adds a finding.
    pub fn finding(&mut self, session: &mut Session, finding: &Finding) -> rusqlite::Result<()> {
        session.findings += 1;
        let values = params![
            session.key,
            session.findings,
            finding.rule.name,
            finding.rule.severity.name(),
            finding.id.as_deref(),
            finding.place.offset.cast_signed(),
            finding.place.length.cast_signed(),
            finding.message,
        ];
        self.insert("findings", values)
    }

    /// Writes the waiting texts, the current turn and the row of the session.
    pub fn finish(&mut self, session: &mut Session) -> rusqlite::Result<()> {
        self.texts(session)?;
        self.write_turn(session)?;
        let values = params![
            session.key,
            session.id,
            session.header_key,
            session.label,
            session.dialect,
            session.parent,
            session.created,
            session.updated,
            session.model,
            session.messages,
            session.turn.turn,
            session.compactions,
            session.tokens,
            session.has_header,
        ];
        self.execute(WRITE_SESSION, values)
    }
}

/// Converts a count to an SQLite integer, or to the largest one if the count is greater.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
