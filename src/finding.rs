//! Findings: what is wrong at a place of an input. Reading continues after one.

pub mod rules;

use crate::id::Id;
use crate::json::write::Members;
use rules::Rule;
use std::fmt;
use std::sync::Arc;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing was lost.
    Note,
    /// Repaired in the output; the file has something that a provider refuses.
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
    /// Adds the finding, without its message.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        let (Place { input, line, offset, length }, rule) = (&self.place, self.rule);
        members
            .string("rule", rule.name)
            .string("severity", rule.severity.name())
            .string("input", input)
            .or_null(Members::number, "line", *line)
            .number("offset", *offset)
            .number("length", *length)
            .or_null(Members::string, "id", self.id.as_deref())
            .bool("mended", rule.mended)
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
