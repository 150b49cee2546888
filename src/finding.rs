//! Findings: what is wrong at a place of an input. Reading goes on after one.

pub mod rules;

use crate::id::Id;
use crate::json::push_quoted;
use rules::Rule;
use std::fmt;
use std::sync::Arc;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing was lost.
    Note,
    /// Mended on the way out; something stands in the file that no provider would take.
    Warning,
    /// Bytes that could not be used.
    Error,
}

impl Severity {
    /// The word for it in messages and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The place of a line in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The input's name: a path, or `<stdin>`.
    pub input: Arc<str>,
    /// Line number, from 1; unknown where reading began in the middle.
    pub line: Option<u64>,
    /// Byte offset of the line in its input, from 0.
    pub offset: u64,
    /// The line's length in bytes, without its end.
    pub length: u64,
}

/// Something wrong at a place of an input; it never stops the reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// Where.
    pub place: Place,
    /// The record's id, if the line holds a record.
    pub id: Option<Id>,
    /// What is wrong and what was done about it.
    pub message: String,
}

impl Finding {
    /// The finding as members of a JSON object, without braces.
    #[must_use]
    pub fn members(&self) -> String {
        let mut json = String::new();
        self.push_members(&mut json);
        json
    }

    /// Adds the finding as a JSON object to `json`.
    pub fn push_json(&self, json: &mut String) {
        json.push('{');
        self.push_members(json);
        json.push_str(r#","message":"#);
        push_quoted(json, &self.message);
        json.push('}');
    }

    fn push_members(&self, json: &mut String) {
        let (Place { input, line, offset, length }, rule) = (&self.place, self.rule);
        json.push_str(r#""rule":"#);
        push_quoted(json, rule.name);
        json.push_str(r#","severity":"#);
        push_quoted(json, rule.severity.name());
        json.push_str(r#","input":"#);
        push_quoted(json, input);
        let mut number = |name: &str, number: Option<u64>| {
            json.push_str(name);
            let mut digits = itoa::Buffer::new();
            json.push_str(number.map_or("null", |number| digits.format(number)));
        };
        number(r#","line":"#, *line);
        number(r#","offset":"#, Some(*offset));
        number(r#","length":"#, Some(*length));
        json.push_str(r#","id":"#);
        match &self.id {
            Some(id) => push_quoted(json, id),
            None => json.push_str("null"),
        }
        json.push_str(if rule.mended { r#","mended":true"# } else { r#","mended":false"# });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { input, line, offset, length } = &self.place;
        let (rule, message) = (self.rule.name, &self.message);
        write!(f, "{rule}: '{input}'")?;
        line.map_or(Ok(()), |line| write!(f, " line {line},"))?;
        write!(f, " byte {offset}, {length} bytes: {message}")
    }
}
