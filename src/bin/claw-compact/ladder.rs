//! Tries the sources of summaries in turn, until one gives a usable summary.

use crate::run::{CompactRun, outcome_of, read_text};
use crate::server;
use crate::sources::Source;
use clawutils::cli::Log;
use clawutils::cli::log::StageOutcome;
use clawutils::cli::summary::{SummaryModel, Writer};
use clawutils::compact::accept::{self, Rejected, SummaryReply};
use clawutils::compact::call_budget::CallBudget;
use clawutils::compact::cut::CutRule;
use clawutils::compact::identifiers::Used;
use clawutils::compact::request::{self, SummaryPrompt};
use clawutils::compact::{CutPlan, Strategy, Task, local, stub};
use clawutils::exit::{self, Error, Exit, fail};

/// A summary that was accepted.
#[derive(Clone, Debug)]
pub(super) struct AcceptedSummary {
    /// The name of its source.
    pub source: String,
    pub planned: CutPlan,
    pub strategy: Strategy,
    pub reply: SummaryReply,
    /// The size of the request with this summary, in tokens.
    pub after: u64,
    /// Names from the covered messages that the kept messages use, but the summary lacks.
    pub lost: Used,
}

/// An attempt to get a summary from one of several sources, and its limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder<'s> {
    pub run: &'s CompactRun<'s>,
    pub call_budget: &'s CallBudget,
    pub prompt: SummaryPrompt<'s>,
    pub log: Log,
}

impl Ladder<'_> {
    /// Tries the sources in order. Failures are reported, except that of the last source, which is returned.
    pub fn try_each(
        &self,
        sources: &[Source],
        task: &Task<'_, '_>,
        planned: &CutPlan,
    ) -> anyhow::Result<AcceptedSummary> {
        let mut planned = planned.clone();
        for (at, source) in sources.iter().enumerate() {
            let next = sources.get(at + 1);
            match (self.make(source, task, &planned), next) {
                (Ok(Made::Summary(made)), _) => return Ok(*made),
                (Ok(Made::Opaque(own)), Some(next)) => {
                    let (name, next) = (source.name(), next.name());
                    self.log.note(&format!(
                        "only {name} can read its summary; trying {next} for a text beside it"
                    ));
                    planned.own = Some(own);
                }
                (Ok(Made::Opaque(_)), None) => break,
                (Err(error), Some(next)) => self.report_failed(source, next, &error),
                (Err(error), None) => return Err(error),
            }
        }
        fail(Exit::Unavailable, "no source of summaries is left to try")
    }

    fn report_failed(&self, source: &Source, next: &Source, error: &anyhow::Error) {
        let (name, next) = (source.name(), next.name());
        let text = format!("no summary from {name}: {}; trying {next}", exit::text(error));
        self.log.outcome(&text, &outcome_of(error).string("source", name));
    }

    fn make(
        &self,
        source: &Source,
        task: &Task<'_, '_>,
        planned: &CutPlan,
    ) -> anyhow::Result<Made> {
        let without_usage = |text| SummaryReply { text, ..SummaryReply::default() };
        let (strategy, planned, reply) = match source {
            Source::File(path) => {
                (Strategy::File, planned.clone(), without_usage(read_text(path)?))
            }
            Source::Checkpoint => {
                let Some((planned, text)) = task.by_checkpoint() else {
                    let why = "no checkpoint covers enough for the rest to fit";
                    return fail(Exit::NoGain, why);
                };
                (Strategy::Checkpoint, planned, without_usage(text))
            }
            Source::Model(summariser) if summariser.by_server => {
                return self.ask_server(summariser, task, planned);
            }
            Source::Model(summariser) => {
                return self.ask(summariser, task, planned).map(Made::summary);
            }
            Source::Local => {
                let text = local::summary(task, planned);
                (Strategy::Local, planned.clone(), without_usage(text))
            }
            Source::Stub => {
                // Cover all but the newest fifth, so that the request stays small until there is a summary.
                let task = Task { rule: CutRule::Fifth, ..*task };
                let planned = task.plan().unwrap_or_else(|| planned.clone());
                let text = stub::text(&planned);
                (Strategy::Stub, planned, without_usage(text))
            }
        };
        self.accept(source.name(), strategy, task, planned, reply).map(Made::summary)
    }

    /// Asks the server of the conversation's model for its own summary of all covered messages.
    fn ask_server(
        &self,
        summariser: &SummaryModel,
        task: &Task<'_, '_>,
        planned: &CutPlan,
    ) -> anyhow::Result<Made> {
        let (run, covered) = (self.run, &task.messages[..planned.at]);
        let command = run.args.call.command.as_str();
        let made = server::ask(command, summariser, run.request, covered, self.call_budget)?;
        let Some(text) = made.text else {
            accept::accept_opaque(task, planned, &made.own)
                .map_err(|why| rejected(why, Strategy::Provider))?;
            return Ok(Made::Opaque(made.own));
        };
        let reply =
            SummaryReply { text, model: made.model, usage: made.usage, ..SummaryReply::default() };
        let planned = CutPlan { own: Some(made.own), ..planned.clone() };
        self.accept(&summariser.name, Strategy::Provider, task, planned, reply).map(Made::summary)
    }

    /// Asks a model for a summary, and stores whether the attempt succeeded, for `--max-failures`.
    fn ask(
        &self,
        summariser: &SummaryModel,
        task: &Task<'_, '_>,
        planned: &CutPlan,
    ) -> anyhow::Result<AcceptedSummary> {
        self.run.args.summarisers.refuse_failing(summariser)?;
        let command = self.run.args.call.command.as_str();
        let writer = Writer { summariser, command, call_budget: self.call_budget, log: self.log };
        let covered = &task.messages[planned.from..planned.at];
        let limits = summariser.limits(task.gauge, task.summary_tokens(), self.call_budget.left());
        let reply = writer.write(covered, planned.earlier.as_deref(), self.prompt, limits);
        let made = reply.and_then(|reply| {
            self.accept(&summariser.name, Strategy::Llm, task, planned.clone(), reply)
        });
        summariser.note_attempt(made.is_ok(), self.call_budget)?;
        Ok(self.restore_names(&writer, task, made?))
    }

    fn accept(
        &self,
        source: &str,
        strategy: Strategy,
        task: &Task<'_, '_>,
        planned: CutPlan,
        reply: SummaryReply,
    ) -> anyhow::Result<AcceptedSummary> {
        match accept::accept(task, &planned, &reply.text, strategy) {
            Ok(after) => {
                let (covered, kept) = task.messages.split_at(planned.at);
                let lost = Used::find(&covered[planned.from..], kept).lost(&planned, &reply.text);
                Ok(AcceptedSummary {
                    source: source.to_owned(),
                    planned,
                    strategy,
                    reply,
                    after,
                    lost,
                })
            }
            Err(why) => Err(rejected(why, strategy).into()),
        }
    }

    /// If the summary lacks names and another call is possible, asks the model once more for a summary that has them.
    /// The new summary is used only if it lacks fewer names than the first.
    fn restore_names(
        &self,
        writer: &Writer<'_>,
        task: &Task<'_, '_>,
        made: AcceptedSummary,
    ) -> AcceptedSummary {
        let limits =
            writer.summariser.limits(task.gauge, task.summary_tokens(), self.call_budget.left());
        let request = request::restore(&made.reply.text, &made.lost.names(), &made.lost.lines());
        let fits = limits.room.is_none_or(|room| task.gauge.text(&request) + 8 <= room);
        if made.lost.is_empty() || self.call_budget.left() == 0 || !fits {
            return made;
        }
        self.log.note(&format!("the summary lacks {}; asking again", listed(&made.lost)));
        let again = || -> anyhow::Result<AcceptedSummary> {
            let Some(reply) = writer.ask(&request, limits.summary)? else {
                return fail(Exit::NoGain, "the second request does not fit the context window");
            };
            let usage = clawutils::usage::sum(made.reply.usage.as_deref(), reply.usage.as_deref());
            let reply = SummaryReply { usage, ..reply };
            self.accept(&made.source, Strategy::Llm, task, made.planned.clone(), reply)
        };
        match again() {
            Ok(better) if better.lost.len() < made.lost.len() => better,
            Ok(worse) => {
                let reply = SummaryReply { usage: worse.reply.usage, ..made.reply };
                AcceptedSummary { reply, ..made }
            }
            Err(error) => {
                self.log.note(&format!("keeping the first summary: {}", exit::text(&error)));
                made
            }
        }
    }
}

/// What a source gave.
enum Made {
    /// A summary that was accepted.
    Summary(Box<AcceptedSummary>),
    /// A summary that only the provider can read; see [`CutPlan::own`].
    Opaque(Box<str>),
}

impl Made {
    fn summary(made: AcceptedSummary) -> Made {
        Made::Summary(Box::new(made))
    }
}

fn rejected(why: Rejected, strategy: Strategy) -> Error {
    let error = Error::new(why.exit(strategy), format!("summary rejected: {why}"));
    error.with(StageOutcome::Refused.member())
}

/// Describes lost names for a diagnostic: their number, and the first few.
pub(crate) fn listed(lost: &Used) -> String {
    let (names, all) = (lost.names(), lost.len());
    let more = all - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let what = if all == 1 { "name that is" } else { "names that are" };
    format!("{all} {what} used later: {}{more}", names.join(", "))
}
