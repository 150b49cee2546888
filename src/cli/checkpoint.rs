//! `claw-checkpoint`: ask whether one is due, get it from another program, read the reply.

use crate::checkpoint::due::{State, Triggers};
use crate::checkpoint::reply::Said;
use crate::checkpoint::{self, PROMPT, Plan};
use crate::cli::budget::{BudgetArgs, Extras};
use crate::cli::config::CheckpointConfig;
use crate::cli::model::ModelArgs;
use crate::cli::{Log, Output, child, messages, read_file, require_meta, text, variable};
use crate::compact::SUMMARY_TOKENS;
use crate::compact::accept::Reply;
use crate::estimate::{Budget, Estimate, Gauge, Method, Request};
use crate::exit::{Error, Exit, fail};
use crate::messages::checkpoint::Checkpoint;
use crate::messages::{Message, Role};
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The most calls to spend on one checkpoint.
const MOST_CALLS: u32 = 6;

/// The options of `claw-checkpoint` alone.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckpointArgs {
    /// Make one only if it is due
    #[arg(long)]
    pub if_due: bool,
    /// Shares of the window that make one due, in percent (25,50,75)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=100))]
    pub percents: Option<Vec<u64>>,
    /// Turns since the last one that make one due; 0 is never (10)
    #[arg(long, value_name = "N")]
    pub turns: Option<u64>,
    /// Tokens of the request below which none is due (5000)
    #[arg(long, value_name = "TOKENS")]
    pub min_tokens: Option<u64>,
    /// Program that asks the model (CLAW_CALL, else claw-call)
    #[arg(long, value_name = "COMMAND")]
    pub call: Option<String>,
    /// File with what to ask for instead of our own words
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
}

/// A run of `claw-checkpoint`.
#[derive(Debug)]
pub struct Session<'s> {
    /// Its options.
    pub args: &'s CheckpointArgs,
    /// The provider's.
    pub model: &'s ModelArgs,
    /// The window's and the configuration's.
    pub budget: &'s BudgetArgs,
}

/// What the model is asked with.
struct Asking<'p, 'a> {
    command: String,
    prompt: String,
    plan: &'p Plan<'a>,
    gauge: Gauge,
    budget: Option<Budget>,
}

impl Session<'_> {
    /// Does it.
    ///
    /// # Errors
    /// 5 when there is nothing to cover, or the request does not fit however short; 65 for bad input; 69
    /// when the reply cannot be used; the status of the program that asks the model when that fails.
    /// Nothing is written then.
    pub fn run(
        &self,
        input: &[(Arc<str>, Vec<u8>)],
        extras: &Extras,
        log: Log,
    ) -> anyhow::Result<Exit> {
        let begun = Instant::now();
        let messages = messages(input)?;
        require_meta(&messages)?;
        let (system, tools) = (extras.system.as_deref(), extras.tools.as_deref());
        let request = Request { messages: &messages, system, tools };
        let tokens = Estimate::of(request, Method::Script).tokens;
        let budget = self.budget.budget(self.model, None)?;
        let state = State::of(&messages, tokens, budget.map(|budget| budget.window));
        let plan = checkpoint::plan(&messages);
        let why_not = self.why_not(state, plan.as_ref())?;
        if let Some(why) = why_not.filter(|_| self.args.if_due) {
            log.outcome(&format!("skipped: {why}"), r#""outcome":"skipped""#);
            return Ok(Exit::Done);
        }
        let Some(plan) = plan else {
            return fail(Exit::NoGain, "nothing to cover: no message is answered");
        };
        let asking = Asking {
            command: self.command(),
            prompt: self.prompt()?,
            plan: &plan,
            gauge: Gauge::new(request, None),
            budget,
        };
        let (said, reply, calls) = self.ask(&asking, log)?;
        let generated_by = Some(reply.model.unwrap_or(asking.command));
        let made = plan.checkpoint(said, messages.len(), tokens);
        write(&Checkpoint { generated_by, usage: reply.usage, ..made })?;
        let (count, seconds) = (messages.len(), begun.elapsed().as_secs_f64());
        let cost = format!("{calls} {}, {seconds:.1} s", if calls == 1 { "call" } else { "calls" });
        log.outcome(
            &format!("checkpoint of {count} messages, {tokens} tokens ({cost})"),
            &format!(
                r#""outcome":"made","messages":{count},"tokens":{tokens},"calls":{calls},"seconds":{seconds:.3}"#
            ),
        );
        Ok(Exit::Done)
    }

    /// Why no checkpoint is due, if none is.
    fn why_not(&self, state: State, plan: Option<&Plan<'_>>) -> anyhow::Result<Option<String>> {
        if let Err(why) = self.triggers()?.ask(state) {
            return Ok(Some(why.to_string()));
        }
        let has_news = plan.is_some_and(|plan| plan.is_news);
        Ok((!has_news).then(|| "nothing was answered since the last one".to_owned()))
    }

    /// The triggers: options, then the configuration.
    fn triggers(&self) -> anyhow::Result<Triggers> {
        let config: CheckpointConfig = self.budget.config.read()?.checkpoint;
        Ok(Triggers {
            enabled: config.enabled,
            percents: self.args.percents.clone().unwrap_or(config.percents),
            turns: self.args.turns.unwrap_or(config.turns),
            min_tokens: self.args.min_tokens.unwrap_or(config.min_tokens),
        })
    }

    fn command(&self) -> String {
        let named = self.args.call.clone().or_else(|| variable("CLAW_CALL"));
        named.unwrap_or_else(|| "claw-call".to_owned())
    }

    fn prompt(&self) -> anyhow::Result<String> {
        match &self.args.prompt {
            None => Ok(PROMPT.to_owned()),
            Some(path) => Ok(text(&path.display().to_string(), &read_file(path)?)?.to_owned()),
        }
    }

    /// Asks by running the program for it. A request that does not fit is made again at half the size,
    /// never sent again as it was.
    fn ask(&self, asking: &Asking<'_, '_>, log: Log) -> anyhow::Result<(Said, Reply, u32)> {
        let command = &asking.command;
        let mut arguments = vec!["--max-tokens".to_owned(), asking.answer_tokens().to_string()];
        arguments.extend(self.model.arguments());
        if let Some(budget) = asking.budget {
            arguments.extend(["--window".to_owned(), budget.window.to_string()]);
        }
        let mut room = asking.room();
        let mut sent = String::new();
        for calls in 1..=MOST_CALLS {
            let request = asking.request(room);
            if request == sent {
                break;
            }
            let size = asking.gauge.text(&request);
            let line = Message::say(Role::User, &request).to_line() + "\n";
            let ended = child::run(command, &arguments, line.as_bytes())?;
            match ended.exit() {
                Some(Exit::Done | Exit::CutOff) => {
                    let (said, reply) = read(command, &ended.stdout)?;
                    return Ok((said, reply, calls));
                }
                Some(Exit::Overflow) => {
                    log.note("the request does not fit; asking with half of it");
                    room = Some(room.unwrap_or(size).min(size) / 2);
                    sent = request;
                }
                _ => return Err(ended.failure(command, "cannot get a checkpoint")),
            }
        }
        fail(Exit::NoGain, "the request does not fit the window, however short")
    }
}

impl Asking<'_, '_> {
    /// How long the answer may be (tokens): an eighth of what a compaction gets below.
    fn answer_tokens(&self) -> u64 {
        let target = self.budget.map(|budget| budget.target());
        target.map_or(SUMMARY_TOKENS, |target| (target / 8).clamp(64, SUMMARY_TOKENS))
    }

    /// The most tokens that the request may have, if a window is known.
    fn room(&self) -> Option<u64> {
        self.budget.map(|b| b.window.saturating_sub(self.answer_tokens() + b.margin))
    }

    fn request(&self, room: Option<u64>) -> String {
        self.plan.request(&self.prompt, |text| {
            let messages = [Message::say(Role::User, text)];
            let request = Request { messages: &messages, system: None, tools: None };
            room.is_none_or(|room| self.gauge.tokens(request) <= room)
        })
    }
}

/// What the reply says, and the reply.
fn read(command: &str, stdout: &[u8]) -> anyhow::Result<(Said, Reply)> {
    let unusable = |why: String| {
        Error::new(Exit::Unavailable, format!("the checkpoint of '{command}' is not used: {why}"))
    };
    let records = std::str::from_utf8(stdout).map_err(|error| unusable(error.to_string()))?;
    let reply = Reply::read(records).map_err(unusable)?;
    reply.check().map_err(unusable)?;
    let said = Said::read(&reply.text).ok_or_else(|| unusable("it is blank".to_owned()))?;
    Ok((said, reply))
}

fn write(checkpoint: &Checkpoint) -> anyhow::Result<()> {
    let mut out = Output::open();
    writeln!(out, "{}", checkpoint.record()).context("cannot write '<stdout>'")?;
    out.finish()
}
