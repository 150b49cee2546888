//! Spans as the JSON of OTLP 1.10: ids in hexadecimal, integers of 64 bits as strings, times in nanoseconds.

use super::conventions::attribute;
use crate::json::write::Members;

/// The kinds of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// An operation in the program.
    Internal = 1,
    /// A request to a server.
    Client = 3,
}

/// A span.
#[derive(Clone, Debug)]
pub struct Span {
    pub trace: String,
    pub id: String,
    /// The id of the span that it belongs to.
    pub parent: Option<String>,
    pub name: String,
    pub kind: SpanKind,
    /// The beginning and the end in microseconds since 1970.
    pub start: i64,
    pub end: i64,
    /// The attributes as JSON.
    pub attributes: Vec<String>,
    pub has_failed: bool,
}

impl Span {
    pub fn string(&mut self, name: &str, value: &str) {
        self.add(name, Members::new().string("stringValue", value));
    }

    /// Adds a list of strings.
    pub fn strings(&mut self, name: &str, values: &[&str]) {
        let values = values.iter().map(|value| Members::new().string("stringValue", value));
        let values: Vec<String> = values.map(Members::into_json).collect();
        self.add(name, Members::new().object("arrayValue", |it| it.list("values", values)));
    }

    pub fn number(&mut self, name: &str, value: u64) {
        self.add(name, Members::new().string("intValue", &value.to_string()));
    }

    /// Adds `true`.
    pub fn flag(&mut self, name: &str) {
        self.add(name, Members::new().bool("boolValue", true));
    }

    /// Marks it as failed.
    pub fn fail(&mut self, error: &str) {
        self.has_failed = true;
        self.string(attribute::ERROR, error);
    }

    /// Gives times that are unknown or before `first` that time.
    pub fn begin_at_least(&mut self, first: i64) {
        self.start = self.start.max(first);
        self.end = self.end.max(first);
    }

    fn add(&mut self, name: &str, value: Members) {
        self.attributes.push(pair(name, value));
    }

    fn to_json(&self) -> String {
        let time = |micros: i64| (i128::from(micros) * 1000).to_string();
        let members = Members::new()
            .string("traceId", &self.trace)
            .string("spanId", &self.id)
            .optional(Members::string, "parentSpanId", self.parent.as_deref())
            .string("name", &self.name)
            .number("kind", self.kind as u8)
            .string("startTimeUnixNano", &time(self.start))
            .string("endTimeUnixNano", &time(self.end.max(self.start)))
            .list("attributes", &self.attributes);
        let members = match self.has_failed {
            true => members.object("status", |it| it.number("code", 2)),
            false => members,
        };
        members.into_json()
    }
}

fn pair(name: &str, value: Members) -> String {
    Members::new().string("key", name).raw("value", &value.into_json()).into_json()
}

/// Returns the spans of a turn as a line. `service` is the name of the program that made the calls.
pub fn line(service: &str, spans: &[Span]) -> String {
    let service = pair(attribute::SERVICE, Members::new().string("stringValue", service));
    let spans: Vec<String> = spans.iter().map(Span::to_json).collect();
    let scope =
        |it: Members| it.string("name", "clawutils").string("version", env!("CARGO_PKG_VERSION"));
    let spans = Members::new().object("scope", scope).list("spans", spans).into_json();
    let resource = |it: Members| it.list("attributes", [service]);
    let all = Members::new().object("resource", resource).list("scopeSpans", [spans]).into_json();
    Members::new().list("resourceSpans", [all]).into_line()
}
