//! `claw-compact`: plans a compaction, gets a summary from one of several sources, checks it and applies it.

use crate::ladder::{AcceptedSummary, Ladder, listed};
use crate::run::{CompactRun, outcome_of};
use anyhow::Context;
use clawutils::cli::log::StageOutcome;
use clawutils::cli::{Log, Output, messages, require_meta};
use clawutils::compact::call_budget::CallBudget;
use clawutils::compact::request::SummaryPrompt;
use clawutils::compact::{CutPlan, MadeSummary, SmallestRequest, Strategy, Task};
use clawutils::cost::for_cost;
use clawutils::estimate::{Budget, Request};
use clawutils::exit::{self, Error, Exit, fail};
use clawutils::fault::Fault;
use clawutils::messages::{self as msg, Message};
use clawutils::record::content::Role;
use clawutils::truncate::{MAX_FRACTION, TruncateOptions, truncate};
use std::sync::Arc;

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
        if !self.fault().is_in_messages() {
            return fail(Exit::NoGain, "nothing changed: a shorter request would be refused too");
        }
        let mut task = self.task(&messages);
        task.limits = self.limits(&task)?;
        log.unused_count(task.gauge.unused());
        let planned = task.plan();
        let Some(planned) = self.or_last_resort(&mut task, planned, None) else {
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

    /// Returns the plan that replaces `planned` if that is `None` or leaves no room for a summary, and without a compaction
    /// the request fails: it exceeds the window less the answer, or was refused because of its tokens. The replacement only
    /// fits the window, and the target of `task` becomes its limit; see [`Task::plan_within`]. `at` is the place of the cut,
    /// if that is given.
    pub(crate) fn or_last_resort(
        &self,
        task: &mut Task<'_, '_>,
        planned: Option<CutPlan>,
        at: Option<usize>,
    ) -> Option<CutPlan> {
        let budget = self.budget.filter(|budget| self.must_shrink(task, *budget));
        let Some(budget) = budget.filter(|_| !planned.as_ref().is_some_and(|it| task.has_room(it)))
        else {
            return planned;
        };
        match task.plan_within(&[budget.prompt(), budget.without_margin()], at) {
            Some((replacement, relaxed)) => {
                *task = relaxed;
                Some(replacement)
            }
            None => planned,
        }
    }

    /// Returns true if the request fails because of its tokens unless the old part is replaced. Before a refusal, shorter
    /// results are tried first if they are enough, because they do not fill the window. After one, that was tried.
    fn must_shrink(&self, task: &Task<'_, '_>, budget: Budget) -> bool {
        if self.args.classic || self.args.for_cost || self.fault() != Fault::Tokens {
            return false;
        }
        let tokens = task.tokens(task.messages);
        match self.refused {
            Some(_) => tokens > budget.target(),
            None => tokens > budget.without_margin() && !fits_with_shorter_results(task, budget),
        }
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
            None => Error::new(Exit::NoGain, self.nothing_to_gain(task)),
        }
    }

    fn nothing_to_gain(&self, task: &Task<'_, '_>) -> String {
        let tokens = task.tokens(task.messages);
        let count = task.messages.len();
        let exceeded = match (self.budget, task.target) {
            (Some(budget), _) if self.must_shrink(task, budget) => {
                let Budget { window, output, .. } = budget;
                format!("the window of {window} tokens less {output} for the answer")
            }
            (_, Some(target)) if tokens > target => format!("its budget of {target} tokens"),
            _ => return format!("nothing to gain: {count} messages, {tokens} tokens"),
        };
        format!(
            "nothing to gain: wherever the conversation ({count} messages, {tokens} tokens) is cut, the request exceeds {exceeded}{}",
            largest(task)
        )
    }

    pub(crate) fn write(&self, task: &Task<'_, '_>, made: &AcceptedSummary) -> anyhow::Result<()> {
        if !self.args.record {
            return write_messages(&task.apply(&made.planned, &made.reply.text)).map(|_| ());
        }
        let record = record(task, made, None)?;
        let record = if self.args.for_cost { for_cost(&record) } else { record };
        Output::lines([record]).map(drop)
    }
}

/// Returns true if `claw-truncate` makes the request fit.
fn fits_with_shorter_results(task: &Task<'_, '_>, budget: Budget) -> bool {
    let Task { system, tools, model, gauge, .. } = *task;
    let beside = Request { messages: &[], system, tools, model };
    let options = TruncateOptions::new(budget.window, MAX_FRACTION, budget.prompt());
    truncate(&mut task.messages.to_vec(), beside, gauge, options).after <= budget.prompt()
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

pub(crate) fn write_messages(messages: &[Message<'_>]) -> anyhow::Result<Exit> {
    let mut out = Output::open();
    msg::write(messages, &mut out).context("cannot write '<stdout>'")?;
    out.finish()?;
    Ok(Exit::Done)
}
