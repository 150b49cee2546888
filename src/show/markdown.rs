//! Writes entries as Markdown (CommonMark with GitHub's extensions).
//!
//! Outside block quotes, the only headings are those of sessions, turns and speakers. Messages are
//! in block quotes, which close all constructs that a message leaves open. Raw HTML in messages is escaped,
//! and so is anything that would load an image. Tool inputs and results are folded, in fences longer than any
//! that they contain.

use super::acts::{self, Act, Todo, TodoState};
use super::chart::Prompt;
use super::edit::{self, Edit};
use super::emphasis::is_escaped;
use super::injections::Injections;
use super::wording::{Language, noun, phrase};
use super::words::{self, clean, html};
use super::{CallOutcome, Item, ShowOptions, ShownEntry, facts, hosted};
use crate::json;
use crate::printable::{printable, printable_json};
use crate::record::content::Role;
use pulldown_cmark::{Event, LinkType, Options as Dialect, Parser, Tag};
use std::io::{self, Write};

/// The length in bytes above which text is shown verbatim in a fence.
pub(super) const MAX_PARSED: usize = 256 * 1024;
/// The length limit of a tool input in its summary line, in characters.
const MAX_INPUT: usize = 80;
/// The number of attempts to escape text. If all fail, the text is put in a fence.
const MAX_ROUNDS: usize = 4;

/// Markdown output that is written entry by entry.
pub struct Markdown<'o, W> {
    options: &'o ShowOptions,
    out: W,
    /// True after the first output.
    is_begun: bool,
    /// True after the list of prompts.
    has_index: bool,
    speaker: Option<Role>,
    /// The record whose marks were last shown.
    marked: Option<String>,
    /// Text of programs that is not written yet.
    injections: Injections,
}

impl<'o, W: Write> Markdown<'o, W> {
    /// Returns a writer of Markdown for `out`.
    pub fn new(options: &'o ShowOptions, out: W) -> Markdown<'o, W> {
        let (is_begun, has_index) = (false, false);
        let injections = Injections::default();
        Markdown { options, out, is_begun, has_index, speaker: None, marked: None, injections }
    }

    /// Writes an entry. The list of all prompts precedes the first entry that is not a session header.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn show(&mut self, entry: &ShownEntry, prompts: &[Prompt]) -> io::Result<()> {
        if let Item::Injected { name, text } = &entry.item {
            let is_full = self.injections.push(name, text);
            return if is_full { self.write_injections() } else { Ok(()) };
        }
        self.write_injections()?;
        if !matches!(entry.item, Item::Session(_)) && !std::mem::replace(&mut self.has_index, true)
        {
            self.index(prompts)?;
        }
        if let Some(note) = words::note(entry, self.options.language) {
            return self.note(&note, entry.time);
        }
        match &entry.item {
            Item::Session(session) => {
                let name = session.label.as_ref().or(session.key.as_ref()).unwrap_or(&session.id);
                self.block(&format!(
                    "# {} {}",
                    self.options.language.say(phrase::SESSION),
                    inline(name)
                ))?;
                self.facts(&words::session(session, self.options))
            }
            Item::Turn(number) => {
                self.speaker = None;
                let heading = self.turn(*number, entry.time);
                self.block(&format!("## {heading}"))?;
                let first = prompts.first().map_or(0, |prompt| prompt.turn);
                let index = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
                let own = prompts.get(index);
                self.facts(&own.map(|prompt| prompt.totals.facts(self.options)).unwrap_or_default())
            }
            Item::Reply(reply) => {
                self.begin_speaker(Role::Assistant)?;
                let mut facts = words::reply(reply, self.options);
                facts.extend(words::clock(entry.time, &self.options.zone));
                self.facts(&facts)
            }
            Item::Text { role, text } => {
                self.ensure_speaker(*role, entry)?;
                self.block(&quoted(text))
            }
            Item::Thinking(text) => {
                self.ensure_speaker(Role::Assistant, entry)?;
                self.fold(self.options.language.say(phrase::THINKING), &quoted(text))
            }
            Item::Call { name, input, is_answered, .. } => {
                self.ensure_speaker(Role::Assistant, entry)?;
                if let Some(act) = acts::read(input) {
                    return self.act(name, &act);
                }
                let body = edit::read(input).map_or_else(
                    || fenced(&facts::members(input), "text"),
                    |edit| fenced(&diff(&edit), "diff"),
                );
                self.fold(&call_line(name, input, *is_answered, self.options.language), &body)
            }
            Item::Result(result) => {
                self.marks(entry)?;
                self.result(result, entry.time)
            }
            Item::Media { role, media } => {
                self.ensure_speaker(*role, entry)?;
                self.facts(&[words::media(media, self.options.language)])
            }
            Item::Hosted(act) => {
                self.ensure_speaker(Role::Assistant, entry)?;
                let mark = if hosted::is_answer(act) { '←' } else { '→' };
                let line = format!("{mark} {}", hosted::line(act, self.options.language));
                match hosted::body_markdown(act, inline, |text| fenced(text, "text")) {
                    body if body.is_empty() => self.facts(&[line]),
                    body => self.fold(&line, &body),
                }
            }
            Item::Other { role, kind, bytes } => {
                self.ensure_speaker(*role, entry)?;
                self.facts(&[words::other(kind, *bytes, self.options.language)])
            }
            _ => Ok(()),
        }
    }

    /// Writes what is not written yet.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&mut self) -> io::Result<()> {
        self.write_injections()
    }

    /// Writes the text of programs since the last entry.
    fn write_injections(&mut self) -> io::Result<()> {
        let Some(own) = self.injections.take() else { return Ok(()) };
        self.speaker = None;
        self.fold(&own.line(self.options.language), &fenced(&own.text(), "text"))
    }

    /// Writes a list of the prompts with links to their turns.
    fn index(&mut self, prompts: &[Prompt]) -> io::Result<()> {
        if prompts.len() < 2 {
            return Ok(());
        }
        let line = |prompt: &Prompt| {
            let anchor = anchor(&self.turn(prompt.turn, prompt.time));
            let retracted = self.options.language.say(phrase::RETRACTED);
            let back = if prompt.retracted { format!(" ({retracted})") } else { String::new() };
            let turn = self.options.language.with(phrase::TURN, &[&prompt.turn]);
            format!("- [{turn}](#{anchor}): {}{back}", inline(&prompt.text))
        };
        let lines: Vec<String> = prompts.iter().map(line).collect();
        self.fold(
            &self.options.language.count(prompts.len() as u64, noun::PROMPT),
            &lines.join("\n"),
        )
    }

    /// Returns the heading of a turn.
    fn turn(&self, number: u64, time: Option<i64>) -> String {
        let time = time.map(|time| words::when(time, &self.options.zone));
        let turn = self.options.language.with(phrase::TURN, &[&number]);
        time.map_or(turn.clone(), |time| format!("{turn}, {time}"))
    }

    fn begin_speaker(&mut self, role: Role) -> io::Result<()> {
        self.speaker = Some(role);
        self.block(&format!("### {}", words::role(role, self.options.language)))
    }

    fn ensure_speaker(&mut self, role: Role, entry: &ShownEntry) -> io::Result<()> {
        if self.speaker != Some(role) {
            self.begin_speaker(role)?;
            let time = words::clock(entry.time, &self.options.zone);
            self.facts(time.as_slice())?;
        }
        self.marks(entry)
    }

    fn marks(&mut self, entry: &ShownEntry) -> io::Result<()> {
        match words::marks(entry, &mut self.marked, self.options.language) {
            Some(mark) => self.block(&format!("**({mark})**")),
            None => Ok(()),
        }
    }

    fn result(&mut self, result: &CallOutcome, time: Option<i64>) -> io::Result<()> {
        let lines = self.options.language.count(result.text.lines().count() as u64, noun::LINE);
        let mut facts = [words::result(result, self.options.language), vec![lines]].concat();
        facts.extend(words::clock(time, &self.options.zone));
        let facts = facts.join(" · ");
        self.fold(&format!("← {facts}"), &fenced(&result.text, "text"))?;
        result
            .media
            .iter()
            .try_for_each(|media| self.facts(&[words::media(media, self.options.language)]))
    }

    /// Writes a call that is shown as what it is. To-do lists and plans are not folded.
    fn act(&mut self, name: &str, act: &Act) -> io::Result<()> {
        let line = format!("→ {}", acts::line(name, act, self.options.language));
        match act {
            Act::Todos(todos) => {
                self.block(&inline(&line))?;
                let line = |todo: &Todo| {
                    let mark = if todo.state == TodoState::DONE { 'x' } else { ' ' };
                    let state = match todo.state {
                        TodoState::OPEN | TodoState::DONE => String::new(),
                        state => format!(" ({})", self.options.language.say(state.name)),
                    };
                    format!("- [{mark}] {}{state}", inline(&todo.text))
                };
                self.block(&todos.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            Act::Plan(text) => {
                self.block(&inline(&line))?;
                self.block(&quoted(text))
            }
            Act::Agent { prompt, .. } => self.fold(&line, &quoted(prompt)),
        }
    }

    fn note(&mut self, note: &words::Note, time: Option<i64>) -> io::Result<()> {
        // The next message gets a heading again.
        self.speaker = None;
        self.block("---")?;
        let time = words::clock(time, &self.options.zone);
        let time = time.map_or(String::new(), |time| format!(" · {time}"));
        self.block(&format!("**{}:** {}{time}", note.title, inline(&note.line)))?;
        note.body.as_ref().map_or(Ok(()), |body| self.fold(note.title, &quoted(body)))
    }

    /// Writes a folded part; `summary` is plain text.
    fn fold(&mut self, summary: &str, block: &str) -> io::Result<()> {
        let open = if self.options.full { " open" } else { "" };
        let summary = html(&printable(summary));
        self.block(&format!("<details{open}>\n<summary>{summary}</summary>"))?;
        self.block(block)?;
        self.block("</details>")
    }

    /// Writes a line of facts.
    fn facts(&mut self, facts: &[String]) -> io::Result<()> {
        let facts: Vec<String> = facts.iter().map(|fact| inline(fact)).collect();
        if facts.is_empty() { Ok(()) } else { self.block(&format!("({})", facts.join(" · "))) }
    }

    /// Writes a block, after a blank line unless it is the first.
    fn block(&mut self, text: &str) -> io::Result<()> {
        let gap = if std::mem::replace(&mut self.is_begun, true) { "\n" } else { "" };
        writeln!(self.out, "{gap}{text}")
    }
}

/// Returns the summary line of a folded call.
pub(super) fn call_line(name: &str, input: &str, is_answered: bool, language: Language) -> String {
    let input = json::on_one_line(&printable_json(input));
    let mut line: String = input.chars().take(MAX_INPUT).collect();
    if line.len() < input.len() {
        line.push('…');
    }
    if is_answered {
        line.push_str(&format!(" · {}", language.say(phrase::ANSWERED)));
    }
    format!("→ {name} {line}")
}

/// Escapes text for one line, so that none of it is taken for Markdown.
#[must_use]
pub fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if "\\`*_[]<>&#|~!$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the anchor of a heading, as GitHub and GitLab generate it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn diff(edit: &Edit) -> String {
    let lines = edit.lines.iter().map(|line| format!("{}{}\n", line.kind.sign(), line.text));
    let lines: String = lines.collect();
    if edit.others.is_empty() { lines } else { format!("{}\n{lines}", edit.others) }
}

/// Returns `text` in a fence that is longer than any run of backticks in it.
#[must_use]
pub fn fenced(text: &str, language: &str) -> String {
    let text = clean(text);
    let mut longest = 2;
    for run in text.split(|c| c != '`') {
        longest = longest.max(run.len());
    }
    let fence = "`".repeat(longest + 1);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}")
}

/// Returns a message in a block quote, with HTML and images escaped; if that fails, verbatim in a fence.
fn quoted(text: &str) -> String {
    let text = clean(text);
    let text = text.trim_matches('\n');
    let escaped = if text.len() > MAX_PARSED { None } else { escaped(text) };
    let quote = escaped.map(|text| in_quote(&text)).filter(|quote| !has_html_or_image(quote));
    quote.unwrap_or_else(|| in_quote(&fenced(text, "text")))
}

fn in_quote(text: &str) -> String {
    let quote = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    text.split('\n').map(quote).collect::<Vec<_>>().join("\n")
}

/// Escapes HTML and images outside code; returns `None` if that fails.
fn escaped(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    // An escaped character may have started or ended code, so the result is parsed again.
    for _ in 0..MAX_ROUNDS {
        let marks = marks(&text);
        if marks.is_empty() {
            return Some(text);
        }
        let mut escaped = String::with_capacity(text.len() + marks.len());
        let mut from = 0;
        for at in marks {
            escaped.push_str(&text[from..at]);
            escaped.push('\\');
            from = at;
        }
        escaped.push_str(&text[from..]);
        text = escaped;
    }
    None
}

/// Returns the offsets outside code where HTML or an image could begin.
fn marks(text: &str) -> Vec<usize> {
    let mut safe = Vec::new();
    for (event, range) in Parser::new_ext(text, DIALECT).into_offset_iter() {
        let is_safe = match event {
            Event::Code(_) | Event::Start(Tag::CodeBlock(_)) => true,
            Event::Start(Tag::Link { link_type, .. }) => {
                matches!(link_type, LinkType::Autolink | LinkType::Email)
            }
            _ => false,
        };
        safe.extend(is_safe.then_some(range));
    }
    let mut safe = safe.into_iter().peekable();
    let begins = |at: usize| text[at..].starts_with('<') || text[at..].starts_with("![");
    let places = text.match_indices(['<', '!']).map(|(at, _)| at).filter(|at| begins(*at));
    let is_free = |at: &usize| {
        while safe.next_if(|range| range.end <= *at).is_some() {}
        safe.peek().is_none_or(|range| *at < range.start)
    };
    places.filter(is_free).filter(|at| !is_escaped(&text[..*at])).collect()
}

/// Returns true if a Markdown parser finds HTML or an image in `text`.
fn has_html_or_image(text: &str) -> bool {
    Parser::new_ext(text, DIALECT).any(|event| {
        matches!(event, Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Image { .. }))
    })
}

/// The Markdown extensions for messages.
pub(super) const DIALECT: Dialect = Dialect::ENABLE_TABLES.union(Dialect::ENABLE_STRIKETHROUGH);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_text_and_code_stays_code() {
        assert_eq!(quoted("a </details> `Vec<T>`"), "> a \\</details> `Vec<T>`");
        assert_eq!(quoted("<script>\nx\n</script>\n"), "> \\<script>\n> x\n> \\</script>");
        assert_eq!(quoted("a < b, \\<i>, \\\\<i>"), "> a \\< b, \\<i>, \\\\\\<i>");
        assert_eq!(quoted("see <https://x.org> ![i](u)"), "> see <https://x.org> \\![i](u)");
    }

    #[test]
    fn markup_hidden_by_html_is_escaped_too() {
        let text = "<div>\n```\n\n```\n<script>\n```";
        let shown = "> \\<div>\n> ```\n>\n> ```\n> \\<script>\n> ```";
        assert_eq!(quoted(text), shown);
    }

    #[test]
    fn a_fence_is_longer_than_any_that_it_contains() {
        assert_eq!(fenced("a", "text"), "```text\na\n```");
        assert_eq!(fenced("````\n```` `", "text"), "`````text\n````\n```` `\n`````");
    }

    #[test]
    fn an_inline_text_has_no_markup() {
        assert_eq!(inline("a *b* [c](d)\n# <e>"), "a \\*b\\* \\[c\\](d)\\\\n\\# \\<e\\>");
    }
}
