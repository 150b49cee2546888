//! Writes the sessions in a database of OpenClaw as records.
//!
//! Since 2026.7, each agent has a database, `agents/AGENT/agent/openclaw-agent.sqlite`. The events of a session are the lines of a
//! session of pi (`event_json`), of which those from 1 KiB on can be compressed with Zstandard (`event_zstd`). They are read
//! as version 2026.9.6 wrote them, which was observed; its documentation has the history of the schema. Sessions in cold
//! archives have no events in the database, and are not read.

use crate::conversations::Conversations;
use crate::values::{text_or_null, unusable};
use clawutils::cli::{Log, report};
use clawutils::dialect::{self, Choice, Dialect};
use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::input::spool::Spool;
use clawutils::json::write::Members;
use clawutils::json::{self, Object};
use rusqlite::{Connection, OptionalExtension, Row};
use ruzstd::decoding::StreamingDecoder;
use std::collections::HashSet;
use std::env::temp_dir;
use std::io::{Read, Write};

/// The tables that tell the database.
pub const TABLES: [&str; 2] = ["transcript_events", "transcript_event_identities"];
/// The most bytes of an event that was compressed.
const MOST_EVENT: u64 = 4 * 1024 * 1024;

/// Writes the records of all sessions. Each begins with a `session` record.
pub fn write(
    database: &Connection,
    tables: &HashSet<String>,
    out: &mut Conversations<'_>,
) -> anyhow::Result<()> {
    let is_compressed = database
        .prepare("SELECT * FROM transcript_events LIMIT 0")?
        .column_names()
        .any(|name| name == "event_zstd");
    // The schema is one that is known.
    let has_names = tables.contains("session_nodes") && tables.contains("session_windows");
    let (log, file) = (out.log, out.database.clone());
    let sql = "SELECT DISTINCT session_id FROM transcript_events ORDER BY 1";
    out.each(database, sql, |id, _, out| {
        let events = events(database, id, is_compressed)?;
        let translated = translated(events, &format!("{file} {id}"), log)?;
        let name = if has_names { name(database, id)? } else { None };
        records(&translated, id, name.as_deref(), out)
    })
}

/// Returns the label of a session or, if it has none, its key.
fn name(database: &Connection, session: &str) -> anyhow::Result<Option<String>> {
    let sql =
        "SELECT coalesce(node.label, node.display_name, own.session_key) FROM session_windows AS own
        LEFT JOIN session_nodes AS node ON node.session_key = own.session_key WHERE own.session_id = ?";
    Ok(database.query_row(sql, [session], |row| text_or_null(row, 0)).optional()?.flatten())
}

/// Returns the events of a session as lines.
fn events(database: &Connection, id: &str, is_compressed: bool) -> anyhow::Result<Spool> {
    let columns = if is_compressed { "event_json, event_zstd" } else { "event_json, NULL" };
    let sql = format!("SELECT {columns} FROM transcript_events WHERE session_id = ? ORDER BY seq");
    let mut lines = Spool::new(temp_dir());
    let mut select = database.prepare(&sql)?;
    let mut rows = select.query([id])?;
    while let Some(row) = rows.next()? {
        lines.end().push_str(&json::on_one_line(&event(row)?));
        lines.end().push('\n');
        lines.settle();
    }
    Ok(lines)
}

/// Translates the events of a session, and reports what cannot be read. `place` names the session.
fn translated(events: Spool, place: &str, log: Log) -> anyhow::Result<Input> {
    let choice =
        Choice { from: Some(Dialect::Pi), leaf: None, keeps_all: true, directory: temp_dir() };
    let translated = dialect::open(events.finish(place)?, &choice)?;
    if let Some(origin) = translated.origin() {
        report(log, &origin.findings(&translated.name), false)?;
    }
    Ok(translated)
}

/// Returns the line of an event.
fn event(row: &Row<'_>) -> rusqlite::Result<String> {
    if let Some(text) = text_or_null(row, 0)? {
        return Ok(text);
    }
    let value = row.get_ref(1)?;
    let read = |bytes: &[u8]| {
        let mut line = String::new();
        let decoder = StreamingDecoder::new(bytes).ok()?;
        decoder.take(MOST_EVENT + 1).read_to_string(&mut line).ok()?;
        (line.len() as u64 <= MOST_EVENT).then_some(line)
    };
    let line = value.as_blob().ok().and_then(read);
    line.ok_or_else(|| unusable(1, "event_zstd", value))
}

/// Writes the records of a translation, with a header of its own.
fn records(
    translated: &Input,
    id: &str,
    name: Option<&str>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut lines = Lines::of(translated);
    let mut is_first = true;
    while let Some(batch) = lines.batch()? {
        for line in batch.flatten() {
            let is_header = line.object.get("type") == Some("\"session\"");
            if std::mem::take(&mut is_first) {
                let own = Some(&line.object).filter(|_| is_header);
                writeln!(out, "{}", header(own, id))?;
                if let Some(name) = name {
                    let label = Members::of_type("label").string("label", name);
                    writeln!(out, "{}", label.into_json())?;
                }
            }
            if !is_header {
                writeln!(out, "{}", line.object.text())?;
            }
        }
    }
    Ok(())
}

fn header(own: Option<&Object<'_>>, id: &str) -> String {
    let source = own.and_then(|own| own.object("source"));
    let source = |name: &str| source.as_ref().and_then(|source| source.get(name));
    Members::of_type("session")
        .string("id", id)
        .optional(Members::raw, "created", own.and_then(|own| own.get("created")))
        .object("source", |it| {
            it.string("dialect", "openclaw")
                .optional(Members::raw, "version", source("version"))
                .optional(Members::raw, "cwd", source("cwd"))
                .optional(Members::raw, "parent", source("parent"))
        })
        .into_json()
}
