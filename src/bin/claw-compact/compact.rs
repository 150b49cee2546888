//! `claw-compact`: plans a compaction, gets a summary from one of several sources, checks it and applies it.

use crate::ladder::{AcceptedSummary, Ladder, listed};
use anyhow::Context;
use clawutils::cli::budget::{Extras, RequestArgs};
use clawutils::cli::log::StageOutcome;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::{PauseArgs, SourceArgs};
use clawutils::cli::summary::{CommandArgs, SummariserArgs, SummaryModel};
use clawutils::cli::{Log, Output, messages, read_file, require_meta, text};
use clawutils::compact::call_budget::CallBudget;
use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::pieces::Pieces;
use clawutils::compact::request::{self, SummaryPrompt};
use clawutils::compact::{CutPlan, KEEP_USER, MadeSummary, SmallestRequest, Strategy, Task};
use clawutils::cost::for_cost;
use clawutils::cost::policy::kept_for_cost;
use clawutils::estimate::{Budget, Fault, Model, Refused, Request};
use clawutils::exit::{self, Error, Exit, fail};
use clawutils::json::write::Members;
use clawutils::messages::{self as msg, Message};
use clawutils::record::content::Role;
use clawutils::settings::values::seconds;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The options for making a compaction.
#[derive(Clone, Debug, clap::Args)]
pub struct CompactArgs {
    /// Write a compaction record instead of messages
    #[arg(long)]
    pub record: bool,
    /// Write the request for the summary, as messages, without calling a model
    #[arg(long, conflicts_with_all = ["record", "summary", "fallback", "emergency"])]
    pub plan: bool,
    /// Write what would be covered, kept and requested as one JSON object, without calling a model
    #[arg(long, conflicts_with_all = ["record", "plan"])]
    pub show: bool,
    /// Read transcripts and make their missing summaries
    #[arg(long, conflicts_with_all = ["record", "plan", "summary", "fallback", "emergency"])]
    pub retry: bool,
    /// Take the summary from FILE instead of a model
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fallback", "emergency"])]
    pub summary: Option<PathBuf>,
    /// The sources of summaries.
    #[command(flatten)]
    pub sources: SourceArgs,
    /// The models to try before the conversation's own.
    #[command(flatten)]
    pub summarisers: SummariserArgs,
    /// The command that calls the model.
    #[command(flatten)]
    pub call: CommandArgs,
    /// The pause between attempts at a missing summary.
    #[command(flatten)]
    pub pause: PauseArgs,
    /// Use the prompt in FILE instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// Focus the summary on TEXT
    #[arg(long, value_name = "TEXT")]
    pub focus: Option<String>,
    /// Keep at most this many tokens of the user's words verbatim, and at most a quarter of the budget
    #[arg(long, value_name = "TOKENS", default_value_t = KEEP_USER)]
    pub keep_user: u64,
    /// Keep the newest messages that together have at least this many tokens, instead of the newest half
    #[arg(long, value_name = "TOKENS", conflicts_with = "classic")]
    pub keep_tokens: Option<u64>,
    /// Cut because that costs less than to go on: keep the newest 20000 tokens or a tenth of the window, and say so in the record
    #[arg(long, conflicts_with_all = ["classic", "keep_tokens"])]
    pub for_cost: bool,
    /// Choose the cut by the number of messages alone, as claw0 does
    #[arg(long)]
    pub classic: bool,
    /// Make at most N calls, over all models; 0 calls no model
    #[arg(long, value_name = "N", default_value = "16")]
    pub max_calls: u32,
    /// Time limit for all calls together, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
}

/// A run of `claw-compact`.
#[derive(Debug)]
pub struct CompactRun<'s> {
    /// The program's own options.
    pub args: &'s CompactArgs,
    /// The options for the model and its provider.
    pub model: &'s ModelArgs,
    /// The budget, if the context window is known.
    pub budget: Option<Budget>,
    /// The refusal of the request, from `--failure`.
    pub refused: Option<Refused>,
    /// The options for the system prompt and the tools.
    pub request: &'s RequestArgs,
    /// The system prompt and the tools.
    pub extras: Extras,
    /// The conversation's model.
    pub known_model: Option<Model<'s>>,
}

impl CompactRun<'_> {
    /// Compacts the messages of `input`.
    ///
    /// # Errors
    /// Fails with status 3 if the smallest possible request fills the window, 5 if there is nothing to gain or the
    /// summary does not make the request fit, 65 if the input is invalid, 69 if the model's summary is not usable, and with the status of the command that calls
    /// the model if that fails. Nothing is written after an error.
    pub fn run(&self, input: &[(Arc<str>, Vec<u8>)], log: Log) -> anyhow::Result<Exit> {
        let progress = log.wait_for("looking for a cut");
        let messages = messages(input)?;
        if self.args.record {
            require_meta(&messages)?;
        }
        if self.fault() == Fault::Other {
            return fail(Exit::NoGain, "nothing changed: a shorter request would be refused too");
        }
        let mut task = self.task(&messages);
        task.limits = self.limits(&task)?;
        log.unused_count(task.gauge.unused());
        let Some(planned) = task.plan() else {
            let tokens = task.tokens(&messages);
            let why = self.why_not(&task);
            return Err(why.with(StageOutcome::Skipped.members(tokens, tokens)).into());
        };
        let prompt = self.prompt()?;
        let prompt = SummaryPrompt { text: &prompt, focus: self.args.focus.as_deref() };
        if self.args.plan {
            let summariser =
                self.models()?.into_iter().find(|it| !it.by_server).unwrap_or_else(|| self.main());
            let pieces = self.pieces(&summariser, &task, &planned, prompt)?;
            let first = pieces.iter().next().map(|piece| piece.text.as_str());
            let request = prompt.request(planned.earlier.as_deref(), first.unwrap_or_default());
            return write_messages(&[Message::text(Role::User, &request)]);
        }
        if self.args.show {
            return self.show(&task, &planned, prompt);
        }
        let call_budget = CallBudget::new(self.args.max_calls, self.args.deadline);
        let ladder = Ladder { run: self, call_budget: &call_budget, prompt, log };
        let mut sources = self.sources(self.is_too_long(&task, &planned))?;
        sources.retain(|source| source.is_available(&messages));
        let made = ladder.try_each(&sources, &task, &planned);
        drop(progress);
        let made = made.map_err(|error| with_outcome(error, planned.before, &call_budget))?;
        self.write(&task, &made)?;
        report_applied(log, &made, &call_budget);
        Ok(Exit::Done)
    }

    pub(crate) fn task<'r, 'a>(&'r self, messages: &'r [Message<'a>]) -> Task<'r, 'a> {
        let (system, tools) = (self.extras.system.as_deref(), self.extras.tools.as_deref());
        let model = self.known_model;
        let request = Request { messages, system, tools, model };
        let rule = match self.args.keep_tokens {
            Some(tokens) => CutRule::Tail(tokens),
            None if self.args.for_cost => {
                let window = self.budget.map_or(u64::MAX, |budget| budget.window);
                CutRule::Tail(kept_for_cost(window))
            }
            None if self.args.classic => CutRule::Classic,
            // Any message may contain the block, so as many as possible are covered.
            None if self.fault() == Fault::Block => CutRule::Fifth,
            None => CutRule::Half,
        };
        Task {
            messages,
            system,
            tools,
            model,
            gauge: Refused::gauge(self.refused.as_ref(), request),
            target: self.budget.map(|budget| budget.target()),
            keep_user: self.args.keep_user,
            rule,
            limits: CutLimits::default(),
        }
    }

    fn fault(&self) -> Fault {
        self.refused.as_ref().map_or(Fault::Tokens, |refused| refused.fault)
    }

    /// Returns the limits on the cut after a refusal because of bytes or of a block.
    fn limits(&self, task: &Task<'_, '_>) -> anyhow::Result<CutLimits> {
        let bytes = match self.fault() {
            Fault::Bytes => {
                let body = self.model.refused_body(self.refused.as_ref())?;
                Some(body.target(task.bytes(task.messages)))
            }
            _ => None,
        };
        let places = self.refused.iter().flat_map(|refused| &refused.places);
        let covers = places.map(|place| place.message).max();
        Ok(CutLimits { bytes, covers: covers.filter(|_| self.fault() == Fault::Block) })
    }

    /// Returns the reason why no cut is possible: the smallest possible request fills the window, or there is nothing to
    /// gain.
    fn why_not(&self, task: &Task<'_, '_>) -> Error {
        let SmallestRequest { system, tools, kept } = task.smallest();
        let is_full = |budget: &Budget| {
            self.fault() == Fault::Tokens && system + tools + kept >= budget.window
        };
        match self.budget.filter(is_full) {
            Some(Budget { window, .. }) => Error::new(
                Exit::Overflow,
                format!(
                    "the request cannot fit: the system prompt ({system} tokens), the tools ({tools} tokens) and the newest messages ({kept} tokens) alone fill the window of {window} tokens{}",
                    largest(task)
                ),
            ),
            None => Error::new(Exit::NoGain, nothing_to_gain(task)),
        }
    }

    /// Returns true if the request was refused, or if its estimate exceeds the budget.
    pub(crate) fn is_too_long(&self, task: &Task<'_, '_>, planned: &CutPlan) -> bool {
        self.refused.is_some() || task.target.is_some_and(|target| planned.before > target)
    }

    pub(crate) fn prompt(&self) -> anyhow::Result<String> {
        self.args.prompt.as_ref().map_or_else(|| Ok(request::PROMPT.to_owned()), |p| read_text(p))
    }

    /// Divides the covered part into pieces for a model, one for each call.
    pub(crate) fn pieces(
        &self,
        summariser: &SummaryModel,
        task: &Task<'_, '_>,
        planned: &CutPlan,
        prompt: SummaryPrompt<'_>,
    ) -> anyhow::Result<Pieces> {
        let calls = self.args.max_calls.max(1) as usize;
        let limits = summariser.limits(task.gauge, task.summary_tokens(), calls);
        let covered = &task.messages[planned.from..planned.at];
        match Pieces::new(covered, prompt, planned.earlier.as_deref(), limits) {
            Some(pieces) => Ok(pieces),
            None => fail(
                Exit::NoGain,
                "even the shortest summary request does not fit the context window",
            ),
        }
    }

    pub(crate) fn write(&self, task: &Task<'_, '_>, made: &AcceptedSummary) -> anyhow::Result<()> {
        if !self.args.record {
            return write_messages(&task.apply(&made.planned, &made.reply.text)).map(|_| ());
        }
        let mut out = Output::open();
        let record = record(task, made, None)?;
        let record = if self.args.for_cost { for_cost(&record) } else { record };
        writeln!(out, "{record}").context("cannot write '<stdout>'")?;
        out.finish()
    }
}

/// Returns the compaction record of a summary.
pub(crate) fn record(
    task: &Task<'_, '_>,
    made: &AcceptedSummary,
    retry_of: Option<&str>,
) -> anyhow::Result<String> {
    let Some(first_kept) = task.first_kept(&made.planned) else {
        return fail(
            Exit::Data,
            "cannot write a compaction record: none of the kept messages comes from a transcript",
        );
    };
    let source = MadeSummary {
        text: &made.reply.text,
        strategy: made.strategy,
        model: made.reply.model.as_deref(),
        usage: made.reply.usage.as_deref(),
        retry_of,
        scale: task.gauge.scale(),
    };
    Ok(made.planned.record(&source, &first_kept, made.after))
}

/// Returns the error with the outcome of the run, for `--log json`. The outcome is `refused` if the last summary was
/// rejected, else `failed`.
pub(crate) fn with_outcome(
    error: anyhow::Error,
    before: u64,
    call_budget: &CallBudget,
) -> anyhow::Error {
    let members = outcome_of(&error).number("before", before).number("after", before);
    let members = members.with(|it| call_budget.add_to(it));
    Error::new(exit::status(&error), exit::text(&error)).with(members).into()
}

/// Returns the outcome that an error carries, else `failed`.
pub(crate) fn outcome_of(error: &anyhow::Error) -> Members {
    let own = error.downcast_ref::<Error>().map(Error::members).filter(|own| !own.is_empty());
    own.cloned().unwrap_or_else(|| StageOutcome::Failed.member())
}

pub(crate) fn report_applied(log: Log, made: &AcceptedSummary, call_budget: &CallBudget) {
    let (at, before, after) = (made.planned.at, made.planned.before, made.after);
    let (calls, seconds) = (call_budget.calls(), call_budget.seconds());
    let source = &made.source;
    let calls_made = if calls == 1 { "call" } else { "calls" };
    let cost = format!("{calls} {calls_made}, {seconds:.1} s; source: {source}");
    let messages = if at == 1 { "message" } else { "messages" };
    let done = match made.strategy {
        Strategy::Stub => format!("left out {at} {messages} without a summary"),
        _ => format!("summarised {at} {messages}"),
    };
    let next = if made.strategy == Strategy::Stub { "; claw-retry makes the summary" } else { "" };
    if !made.lost.is_empty() {
        log.note(&format!("the summary lacks {}", listed(&made.lost)));
    }
    log.outcome(
        &format!("{done}: {before} -> {after} tokens ({cost}){next}"),
        &StageOutcome::Applied
            .members(before, after)
            .string("strategy", made.strategy.name())
            .string("source", source)
            .with(|it| call_budget.add_to(it))
            .strings("lost", made.lost.names()),
    );
}

fn nothing_to_gain(task: &Task<'_, '_>) -> String {
    let tokens = task.tokens(task.messages);
    let count = task.messages.len();
    match task.target {
        Some(target) if tokens > target => format!(
            "nothing to gain: wherever the conversation ({count} messages, {tokens} tokens) is cut, the request exceeds its budget of {target} tokens{}",
            largest(task)
        ),
        _ => format!("nothing to gain: {count} messages, {tokens} tokens"),
    }
}

/// Describes the largest message if it alone takes at least half of the budget. Otherwise returns an empty string.
fn largest(task: &Task<'_, '_>) -> String {
    let sizes = task.messages.iter().map(|message| task.gauge.message(message));
    let Some((at, size)) = sizes.enumerate().max_by_key(|(_, size)| *size) else {
        return String::new();
    };
    let message = &task.messages[at];
    if task.target.is_none_or(|target| size < target / 2) {
        return String::new();
    }
    let help = match message.results().next() {
        Some(_) => "; shorten its results with claw-truncate",
        None => "",
    };
    let id = message.meta.as_ref().map(|meta| format!(" (record '{}')", &*meta.id));
    format!("; message {}{} alone has {size} tokens{help}", at + 1, id.unwrap_or_default())
}

pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    Ok(text(&path.display().to_string(), &read_file(path)?)?.to_owned())
}

pub(crate) fn write_messages(messages: &[Message<'_>]) -> anyhow::Result<Exit> {
    let mut out = Output::open();
    msg::write(messages, &mut out).context("cannot write '<stdout>'")?;
    out.finish()?;
    Ok(Exit::Done)
}
