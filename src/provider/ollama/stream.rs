//! Collects a streaming answer. A complete answer is a stream of one event.

use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::provider::Reply;
use crate::provider::collect::{Collect, Remaining, Unfinished, bounded};
use crate::provider::turns::draft::{CallDraft, Draft};
use std::borrow::Cow;

/// Reads a complete answer.
///
/// # Errors
/// Returns what is missing, or which tool call has an invalid input, phrased to follow "the answer".
pub(super) fn read(answer: &Object<'_>) -> Result<Reply, String> {
    answer.get("message").ok_or("has no message")?;
    let mut stream = Box::<OllamaStream>::default();
    stream.take(answer, &mut |_| {})?;
    stream.finish().map_err(|unfinished| unfinished.why)
}

/// A streaming reply, one JSON object per line. Each line has a piece of the text and complete tool calls; the last
/// one has the stop reason and the counts. A complete answer is a stream of one line.
#[derive(Default)]
pub struct OllamaStream {
    draft: Draft,
    is_complete: bool,
}

impl Collect for OllamaStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.draft.model(data.string("model"));
        if let Some(Ok(message)) = data.get("message").map(Object::parse) {
            show(&self.draft.text.add(message.get("content")));
            self.draft.reasoning.add(message.get("thinking"));
            self.draft.reasoning_name = "thinking";
            if message.get("images").and_then(elements).is_some_and(|images| !images.is_empty()) {
                self.draft.left_out = vec!["image".to_owned()];
            }
            let calls = message.get("tool_calls").and_then(elements).unwrap_or_default();
            self.draft.calls.extend(calls.into_iter().map(read_call));
            bounded(self.draft.calls.len())?;
        }
        if data.is_true("done") {
            self.is_complete = true;
            self.draft.stop_reason = data.string("done_reason").map(Cow::into_owned);
            self.draft.usage = usage(data);
        }
        Ok(())
    }

    fn remaining(&self) -> Remaining {
        if self.is_complete { Remaining::None } else { Remaining::Required }
    }

    fn shown(self: Box<Self>) -> Reply {
        self.draft.shown()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Unfinished> {
        if !self.is_complete {
            return Err(Unfinished::cut(self.shown()));
        }
        self.draft.reply()
    }
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
