//! The facts about a session that the index and the statistics show.

use super::parts::Parts;
use crate::json::write::{Members, list};
use crate::json::{self, Object};
use crate::show::chart::Chart;
use crate::show::outcome::Outcome;
use crate::show::totals::Totals;
use crate::show::walk::Reading;
use crate::show::{Item, ShowNotes, ShownEntry};
use crate::usage::Counts;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// The number of points of a sparkline.
const POINTS: usize = 32;
/// The maximum number of different tools that are kept, and the length limit of their names.
const TOOLS: usize = 64;
const LONGEST: usize = 80;

/// The facts about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The id.
    pub id: String,
    /// The id of the subagent whose transcript it is.
    pub agent: Option<String>,
    /// The id of the session that the subagent or the fork belongs to.
    pub parent: Option<String>,
    /// The title; empty if the session has none.
    pub title: String,
    /// The dialect of the program that wrote it, if another program did.
    pub program: Option<String>,
    /// The name of the directory in which that program ran, and a digest of its path.
    pub project: Option<[String; 2]>,
    /// The number of turns.
    pub turns: u64,
    /// The number of pages.
    pub parts: usize,
    /// The number of replies of each model.
    pub models: BTreeMap<String, u64>,
    /// The number of calls of each tool.
    pub tools: BTreeMap<String, u64>,
    /// The times, tokens and calls.
    pub totals: Totals,
    /// How it ended.
    pub outcome: Outcome,
    /// The tokens of the context over the requests.
    pub context: Vec<u64>,
}

/// The outcomes, with the names that the state has for them.
pub const OUTCOMES: [(Outcome, &str); 6] = [
    (Outcome::NoReply, "no-reply"),
    (Outcome::Completed, "completed"),
    (Outcome::CutOff, "cut-off"),
    (Outcome::Interrupted, "interrupted"),
    (Outcome::Failed, "failed"),
    (Outcome::OpenCall, "open-call"),
];

impl Summary {
    /// Returns the model that wrote the most replies.
    pub fn model(&self) -> Option<&str> {
        self.models.iter().max_by_key(|(_, count)| **count).map(|(model, _)| model.as_str())
    }

    /// Returns the facts as members of an object.
    pub fn to_members(&self) -> Members {
        let counts = |counts: &BTreeMap<String, u64>| {
            let rows = counts.iter();
            rows.fold(Members::new(), |all, (name, count)| all.named(name, &count.to_string()))
                .into_json()
        };
        let Totals { start, end, counts: tokens, cost, unpriced, replies, calls, failures } =
            self.totals;
        let outcome = OUTCOMES.iter().find(|(own, _)| *own == self.outcome);
        let context = list(self.context.iter().map(u64::to_string));
        let time = |time: Option<i64>| time.map(|time| time.to_string());
        let [project, key] = self.project.clone().unwrap_or_default();
        Members::new()
            .string("id", &self.id)
            .optional(Members::string, "agent", self.agent.as_deref())
            .optional(Members::string, "parent", self.parent.as_deref())
            .string("title", &self.title)
            .optional(Members::string, "program", self.program.as_deref())
            .string("project", &project)
            .string("project_key", &key)
            .number("turns", self.turns)
            .number("parts", self.parts)
            .raw("models", &counts(&self.models))
            .raw("tools", &counts(&self.tools))
            .optional(Members::raw, "start", time(start).as_deref())
            .optional(Members::raw, "end", time(end).as_deref())
            .number("input", tokens.input)
            .number("cache_read", tokens.cache_read)
            .number("cache_write", tokens.cache_write)
            .number("output", tokens.output)
            .decimal("cost", (cost * 1e6).round() / 1e6)
            .number("unpriced", unpriced)
            .number("replies", replies)
            .number("calls", calls)
            .number("failures", failures)
            .string("outcome", outcome.map_or("", |(_, name)| name))
            .raw("context", &context)
    }

    /// Reads the facts from an object.
    pub fn read(object: &Object<'_>) -> Option<Summary> {
        let text = |name: &str| object.string(name).map(Cow::into_owned);
        let number = |name: &str| object.number(name).unwrap_or(0);
        let time = |name: &str| object.get(name)?.parse::<i64>().ok();
        let counts = |name: &str| {
            let inner = Object::parse(object.get(name)?).ok()?;
            let rows = inner
                .members()
                .filter_map(|own| Some((own.name().into_owned(), own.value.parse::<u64>().ok()?)));
            Some(rows.collect::<BTreeMap<_, _>>())
        };
        let outcome = text("outcome")?;
        let context = json::elements(object.get("context")?)?;
        let project = [text("project")?, text("project_key")?];
        Some(Summary {
            id: text("id")?,
            agent: text("agent"),
            parent: text("parent"),
            title: text("title")?,
            program: text("program"),
            project: Some(project).filter(|[name, _]| !name.is_empty()),
            turns: number("turns"),
            parts: usize::try_from(number("parts")).ok()?,
            models: counts("models")?,
            tools: counts("tools")?,
            totals: Totals {
                start: time("start"),
                end: time("end"),
                counts: Counts {
                    input: number("input"),
                    cache_read: number("cache_read"),
                    cache_write: number("cache_write"),
                    cache_write_1h: number("cache_write_1h"),
                    output: number("output"),
                },
                cost: object.get("cost").and_then(|cost| cost.parse().ok()).unwrap_or_default(),
                unpriced: number("unpriced"),
                replies: number("replies"),
                calls: number("calls"),
                failures: number("failures"),
            },
            outcome: OUTCOMES.iter().find(|(_, name)| *name == outcome)?.0,
            context: context.iter().filter_map(|it| it.parse().ok()).collect(),
        })
    }
}

/// Collects the facts about a session from its entries.
#[derive(Debug, Default)]
pub struct Collector {
    /// The chart, with the prompts and the totals.
    pub chart: Chart,
    /// The division into pages.
    parts: Parts,
    /// The page of each turn.
    pub pages: Vec<usize>,
    models: BTreeMap<String, u64>,
    tools: BTreeMap<String, u64>,
    outcome: Outcome,
}

impl Collector {
    /// Reads the facts, and returns the diagnostics, too.
    ///
    /// # Errors
    /// If the source cannot be read.
    pub fn of(reading: &Reading<'_>) -> anyhow::Result<(Collector, ShowNotes)> {
        let mut collector = Collector::default();
        let notes = reading.visit(&mut |entry| collector.take(entry))?;
        Ok((collector, notes))
    }

    /// Adds the next entry.
    pub fn take(&mut self, entry: &ShownEntry) {
        self.chart.take(entry);
        self.parts.take(entry);
        self.outcome.take(entry);
        match &entry.item {
            Item::Turn(_) => self.pages.push(self.parts.number()),
            Item::Reply(reply) => {
                reply.model.iter().for_each(|model| count(&mut self.models, model));
            }
            Item::Call { name, .. } => count(&mut self.tools, name),
            _ => {}
        }
    }

    /// Returns the number of pages.
    pub fn parts(&self) -> usize {
        self.parts.number()
    }

    /// Returns the facts. `name` is the id of a session without one. `digest` makes a digest of a path.
    pub fn summary(&self, name: &str, digest: impl Fn(&str) -> String) -> Summary {
        let session = self.chart.session.clone().unwrap_or_default();
        let project = session.directory.as_deref().and_then(|directory| {
            let name = Path::new(directory).file_name()?.to_string_lossy().into_owned();
            Some([name, digest(directory)])
        });
        let id = Some(session.id.clone()).filter(|id| !id.is_empty() && !id.starts_with('@'));
        let mut totals = self.chart.totals();
        totals.start = totals.start.or(session.created);
        totals.end = totals.end.or(totals.start);
        Summary {
            id: id.unwrap_or_else(|| name.to_owned()),
            agent: session.agent,
            parent: session.parent,
            title: self.chart.title().unwrap_or_default().to_owned(),
            program: session.dialect,
            project,
            turns: self.chart.prompts.len() as u64,
            parts: self.parts(),
            models: self.models.clone(),
            tools: self.tools.clone(),
            totals,
            outcome: self.outcome,
            context: context(&self.chart),
        }
    }
}

/// Counts a name. Names that are too many or too long are not kept, so that a hostile session cannot fill the memory.
fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    let end = name.char_indices().nth(LONGEST).map_or(name.len(), |(at, _)| at);
    if let Some(count) = counts.get_mut(&name[..end]) {
        *count += 1;
    } else if counts.len() < TOOLS {
        counts.insert(name[..end].to_owned(), 1);
    }
}

/// Returns the tokens of the requests; of neighbours that share a point, the most.
fn context(chart: &Chart) -> Vec<u64> {
    let tokens: Vec<u64> = chart.requests().map(|point| point.tokens).collect();
    let share = tokens.len().div_ceil(POINTS).max(1);
    tokens.chunks(share).filter_map(|tokens| tokens.iter().max().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        let summary = Summary {
            id: "a\"b".into(),
            agent: Some("c".into()),
            title: "題 <b>".into(),
            project: Some(["shop".into(), "d".into()]),
            models: BTreeMap::from([("m".into(), 2), ("n".into(), 3)]),
            tools: BTreeMap::from([("Read".into(), 5)]),
            totals: Totals { start: Some(-5), end: Some(7), calls: 5, ..Totals::default() },
            outcome: Outcome::OpenCall,
            context: vec![1, 20],
            ..Summary::default()
        };
        let json = summary.to_members().into_json();
        assert_eq!(Summary::read(&Object::parse(&json).unwrap()), Some(summary.clone()));
        assert_eq!(summary.model(), Some("n"));
        assert_eq!(Summary::read(&Object::parse("{}").unwrap()), None);
    }

    #[test]
    fn names_are_bounded() {
        let mut counts = BTreeMap::new();
        (0..1000).for_each(|n| count(&mut counts, &format!("{n}{}", "x".repeat(500))));
        assert_eq!(counts.len(), TOOLS);
        assert!(counts.keys().all(|name| name.len() <= LONGEST));
    }
}
