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

mod older;
mod records;
mod threads;

use crate::conversations::Conversations;
use clawutils::dialect::time::of_text;
use clawutils::json;
use clawutils::json::write::Members;
use clawutils::session::time;
use older::Older;
use rusqlite::Connection;
use std::collections::HashSet;
use std::io::Write;
use threads::Threads;

/// The tables that tell the database.
pub const TABLES: [&str; 4] = ["conversations", "responses", "attachments", "prompt_attachments"];

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
pub fn write(
    database: &Connection,
    tables: &HashSet<String>,
    out: &mut Conversations<'_>,
) -> anyhow::Result<()> {
    let mut newer: HashSet<String> = HashSet::new();
    if tables.contains("threads") {
        let threads = Threads::new(database)?;
        out.each(database, "SELECT id FROM threads ORDER BY id", |id, _, out| {
            newer.insert(id.to_owned());
            threads.write(id, out)
        })?;
    }
    let older = Older::new(database, tables)?;
    out.each(database, "SELECT id FROM conversations ORDER BY id", |id, _, out| {
        let messages = if newer.contains(id) { return Ok(()) } else { older.messages(id)? };
        let first = messages.iter().find_map(|it| it.turn.as_ref()?.time.clone());
        header(id, first, None, out)?;
        messages.iter().try_for_each(|message| message.write(out))
    })
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
