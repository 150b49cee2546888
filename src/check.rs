//! Findings, and the rules that a list of messages must keep.
//!
//! A [`Finding`] is something wrong in an input, with its place; reading goes on. The rules of
//! [`messages`] are those by which a provider refuses a request: rebuild must never break one, and
//! `claw-call` refuses to send what does.

pub mod chain;
pub mod lint;
pub mod rules;

use crate::json::push_quoted;
use crate::messages::{Block, BlockKind, Content, Id, Message, Role};
use rules::Rule;
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::sync::Arc;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing was lost.
    Note,
    /// Mended on the way out; something stands in the file that no provider would take.
    Warning,
    /// Bytes that could not be used.
    Error,
}

impl Severity {
    /// The word for it in messages and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The place of a line in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The input's name: a path, or `<stdin>`.
    pub input: Arc<str>,
    /// Line number, from 1; unknown where reading began in the middle.
    pub line: Option<u64>,
    /// Byte offset of the line in its input, from 0.
    pub offset: u64,
    /// The line's length in bytes, without its end.
    pub length: u64,
}

/// Something wrong at a place of an input; it never stops the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// Where.
    pub place: Place,
    /// The record's id, if the line holds a record.
    pub id: Option<Id>,
    /// What is wrong and what was done about it.
    pub message: String,
}

impl Finding {
    /// The finding as members of a JSON object, without braces.
    #[must_use]
    pub fn members(&self) -> String {
        let mut json = String::new();
        self.push_members(&mut json);
        json
    }

    /// Adds the finding as a JSON object to `json`.
    pub fn push_json(&self, json: &mut String) {
        json.push('{');
        self.push_members(json);
        json.push_str(r#","message":"#);
        push_quoted(json, &self.message);
        json.push('}');
    }

    fn push_members(&self, json: &mut String) {
        let (Place { input, line, offset, length }, rule) = (&self.place, self.rule);
        json.push_str(r#""rule":"#);
        push_quoted(json, rule.name);
        json.push_str(r#","severity":"#);
        push_quoted(json, rule.severity.name());
        json.push_str(r#","input":"#);
        push_quoted(json, input);
        // Writing into a String cannot fail.
        let _ = match line {
            Some(line) => write!(json, r#","line":{line}"#),
            None => write!(json, r#","line":null"#),
        };
        let _ = write!(json, r#","offset":{offset},"length":{length},"id":"#);
        match &self.id {
            Some(id) => push_quoted(json, id),
            None => json.push_str("null"),
        }
        json.push_str(if rule.mended { r#","mended":true"# } else { r#","mended":false"# });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { input, line, offset, length } = &self.place;
        let (rule, message) = (self.rule.name, &self.message);
        write!(f, "{rule}: '{input}'")?;
        line.map_or(Ok(()), |line| write!(f, " line {line},"))?;
        write!(f, " byte {offset}, {length} bytes: {message}")
    }
}

/// A rule that a list of messages breaks: a provider would refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name, a kebab-case word such as `open-call`.
    pub rule: &'static str,
    /// Index of the message, from 0.
    pub message: usize,
    /// What is wrong, naming ids.
    pub what: String,
    /// True when the list is sound but not ready: it ends on the assistant, or a call at its end is
    /// still open. More records mend that; they do not mend the other rules.
    pub unfinished: bool,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: message {}: {}", self.rule, self.message + 1, self.what)
    }
}

/// Checks `messages` as the Anthropic Messages API would (its rules on roles, order, pairs, ids and
/// empty text, and thinking), and returns every rule that is broken, in message order. An empty result means that
/// the list can be sent.
#[must_use]
pub fn messages(messages: &[Message<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    if messages.is_empty() {
        let nothing = broken("no-messages", 0, "there is nothing to send");
        found.push(Violation { unfinished: true, ..nothing });
    }
    let mut seen = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        check_role(messages, index, &mut found);
        check_blocks(message, index, &mut found);
        check_calls(messages, index, &mut seen, &mut found);
        check_results(messages, index, &mut found);
    }
    if let Some((index, last)) = messages.iter().enumerate().next_back()
        && last.role == Role::Assistant
        && last.calls().next().is_none()
    {
        found.push(Violation {
            unfinished: true,
            ..broken("assistant-last", index, "it ends on the assistant")
        });
    }
    found
}

fn broken(rule: &'static str, message: usize, what: impl Into<String>) -> Violation {
    Violation { rule, message, what: what.into(), unfinished: false }
}

fn check_role(messages: &[Message<'_>], index: usize, found: &mut Vec<Violation>) {
    let role = messages[index].role;
    if index == 0 && role != Role::User {
        found.push(broken("first-message", index, "the first message is not the user's"));
    }
    if index > 0 && messages[index - 1].role == role {
        found.push(broken("roles-alternate", index, format!("two {role} messages in a row")));
    }
}

fn check_blocks(message: &Message<'_>, index: usize, found: &mut Vec<Violation>) {
    if message.is_empty() {
        found.push(broken("empty-message", index, "it has no content"));
    }
    for block in message.blocks() {
        match &block.kind {
            BlockKind::Blank => {
                found.push(broken("blank-text", index, "a text block is empty or white space"));
            }
            BlockKind::Thinking { .. } | BlockKind::Media if !block.fits(message.role) => {
                let what = format!("a block in it is not one of the {}'s", message.role);
                found.push(broken("block-role", index, what));
            }
            BlockKind::Thinking { signed: false } => {
                let what = "a thinking block has no signature or no data";
                found.push(broken("unsigned-thinking", index, what));
            }
            _ => {}
        }
    }
    let last = message.blocks().last();
    if message.role == Role::Assistant && last.is_some_and(Block::is_thinking) {
        found.push(broken("final-thinking", index, "its last block is thinking"));
    }
    let mut past_results = false;
    for block in message.blocks() {
        match block.kind {
            BlockKind::ToolResult { .. } if past_results => {
                found.push(broken("results-first", index, "a result stands after other content"));
            }
            BlockKind::ToolResult { .. } => {}
            _ => past_results = true,
        }
    }
}

fn check_calls<'m>(
    messages: &'m [Message<'_>],
    index: usize,
    seen: &mut HashSet<&'m str>,
    found: &mut Vec<Violation>,
) {
    let message = &messages[index];
    let next = messages.get(index + 1);
    if message.calls().next().is_none() {
        return;
    }
    let answers: HashSet<&str> = next.into_iter().flat_map(Message::results).collect();
    let unfinished = index + 2 >= messages.len()
        && next.is_none_or(|next| next.blocks().all(|block| block.is_result()));
    for id in message.calls() {
        if message.role != Role::Assistant {
            found.push(broken("call-role", index, format!("call '{id}' is not the assistant's")));
        }
        if !is_id(id) {
            let what =
                format!("call id '{id}' is not of letters, digits, '_' and '-' (at most 64)");
            found.push(broken("call-id", index, what));
        }
        if !seen.insert(id) {
            found.push(broken("call-twice", index, format!("call id '{id}' comes twice")));
        }
        if !answers.contains(id) {
            let what = format!("call '{id}' has no result in the next message");
            found.push(Violation { unfinished, ..broken("open-call", index, what) });
        }
    }
}

fn check_results(messages: &[Message<'_>], index: usize, found: &mut Vec<Violation>) {
    let message = &messages[index];
    let before = index.checked_sub(1).map(|before| &messages[before]);
    if message.results().next().is_none() {
        return;
    }
    let calls: HashSet<&str> = before.into_iter().flat_map(Message::calls).collect();
    let mut here = HashSet::new();
    for id in message.results() {
        if message.role != Role::User {
            found.push(broken("result-role", index, format!("result of '{id}' is not the user's")));
        }
        if !calls.contains(id) {
            let what = format!("result of '{id}' has no call in the message before");
            found.push(broken("orphan-result", index, what));
        }
        if !here.insert(id) {
            found.push(broken("result-twice", index, format!("two results for call '{id}'")));
        }
    }
}

/// Whether `id` is one that the API takes: letters, digits, `_` and `-`, 1 to 64 of them.
#[must_use]
pub fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&id.len()) && id.bytes().all(fits)
}

/// Whether `content` says nothing: a blank string, or no block.
#[must_use]
pub fn says_nothing(content: &Content<'_>) -> bool {
    match content {
        Content::Text(raw) => crate::json::is_blank(raw),
        Content::Blocks(blocks) => blocks.is_empty(),
    }
}
