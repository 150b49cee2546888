//! Writes the entries of a conversation as HTML: turns with the messages, calls and results in them.

use super::super::acts::{self, Act, Todo, TodoState};
use super::super::chart::Chart;
use super::super::edit;
use super::super::injections::Injections;
use super::super::markdown::call_line;
use super::super::wording::{noun, phrase};
use super::super::words::{self, clean, html};
use super::super::{CallOutcome, Item, ShowOptions, ShownEntry, facts, hosted, language};
use super::blocks::{diff, picture, pre};
use super::prose::rendered;
use crate::printable::printable;
use crate::record::content::Role;
use jiff::Timestamp;
use std::io::{self, Write};

/// Writes the transcript of a subagent, or a link to it, given its result and the main language of the page.
pub type AgentWriter<'f> =
    dyn Fn(&CallOutcome, &'static str, &mut dyn Write) -> io::Result<()> + 'f;

/// The place of a conversation on its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'p> {
    /// It is the page.
    Page,
    /// It is in another conversation, as the transcript of the subagent with this id.
    Agent(&'p str),
}

impl Place<'_> {
    /// Returns the id of a turn.
    fn turn(self, number: u64) -> String {
        match self {
            Place::Page => format!("turn-{number}"),
            Place::Agent(id) => format!("agent-{id}-turn-{number}"),
        }
    }

    /// Returns the tags of the headings of turns and of messages.
    fn headings(self) -> [&'static str; 2] {
        match self {
            Place::Page => ["h2", "h3"],
            Place::Agent(_) => ["h4", "h5"],
        }
    }
}

/// A conversation that is written entry by entry.
pub struct Entries<'o, W> {
    options: &'o ShowOptions,
    chart: &'o Chart,
    agent: Option<&'o AgentWriter<'o>>,
    place: Place<'o>,
    /// The main language of the page.
    language: &'static str,
    out: W,
    in_turn: bool,
    speaker: Option<Role>,
    /// The record whose marks were last shown.
    marked: Option<String>,
    /// Text of programs that is not written yet.
    injections: Injections,
}

impl<'o, W: Write> Entries<'o, W> {
    /// Begins a conversation. `chart` has the totals of its turns, and `agent` writes the transcripts of its subagents.
    /// `language` is the main language of the page.
    pub fn begin(
        options: &'o ShowOptions,
        chart: &'o Chart,
        agent: Option<&'o AgentWriter<'o>>,
        place: Place<'o>,
        language: &'static str,
        out: W,
    ) -> Entries<'o, W> {
        Entries {
            options,
            chart,
            agent,
            place,
            language,
            out,
            in_turn: false,
            speaker: None,
            marked: None,
            injections: Injections::default(),
        }
    }

    /// Ends the conversation, and returns its output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        self.write_injections()?;
        self.close_turn()?;
        Ok(self.out)
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
        if let Some(note) = words::note(entry, self.options.language) {
            return self.note(&note, entry.time);
        }
        let back = if entry.retracted { " back" } else { "" };
        match &entry.item {
            Item::Session(session) => {
                let facts = words::session(session, self.options).join(" · ");
                self.close_turn()?;
                writeln!(
                    self.out,
                    "<p class=\"facts\">{} {}</p>",
                    self.options.language.say(phrase::SESSION),
                    html(&printable(&facts))
                )
            }
            Item::Turn(number) => self.turn(*number, entry.time),
            Item::Reply(reply) => {
                let facts = words::reply(reply, self.options);
                self.begin_speaker(Role::Assistant, &facts, entry.time)
            }
            Item::Text { role, text } => {
                self.ensure_speaker(*role, entry)?;
                let attributes = self.attributes(text);
                match role {
                    Role::User => {
                        let text = html(clean(text).trim_matches('\n'));
                        writeln!(self.out, "<div class=\"plain{back}\"{attributes}>{text}</div>")
                    }
                    Role::Assistant => {
                        let text = rendered(text);
                        writeln!(self.out, "<div class=\"prose{back}\"{attributes}>{text}</div>")
                    }
                }
            }
            Item::Thinking(text) => {
                self.ensure_speaker(Role::Assistant, entry)?;
                let body = self.prose(text);
                let words = self.options.language.say(phrase::THINKING);
                self.fold(&format!("thinking{back}"), words, &body)
            }
            Item::Call { name, input, is_answered, .. } => {
                self.ensure_speaker(Role::Assistant, entry)?;
                if let Some(act) = acts::read(input) {
                    return self.act(name, &act, back);
                }
                let line = call_line(name, input, *is_answered, self.options.language);
                let body = edit::read(input)
                    .map_or_else(|| pre(&facts::members(input)), |edit| diff(&edit));
                self.fold(&format!("call{back}"), &line, &body)
            }
            Item::Result(result) => {
                self.marks(entry)?;
                self.result(result, back, entry.time)
            }
            Item::Media { role, media } => {
                self.ensure_speaker(*role, entry)?;
                let shown = picture(media, self.options.language);
                writeln!(self.out, "{shown}")
            }
            Item::Hosted(act) => {
                self.ensure_speaker(Role::Assistant, entry)?;
                let (mark, kind) =
                    if hosted::is_answer(act) { ('←', "result") } else { ('→', "call") };
                let line = format!("{mark} {}", hosted::line(act, self.options.language));
                let failed = if act.failure.is_some() { " failed" } else { "" };
                match hosted::body_html(act, pre) {
                    body if body.is_empty() => {
                        let line = html(&printable(&line));
                        writeln!(self.out, "<p class=\"facts{back}\">{line}</p>")
                    }
                    body => self.fold(&format!("{kind}{failed}{back}"), &line, &body),
                }
            }
            Item::Other { role, kind, bytes } => {
                self.ensure_speaker(*role, entry)?;
                let what = html(&printable(&words::other(kind, *bytes, self.options.language)));
                writeln!(self.out, "<p class=\"facts\">[{what}]</p>")
            }
            _ => Ok(()),
        }
    }

    fn turn(&mut self, number: u64, time: Option<i64>) -> io::Result<()> {
        self.close_turn()?;
        self.in_turn = true;
        let facts = self.chart.turn_totals(number).facts(self.options).join(" · ");
        let facts =
            if facts.is_empty() { facts } else { format!(" <small>{}</small>", html(&facts)) };
        let time = time.map(|time| {
            let exact = Timestamp::from_microsecond(time).unwrap_or(Timestamp::UNIX_EPOCH);
            let local = words::when(time, &self.options.zone);
            format!(" <time datetime=\"{exact}\">{local}</time>")
        });
        let (id, [tag, _]) = (self.place.turn(number), self.place.headings());
        writeln!(
            self.out,
            "<section class=\"turn\" id=\"{id}\">\n<{tag}><a href=\"#{id}\">{}</a>{facts}{}</{tag}>",
            self.options.language.with(phrase::TURN, &[&number]),
            time.unwrap_or_default()
        )
    }

    /// Begins the rest of a turn whose beginning is on the page before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn continue_turn(&mut self, number: u64) -> io::Result<()> {
        self.in_turn = true;
        let title = self.options.language.with(phrase::TURN_CONTINUED, &[&number]);
        writeln!(self.out, "<section class=\"turn\">\n<h2>{title}</h2>")
    }

    fn close_turn(&mut self) -> io::Result<()> {
        self.close_speaker()?;
        let was_open = std::mem::replace(&mut self.in_turn, false);
        if was_open { writeln!(self.out, "</section>") } else { Ok(()) }
    }

    fn close_speaker(&mut self) -> io::Result<()> {
        let was_open = self.speaker.take().is_some();
        if was_open { writeln!(self.out, "</article>") } else { Ok(()) }
    }

    fn begin_speaker(&mut self, role: Role, facts: &[String], time: Option<i64>) -> io::Result<()> {
        self.close_speaker()?;
        self.speaker = Some(role);
        let name = words::role(role, self.options.language);
        let facts = html(&printable(&facts.join(" · ")));
        let (time, [_, tag]) = (self.time(time), self.place.headings());
        writeln!(
            self.out,
            "<article class=\"{role}\">\n<{tag}>{name} <small>{facts}{time}</small></{tag}>"
        )
    }

    /// Returns the time of day as HTML; an empty string if the time is unknown.
    fn time(&self, time: Option<i64>) -> String {
        let exact = time.and_then(|time| Timestamp::from_microsecond(time).ok());
        let both = exact.zip(words::clock(time, &self.options.zone));
        both.map_or(String::new(), |(exact, clock)| {
            format!(" <time datetime=\"{exact}\">{clock}</time>")
        })
    }

    /// Renders Markdown in a `div` with the attributes of its language and direction.
    fn prose(&self, text: &str) -> String {
        let attributes = self.attributes(text);
        format!("<div class=\"prose\"{attributes}>{}</div>", rendered(text))
    }

    /// Returns the attributes for the direction of `text`, and for its language if it differs from the page's.
    fn attributes(&self, text: &str) -> String {
        let language = language::of(text).filter(|own| *own != self.language);
        let language = language.map_or(String::new(), |own| format!(" lang=\"{own}\""));
        format!(" dir=\"auto\"{language}")
    }

    fn ensure_speaker(&mut self, role: Role, entry: &ShownEntry) -> io::Result<()> {
        if self.speaker != Some(role) {
            self.begin_speaker(role, &[], entry.time)?;
        }
        self.marks(entry)
    }

    fn marks(&mut self, entry: &ShownEntry) -> io::Result<()> {
        match words::marks(entry, &mut self.marked, self.options.language) {
            Some(mark) => writeln!(self.out, "<p class=\"mark\">{mark}</p>"),
            None => Ok(()),
        }
    }

    fn result(&mut self, result: &CallOutcome, back: &str, time: Option<i64>) -> io::Result<()> {
        let lines = self.options.language.count(result.text.lines().count() as u64, noun::LINE);
        let mut facts = [words::result(result, self.options.language), vec![lines]].concat();
        facts.extend(words::clock(time, &self.options.zone));
        let facts = facts.join(" · ");
        let failed = if result.is_error { " failed" } else { "" };
        let shown = if result.shown.is_some() { " shortened" } else { "" };
        let class = format!("result{failed}{shown}{back}");
        self.fold(&class, &format!("← {facts}"), &pre(&result.text))?;
        result.media.iter().try_for_each(|media| {
            writeln!(self.out, "{}", picture(media, self.options.language))
        })?;
        self.agent.map_or(Ok(()), |write| write(result, self.language, &mut self.out))
    }

    /// Writes a call that is shown as what it is. To-do lists and plans are not folded.
    fn act(&mut self, name: &str, act: &Act, back: &str) -> io::Result<()> {
        let line = format!("→ {}", acts::line(name, act, self.options.language));
        let shown = html(&printable(&line));
        match act {
            Act::Todos(todos) => {
                writeln!(
                    self.out,
                    "<div class=\"call{back}\">\n<p>{shown}</p>\n<ul class=\"todos\">"
                )?;
                for Todo { state, text } in todos {
                    let TodoState { class, mark, name } = *state;
                    let (mark, name) = (html(mark), self.options.language.say(name));
                    let text = html(&printable(text));
                    writeln!(
                        self.out,
                        "<li class=\"{class}\"><span aria-hidden=\"true\">{mark}</span> <span dir=\"auto\">{text}</span> <small>{name}</small></li>"
                    )?;
                }
                writeln!(self.out, "</ul>\n</div>")
            }
            Act::Plan(text) => {
                let body = self.prose(text);
                writeln!(self.out, "<div class=\"call{back}\">\n<p>{shown}</p>\n{body}\n</div>")
            }
            Act::Agent { prompt, .. } => {
                let body = self.prose(prompt);
                self.fold(&format!("call{back}"), &line, &body)
            }
        }
    }

    fn note(&mut self, note: &words::Note, time: Option<i64>) -> io::Result<()> {
        // The next message gets a heading again.
        self.close_speaker()?;
        let (class, title, line) = (note.class, note.title, html(&printable(&note.line)));
        let time = self.time(time);
        writeln!(self.out, "<aside class=\"{class}\">\n<p><b>{title}</b> {line}{time}</p>")?;
        if let Some(body) = &note.body {
            let body = self.prose(body);
            self.fold("summary", self.options.language.say(phrase::SUMMARY_TEXT), &body)?;
        }
        writeln!(self.out, "</aside>")
    }

    /// Writes the text of programs since the last entry.
    fn write_injections(&mut self) -> io::Result<()> {
        let Some(own) = self.injections.take() else { return Ok(()) };
        self.close_speaker()?;
        self.fold("injected", &own.line(self.options.language), &pre(&own.text()))
    }

    /// Writes a folded part; `summary` is plain text, `body` is HTML.
    fn fold(&mut self, class: &str, summary: &str, body: &str) -> io::Result<()> {
        let open = if self.options.full { " open" } else { "" };
        let summary = html(&printable(summary));
        writeln!(
            self.out,
            "<details class=\"{class}\"{open}>\n<summary>{summary}</summary>\n{body}\n</details>"
        )
    }
}
