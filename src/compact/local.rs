//! A summary that is extracted from the messages, without a model.
//!
//! It contains an earlier summary or else the first request, decisions, open questions, a line of each answer, the
//! tools that ran, the files they read or changed, exact names, and the last answer. Kept user messages and pinned
//! messages accompany every summary, so they are not repeated here.

use crate::compact::{CutPlan, Task, identifiers, phrases};
use crate::json::string;
use crate::messages::Message;
use crate::record::content::{BlockKind, Role};
use crate::record::details::Details;
use std::collections::BTreeMap;

/// The first line of the summary.
const HEADING: &str = "(Put together without a model: what was said, shortened.)";

/// The titles of the sections, in order.
const TITLES: [&str; 10] =
    [EARLIER, FIRST, DECISIONS, QUESTIONS, SAID, TOOLS, READ, CHANGED, NAMES, LAST];
const EARLIER: &str = "Before that";
const FIRST: &str = "The first request";
const DECISIONS: &str = "Decisions";
const QUESTIONS: &str = "Open questions";
const SAID: &str = "What the assistant said, in order";
const TOOLS: &str = "Tools that ran";
const READ: &str = "Files read";
const CHANGED: &str = "Files changed";
const NAMES: &str = "Exact names";
const LAST: &str = "The last answer";

/// The step at which the longest summary is composed. Each lower step gives a shorter one, down to step 0.
const LONGEST: usize = 48;
/// The lowest step at which an earlier summary by a model is included in full.
const FULL_EARLIER: usize = 4;
/// The shortest form of an earlier summary by a model, in characters.
const MIN_EARLIER: usize = 60;
/// Lengths in characters to which the summary of step 0 is cut if it is too long.
const BEGINNINGS: [usize; 5] = [200, 140, 100, 70, 40];
const MIN_BEGINNING: usize = 20;

/// Summarises the messages that the compaction covers, in the longest form that has at most [`Task::most_tokens`]. If
/// no form fits, returns the shortest; the result is never empty.
#[must_use]
pub fn summary(task: &Task<'_, '_>, planned: &CutPlan) -> String {
    let covered = &task.messages[planned.from..planned.at];
    let sections = Sections::gather(covered, task, planned);
    let fits = |text: &String| task.gauge.text(text) <= task.most_tokens(planned);
    let mut forms = sizes().map(|(step, earlier)| sections.compose(step, earlier));
    forms.find(fits).unwrap_or_else(|| {
        let barest = sections.compose(0, MIN_EARLIER);
        let mut beginnings = BEGINNINGS.map(|most| short(&barest, most)).into_iter();
        beginnings.find(fits).unwrap_or_else(|| short(&barest, MIN_BEGINNING))
    })
}

/// Returns the steps to try, longest first, each with the maximum length of an earlier summary by a model in
/// characters. From [`LONGEST`] down to [`FULL_EARLIER`], that summary is included in full. Next, only that summary is
/// shortened, still at step [`FULL_EARLIER`]. Below that, it and the other sections shrink with each step.
fn sizes() -> impl Iterator<Item = (usize, usize)> {
    let whole = (FULL_EARLIER..=LONGEST).rev().map(|step| (step, usize::MAX));
    let less = [4000, 2000, 1000, 500].map(|earlier| (FULL_EARLIER, earlier));
    let bare = (0..FULL_EARLIER).rev().map(|step| (step, MIN_EARLIER * (step + 1)));
    whole.chain(less).chain(bare)
}

/// The content under each title. Lists are oldest first, except names, which are best first.
#[derive(Default)]
struct Sections {
    of: BTreeMap<&'static str, Vec<String>>,
}

impl Sections {
    fn gather(covered: &[Message<'_>], task: &Task<'_, '_>, planned: &CutPlan) -> Sections {
        let mut all = Sections::default();
        match planned.earlier.as_deref() {
            None => all.add(FIRST, first_request(covered, planned)),
            Some(text) => match text.strip_prefix(HEADING) {
                None => all.add(EARLIER, vec![text.trim().to_owned()]),
                Some(text) => all.read(text),
            },
        }
        if planned.earlier.is_some() && !all.of.contains_key(EARLIER) && !all.of.contains_key(FIRST)
        {
            all.add(FIRST, first_kept(task, planned));
        }
        let is_new = |text: &String| {
            let mut beside = planned.kept_user.iter().chain(&planned.pinned);
            !beside.any(|kept| kept.contains(text.as_str()))
        };
        let fresh = |texts: Vec<String>| texts.into_iter().filter(is_new).collect::<Vec<_>>();
        all.add(DECISIONS, fresh(phrases::decisions(covered)));
        all.add(QUESTIONS, fresh(phrases::questions(covered)));
        all.add(SAID, said(covered));
        let tools = tools(covered, all.of.remove(TOOLS).unwrap_or_default());
        all.add(TOOLS, tools);
        let Details { read, modified } = &planned.details;
        all.of.remove(READ);
        all.of.remove(CHANGED);
        all.add(READ, read.iter().cloned().collect());
        all.add(CHANGED, modified.iter().cloned().collect());
        let mut names = identifiers::distinctive(covered);
        names.retain(|name| is_new(name) && !read.contains(name) && !modified.contains(name));
        names.extend(all.of.remove(NAMES).unwrap_or_default());
        all.add(NAMES, names);
        if let Some(last) = answers(covered).next_back() {
            all.of.insert(LAST, vec![last.trim().to_owned()]);
        }
        all
    }

    /// Adds entries to a section. An entry that is there already moves to the end, except a name, which keeps its
    /// place.
    fn add(&mut self, title: &'static str, texts: Vec<String>) {
        let known = self.of.entry(title).or_default();
        for text in texts.into_iter().filter(|text| !text.trim().is_empty()) {
            if title == NAMES && known.contains(&text) {
                continue;
            }
            known.retain(|old| *old != text);
            known.push(text);
        }
        if known.is_empty() {
            self.of.remove(title);
        }
    }

    /// Parses a summary that [`Sections::compose`] wrote.
    fn read(&mut self, text: &str) {
        let (mut title, mut body) = (EARLIER, String::new());
        for line in text.lines().chain([""]) {
            let next = TITLES.into_iter().find(|title| line.strip_suffix(':') == Some(title));
            if let Some(next) = next {
                self.read_section(title, &body);
                (title, body) = (next, String::new());
            } else {
                body.push_str(line);
                body.push('\n');
            }
        }
        self.read_section(title, &body);
    }

    fn read_section(&mut self, title: &'static str, body: &str) {
        let texts = match title {
            EARLIER | FIRST | LAST => vec![body.trim().to_owned()],
            DECISIONS | QUESTIONS | SAID => {
                body.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
            }
            _ => {
                body.trim().split(", ").map(|item| item.trim_end_matches('…').to_owned()).collect()
            }
        };
        self.add(title, texts);
    }

    /// Composes the summary of a step, with at most `most` characters of an earlier summary by a model.
    fn compose(&self, step: usize, most: usize) -> String {
        let mut parts = vec![HEADING.to_owned()];
        for title in TITLES {
            let Some(texts) = self.of.get(title) else { continue };
            let line = 80 + 5 * step;
            let text = match title {
                EARLIER => guarded(&short(&texts[0], most)),
                FIRST | LAST => guarded(&short(&texts[0], 60 + 20 * step)),
                DECISIONS => list(&best(texts, step, phrases::decides), line),
                QUESTIONS => list(&best(texts, step / 2, phrases::asks), line),
                SAID => list(&best(texts, step.saturating_sub(8), |_| 0), line),
                NAMES => texts[..texts.len().min(2 * step)].join(", "),
                _ => some(texts, 40 * step),
            };
            if !text.is_empty() {
                parts.push(format!("{title}:\n{text}"));
            }
        }
        parts.join("\n\n")
    }
}

/// Indents each line that looks like a title by one space.
fn guarded(text: &str) -> String {
    let is_title =
        |line: &str| TITLES.into_iter().any(|title| line.strip_suffix(':') == Some(title));
    let line = |line| if is_title(line) { format!(" {line}") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the `most` entries with the highest scores, in their original order. If scores are equal, the newest are
/// preferred.
fn best(texts: &[String], most: usize, score: impl Fn(&str) -> usize) -> Vec<&String> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((score(&texts[*at]), *at)));
    order.truncate(most);
    order.sort_unstable();
    order.into_iter().map(|at| &texts[at]).collect()
}

fn list(texts: &[&String], line: usize) -> String {
    texts.iter().map(|text| format!("- {}", short(text, line))).collect::<Vec<_>>().join("\n")
}

/// Joins as many entries as fit in `room` characters.
fn some(texts: &[String], mut room: usize) -> String {
    let mut taken = Vec::new();
    for text in texts {
        match room.checked_sub(text.chars().count() + ", ".len()) {
            Some(left) => room = left,
            None => break,
        }
        taken.push(text.as_str());
    }
    taken.join(", ")
}

/// Returns the first user message, unless it is kept word for word.
fn first_request(covered: &[Message<'_>], planned: &CutPlan) -> Vec<String> {
    let first = covered.iter().find(|m| m.is_from_user() && !m.is_summary());
    let said = first.map(|message| message.content.text()).unwrap_or_default();
    if planned.kept_user.contains(&said) { Vec::new() } else { vec![said] }
}

/// Returns the first user message that an earlier summary kept word for word, unless it is still kept.
fn first_kept(task: &Task<'_, '_>, planned: &CutPlan) -> Vec<String> {
    let covered = &task.messages[..planned.at];
    let earlier = covered.iter().find_map(|m| m.meta.as_ref()?.summary.as_ref());
    let first = earlier.and_then(|summary| summary.kept_user.first());
    first.filter(|first| !planned.kept_user.contains(first)).cloned().into_iter().collect()
}

fn answers<'m>(covered: &'m [Message<'_>]) -> impl DoubleEndedIterator<Item = String> + 'm {
    let answers = covered.iter().filter(|message| message.role == Role::Assistant);
    answers.map(|message| message.content.text()).filter(|text| !text.trim().is_empty())
}

/// Returns the first line of each answer.
fn said(covered: &[Message<'_>]) -> Vec<String> {
    let line = |text: String| {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        first.trim().to_owned()
    };
    answers(covered).map(line).collect()
}

/// Returns the tools in the order of their first call, each as `NAME (COUNT)`. `earlier` has the same form.
fn tools(covered: &[Message<'_>], earlier: Vec<String>) -> Vec<String> {
    let parse = |text: String| {
        let (name, count) = text.strip_suffix(')')?.rsplit_once(" (")?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    let mut counts: Vec<(String, usize)> = earlier.into_iter().filter_map(parse).collect();
    for block in covered.iter().flat_map(Message::blocks) {
        let BlockKind::ToolUse { .. } = block.kind else { continue };
        let name = block.member("name").and_then(string).unwrap_or_default().into_owned();
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.iter().map(|(name, count)| format!("{name} ({count})")).collect()
}

/// Returns the first `most` characters of `text`, with an ellipsis if it is longer.
fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::CutChoice;
    use crate::compact::cut::{CutLimits, CutRule};
    use crate::estimate::{Gauge, Request};
    use crate::messages;

    const CONVERSATION: &str = r#"{"role":"user","content":"Build it. Never push to main."}
{"role":"assistant","content":[{"type":"text","text":"I look.\nAnd more."},{"type":"tool_use","id":"a","name":"read_file","input":{"path":"a.c"}},{"type":"tool_use","id":"b","name":"edit_file","input":{"path":"b.c"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"int main(void) { return undefined_name(); }"},{"type":"tool_result","tool_use_id":"b","content":"replaced one line of b.c and kept the mode and the owner of the file; the file before the change is kept beside it"}]}
{"role":"assistant","content":"It builds now."}
{"role":"user","content":"Good. Next?"}
{"role":"assistant","content":"Tests."}
{"role":"user","content":"And?"}
{"role":"assistant","content":"Docs."}"#;

    fn made(keep_user: u64, target: Option<u64>) -> String {
        made_of(CONVERSATION, keep_user, target)
    }

    fn made_of(conversation: &str, keep_user: u64, target: Option<u64>) -> String {
        let messages = messages::read("t", conversation.as_bytes()).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        let gauge = Gauge::new(request, None);
        let task = Task {
            messages: &messages,
            system: None,
            tools: None,
            model: None,
            gauge,
            target,
            keep_user,
            rule: CutRule::Half,
            limits: CutLimits::default(),
        };
        let planned = CutChoice::of(&task).planned(4);
        summary(&task, &planned)
    }

    #[test]
    fn a_summary_has_a_section_for_each_kind_of_content() {
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
    fn the_first_request_is_repeated_unless_the_earlier_summary_is_by_a_model() {
        let first = "The first request:\nStart it.";
        for (earlier, is_repeated) in [
            (format!("{HEADING}\n\nFiles read:\na.c"), true),
            (format!("{HEADING}\n\nBefore that:\nWe began."), false),
            ("We began.".to_owned(), false),
        ] {
            let earlier = crate::json::quote(&earlier);
            let compaction = format!(r#"{{"summary":{earlier},"kept_user":["Start it."]}}"#);
            let message = format!(
                r#"{{"role":"user","content":{earlier},"_meta":{{"id":"k","compaction":{compaction}}}}}"#
            );
            let made = made_of(&format!("{message}\n{CONVERSATION}"), 0, None);
            assert_eq!(made.contains(first), is_repeated, "{made}");
        }
    }

    #[test]
    fn a_summary_is_within_its_limit() {
        let long = "word ".repeat(3000);
        let line = |role: &str| format!(r#"{{"role":"{role}","content":"{long}"}}"#);
        let lines: Vec<String> =
            (0..40).map(|n| line(if n % 2 == 0 { "user" } else { "assistant" })).collect();
        let text = lines.join("\n");
        let messages = messages::read("t", text.as_bytes()).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        for target in [2000, 8000, 100_000] {
            let gauge = Gauge::new(request, None);
            let target = Some(target);
            let task = Task {
                messages: &messages,
                system: None,
                tools: None,
                model: None,
                gauge,
                target,
                keep_user: 0,
                rule: CutRule::Half,
                limits: CutLimits::default(),
            };
            let planned = CutChoice::of(&task).planned(20);
            let text = summary(&task, &planned);
            assert!(task.gauge.text(&text) <= task.summary_tokens(), "{target:?}");
        }
    }

    #[test]
    fn each_size_is_at_most_the_one_before() {
        let sizes: Vec<_> = sizes().collect();
        assert!(sizes.is_sorted_by(|one, next| one.0 >= next.0 && one.1 >= next.1), "{sizes:?}");
        assert_eq!(sizes.first(), Some(&(LONGEST, usize::MAX)));
        assert_eq!(sizes.last(), Some(&(0, MIN_EARLIER)));
    }

    #[test]
    fn the_length_of_each_section_grows_with_the_step() {
        let long = |word: &str| format!("{word} ").repeat(2000);
        let mut sections = Sections::default();
        for title in [FIRST, LAST] {
            sections.add(title, vec![long("x")]);
        }
        let numbered = |word: &str| (0..99).map(|n| format!("{word} {n} {}", long("z"))).collect();
        sections.add(DECISIONS, numbered("We will use"));
        sections.add(QUESTIONS, numbered("Still open:"));
        sections.add(SAID, numbered("I look at"));
        sections.add(NAMES, (0..99).map(|n| format!("n{n}")).collect());
        for step in [0, 1, 7, 8, 9, 20] {
            let text = sections.compose(step, 100);
            let section = |title: &str| {
                let after =
                    text.split_once(&format!("\n\n{title}:\n")).map_or("", |(_, after)| after);
                after.split("\n\n").next().unwrap_or_default().to_owned()
            };
            for title in [FIRST, LAST] {
                let length = section(title).chars().count();
                assert!(
                    (58..=61).contains(&(length - 20 * step)),
                    "{title}, step {step}: {length}"
                );
            }
            for (title, lines) in
                [(DECISIONS, step), (QUESTIONS, step / 2), (SAID, step.saturating_sub(8))]
            {
                let section = section(title);
                assert_eq!(section.lines().count(), lines, "{title}, step {step}");
                for line in section.lines() {
                    let length = line.chars().count();
                    assert!(
                        (78..=83).contains(&(length - 5 * step)),
                        "{title}, step {step}: {length}"
                    );
                }
            }
            let names = section(NAMES);
            assert_eq!(names.split(", ").filter(|name| !name.is_empty()).count(), 2 * step);
        }
    }
}
