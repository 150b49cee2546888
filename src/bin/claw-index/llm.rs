//! Writes the conversations in the database of `llm` as records.
//!
//! Its tables and the way in which it goes on with a conversation are public (simonw/llm, logs.py and models.py); what it sends
//! was observed with versions 0.27.1 and 0.36.
//!
//! - Since version 0.32, a conversation is a thread that ends with a message; each message names the one before it.
//!   Conversations share the messages that are the same. What a call to a model added is a turn.
//! - In older versions, a response has a prompt, the results of calls, an answer and calls. A newer version goes on with
//!   these, too, so a database can have both.
//! - The data of an attachment that was given as a file is not in the database, only its path and its hash.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clawutils::dialect::time::of_text;
use clawutils::dialect::translation::IMPORTED;
use clawutils::json::write::Members;
use clawutils::json::{self, Object, elements};
use clawutils::session::time;
use rusqlite::{Connection, OptionalExtension, Row};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Write};

/// The tables that tell the database.
pub const TABLES: [&str; 4] = ["conversations", "responses", "attachments", "prompt_attachments"];
/// The most bytes of a file that are read because an attachment names it.
const MOST_FILE: u64 = 64 * 1024 * 1024;
/// The most messages of a conversation.
const MOST_MESSAGES: usize = 1_000_000;

/// A message of a conversation.
struct Message {
    id: String,
    role: String,
    parts: Vec<Part>,
    /// The call that answered it or was answered by it.
    turn: Option<Turn>,
}

/// A part of a message. Texts are not JSON, unless it is said.
enum Part {
    Text(String),
    Reasoning(String),
    Attachment(Attachment),
    /// A call: its id, the name, and the input as JSON.
    Call(String, String, String),
    /// A result: the id of its call, the text, and true if the call failed.
    Result(String, String, Vec<Attachment>, bool),
}

/// The image or document in a message.
struct Attachment {
    id: String,
    kind: String,
    path: Option<String>,
    url: Option<String>,
    data: Option<Vec<u8>>,
}

/// A call to a model.
#[derive(Clone)]
struct Turn {
    id: String,
    model: Option<String>,
    input: Option<i64>,
    output: Option<i64>,
    /// Further counts, as JSON.
    details: Option<String>,
    time: Option<String>,
}

/// Writes the records of all conversations. Each begins with a `session` record.
pub fn write(database: &Connection, tables: &[String], out: &mut dyn Write) -> anyhow::Result<()> {
    let mut newer: HashSet<String> = HashSet::new();
    if tables.iter().any(|table| table == "threads") {
        let turns = turns(database)?;
        let mut select = database.prepare(
            "SELECT id, tip_message_hash, datetime_utc, forked_from FROM threads ORDER BY id",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            let (tip, parent) =
                (row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(3)?);
            let messages = chain(database, &id, tip, &turns)?;
            header(&id, row.get(2)?, parent.as_deref(), out)?;
            messages.iter().try_for_each(|message| message.write(out))?;
            newer.insert(id);
        }
    }
    let mut select = database.prepare("SELECT id FROM conversations ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        if !newer.contains(&id) {
            let messages = responses(database, &id, tables)?;
            let first = messages.iter().find_map(|it| it.turn.as_ref()?.time.clone());
            header(&id, first, None, out)?;
            messages.iter().try_for_each(|message| message.write(out))?;
        }
    }
    Ok(())
}

/// Returns a time in microseconds since 1970.
fn micros(text: &str) -> Option<i64> {
    of_text(&json::quote(&text.replacen(' ', "T", 1)))
}

fn header(
    id: &str,
    created: Option<String>,
    parent: Option<&str>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let created = created.as_deref().and_then(micros).map(time::to_text);
    let record = Members::of_type("session")
        .string("id", id)
        .optional(Members::string, "created", created.as_deref())
        .object("source", |it| {
            it.string("dialect", "llm").optional(Members::string, "parent", parent)
        });
    Ok(writeln!(out, "{}", record.into_json())?)
}

// ---- threads ------------------------------------------------------------------------------------

/// The calls of all threads: the thread and the call, by the last message that it was sent and the last one that it gave.
type Turns = HashMap<String, Vec<(String, Turn)>>;

fn turns(database: &Connection) -> rusqlite::Result<Turns> {
    let sql = "SELECT id, coalesce(resolved_model, model), input_tokens, output_tokens, token_details, datetime_utc, thread_id,
        parent_message_hash, tip_message_hash FROM turns ORDER BY id";
    let mut select = database.prepare(sql)?;
    let mut rows = select.query([])?;
    let mut turns = Turns::new();
    while let Some(row) = rows.next()? {
        let (turn, thread) =
            (Turn::read(row)?, row.get::<_, Option<String>>(6)?.unwrap_or_default());
        for column in 7..9 {
            if let Some(hash) = row.get::<_, Option<String>>(column)? {
                turns.entry(hash).or_default().push((thread.clone(), turn.clone()));
            }
        }
    }
    Ok(turns)
}

/// Returns the messages of a thread, from the first one to `tip`.
fn chain(
    database: &Connection,
    thread: &str,
    tip: Option<String>,
    turns: &Turns,
) -> anyhow::Result<Vec<Message>> {
    let mut message = database.prepare("SELECT parent_hash, role FROM messages WHERE hash = ?")?;
    let (mut messages, mut next) = (Vec::new(), tip);
    while let Some(id) = next.filter(|_| messages.len() < MOST_MESSAGES) {
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, String>(1)?));
        let Some((parent, role)) = message.query_row([&id], read).optional()? else { break };
        // In a fork, the call was made by another thread.
        let all = turns.get(&id).map(Vec::as_slice).unwrap_or_default();
        let own = all.iter().find(|(own, _)| own == thread).or_else(|| all.first());
        let turn = own.map(|(_, turn)| turn.clone());
        messages.push(Message { parts: parts(database, &id)?, id, role, turn });
        next = parent;
    }
    messages.reverse();
    Ok(messages)
}

/// Returns the parts of a message.
fn parts(database: &Connection, message: &str) -> anyhow::Result<Vec<Part>> {
    let mut select = database.prepare(
        "SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position",
    )?;
    let mut rows = select.query([message])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let (kind, text): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let payload = row.get::<_, Option<String>>(2)?.unwrap_or_else(|| "{}".to_owned());
        let Ok(payload) = Object::parse(&payload) else { continue };
        let own = |name: &str| payload.string(name).unwrap_or_default().into_owned();
        // Models that number no calls have them in order.
        let id = payload.string("tool_call_id").map_or_else(|| own("name"), Cow::into_owned);
        parts.extend(match &*kind {
            "text" => Some(Part::Text(text_of(database, text, &payload)?)),
            "reasoning" => Some(Part::Reasoning(text_of(database, text, &payload)?)),
            "attachment" => {
                let attachment = payload.get("attachment").and_then(|it| Object::parse(it).ok());
                let id = attachment.and_then(|it| it.string("id").map(Cow::into_owned));
                id.map(|id| attachment_of(database, &id))
                    .transpose()?
                    .flatten()
                    .map(Part::Attachment)
            }
            "tool_call" => {
                let input = payload.get("arguments").unwrap_or("{}").to_owned();
                Some(Part::Call(id, own("name"), input))
            }
            "tool_result" => {
                let list = payload.get("attachments").and_then(elements).unwrap_or_default();
                let ids = list.into_iter().filter_map(|it| Object::parse(it).ok());
                let ids: Vec<String> =
                    ids.filter_map(|it| it.string("id").map(Cow::into_owned)).collect();
                let files = ids.iter().map(|id| attachment_of(database, id));
                let files =
                    files.filter_map(anyhow::Result::transpose).collect::<anyhow::Result<_>>()?;
                let has_failed = payload.string("exception").is_some();
                Some(Part::Result(id, own("output"), files, has_failed))
            }
            _ => None,
        });
    }
    Ok(parts)
}

/// Returns the text of a part: its own, or pieces of which some are fragments.
fn text_of(
    database: &Connection,
    text: Option<String>,
    payload: &Object<'_>,
) -> anyhow::Result<String> {
    let mut all = text.unwrap_or_default();
    for piece in payload.get("text_ref").and_then(elements).unwrap_or_default() {
        let Ok(piece) = Object::parse(piece) else { continue };
        all.push_str(&piece.string("literal").unwrap_or_default());
        if let Some(id) = piece.number("fragment") {
            let sql = "SELECT content FROM fragments WHERE id = ?";
            let fragment = database.query_row(sql, [id.cast_signed()], |row| row.get(0));
            all.push_str(&fragment.optional()?.unwrap_or_else(String::new));
        }
    }
    Ok(all)
}

fn attachment_of(database: &Connection, id: &str) -> anyhow::Result<Option<Attachment>> {
    let sql = "SELECT id, type, path, url, content FROM attachments WHERE id = ?";
    Ok(database.query_row(sql, [id], Attachment::read).optional()?)
}

// ---- older tables -------------------------------------------------------------------------------

/// Returns the messages of a conversation that an older version wrote.
fn responses(
    database: &Connection,
    conversation: &str,
    tables: &[String],
) -> anyhow::Result<Vec<Message>> {
    let sql = "SELECT * FROM responses WHERE conversation_id = ? ORDER BY id";
    let mut select = database.prepare(sql)?;
    let mut rows = select.query([conversation])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        // Versions differ in the columns that they have.
        let text = |name: &str| {
            row.get::<_, Option<String>>(name).ok().flatten().filter(|it| !it.is_empty())
        };
        let number = |name: &str| row.get::<_, Option<i64>>(name).ok().flatten();
        let id: String = row.get("id")?;
        let turn = Turn {
            id: id.clone(),
            model: text("resolved_model").or_else(|| text("model")),
            input: number("input_tokens"),
            output: number("output_tokens"),
            details: text("token_details"),
            time: text("datetime_utc"),
        };
        let mut add = |number: u8, role: &str, parts: Vec<Part>| {
            if !parts.is_empty() {
                let (id, role) = (format!("{id}/{number}"), role.to_owned());
                messages.push(Message { id, role, parts, turn: Some(turn.clone()) });
            }
        };
        let has = |table: &str| tables.iter().any(|it| it == table);
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        if has("tool_calls") && has("tool_results") {
            calls = each(
                database,
                "SELECT tool_call_id, name, arguments FROM tool_calls WHERE response_id = ? ORDER BY id",
                &id,
                |row| {
                    let [id, name, input] = texts(row)?;
                    Ok(Part::Call(
                        id.unwrap_or_else(|| name.clone().unwrap_or_default()),
                        name.unwrap_or_default(),
                        input.unwrap_or_else(|| "{}".to_owned()),
                    ))
                },
            )?;
            results = each(
                database,
                "SELECT tool_call_id, name, output, * FROM tool_results WHERE response_id = ? ORDER BY tool_results.id",
                &id,
                |row| {
                    let [id, name, output] = texts(row)?;
                    let has_failed =
                        row.get::<_, Option<String>>("exception").ok().flatten().is_some();
                    Ok(Part::Result(
                        id.or(name).unwrap_or_default(),
                        output.unwrap_or_default(),
                        Vec::new(),
                        has_failed,
                    ))
                },
            )?;
        }
        let mut prompt = Vec::new();
        let mut words: Vec<String> = Vec::new();
        if has("prompt_fragments") {
            let sql = "SELECT content FROM prompt_fragments JOIN fragments ON fragments.id = fragment_id WHERE response_id = ? ORDER BY \"order\"";
            words = each(database, sql, &id, |row| row.get(0))?;
        }
        words.extend(text("prompt"));
        if !words.is_empty() {
            prompt.push(Part::Text(words.join("\n")));
        }
        let sql = "SELECT id, type, path, url, content FROM prompt_attachments JOIN attachments ON id = attachment_id WHERE response_id = ? ORDER BY \"order\"";
        prompt
            .extend(each(database, sql, &id, Attachment::read)?.into_iter().map(Part::Attachment));
        let answer = text("reasoning").map(Part::Reasoning).into_iter();
        let answer = answer.chain(text("response").map(Part::Text)).chain(calls).collect();
        add(1, "system", text("system").map(Part::Text).into_iter().collect());
        add(2, "tool", results);
        add(3, "user", prompt);
        add(4, "assistant", answer);
    }
    Ok(messages)
}

/// Returns a value for each row that belongs to a response.
fn each<T>(
    database: &Connection,
    sql: &str,
    response: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    database.prepare(sql)?.query_map([response], read)?.collect()
}

fn texts(row: &Row<'_>) -> rusqlite::Result<[Option<String>; 3]> {
    Ok([row.get(0)?, row.get(1)?, row.get(2)?])
}

impl Turn {
    fn read(row: &Row<'_>) -> rusqlite::Result<Turn> {
        Ok(Turn {
            id: row.get(0)?,
            model: row.get(1)?,
            input: row.get(2)?,
            output: row.get(3)?,
            details: row.get(4)?,
            time: row.get(5)?,
        })
    }

    /// Adds the model and the counts to the record of a reply. If the provider names the cached part of the prompt, the number
    /// of tokens includes it.
    fn facts(&self, record: Members) -> Members {
        let record = record.optional(Members::string, "model", self.model.as_deref());
        let (Some(input), Some(output)) = (self.input, self.output) else { return record };
        let details = self.details.as_deref().filter(|it| Object::parse(it).is_ok());
        let is_whole = details.is_none_or(|it| it.contains("\"prompt_tokens_details\""));
        let names = if is_whole {
            ["prompt_tokens", "completion_tokens"]
        } else {
            ["input_tokens", "output_tokens"]
        };
        let usage = |it: Members| {
            let it = it.named(names[0], &input.to_string()).named(names[1], &output.to_string());
            details.map_or(it.clone(), |details| it.clone().spread(details))
        };
        record.object("usage", usage).string("request_id", &self.id)
    }
}

// ---- records ------------------------------------------------------------------------------------

impl Message {
    fn record(&self, kind: &str, number: usize) -> Members {
        let id = if number > 1 { format!("{}.{number}", self.id) } else { self.id.clone() };
        let time = self.turn.as_ref().and_then(|turn| micros(turn.time.as_deref()?));
        let record = Members::of_type(kind).string("id", &id);
        let seconds = time.map(|time| time as f64 / 1e6);
        record.optional(Members::decimal, "ts", seconds)
    }

    fn write(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let records = match &*self.role {
            "user" => self.prompt(),
            "tool" => self.results(),
            "assistant" => self.reply(),
            _ => Vec::new(),
        };
        let ignored = || {
            let texts = self.parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("\n");
            self.record(IMPORTED, 1)
                .object("record", |it| it.string("role", &self.role).string("content", &texts))
        };
        let records = if records.is_empty() { vec![ignored()] } else { records };
        records.into_iter().try_for_each(|record| Ok(writeln!(out, "{}", record.into_json())?))
    }

    fn prompt(&self) -> Vec<Members> {
        let blocks: Vec<String> = self.parts.iter().filter_map(Part::block).collect();
        if blocks.is_empty() {
            return Vec::new();
        }
        vec![self.record("user", 1).list("content", blocks)]
    }

    fn results(&self) -> Vec<Members> {
        let result = |(number, part): (usize, &Part)| {
            let Part::Result(id, text, files, has_failed) = part else { return None };
            let record = self.record("tool_result", number + 1).string("tool_use_id", id);
            let blocks: Vec<String> = files.iter().filter_map(Attachment::block).collect();
            let record = match blocks.is_empty() {
                true => record.string("content", text),
                false => record.list("content", [text_block(text)].into_iter().chain(blocks)),
            };
            Some(record.flag("is_error", *has_failed))
        };
        self.parts.iter().enumerate().filter_map(result).collect()
    }

    /// Returns the records of a reply: its text, and its calls. The text may be stored after the calls, but is sent before them.
    fn reply(&self) -> Vec<Members> {
        let blocks: Vec<String> = self.parts.iter().filter_map(Part::block).collect();
        let reasoning = self.parts.iter().filter_map(|part| match part {
            Part::Reasoning(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        let reasoning = reasoning.collect::<Vec<_>>().join("\n\n");
        let record = self.record("assistant", 1).list("content", blocks);
        let record = match &self.turn {
            Some(turn) => turn.facts(record),
            None => record,
        };
        let reasoning = Some(&*reasoning).filter(|text| !text.is_empty());
        let mut records = vec![record.optional(Members::string, "reasoning", reasoning)];
        for part in &self.parts {
            if let Part::Call(id, name, input) = part {
                let record = self.record("tool_use", records.len() + 1);
                let record = record.string("tool_use_id", id).string("name", name);
                records.push(record.raw("input", input));
            }
        }
        records
    }
}

impl Part {
    fn text(&self) -> Option<&str> {
        match self {
            Part::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the block of a text or an attachment.
    fn block(&self) -> Option<String> {
        match self {
            Part::Text(text) => Some(text_block(text)),
            Part::Attachment(attachment) => attachment.block(),
            _ => None,
        }
    }
}

fn text_block(text: &str) -> String {
    Members::of_type("text").string("text", text).into_json()
}

impl Attachment {
    fn read(row: &Row<'_>) -> rusqlite::Result<Attachment> {
        Ok(Attachment {
            id: row.get(0)?,
            kind: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
            path: row.get(2)?,
            url: row.get(3)?,
            data: row.get(4)?,
        })
    }

    /// Returns the block of an image or a document; of anything else, or if its data is gone, a text that says so.
    fn block(&self) -> Option<String> {
        let kind = match &*self.kind {
            kind if kind.starts_with("image/") => "image",
            "application/pdf" => "document",
            kind => {
                return Some(text_block(&format!("[attachment of the type '{kind}', left out]")));
            }
        };
        if let Some(url) = &self.url {
            let source = |it: Members| it.string("type", "url").string("url", url);
            return Some(Members::of_type(kind).object("source", source).into_json());
        }
        let Some(data) = self.data.clone().or_else(|| self.file()) else {
            return Some(text_block(&format!("[{kind} that is no longer there]")));
        };
        let data = BASE64_STANDARD.encode(data);
        let source = |it: Members| {
            it.string("type", "base64").string("media_type", &self.kind).string("data", &data)
        };
        Some(Members::of_type(kind).object("source", source).into_json())
    }

    /// Returns the content of the file that was attached, if it still has the same content: the id is its hash. So a path in a
    /// database from elsewhere discloses nothing that the database did not have.
    fn file(&self) -> Option<Vec<u8>> {
        let path = self.path.as_deref()?;
        if !std::fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
            return None;
        }
        let mut data = Vec::new();
        File::open(path).ok()?.take(MOST_FILE).read_to_end(&mut data).ok()?;
        let hash = Sha256::digest(&data);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        (hash == self.id).then_some(data)
    }
}
