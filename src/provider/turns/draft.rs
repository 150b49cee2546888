//! Builds a reply from the parts of a chat completion or an Ollama answer: text and tool calls.

use crate::json::write::{Members, opening};
use crate::json::{Object, quote};
use crate::provider::Reply;
use crate::provider::collect::{RawString, Unfinished, call_block};
use crate::provider::extent::Extent;
use crate::provider::reasoning::CALL_MEMBER;
use std::collections::HashSet;

/// A reply that is still arriving.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The model that answers.
    pub(crate) model: Option<String>,
    /// The provider's stop reason.
    pub(crate) stop_reason: Option<String>,
    /// The token usage, as a JSON object.
    pub(crate) usage: Option<String>,
    /// The model's text.
    pub(crate) text: RawString,
    /// The model's explanation of a refusal.
    pub(crate) refusal: RawString,
    /// The kinds of content that records cannot hold: audio, images.
    pub(crate) left_out: Vec<String>,
    /// The reasoning text.
    pub(crate) reasoning: RawString,
    /// The name of the member that the reasoning text came in; empty if it does not go back.
    pub(crate) reasoning_name: &'static str,
    /// The reasoning in parts, as a JSON list, if the server sends it like this.
    pub(crate) details: Option<String>,
    /// What the text cites, each as JSON.
    pub(crate) annotations: Vec<String>,
    /// The tool calls, in order.
    pub(crate) calls: Vec<CallDraft>,
}

/// A tool call that is still arriving.
#[derive(Debug, Default)]
pub(crate) struct CallDraft {
    /// The provider's number for the call.
    pub(crate) index: Option<u64>,
    /// The call's id, or an empty string if the provider sent none.
    pub(crate) id: String,
    /// The tool's name.
    pub(crate) name: String,
    /// What the server wants back with the call, as JSON.
    pub(crate) extra: Option<String>,
    /// The input: a JSON object, as text.
    input: RawString,
    /// The length of the input, as an undecoded string, before its last piece.
    before_last: usize,
    /// True if each piece of the input begins with the one before it.
    is_cumulative: bool,
}

/// The length of an input, in bytes, up to which [`CallDraft::is_in_object`] looks at it.
const MAX_INSPECTED: usize = 64 << 10;

impl Draft {
    /// Takes the model's name. The first name that is not empty is kept.
    pub(crate) fn model(&mut self, name: Option<impl Into<String>>) {
        let name = name.map(Into::into).filter(|name: &String| !name.is_empty());
        self.model = self.model.take().or(name);
    }

    /// Returns true if there is no text, refusal or tool call yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    /// Returns the text, the refusal, and a placeholder for each dropped kind of content, as text blocks.
    fn text_blocks(text: RawString, refusal: RawString, left_out: &[String]) -> Vec<String> {
        let words = left_out.iter().map(|kind| RawString::of(&format!("[{kind}]")));
        let all = [text, refusal].into_iter().chain(words);
        let all = all.filter(|text| !text.is_empty());
        all.map(|text| text.into_between(concat!(opening!("type": "text", "text"), "\""), "\"}"))
            .collect()
    }

    /// Returns the part of the reply that was shown so far.
    pub(crate) fn shown(self) -> Reply {
        let Draft { model, usage, text, refusal, .. } = self;
        let blocks = Draft::text_blocks(text, refusal, &[]);
        Reply { blocks, model, usage, ..Reply::default() }
    }

    /// Returns the block of reasoning that the server may want back: that of a reply with calls, and reasoning in parts.
    fn reasoning_block(&mut self) -> Option<String> {
        if self.calls.is_empty() && self.details.is_none() {
            return None;
        }
        let goes_back = !self.reasoning_name.is_empty() && !self.reasoning.is_empty();
        let text = goes_back.then(|| std::mem::take(&mut self.reasoning).quoted());
        let mut block = Members::of_type("reasoning");
        if let Some(text) = &text {
            block = block.named(self.reasoning_name, text);
        }
        let details = self.details.take();
        let is_empty = text.is_none() && details.is_none();
        let block = block.optional(Members::raw, "reasoning_details", details.as_deref());
        (!is_empty).then(|| block.into_json())
    }

    /// Returns the reply: the reasoning if it may be wanted back, the text, then the tool calls.
    ///
    /// The last call of an answer that was cut off may be incomplete. It then gets an empty input, and is dropped
    /// when records are made.
    ///
    /// # Errors
    /// Fails if a call has no name, or its input is not a JSON object.
    pub(crate) fn reply(mut self) -> Result<Reply, Unfinished> {
        let block = self.reasoning_block();
        let annotations = std::mem::take(&mut self.annotations);
        let Draft { model, stop_reason, usage, text, refusal, left_out, reasoning, calls, .. } =
            self;
        let reason = stop_reason.map(|word| reason(&word, !calls.is_empty()).to_owned());
        let reason = match reason.as_deref() {
            Some("end_turn") if !refusal.is_empty() => Some("refusal".to_owned()),
            _ => reason,
        };
        let reasoning = (!reasoning.is_empty()).then(|| reasoning.into_between("\"", "\""));
        let mut reply =
            Reply { model, stop_reason: reason, usage, reasoning, left_out, ..Reply::default() };
        reply.blocks = Draft::text_blocks(text, refusal, &reply.left_out);
        let text_count = reply.blocks.len();
        if !annotations.is_empty() {
            let block = Members::of_type("reasoning").list("annotations", annotations);
            reply.blocks.push(block.into_json());
        }
        let last = calls.len().saturating_sub(1);
        for (number, (call, id)) in calls.iter().zip(ids(&calls)).enumerate() {
            let may_be_partial = number == last && reply.may_end_in_partial_call();
            match call.block(&id, may_be_partial) {
                Ok(block) => {
                    let extra = call.extra.as_deref().filter(|extra| extra.starts_with('{'));
                    let extra =
                        extra.map(|extra| Members::of_type("reasoning").raw(CALL_MEMBER, extra));
                    reply.blocks.extend(extra.map(Members::into_json));
                    reply.blocks.push(block);
                }
                Err(why) => {
                    reply.blocks.truncate(text_count);
                    let shown = Reply { stop_reason: None, reasoning: None, ..reply };
                    return Err(Unfinished { why, shown });
                }
            }
        }
        reply.blocks.splice(0..0, block);
        Ok(reply)
    }
}

impl CallDraft {
    /// Returns a call with this number and nothing else.
    pub(crate) fn numbered(index: Option<u64>) -> CallDraft {
        CallDraft { index, ..CallDraft::default() }
    }

    /// Adds to the input. `raw` is a part of the input's text, as a JSON string; some servers send the whole
    /// input as an object instead.
    pub(crate) fn add_input(&mut self, raw: Option<&str>) {
        let (length, start) = (self.input.len(), self.before_last);
        match raw {
            Some(raw) if raw.starts_with('{') => self.input.keep(Some(&quote(raw))),
            raw => self.input.keep(raw),
        }
        if self.input.len() > length {
            let (before, piece) = self.input.split_at(length);
            let repeats = length > 0 && piece.starts_with(&before[start..]);
            self.is_cumulative = repeats && (self.is_cumulative || start == 0);
            self.before_last = length;
        }
    }

    /// Returns true if the input so far is the beginning of an object. Long inputs are not looked at.
    pub(crate) fn is_in_object(&self) -> bool {
        let length = self.input.len();
        if length == 0 || length > MAX_INSPECTED {
            return false;
        }
        let text = self.input.text();
        text.trim_start().starts_with('{') && Extent::default().take(text.as_bytes()).is_none()
    }

    /// Returns the input as a JSON object. Some servers send it again as a whole, each time all of it so far, or an
    /// empty object before it; the last piece then is the input.
    fn whole_input(&self) -> String {
        let text = self.input.text();
        if self.before_last == 0 || Object::parse(text.trim()).is_ok() {
            return text;
        }
        let (before, last) = self.input.split_at(self.before_last);
        let decoded =
            |raw: &str| crate::json::string(&format!("\"{raw}\"")).unwrap_or_default().into_owned();
        let (before, last) = (decoded(before), decoded(last));
        let is_repeated =
            self.is_cumulative || last.trim() == before.trim() || before.trim() == "{}";
        match is_repeated && Object::parse(last.trim()).is_ok() {
            true => last,
            false => text,
        }
    }

    fn block(&self, id: &str, may_be_partial: bool) -> Result<String, String> {
        let whole = match self.name.is_empty() {
            true => Err("has a tool call without a name".to_owned()),
            false => {
                self.input.bounded(&self.name)?;
                call_block(id, &self.name, &self.whole_input())
            }
        };
        match whole {
            Err(_) if may_be_partial => call_block(id, &self.name, ""),
            whole => whole,
        }
    }
}

/// Returns the ids of the calls. A missing or duplicate id is replaced by `call_1` or the next free number.
fn ids(calls: &[CallDraft]) -> Vec<String> {
    let given: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    let made_up = (1_u64..).map(|number| format!("call_{number}"));
    let mut free = made_up.filter(|id| !given.contains(id.as_str()));
    let mut taken = HashSet::from([""]);
    let mut all = Vec::new();
    for call in calls {
        let own = taken.insert(call.id.as_str()).then(|| call.id.clone());
        all.extend(own.or_else(|| free.next()));
    }
    all
}

/// Translates a stop reason to Anthropic's vocabulary; an unknown one is kept. A plain stop becomes `tool_use` if
/// there are tool calls: Ollama has no other stop reason for tool calls, and chat completions report a plain stop
/// if the request forces a specific tool.
fn reason(word: &str, has_calls: bool) -> &str {
    match word {
        "stop" | "end" | "end_turn" if has_calls => "tool_use",
        "stop" | "end" | "end_turn" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" | "function_call" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, input: &str) -> CallDraft {
        let mut call = CallDraft { id: id.into(), name: name.into(), ..CallDraft::default() };
        call.add_input(Some(&quote(input)));
        call
    }

    fn draft(reason: &str, calls: Vec<CallDraft>) -> Draft {
        Draft { stop_reason: Some(reason.into()), calls, ..Draft::default() }
    }

    #[test]
    fn missing_ids_are_generated_and_existing_ones_are_kept() {
        let calls = ["", "call_1", "", "x"].map(|id| call(id, "f", "{}"));
        assert_eq!(ids(&calls), ["call_2", "call_1", "call_3", "x"]);
        let calls = ["x", "x"].map(|id| call(id, "f", "{}"));
        assert_eq!(ids(&calls), ["x", "call_1"]);
    }

    #[test]
    fn stop_reasons_are_translated_and_unknown_ones_kept() {
        for (word, ours, with_calls) in [
            ("stop", "end_turn", "tool_use"),
            ("end", "end_turn", "tool_use"),
            ("length", "max_tokens", "max_tokens"),
            ("tool_calls", "tool_use", "tool_use"),
            ("function_call", "tool_use", "tool_use"),
            ("content_filter", "refusal", "refusal"),
            (
                "model_context_window_exceeded",
                "model_context_window_exceeded",
                "model_context_window_exceeded",
            ),
            ("sideways", "sideways", "sideways"),
        ] {
            assert_eq!((reason(word, false), reason(word, true)), (ours, with_calls));
        }
    }

    #[test]
    fn v66_only_the_last_call_of_a_cut_answer_may_be_incomplete() {
        let calls = || vec![call("a", "f", "{}"), call("b", "g", r#"{"x":"#)];
        let reply = draft("length", calls()).reply().unwrap();
        let records = reply.to_records("p");
        assert_eq!((records.lines.len(), records.cut_call.as_deref()), (2, Some("g")));
        assert!(draft("tool_calls", calls()).reply().unwrap_err().why.contains("'g'"));
        let first = calls().into_iter().rev().collect();
        assert!(draft("length", first).reply().unwrap_err().why.contains("'g'"));
        let nameless = || vec![call("a", "", "")];
        assert!(draft("tool_calls", nameless()).reply().is_err());
        assert_eq!(draft("length", nameless()).reply().unwrap().to_records("p").lines.len(), 1);
    }

    #[test]
    fn an_input_may_be_an_object() {
        let mut call = CallDraft { name: "f".into(), ..CallDraft::default() };
        call.add_input(Some(r#"{"a":"\ud83d\u00e9 \"","b":1e2}"#));
        let block = call.block("i", false).unwrap();
        assert!(block.ends_with(r#""input":{"a":"\ud83d\u00e9 \"","b":1e2}}"#), "{block}");
    }
}
