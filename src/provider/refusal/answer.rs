//! Reads the body of a refusal and unwraps errors inside errors, such as JSON inside strings.

use super::place::{self, WirePlace};
use super::text::{self, TextFamily};
use super::{bounded, opening, python};
use serde_json::Value;

/// The maximum number of bytes shown of a body that has no message.
const BODY_BYTES: usize = 500;
/// The maximum depth to which nested errors are unwrapped.
const NESTING: usize = 4;
/// The longest body without JSON, in bytes, that is read as a message.
const PLAIN_BYTES: usize = 4096;
/// The members that hold a message on servers that follow no known form.
const MESSAGE_NAMES: [&str; 9] = [
    "message",
    "msg",
    "error_message",
    "errorMessage",
    "error_msg",
    "error_description",
    "description",
    "reason",
    "title",
];
/// The stop reason, and on some gateways the error code, of an answer that filled the window.
const WINDOW_FILLED: &str = "model_context_window_exceeded";

/// The content of a refusal's body, unwrapped.
#[derive(Default)]
pub(super) struct ErrorBody {
    /// The innermost message.
    pub(super) text: Option<String>,
    /// Types and codes, the innermost first.
    pub(super) kinds: Vec<String>,
    /// The values of `code`, also those that are numbers.
    pub(super) codes: Vec<String>,
    /// The places in the request that the error names in members of their own.
    pub(super) places: Vec<WirePlace>,
    /// A message of an answer in an unknown form: plain text, the title of a page, or a member with another name. It is
    /// judged only as evidence.
    pub(super) other_text: Option<String>,
    /// The status that the error names, 400 to 599.
    pub(super) code: Option<u16>,
    /// The size of the prompt in tokens, if the error has a member for it.
    pub(super) input: Option<u64>,
    /// The window in tokens, if the error has a member for it.
    pub(super) limit: Option<u64>,
    pub(super) request_id: Option<String>,
    pub(super) is_error: bool,
}

impl ErrorBody {
    pub(super) fn read(body: &[u8]) -> ErrorBody {
        let mut answer = ErrorBody::default();
        let whole = serde_json::from_slice(body).ok();
        match whole.or_else(|| error_line(body)) {
            Some(value) => {
                answer.is_error = marks_error(&value);
                answer.open(&value, NESTING);
                answer.note_full_window(&value);
                if answer.text.is_none() {
                    answer.other_text = other_message(&value);
                }
            }
            None => {
                answer.other_text = plain_message(body);
                // A gateway may send an SDK's text, which ends in the provider's answer.
                if let Some(inner) = answer.other_text.as_deref().and_then(embedded) {
                    answer.open(&inner, NESTING);
                }
            }
        }
        answer
    }

    /// Returns the message, also one in an unknown form.
    pub(super) fn own_text(&self) -> Option<&str> {
        self.text.as_deref().or(self.other_text.as_deref())
    }

    /// Returns the places that the error names: in members of their own, else in its message.
    pub(super) fn places(&self) -> Vec<WirePlace> {
        if !self.places.is_empty() {
            return self.places.clone();
        }
        self.text.as_deref().map(place::all).unwrap_or_default()
    }

    /// Reads one level of nesting: its types and numbers, then its message and any error inside that.
    fn open(&mut self, value: &Value, depth: usize) {
        let value = match value {
            // Gemini sends a list with one error.
            Value::Array(items) => items.first().unwrap_or(&Value::Null),
            value => value,
        };
        // Cloudflare sends a list in the member `errors`.
        let (error, first) = (&value["error"], &value["errors"][0]);
        [value, first, error].into_iter().for_each(|object| self.note(object));
        let raw = &error["metadata"]["raw"];
        let messages = [raw, &error["message"], error, &first["message"]];
        let places = messages.into_iter().chain([&value["message"], &value["detail"], value]);
        let mut texts = places.filter_map(Value::as_str);
        if let Some(text) = texts.find(|text| !text.is_empty()) {
            self.take_text(text, depth);
        }
    }

    /// Takes `text` as the message, or the error inside it if there is one. A message about the form of the request may
    /// quote the request, so it is not unwrapped.
    fn take_text(&mut self, text: &str, depth: usize) {
        self.text = Some(text.to_owned());
        if depth == 0 || text::find(text, &[TextFamily::Shape]).is_some() {
            return;
        }
        if let Some(inner) = embedded(text) {
            self.open(&inner, depth - 1);
        }
    }

    /// Collects the types, codes and numbers of an object.
    fn note(&mut self, object: &Value) {
        let words = ["code", "type", "status"].into_iter().filter_map(|name| object[name].as_str());
        let words = words.filter(|word| *word != "error" && word.parse::<u16>().is_err());
        self.kinds.splice(0..0, words.map(str::to_owned));
        self.note_details(object);
        let code = &object["code"];
        let code = code.as_u64().or_else(|| code.as_str()?.parse().ok());
        let code = code.and_then(|code| u16::try_from(code).ok());
        self.code = self.code.or(code.filter(|code| (400..=599).contains(code)));
        self.input = object["n_prompt_tokens"].as_u64().or(self.input);
        self.limit = object["n_ctx"].as_u64().or(self.limit);
        let request_id = object["request_id"].as_str().map(str::to_owned);
        self.request_id = self.request_id.take().or(request_id);
    }

    /// Collects the code and the places that Anthropic sends in `details`, the member that OpenAI names in `param`, and
    /// codes that are numbers.
    fn note_details(&mut self, object: &Value) {
        let details = &object["details"];
        let code = details["error_code"].as_str().map(str::to_owned);
        self.kinds.splice(0..0, code);
        let paths = details["paths"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let paths = paths.chain([&object["param"]]).filter_map(Value::as_str);
        self.places.extend(paths.flat_map(place::all));
        self.note_locations(&object["detail"]);
        let number = &object["code"];
        self.codes.extend(number.as_str().map(str::to_owned));
        self.codes.extend(number.as_u64().map(|number| number.to_string()));
    }

    /// Collects the places that FastAPI sends: a list of objects with `loc`, the way to a member, as names and numbers.
    fn note_locations(&mut self, detail: &Value) {
        for item in detail.as_array().into_iter().flatten() {
            let way = item["loc"].as_array().map_or(&[][..], Vec::as_slice).iter();
            let step = |step: &Value| match (step.as_u64(), step.as_str()) {
                (Some(index), _) => format!("[{index}]"),
                (None, name) => format!(".{}", name.unwrap_or_default()),
            };
            self.places.extend(place::all(&way.map(step).collect::<String>()));
        }
    }

    /// If the answer stopped because the window was full, turns it into an overflow.
    fn note_full_window(&mut self, value: &Value) {
        let choices = value["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let mut reasons = choices.iter().map(|choice| &choice["finish_reason"]);
        if value["stop_reason"] == WINDOW_FILLED || reasons.any(|reason| reason == WINDOW_FILLED) {
            self.kinds.insert(0, WINDOW_FILLED.to_owned());
            self.text = Some(format!("the answer stopped: {WINDOW_FILLED}"));
        }
    }

    /// Returns the innermost type or code; `None` if the body is not an error.
    pub(super) fn first_kind(&self) -> Option<&String> {
        self.kinds.first().filter(|_| self.is_error || self.text.is_some())
    }

    /// Returns the text to show: the message, or the status and the beginning of the body.
    pub(super) fn message(&self, status: u16, body: &[u8]) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        if body.trim_ascii().is_empty() {
            return format!("HTTP {status} with an empty body");
        }
        format!("HTTP {status}: {}", bounded(&String::from_utf8_lossy(body), BODY_BYTES))
    }
}

/// Returns the message of an error in an unknown form: the first of the usual members, at the top or one level down.
fn other_message(value: &Value) -> Option<String> {
    let value = value.get(0).unwrap_or(value);
    let named = |object: &Value| {
        MESSAGE_NAMES.iter().find_map(|name| object[*name].as_str()).map(str::to_owned)
    };
    let inner = ["error", "errors", "detail", "details", "base_resp", "fault", "status"];
    let inner = inner.into_iter().map(|name| value[name].get(0).unwrap_or(&value[name]));
    let status = value["base_resp"]["status_msg"].as_str().map(str::to_owned);
    std::iter::once(value).chain(inner).find_map(named).or(status)
}

/// Returns the message of a body without JSON: short plain text, or the title of a page.
fn plain_message(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(PLAIN_BYTES)]);
    let text = text.trim();
    if !text.starts_with('<') {
        return (!text.is_empty() && body.len() <= PLAIN_BYTES).then(|| text.to_owned());
    }
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let length = lower.get(start..)?.find('<')?;
    text.get(start..start + length).map(|title| title.trim().to_owned())
}

/// Returns true if a JSON value is marked as an error.
fn marks_error(value: &Value) -> bool {
    let value = value.get(0).unwrap_or(value);
    !value["error"].is_null()
        || value["errors"][0].is_object()
        || value["type"] == "error"
        || value["object"] == "error"
}

/// Returns the first error in a body of several lines: server-sent events or one JSON object per line.
fn error_line(body: &[u8]) -> Option<Value> {
    let mut values = body.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_prefix(b"data:").unwrap_or(line);
        serde_json::from_slice(line).ok()
    });
    values.find(marks_error)
}

/// Returns the error inside a message: JSON, or a Python bytes literal or dictionary. It must stand where the
/// provider's own words begin; anywhere else it is a quotation. Text after it is ignored.
fn embedded(text: &str) -> Option<Value> {
    let mut values =
        opening::all(text).into_iter().filter_map(|text| match text.strip_prefix('b') {
            Some(bytes) => first_value(&python::string(bytes)?.0),
            _ => first_value(text).or_else(|| first_value(&python::dictionary(text)?)),
        });
    values.find(|value| marks_error(value) || value["message"].is_string())
}

/// Parses the JSON object at the beginning of `json`. Text after it is ignored.
fn first_value(json: &str) -> Option<Value> {
    let json = json.starts_with('{').then_some(json)?;
    serde_json::Deserializer::from_str(json).into_iter().next()?.ok()
}
