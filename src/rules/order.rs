//! The rules on how messages and blocks follow each other, and on what a block must have. The messages that claw-rebuild
//! writes break none of them, except that the conversation may be unfinished. claw-check reports violations, and claw-call
//! refuses to send messages that break one.

use crate::exit::{Exit, fail};
use crate::id::is_id;
use crate::record::content::{Block, BlockKind, Content, Role};
use crate::rules::media;
use std::collections::HashSet;
use std::fmt;

/// A message, as far as the rules look at it.
pub trait Said {
    /// Returns the role of its author.
    fn role(&self) -> Role;
    /// Returns its content.
    fn content(&self) -> &Content<'_>;
}

/// A violation of a rule: a provider would refuse the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name, a kebab-case word such as `open-call`.
    pub rule: &'static str,
    /// The index of the message, from 0.
    pub message: usize,
    /// The problem, including the ids involved.
    pub what: String,
    /// True if the messages are valid but incomplete: there are none, the last one is the assistant's, or a tool call
    /// at the end has no result yet. Further records can complete the messages, but cannot repair any other violation.
    pub unfinished: bool,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: message {}: {}", self.rule, self.message + 1, self.what)
    }
}

/// Checks `messages` against the rules of the Anthropic Messages API on roles, order, pairs of calls and results, ids,
/// empty text and thinking. Returns every violation, in the order of the messages. If there is none, the messages can
/// be sent.
#[must_use]
pub fn violations(messages: &[impl Said]) -> Vec<Violation> {
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
        && last.role() == Role::Assistant
        && last.content().calls().next().is_none()
    {
        found.push(Violation {
            unfinished: true,
            ..broken("assistant-last", index, "the last message is the assistant's")
        });
    }
    found
}

fn broken(rule: &'static str, message: usize, what: impl Into<String>) -> Violation {
    Violation { rule, message, what: what.into(), unfinished: false }
}

fn check_role(messages: &[impl Said], index: usize, found: &mut Vec<Violation>) {
    let role = messages[index].role();
    if index == 0 && role != Role::User {
        found.push(broken("first-message", index, "the first message is not the user's"));
    }
    if index > 0 && messages[index - 1].role() == role {
        found.push(broken("roles-alternate", index, format!("two {role} messages in a row")));
    }
}

fn check_blocks(message: &impl Said, index: usize, found: &mut Vec<Violation>) {
    if message.content().is_empty() {
        found.push(broken("empty-message", index, "it has no content"));
    }
    for block in message.content().blocks().iter() {
        match &block.kind {
            BlockKind::Blank => {
                found.push(broken("blank-text", index, "a text block is empty or white space"));
            }
            BlockKind::Thinking { .. } | BlockKind::Media if !block.fits(message.role()) => {
                let what = match block.kind {
                    BlockKind::Media => "an assistant message cannot contain images or documents",
                    _ => "a user message cannot contain thinking",
                };
                found.push(broken("block-role", index, what));
            }
            BlockKind::ToolUse { is_valid: false, .. } => {
                let what = "the name of a call has characters that providers refuse, or its input is no object";
                found.push(broken("call-form", index, what));
            }
            BlockKind::Media => check_media(block, index, found),
            BlockKind::ToolResult { .. } => check_items(block, index, found),
            BlockKind::Thinking { signed: false } => {
                let what = "a thinking block has no signature or no data";
                found.push(broken("unsigned-thinking", index, what));
            }
            _ => {}
        }
    }
    let last = message.content().blocks().iter().last();
    if message.role() == Role::Assistant && last.is_some_and(Block::is_thinking) {
        found.push(broken("final-thinking", index, "its last block is thinking"));
    }
    let mut past_results = false;
    for block in message.content().blocks().iter() {
        match block.kind {
            BlockKind::ToolResult { .. } if past_results => {
                found.push(broken("results-first", index, "a result comes after other content"));
            }
            BlockKind::ToolResult { .. } => {}
            _ => past_results = true,
        }
    }
}

/// Checks an image or a document. What an outline leaves of a block is not checked.
fn check_media(block: &Block<'_>, index: usize, found: &mut Vec<Violation>) {
    if *block.raw != *"{}"
        && let Err(why) = media::judge(&block.raw)
    {
        let what = format!("no provider accepts an image or a document: it {why}");
        found.push(broken("refused-media", index, what));
    }
}

/// Checks the images and documents in a result.
fn check_items(block: &Block<'_>, index: usize, found: &mut Vec<Violation>) {
    let known = block.raw.value();
    let Some(list) = known.or_else(|| block.member("content")).filter(|it| it.starts_with('['))
    else {
        return;
    };
    if let Ok(content) = Content::parse(list) {
        let items = content.blocks().iter().filter(|item| item.kind == BlockKind::Media);
        items.for_each(|item| check_media(item, index, found));
    }
}

fn check_calls<'m>(
    messages: &'m [impl Said],
    index: usize,
    seen: &mut HashSet<&'m str>,
    found: &mut Vec<Violation>,
) {
    let message = &messages[index];
    let next = messages.get(index + 1);
    if message.content().calls().next().is_none() {
        return;
    }
    let answers: HashSet<&str> = next.into_iter().flat_map(|it| it.content().results()).collect();
    let unfinished = index + 2 >= messages.len()
        && next.is_none_or(|next| next.content().blocks().iter().all(|block| block.is_result()));
    for id in message.content().calls() {
        if message.role() != Role::Assistant {
            found.push(broken("call-role", index, format!("call '{id}' is in a user message")));
        }
        if !is_id(id) {
            let what =
                format!("invalid call id '{id}': use letters, digits, '_' and '-', at most 64");
            found.push(broken("call-id", index, what));
        }
        if !seen.insert(id) {
            found.push(broken("duplicate-call", index, format!("duplicate call id '{id}'")));
        }
        if !answers.contains(id) {
            let what = format!("call '{id}' has no result in the next message");
            found.push(Violation { unfinished, ..broken("open-call", index, what) });
        }
    }
}

fn check_results(messages: &[impl Said], index: usize, found: &mut Vec<Violation>) {
    let message = &messages[index];
    let before = index.checked_sub(1).map(|before| &messages[before]);
    if message.content().results().next().is_none() {
        return;
    }
    let calls: HashSet<&str> = before.into_iter().flat_map(|it| it.content().calls()).collect();
    let mut here = HashSet::new();
    for id in message.content().results() {
        if message.role() != Role::User {
            let what = format!("result of call '{id}' is in an assistant message");
            found.push(broken("result-role", index, what));
        }
        if !calls.contains(id) {
            let what = format!("result of call '{id}' has no call in the previous message");
            found.push(broken("orphan-result", index, what));
        }
        if !here.insert(id) {
            found.push(broken("duplicate-result", index, format!("two results for call '{id}'")));
        }
    }
}

/// Checks that the messages can be sent.
///
/// # Errors
/// Status 7 if there are no messages, the last one is the assistant's, or a tool call at the end has no result; 76 if a
/// provider would refuse the messages.
pub fn check_ready(messages: &[impl Said]) -> anyhow::Result<()> {
    let broken = violations(messages);
    let Some(first) = broken.iter().find(|broken| !broken.unfinished).or(broken.first()) else {
        return Ok(());
    };
    let (exit, advice) = match first.rule {
        _ if !first.unfinished => (Exit::Refused, "use the messages that claw-rebuild writes"),
        "open-call" => (Exit::NotReady, "append its result, for example from claw-exec"),
        _ => (Exit::NotReady, "append a prompt first"),
    };
    fail(exit, format!("not ready to send: {first}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Message;

    const CALL: &str = r#"{"type":"tool_use","id":"c","name":"f","input":{}}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"c","content":"r"}"#;
    const TEXT: &str = r#"{"type":"text","text":"x"}"#;
    const IMAGE: &str = r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}"#;
    const SIGNED: &str = r#"{"type":"thinking","thinking":"t","signature":"s"}"#;

    /// Returns messages as JSON, each given by its role and its blocks.
    fn conversation(messages: &[(&str, &[&str])]) -> String {
        let line = |(role, blocks): &(&str, &[&str])| {
            let blocks = blocks.join(",");
            format!(r#"{{"role":"{role}","content":[{blocks}]}}"#)
        };
        messages.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_fault_is_found_in_messages_and_in_their_outlines() {
        let (user, assistant) = (("user", &[TEXT][..]), ("assistant", &[TEXT][..]));
        let blank = r#"{"type":"text","text":" "}"#;
        let unsigned = r#"{"type":"thinking","thinking":"t"}"#;
        let odd = CALL.replace(r#""c""#, r#""c c""#);
        let misnamed = CALL.replace(r#""f""#, r#""f f""#);
        let (call, result) = (("assistant", &[CALL][..]), ("user", &[RESULT][..]));
        for (messages, rules) in [
            (&[][..], &["no-messages"][..]),
            (&[user], &[]),
            (&[user, call, result], &[]),
            (&[user, assistant], &["assistant-last"]),
            (&[assistant, user], &["first-message"]),
            (&[user, user], &["roles-alternate"]),
            (&[("user", &[])], &["empty-message"]),
            (&[("user", &[blank])], &["blank-text"]),
            (&[("user", &[IMAGE])], &[]),
            (&[user, ("assistant", &[IMAGE]), user], &["block-role"]),
            (&[("user", &[SIGNED])], &["block-role"]),
            (&[user, ("assistant", &[SIGNED, TEXT]), user], &[]),
            (&[user, ("assistant", &[unsigned, TEXT]), user], &["unsigned-thinking"]),
            (&[user, ("assistant", &[TEXT, SIGNED]), user], &["final-thinking"]),
            (&[user, call, ("user", &[RESULT, TEXT])], &[]),
            (&[user, call, ("user", &[TEXT, RESULT])], &["results-first"]),
            (&[("user", &[CALL])], &["call-role", "open-call"]),
            (&[user, ("assistant", &[&odd]), user], &["call-id", "open-call"]),
            (&[user, ("assistant", &[&misnamed]), result], &["call-form"]),
            (&[user, call, result, call, result], &["duplicate-call"]),
            (&[user, call], &["open-call"]),
            (&[user, call, user], &["open-call"]),
            (&[("user", &[CALL]), ("assistant", &[RESULT]), user], &["call-role", "result-role"]),
            (&[user, assistant, result], &["orphan-result"]),
            (&[user, call, ("user", &[RESULT, RESULT])], &["duplicate-result"]),
        ] {
            let text = conversation(messages);
            let messages = crate::messages::read("t", text.as_bytes()).unwrap();
            let found = violations(&messages);
            let names: Vec<_> = found.iter().map(|broken| broken.rule).collect();
            assert_eq!(names, rules, "{text}");
            let outlines: Vec<_> = messages.iter().cloned().map(Message::into_outline).collect();
            assert_eq!(violations(&outlines), found, "{text}");
        }
        let plain = r#"{"role":"user","content":" "}"#;
        let messages = crate::messages::read("t", plain.as_bytes()).unwrap();
        assert_eq!(violations(&messages).len(), 1);
        assert_eq!(violations(&[messages[0].clone().into_outline()]), violations(&messages));
    }

    #[test]
    fn a_block_that_its_role_cannot_have_is_described() {
        for (messages, what) in [
            (&[("user", &[SIGNED][..])][..], "a user message cannot contain thinking"),
            (
                &[("user", &[TEXT]), ("assistant", &[IMAGE])],
                "an assistant message cannot contain images or documents",
            ),
        ] {
            let text = conversation(messages);
            let messages = crate::messages::read("t", text.as_bytes()).unwrap();
            assert_eq!(violations(&messages)[0].what, what);
        }
    }

    #[test]
    fn messages_are_unfinished_if_further_records_can_complete_them() {
        let (user, call) = (("user", &[TEXT][..]), ("assistant", &[CALL][..]));
        for (messages, advice) in [
            (&[][..], Some("append a prompt first")),
            (&[user, ("assistant", &[TEXT])], Some("append a prompt first")),
            (&[user, call], Some("append its result, for example from claw-exec")),
            (&[user, call, user], None),
            (&[user, user], None),
        ] {
            let text = conversation(messages);
            let messages = crate::messages::read("t", text.as_bytes()).unwrap();
            assert_eq!(violations(&messages)[0].unfinished, advice.is_some(), "{text}");
            let problem = format!("{:#}", check_ready(&messages).unwrap_err());
            let advice = advice.unwrap_or("use the messages that claw-rebuild writes");
            assert!(
                problem.starts_with("not ready to send: ") && problem.ends_with(advice),
                "{problem}"
            );
        }
    }
}
