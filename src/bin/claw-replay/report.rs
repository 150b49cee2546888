//! The report on one transcript: one line of JSON. It contains no times, so each run writes the same bytes.

use clawutils::exit::{self, Exit};
use clawutils::json::write::Members;
use clawutils::json::{Object, elements};
use clawutils::printable::printable_json;
use std::borrow::Cow;

/// The outcome of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No case failed.
    Passed,
    /// At least one case failed.
    Failed,
    /// The file is not a transcript, or it cannot be read.
    Unreadable,
}

impl Status {
    const ALL: [Status; 3] = [Status::Passed, Status::Failed, Status::Unreadable];

    /// Returns the word in the report.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Unreadable => "unreadable",
        }
    }
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The transcript is as expected.
    Passed,
    /// The transcript is not as expected.
    Failed,
    /// The case was not examined.
    Skipped,
}

impl Outcome {
    const ALL: [Outcome; 3] = [Outcome::Passed, Outcome::Failed, Outcome::Skipped];

    /// Returns the word in the report.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
        }
    }
}

/// One thing that a mode examines in a transcript. Its name is the same in each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name, unique in its report, such as `window 32000` or `turn 3`.
    pub name: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The outcome in one line. It may quote the transcript.
    pub message: String,
    /// The line of the transcript that the message is about.
    pub line: Option<u64>,
    /// Further text of several lines, such as a diff. Control characters are not escaped.
    pub detail: Option<String>,
}

impl Case {
    /// Creates a case without a line and detail.
    pub fn new(name: impl Into<String>, outcome: Outcome, message: impl Into<String>) -> Case {
        Case { name: name.into(), outcome, message: message.into(), line: None, detail: None }
    }

    /// Adds the members of the case.
    fn add_to(&self, members: Members) -> Members {
        members
            .string("name", &self.name)
            .string("status", self.outcome.name())
            .string("message", &self.message)
            .optional(Members::number, "line", self.line)
            .optional(Members::string, "detail", self.detail.as_deref())
    }

    fn parse(json: &str) -> Option<Case> {
        let case = Object::parse(json).ok()?;
        let text = |name| case.string(name).map(Cow::into_owned);
        let status = text("status")?;
        Some(Case {
            name: text("name")?,
            outcome: Outcome::ALL.into_iter().find(|outcome| outcome.name() == status)?,
            message: text("message")?,
            line: case.number("line"),
            detail: text("detail"),
        })
    }
}

/// The report on one transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The path of the transcript, as it was given or found.
    pub path: String,
    /// The name of the mode.
    pub mode: String,
    /// The outcome.
    pub status: Status,
    /// The outcome in one line: that of the first failed case, or the reason why the file is unreadable.
    pub message: Option<String>,
    /// If the file is unreadable, the exit status with which other programs would fail on it, such as 65 if it is not a
    /// transcript.
    pub exit: Option<u8>,
    /// The cases, in the order of the transcript.
    pub cases: Vec<Case>,
    /// The numbers that the mode reports.
    pub numbers: Members,
    /// False if the state file must not keep the report, because a call to a model failed and may succeed in the next
    /// run, or because the run changed the expected replies. Not part of the JSON.
    pub is_lasting: bool,
}

impl Report {
    /// Creates the report on a transcript that was read. It passed unless a case failed.
    pub fn new(mode: &str, path: &str, cases: Vec<Case>, numbers: Members) -> Report {
        let failed = cases.iter().find(|case| case.outcome == Outcome::Failed);
        Report {
            path: path.to_owned(),
            mode: mode.to_owned(),
            status: if failed.is_some() { Status::Failed } else { Status::Passed },
            message: failed.map(|case| [&case.name, ": ", &case.message].concat()),
            exit: None,
            cases,
            numbers,
            is_lasting: true,
        }
    }

    /// Creates the report on a file that cannot be read as a transcript.
    pub fn unreadable(mode: &str, path: &str, error: &anyhow::Error) -> Report {
        Report {
            status: Status::Unreadable,
            message: Some(exit::text(error)),
            exit: Some(exit::status(error).code()),
            ..Report::new(mode, path, Vec::new(), Members::new())
        }
    }

    /// Returns true if the transcript failed, or the file is unreadable. A file that is not a transcript counts only if
    /// `strict` is true.
    pub fn is_failure(&self, strict: bool) -> bool {
        match self.status {
            Status::Passed => false,
            Status::Failed => true,
            Status::Unreadable => strict || !self.is_not_a_transcript(),
        }
    }

    /// Returns true if the file is not a transcript, as opposed to one that cannot be opened.
    pub fn is_not_a_transcript(&self) -> bool {
        self.exit == Some(Exit::Data.code())
    }

    /// Returns the report as one line of JSON, without a line feed. Control characters are escaped.
    pub fn to_json(&self) -> String {
        // Most reports fit in 1,000 bytes, so the text is not reallocated while it grows.
        let json = Members::with_capacity(1000)
            .string("path", &self.path)
            .string("mode", &self.mode)
            .string("status", self.status.name())
            .optional(Members::string, "message", self.message.as_deref())
            .optional(Members::number, "exit", self.exit)
            .objects("cases", &self.cases, |members, case| case.add_to(members))
            .object("numbers", |members| members.members(&self.numbers))
            .into_json();
        printable_json(&json).into_owned()
    }

    /// Parses a line that [`Report::to_json`] wrote.
    pub fn parse(json: &str) -> Option<Report> {
        let report = Object::parse(json).ok()?;
        let text = |name| report.string(name).map(Cow::into_owned);
        let status = text("status")?;
        let cases = elements(report.get("cases")?)?;
        Some(Report {
            path: text("path")?,
            mode: text("mode")?,
            status: Status::ALL.into_iter().find(|known| known.name() == status)?,
            message: text("message"),
            exit: report.number("exit").and_then(|exit| u8::try_from(exit).ok()),
            cases: cases.into_iter().map(Case::parse).collect::<Option<_>>()?,
            numbers: Members::new().spread(report.get("numbers")?),
            is_lasting: true,
        })
    }
}

/// Returns a number with its noun, which has an `s` for many.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_does_not_change_when_it_is_written_and_read() {
        let failed = Case {
            line: Some(3),
            detail: Some("- a\n+ \u{1b}[31mb\n".to_owned()),
            ..Case::new("turn 2", Outcome::Failed, "differs \u{7f}")
        };
        let cases = vec![Case::new("turn 1", Outcome::Passed, "same"), failed];
        let numbers = Members::new().number("turns", 2).object("usage", |it| it.number("in", 1));
        let report = Report::new("call", "a \"b\".jsonl", cases, numbers);
        assert_eq!(report.message.as_deref(), Some("turn 2: differs \u{7f}"));
        let empty = Report::new("check", "c", Vec::new(), Members::new());
        let why = exit::fail::<()>(Exit::Data, "not a transcript").unwrap_err();
        for report in [report, empty, Report::unreadable("check", "d", &why)] {
            let json = report.to_json();
            assert!(json.chars().all(|c| !c.is_control()), "{json}");
            assert_eq!(Report::parse(&json), Some(report));
        }
    }
}
