//! The conversations of llm since version 0.32: threads of messages.

use super::{Attachment, Message, Part, Turn};
use clawutils::json::{Object, elements};
use rusqlite::{Connection, OptionalExtension, Row};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The most messages of a conversation.
const MOST_MESSAGES: usize = 1_000_000;

/// The calls of all threads: the thread and the call, by the last message that it was sent and the last one that it gave.
pub type Turns = HashMap<String, Vec<(String, Turn)>>;

/// Returns the calls of all threads.
pub fn turns(database: &Connection) -> rusqlite::Result<Turns> {
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
pub fn chain(
    database: &Connection,
    thread: &str,
    tip: Option<String>,
    turns: &Turns,
) -> anyhow::Result<Vec<Message>> {
    let mut message = database.prepare("SELECT parent_hash, role FROM messages WHERE hash = ?")?;
    let (mut messages, mut seen, mut next) = (Vec::new(), HashSet::new(), tip);
    // Damage may let a message be its own ancestor.
    while let Some(id) = next.filter(|id| seen.len() < MOST_MESSAGES && seen.insert(id.clone())) {
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
