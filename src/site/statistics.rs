//! The statistics: all sessions together, and by day, project, program, model and tool.

use super::pages;
use super::state::Row;
use crate::estimate::report::grouped;
use crate::printable::printable;
use crate::show::ShowOptions;
use crate::show::totals::{Totals, duration};
use crate::show::wording::{Language, Phrase, noun, phrase};
use crate::show::words::{html, program};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The maximum number of rows of a table.
const MAX_ROWS: usize = 100;

/// The sums of a group of sessions.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    sessions: u64,
    turns: u64,
    totals: Totals,
    /// The time of all sessions in microseconds.
    time: i64,
}

impl Sums {
    fn add(&mut self, row: &Row) {
        let totals = &row.summary.totals;
        self.sessions += 1;
        self.turns += row.summary.turns;
        self.time = self.time.saturating_add(totals.duration().unwrap_or(0));
        self.totals.add(totals);
    }
}

/// Returns the page.
pub fn page(rows: &[&Row], options: &ShowOptions) -> String {
    let language = options.language;
    let title = language.say(phrase::STATISTICS);
    let mut all = Sums::default();
    rows.iter().for_each(|row| all.add(row));
    let other = ("index.html", phrase::SESSIONS);
    let mut page = pages::begin(language, "statistics", title, other);
    let _ = writeln!(
        page,
        "<header>\n<h1>{title}</h1>\n<p class=\"facts\">{}</p>\n</header>\n<main id=\"content\">",
        html(&facts(&all, options).join(" · "))
    );
    let group = |key: &dyn Fn(&Row) -> String| {
        let mut groups: BTreeMap<String, Sums> = BTreeMap::new();
        rows.iter().for_each(|row| groups.entry(key(row)).or_default().add(row));
        groups.into_iter().collect::<Vec<_>>()
    };
    let mut days = group(&|row| pages::day(row.summary.totals.start, options));
    days.reverse();
    table(&mut page, phrase::DAYS_OF, phrase::DAY, &days, options);
    let project = |row: &Row| match &row.summary.project {
        Some([name, _]) => printable(name).into_owned(),
        None => language.say(phrase::NO_PROJECT).to_owned(),
    };
    table(&mut page, phrase::PROJECTS, phrase::NAME, &largest(group(&project)), options);
    let name =
        |row: &Row| row.summary.program.as_deref().map_or_else(|| "claw".to_owned(), program);
    table(&mut page, phrase::PROGRAMS, phrase::NAME, &largest(group(&name)), options);
    let model = |row: &Row| row.summary.model().unwrap_or("–").to_owned();
    table(&mut page, phrase::MODELS, phrase::NAME, &largest(group(&model)), options);
    tools(&mut page, rows, language);
    page.push_str("</main>\n");
    pages::end(page)
}

fn facts(all: &Sums, options: &ShowOptions) -> Vec<String> {
    let language = options.language;
    let mut facts = vec![
        language.count(all.sessions, noun::SESSION),
        language.count(all.turns, noun::TURN),
        language.count(all.totals.replies, noun::REQUEST),
    ];
    let prompt = all.totals.counts.prompt();
    let cached = grouped(all.totals.counts.cache_read);
    facts.push(language.with(phrase::IN, &[&grouped(prompt)]));
    facts.push(language.with(phrase::FROM_CACHE, &[&cached]));
    facts.push(language.with(phrase::OUT, &[&grouped(all.totals.counts.output)]));
    facts.extend(all.totals.amount(options));
    facts.push(language.count(all.totals.calls, noun::CALL));
    facts.push(language.count(all.totals.failures, noun::FAILURE));
    facts.push(duration(all.time, language));
    facts
}

/// Sorts the groups with the most tokens first.
fn largest(mut groups: Vec<(String, Sums)>) -> Vec<(String, Sums)> {
    groups.sort_by(|a, b| {
        let size = |sums: &Sums| (sums.totals.counts.all(), sums.turns);
        size(&b.1).cmp(&size(&a.1)).then_with(|| a.0.cmp(&b.0))
    });
    groups
}

/// Writes a table of groups. A bar shows the tokens of each beside the largest.
fn table(
    page: &mut String,
    title: Phrase,
    first: Phrase,
    groups: &[(String, Sums)],
    options: &ShowOptions,
) {
    let language = options.language;
    let heads = [
        first,
        phrase::SESSIONS,
        phrase::TURNS,
        phrase::INPUT,
        phrase::CACHED,
        phrase::OUTPUT,
        phrase::COST,
        phrase::CALLS,
        phrase::TIME,
    ];
    begin(page, title, &heads, language);
    let most = groups.iter().map(|(_, sums)| sums.totals.counts.all()).max().unwrap_or(0).max(1);
    for (name, sums) in groups.iter().take(MAX_ROWS) {
        let counts = sums.totals.counts;
        let cells = [
            grouped(sums.sessions),
            grouped(sums.turns),
            grouped(counts.prompt()),
            grouped(counts.cache_read),
            grouped(counts.output),
            sums.totals.amount(options).unwrap_or_default(),
            grouped(sums.totals.calls),
            duration(sums.time, language),
        ];
        row(page, name, counts.all() * 100 / most, &cells);
    }
    end(page);
}

fn tools(page: &mut String, rows: &[&Row], language: Language) {
    let mut tools: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (name, count) in rows.iter().flat_map(|row| &row.summary.tools) {
        let [calls, sessions] = tools.entry(name).or_default();
        (*calls, *sessions) = (*calls + count, *sessions + 1);
    }
    let mut tools: Vec<_> = tools.into_iter().collect();
    tools.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    begin(page, phrase::TOOLS, &[phrase::NAME, phrase::CALLS, phrase::SESSIONS], language);
    let most = tools.first().map_or(1, |(_, [calls, _])| *calls).max(1);
    for (name, [calls, sessions]) in tools.into_iter().take(MAX_ROWS) {
        row(page, name, calls * 100 / most, &[grouped(calls), grouped(sessions)]);
    }
    end(page);
}

fn begin(page: &mut String, title: Phrase, heads: &[Phrase], language: Language) {
    let title = language.say(title);
    let heads = heads.iter().map(|head| format!("<th scope=\"col\">{}</th>", language.say(*head)));
    let heads: String = heads.collect();
    let _ = writeln!(
        page,
        "<section>\n<h2>{title}</h2>\n<div class=\"table\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\">\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>"
    );
}

fn row(page: &mut String, name: &str, share: u64, cells: &[String]) {
    let name = html(&printable(name));
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", html(cell))).collect();
    let _ = writeln!(
        page,
        "<tr><th scope=\"row\" dir=\"auto\">{name}<span class=\"bar\" style=\"width:{share}%\"></span></th>{cells}</tr>"
    );
}

fn end(page: &mut String) {
    page.push_str("</tbody>\n</table>\n</div>\n</section>\n");
}
