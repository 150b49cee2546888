//! The expected content of a conversation's messages, derived from its records alone.
//!
//! The model does not depend on how rebuild works, and is as simple as possible: it does not stream, and has the
//! whole conversation in memory.

use std::collections::{BTreeMap, HashSet, VecDeque};

use serde_json::Value;

use super::records::{Answer, Body, Call, Conversation, Form, Hint, Item, Piece, Written};
use clawutils::messages::fold::{INTERRUPTED, NO_OUTPUT};

/// The part of a conversation that no view record hides.
pub struct View<'t> {
    /// The key of the compaction that applies.
    pub governing: Option<usize>,
    /// The items from which the messages are made, in order.
    pub shown: Vec<&'t Item>,
}

/// Returns the part of a conversation that its compactions and retractions leave.
pub fn view<'t>(conversation: &'t Conversation, written: &Written) -> View<'t> {
    let mut retracted = HashSet::new();
    let mut governing = None;
    let mut first = 0;
    for (at, item) in conversation.items.iter().enumerate().rev() {
        if at < first {
            break;
        }
        if retracted.contains(&written.ids[at]) {
            continue;
        }
        match &item.body {
            Body::Retract { target } => {
                retracted.insert(id_of(conversation, written, *target, at));
            }
            Body::Compaction { kept, hint } if governing.is_none() => {
                if let Some(kept) = first_kept(conversation, written, *kept, *hint, at) {
                    (governing, first) = (Some(item.key), kept);
                }
            }
            _ => {}
        }
    }
    let counts = |(at, item): &(usize, &Item)| {
        *at >= first
            && !retracted.contains(&written.ids[*at])
            && !matches!(item.body, Body::Junk(_))
    };
    let shown =
        conversation.items.iter().enumerate().filter(counts).map(|(_, item)| item).collect();
    View { governing, shown }
}

/// Returns the id of the record with this key, or an id that no record has if there is none before position `end`.
fn id_of(conversation: &Conversation, written: &Written, key: usize, end: usize) -> String {
    let at = conversation.position(key).filter(|at| *at < end);
    at.map_or("nowhere".to_owned(), |at| written.ids[at].clone())
}

/// Returns the position of the first record that a compaction at position `end` keeps: the one that the hint names
/// if it is right, else the nearest one before `end` that has the id.
fn first_kept(
    conversation: &Conversation,
    written: &Written,
    key: usize,
    hint: Hint,
    end: usize,
) -> Option<usize> {
    let id = id_of(conversation, written, key, end);
    let is_record = |at: &usize| !matches!(conversation.items[*at].body, Body::Junk(_));
    match conversation.position(key).filter(|at| *at < end && hint == Hint::Right && is_record(at))
    {
        Some(at) => Some(at),
        None => (0..end).rev().filter(is_record).find(|at| written.ids[*at] == id),
    }
}

// ---- content --------------------------------------------------------------------------------

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    By(usize),
    WithNothing,
    Interrupted,
    Open,
}

/// The content of messages. Each piece of text, image, thinking and call is represented by its mark.
#[derive(Debug, Default, PartialEq)]
pub struct Contents {
    /// The marks of all text (and images and thinking), in order.
    pub words: Vec<usize>,
    /// The calls in order, each with its answer.
    pub calls: Vec<(usize, Answered)>,
}

/// Returns the content of the shown items. `repeated` has the numbers of the calls that are dropped because
/// their reply already has a call with the same id.
pub fn expected(view: &View<'_>, repeated: &HashSet<usize>) -> Contents {
    let mut words = Vec::new();
    let mut pairs = Pairs::default();
    for item in &view.shown {
        match &item.body {
            Body::Call(call) => pairs.call(call, repeated),
            Body::Result(answer) => pairs.answer(answer),
            Body::User(content) => {
                let pieces = content.held().iter();
                pieces.clone().filter_map(Piece::answer).for_each(|answer| pairs.answer(answer));
                // Calls and thinking in user records do not count.
                let expected = pieces.filter_map(|piece| match piece {
                    Piece::Text(mark, _) | Piece::Image(mark) => Some(*mark),
                    _ => None,
                });
                let count = words.len();
                words.extend(expected);
                if words.len() > count {
                    pairs.end_reply();
                }
            }
            Body::Assistant(content) => {
                pairs.continue_reply();
                content.held().iter().for_each(|piece| match piece {
                    Piece::Text(mark, _) | Piece::Redacted(mark) | Piece::Thinking(mark, true) => {
                        words.push(*mark);
                    }
                    Piece::Call(call) => pairs.call(call, repeated),
                    Piece::Result(answer) => pairs.answer(answer),
                    _ => {}
                });
            }
            _ => {}
        }
    }
    let calls = pairs.calls.into_iter();
    let calls = calls.map(|asked| (asked.mark, asked.answer.unwrap_or(Answered::Open)));
    Contents { words, calls: calls.collect() }
}

/// The calls and results so far, by id.
///
/// A result belongs to the nearest earlier call with the same id, if that call has no result yet. A result that
/// precedes every call with its id is early: it waits for the next such call, and each call gets at most one early
/// result. A call keeps its early result only if no other result has followed the call by the end of its reply. A reply
/// ends at a user text or at the next reply.
#[derive(Default)]
struct Pairs {
    calls: Vec<Asked>,
    /// The number of calls so far, including those that are dropped.
    number: usize,
    /// For each id its newest call (a position in `calls`), and the results that wait for a call.
    by_id: BTreeMap<String, (Option<usize>, VecDeque<Answered>)>,
    /// The current reply.
    reply: Option<Reply>,
}

struct Asked {
    mark: usize,
    answer: Option<Answered>,
    early: Option<Answered>,
}

#[derive(Default)]
struct Reply {
    calls: Vec<usize>,
    /// True if one of the calls has a result after it.
    is_answered: bool,
}

impl Pairs {
    /// Ends the reply at a user text or at the next reply.
    fn end_reply(&mut self) {
        for at in self.reply.take().unwrap_or_default().calls {
            let asked = &mut self.calls[at];
            asked.answer = asked.answer.take().or(asked.early.take());
        }
    }

    /// Continues the current reply with an assistant record, or begins a reply.
    fn continue_reply(&mut self) {
        if let Some(reply) = &self.reply {
            let mut calls = reply.calls.iter();
            let is_early =
                !reply.calls.is_empty() && calls.all(|at| self.calls[*at].early.is_some());
            if reply.is_answered || is_early {
                self.end_reply();
            }
        }
        self.reply.get_or_insert_default();
    }

    fn call(&mut self, call: &Call, repeated: &HashSet<usize>) {
        self.number += 1;
        if repeated.contains(&self.number) {
            return;
        }
        if self.reply.as_ref().is_some_and(|reply| reply.is_answered) {
            self.end_reply();
        }
        let at = self.calls.len();
        let (newest, early) = self.by_id.entry(call.id.clone()).or_default();
        *newest = Some(at);
        self.calls.push(Asked { mark: call.mark, answer: None, early: early.pop_front() });
        self.reply.get_or_insert_default().calls.push(at);
    }

    fn answer(&mut self, answer: &Answer) {
        let by = match answer.form {
            Form::Empty(_) => Answered::WithNothing,
            _ => Answered::By(answer.mark),
        };
        let (newest, early) = self.by_id.entry(answer.id.clone()).or_default();
        let Some(at) = *newest else { return early.push_back(by) };
        let asked = &mut self.calls[at];
        if asked.answer.is_none() {
            (asked.answer, asked.early) = (Some(by), None);
            let reply = self.reply.iter_mut().find(|reply| reply.calls.contains(&at));
            reply.into_iter().for_each(|reply| reply.is_answered = true);
        }
    }
}

/// Returns the content of messages.
///
/// # Errors
/// Reports content that is in no record.
pub fn actual(messages: &[Value]) -> Result<Contents, String> {
    let mut actual = Contents::default();
    for (n, message) in messages.iter().enumerate() {
        let answers = messages.get(n + 1).map(results).unwrap_or_default();
        for block in blocks(message) {
            match block["type"].as_str() {
                Some("tool_use") => {
                    let mark = block["input"]["n"].as_u64().unwrap_or_default() as usize;
                    let answer = answers.get(&block["id"].to_string());
                    actual.calls.push((mark, answer.cloned().unwrap_or(Answered::Open)));
                }
                Some("tool_result") => {}
                _ => match mark(&block, 'w') {
                    Some(mark) => actual.words.push(mark),
                    // Only the first two messages can have text that rebuild adds.
                    None if n < 2 => {}
                    None => return Err(format!("content without a record: {block}")),
                },
            }
        }
    }
    Ok(actual)
}

/// Returns the blocks of a message; a string is one block.
pub fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        text => vec![serde_json::json!({"type": "text", "text": text})],
    }
}

/// Returns the results in a message, keyed by the ids of their calls.
fn results(message: &Value) -> BTreeMap<String, Answered> {
    let blocks = blocks(message);
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    results.map(|block| (block["tool_use_id"].to_string(), answered(&block["content"]))).collect()
}

fn answered(content: &Value) -> Answered {
    match content {
        Value::String(text) if text == NO_OUTPUT => Answered::WithNothing,
        Value::String(text) if text == INTERRUPTED => Answered::Interrupted,
        Value::String(text) => Answered::By(mark_in(text, 'r').unwrap_or_default()),
        content => {
            let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
            let mark = blocks.iter().find_map(|block| mark(block, 'r'));
            Answered::By(mark.unwrap_or_default())
        }
    }
}

/// Returns the mark of a block.
fn mark(block: &Value, letter: char) -> Option<usize> {
    let texts = [&block["text"], &block["thinking"], &block["data"], &block["source"]["url"]];
    texts.into_iter().find_map(|text| mark_in(text.as_str()?, letter))
}

fn mark_in(text: &str, letter: char) -> Option<usize> {
    text.strip_prefix(letter)?.split(' ').next()?.parse().ok()
}
