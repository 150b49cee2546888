//! What models are known to refuse: read from refusals, and stored in a file with one JSON object per line.

use super::{Failure, FailureClass};
use crate::estimate::models;
use crate::json::Object;
use crate::json::write::Members;

/// The time in seconds for which a statement applies: 30 days, because servers are reconfigured.
const LIFETIME: f64 = 30.0 * 86_400.0;

/// Something that a request may contain and that not every model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Tool calls and their results in the messages.
    Calls,
}

/// Words for calls, and for the roles of messages, in lower case. They are matched as parts of words.
const CALLS: [&str; 6] = ["tool", "role", "function", "template", "jinja", "function_call"];
/// Words that say that something is not taken, in lower case.
const REFUSED: [&str; 14] = [
    "support",
    "alternate",
    "unknown",
    "invalid",
    "unexpected",
    "not allowed",
    "not enabled",
    "must",
    "expected",
    "exception",
    "only ",
    "requires",
    "cannot",
    "disabled",
];

impl Feature {
    fn name(self) -> &'static str {
        match self {
            Feature::Calls => "calls",
        }
    }

    /// Returns true if the failure may be due to this. A refusal that names a place in the messages is about the block there.
    #[must_use]
    pub fn is_refused_by(self, failure: &Failure) -> bool {
        let is_refusal = match failure.class {
            FailureClass::BadRequest | FailureClass::NotFound => true,
            FailureClass::Server => failure.status == Some(500) || failure.status == Some(501),
            _ => false,
        };
        let text = failure.message.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        is_refusal
            && failure.wire_places.is_empty()
            && !failure.wants_responses()
            && has(&CALLS)
            && has(&REFUSED)
    }

    /// Returns the line that stores that `model` at `endpoint` refuses this.
    #[must_use]
    pub fn line(self, endpoint: &str, model: &str, ts: f64) -> String {
        let place = Members::new().string("endpoint", endpoint).string("model", model);
        place.string("refuses", self.name()).decimal("ts", ts).into_line()
    }

    /// Returns true if `text` has such a line that still applies at `now`. `is_place` returns true if a stored endpoint is the
    /// one wanted. Lines that do not match are skipped.
    #[must_use]
    pub fn is_refused(
        self,
        text: &str,
        is_place: impl Fn(&str) -> bool,
        model: &str,
        now: f64,
    ) -> bool {
        let states_this = |line: &str| {
            let object = Object::parse(line).ok()?;
            let ts: f64 = object.get("ts")?.parse().ok()?;
            let is_same = object.string("refuses")? == self.name()
                && models::is_same(&object.string("model")?, model)
                && is_place(&object.string("endpoint")?);
            Some(is_same && (now - ts).abs() <= LIFETIME)
        };
        text.lines().any(|line| states_this(line) == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::refusal::Rows;

    #[test]
    #[rustfmt::skip]
    fn refusals_of_calls_are_told_from_others() {
        let refused = |status: u16, message: &str| {
            let body = format!(r#"{{"error":{{"message":{}}}}}"#, serde_json::Value::from(message));
            let none = |_: &str| None;
            let failure = Failure::classify(status, &none, body.as_bytes(), 0.0, &Rows::default());
            Feature::Calls.is_refused_by(&failure)
        };
        for (status, message) in [
            (400, "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."),
            (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
            (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
            (404, "No endpoints found that support tool use. Try disabling \"read\"."),
            (400, "Invalid role: tool"),
            (422, "unexpected role 'tool', expected 'user' or 'assistant'"),
            (400, "Requests which include `tool_use` or `tool_result` blocks must define tools"),
            (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"),
        ] {
            assert!(refused(status, message), "{status} {message}");
        }
        for (status, message) in [
            (429, "Too many requests with tools; only 5 are allowed"),
            (401, "invalid role for this key"),
            (400, "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead."),
            (400, "messages.3.content.0: unexpected tool_use_id"),
            (400, "Could not process image"),
            (503, "the tool server cannot be reached"),
        ] {
            assert!(!refused(status, message), "{status} {message}");
        }
    }

    #[test]
    fn a_refusal_applies_to_its_model_and_endpoint_for_a_month() {
        let text = "torn{\n".to_owned() + &Feature::Calls.line("a", "m", 5.0);
        let found = |endpoint: &str, model: &str, now: f64| {
            Feature::Calls.is_refused(&text, |other| other == endpoint, model, now)
        };
        assert!(found("a", "m", 6.0));
        assert!(!found("b", "m", 6.0) && !found("a", "n", 6.0) && !found("a", "m", 6.0 + LIFETIME));
    }
}
