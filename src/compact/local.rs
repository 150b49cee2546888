//! A summary that is put together without a model: what was asked first, what the assistant said line by
//! line, which tools ran, which files were touched, and how it ended. It weighs nothing and invents nothing.
//!
//! The user's own words, and what is pinned, stand beside any summary and are not repeated here.

use crate::compact::details::Details;
use crate::compact::{Planned, Task};
use crate::json::string;
use crate::messages::{BlockKind, Message, Role};

/// What the reader is told first.
const HEADING: &str = "(Put together without a model: what was said, shortened.)";

/// How much is said, from generous to bare.
const LEVELS: [Level; 6] = [
    Level { earlier: 6000, first: 2000, lines: 60, line: 300, last: 2000 },
    Level { earlier: 3000, first: 1000, lines: 40, line: 200, last: 1000 },
    Level { earlier: 1500, first: 500, lines: 20, line: 140, last: 500 },
    Level { earlier: 800, first: 250, lines: 10, line: 110, last: 250 },
    Level { earlier: 400, first: 120, lines: 4, line: 90, last: 120 },
    Level { earlier: 120, first: 80, lines: 0, line: 0, last: 80 },
];

/// How much is said of each thing: all in characters but `lines`.
#[derive(Clone, Copy)]
struct Level {
    /// Of an earlier summary.
    earlier: usize,
    /// Of the first request.
    first: usize,
    /// Of what the assistant said so many lines, the newest.
    lines: usize,
    line: usize,
    /// Of the last answer.
    last: usize,
}

/// The summary of the covered messages, as long as a summary may be. Of what does not fit the least is
/// said, and something always is.
#[must_use]
pub fn summary(task: &Task<'_, '_>, planned: &Planned) -> String {
    let covered = &task.messages[planned.from..planned.at];
    let mut text = String::new();
    for level in LEVELS {
        text = compose(covered, planned, level);
        if task.gauge.text(&text) <= task.most_tokens(planned) {
            break;
        }
    }
    text
}

fn compose(covered: &[Message<'_>], planned: &Planned, level: Level) -> String {
    let mut parts = vec![HEADING.to_owned()];
    let mut add = |title: &str, text: String| {
        if !text.trim().is_empty() {
            parts.push(format!("{title}:\n{text}"));
        }
    };
    let earlier = planned.earlier.as_deref().map(without_heading).unwrap_or_default();
    add("Before that", short(earlier, level.earlier));
    add("The first request", first_request(covered, planned, level.first));
    add("What the assistant said, in order", said(covered, level));
    add("Tools that ran", tools(covered));
    let Details { read, modified } = &planned.details;
    let list = |paths: &std::collections::BTreeSet<String>| {
        short(&paths.iter().cloned().collect::<Vec<_>>().join(", "), level.earlier)
    };
    add("Files read", list(read));
    add("Files changed", list(modified));
    add("The last answer", last_answer(covered, level.last));
    parts.join("\n\n")
}

/// An earlier summary of this kind has told that already.
fn without_heading(text: &str) -> &str {
    text.strip_prefix(HEADING).unwrap_or(text).trim()
}

/// The first thing that the user said, unless it is kept word for word.
fn first_request(covered: &[Message<'_>], planned: &Planned, most: usize) -> String {
    let first = covered.iter().find(|m| m.is_said_by_user() && !m.is_summary());
    let said = first.map(|message| message.content.says()).unwrap_or_default();
    if planned.kept_user.contains(&said) { String::new() } else { short(&said, most) }
}

fn answers<'m>(covered: &'m [Message<'_>]) -> impl DoubleEndedIterator<Item = String> + 'm {
    let answers = covered.iter().filter(|message| message.role == Role::Assistant);
    answers.map(|message| message.content.says()).filter(|text| !text.trim().is_empty())
}

/// A line of each answer, of the newest ones.
fn said(covered: &[Message<'_>], level: Level) -> String {
    let line = |text: String| {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        format!("- {}", short(first.trim(), level.line))
    };
    let mut lines: Vec<String> = answers(covered).rev().take(level.lines).map(line).collect();
    lines.reverse();
    lines.join("\n")
}

/// The tools in the order in which they ran first, and how often.
fn tools(covered: &[Message<'_>]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for block in covered.iter().flat_map(Message::blocks) {
        let BlockKind::ToolUse { .. } = block.kind else { continue };
        let name = block.member("name").and_then(string).unwrap_or_default().into_owned();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let told: Vec<_> = counts.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    told.join(", ")
}

fn last_answer(covered: &[Message<'_>], most: usize) -> String {
    answers(covered).next_back().map(|text| short(text.trim(), most)).unwrap_or_default()
}

/// The beginning of a text, with a sign that it goes on.
fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::cut::Rule;
    use crate::estimate::{Gauge, Request};
    use crate::messages;

    const TALK: &str = r#"{"role":"user","content":"Build it. Never push to main."}
{"role":"assistant","content":[{"type":"text","text":"I look.\nAnd more."},{"type":"tool_use","id":"a","name":"read_file","input":{"path":"a.c"}},{"type":"tool_use","id":"b","name":"edit_file","input":{"path":"b.c"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"b","content":"y"}]}
{"role":"assistant","content":"It builds now."}
{"role":"user","content":"Good. Next?"}
{"role":"assistant","content":"Tests."}
{"role":"user","content":"And?"}
{"role":"assistant","content":"Docs."}"#;

    fn made(keep_user: u64, target: Option<u64>) -> String {
        let messages = messages::read("t", TALK.as_bytes()).unwrap();
        let request = Request { messages: &messages, system: None, tools: None };
        let gauge = Gauge::new(request, None);
        let task = Task {
            messages: &messages,
            system: None,
            tools: None,
            gauge,
            target,
            keep_user,
            rule: Rule::Half,
        };
        let planned = task.planned(4, 0);
        summary(&task, &planned)
    }

    #[test]
    fn it_says_what_happened_and_invents_nothing() {
        assert_eq!(
            made(1000, None),
            "(Put together without a model: what was said, shortened.)\n\n\
             What the assistant said, in order:\n- I look.\n- It builds now.\n\n\
             Tools that ran:\nread_file (1), edit_file (1)\n\n\
             Files read:\na.c\n\nFiles changed:\nb.c\n\n\
             The last answer:\nIt builds now."
        );
        let unkept = made(0, None);
        assert!(unkept.contains("The first request:\nBuild it. Never push to main."), "{unkept}");
    }

    #[test]
    fn it_is_as_long_as_a_summary_may_be() {
        let long = "word ".repeat(3000);
        let line = |role: &str| format!(r#"{{"role":"{role}","content":"{long}"}}"#);
        let talk: Vec<String> =
            (0..40).map(|n| line(if n % 2 == 0 { "user" } else { "assistant" })).collect();
        let text = talk.join("\n");
        let messages = messages::read("t", text.as_bytes()).unwrap();
        let request = Request { messages: &messages, system: None, tools: None };
        for target in [2000, 8000, 100_000] {
            let gauge = Gauge::new(request, None);
            let target = Some(target);
            let task = Task {
                messages: &messages,
                system: None,
                tools: None,
                gauge,
                target,
                keep_user: 0,
                rule: Rule::Half,
            };
            let planned = task.planned(20, 0);
            let text = summary(&task, &planned);
            assert!(task.gauge.text(&text) <= task.summary_tokens(), "{target:?}");
        }
    }
}
