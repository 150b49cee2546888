//! The pages of a session, and what all pages of a site have in common.

use super::name;
use super::parts::{Begin, Parts};
use super::state::Row;
use super::summary::Collector;
use crate::new_file::NewFile;
use crate::printable::printable;
use crate::show::html::{self as page_html, Frame, Page, agent_link};
use crate::show::walk::Reading;
use crate::show::wording::{Language, Phrase, phrase};
use crate::show::words::{html, when};
use crate::show::{CallOutcome, ShowOptions, acts};
use anyhow::Context;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The style of the index and the statistics.
const STYLE: &str = include_str!("site.css");

/// Writes the pages of a session, and returns their number. `agent` returns the address of the transcript of a subagent.
///
/// # Errors
/// If the source cannot be read, or a page cannot be written.
pub fn write(
    row: &Row,
    read: &Reading<'_>,
    show: &ShowOptions,
    agent: &dyn Fn(&str) -> Option<String>,
    create: &dyn Fn(&str) -> io::Result<NewFile>,
) -> anyhow::Result<usize> {
    let (collector, _) = Collector::of(read)?;
    let (chart, pages) = (&collector.chart, &collector.pages);
    let parts = collector.parts();
    let title = title(row);
    let page_of = |turn: u64| {
        let index = usize::try_from(turn.checked_sub(chart.first_turn)?).ok()?;
        pages.get(index).filter(|part| **part > 1).map(|part| name::file(&row.name, *part))
    };
    let agent = |result: &CallOutcome, _: &'static str, out: &mut dyn Write| match acts::agent_of(
        &result.text,
    )
    .and_then(agent)
    {
        Some(address) => agent_link(&address, show.language, out),
        None => Ok(()),
    };
    let mut surroundings = Vec::new();
    for part in 1..=parts {
        let links = |is_top| neighbours(row, (part, parts), is_top, show.language);
        let top = format!("{}{}", skip(show.language), links(true));
        surroundings.push((top, format!("<footer>\n{}</footer>\n", links(false))));
    }
    let frame = |part: usize| {
        let (top, bottom) = &surroundings[(part - 1).min(parts - 1)];
        Frame {
            name: &title,
            top,
            bottom,
            part: (part, parts),
            page_of: Some(&page_of),
            agent: Some(&agent),
        }
    };
    let begin =
        |part: usize| Page::begin(show, frame(part), chart, create(&name::file(&row.name, part))?);
    let mut division = Parts::default();
    let cannot = || format!("cannot write the pages of '{}'", row.name);
    let mut page = begin(1).with_context(cannot)?;
    // A page ends where the next one begins.
    read.read(&mut |entry| {
        if let Some(place) = division.take(entry) {
            let next = begin(division.number())?;
            std::mem::replace(&mut page, next).end()?.finish_unsynced()?;
            if let Begin::Within(turn) = place {
                page.continue_turn(turn)?;
            }
        }
        page.show(entry)
    })?;
    page.end().and_then(NewFile::finish_unsynced).with_context(cannot)?;
    Ok(division.number())
}

/// Returns the title of a session as HTML.
pub fn title(row: &Row) -> String {
    let title = Some(row.summary.title.as_str()).filter(|title| !title.is_empty());
    html(&printable(title.unwrap_or(&row.summary.id)))
}

/// Returns the day of a time.
pub fn day(time: Option<i64>, options: &ShowOptions) -> String {
    let time = time.map(|time| when(time, &options.zone));
    let day = time.and_then(|time| time.split(' ').next().map(str::to_owned));
    day.unwrap_or_else(|| options.language.say(phrase::NO_DATE).to_owned())
}

/// Begins a page of the site up to its header. `class` is that of the body, and `other` the file and the title of the other page
/// that is not of a session.
pub fn begin(language: Language, class: &str, title: &str, other: (&str, Phrase)) -> String {
    let mut page = page_html::head(language.code(), title, STYLE);
    let (file, phrase) = other;
    let label = language.say(phrase::PAGES);
    let _ = writeln!(
        page,
        "<body class=\"{class}\">\n{}<nav class=\"site\" aria-label=\"{label}\">\n<a href=\"{file}\">{}</a>\n</nav>",
        skip(language),
        language.say(phrase)
    );
    page
}

/// Ends a page of the site.
pub fn end(page: String) -> String {
    page + "</body>\n</html>\n"
}

fn skip(language: Language) -> String {
    let words = language.say(phrase::SKIP);
    format!("<a class=\"skip\" href=\"#content\">{words}</a>\n")
}

/// Returns the links to the index, the other sessions, and the other pages of the session. Those at the top are
/// landmarks; those at the bottom are the same ones again.
fn neighbours(
    row: &Row,
    (part, parts): (usize, usize),
    is_top: bool,
    language: Language,
) -> String {
    let group = |label: &str, links: &str| match is_top {
        true => format!("<nav class=\"site\" aria-label=\"{label}\">\n{links}</nav>\n"),
        false => format!("<div class=\"site\">\n{links}</div>\n"),
    };
    let say = |phrase| language.say(phrase);
    let [before, after, parent] = &row.links;
    let link = |name: &str, rel: &str, phrase| {
        let rel = if rel.is_empty() { String::new() } else { format!(" rel=\"{rel}\"") };
        let file = name::file(name, 1);
        (!name.is_empty()).then(|| format!("<a href=\"{file}\"{rel}>{}</a>\n", say(phrase)))
    };
    let links = [
        Some(format!("<a href=\"index.html\">{}</a>\n", say(phrase::SESSIONS))),
        link(parent, "", phrase::PARENT),
        link(before, "prev", phrase::PREVIOUS),
        link(after, "next", phrase::NEXT),
    ];
    let links: String = links.into_iter().flatten().collect();
    let all = group(say(phrase::NEIGHBOURS), &links);
    if parts < 2 {
        return all;
    }
    let page = |number: usize| match number == part {
        true => format!("<b aria-current=\"page\">{number}</b>\n"),
        false => format!("<a href=\"{}\">{number}</a>\n", name::file(&row.name, number)),
    };
    let pages: String = (1..=parts).map(page).collect();
    all + &group(say(phrase::PAGES), &pages)
}
