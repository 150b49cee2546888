//! `claw-compact`: plan, get a summary from another program, check it, apply it.

use crate::cli::budget::{Extras, Refused};
use crate::cli::model::ModelArgs;
use crate::cli::{Log, Output, child, messages, read_file, require_meta, text, variable};
use crate::compact::accept::{self, Reply};
use crate::compact::{KEEP_USER, Planned, Source, Task, local, plan};
use crate::estimate::{Budget, Request};
use crate::exit::{Error, Exit, fail};
use crate::messages::{self as msg, Message, Role};
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// The options of `claw-compact` alone.
#[derive(Clone, Debug, clap::Args)]
pub struct CompactArgs {
    /// Write a compaction record instead of messages
    #[arg(long)]
    pub record: bool,
    /// Write the summary request, as messages, and stop there
    #[arg(long, conflicts_with_all = ["record", "summary"])]
    pub plan: bool,
    /// Take the summary from FILE instead of a model
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Program that gets the summary (CLAW_CALL, else claw-call)
    #[arg(long, value_name = "COMMAND")]
    pub call: Option<String>,
    /// File with what to ask for instead of our own words
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,
    /// What the summary should look at above all
    #[arg(long, value_name = "TEXT")]
    pub focus: Option<String>,
    /// Tokens of the user's words to keep word for word, at most a quarter of the budget
    #[arg(long, value_name = "TOKENS", default_value_t = KEEP_USER)]
    pub keep_user: u64,
    /// Where a summary comes from when no other could be had
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["plan", "summary"])]
    pub fallback: Option<Fallback>,
    /// Most calls to spend on one summary
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_calls: u32,
}

/// A source of summaries that asks nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fallback {
    /// Put together from what was said, without a model
    Local,
}

/// A run of `claw-compact`.
#[derive(Debug)]
pub struct Session<'s> {
    /// Its options.
    pub args: &'s CompactArgs,
    /// The provider's.
    pub model: &'s ModelArgs,
    /// The window, if one is known.
    pub budget: Option<Budget>,
    /// What refused the request, if something did.
    pub refused: Option<Refused>,
}

/// A summary and how it came about.
struct Summary {
    text: String,
    strategy: &'static str,
    reply: Reply,
    calls: u32,
}

impl Session<'_> {
    /// Does it.
    ///
    /// # Errors
    /// 5 when there is nothing to gain, or the summary does not make the request fit; 65 for bad input;
    /// 69 when the model's summary cannot be used; the status of the program that gets the summary when
    /// that fails. Nothing is written then.
    pub fn run(
        &self,
        input: &[(Arc<str>, Vec<u8>)],
        extras: &Extras,
        log: Log,
    ) -> anyhow::Result<Exit> {
        let begun = Instant::now();
        let messages = messages(input)?;
        if self.args.record {
            require_meta(&messages)?;
        }
        let (system, tools) = (extras.system.as_deref(), extras.tools.as_deref());
        let request = Request { messages: &messages, system, tools };
        let task = Task {
            messages: &messages,
            system,
            tools,
            gauge: Refused::gauge(self.refused.as_ref(), request),
            target: self.budget.map(|budget| budget.target()),
            keep_user: self.args.keep_user,
        };
        let Some(planned) = task.plan() else {
            return fail(Exit::NoGain, nothing_to_gain(&task));
        };
        if self.args.plan {
            let room = self.room(&task);
            let request = self.ask(&task, &planned, &self.prompt()?, room);
            return write_messages(&[Message::say(Role::User, &request)]);
        }
        let (summary, after) = match self.first_choice(&task, &planned, log) {
            Err(error) if self.args.fallback.is_some() => {
                log.outcome(
                    &format!("{error:#}; making a summary without a model"),
                    r#""outcome":"failed""#,
                );
                let text = local::summary(&task, &planned);
                let (strategy, reply) = ("local", Reply::default());
                accepted(&task, &planned, Summary { text, strategy, reply, calls: 0 })?
            }
            outcome => outcome?,
        };
        self.write(&task, &planned, &summary, after)?;
        let (at, before, calls) = (planned.at, planned.before, summary.calls);
        let seconds = begun.elapsed().as_secs_f64();
        let cost = format!("{calls} {}, {seconds:.1} s", if calls == 1 { "call" } else { "calls" });
        log.outcome(
            &format!("summarised {at} messages: {before} -> {after} tokens ({cost})"),
            &format!(
                r#""outcome":"applied","before":{before},"after":{after},"calls":{calls},"seconds":{seconds:.3}"#
            ),
        );
        Ok(Exit::Done)
    }

    /// The summary of the user's file or the model's, if it may stand for what it covers, and the request's
    /// tokens with it.
    fn first_choice(
        &self,
        task: &Task<'_, '_>,
        planned: &Planned,
        log: Log,
    ) -> anyhow::Result<(Summary, u64)> {
        let summary = match &self.args.summary {
            Some(path) => Summary {
                text: text(&path.display().to_string(), &read_file(path)?)?.to_owned(),
                strategy: "file",
                reply: Reply::default(),
                calls: 0,
            },
            None => self.call(task, planned, &self.prompt()?, log)?,
        };
        accepted(task, planned, summary)
    }

    fn prompt(&self) -> anyhow::Result<String> {
        match &self.args.prompt {
            None => Ok(plan::PROMPT.to_owned()),
            Some(path) => Ok(text(&path.display().to_string(), &read_file(path)?)?.to_owned()),
        }
    }

    /// The most tokens that the summary request may have, if a window is known.
    fn room(&self, task: &Task<'_, '_>) -> Option<u64> {
        self.budget.map(|b| b.window.saturating_sub(task.summary_tokens() + b.margin))
    }

    fn ask(
        &self,
        task: &Task<'_, '_>,
        planned: &Planned,
        prompt: &str,
        room: Option<u64>,
    ) -> String {
        let covered = &task.messages[..planned.at];
        let fits = |text: &str| {
            let request = [Message::say(Role::User, text)];
            let request = Request { messages: &request, system: None, tools: None };
            room.is_none_or(|room| task.gauge.tokens(request) <= room)
        };
        plan::request(covered, prompt, self.args.focus.as_deref(), fits)
    }

    /// Gets a summary by running the program for it. A request that does not fit is made again at half
    /// the size, never sent again as it was.
    fn call(
        &self,
        task: &Task<'_, '_>,
        planned: &Planned,
        prompt: &str,
        log: Log,
    ) -> anyhow::Result<Summary> {
        let command = self.args.call.clone().or_else(|| variable("CLAW_CALL"));
        let command = command.unwrap_or_else(|| "claw-call".to_owned());
        let mut room = self.room(task);
        let mut sent = String::new();
        for calls in 1..=self.args.max_calls {
            let request = self.ask(task, planned, prompt, room);
            if request == sent {
                break;
            }
            let size = task.gauge.text(&request);
            let line = Message::say(Role::User, &request).to_line() + "\n";
            let ended = child::run(&command, &self.arguments(task), line.as_bytes())?;
            match ended.exit() {
                Some(Exit::Done | Exit::CutOff) => {
                    let reply = read_reply(&command, &ended.stdout)?;
                    let text = reply.text.clone();
                    return Ok(Summary { text, strategy: "llm", reply, calls });
                }
                Some(Exit::Overflow) => {
                    log.note("the summary request does not fit; asking with half of it");
                    room = Some(room.unwrap_or(size).min(size) / 2);
                    sent = request;
                }
                _ => return Err(ended.failure(&command, "cannot get a summary")),
            }
        }
        fail(Exit::NoGain, "the summary request does not fit the window, however short")
    }

    /// What `claw-call` is told: the options that were given here, and how long the summary may be.
    fn arguments(&self, task: &Task<'_, '_>) -> Vec<String> {
        let mut arguments = vec!["--max-tokens".to_owned(), task.summary_tokens().to_string()];
        arguments.extend(self.model.arguments());
        if let Some(budget) = self.budget {
            arguments.extend(["--window".to_owned(), budget.window.to_string()]);
        }
        arguments
    }

    fn write(
        &self,
        task: &Task<'_, '_>,
        planned: &Planned,
        summary: &Summary,
        after: u64,
    ) -> anyhow::Result<()> {
        if !self.args.record {
            return write_messages(&task.apply(planned, &summary.text)).map(|_| ());
        }
        let Some(first_kept) = task.first_kept(planned) else {
            return fail(Exit::Data, "cannot write a record: no message that is kept has a record");
        };
        let source = Source {
            text: &summary.text,
            strategy: summary.strategy,
            model: summary.reply.model.as_deref(),
            usage: summary.reply.usage.as_deref(),
        };
        let mut out = Output::open();
        writeln!(out, "{}", planned.record(&source, &first_kept, after))
            .context("cannot write '<stdout>'")?;
        out.finish()
    }
}

/// A summary that may stand for what it covers, and the request's tokens with it.
fn accepted(
    task: &Task<'_, '_>,
    planned: &Planned,
    summary: Summary,
) -> anyhow::Result<(Summary, u64)> {
    match accept::accept(task, planned, &summary.text) {
        Ok(after) => Ok((summary, after)),
        Err(why) => fail(why.exit(summary.calls > 0), format!("the summary is not used: {why}")),
    }
}

fn nothing_to_gain(task: &Task<'_, '_>) -> String {
    let tokens = task.tokens(task.messages);
    let count = task.messages.len();
    match task.target {
        Some(target) if tokens > target => format!(
            "nothing to gain: what has to stay of {count} messages ({tokens} tokens) is over the budget of {target}"
        ),
        _ => format!("nothing to gain: {count} messages, {tokens} tokens"),
    }
}

fn read_reply(command: &str, stdout: &[u8]) -> anyhow::Result<Reply> {
    let unusable = |why: String| {
        Error::new(Exit::Unavailable, format!("the summary of '{command}' is not used: {why}"))
    };
    let records = std::str::from_utf8(stdout).map_err(|error| unusable(error.to_string()))?;
    let reply = Reply::read(records).map_err(unusable)?;
    reply.check().map_err(unusable)?;
    Ok(reply)
}

fn write_messages(messages: &[Message<'_>]) -> anyhow::Result<Exit> {
    let mut out = Output::open();
    msg::write(messages, &mut out).context("cannot write '<stdout>'")?;
    out.finish()?;
    Ok(Exit::Done)
}
