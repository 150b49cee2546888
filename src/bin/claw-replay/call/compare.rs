//! Comparisons of a recorded reply with a new one.

use crate::call::reply::{Reply, ToolCall};
use clawutils::exit::{Exit, fail};
use clawutils::json::write::Members;
use clawutils::printable::printable;
use clawutils::process::{self, ChildLimits};
use clawutils::show::edit;
use std::convert::Infallible;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// The maximum length of a detail in bytes, roughly.
const MAX_DETAIL: usize = 64 * 1024;
/// The maximum length of a name in a message, in characters.
const MAX_NAME: usize = 60;
/// The longest time that a command may take.
const MAX_TIME: Duration = Duration::from_secs(600);

/// The way to compare two replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Text and calls are equal.
    Exact,
    /// The same tools are called in the same order.
    Calls,
    /// The same tools are called in the same order with equal inputs.
    CallsAndInputs,
    /// A command decides.
    Command(String),
}

/// A difference between two replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The difference in one line.
    pub message: String,
    /// The lines that differ, or the output of the command.
    pub detail: Option<String>,
}

/// The transcript and the case of a reply.
#[derive(Clone, Copy, Debug)]
pub struct CaseName<'c> {
    /// The path of the transcript.
    pub transcript: &'c str,
    /// The name of the case.
    pub case: &'c str,
}

impl Comparison {
    /// Parses the name of a comparison. Any other text is a command.
    ///
    /// # Errors
    /// Never fails.
    pub fn parse(text: &str) -> Result<Comparison, Infallible> {
        Ok(match text {
            "exact" => Comparison::Exact,
            "calls" => Comparison::Calls,
            "calls-and-inputs" => Comparison::CallsAndInputs,
            command => Comparison::Command(command.to_owned()),
        })
    }

    /// Returns the difference between two replies, or `None` if they count as the same.
    ///
    /// # Errors
    /// Fails with 78 if the command cannot be run, and with 69 if it fails or does not end in time.
    pub fn compare(
        &self,
        name: CaseName<'_>,
        recorded: &Reply,
        new: &Reply,
    ) -> anyhow::Result<Option<Difference>> {
        let (old_lines, new_lines) = match self {
            Comparison::Command(command) => return run(command, name, recorded, new),
            Comparison::Exact => (whole(recorded), whole(new)),
            Comparison::Calls => (names(recorded), names(new)),
            Comparison::CallsAndInputs => (calls(recorded), calls(new)),
        };
        let is_same = match self {
            Comparison::Exact => recorded == new,
            _ => old_lines == new_lines,
        };
        let message = || first_difference(recorded, new, *self != Comparison::Calls);
        Ok((!is_same)
            .then(|| Difference { message: message(), detail: Some(diff(&old_lines, &new_lines)) }))
    }
}

/// Describes the first difference in the calls, including their inputs if `inputs` is true. If there is none, describes
/// the first difference in the text.
fn first_difference(recorded: &Reply, new: &Reply, inputs: bool) -> String {
    let shown = |call: Option<&ToolCall>| {
        call.map_or("no call".to_owned(), |call| format!("a call to '{}'", shortened(&call.name)))
    };
    for index in 0..recorded.calls.len().max(new.calls.len()) {
        let (old, new) = (recorded.calls.get(index), new.calls.get(index));
        if old.map(|call| &call.name) != new.map(|call| &call.name) {
            let (number, old, new) = (index + 1, shown(old), shown(new));
            return format!("tool call {number}: the recorded reply has {old}, the new one {new}");
        }
        if inputs && old != new {
            return format!("tool call {}: the input of {} differs", index + 1, shown(new));
        }
    }
    let mut lines = recorded.text.lines().zip(new.text.lines());
    let same = lines.by_ref().take_while(|(old, new)| old == new).count();
    format!("the text differs in line {}", same + 1)
}

/// Returns the beginning of a name, on one line.
fn shortened(name: &str) -> String {
    let short: String = name.chars().take(MAX_NAME).collect();
    let mark = if short.len() < name.len() { "…" } else { "" };
    printable(&short).into_owned() + mark
}

/// Returns the names of the tools that are called, one per line.
fn names(reply: &Reply) -> String {
    reply.calls.iter().map(|call| call_line(call, "")).collect()
}

/// Returns the calls, one per line.
fn calls(reply: &Reply) -> String {
    reply.calls.iter().map(|call| call_line(call, &call.input)).collect()
}

fn call_line(call: &ToolCall, input: &str) -> String {
    // A line feed in a name must not look like another call.
    format!("call {} {input}", call.name.replace('\n', "\\n")).trim_end().to_owned() + "\n"
}

/// Returns the text and the calls.
fn whole(reply: &Reply) -> String {
    let end = if reply.text.is_empty() || reply.text.ends_with('\n') { "" } else { "\n" };
    [&reply.text, end, &calls(reply)].concat()
}

/// Returns the lines that differ and the lines around them, up to about [`MAX_DETAIL`] bytes.
fn diff(recorded: &str, new: &str) -> String {
    let mut text = "--- recorded\n+++ new\n".to_owned();
    let lines = edit::compare(recorded, new);
    for (index, line) in lines.iter().enumerate() {
        if text.len() + line.text.len() > MAX_DETAIL {
            // Writing to a string never fails.
            let _ = writeln!(text, "… {} more lines", lines.len() - index);
            break;
        }
        text.extend([line.kind.sign(), &line.text, "\n"]);
    }
    text
}

/// Lets a command compare two replies. Its exit status is 0 if they count as the same, and 1 if they differ.
fn run(
    command: &str,
    name: CaseName<'_>,
    recorded: &Reply,
    new: &Reply,
) -> anyhow::Result<Option<Difference>> {
    let line = |which: &str, reply: &Reply| {
        let members = Members::new().string("transcript", name.transcript);
        let members = members.string("case", name.case).string("reply", which);
        reply.add_to(members).into_line()
    };
    let input = [line("recorded", recorded), line("new", new)].concat();
    let until = Instant::now().checked_add(MAX_TIME);
    let limits = ChildLimits { until, ..ChildLimits::default() };
    let ended = process::run(command, &[], input.into_bytes(), limits)?;
    let output = String::from_utf8_lossy(&ended.stdout);
    match ended.status {
        Some(0) => Ok(None),
        Some(1) => Ok(Some(Difference {
            message: format!("'{}' reports a difference", shortened(command)),
            detail: Some(cut(&output)).filter(|text| !text.trim().is_empty()),
        })),
        Some(126 | 127) => {
            let advice = "give exact, calls, calls-and-inputs or a command that exists";
            let text = format!("cannot run '{command}', the command of --compare; {advice}");
            fail(Exit::Config, text)
        }
        _ => {
            let error = ended.failure(command, "cannot compare the replies");
            fail(Exit::Unavailable, error.to_string())
        }
    }
}

/// Returns the beginning of `text`.
fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_DETAIL);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mark = if end < text.len() { "…\n" } else { "" };
    [&text[..end], mark].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, calls: &[(&str, &str)]) -> Reply {
        let call = |(name, input): &(&str, &str)| ToolCall {
            name: (*name).to_owned(),
            input: (*input).to_owned(),
        };
        Reply { text: text.to_owned(), calls: calls.iter().map(call).collect() }
    }

    fn compared(how: &str, recorded: &Reply, new: &Reply) -> Option<Difference> {
        let name = CaseName { transcript: "t", case: "turn 1" };
        let Ok(comparison) = Comparison::parse(how);
        comparison.compare(name, recorded, new).unwrap()
    }

    #[test]
    fn each_comparison_reports_only_its_kind_of_difference() {
        let recorded = reply("a\nb", &[("f", r#"{"x":1}"#)]);
        for (new, message, [exact, inputs, calls]) in [
            (recorded.clone(), "", [false; 3]),
            (
                reply("a\nc", &[("f", r#"{"x":1}"#)]),
                "the text differs in line 2",
                [true, false, false],
            ),
            (
                reply("a\nb\n", &[("f", r#"{"x":1}"#)]),
                "the text differs in line 3",
                [true, false, false],
            ),
            (
                reply("a\nb", &[("f", r#"{"x":2}"#)]),
                "tool call 1: the input of a call to 'f' differs",
                [true, true, false],
            ),
            (
                reply("a\nb", &[("g", r#"{"x":1}"#)]),
                "tool call 1: the recorded reply has a call to 'f', the new one a call to 'g'",
                [true; 3],
            ),
            (
                reply("a\nb", &[]),
                "tool call 1: the recorded reply has a call to 'f', the new one no call",
                [true; 3],
            ),
        ] {
            for (how, differs) in [("exact", exact), ("calls-and-inputs", inputs), ("calls", calls)]
            {
                let found = compared(how, &recorded, &new).map(|found| found.message);
                assert_eq!(found.as_deref(), differs.then_some(message), "{how}");
            }
        }
    }

    #[test]
    fn a_difference_is_shown_as_lines() {
        let (one, two) = (reply("same\nold", &[("f", "{}")]), reply("same\nnew", &[("f", "{}")]));
        let found = compared("exact", &one, &two).unwrap();
        let detail = "--- recorded\n+++ new\n same\n-old\n+new\n call f {}\n";
        assert_eq!(found.detail.as_deref(), Some(detail));
        let long = reply(&"x\n".repeat(100_000), &[]);
        let detail = compared("exact", &one, &long).unwrap().detail.unwrap();
        assert!(detail.len() < MAX_DETAIL + 100 && detail.ends_with(" more lines\n"), "{detail}");
    }

    #[test]
    fn the_exit_status_of_a_command_decides() {
        let (one, two) = (reply("a", &[]), reply("b", &[]));
        assert_eq!(compared("true", &one, &two), None);
        let found = compared("cut -c 1-60; exit 1", &one, &two).unwrap();
        assert_eq!(found.message, "'cut -c 1-60; exit 1' reports a difference");
        let detail = found.detail.unwrap();
        let lines: Vec<&str> = detail.lines().collect();
        assert_eq!(lines[0], r#"{"transcript":"t","case":"turn 1","reply":"recorded","text":"#);
        let name = CaseName { transcript: "t", case: "turn 1" };
        for (command, exit) in [("exit 2", Exit::Unavailable), ("/none/such", Exit::Config)] {
            let Ok(comparison) = Comparison::parse(command);
            let error = comparison.compare(name, &one, &two).unwrap_err();
            assert_eq!(clawutils::exit::status(&error), exit, "{error}");
        }
    }
}
