//! Reads an answer: a complete one, or one of those of a stream, each of which has the next parts.

use crate::json::write::{Members, opening};
use crate::json::{Object, elements, on_one_line};
use crate::provider::Reply;
use crate::provider::collect::{CallIds, RawString, Unfinished, bounded, call_block};
use std::borrow::Cow;

/// The value of a finish reason that is not set, in small letters. Some servers write it out.
const UNSET: &str = "finish_reason_unspecified";

/// The members of a candidate with its sources, and the one of them that an answer can have several times. A request cannot have
/// them (`Candidate` and `Content` in `types.py` of google-genai 3.6.1).
const SOURCES: [&str; 3] = ["groundingMetadata", "urlContextMetadata", QUOTATIONS];
const QUOTATIONS: &str = "citationMetadata";
/// The maximum number of them that are kept.
const MAX_SOURCES: usize = 64;

/// Reads a complete answer.
///
/// # Errors
/// Returns what is missing, or why the answer cannot be used, phrased to follow "the answer".
pub(super) fn read(answer: &Object<'_>) -> Result<Reply, String> {
    let mut draft = AnswerDraft::default();
    draft.take(answer, &mut |_| {})?;
    if !draft.has_ended() {
        // Without a reason, a stream is not finished, but a complete answer is.
        candidate(answer).ok_or("has no candidates")?;
        draft.reason = Some(UNSET.to_owned());
    }
    draft.finish().map_err(|unfinished| unfinished.why)
}

/// An answer of which parts may still be missing.
#[derive(Default)]
pub(super) struct AnswerDraft {
    reply: Reply,
    /// The blocks that are complete.
    blocks: Vec<String>,
    /// The text that may go on in the next part.
    text: RawString,
    /// What the answer says about its sources: the names and values of the members.
    sources: Vec<(&'static str, String)>,
    /// The ids of the calls.
    ids: CallIds,
    /// The finish reason, as Google names it.
    reason: Option<String>,
    /// True if the prompt was blocked.
    is_blocked: bool,
    /// What Google says about the reason.
    message: Option<String>,
}

impl AnswerDraft {
    /// Takes the parts and the usage of an answer, and the reason why it ended.
    pub(super) fn take(
        &mut self,
        data: &Object<'_>,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), String> {
        let text = |name: &str| data.string(name).map(Into::into);
        self.reply.model = self.reply.model.take().or_else(|| text("modelVersion"));
        if let Some(usage) = data.get("usageMetadata").filter(|raw| raw.starts_with('{')) {
            self.reply.usage = Some(on_one_line(usage));
        }
        let feedback = data.get("promptFeedback").and_then(|raw| Object::parse(raw).ok());
        let block = feedback.and_then(|it| it.string("blockReason").map(Cow::into_owned));
        self.is_blocked |= block.is_some_and(|reason| !reason.is_empty());
        let Some(candidate) = candidate(data) else { return Ok(()) };
        let content = candidate.get("content").and_then(|raw| Object::parse(raw).ok());
        let parts = content.and_then(|it| elements(it.get("parts")?)).unwrap_or_default();
        for part in parts {
            bounded(self.blocks.len())?;
            self.part(part, show)?;
        }
        self.cite(&candidate);
        if let Some(reason) = candidate.string("finishReason").filter(|it| is_set(it)) {
            self.reason = Some(reason.into());
            self.message = candidate.string("finishMessage").map(Into::into);
        }
        Ok(())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.reason.is_some() || self.is_blocked
    }

    /// Returns the text so far.
    pub(super) fn shown(mut self) -> Reply {
        self.end_text();
        let is_text = |block: &String| block.starts_with(opening!("type": "text", "text"));
        let blocks = self.blocks.into_iter().filter(is_text).collect();
        Reply { blocks, ..self.reply }
    }

    /// Returns the reply, or why the answer cannot be used.
    pub(super) fn finish(mut self) -> Result<Reply, Unfinished> {
        self.end_text();
        self.end_sources();
        if self.is_blocked {
            let stop_reason = Some("refusal".to_owned());
            return Ok(Reply { blocks: self.blocks, stop_reason, ..self.reply });
        }
        let Some(reason) = self.reason.take() else { return Err(Unfinished::cut(self.shown())) };
        let has_calls =
            self.blocks.iter().any(|block| block.starts_with(opening!("type": "tool_use", "id")));
        match stop_reason(&reason, has_calls) {
            Some(word) => {
                let stop_reason = Some(word.to_owned());
                Ok(Reply { blocks: self.blocks, stop_reason, ..self.reply })
            }
            None => {
                let said = self.message.take().map_or(String::new(), |it| format!(": {it}"));
                let why = format!("ended with {reason}{said}");
                Err(Unfinished { why, shown: self.shown() })
            }
        }
    }

    /// Takes a part. A signature is kept before the part that it belongs to; a part that is neither text nor a call is kept
    /// whole. An empty part says nothing.
    fn part(&mut self, raw: &str, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        let Ok(part) = Object::parse(raw) else { return Ok(()) };
        if part.members().next().is_none() {
            return Ok(());
        }
        let signature = part.get("thoughtSignature").filter(|raw| raw.len() > 2);
        let text = part.get("text").filter(|_| !part.is_true("thought"));
        let call = part.get("functionCall").and_then(|raw| Object::parse(raw).ok());
        let is_empty = |text: &str| text.len() <= 2;
        if text.is_some_and(|text| !is_empty(text)) || call.is_some() {
            if let Some(signature) = signature {
                self.end_text();
                let block = Members::of_type("reasoning").raw("thoughtSignature", signature);
                self.blocks.push(block.into_json());
            }
        } else if text.is_some() && signature.is_none() {
            return Ok(());
        }
        match (text, call) {
            (Some(text), None) if !is_empty(text) => {
                show(&self.text.add(Some(text)));
                // Text without a signature must not be joined to it.
                if signature.is_some() {
                    self.end_text();
                }
            }
            (_, Some(call)) => {
                self.end_text();
                self.call(&call)?;
            }
            _ => {
                self.end_text();
                self.other(&part);
            }
        }
        Ok(())
    }

    fn call(&mut self, call: &Object<'_>) -> Result<(), String> {
        let name = call.string("name").filter(|name| !name.is_empty());
        let name = name.ok_or("has a tool call without a name")?;
        let id = self.ids.next(&call.string("id").unwrap_or_default());
        self.blocks.push(call_block(&id, &name, call.get("args").unwrap_or_default())?);
        Ok(())
    }

    /// Keeps a thought, or what Google's own tools did. Media are not kept; outside of thoughts, a word stands for them.
    fn other(&mut self, part: &Object<'_>) {
        if let Some(media) = part.get("inlineData").and_then(|raw| Object::parse(raw).ok()) {
            let kind = media.string("mimeType").unwrap_or_default();
            let kind = kind.split('/').next().filter(|it| !it.is_empty()).unwrap_or("media");
            if !part.is_true("thought") {
                let word = Members::of_type("text").string("text", &format!("[{kind}]"));
                self.blocks.push(word.into_json());
                self.reply.left_out.push(kind.to_owned());
            }
            return;
        }
        let block = Members::of_type("reasoning").raw("part", &on_one_line(part.text()));
        self.blocks.push(block.into_json());
    }

    /// Takes what the candidate says about its sources. A later value replaces an earlier one, except that each part of the text
    /// has quotations of its own.
    fn cite(&mut self, candidate: &Object<'_>) {
        for name in SOURCES {
            let Some(raw) = candidate.get(name).filter(|raw| raw.len() > 2) else { continue };
            let new = (name, on_one_line(raw));
            if name != QUOTATIONS {
                self.sources.retain(|(known, _)| *known != name);
            }
            if self.sources.len() < MAX_SOURCES && !self.sources.contains(&new) {
                self.sources.push(new);
            }
        }
    }

    /// Adds the blocks with the sources after the last text.
    fn end_sources(&mut self) {
        let is_text = |block: &String| block.starts_with(opening!("type": "text", "text"));
        let at = self.blocks.iter().rposition(is_text).map_or(0, |last| last + 1);
        let sources = std::mem::take(&mut self.sources).into_iter();
        let block = |(name, raw): (&str, String)| Members::of_type("reasoning").named(name, &raw);
        self.blocks.splice(at..at, sources.map(block).map(Members::into_json));
    }

    /// Ends the text block.
    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            let begin = concat!(opening!("type": "text", "text"), "\"");
            self.blocks.push(text.into_between(begin, "\"}"));
        }
    }
}

/// Returns the first candidate. In a stream with several, an event may have only another.
fn candidate<'a>(answer: &Object<'a>) -> Option<Object<'a>> {
    let candidate = Object::parse(elements(answer.get("candidates")?)?.first()?).ok()?;
    candidate.number("index").is_none_or(|index| index == 0).then_some(candidate)
}

fn is_set(reason: &str) -> bool {
    !reason.is_empty() && !reason.eq_ignore_ascii_case(UNSET)
}

/// Returns Anthropic's word for a finish reason (`FinishReason` in `types.py` of google-genai 3.6.1; here in small letters);
/// `None` if the answer cannot be used, because the model made a call that is not one, or failed.
fn stop_reason(reason: &str, has_calls: bool) -> Option<&str> {
    Some(match reason.to_ascii_lowercase().as_str() {
        "stop" if has_calls => "tool_use",
        "stop" | UNSET => "end_turn",
        "max_tokens" | "continuation" => "max_tokens",
        "safety"
        | "recitation"
        | "language"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "image_safety"
        | "image_prohibited_content"
        | "image_recitation"
        | "model_armor"
        | "escalation"
        | "pup_limited_disabled" => "refusal",
        "malformed_function_call"
        | "unexpected_tool_call"
        | "too_many_tool_calls"
        | "missing_thought_signature"
        | "malformed_response"
        | "other"
        | "image_other"
        | "no_image" => return None,
        _ => reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Failure;
    use crate::provider::protocol::Protocol;
    use crate::provider::recorded;

    const PARTS: [&str; 6] = [
        r#"{"text":"hm","thought":true}"#,
        r#"{"text":"日本 "}"#,
        r#"{"text":"\ud83d\ude00"}"#,
        r#"{"text":"signed","thoughtSignature":"c2ln"}"#,
        r#"{"functionCall":{"name":"f","args":{"x": 1e2}},"thoughtSignature":"c2ln"}"#,
        r#"{"functionCall":{"id":"b","name":"g"}}"#,
    ];
    const USAGE: &str = r#"{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":3}"#;

    fn answer(parts: &[&str], reason: &str) -> String {
        let reason = match reason {
            "" => String::new(),
            reason => format!(r#","finishReason":"{reason}""#),
        };
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{}],"role":"model"}}{reason},"index":0}}],"usageMetadata":{USAGE},"modelVersion":"m"}}"#,
            parts.join(",")
        )
    }

    fn stream() -> String {
        let mut text = String::new();
        for (number, part) in PARTS.iter().enumerate() {
            let reason = if number + 1 == PARTS.len() { "STOP" } else { "" };
            text += &format!("data: {}\r\n\r\n", answer(&[part], reason));
        }
        text
    }

    fn streamed(text: &str, size: usize) -> (Result<Reply, Failure>, String) {
        recorded::read(Protocol::Gemini, "text/event-stream", text.as_bytes(), size)
    }

    #[test]
    fn a_stream_split_anywhere_gives_the_same_reply_as_a_complete_answer() {
        let expected = read(&Object::parse(&answer(&PARTS, "STOP")).unwrap()).unwrap();
        let blocks = [
            r#"{"type":"reasoning","part":{"text":"hm","thought":true}}"#,
            r#"{"type":"text","text":"日本 \ud83d\ude00"}"#,
            r#"{"type":"reasoning","thoughtSignature":"c2ln"}"#,
            r#"{"type":"text","text":"signed"}"#,
            r#"{"type":"reasoning","thoughtSignature":"c2ln"}"#,
            r#"{"type":"tool_use","id":"call_1","name":"f","input":{"x": 1e2}}"#,
            r#"{"type":"tool_use","id":"b","name":"g","input":{}}"#,
        ];
        assert_eq!(expected.blocks, blocks);
        assert_eq!(
            (expected.stop_reason.as_deref(), expected.usage.as_deref()),
            (Some("tool_use"), Some(USAGE))
        );
        let stream = stream();
        for size in 1..=stream.len() {
            let (reply, shown) = streamed(&stream, size);
            assert_eq!(reply.unwrap(), expected, "{size}");
            assert_eq!(shown, "日本 😀signed");
        }
    }

    #[test]
    fn a_stream_cut_anywhere_is_a_failure_and_shows_the_beginning_of_the_text() {
        let whole = stream();
        let usage = format!("data: {{\"usageMetadata\":{USAGE}}}\r\n\r\n");
        let code = r#"{"executableCode":{"code":"print(\"\u00e9\")\n","language":"PYTHON"}}"#;
        let blocked = r#"data: {"promptFeedback":{"blockReason":"SAFETY"}}"#;
        for text in [
            whole.clone(),
            whole.replace('\r', ""),
            whole.replace("\r\n", "\r"),
            whole.replace("\r\n\r\n", "\r\n\r\n: keep-alive\r\n\r\n"),
            whole.replace("data: ", "event: message\ndata:"),
            whole.replace("日本 ", r"\u65e5\ud83d\ude00 "),
            whole.replace("STOP", "MAX_TOKENS"),
            whole.replace("STOP", "SAFETY"),
            whole.replace(
                "}],\"role\":\"model\"}",
                "}]},\"finishReason\":\"finish_reason_unspecified\"",
            ),
            whole.replace(PARTS[0], code),
            whole.clone() + &usage,
            format!("data: {}\n\n", answer(&PARTS, "STOP")),
            format!("data: {}\n\n{blocked}\n\n", answer(&PARTS[1..4], "")),
        ] {
            let end = if text.contains("blockReason") { "data: {\"prompt" } else { "finishReason" };
            recorded::check_cuts(Protocol::Gemini, text.as_bytes(), text.rfind(end).unwrap());
        }
    }

    #[test]
    fn parts_that_say_nothing_and_other_candidates_are_left_out() {
        let media = |kind: &str, more: &str| {
            format!(r#"{{"inlineData":{{"mimeType":"{kind}","data":"eA=="}}{more}}}"#)
        };
        let (sound, sketch) = (media("audio/wav", ""), media("image/png", r#","thought":true"#));
        let first = answer(&[r#"{"text":"a"}"#, "{}", r#"{"text":"b"}"#, &sketch, &sound], "STOP");
        let second = answer(&[r#"{"text":"x"}"#], "STOP").replace("\"index\":0", "\"index\":1");
        let (reply, shown) = streamed(&format!("data: {second}\n\ndata: {first}\n\n"), 7);
        let reply = reply.unwrap();
        assert_eq!(reply.texts().collect::<Vec<_>>(), ["ab", "[audio]"]);
        assert_eq!((reply.left_out, shown.as_str()), (vec!["audio".to_owned()], "ab"));
    }

    #[test]
    fn the_sources_of_an_answer_are_kept_after_its_text() {
        let with = |part: &str, reason: &str, more: &str| {
            let event =
                answer(&[part], reason).replace("\"index\":0", &format!("\"index\":0{more}"));
            format!("data: {event}\n\n")
        };
        let quote = r#","citationMetadata":{"citations":[{"uri":"https://a.example"}]}"#;
        let searched = r#","groundingMetadata":{"webSearchQueries":["q"]}"#;
        let text = [
            with(r#"{"text":"a"}"#, "", &format!("{quote},\"groundingMetadata\":{{}}")),
            with("{}", "", quote),
            with(r#"{"text":"b"}"#, "", &quote.replace("//a", "//b")),
            with("{}", "", r#","citationMetadata":{}"#),
            with(r#"{"functionCall":{"name":"f"}}"#, "STOP", searched),
        ]
        .concat();
        let reply = streamed(&text, 9).0.unwrap();
        let expected = [
            r#"{"type":"text","text":"ab"}"#,
            r#"{"type":"reasoning","citationMetadata":{"citations":[{"uri":"https://a.example"}]}}"#,
            r#"{"type":"reasoning","citationMetadata":{"citations":[{"uri":"https://b.example"}]}}"#,
            r#"{"type":"reasoning","groundingMetadata":{"webSearchQueries":["q"]}}"#,
            r#"{"type":"tool_use","id":"call_1","name":"f","input":{}}"#,
        ];
        assert_eq!(reply.blocks, expected);
    }

    #[test]
    fn every_finish_reason_has_a_meaning() {
        let part = r#"{"text":"a"}"#;
        for (reason, expected) in [
            ("STOP", Some("end_turn")),
            ("FINISH_REASON_UNSPECIFIED", Some("end_turn")),
            ("MAX_TOKENS", Some("max_tokens")),
            ("CONTINUATION", Some("max_tokens")),
            ("SAFETY", Some("refusal")),
            ("MODEL_ARMOR", Some("refusal")),
            ("MALFORMED_FUNCTION_CALL", None),
            ("MISSING_THOUGHT_SIGNATURE", None),
            ("OTHER", None),
            ("SOMETHING_NEW", Some("SOMETHING_NEW")),
        ] {
            let reply = read(&Object::parse(&answer(&[part], reason)).unwrap());
            let word = reply.as_ref().ok().and_then(|reply| reply.stop_reason.as_deref());
            assert_eq!(word, expected, "{reason}");
            assert!(reply.is_ok() || reply.unwrap_err().contains(reason), "{reason}");
        }
        for reason in ["SAFETY", "OTHER", "JAILBREAK", "SOMETHING_NEW"] {
            let blocked = format!(r#"{{"promptFeedback":{{"blockReason":"{reason}"}}}}"#);
            let reply = read(&Object::parse(&blocked).unwrap()).unwrap();
            assert_eq!((reply.stop_reason.as_deref(), reply.blocks.len()), (Some("refusal"), 0));
        }
        for nothing in ["{}", r#"{"promptFeedback":{}}"#] {
            assert!(read(&Object::parse(nothing).unwrap()).is_err());
        }
        let reply = read(&Object::parse(&answer(&[part], "")).unwrap()).unwrap();
        assert_eq!(reply.stop_reason.as_deref(), Some("end_turn"));
    }

    #[test]
    fn an_error_in_a_stream_is_a_refusal() {
        let error =
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
        let text = format!("data: {}\n\ndata: {error}\n\n", answer(&PARTS[1..2], ""));
        let failure = streamed(&text, 7).0.unwrap_err();
        assert!(failure.retryable && failure.message.contains("overloaded"), "{failure}");
    }
}
