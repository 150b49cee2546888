//! Findings: problems at a place in an input. Reading continues after a finding.

mod findings;
pub mod rules;

use crate::id::Id;
use crate::json::write::Members;
pub use findings::{Findings, MAX_LISTED, OfRule};
use rules::Rule;
use std::fmt;
use std::sync::Arc;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// For information.
    Note,
    /// A problem that claw-rebuild repairs or works around.
    Warning,
    /// A problem that claw-rebuild cannot repair.
    Error,
}

impl Severity {
    /// Returns the word for messages and JSON.
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
    /// The name of the input: a path, or `<stdin>`.
    pub input: Arc<str>,
    /// The line number, from 1; `None` if reading began in the middle of the input.
    pub line: Option<u64>,
    /// The byte offset of the line in the input, from 0.
    pub offset: u64,
    /// The length of the line in bytes, without its line feed.
    pub length: u64,
}

/// A problem at a place in an input. Reading continues after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// The place of the line or record.
    pub place: Place,
    /// The id of the record, if the line contains one.
    pub id: Option<Id>,
    /// The problem, and what was done about it.
    pub message: String,
}

impl Finding {
    /// Adds the parts of the finding, except for its message, to the members of a JSON object.
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
            .bool("repaired", rule.repaired)
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
