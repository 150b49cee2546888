//! Writes the sessions of a GoClaw database as records.
//!
//! The rows are in GoClaw's order: by time, which has a resolution of one second, and then as they were inserted.

use crate::conversations::Conversations;
use crate::values::unusable;
use clawutils::dialect::translation::IMPORTED;
use clawutils::json::write::Members;
use clawutils::json::{Object, elements};
use clawutils::session::time;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row};
use std::borrow::Cow;
use std::io::Write;

/// The keys of all sessions. GoClaw does not enforce foreign keys, so a session may have messages but no row in
/// `sessions`.
const SESSIONS: &str = "SELECT key FROM sessions UNION SELECT session_key FROM messages ORDER BY 1";
/// The tables that tell the database.
pub const TABLES: [&str; 5] =
    ["schema_version", "sessions", "messages", "checkpoints", "compactions"];

/// The columns that hold numbers.
const NUMBERS: [&str; 10] = [
    "timestamp",
    "input_tokens",
    "output_tokens",
    "tool_is_error",
    "tokens_before",
    "tokens_after",
    "from_checkpoint",
    "needs_summary_retry",
    "tokens_at_checkpoint",
    "message_count_at_checkpoint",
];

/// Writes the records of all sessions. Each begins with a `session` record.
pub fn write(database: &Connection, out: &mut Conversations<'_>) -> anyhow::Result<()> {
    let mut select = database.prepare(SESSIONS)?;
    let mut keys = select.query([])?;
    while let Some(row) = keys.next()? {
        let key = text_at(row.get_ref(0)?);
        out.add(&key, |out| session(database, &key, out))?;
    }
    Ok(())
}

/// Writes a session: its header, its label, and its messages, with compactions and checkpoints in between.
fn session(database: &Connection, key: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    let created = "SELECT created_at FROM sessions WHERE key = ?";
    let created: Option<Option<i64>> =
        database.query_row(created, [key], |row| row.get(0)).optional()?;
    let version = database.query_row("SELECT max(version) FROM schema_version", [], |row| {
        row.get::<_, Option<i64>>(0)
    })?;
    let created = created.flatten().map(|seconds| time::to_text(seconds.saturating_mul(1_000_000)));
    let header = Members::of_type("session")
        .string("id", key)
        .optional(Members::string, "created", created.as_deref())
        .object("source", |it| {
            it.string("dialect", "goclaw").optional(Members::number, "version", version)
        });
    writeln!(out, "{}", header.into_json())?;
    writeln!(out, "{}", Members::of_type("label").string("label", key).into_json())?;
    let mut marks = marks(database, key)?.into_iter().peekable();
    let mut select = database
        .prepare("SELECT * FROM messages WHERE session_key = ? ORDER BY timestamp, rowid")?;
    let mut messages = select.query([key])?;
    while let Some(row) = messages.next()? {
        Columns(row).check()?;
        let now = Columns(row).number("timestamp").unwrap_or_default();
        while let Some((_, mark)) = marks.next_if(|(then, _)| *then < now) {
            writeln!(out, "{mark}")?;
        }
        message(Columns(row), out)?;
    }
    marks.try_for_each(|(_, mark)| writeln!(out, "{mark}"))?;
    Ok(())
}

/// Returns the compactions and checkpoints of a session as records, with their times, in order.
fn marks(database: &Connection, key: &str) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut marks = Vec::new();
    let tables =
        [("checkpoints", checkpoint as fn(Columns<'_>) -> Members), ("compactions", compaction)];
    for (table, record) in tables {
        let sql = format!("SELECT * FROM {table} WHERE session_key = ? ORDER BY timestamp, rowid");
        let mut select = database.prepare(&sql)?;
        let mut rows = select.query([key])?;
        while let Some(row) = rows.next()? {
            let columns = Columns(row);
            columns.check()?;
            let time = columns.number("timestamp").unwrap_or_default();
            marks.push((time, record(columns).into_json()));
        }
    }
    marks.sort_by_key(|(time, _)| *time);
    Ok(marks)
}

fn message(row: Columns<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let (role, content) = (row.text("role").unwrap_or_default(), row.text("content"));
    let (content, thinking) = (content.unwrap_or_default(), row.text("thinking"));
    let call = row.text("tool_call_id");
    let mut record = |members: Members| writeln!(out, "{}", members.into_json());
    match (&*role, &call) {
        ("user", _) => {
            record(row.record("user").string("content", &content).with(|it| row.add_origin(it)))
        }
        ("assistant", _) => record(reply(row, &content, thinking.as_deref())),
        ("tool_use", Some(call)) => {
            // Only the first record made from a row gets the id of the row.
            let has_text = !content.is_empty() || thinking.is_some();
            if has_text {
                record(reply(row, &content, thinking.as_deref()))?;
            }
            let own = if has_text { row.dated("tool_use") } else { row.record("tool_use") };
            let input = row.text("tool_input").unwrap_or_default();
            let name = row.text("tool_name").unwrap_or_default();
            let own = own.string("tool_use_id", call).string("name", &name);
            record(match Object::parse(&input) {
                Ok(object) => own.raw("input", object.text()),
                Err(_) if input.is_empty() => own.raw("input", "{}"),
                Err(_) => own.object("input", |it| it.string("text", &input)),
            })
        }
        ("tool_result" | "toolResult", Some(call)) => {
            let result = row.text("tool_result").unwrap_or(content);
            let own = row.record("tool_result").string("tool_use_id", call);
            let own = own.string("content", &result);
            record(own.flag("is_error", row.count("tool_is_error").is_some()))
        }
        // Readers ignore an imported record. It is written because it may be the first one that a compaction keeps.
        _ => record(
            row.record(IMPORTED)
                .object("record", |it| it.string("role", &role).string("content", &content)),
        ),
    }?;
    Ok(())
}

/// Returns the record of a reply.
fn reply(row: Columns<'_>, content: &str, thinking: Option<&str>) -> Members {
    let counts = [row.count("input_tokens"), row.count("output_tokens")];
    let record = row.record("assistant").string("content", content);
    let record = record.optional(Members::string, "reasoning", thinking);
    let record = match counts {
        [None, None] => record,
        [input, output] => record.object("usage", |it| {
            it.number("input_tokens", input.unwrap_or(0))
                .number("output_tokens", output.unwrap_or(0))
        }),
    };
    row.add_origin(record)
}

fn compaction(row: Columns<'_>) -> Members {
    let first_kept = row.text("first_kept_entry_id");
    let is_checkpoint = row.count("from_checkpoint").is_some();
    row.record("compaction")
        .string("summary", &row.text("summary").unwrap_or_default())
        .string("first_kept_entry_id", first_kept.as_deref().unwrap_or("(none)"))
        .optional(Members::number, "tokens_before", row.count("tokens_before"))
        .optional(Members::number, "tokens_after", row.count("tokens_after"))
        .optional(Members::string, "strategy", is_checkpoint.then_some("checkpoint"))
        .flag("needs_summary_retry", row.count("needs_summary_retry").is_some())
}

fn checkpoint(row: Columns<'_>) -> Members {
    let list = |name: &str| row.text(name).filter(|raw| elements(raw).is_some());
    let covers = row.text("covers_up_to");
    row.record("checkpoint")
        .string("summary", &row.text("summary").unwrap_or_default())
        .optional(Members::raw, "topics", list("topics").as_deref())
        .optional(Members::raw, "key_decisions", list("key_decisions").as_deref())
        .optional(Members::raw, "open_questions", list("open_questions").as_deref())
        .optional(Members::number, "tokens_at_checkpoint", row.count("tokens_at_checkpoint"))
        .optional(
            Members::number,
            "message_count_at_checkpoint",
            row.count("message_count_at_checkpoint"),
        )
        .optional(Members::string, "generated_by", row.text("generated_by").as_deref())
        .optional(Members::string, "covers_up_to", covers.as_deref())
}

/// The columns of a row by name. Databases of older versions of GoClaw lack some of them.
#[derive(Clone, Copy)]
struct Columns<'r>(&'r Row<'r>);

impl<'r> Columns<'r> {
    /// Fails if a column holds a value that GoClaw cannot have written: text that is not UTF-8, or text for a number.
    fn check(self) -> rusqlite::Result<()> {
        for (index, name) in self.0.as_ref().column_names().enumerate() {
            let value = self.0.get_ref(index)?;
            let is_right = match value {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    !NUMBERS.contains(&name) && std::str::from_utf8(bytes).is_ok()
                }
                _ => true,
            };
            if !is_right {
                return Err(unusable(index, name, value));
            }
        }
        Ok(())
    }

    fn get(self, name: &str) -> ValueRef<'r> {
        self.0.get_ref(name).unwrap_or(ValueRef::Null)
    }

    /// Returns the text of a column, or `None` if it is null or empty. Blobs count as text, because GoClaw stores JSON
    /// in them.
    fn text(self, name: &str) -> Option<Cow<'r, str>> {
        Some(text_at(self.get(name))).filter(|text| !text.is_empty())
    }

    fn number(self, name: &str) -> Option<i64> {
        self.get(name).as_i64().ok()
    }

    /// Returns a number, or `None` if it is 0, which GoClaw stores for an unknown number.
    fn count(self, name: &str) -> Option<i64> {
        self.number(name).filter(|count| *count > 0)
    }

    /// Begins a record with the time of the row.
    fn dated(self, kind: &str) -> Members {
        Members::of_type(kind).optional(Members::number, "ts", self.number("timestamp"))
    }

    /// Begins a record with the id and the time of the row.
    fn record(self, kind: &str) -> Members {
        self.dated(kind).optional(Members::string, "id", self.text("id").as_deref())
    }

    /// Adds the columns about the origin of a message.
    fn add_origin(self, mut record: Members) -> Members {
        for name in ["source", "channel_id", "user_id", "supervisor", "intervention_type"] {
            record = record.optional(Members::string, name, self.text(name).as_deref());
        }
        record
    }
}

fn text_at(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes),
        ValueRef::Null => Cow::default(),
        ValueRef::Integer(number) => number.to_string().into(),
        ValueRef::Real(number) => number.to_string().into(),
    }
}
