//! A reply that is being put together from the parts of a flat chat's answer: a text, and calls beside it.

use crate::json::quote;
use crate::json::write::opening;
use crate::provider::Reply;
use crate::provider::collect::{RawString, Unfinished, call_block};
use std::collections::HashSet;

/// What is known of a reply so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The model that answers.
    pub(crate) model: Option<String>,
    /// Why it stopped, in the provider's word.
    pub(crate) stop_reason: Option<String>,
    /// What was counted, a JSON object.
    pub(crate) usage: Option<String>,
    /// What is said.
    pub(crate) text: RawString,
    /// The reason for a refusal, in the model's own words.
    pub(crate) refusal: RawString,
    /// The kinds of parts that no record can hold: audio, an image.
    pub(crate) left_out: Vec<String>,
    /// What was thought aloud.
    pub(crate) reasoning: RawString,
    /// What is called, in order.
    pub(crate) calls: Vec<CallDraft>,
}

/// A call that is being put together.
#[derive(Debug, Default)]
pub(crate) struct CallDraft {
    /// The number by which the provider tells calls apart.
    pub(crate) index: Option<u64>,
    /// Its id; empty if the provider gave none.
    pub(crate) id: String,
    /// What is called.
    pub(crate) name: String,
    /// With what: a JSON object, as a text.
    input: RawString,
}

impl Draft {
    /// Takes the name of the model; the first one holds.
    pub(crate) fn model(&mut self, name: Option<impl Into<String>>) {
        let name = name.map(Into::into).filter(|name: &String| !name.is_empty());
        self.model = self.model.take().or(name);
    }

    /// Tells that nothing was said or called yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty()
    }

    /// Returns the text, a refusal, and a word for each part that is left out, as blocks.
    fn said(text: RawString, refusal: RawString, left_out: &[String]) -> Vec<String> {
        let words = left_out.iter().map(|kind| RawString::of(&format!("[{kind}]")));
        let all = [text, refusal].into_iter().chain(words);
        let all = all.filter(|text| !text.is_empty());
        all.map(|text| text.into_between(concat!(opening!("type": "text", "text"), "\""), "\"}"))
            .collect()
    }

    /// The part that was shown so far.
    pub(crate) fn shown(self) -> Reply {
        let Draft { model, usage, text, refusal, .. } = self;
        let blocks = Draft::said(text, refusal, &[]);
        Reply { blocks, model, usage, ..Reply::default() }
    }

    /// The reply in our form: the text, then the calls.
    ///
    /// # Errors
    /// Says so when a call has no name, or an input that is no JSON object. The last call of an answer
    /// that was cut off may be half a call; it gets an empty input, and no record is made of it.
    pub(crate) fn reply(self) -> Result<Reply, Unfinished> {
        let Draft { model, stop_reason, usage, text, refusal, left_out, reasoning, calls } = self;
        let reason = stop_reason.map(|word| reason(&word, !calls.is_empty()).to_owned());
        let reason = match reason.as_deref() {
            Some("end_turn") if !refusal.is_empty() => Some("refusal".to_owned()),
            _ => reason,
        };
        let reasoning = (!reasoning.is_empty()).then(|| reasoning.into_between("\"", "\""));
        let mut reply =
            Reply { model, stop_reason: reason, usage, reasoning, left_out, ..Reply::default() };
        reply.blocks = Draft::said(text, refusal, &reply.left_out);
        let said = reply.blocks.len();
        let last = calls.len().saturating_sub(1);
        for (number, (call, id)) in calls.iter().zip(ids(&calls)).enumerate() {
            let may_be_half = number == last && reply.may_end_in_half();
            match call.block(&id, may_be_half) {
                Ok(block) => reply.blocks.push(block),
                Err(why) => {
                    reply.blocks.truncate(said);
                    let shown = Reply { stop_reason: None, reasoning: None, ..reply };
                    return Err(Unfinished { why, shown });
                }
            }
        }
        Ok(reply)
    }
}

impl CallDraft {
    /// A call with that number, of which nothing else is known.
    pub(crate) fn numbered(index: Option<u64>) -> CallDraft {
        CallDraft { index, ..CallDraft::default() }
    }

    /// Adds to the input: a part of its text, a JSON string; or, as some servers have it, all of it as an
    /// object.
    pub(crate) fn add_input(&mut self, raw: Option<&str>) {
        match raw {
            Some(raw) if raw.starts_with('{') => self.input.keep(Some(&quote(raw))),
            raw => self.input.keep(raw),
        }
    }

    fn block(&self, id: &str, may_be_half: bool) -> Result<String, String> {
        let whole = match self.name.is_empty() {
            true => Err("calls something without a name".to_owned()),
            false => {
                self.input.bounded(&self.name)?;
                call_block(id, &self.name, &self.input.text())
            }
        };
        match whole {
            Err(_) if may_be_half => call_block(id, &self.name, ""),
            whole => whole,
        }
    }
}

/// The ids of calls. Where the provider gave none, or one that another call has, it is `call_1` or the next
/// that is free.
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

/// A stop reason in our word; one that is not known stays as it is. Who calls waits for the result,
/// even where the provider says no more than that it stopped: Ollama always does, chat completions do
/// when the request named the tool to call.
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
    fn missing_ids_are_made_up_and_given_ones_stay() {
        let calls = ["", "call_1", "", "x"].map(|id| call(id, "f", "{}"));
        assert_eq!(ids(&calls), ["call_2", "call_1", "call_3", "x"]);
        let calls = ["x", "x"].map(|id| call(id, "f", "{}"));
        assert_eq!(ids(&calls), ["x", "call_1"]);
    }

    #[test]
    fn reasons_that_are_not_known_stay() {
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
    fn v66_only_the_last_call_of_a_cut_answer_may_be_half() {
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
    fn an_input_may_come_as_an_object() {
        let mut call = CallDraft { name: "f".into(), ..CallDraft::default() };
        call.add_input(Some(r#"{"a":"\ud83d\u00e9 \"","b":1e2}"#));
        let block = call.block("i", false).unwrap();
        assert!(block.ends_with(r#""input":{"a":"\ud83d\u00e9 \"","b":1e2}}"#), "{block}");
    }
}
