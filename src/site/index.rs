//! The index: the sessions by project and day.

use super::name;
use super::pages;
use super::state::Row;
use super::summary::Summary;
use crate::estimate::report::grouped;
use crate::printable::printable;
use crate::show::ShowOptions;
use crate::show::outcome::Outcome;
use crate::show::wording::{Language, noun, phrase};
use crate::show::words::{html, program, when};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

/// The maximum number of tools that a session shows.
const TOOLS: usize = 5;

/// The sessions of a project.
struct Project<'r> {
    /// The name; `None` for sessions without a project.
    name: Option<&'r str>,
    /// The sessions, the earliest first.
    rows: Vec<&'r Row>,
}

/// Returns the projects, the one with the newest session first. Transcripts of subagents are left out if the session that they
/// belong to is on the site.
fn projects<'r>(rows: &[&'r Row]) -> Vec<Project<'r>> {
    let parents = Parents::of(rows);
    let mut projects: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| parents.of_row(row).is_none()) {
        let key = row.summary.project.as_ref().map_or("", |[_, key]| key);
        projects.entry(key).or_default().push(row);
    }
    let mut projects: Vec<Project<'_>> = projects
        .into_values()
        .map(|mut rows| {
            rows.sort_by_key(|row| (row.summary.totals.start, &row.name));
            let name = rows[0].summary.project.as_ref().map(|[name, _]| name.as_str());
            Project { name, rows }
        })
        .collect();
    let newest = |project: &Project<'_>| project.rows.last().map(|row| row.summary.totals.start);
    projects.sort_by(|a, b| newest(b).cmp(&newest(a)).then(a.name.cmp(&b.name)));
    projects
}

/// The sessions that transcripts of subagents belong to.
struct Parents<'r>(HashMap<&'r str, &'r Row>);

impl<'r> Parents<'r> {
    fn of(rows: &[&'r Row]) -> Parents<'r> {
        let is_own = |row: &&&Row| row.summary.agent.is_none();
        Parents(rows.iter().filter(is_own).map(|row| (row.summary.id.as_str(), *row)).collect())
    }

    /// Returns the session that a subagent's transcript belongs to. Claude Code gives it the id of the session.
    fn of_row(&self, row: &Row) -> Option<&'r Row> {
        let Summary { id, parent, agent, .. } = &row.summary;
        agent.as_ref()?;
        let own = parent.as_ref().and_then(|parent| self.0.get(parent.as_str()));
        own.or_else(|| self.0.get(id.as_str())).copied()
    }
}

/// Returns for the name of each session the names of the one before it and the one after it in its project, and of the one that
/// it belongs to.
pub fn links(rows: &[&Row]) -> HashMap<String, [String; 3]> {
    let mut links: HashMap<String, [String; 3]> = HashMap::new();
    for project in projects(rows) {
        for pair in project.rows.windows(2) {
            let [before, after] = [&pair[0].name, &pair[1].name];
            links.entry(before.clone()).or_default()[1].clone_from(after);
            links.entry(after.clone()).or_default()[0].clone_from(before);
        }
    }
    let parents = Parents::of(rows);
    for row in rows {
        if let Some(parent) = parents.of_row(row) {
            links.entry(row.name.clone()).or_default()[2].clone_from(&parent.name);
        }
    }
    links
}

/// Returns the page.
pub fn page(rows: &[&Row], options: &ShowOptions) -> String {
    let language = options.language;
    let say = |phrase| language.say(phrase);
    let projects = projects(rows);
    let count = projects.iter().map(|project| project.rows.len()).sum::<usize>() as u64;
    let mut facts = vec![language.count(count, noun::SESSION)];
    facts.push(language.count(projects.len() as u64, noun::PROJECT));
    let other = ("statistics.html", phrase::STATISTICS);
    let mut page = pages::begin(language, "index", say(phrase::SESSIONS), other);
    let _ = writeln!(
        page,
        "<header>\n<h1>{}</h1>\n<p class=\"facts\">{}</p>\n",
        say(phrase::SESSIONS),
        html(&facts.join(" · "))
    );
    if projects.len() > 1 {
        let _ = writeln!(
            page,
            "<nav aria-label=\"{}\">\n<ul class=\"projects\">",
            say(phrase::PROJECTS)
        );
        for (number, project) in projects.iter().enumerate() {
            let name = project_name(project, language);
            let count = grouped(project.rows.len() as u64);
            let _ = writeln!(
                page,
                "<li><a href=\"#project-{}\" dir=\"auto\">{name}</a> <small>{count}</small></li>",
                number + 1
            );
        }
        page.push_str("</ul>\n</nav>\n");
    }
    page.push_str("</header>\n<main id=\"content\">\n");
    if projects.is_empty() {
        let _ = writeln!(page, "<p>{}</p>", say(phrase::EMPTY));
    }
    let agents = agents(rows);
    for (number, project) in projects.iter().enumerate() {
        let name = project_name(project, language);
        let number = number + 1;
        let _ = writeln!(
            page,
            "<section id=\"project-{number}\" aria-labelledby=\"name-{number}\">\n<h2 id=\"name-{number}\" dir=\"auto\">{name}</h2>"
        );
        days(&mut page, project, &agents, options);
        page.push_str("</section>\n");
    }
    page.push_str("</main>\n");
    pages::end(page)
}

fn project_name(project: &Project<'_>, language: Language) -> String {
    let name = project.name.unwrap_or_else(|| language.say(phrase::NO_PROJECT));
    html(&printable(name))
}

/// Returns the transcripts of subagents, by the name of the session that they belong to.
fn agents<'r>(rows: &[&'r Row]) -> HashMap<&'r str, Vec<&'r Row>> {
    let parents = Parents::of(rows);
    let mut agents: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in rows {
        if let Some(parent) = parents.of_row(row) {
            agents.entry(parent.name.as_str()).or_default().push(row);
        }
    }
    agents
        .values_mut()
        .for_each(|rows| rows.sort_by_key(|row| (row.summary.totals.start, &row.name)));
    agents
}

/// Writes the sessions of a project by day, the newest first.
fn days(
    page: &mut String,
    project: &Project<'_>,
    agents: &HashMap<&str, Vec<&Row>>,
    options: &ShowOptions,
) {
    let mut day = None;
    let mut seen = HashSet::new();
    for row in project.rows.iter().rev().filter(|row| seen.insert(&row.name)) {
        let own = pages::day(row.summary.totals.start, options);
        if day.as_ref() != Some(&own) {
            if day.is_some() {
                page.push_str("</ul>\n");
            }
            let _ = writeln!(page, "<h3>{own}</h3>\n<ul class=\"sessions\">");
            day = Some(own);
        }
        let agents = agents.get(row.name.as_str()).map_or(&[][..], Vec::as_slice);
        session(page, row, agents, options);
    }
    if day.is_some() {
        page.push_str("</ul>\n");
    }
}

/// Writes a session.
fn session(page: &mut String, row: &Row, agents: &[&Row], options: &ShowOptions) {
    let language = options.language;
    let Summary { turns, totals, tools, outcome, .. } = &row.summary;
    let title = pages::title(row);
    let model = row.summary.model().map(str::to_owned);
    let name = row.summary.program.as_deref().map(program);
    let time = totals.start.map(|time| when(time, &options.zone));
    let time = time.and_then(|time| time.split_once(' ').map(|(_, clock)| clock.to_owned()));
    let mut facts: Vec<String> = time.into_iter().chain(name).chain(model).collect();
    facts.push(language.count(*turns, noun::TURN));
    facts.extend(totals.facts(options));
    let facts = html(&printable(&facts.join(" · ")));
    let mut tools: Vec<_> = tools.iter().collect();
    tools.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let more = tools.len().saturating_sub(TOOLS);
    let tools = tools.into_iter().take(TOOLS);
    let tools = tools.map(|(name, count)| format!("{name} {}", grouped(*count)));
    let mut tools = html(&printable(&tools.collect::<Vec<_>>().join(", ")));
    if more > 0 {
        let _ = write!(tools, " +{more}");
    }
    let (class, words) = outcome_words(*outcome, language);
    let file = name::file(&row.name, 1);
    let _ = writeln!(
        page,
        "<li>\n<p class=\"title\"><a href=\"{file}\" dir=\"auto\">{title}</a></p>\n{}<p class=\"facts\">{facts} · <span class=\"{class}\">{words}</span></p>",
        spark(&row.summary.context, language)
    );
    if !tools.is_empty() {
        let _ = writeln!(page, "<p class=\"tools\">{tools}</p>");
    }
    if !agents.is_empty() {
        let count = language.count(agents.len() as u64, noun::SUBAGENT);
        let _ = writeln!(page, "<details>\n<summary>{count}</summary>\n<ul>");
        for own in agents {
            let (file, title) = (name::file(&own.name, 1), pages::title(own));
            let _ = writeln!(page, "<li><a href=\"{file}\" dir=\"auto\">{title}</a></li>");
        }
        page.push_str("</ul>\n</details>\n");
    }
    page.push_str("</li>\n");
}

/// Returns the class and the words for an outcome.
fn outcome_words(outcome: Outcome, language: Language) -> (&'static str, &'static str) {
    let (class, phrase) = match outcome {
        Outcome::NoReply => ("unfinished", phrase::NO_REPLY),
        Outcome::Completed => ("completed", phrase::ENDED),
        Outcome::CutOff => ("unfinished", phrase::CUT_OFF),
        Outcome::Interrupted => ("unfinished", phrase::INTERRUPTED),
        Outcome::Failed => ("broken", phrase::FAILED),
        Outcome::OpenCall => ("unfinished", phrase::OPEN_CALL),
    };
    (class, language.say(phrase))
}

/// Draws the size of the context over the requests.
fn spark(context: &[u64], language: Language) -> String {
    const WIDTH: u64 = 96;
    const HEIGHT: u64 = 24;
    let most = context.iter().copied().max().unwrap_or(0).max(1);
    if context.len() < 2 {
        return String::new();
    }
    let last = context.len() as u64 - 1;
    let point = |(index, tokens): (u64, &u64)| {
        let y = HEIGHT - 1 - tokens.saturating_mul(HEIGHT - 2) / most;
        format!("{} {y}", index * WIDTH / last)
    };
    let path = (0..).zip(context).map(point).collect::<Vec<_>>().join("L");
    let words = language.with(phrase::CONTEXT, &[&grouped(most)]);
    format!(
        "<svg class=\"spark\" role=\"img\" aria-label=\"{words}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\"><path class=\"area\" d=\"M0 {HEIGHT}L{path}L{WIDTH} {HEIGHT}Z\"/><path class=\"size\" d=\"M{path}\"/></svg>\n"
    )
}
