//! Reads an answer: a complete one, or a line of a stream.

use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::provider::Reply;
use crate::provider::collect::{Unfinished, bounded};
use crate::provider::turns::draft::{CallDraft, Draft};
use std::borrow::Cow;

/// Reads a complete answer.
///
/// # Errors
/// Returns what is missing, or which tool call has an invalid input, phrased to follow "the answer".
pub(super) fn read(answer: &Object<'_>) -> Result<Reply, String> {
    answer.get("message").ok_or("has no message")?;
    let mut draft = Draft::default();
    let reply = match take(&mut draft, answer, &mut |_| {})? {
        true => draft.reply(),
        false => Err(Unfinished::cut(draft.shown())),
    };
    reply.map_err(|unfinished| unfinished.why)
}

/// Takes a piece of the text, and complete tool calls. Returns true for the last line, which also has the stop reason and the
/// counts.
pub(super) fn take(
    draft: &mut Draft,
    line: &Object<'_>,
    show: &mut dyn FnMut(&str),
) -> Result<bool, String> {
    draft.model(line.string("model"));
    if let Some(Ok(message)) = line.get("message").map(Object::parse) {
        show(&draft.text.add(message.get("content")));
        draft.reasoning.add(message.get("thinking"));
        draft.reasoning_name = "thinking";
        if message.get("images").and_then(elements).is_some_and(|images| !images.is_empty()) {
            draft.left_out = vec!["image".to_owned()];
        }
        let calls = message.get("tool_calls").and_then(elements).unwrap_or_default();
        draft.calls.extend(calls.into_iter().map(read_call));
        bounded(draft.calls.len())?;
    }
    let is_last = line.is_true("done");
    if is_last {
        draft.stop_reason = line.string("done_reason").map(Cow::into_owned);
        draft.usage = usage(line);
    }
    Ok(is_last)
}

fn read_call(raw: &str) -> CallDraft {
    let mut call = CallDraft::default();
    let Ok(object) = Object::parse(raw) else { return call };
    call.id = object.string("id").unwrap_or_default().into_owned();
    if let Some(Ok(function)) = object.get("function").map(Object::parse) {
        call.name = function.string("name").unwrap_or_default().into_owned();
        call.add_input(function.get("arguments"));
    }
    call
}

/// Returns the counts in the last line: tokens, and times in nanoseconds.
fn usage(data: &Object<'_>) -> Option<String> {
    let counts = |name: &str| {
        matches!(name, "prompt_eval_count" | "eval_count") || name.ends_with("_duration")
    };
    let members = data.members().filter(|member| counts(&member.name()));
    let usage = members.fold(Members::new(), Members::member);
    (!usage.is_empty()).then(|| usage.into_json())
}
