//! Writes entries as text for a terminal.

use super::acts::{self, Act, Todo};
use super::edit::{self, DiffKind, DiffLine};
use super::injections::{self, Injections};
use super::markdown::MAX_PARSED;
use super::render::{MarkdownLayout, render};
use super::totals::Totals;
use super::wording::{noun, phrase};
use super::words::{self, clean};
use super::wrap::{chop, cut, expand_tabs, width, wrap};
use super::{CallOutcome, Item, ShowOptions, ShownEntry, facts, hosted};
use crate::estimate::report::grouped;
use crate::hosted::HostedAct;
use crate::injected;
use crate::json::{self, Object};
use crate::printable::{printable, printable_json};
use crate::record::content::Role;
use std::io::{self, Write};

/// The number of lines of a result or a summary that are shown when it is folded.
const FOLDED: usize = 6;
/// The number of lines of a diff that are shown when it is folded.
const DIFF: usize = 24;
/// The minimum width of the layout in columns.
pub const NARROWEST: usize = 24;

/// Styles as terminal codes.
pub(super) mod style {
    pub const BOLD: &str = "1";
    pub const DIM: &str = "2";
    pub const STRUCK: &str = "2;9";
    pub const USER: &str = "1;34";
    pub const ASSISTANT: &str = "1;32";
    pub const TOOL: &str = "36";
    pub const CODE: &str = "36";
    pub const BAD: &str = "31";
    pub const ADDED: &str = "32";
    pub const VIEW: &str = "1;33";
}

/// Text output that is written entry by entry.
pub struct TextWriter<'o, W> {
    options: &'o ShowOptions,
    out: W,
    width: usize,
    /// The speaker that the last heading named.
    speaker: Option<Role>,
    /// The record whose marks were last shown.
    marked: Option<String>,
    /// The last output, if no blank line follows it yet.
    last: Last,
    /// Text of programs that is not written yet.
    injections: Injections,
    /// The totals of the current turn.
    totals: Totals,
}

/// The kind of the last output, which decides whether a blank line follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// Nothing, or a blank line.
    Gap,
    /// A heading, or another line that belongs to the next output.
    Heading,
    /// A tool call without its result.
    Call,
    /// A note on a record that is not part of the conversation, such as a view record.
    Note,
    /// Anything else.
    Text,
}

impl<'o, W: Write> TextWriter<'o, W> {
    /// Returns a writer of text for `out`.
    pub fn new(options: &'o ShowOptions, out: W) -> TextWriter<'o, W> {
        let width = options.width.max(NARROWEST);
        TextWriter {
            options,
            out,
            width,
            speaker: None,
            marked: None,
            last: Last::Gap,
            injections: Injections::default(),
            totals: Totals::default(),
        }
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn show(&mut self, entry: &ShownEntry) -> io::Result<()> {
        if let Item::Injected { name, text } = &entry.item {
            let is_full = self.injections.push(name, text);
            return if is_full { self.write_injections() } else { Ok(()) };
        }
        self.write_injections()?;
        if matches!(entry.item, Item::Turn(_)) {
            self.end_turn()?;
        }
        self.totals.take(entry);
        if let Some(note) = words::note(entry, self.options.language) {
            return self.note(&note, entry.time);
        }
        match &entry.item {
            Item::Session(session) => {
                let facts = words::session(session, self.options).join(" · ");
                self.gap()?;
                self.rows(
                    style::BOLD,
                    0,
                    &wrap(
                        &printable(&format!(
                            "{} {facts}",
                            self.options.language.say(phrase::SESSION).to_lowercase()
                        )),
                        self.width,
                    ),
                )
            }
            Item::Turn(number) => self.turn(*number, entry.time),
            Item::Reply(reply) => {
                let facts = words::reply(reply, self.options);
                self.begin_speaker(Role::Assistant, &facts, entry.time)
            }
            Item::Text { role, text } => {
                self.ensure_speaker(*role, entry)?;
                self.gap_unless(&[Last::Heading])?;
                match role {
                    Role::Assistant if self.options.color && !entry.retracted => self.styled(text),
                    _ => self.prose(text, self.message_style(entry)),
                }
            }
            Item::Thinking(text) => {
                self.ensure_speaker(Role::Assistant, entry)?;
                self.thinking(text)
            }
            Item::Call { name, input, is_answered, .. } => {
                self.ensure_speaker(Role::Assistant, entry)?;
                self.call(name, input)?;
                match is_answered {
                    true => self.line(
                        style::DIM,
                        4,
                        &format!("({})", self.options.language.say(phrase::ANSWERED)),
                    ),
                    false => Ok(()),
                }
            }
            Item::Result(result) => {
                self.marks(entry)?;
                self.result(result, entry)
            }
            Item::Media { role, media } => {
                self.ensure_speaker(*role, entry)?;
                self.aside(2, &words::media(media, self.options.language))
            }
            Item::Hosted(act) => {
                self.ensure_speaker(Role::Assistant, entry)?;
                self.hosted(act)
            }
            Item::Other { role, kind, bytes } => {
                self.ensure_speaker(*role, entry)?;
                self.aside(2, &words::other(kind, *bytes, self.options.language))
            }
            _ => Ok(()),
        }
    }

    /// Starts over for another transcript.
    pub fn restart(&mut self) {
        (self.speaker, self.marked) = (None, None);
        self.totals = Totals::default();
    }

    /// Writes what belongs to the end of the last turn, and flushes the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(&mut self) -> io::Result<()> {
        self.write_injections()?;
        self.end_turn()?;
        self.flush()
    }

    /// Writes the totals of the turn so far.
    fn end_turn(&mut self) -> io::Result<()> {
        let facts = std::mem::take(&mut self.totals).facts(self.options);
        if facts.is_empty() {
            return Ok(());
        }
        self.gap()?;
        let line = format!("── {}", facts.join(" · "));
        self.rows(style::DIM, 0, &wrap(&line, self.width))
    }

    /// Writes what is not written yet, and flushes the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_injections()?;
        self.out.flush()
    }

    fn turn(&mut self, number: u64, time: Option<i64>) -> io::Result<()> {
        self.gap()?;
        self.speaker = None;
        let turn = self.options.language.with(phrase::TURN, &[&grouped(number)]).to_lowercase();
        let name = format!("── {turn} ");
        let time = time.map(|time| words::when(time, &self.options.zone));
        let time = time.map_or(String::new(), |time| format!(" {time} ──"));
        let room = self.width.saturating_sub(width(&name) + width(&time));
        self.line(style::DIM, 0, &format!("{name}{}{time}", "─".repeat(room)))
    }

    /// Writes a heading with the speaker.
    fn begin_speaker(&mut self, role: Role, facts: &[String], time: Option<i64>) -> io::Result<()> {
        self.gap()?;
        let time = words::clock(time, &self.options.zone);
        self.speaker = Some(role);
        let style = if role == Role::User { style::USER } else { style::ASSISTANT };
        let name = words::role(role, self.options.language).to_lowercase();
        let facts = facts.iter().chain(&time).map(|fact| format!(" · {}", printable(fact)));
        let heading = [name.clone()].into_iter().chain(facts).collect::<String>();
        for (index, row) in wrap(&heading, self.width - 2).into_iter().enumerate() {
            let row = match row.strip_prefix(&name).filter(|_| index == 0) {
                Some(facts) => self.paint(style, &name) + &self.paint(style::DIM, facts),
                None => format!("  {}", self.paint(style::DIM, &row)),
            };
            writeln!(self.out, "{row}")?;
        }
        self.last = Last::Heading;
        Ok(())
    }

    /// Writes a heading unless the speaker is the same, and then the marks of the record.
    fn ensure_speaker(&mut self, role: Role, entry: &ShownEntry) -> io::Result<()> {
        if self.speaker != Some(role) {
            self.begin_speaker(role, &[], entry.time)?;
        }
        self.marks(entry)
    }

    fn marks(&mut self, entry: &ShownEntry) -> io::Result<()> {
        if let Some(mark) = words::marks(entry, &mut self.marked, self.options.language) {
            self.line(style::VIEW, 2, &format!("({mark})"))?;
            self.last = Last::Heading;
        }
        Ok(())
    }

    fn message_style(&self, entry: &ShownEntry) -> &'static str {
        if entry.retracted { style::STRUCK } else { "" }
    }

    /// Writes a message without layout: wrapped, except for code and tables.
    fn prose(&mut self, text: &str, style: &'static str) -> io::Result<()> {
        let room = self.width - 2;
        let mut fence: Option<&str> = None;
        let text = clean(text);
        for line in text.trim_matches('\n').lines() {
            let expanded = expand_tabs(line);
            let mark = fence_mark(line);
            let is_code = fence.is_some() || mark.is_some();
            match fence {
                Some(open) if closes(line, open) => fence = None,
                None => fence = mark,
                Some(_) => {}
            }
            let is_laid_out = is_code || line.starts_with("    ") || line.starts_with(['\t', '|']);
            let own = if is_code && style.is_empty() { style::CODE } else { style };
            match is_laid_out {
                true => self.line(own, 2, &expanded)?,
                false => self.rows(own, 2, &wrap(&expanded, room))?,
            }
        }
        Ok(())
    }

    /// Writes a reply's Markdown with colours and layout.
    fn styled(&mut self, text: &str) -> io::Result<()> {
        if text.len() > MAX_PARSED {
            return self.prose(text, "");
        }
        let layout = MarkdownLayout { width: self.width - 2, color: true, has_all: true };
        let text = clean(text);
        let rows = render(text.trim_matches('\n'), layout);
        self.rows("", 2, &rows)
    }

    /// Writes the text of programs since the last entry: one line or, with `--full`, all of it.
    fn write_injections(&mut self) -> io::Result<()> {
        let Some(own) = self.injections.take() else { return Ok(()) };
        self.gap()?;
        // The next message gets a heading again.
        self.speaker = None;
        let rows =
            wrap(&printable(&format!("({})", own.line(self.options.language))), self.width - 2);
        self.rows(style::DIM, 2, &rows)?;
        if self.options.full { self.verbatim(&own.text()) } else { Ok(()) }
    }

    fn thinking(&mut self, text: &str) -> io::Result<()> {
        self.gap_unless(&[Last::Heading])?;
        let word = self.options.language.say(phrase::THINKING);
        if self.options.full {
            self.line(style::DIM, 2, &format!("({word})"))?;
            return self.prose(text, style::DIM);
        }
        let text = clean(text);
        let line = text.trim().lines().next().unwrap_or_default();
        let line = cut(&expand_tabs(line), self.width - 6 - width(word));
        self.line(style::DIM, 2, &format!("({word}) {line}"))?;
        self.last = Last::Heading;
        Ok(())
    }

    fn call(&mut self, name: &str, json: &str) -> io::Result<()> {
        self.gap_unless(&[Last::Call, Last::Heading])?;
        let name = cut(&printable(name), self.width / 2);
        let head = self.paint(style::TOOL, &format!("▸ {name}"));
        if let Some(act) = acts::read(json) {
            return self.act(name.as_str(), &act);
        }
        let line = json::on_one_line(&printable_json(json));
        let room = self.width.saturating_sub(5 + width(&name));
        let edit = edit::read(json);
        self.last = Last::Call;
        match edit {
            Some(edit) => {
                writeln!(self.out, "  {head}")?;
                self.folded(&edit.others, "")?;
                self.edit(&edit.lines)
            }
            None if !self.options.full && width(&line) <= room => {
                writeln!(self.out, "  {head} {line}")
            }
            None => {
                writeln!(self.out, "  {head}")?;
                self.members(json)
            }
        }
    }

    /// Writes a call that is shown as what it is.
    fn act(&mut self, name: &str, act: &Act) -> io::Result<()> {
        self.last = Last::Call;
        let line = format!("▸ {}", printable(&acts::line(name, act, self.options.language)));
        self.rows(style::TOOL, 2, &wrap(&line, self.width - 2))?;
        match act {
            Act::Todos(todos) => {
                for Todo { state, text } in todos {
                    let line = format!("{} {}", state.mark, printable(text));
                    self.rows("", 4, &wrap(&line, self.width - 4))?;
                }
                Ok(())
            }
            Act::Plan(text) => self.wrapped(text),
            Act::Agent { prompt, .. } => self.folded(prompt, ""),
        }
    }

    /// Writes the members of a tool input. A command is shown in full.
    fn members(&mut self, json: &str) -> io::Result<()> {
        let Ok(object) = Object::parse(json) else { return self.folded(json, "") };
        for member in object.members() {
            let text = facts::member(&member.name(), member.value);
            match facts::is_command(&member.name()) {
                true => self.wrapped(&text)?,
                false => self.folded(&text, "")?,
            }
        }
        Ok(())
    }

    /// Writes all lines of `text`, wrapped at words.
    fn wrapped(&mut self, text: &str) -> io::Result<()> {
        for line in clean(text).lines() {
            self.rows("", 4, &wrap(&expand_tabs(line), self.width - 4))?;
        }
        Ok(())
    }

    /// Writes the lines of a diff.
    fn edit(&mut self, lines: &[DiffLine]) -> io::Result<()> {
        let most = if self.options.full { usize::MAX } else { DIFF };
        let shown = if lines.len() <= most.saturating_add(1) { lines.len() } else { most };
        for line in &lines[..shown] {
            let style = match line.kind {
                DiffKind::Same => "",
                DiffKind::Added => style::ADDED,
                DiffKind::Removed => style::BAD,
                DiffKind::Place => style::TOOL,
            };
            let text = format!("{}{}", line.kind.sign(), expand_tabs(&clean(&line.text)));
            self.rows(style, 4, &chop(&text, self.width - 4))?;
        }
        self.more(lines.len() - shown)
    }

    fn result(&mut self, result: &CallOutcome, entry: &ShownEntry) -> io::Result<()> {
        let facts = words::result(result, self.options.language);
        let style = if result.is_error { style::BAD } else { style::TOOL };
        if !result.follows {
            self.gap()?;
            let facts = [facts, words::clock(entry.time, &self.options.zone).into_iter().collect()];
            let line = format!("◂ {}", facts.concat().join(" · "));
            self.rows(style, 2, &wrap(&printable(&line), self.width - 2))?;
        } else if facts.len() > 1 {
            let facts = facts[1..].join(" · ");
            self.rows(style, 4, &wrap(&printable(&facts), self.width - 4))?;
        }
        let style = if entry.retracted { style::STRUCK } else { style::DIM };
        let without = injected::without_reminders(&result.text).filter(|_| !self.options.full);
        self.folded(without.as_ref().unwrap_or(&result.text), style)?;
        if without.is_some() {
            self.line(style::DIM, 4, &self.reminder())?;
        }
        for media in &result.media {
            self.aside(4, &words::media(media, self.options.language))?;
        }
        if result.text.trim().is_empty() && result.media.is_empty() {
            let words = self.options.language.say(phrase::NO_OUTPUT);
            self.line(style::DIM, 4, &format!("({words})"))?;
        }
        self.last = Last::Text;
        Ok(())
    }

    /// Returns the line for a reminder that a program added to a result.
    fn reminder(&self) -> String {
        let language = self.options.language;
        let name = injections::name("system reminder", language);
        format!("({})", language.with(phrase::ADDED, &[&name]))
    }

    /// Writes what a provider's own tool did. Code is shown in full, like the command of a call.
    fn hosted(&mut self, act: &HostedAct) -> io::Result<()> {
        self.gap_unless(&[Last::Call, Last::Heading])?;
        let mark = if hosted::is_answer(act) { '◂' } else { '▸' };
        let style = if act.failure.is_some() { style::BAD } else { style::TOOL };
        let line = format!("{mark} {}", hosted::line(act, self.options.language));
        self.rows(style, 2, &wrap(&printable(&line), self.width - 2))?;
        hosted::long_input(act).map_or(Ok(()), |input| self.wrapped(input))?;
        self.folded(&hosted::body(act), style::DIM)?;
        self.last = if act.is_call() { Last::Call } else { Last::Text };
        Ok(())
    }

    fn note(&mut self, note: &words::Note, time: Option<i64>) -> io::Result<()> {
        let time = words::clock(time, &self.options.zone);
        let time = time.map_or(String::new(), |time| format!(" · {time}"));
        self.gap_unless(&[Last::Note])?;
        let style = if note.class == "error" { style::BAD } else { style::VIEW };
        let line = format!("━━ {}: {}{time}", note.title, note.line);
        self.rows(style, 0, &wrap(&printable(&line), self.width))?;
        // The next message gets a heading again.
        (self.speaker, self.last) = (None, Last::Note);
        match &note.body {
            Some(body) if self.options.full => self.prose(body, style::DIM),
            Some(body) => {
                let without = injected::without_reminders(body);
                self.folded(without.as_ref().unwrap_or(body), style::DIM)
            }
            None => Ok(()),
        }
    }

    /// Writes a remark about something that is not shown.
    fn aside(&mut self, indent: usize, what: &str) -> io::Result<()> {
        let line = cut(&format!("[{}]", printable(what)), self.width - indent);
        self.line(style::DIM, indent, &line)
    }

    /// Writes the first lines of `text`, or all of them with `--full`.
    fn folded(&mut self, text: &str, style: &str) -> io::Result<()> {
        let text = text.trim_end_matches(['\r', '\n']);
        if self.options.full {
            return self.verbatim(text);
        }
        let feeds = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let count = if text.is_empty() { 0 } else { feeds + 1 };
        // The notice about folded lines is itself a line, so it never replaces just one.
        let shown = if count <= FOLDED + 1 { count } else { FOLDED };
        for line in text.lines().take(shown) {
            self.line(style, 4, &cut(&expand_tabs(&clean(line)), self.width - 4))?;
        }
        self.more(count - shown)
    }

    /// Writes how many lines are left out, if any are.
    fn more(&mut self, count: usize) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        let rest = self.options.language.count(count as u64, noun::MORE_LINE);
        self.line(style::DIM, 4, &format!("… {rest} (--full)"))
    }

    /// Writes all lines of `text`, broken where they are too long.
    fn verbatim(&mut self, text: &str) -> io::Result<()> {
        for line in clean(text).lines() {
            self.rows("", 4, &chop(&expand_tabs(line), self.width - 4))?;
        }
        Ok(())
    }

    fn rows(&mut self, style: &str, indent: usize, rows: &[impl AsRef<str>]) -> io::Result<()> {
        rows.iter().try_for_each(|row| self.line(style, indent, row.as_ref()))
    }

    fn line(&mut self, style: &str, indent: usize, text: &str) -> io::Result<()> {
        let text = text.trim_end();
        if text.is_empty() {
            return self.out.write_all(b"\n");
        }
        self.last = Last::Text;
        self.out.write_all(b"    ".get(..indent).unwrap_or_default())?;
        match self.options.color && !style.is_empty() {
            true => self.out.write_all(self.paint(style, text).as_bytes())?,
            false => self.out.write_all(text.as_bytes())?,
        }
        self.out.write_all(b"\n")
    }

    /// Writes a blank line, unless there is one.
    fn gap(&mut self) -> io::Result<()> {
        self.gap_unless(&[])
    }

    /// Writes a blank line, unless there is one or the last output is one of `after`.
    fn gap_unless(&mut self, after: &[Last]) -> io::Result<()> {
        let last = std::mem::replace(&mut self.last, Last::Gap);
        if last == Last::Gap || after.contains(&last) { Ok(()) } else { writeln!(self.out) }
    }

    fn paint(&self, style: &str, text: &str) -> String {
        match self.options.color && !style.is_empty() && !text.is_empty() {
            true => format!("\x1b[{style}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Returns the fence at the start of a line, if there is one.
fn fence_mark(line: &str) -> Option<&str> {
    let text = line.trim_start();
    ['`', '~'].into_iter().find_map(|mark| {
        let length = text.len() - text.trim_start_matches(mark).len();
        (length >= 3).then(|| &text[..length])
    })
}

fn closes(line: &str, open: &str) -> bool {
    fence_mark(line).is_some_and(|mark| mark.starts_with(open) && line.trim() == mark)
}
