//! `claw-checkpoint`: checks whether a checkpoint is due, has another program call the model, and reads the reply.

use clawutils::checkpoint::due::{ConversationState, Triggers};
use clawutils::checkpoint::reply::CheckpointReply;
use clawutils::checkpoint::{self, CheckpointPlan, PROMPT};
use clawutils::cli::StageOutcome;
use clawutils::cli::budget::{BudgetArgs, Extras};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::DueArgs;
use clawutils::cli::summary::{CommandArgs, SummariserArgs, SummaryModel, Writer};
use clawutils::cli::{Log, Output, messages, read_file, require_meta, text};
use clawutils::compact::accept::SummaryReply;
use clawutils::compact::call_budget::CallBudget;
use clawutils::compact::request::SummaryPrompt;
use clawutils::compact::summary_tokens;
use clawutils::estimate::{Budget, Gauge, Request};
use clawutils::exit::{self, Exit, fail};
use clawutils::json::write::Members;
use clawutils::record::checkpoint::Checkpoint;
use clawutils::settings::values::seconds;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of calls for one checkpoint.
const MAX_CALLS: u32 = 6;

/// The options for making a checkpoint.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckpointArgs {
    /// Make a checkpoint only if one is due
    #[arg(long)]
    pub if_due: bool,
    /// The options that determine when a checkpoint is due.
    #[command(flatten)]
    pub due: DueArgs,
    /// The models to try before the conversation's own.
    #[command(flatten)]
    pub summarisers: SummariserArgs,
    /// The command that calls the model.
    #[command(flatten)]
    pub call: CommandArgs,
    /// Time limit for all calls together, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
    /// Use the prompt in FILE instead of the built-in one
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
}

/// A run of `claw-checkpoint`.
#[derive(Debug)]
pub struct CheckpointRun<'s> {
    /// The program's own options.
    pub args: &'s CheckpointArgs,
    /// The options for the model and its provider.
    pub model: &'s ModelArgs,
    /// The options for the context window and the tokens to keep free.
    pub budget: &'s BudgetArgs,
}

impl CheckpointRun<'_> {
    /// Makes a checkpoint and writes its record, if one is due or `--if-due` is not given.
    ///
    /// # Errors
    /// Status 5 if there is nothing to cover, or the request cannot be made short enough; 65 for invalid input; 69 if
    /// the reply is unusable; otherwise the status of the program that calls the model. Nothing is written after an
    /// error.
    pub fn run(
        &self,
        input: &[(Arc<str>, Vec<u8>)],
        extras: &Extras,
        log: Log,
    ) -> anyhow::Result<Exit> {
        let _progress = log.wait_for("estimating");
        let messages = messages(input)?;
        require_meta(&messages)?;
        let (system, tools) = (extras.system.as_deref(), extras.tools.as_deref());
        let name = self.model.model();
        let model = name.as_deref().map(|name| self.model.known(name)).transpose()?;
        let request = Request { messages: &messages, system, tools, model };
        let gauge = Gauge::new(request, None);
        log.unused_count(gauge.unused());
        let tokens = gauge.tokens(request);
        let budget = self.budget.budget(self.model, None)?;
        let state = ConversationState::of(&messages, tokens, budget.map(|budget| budget.window));
        let plan = checkpoint::plan(&messages);
        let why_not = self.why_not(state, plan.as_ref());
        if let Some(why) = why_not.filter(|_| self.args.if_due) {
            log.outcome(&format!("skipped: {why}"), &StageOutcome::Skipped.member());
            return Ok(Exit::Done);
        }
        let Some(plan) = plan else {
            return fail(Exit::NoGain, "nothing to cover: no message has been answered");
        };
        let call_budget = CallBudget::new(MAX_CALLS, self.args.deadline);
        let reply = self.ask(&plan, (gauge, budget), &call_budget, log)?;
        let Some(content) = CheckpointReply::read(&reply.text) else {
            return fail(Exit::Unavailable, "the checkpoint was rejected: its summary is blank");
        };
        let generated_by = reply.model.or_else(|| Some(self.args.call.command.clone()));
        let made = plan.checkpoint(content, messages.len(), tokens);
        write(&Checkpoint { generated_by, usage: reply.usage, ..made })?;
        let (count, calls, seconds) = (messages.len(), call_budget.calls(), call_budget.seconds());
        let cost = format!("{calls} {}, {seconds:.1} s", if calls == 1 { "call" } else { "calls" });
        log.outcome(
            &format!("checkpoint of {count} messages, {tokens} tokens ({cost})"),
            &Members::new()
                .string("outcome", "made")
                .number("messages", count)
                .number("tokens", tokens)
                .with(|it| call_budget.add_to(it)),
        );
        Ok(Exit::Done)
    }

    /// Asks the models in order, until one gives a usable reply.
    fn ask(
        &self,
        plan: &CheckpointPlan<'_, '_>,
        (gauge, budget): (Gauge, Option<Budget>),
        call_budget: &CallBudget,
        log: Log,
    ) -> anyhow::Result<SummaryReply> {
        let prompt = self.prompt()?;
        let prompt = SummaryPrompt { text: &prompt, focus: None };
        let mut models = self.args.summarisers.models(self.model, budget)?;
        // A checkpoint is text.
        models.retain(|model| !model.by_server);
        let ask = |summariser: &SummaryModel| {
            self.args.summarisers.refuse_failing(summariser)?;
            let writer = Writer { summariser, command: &self.args.call.command, call_budget, log };
            let limits = summariser.limits(
                gauge,
                summary_tokens(budget.map(|budget| budget.target())),
                call_budget.left(),
            );
            let reply = writer.write(plan.covered, plan.earlier.as_deref(), prompt, limits);
            summariser.note_attempt(reply.is_ok(), call_budget)?;
            reply
        };
        for pair in models.windows(2) {
            match ask(&pair[0]) {
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    let (name, next, why) = (&pair[0].name, &pair[1].name, exit::text(&error));
                    log.note(&format!("no checkpoint from {name}: {why}; trying {next}"));
                }
            }
        }
        match models.last() {
            Some(last) => ask(last),
            None => fail(Exit::Config, "no model is named; give --model"),
        }
    }

    /// Returns the reason why no checkpoint is due, or `None` if one is.
    fn why_not(
        &self,
        state: ConversationState,
        plan: Option<&CheckpointPlan<'_, '_>>,
    ) -> Option<String> {
        if let Err(why) = self.triggers().ask(state) {
            return Some(why.to_string());
        }
        let has_news = plan.is_some_and(|plan| plan.has_new_messages);
        (!has_news).then(|| "no message has been answered since the last checkpoint".to_owned())
    }

    fn triggers(&self) -> Triggers {
        let DueArgs { checkpoint: enabled, percents, turns, min_tokens } = self.args.due.clone();
        Triggers { enabled, percents, turns, min_tokens }
    }

    fn prompt(&self) -> anyhow::Result<String> {
        match &self.args.prompt {
            None => Ok(PROMPT.to_owned()),
            Some(path) => Ok(text(&path.display().to_string(), &read_file(path)?)?.to_owned()),
        }
    }
}

fn write(checkpoint: &Checkpoint) -> anyhow::Result<()> {
    Output::lines([checkpoint.record()]).map(drop)
}
