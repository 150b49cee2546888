//! The conversations of llm since version 0.32: threads of messages.

use super::{Attachment, Message, Part, Turn, header};
use crate::values::{text, text_or_null};
use clawutils::json::{Object, elements};
use rusqlite::{Connection, OptionalExtension, Row};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Write;

/// The most messages of a conversation.
const MOST_MESSAGES: usize = 1_000_000;

/// The threads of a database.
pub struct Threads<'d> {
    database: &'d Connection,
    /// The thread and the row of each call, by the last message that it was sent and the last one that it gave.
    turns: HashMap<String, Vec<(String, i64)>>,
}

impl<'d> Threads<'d> {
    /// Finds the calls of all threads. A call whose messages have odd names is the call of none.
    pub fn new(database: &'d Connection) -> rusqlite::Result<Threads<'d>> {
        let sql =
            "SELECT rowid, thread_id, parent_message_hash, tip_message_hash FROM turns ORDER BY id";
        let mut select = database.prepare(sql)?;
        let mut rows = select.query([])?;
        let mut turns: HashMap<String, Vec<(String, i64)>> = HashMap::new();
        while let Some(row) = rows.next()? {
            let thread = text_or_null(row, 1).ok().flatten().unwrap_or_default();
            for column in 2..4 {
                if let Ok(Some(hash)) = text_or_null(row, column) {
                    turns.entry(hash).or_default().push((thread.clone(), row.get(0)?));
                }
            }
        }
        Ok(Threads { database, turns })
    }

    /// Writes the records of a thread.
    pub fn write(&self, id: &str, out: &mut dyn Write) -> anyhow::Result<()> {
        let sql = "SELECT tip_message_hash, datetime_utc, forked_from FROM threads WHERE id = ?";
        let read = |row: &Row<'_>| {
            Ok((text_or_null(row, 0)?, text_or_null(row, 1)?, text_or_null(row, 2)?))
        };
        let (tip, created, parent) = self.database.query_row(sql, [id], read)?;
        let messages = self.chain(id, tip)?;
        header(id, created, parent.as_deref(), out)?;
        messages.iter().try_for_each(|message| message.write(out))
    }

    /// Returns the messages of a thread, from the first one to `tip`.
    fn chain(&self, thread: &str, tip: Option<String>) -> anyhow::Result<Vec<Message>> {
        let mut message =
            self.database.prepare("SELECT parent_hash, role FROM messages WHERE hash = ?")?;
        let (mut messages, mut seen, mut next) = (Vec::new(), HashSet::new(), tip);
        // Damage may let a message be its own ancestor.
        while let Some(id) = next.filter(|id| seen.len() < MOST_MESSAGES && seen.insert(id.clone()))
        {
            let read = |row: &Row<'_>| Ok((text_or_null(row, 0)?, text(row, 1)?));
            let Some((parent, role)) = message.query_row([&id], read).optional()? else { break };
            let turn = self.turn(&id, thread)?;
            messages.push(Message { parts: parts(self.database, &id)?, id, role, turn });
            next = parent;
        }
        messages.reverse();
        Ok(messages)
    }

    /// Returns the call that a message belongs to.
    fn turn(&self, message: &str, thread: &str) -> rusqlite::Result<Option<Turn>> {
        // In a fork, the call was made by another thread.
        let all = self.turns.get(message).map(Vec::as_slice).unwrap_or_default();
        let Some((_, row)) = all.iter().find(|(own, _)| own == thread).or_else(|| all.first())
        else {
            return Ok(None);
        };
        let sql = "SELECT id, coalesce(resolved_model, model) AS model, input_tokens, output_tokens, token_details, datetime_utc
            FROM turns WHERE rowid = ?";
        self.database.query_row(sql, [row], Turn::read).map(Some)
    }
}

/// Returns the parts of a message.
fn parts(database: &Connection, message: &str) -> anyhow::Result<Vec<Part>> {
    let mut select = database.prepare(
        "SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position",
    )?;
    let mut rows = select.query([message])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        let (kind, words) = (text(row, 0)?, text_or_null(row, 1)?);
        let payload = text_or_null(row, 2)?.unwrap_or_else(|| "{}".to_owned());
        let Ok(payload) = Object::parse(&payload) else { continue };
        let own = |name: &str| payload.string(name).unwrap_or_default().into_owned();
        // Models that number no calls have them in order.
        let id = payload.string("tool_call_id").map_or_else(|| own("name"), Cow::into_owned);
        parts.extend(match &*kind {
            "text" => Some(Part::Text(text_of(database, words, &payload)?)),
            "reasoning" => Some(Part::Reasoning(text_of(database, words, &payload)?)),
            "attachment" => {
                let id = payload.object("attachment").and_then(|it| it.string("id"));
                let found = id.map(|id| attachment_of(database, &id)).transpose()?;
                found.flatten().map(Part::Attachment)
            }
            "tool_call" => {
                let input = payload.get("arguments").unwrap_or("{}").to_owned();
                Some(Part::Call(id, own("name"), input))
            }
            "tool_result" => {
                let list = payload.get("attachments").and_then(elements).unwrap_or_default();
                let ids = list.into_iter().filter_map(|it| Object::parse(it).ok());
                let files =
                    ids.filter_map(|it| attachment_of(database, &it.string("id")?).transpose());
                let files = files.collect::<anyhow::Result<_>>()?;
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
    own: Option<String>,
    payload: &Object<'_>,
) -> anyhow::Result<String> {
    let mut all = own.unwrap_or_default();
    for piece in payload.get("text_ref").and_then(elements).unwrap_or_default() {
        let Ok(piece) = Object::parse(piece) else { continue };
        all.push_str(&piece.string("literal").unwrap_or_default());
        if let Some(id) = piece.number("fragment") {
            let sql = "SELECT content FROM fragments WHERE id = ?";
            let fragment = database.query_row(sql, [id.cast_signed()], |row| text(row, 0));
            all.push_str(&fragment.optional()?.unwrap_or_else(String::new));
        }
    }
    Ok(all)
}

fn attachment_of(database: &Connection, id: &str) -> anyhow::Result<Option<Attachment>> {
    let sql = "SELECT id, type, path, url, content FROM attachments WHERE id = ?";
    Ok(database.query_row(sql, [id], Attachment::read).optional()?)
}
