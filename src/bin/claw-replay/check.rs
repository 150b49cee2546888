//! check: checks that transcripts are sound, can be sent and fit the window.

use crate::report::{Case, Outcome, Report, counted};
use crate::run::{Mode, RunArgs};
use crate::transcript::Transcript;
use clawutils::estimate::{self, Budget, Model, Weight};
use clawutils::exit::{Error, Exit};
use clawutils::finding::rules::{self, Rule};
use clawutils::finding::{Findings, Severity};
use clawutils::input::line::LineObject;
use clawutils::json::write::Members;
use clawutils::lint::{self, Inspection};
use clawutils::usage::Calls;
use std::collections::HashSet;

/// The maximum number of findings that a report lists.
const MAX_FINDINGS: usize = 100;

/// The options of `claw-replay check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// Also check that the messages fit this context window, in tokens; separate several with commas
    #[arg(long, value_name = "TOKENS", value_delimiter = ',')]
    pub window: Vec<u64>,
    /// Model to estimate tokens for (default: the one that the newest reply names)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The options that check, guard and call share.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The mode of `claw-replay check`.
#[derive(Default)]
pub struct Check {
    budgets: Vec<Budget>,
    model: Option<String>,
}

impl CheckArgs {
    /// Returns the mode.
    ///
    /// # Errors
    /// Fails with 78 if a window has no room for the prompt.
    pub fn mode(&self) -> anyhow::Result<Check> {
        let mut windows = self.window.clone();
        let mut known = HashSet::new();
        windows.retain(|window| known.insert(*window));
        let budget = |window| Budget::new(window, None, None);
        let budgets = windows.into_iter().map(budget).collect::<Result<_, _>>();
        let budgets = budgets.map_err(|why| Error::new(Exit::Config, why))?;
        Ok(Check { budgets, model: self.model.clone() })
    }
}

impl Mode for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn options(&self) -> String {
        let windows = self.budgets.iter().map(|budget| budget.window).collect::<Vec<_>>();
        format!("{windows:?} {:?}", self.model)
    }

    fn run(&self, transcript: &Transcript) -> anyhow::Result<Report> {
        let (mut counts, mut weights) = (Counts::default(), Vec::new());
        let name = transcript.model(self.model.as_deref())?;
        let model = name.as_deref().map(Model::named);
        let Inspection { findings, outlines } = lint::inspect(
            transcript.input.clone(),
            &mut |record| counts.take(record),
            &mut |message| weights.push(Weight::of(message, model)),
        )?;
        let tokens = estimate::outlined(&outlines, &weights, model);
        let is_refused = |rule: &Rule| *rule == rules::REFUSED;
        let mut cases = vec![
            case("sound", &findings, |rule| !is_refused(rule)),
            case("sendable", &findings, is_refused),
        ];
        cases.extend(self.budgets.iter().map(|budget| window_case(tokens, *budget)));
        let numbers = counts.add_to(Members::new(), outlines.len(), tokens);
        let numbers = numbers.number("findings", findings.count(|_| true));
        let listed = findings.iter().take(MAX_FINDINGS);
        let numbers = numbers.objects("first_findings", listed, |members, finding| {
            finding.add_to(members).string("message", &finding.message)
        });
        Ok(Report::new(self.name(), &transcript.name, cases, numbers))
    }
}

/// Returns the case `name` for the findings whose rule fits. It fails if one of them is at least a warning.
fn case(name: &str, findings: &Findings, fits: impl Fn(&Rule) -> bool) -> Case {
    let is_severe = |rule: &Rule| fits(rule) && rule.severity >= Severity::Warning;
    let Some(first) = findings.iter().find(|found| is_severe(found.rule)) else {
        let found = match findings.count(fits) {
            0 => "no findings".to_owned(),
            count => counted(count, "finding"),
        };
        return Case::new(name, Outcome::Passed, found);
    };
    let more = findings.count(is_severe) - 1;
    let mut message = format!("{}: {}", first.rule.name, first.message);
    if more > 0 {
        message.push_str(&format!("; {more} more"));
    }
    Case { line: first.place.line, ..Case::new(name, Outcome::Failed, message) }
}

/// Returns the case of one window.
fn window_case(tokens: u64, budget: Budget) -> Case {
    let most = budget.prompt();
    let outcome = if tokens <= most { Outcome::Passed } else { Outcome::Failed };
    let message = format!("{tokens} tokens, budget {most}");
    Case::new(format!("window {}", budget.window), outcome, message)
}

/// Counts over the records of a transcript.
#[derive(Default)]
struct Counts {
    records: u64,
    calls: u64,
    compactions: u64,
    usage: Calls,
}

impl Counts {
    fn take(&mut self, record: &LineObject<'_>) {
        self.records += 1;
        match record.object.string("type").as_deref() {
            Some("tool_use") => self.calls += 1,
            Some("compaction") => self.compactions += 1,
            _ => {}
        }
        self.usage.take(&record.object, &record.place);
    }

    fn add_to(&self, members: Members, messages: usize, tokens: u64) -> Members {
        members
            .number("records", self.records)
            .number("messages", messages)
            .number("tokens", tokens)
            .number("calls", self.calls)
            .number("compactions", self.compactions)
            .object("usage", |usage| {
                let usage = usage.number("calls", self.usage.each().count());
                self.usage.total().add_to(usage)
            })
    }
}
