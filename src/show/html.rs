//! Writes entries as a self-contained HTML page, without scripts and without external images or fonts.
//!
//! All text is escaped. The Markdown of messages is rendered: raw HTML and images in it become text, and only links to
//! web and mail addresses are kept. In addition, a content security policy makes browsers block scripts and external
//! resources.

use super::acts::{self, Act, Todo};
use super::chart::{Chart, Prompt};
use super::code::{self, CodePart};
use super::edit::{self, DiffKind, DiffLine, Edit};
use super::emphasis::Marked;
use super::injections::Injections;
use super::markdown::{DIALECT, MAX_PARSED, call_line};
use super::wording::{Language, noun, phrase};
use super::words::{self, clean, html};
use super::{CallOutcome, Item, Media, ShowOptions, ShownEntry, facts, hosted, language, plot};
use crate::printable::printable;
use crate::record::content::Role;
use jiff::Timestamp;
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Parser, Tag, TagEnd, TextMergeStream,
};
use std::io::{self, Write};

const STYLE: &str = include_str!("page.css");
/// The types of images that are shown. Formats that can contain scripts are excluded.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The surroundings of a page: its place in a site, if it is part of one.
#[derive(Clone, Copy, Default)]
pub struct Frame<'f> {
    /// The title of a page whose session has no name.
    pub name: &'f str,
    /// HTML above the title.
    pub top: &'f str,
    /// HTML after the conversation.
    pub bottom: &'f str,
    /// The number of this page among those of the session, counted from 1, and their number. 0 if there are no others.
    pub part: (usize, usize),
    /// Finds the page with a turn, for a turn on another page.
    pub page_of: Option<&'f PageOf<'f>>,
    /// Finds the transcript of a subagent, by its id.
    pub agent: Option<&'f AgentPage<'f>>,
}

/// Returns the address of the page with a turn.
pub type PageOf<'f> = dyn Fn(u64) -> Option<String> + 'f;
/// Returns the address of the page of a subagent.
pub type AgentPage<'f> = dyn Fn(&str) -> Option<String> + 'f;

/// A page that is written entry by entry.
pub struct Page<'o, W> {
    options: &'o ShowOptions,
    frame: Frame<'o>,
    chart: &'o Chart,
    out: W,
    /// The main language of the page.
    language: &'static str,
    /// True if the header of the page shows the first session, whose entry is still to come and is then skipped.
    skips_session: bool,
    in_turn: bool,
    speaker: Option<Role>,
    /// The record whose marks were last shown.
    marked: Option<String>,
    /// Text of programs that is not written yet.
    injections: Injections,
}

impl<'o, W: Write> Page<'o, W> {
    /// Begins the page. Its title is that of the session, or else the name in `frame`. Only the first page of a session
    /// has the chart and the list of prompts.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        options: &'o ShowOptions,
        frame: Frame<'o>,
        chart: &'o Chart,
        mut out: W,
    ) -> io::Result<Page<'o, W>> {
        let name = chart.title().unwrap_or(frame.name);
        let title = html(&printable(name));
        let facts = chart.session.as_ref().map(|it| words::session(it, options));
        let mut facts = facts.unwrap_or_default();
        facts.retain(|fact| fact != name);
        facts.push(match chart.first_turn {
            0 | 1 => options.language.count(chart.turn, noun::TURN),
            first => options.language.with(phrase::TURNS_TO, &[&first, &chart.turn]),
        });
        facts.extend(chart.totals().facts(options));
        let facts = html(&printable(&facts.join(" · ")));
        // The program's own words are few. In English, the page is in the language of the conversation.
        let language = match options.language {
            Language::En => chart.languages.main(),
            other => other.code(),
        };
        let (part, parts) = frame.part;
        let above = match part {
            0 | 1 => format!(
                "{}{}",
                plot::figure(chart, options.language),
                index(chart, frame, options.language)
            ),
            _ => String::new(),
        };
        let facts = match parts {
            0 | 1 => facts,
            _ => format!("{facts} · {}", options.language.with(phrase::PAGE_OF, &[&part, &parts])),
        };
        write!(
            out,
            "{}<body>\n{}\
             <header>\n<h1 dir=\"auto\">{title}</h1>\n<p class=\"facts\">{facts}</p>\n{above}</header>\n<main id=\"content\">\n",
            head(language, &title),
            frame.top,
        )?;
        let skips_session = chart.session.is_some() && part < 2;
        Ok(Page {
            options,
            frame,
            chart,
            out,
            language,
            skips_session,
            in_turn: false,
            speaker: None,
            marked: None,
            injections: Injections::default(),
        })
    }

    /// Ends the page, and returns its output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(mut self) -> io::Result<W> {
        self.write_injections()?;
        self.close_turn()?;
        write!(self.out, "</main>\n{}</body>\n</html>\n", self.frame.bottom)?;
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
            Item::Session(_) if std::mem::take(&mut self.skips_session) => Ok(()),
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
        writeln!(
            self.out,
            "<section class=\"turn\" id=\"turn-{number}\">\n<h2><a href=\"#turn-{number}\">{}</a>{facts}{}</h2>",
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
        let time = self.time(time);
        writeln!(
            self.out,
            "<article class=\"{role}\">\n<h3>{name} <small>{facts}{time}</small></h3>"
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
        match words::marks(entry, self.options.language)
            .filter(|_| self.marked.as_ref() != Some(&entry.id))
        {
            Some(mark) => {
                self.marked = Some(entry.id.clone());
                writeln!(self.out, "<p class=\"mark\">{mark}</p>")
            }
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
        let agent = self.frame.agent.and_then(|find| find(acts::agent_of(&result.text)?));
        match agent {
            Some(address) => {
                let words = self.options.language.say(phrase::TRANSCRIPT);
                writeln!(self.out, "<p class=\"facts\"><a href=\"{address}\">{words}</a></p>")
            }
            None => Ok(()),
        }
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
                    let (mark, name) =
                        (html(state.mark()), self.options.language.say(state.phrase()));
                    let text = html(&printable(text));
                    writeln!(
                        self.out,
                        "<li class=\"{state:?}\"><span aria-hidden=\"true\">{mark}</span> <span dir=\"auto\">{text}</span> <small>{name}</small></li>"
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

/// Returns the beginning of a page, up to its body. `title` is HTML. Its content security policy permits no scripts and
/// no external resources.
#[must_use]
pub fn head(language: &str, title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n"
    )
}

/// Returns a list of the prompts with links to their turns.
fn index(chart: &Chart, frame: Frame<'_>, language: Language) -> String {
    if chart.prompts.len() < 2 {
        return String::new();
    }
    let line = |prompt: &Prompt| {
        let turn = prompt.turn;
        let text = if prompt.text.is_empty() { "…".to_owned() } else { html(&prompt.text) };
        let back = if prompt.retracted { " class=\"back\"" } else { "" };
        // An address with this page and the number of a turn on another page leads to the link.
        let (id, page) = match frame.page_of.and_then(|find| find(turn)) {
            Some(page) => (format!(" id=\"turn-{turn}\""), page),
            None => Default::default(),
        };
        format!(
            "<li value=\"{turn}\"{id}{back}><a href=\"{page}#turn-{turn}\" dir=\"auto\">{text}</a></li>\n"
        )
    };
    let lines: String = chart.prompts.iter().map(line).collect();
    let count = language.count(chart.prompts.len() as u64, noun::PROMPT);
    format!(
        "<nav>\n<details>\n<summary>{count}</summary>\n<ol>\n{lines}</ol>\n</details>\n</nav>\n"
    )
}

/// Renders the changes of a tool call.
fn diff(edit: &Edit) -> String {
    let line = |line: &DiffLine| {
        let class = match line.kind {
            DiffKind::Same => "same",
            DiffKind::Added => "added",
            DiffKind::Removed => "removed",
            DiffKind::Place => "place",
        };
        let text = html(&clean(&line.text));
        format!("<span class=\"{class}\">{}{text}</span>\n", line.kind.sign())
    };
    let lines: String = edit.lines.iter().map(line).collect();
    let others = if edit.others.is_empty() { String::new() } else { pre(&edit.others) + "\n" };
    format!("{others}<pre class=\"diff\" dir=\"auto\" tabindex=\"0\">\n{lines}</pre>")
}

fn pre(text: &str) -> String {
    let text = clean(text);
    // A browser drops a line feed right after the tag.
    format!("<pre dir=\"auto\" tabindex=\"0\">\n{}</pre>", html(text.trim_end_matches('\n')))
}

/// Renders an image if its data is included and safe, or else its properties.
fn picture(media: &Media, language: Language) -> String {
    let words = html(&printable(&words::media(media, language)));
    let media_type = media.media_type.as_deref().filter(|it| IMAGES.contains(it));
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let data = media.data.as_ref().filter(|data| data.bytes().all(is_base64));
    match media_type.zip(data).filter(|_| media.kind == "image") {
        Some((media_type, data)) => {
            let words = words.replace('"', "&quot;");
            format!("<p><img alt=\"{words}\" src=\"data:{media_type};base64,{data}\"></p>")
        }
        None => format!("<p class=\"facts\">[{words}]</p>"),
    }
}

/// Renders Markdown as HTML. Very long text is not parsed.
fn rendered(text: &str) -> String {
    let text = clean(text);
    if text.len() > MAX_PARSED {
        return pre(&text);
    }
    let (marked, mut links) = (Marked::new(&text), Vec::new());
    let events = Parser::new_ext(&marked.text, DIALECT).map(|event| marked.event(event));
    let mut headings = Headings::default();
    let events = events.filter_map(|event| safe(event, &mut links, &mut headings));
    let mut out = String::with_capacity(text.len() * 2);
    let mut language = None;
    let events = TextMergeStream::new(events).map(|event| coloured(event, &mut language));
    pulldown_cmark::html::push_html(&mut out, events);
    // Code that scrolls must be reachable with the keyboard. There is no other markup that begins so, because text is escaped.
    out.replace("<pre><code", "<pre tabindex=\"0\"><code")
}

/// Highlights code in fences. `language` is that of the open fence.
fn coloured<'a>(event: Event<'a>, language: &mut Option<CowStr<'a>>) -> Event<'a> {
    let code = match (&event, &language) {
        (Event::Text(text), Some(language)) => code::pieces(language, text),
        _ => None,
    };
    let code = code.map(|pieces| spans(&pieces));
    match &event {
        Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => *language = Some(info.clone()),
        Event::End(TagEnd::CodeBlock) => *language = None,
        _ => {}
    }
    code.map_or(event, |code| Event::Html(code.into()))
}

/// Renders pieces of code, escaped.
fn spans(pieces: &[(CodePart, &str)]) -> String {
    let span = |(part, text): &(CodePart, &str)| match part.class() {
        Some(class) => format!("<span class=\"{class}\">{}</span>", html(text)),
        None => html(text),
    };
    pieces.iter().map(span).collect()
}

/// Makes an event safe. `links` has an element for each open link: true if it is kept.
fn safe<'a>(event: Event<'a>, links: &mut Vec<bool>, headings: &mut Headings) -> Option<Event<'a>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Heading { level, .. }) => {
            let (id, classes, attrs) = (None, Vec::new(), Vec::new());
            Event::Start(Tag::Heading { level: headings.begin(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(_)) => Event::End(TagEnd::Heading(headings.current())),
        Event::Start(Tag::Image { .. }) => Event::Text(CowStr::Borrowed("[image: ")),
        Event::End(TagEnd::Image) => Event::Text(CowStr::Borrowed("]")),
        Event::Start(Tag::Link { ref dest_url, .. }) => {
            links.push(is_safe(dest_url));
            return links.last().copied().unwrap_or(false).then_some(event);
        }
        Event::End(TagEnd::Link) => return links.pop().unwrap_or(false).then_some(event),
        event => event,
    })
}

/// The headings of a message that are above the current place, by their levels.
#[derive(Default)]
struct Headings(Vec<HeadingLevel>);

impl Headings {
    /// Begins a heading, and returns its level on the page, which uses the levels 1 to 3 itself. A heading is one level below
    /// the one that it belongs to, because readers of a page by its outline expect no gaps.
    fn begin(&mut self, level: HeadingLevel) -> HeadingLevel {
        while self.0.last().is_some_and(|above| *above >= level) {
            self.0.pop();
        }
        self.0.push(level);
        self.current()
    }

    fn current(&self) -> HeadingLevel {
        match self.0.len() {
            0 | 1 => HeadingLevel::H4,
            2 => HeadingLevel::H5,
            _ => HeadingLevel::H6,
        }
    }
}

/// Returns true for the URL of a web or mail address.
fn is_safe(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
    url.contains(':') && ["http", "https", "mailto"].contains(&scheme.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_messages_is_never_markup() {
        for (markdown, shown) in [
            ("a <b>x</b>", "<p>a &lt;b&gt;x&lt;/b&gt;</p>\n"),
            ("<script>\nx\n</script>", "<p>&lt;script&gt;\nx\n&lt;/script&gt;</p>\n"),
            ("これは**「永久」**です", "<p>これは<strong>「永久」</strong>です</p>\n"),
            ("# one\n## two", "<h4>one</h4>\n<h5>two</h5>\n"),
            ("### one\n##### two\n### three", "<h4>one</h4>\n<h5>two</h5>\n<h4>three</h4>\n"),
            (
                "[a](javascript:x) [b](https://x.org) [c](#d)",
                "<p>a <a href=\"https://x.org\">b</a> c</p>\n",
            ),
            ("![a](https://x.org/i.png)", "<p>[image: a]</p>\n"),
            (
                "```rust\nlet a = \"</code><b>\";\n```",
                "<pre tabindex=\"0\"><code class=\"language-rust\"><span class=\"keyword\">let</span> a = <span class=\"string\">\"&lt;/code&gt;&lt;b&gt;\"</span>;\n</code></pre>\n",
            ),
            ("[![a](i)](JavaScript:x)", "<p>[image: a]</p>\n"),
            ("a\u{1b}[31m\u{202e}b", "<p>a\\u{1b}[31m\\u{202e}b</p>\n"),
        ] {
            assert_eq!(rendered(markdown), shown, "{markdown}");
        }
    }

    #[test]
    fn images_that_can_contain_scripts_are_not_shown() {
        let media = |media_type: &str, data: &str| Media {
            kind: "image".into(),
            media_type: Some(media_type.into()),
            bytes: Some(3),
            data: Some(data.into()),
            raw: String::new(),
        };
        let png =
            "<p><img alt=\"image, image/png, 3 bytes\" src=\"data:image/png;base64,AAAA\"></p>";
        assert_eq!(picture(&media("image/png", "AAAA"), Language::En), png);
        assert!(!picture(&media("image/svg+xml", "AAAA"), Language::En).contains("<img"));
        assert!(!picture(&media("image/png", "AA\"onerror=x"), Language::En).contains("<img"));
    }
}
