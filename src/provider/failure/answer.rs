//! What a refusal's body says, without its wrappings: errors inside errors, in JSON inside strings.

use super::texts::{self, TextFamily};
use super::{bounded, opening, python};
use serde_json::Value;

/// The most bytes of a body without a message that are shown.
const BODY_BYTES: usize = 500;
/// How many errors inside errors are opened.
const NESTING: usize = 4;
/// The stop reason, and on some gateways the error code, of an answer that filled the window.
const WINDOW_FILLED: &str = "model_context_window_exceeded";

/// What a body says, without its wrappings.
#[derive(Default)]
pub(super) struct ErrorBody {
    /// The innermost message.
    pub(super) text: Option<String>,
    /// Types and codes, the innermost first.
    pub(super) kinds: Vec<String>,
    /// The status that the error names, 400 to 599.
    pub(super) code: Option<u16>,
    /// The prompt's tokens, from a member of their own.
    pub(super) input: Option<u64>,
    /// The window in tokens, from a member of its own.
    pub(super) limit: Option<u64>,
    pub(super) request_id: Option<String>,
    pub(super) is_error: bool,
}

impl ErrorBody {
    pub(super) fn read(body: &[u8]) -> ErrorBody {
        let mut answer = ErrorBody::default();
        let whole = serde_json::from_slice(body).ok();
        if let Some(value) = whole.or_else(|| error_line(body)) {
            answer.is_error = marks_error(&value);
            answer.open(&value, NESTING);
            answer.note_stop(&value);
        }
        answer
    }

    /// Takes in one level: its words, then its text and whatever that holds.
    fn open(&mut self, value: &Value, depth: usize) {
        let value = match value {
            // Gemini answers a list of one error.
            Value::Array(items) => items.first().unwrap_or(&Value::Null),
            value => value,
        };
        // Cloudflare answers a list of them in a member of its own.
        let (error, first) = (&value["error"], &value["errors"][0]);
        [value, first, error].into_iter().for_each(|object| self.note(object));
        let raw = &error["metadata"]["raw"];
        let messages = [raw, &error["message"], error, &first["message"]];
        let places = messages.into_iter().chain([&value["message"], &value["detail"], value]);
        let mut texts = places.filter_map(Value::as_str);
        if let Some(text) = texts.find(|text| !text.is_empty()) {
            self.hear(text, depth);
        }
    }

    /// Takes a text as the message, and what is wrapped in it as a better one. A text about the
    /// request's shape may quote the request, so it is left closed.
    fn hear(&mut self, text: &str, depth: usize) {
        self.text = Some(text.to_owned());
        if depth == 0 || texts::find(text, &[TextFamily::Shape]).is_some() {
            return;
        }
        if let Some(inner) = embedded(text) {
            self.open(&inner, depth - 1);
        }
    }

    /// Keeps an object's words and numbers.
    fn note(&mut self, object: &Value) {
        let words = ["code", "type", "status"].into_iter().filter_map(|name| object[name].as_str());
        let words = words.filter(|word| *word != "error" && word.parse::<u16>().is_err());
        self.kinds.splice(0..0, words.map(str::to_owned));
        let code = &object["code"];
        let code = code.as_u64().or_else(|| code.as_str()?.parse().ok());
        let code = code.and_then(|code| u16::try_from(code).ok());
        self.code = self.code.or(code.filter(|code| (400..=599).contains(code)));
        self.input = object["n_prompt_tokens"].as_u64().or(self.input);
        self.limit = object["n_ctx"].as_u64().or(self.limit);
        let request_id = object["request_id"].as_str().map(str::to_owned);
        self.request_id = self.request_id.take().or(request_id);
    }

    /// An answer that stopped because the window is full is no success.
    fn note_stop(&mut self, value: &Value) {
        let choices = value["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let mut reasons = choices.iter().map(|choice| &choice["finish_reason"]);
        if value["stop_reason"] == WINDOW_FILLED || reasons.any(|reason| reason == WINDOW_FILLED) {
            self.kinds.insert(0, WINDOW_FILLED.to_owned());
            self.text = Some(format!("the answer stopped: {WINDOW_FILLED}"));
        }
    }

    /// The innermost word of an error; the words of a success are none.
    pub(super) fn first_kind(&self) -> Option<&String> {
        self.kinds.first().filter(|_| self.is_error || self.text.is_some())
    }

    /// The text to show: the message, else the status and the start of the body.
    pub(super) fn message(&self, status: u16, body: &[u8]) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        if body.trim_ascii().is_empty() {
            return format!("HTTP {status} with an empty body");
        }
        // Four bytes more than are shown, so that no character is cut before it is decoded.
        let start = String::from_utf8_lossy(&body[..body.len().min(BODY_BYTES + 4)]);
        format!("HTTP {status}: {}", bounded(&start, BODY_BYTES))
    }
}

/// Whether a JSON value says that it is an error.
fn marks_error(value: &Value) -> bool {
    let value = value.get(0).unwrap_or(value);
    !value["error"].is_null()
        || value["errors"][0].is_object()
        || value["type"] == "error"
        || value["object"] == "error"
}

/// The first error in a body of many lines, server-sent events or one JSON object a line.
fn error_line(body: &[u8]) -> Option<Value> {
    let mut values = body.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_prefix(b"data:").unwrap_or(line);
        serde_json::from_slice(line).ok()
    });
    values.find(marks_error)
}

/// The error inside a text, where its provider speaks: as JSON, or as Python writes bytes or a dictionary.
/// Text after it does not matter. JSON anywhere else is a quotation.
fn embedded(text: &str) -> Option<Value> {
    let mut values =
        opening::all(text).into_iter().filter_map(|text| match text.strip_prefix('b') {
            Some(bytes) if bytes.starts_with(['\'', '"']) => first_value(&python::string(bytes)?.0),
            _ => first_value(text).or_else(|| first_value(&python::dictionary(text)?)),
        });
    values.find(|value| marks_error(value) || value["message"].is_string())
}

/// The JSON object that `json` starts with; what follows it does not matter.
fn first_value(json: &str) -> Option<Value> {
    let json = json.starts_with('{').then_some(json)?;
    serde_json::Deserializer::from_str(json).into_iter().next()?.ok()
}
