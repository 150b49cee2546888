//! Writes entries as a self-contained HTML page, without scripts and without external images or fonts.
//!
//! All text is escaped. The Markdown of messages is rendered. In addition, a content security policy makes browsers block
//! scripts and external resources.

mod blocks;
mod entries;
mod prose;

use super::chart::{Chart, Prompt};
use super::wording::{Language, noun, phrase};
use super::words::{self, html};
use super::{Item, ShowOptions, ShownEntry, plot};
use crate::printable::printable;
pub use entries::{AgentWriter, Entries, Place};
use std::io::{self, Write};

const STYLE: &str = include_str!("page.css");

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
    /// Writes the transcripts of subagents.
    pub agent: Option<&'f AgentWriter<'f>>,
}

/// Returns the address of the page with a turn.
pub type PageOf<'f> = dyn Fn(u64) -> Option<String> + 'f;

/// A page that is written entry by entry.
pub struct Page<'o, W> {
    entries: Entries<'o, W>,
    bottom: &'o str,
    /// True if the header of the page shows the first session, whose entry is still to come and is then skipped.
    skips_session: bool,
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
        let language = chart.languages.of_page(options.language);
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
            head(language, &title, ""),
            frame.top,
        )?;
        let skips_session = chart.session.is_some() && part < 2;
        let entries = Entries::begin(options, chart, frame.agent, Place::Page, language, out);
        Ok(Page { entries, bottom: frame.bottom, skips_session })
    }

    /// Ends the page, and returns its output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(self) -> io::Result<W> {
        let mut out = self.entries.end()?;
        write!(out, "</main>\n{}</body>\n</html>\n", self.bottom)?;
        Ok(out)
    }

    /// Writes an entry.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn show(&mut self, entry: &ShownEntry) -> io::Result<()> {
        match &entry.item {
            Item::Session(_) if std::mem::take(&mut self.skips_session) => Ok(()),
            _ => self.entries.show(entry),
        }
    }

    /// Begins the rest of a turn whose beginning is on the page before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn continue_turn(&mut self, number: u64) -> io::Result<()> {
        self.entries.continue_turn(number)
    }
}

/// Returns the beginning of a page, up to its body. `title` is HTML, and `style` is added to the style of all pages. The
/// content security policy permits no scripts and no external resources.
#[must_use]
pub fn head(language: &str, title: &str, style: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"{language}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n"
    )
}

/// Writes a link to the transcript of a subagent.
///
/// # Errors
/// If it cannot be written.
pub fn agent_link(address: &str, language: Language, out: &mut dyn Write) -> io::Result<()> {
    let words = language.say(phrase::TRANSCRIPT);
    writeln!(out, "<p class=\"facts\"><a href=\"{address}\">{words}</a></p>")
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
