//! Reads a complete answer. A message and a streamed delta have the same members, so [`MessageDraft`] also takes deltas.

use super::details::Details;
use crate::json::{Object, elements, on_one_line};
use crate::provider::Reply;
use crate::provider::collect::{RawString, Unfinished, bounded};
use crate::provider::reasoning::CALL_MEMBER;
use crate::provider::turns::draft::{CallDraft, Draft};
use std::borrow::Cow;

/// The members in which servers send the reasoning text. Some servers send two; the first one with text is used.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The longest name, in bytes, that is reported for a kind of dropped content.
const LONGEST_KIND: usize = 40;
/// The maximum number of kinds of dropped content that are reported.
const MAX_KINDS: usize = 16;

/// The index given to a call in the deprecated `function_call` member.
const LEGACY_INDEX: Option<u64> = Some(u64::MAX);

/// Reads the first choice of a complete answer.
///
/// # Errors
/// Returns what is missing, or which tool call has an invalid input, phrased to follow "the answer".
pub(super) fn read(answer: &Object<'_>) -> Result<Reply, String> {
    let choice = choice(answer).ok_or("has no choices")?;
    let message = inner(&choice, "message").or_else(|| inner(&choice, "delta"));
    let message = message.ok_or("has no message")?;
    let mut draft = MessageDraft::default();
    draft.take_metadata(answer, Some(&choice));
    draft.take_message(&message, &mut |_| {})?;
    for call in calls(&message) {
        // Each element is a separate call, whatever its id and index are.
        draft.draft.calls.push(CallDraft::default());
        draft.add_delta(draft.draft.calls.len() - 1, &call);
    }
    draft.legacy_call(&message);
    draft.reply().map_err(|unfinished| unfinished.why)
}

/// A message of which parts may still be missing.
#[derive(Default)]
pub(super) struct MessageDraft {
    pub(super) draft: Draft,
    reasoning: [RawString; REASONING.len()],
    details: Details,
    /// The text of thinking in parts of the content (Mistral), which goes back in no member of its own.
    thinking: RawString,
}

impl MessageDraft {
    /// Takes the members around the message: the model, the usage and the stop reason.
    pub(super) fn take_metadata(&mut self, answer: &Object<'_>, choice: Option<&Object<'_>>) {
        self.draft.model(answer.string("model"));
        let usage = |object: &Object<'_>| {
            object.get("usage").filter(|usage| usage.starts_with('{')).map(str::to_owned)
        };
        // Some hosts put the usage into the choice.
        let counted = usage(answer).or_else(|| choice.and_then(usage));
        self.draft.usage = counted.or(self.draft.usage.take());
        let reason = choice.and_then(|choice| choice.string("finish_reason"));
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.draft.stop_reason = Some(reason.into_owned());
        }
    }

    /// Takes the deprecated `function_call` member, or a delta of it.
    pub(super) fn legacy_call(&mut self, message: &Object<'_>) {
        let Some(function) = inner(message, "function_call") else { return };
        let calls = &mut self.draft.calls;
        let at = calls.iter().position(|call| call.index == LEGACY_INDEX).unwrap_or_else(|| {
            calls.push(CallDraft::numbered(LEGACY_INDEX));
            calls.len() - 1
        });
        self.add_function(at, &function);
    }

    /// Takes the content of a message or a delta.
    ///
    /// # Errors
    /// Fails if the reasoning has too many parts, or the text too many annotations.
    pub(super) fn take_message(
        &mut self,
        message: &Object<'_>,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        match message.get("content") {
            // A few servers send a list of parts.
            Some(raw) if raw.starts_with('[') => {
                let parts = elements(raw).unwrap_or_default();
                for part in parts.into_iter().filter_map(|part| Object::parse(part).ok()) {
                    self.take_part(&part, show);
                }
            }
            content => show(&self.draft.text.add(content)),
        }
        self.take_refusal(message.get("refusal"), show);
        if let Some(audio) = inner(message, "audio") {
            show(&self.draft.text.add(audio.get("transcript")));
            self.leave_out("audio");
        }
        if message.get("images").and_then(elements).is_some_and(|images| !images.is_empty()) {
            self.leave_out("image");
        }
        for (name, text) in REASONING.iter().zip(&mut self.reasoning) {
            text.add(message.get(name));
        }
        let cited = message.get("annotations").and_then(elements).unwrap_or_default();
        self.draft.annotations.extend(cited.into_iter().map(on_one_line));
        bounded(self.draft.annotations.len())?;
        self.details.take(message.get("reasoning_details"))
    }

    /// Takes one part of a content list.
    fn take_part(&mut self, part: &Object<'_>, show: &mut dyn FnMut(&str)) {
        let kind = part.string("type").unwrap_or_default();
        match kind.as_ref() {
            _ if part.get("text").is_some() => show(&self.draft.text.add(part.get("text"))),
            "thinking" | "reasoning" => self.take_reasoning(part.get("thinking")),
            "refusal" => self.take_refusal(part.get("refusal"), show),
            kind => self.leave_out(kind.trim_start_matches("output_").trim_end_matches("_url")),
        }
    }

    /// Takes reasoning: a string, or a list of parts with text.
    fn take_reasoning(&mut self, raw: Option<&str>) {
        let parts = raw.and_then(elements).unwrap_or_default();
        for part in parts.into_iter().filter_map(|part| Object::parse(part).ok()) {
            self.thinking.add(part.get("text"));
        }
        self.thinking.add(raw);
    }

    fn take_refusal(&mut self, raw: Option<&str>, show: &mut dyn FnMut(&str)) {
        let is_after = self.draft.refusal.is_empty() && !self.draft.text.is_empty();
        let text = self.draft.refusal.add(raw);
        if is_after && !text.is_empty() {
            show("\n");
        }
        show(&text);
    }

    /// Notes that content of this kind, which records cannot hold, is dropped.
    fn leave_out(&mut self, kind: &str) {
        let left_out = &mut self.draft.left_out;
        let kind = if kind.is_empty() || kind.len() > LONGEST_KIND { "part" } else { kind };
        if left_out.len() < MAX_KINDS && !left_out.iter().any(|known| known == kind) {
            left_out.push(kind.to_owned());
        }
    }

    /// Adds a delta to a call. If the id or the name is repeated, the first one is kept.
    pub(super) fn add_delta(&mut self, at: usize, piece: &Object<'_>) {
        let Some(call) = self.draft.calls.get_mut(at) else { return };
        call.extra = piece.get(CALL_MEMBER).map(str::to_owned).or(call.extra.take());
        if call.id.is_empty() {
            call.id = piece.string("id").unwrap_or_default().into_owned();
        }
        if let Some(function) = function(piece) {
            self.add_function(at, &function);
        }
    }

    /// Adds a name and part of the input to a call.
    fn add_function(&mut self, at: usize, function: &Object<'_>) {
        let Some(call) = self.draft.calls.get_mut(at) else { return };
        if call.name.is_empty() {
            call.name = named(function).unwrap_or_default();
        }
        call.add_input(function.get("arguments"));
    }

    /// Returns the reply, or why it is unusable.
    pub(super) fn reply(self) -> Result<Reply, Unfinished> {
        let MessageDraft { mut draft, reasoning, details, thinking } = self;
        draft.reasoning = thinking;
        let texts = REASONING.into_iter().zip(reasoning);
        if let Some((name, text)) = texts.into_iter().find(|(_, text)| !text.is_empty()) {
            (draft.reasoning_name, draft.reasoning) = (name, text);
        }
        draft.details = details.into_json();
        draft.reply()
    }
}

/// Returns the first choice whose index is 0 or missing. The other choices are ignored.
pub(super) fn choice<'a>(answer: &Object<'a>) -> Option<Object<'a>> {
    let choices = answer.get("choices").and_then(elements)?;
    let mut choices = choices.into_iter().filter_map(|raw| Object::parse(raw).ok());
    choices.find(|choice| choice.number("index").unwrap_or(0) == 0)
}

/// Returns the tool calls in a message or a delta.
pub(super) fn calls<'a>(message: &Object<'a>) -> impl Iterator<Item = Object<'a>> {
    let calls = message.get("tool_calls").and_then(elements).unwrap_or_default();
    calls.into_iter().filter_map(|raw| Object::parse(raw).ok())
}

pub(super) fn function<'a>(call: &Object<'a>) -> Option<Object<'a>> {
    inner(call, "function")
}

pub(super) fn named(function: &Object<'_>) -> Option<String> {
    function.string("name").filter(|name| !name.is_empty()).map(Cow::into_owned)
}

pub(super) fn inner<'a>(object: &Object<'a>, name: &str) -> Option<Object<'a>> {
    object.get(name).and_then(|raw| Object::parse(raw).ok())
}
