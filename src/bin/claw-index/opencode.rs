//! Writes the sessions of an opencode database as records.
//!
//! A message and its parts are JSON in the tables `message` and `part`. They are read as version 1.18.33 sends them, which was
//! observed while it resumed sessions; its source is public (sst/opencode, packages/opencode/src/session/message-v2.ts).

use crate::conversations::Conversations;
use crate::values::{text, text_or_null};
use clawutils::dialect::translation::IMPORTED;
use clawutils::json::write::{Members, list};
use clawutils::json::{self, Object, elements};
use clawutils::session::time;
use rusqlite::{Connection, Row};
use std::borrow::Cow;
use std::io::Write;

/// The tables that tell the database.
pub const TABLES: [&str; 4] = ["session", "message", "part", "project"];
/// The beginning of a title that nobody chose.
const NO_TITLE: &str = "New session - ";
/// The text that opencode sends for a result that it has cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// A message.
struct Message {
    id: String,
    /// The time in milliseconds since 1970.
    time: i64,
    data: String,
    /// The ids of the parts, and the parts as JSON.
    parts: Vec<(String, String)>,
}

/// Writes the records of all sessions. Each begins with a `session` record.
pub fn write(database: &Connection, out: &mut Conversations<'_>) -> anyhow::Result<()> {
    let sql = "SELECT id, parent_id, directory, title, version, time_created, revert FROM session \
        ORDER BY time_created, id";
    out.each(database, sql, |id, row, out| session(database, id, row, out))
}

/// Writes a session: its header, its label, and its messages.
fn session(
    database: &Connection,
    id: &str,
    row: &Row<'_>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let text = |index: usize| text_or_null(row, index);
    let (parent, directory, title) = (text(1)?, text(2)?, text(3)?);
    let (version, created, revert) = (text(4)?, row.get::<_, i64>(5)?, text(6)?);
    let header = Members::of_type("session")
        .string("id", id)
        .string("created", &time::to_text(created.saturating_mul(1000)))
        .object("source", |it| {
            it.string("dialect", "opencode")
                .optional(Members::string, "version", version.as_deref())
                .optional(Members::string, "cwd", directory.as_deref())
                .optional(Members::string, "parent", parent.as_deref())
        });
    writeln!(out, "{}", header.into_json())?;
    if let Some(title) = title.filter(|title| !title.starts_with(NO_TITLE)) {
        writeln!(out, "{}", Members::of_type("label").string("label", &title).into_json())?;
    }
    let revert = revert.as_deref().and_then(|revert| Object::parse(revert).ok());
    let end = revert.and_then(|revert| Some(revert.string("messageID")?.into_owned()));
    let messages = messages(database, id)?;
    for (index, message) in messages.iter().enumerate() {
        let is_removed = end.as_ref().is_some_and(|end| message.id >= *end);
        let before = index.checked_sub(1).and_then(|index| messages.get(index));
        let records = if is_removed { Vec::new() } else { message.records(before) };
        match records.is_empty() {
            true => writeln!(out, "{}", message.ignored().into_json())?,
            false => records.iter().try_for_each(|record| writeln!(out, "{record}"))?,
        }
    }
    Ok(())
}

fn messages(database: &Connection, session: &str) -> rusqlite::Result<Vec<Message>> {
    let sql =
        "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id";
    let mut select = database.prepare(sql)?;
    let mut parts =
        database.prepare("SELECT id, data FROM part WHERE message_id = ? ORDER BY id")?;
    let read = |row: &Row<'_>| Ok((text(row, 0)?, row.get(1)?, text(row, 2)?));
    let rows: Vec<(String, i64, String)> =
        select.query_map([session], read)?.collect::<Result<_, _>>()?;
    let message = |(id, time, data): (String, i64, String)| {
        let own = parts.query_map([&id], |row| Ok((text(row, 0)?, text(row, 1)?)))?;
        let own = own.collect::<rusqlite::Result<_>>()?;
        Ok(Message { id, time, data, parts: own })
    };
    rows.into_iter().map(message).collect()
}

impl Message {
    fn record(&self, kind: &str, id: &str) -> Members {
        let record = Members::of_type(kind).string("id", id);
        record.decimal("ts", self.time as f64 / 1000.0)
    }

    /// Returns a record that readers ignore.
    fn ignored(&self) -> Members {
        self.record(IMPORTED, &self.id).raw("record", &json::on_one_line(&self.data))
    }

    /// Returns the type of a part, and the part.
    fn parts(&self) -> impl Iterator<Item = (&str, String, Object<'_>)> {
        self.parts.iter().filter_map(|(id, data)| {
            let part = Object::parse(data).ok()?;
            Some((id.as_str(), part.string("type")?.into_owned(), part))
        })
    }

    fn has(&self, kind: &str) -> bool {
        self.parts().any(|(_, own, _)| own == kind)
    }

    /// Returns the records of the message; none if it is not sent. `before` is the message before it.
    fn records(&self, before: Option<&Message>) -> Vec<String> {
        let Ok(data) = Object::parse(&self.data) else { return Vec::new() };
        match data.string("role").as_deref() {
            Some("assistant") if data.is_true("summary") => match before {
                Some(before) if before.has("compaction") => self.compaction(before),
                _ => self.reply(&data),
            },
            Some("assistant") => self.reply(&data),
            // The summary that follows is the compaction.
            Some("user") if self.has("compaction") => Vec::new(),
            Some("user") => self.prompt(),
            _ => Vec::new(),
        }
    }

    fn prompt(&self) -> Vec<String> {
        let block = |(_, kind, part): (&str, String, Object<'_>)| match &*kind {
            "text" if !part.is_true("ignored") => Some(text_block(part.get("text")?)),
            "file" => file_block(&part),
            "subtask" => Some(text_block("\"The following tool was executed by the user\"")),
            _ => None,
        };
        let blocks: Vec<String> = self.parts().filter_map(block).collect();
        let record = self.record("user", &self.id).list("content", &blocks).into_json();
        if blocks.is_empty() { Vec::new() } else { vec![record] }
    }

    fn reply(&self, data: &Object<'_>) -> Vec<String> {
        let is_aborted = |error: &Object<'_>| error.get("name") == Some("\"MessageAbortedError\"");
        if let Some(error) = data.object("error").filter(|error| !is_aborted(error)) {
            return vec![self.failure(&error)];
        }
        let mut reply = Reply {
            message: self,
            data,
            records: Vec::new(),
            results: Vec::new(),
            blocks: Vec::new(),
        };
        for (id, kind, part) in self.parts() {
            match &*kind {
                // The results of a step come before the next one.
                "step-start" => reply.end_step(id),
                "text" => reply.blocks.extend(part.get("text").map(text_block)),
                "reasoning" => reply.blocks.extend(thinking(&part)),
                "tool" => reply.call(id, &part),
                _ => {}
            }
        }
        reply.end_step(&self.id);
        reply.records
    }

    /// Returns the record of a call to the provider that failed, which is not sent.
    fn failure(&self, error: &Object<'_>) -> String {
        let data = error.object("data");
        let message = data.as_ref().and_then(|data| data.string("message")).unwrap_or_default();
        self.record("error", &self.id)
            .string("class", &error.string("name").unwrap_or("failed".into()))
            .optional(Members::number, "status", data.and_then(|data| data.number("statusCode")))
            .string("message", &message)
            .into_json()
    }

    /// Returns the reasoning that is not sent.
    fn reasoning(&self) -> Option<String> {
        let own =
            self.parts().filter(|(_, kind, part)| kind == "reasoning" && thinking(part).is_none());
        let texts = own.filter_map(|(_, _, part)| part.string("text").map(Cow::into_owned));
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Returns the record of a compaction, of which this message is the summary.
    fn compaction(&self, request: &Message) -> Vec<String> {
        let text = |(_, kind, part): (&str, String, Object<'_>)| {
            (kind == "text").then(|| part.string("text").map(Cow::into_owned)).flatten()
        };
        let summary: Vec<String> = self.parts().filter_map(text).collect();
        let tail = |(_, _, part): (&str, String, Object<'_>)| {
            part.string("tail_start_id").map(Cow::into_owned)
        };
        let kept = request.parts().find_map(tail);
        let record = self.record("compaction", &self.id).string("summary", &summary.join("\n\n"));
        // The record of the request is ignored, so nothing before the summary is kept.
        let kept = kept.as_deref().unwrap_or(&request.id);
        vec![record.string("first_kept_entry_id", kept).into_json()]
    }
}

/// A reply that is being written: a record of its blocks before each call, its calls, and the results of each step.
struct Reply<'m> {
    message: &'m Message,
    data: &'m Object<'m>,
    records: Vec<String>,
    results: Vec<String>,
    blocks: Vec<String>,
}

impl Reply<'_> {
    /// Writes the blocks so far as a record, which comes before the part `id`. The first record has the counts of the reply.
    fn write_blocks(&mut self, id: &str) {
        let (message, blocks) = (self.message, std::mem::take(&mut self.blocks));
        let record = match self.records.is_empty() {
            true => {
                let record = message.record("assistant", &message.id).list("content", blocks);
                let reasoning = message.reasoning();
                facts(record, self.data).optional(
                    Members::string,
                    "reasoning",
                    reasoning.as_deref(),
                )
            }
            false => message.record("assistant", &format!("{id}.1")).list("content", blocks),
        };
        self.records.push(record.into_json());
    }

    fn end_step(&mut self, id: &str) {
        if !self.blocks.is_empty() {
            self.write_blocks(id);
        }
        self.records.append(&mut self.results);
    }

    fn call(&mut self, id: &str, part: &Object<'_>) {
        if !self.blocks.is_empty() || self.records.is_empty() {
            self.write_blocks(id);
        }
        let state = part.object("state");
        let input = state.as_ref().and_then(|state| state.get("input")).unwrap_or("{}");
        let call = part.get("callID").unwrap_or("\"\"");
        let record = self.message.record("tool_use", id).raw("tool_use_id", call);
        let record = record.raw("name", part.get("tool").unwrap_or("\"\"")).raw("input", input);
        self.records.push(record.into_json());
        if let Some((content, is_error)) = state.as_ref().and_then(result) {
            let record = self.message.record("tool_result", &format!("{id}.2"));
            let record = record.raw("tool_use_id", call).raw("content", &content);
            self.results.push(record.flag("is_error", is_error).into_json());
        }
    }
}

fn text_block(text: &str) -> String {
    Members::of_type("text").raw("text", text).into_json()
}

/// Adds the model, the provider and the counts of a reply.
fn facts(record: Members, data: &Object<'_>) -> Members {
    let tokens = data.object("tokens");
    let cache = tokens.as_ref().and_then(|tokens| tokens.object("cache"));
    let count = |object: &Option<Object<'_>>, name: &str| {
        object.as_ref().and_then(|object| object.number(name)).unwrap_or(0)
    };
    record
        .optional(Members::raw, "model", data.get("modelID"))
        .optional(Members::raw, "provider", data.get("providerID"))
        .object("usage", |it| {
            it.number("input_tokens", count(&tokens, "input"))
                .number("cache_read_input_tokens", count(&cache, "read"))
                .number("cache_creation_input_tokens", count(&cache, "write"))
                .number("output_tokens", count(&tokens, "output") + count(&tokens, "reasoning"))
        })
}

/// Returns thinking that Anthropic's models take back, as a block.
fn thinking(part: &Object<'_>) -> Option<String> {
    let own = part.object("metadata")?.object("anthropic")?;
    if let Some(data) = own.get("redactedData") {
        return Some(Members::of_type("redacted_thinking").raw("data", data).into_json());
    }
    let block = Members::of_type("thinking").raw("thinking", part.get("text")?);
    Some(block.raw("signature", own.get("signature")?).into_json())
}

/// Returns a file as a block. opencode has made text of text files and directories already.
fn file_block(part: &Object<'_>) -> Option<String> {
    let (mime, url) = (part.string("mime")?, part.string("url")?);
    if mime == "text/plain" || mime == "application/x-directory" {
        return None;
    }
    let kind = if mime.starts_with("image/") { "image" } else { "document" };
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let source = |it: Members| match data {
        Some((_, data)) => {
            it.string("type", "base64").string("media_type", &mime).string("data", data)
        }
        None => it.string("type", "url").string("url", &url),
    };
    Some(Members::of_type(kind).object("source", source).into_json())
}

/// Returns the content of a call's result, and true if the call failed; `None` if it has not ended.
fn result(state: &Object<'_>) -> Option<(String, bool)> {
    match state.string("status").as_deref()? {
        "error" => Some((state.get("error")?.to_owned(), true)),
        "completed" => {
            if state.object("time").is_some_and(|time| time.get("compacted").is_some()) {
                return Some((json::quote(CLEARED), false));
            }
            let output = state.get("output")?;
            let files = state.get("attachments").and_then(elements).unwrap_or_default();
            let files = files.into_iter().filter_map(|file| file_block(&Object::parse(file).ok()?));
            let files: Vec<String> = files.collect();
            let blocks = std::iter::once(text_block(output)).chain(files.clone());
            Some((if files.is_empty() { output.to_owned() } else { list(blocks) }, false))
        }
        _ => None,
    }
}
