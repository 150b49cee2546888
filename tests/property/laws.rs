//! Laws that hold for every conversation. Each check returns a description of the fault if its law is broken.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::any::{Law, is_accepted, lines, only_grows, rebuild, rebuild_all, same};
use super::model::{self, Answered, Contents};
use super::records::{Body, Conversation, Id, Item, Piece};
use clawutils::input::Input;
use clawutils::messages::Message;
use clawutils::messages::rebuild::{Form, RebuildOptions, Rebuilt};

/// Checks all laws about rebuilt messages.
pub fn of_rebuild(conversation: &Conversation) -> Law {
    let written = conversation.write();
    let rebuilt = rebuild(&written.bytes)?;
    is_accepted(&rebuilt.messages, &written.bytes)?;
    nothing_is_lost(conversation, &rebuilt)?;
    is_the_same_however_read(&written.bytes, &rebuilt)
}

/// Returns messages as JSON values.
pub fn values(messages: &[Message<'_>]) -> Result<Vec<Value>, String> {
    let value = |line: String| serde_json::from_str(&line).map_err(|e| format!("{e}: {line}"));
    lines(messages).into_iter().map(value).collect()
}

// ---- nothing is lost ------------------------------------------------------------------------

/// Checks that every text and call that no view record hides appears once and in order, and that every result belongs
/// to its call. Only repeated calls and the thinking at the end of a reply may be missing.
fn nothing_is_lost(conversation: &Conversation, rebuilt: &Rebuilt) -> Law {
    let written = conversation.write();
    let view = model::view(conversation, &written);
    let messages = values(&rebuilt.messages)?;
    let mut actual = model::actual(&messages)?;
    for call in actual.calls.iter_mut().filter(|call| call.1 == Answered::Interrupted) {
        call.1 = Answered::Open;
    }
    let repeated = repeated(&view, &actual)?;
    let mut expected = model::expected(&view, &repeated);
    let last_thoughts = last_thoughts(&view, &repeated);
    expected.words.retain(|mark| actual.words.contains(mark) || !last_thoughts.contains(mark));
    if expected != actual {
        return Err(format!("the records contain\n  {expected:?}\nbut the messages\n  {actual:?}"));
    }
    let summary = view.governing.map(|key| format!("s{key} so far"));
    let first = messages.first().map(|first| first["content"].to_string()).unwrap_or_default();
    match summary {
        Some(summary) if !first.contains(&summary) => Err(format!("no summary '{summary}'")),
        None if first.contains("Previous conversation") => {
            Err("a summary without a compaction".to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the numbers, counted from 1, of the shown calls that are missing from the messages. Each missing call must
/// follow a call with the same id, without user text between them.
fn repeated(view: &model::View<'_>, actual: &Contents) -> Result<HashSet<usize>, String> {
    let mut found = actual.calls.iter().map(|(mark, _)| *mark).peekable();
    let (mut repeated, mut number, mut turn) = (HashSet::new(), 0, 0);
    let mut turns = HashMap::new();
    for item in &view.shown {
        turn += usize::from(item.is_from_user());
        for call in item.calls() {
            number += 1;
            if found.next_if_eq(&call.mark).is_some() {
                turns.insert(&call.id, turn);
            } else if turns.get(&call.id) == Some(&turn) {
                repeated.insert(number);
            } else {
                return Err(format!("call {} '{}' is lost", call.mark, call.id));
            }
        }
    }
    Ok(repeated)
}

/// Returns the marks of the thinking blocks that may be missing: those after which the assistant writes no text and
/// makes no new call before the next user text or result.
fn last_thoughts(view: &model::View<'_>, repeated: &HashSet<usize>) -> HashSet<usize> {
    let (mut last, mut open, mut number) = (HashSet::new(), Vec::new(), 0);
    for item in &view.shown {
        number += item.calls().len();
        let is_new_call = item.calls().len() == 1 && !repeated.contains(&number);
        match &item.body {
            Body::Call(_) if is_new_call => open.clear(),
            Body::Assistant(content) => {
                let mut at = number - item.calls().len();
                for piece in content.held() {
                    match piece {
                        Piece::Thinking(mark, true) | Piece::Redacted(mark) => open.push(*mark),
                        Piece::Text(..) => open.clear(),
                        Piece::Result(_) => last.extend(open.drain(..)),
                        Piece::Call(_) => {
                            at += 1;
                            if !repeated.contains(&at) {
                                open.clear();
                            }
                        }
                        _ => {}
                    }
                }
            }
            Body::Result(_) | Body::User(_) => last.extend(open.drain(..)),
            _ => {}
        }
    }
    last.extend(open);
    last
}

// ---- ways of reading ------------------------------------------------------------------------

/// Checks that all ways to read a transcript give the same messages: a second time, message by message, from a file,
/// and split into several inputs.
fn is_the_same_however_read(bytes: &[u8], rebuilt: &Rebuilt) -> Law {
    let expected: Vec<String> = rebuilt.messages.iter().map(Message::to_line).collect();
    let input = || Input::memory("t", bytes.to_vec());
    let lines_of = |inputs: &[Input]| -> Result<Vec<String>, String> {
        Ok(rebuild_all(inputs)?.messages.iter().map(Message::to_line).collect())
    };
    same("rebuilt a second time", &lines_of(&[input()])?, &expected)?;
    same("streamed message by message", &streamed(&input())?, &expected)?;
    same("read from a file", &lines_of(&[file(bytes)?])?, &expected)?;
    let all: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for size in [1, all.len().div_ceil(2).max(1)] {
        let parts = all.chunks(size).map(|part| Input::memory("t", part.concat()));
        same("split into several inputs", &lines_of(&parts.collect::<Vec<_>>())?, &expected)?;
    }
    Ok(())
}

fn streamed(input: &Input) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    let form = Form { array: false, meta: true };
    form.stream(std::slice::from_ref(input), &RebuildOptions::default(), &mut out)
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8(out).map_err(|error| error.to_string())?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn file(bytes: &[u8]) -> Result<Input, String> {
    let file = || -> std::io::Result<Input> {
        let mut file = tempfile::tempfile()?;
        std::io::Write::write_all(&mut file, bytes)?;
        Input::file("t", file)
    };
    file().map_err(|error| error.to_string())
}

// ---- appended records extend only the end ---------------------------------------------------

/// Checks that, unless a view record is added, appending records leaves all messages but the last unchanged and only
/// extends the last. The only exception is a late result, which replaces its placeholder.
pub fn appended_records_change_only_the_end(conversation: &Conversation) -> Law {
    let mut before: Option<Rebuilt> = None;
    let mut prefix = Conversation { items: Vec::new(), ended: true, ..conversation.clone() };
    for line in conversation.lines() {
        prefix.items.extend_from_slice(line);
        let rebuilt = rebuild(&prefix.write().bytes)?;
        let is_view = line.iter().any(|item| item.body.is_view());
        if let Some(then) = before.take().filter(|_| !is_view) {
            only_grows(&then.messages, &rebuilt.messages).map_err(|why| {
                format!("line {} changes earlier messages: {why}", prefix.lines().len())
            })?;
        }
        before = Some(rebuilt);
    }
    Ok(())
}

// ---- preconditions of laws ------------------------------------------------------------------

/// Returns true if every id belongs to only one record. If two records share an id, a view record that names the id
/// refers to the later record.
pub fn has_plain_ids(conversation: &Conversation) -> bool {
    conversation.items.iter().all(|item| !matches!(item.id, Id::Same(_)))
}

/// Returns true if no two calls have the same id.
pub fn has_unique_calls(conversation: &Conversation) -> bool {
    let mut ids = HashSet::new();
    conversation.items.iter().flat_map(Item::calls).all(|call| ids.insert(&call.id))
}
