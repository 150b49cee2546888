//! `--retry`: summaries for what a stub stands for.
//!
//! Each pending compaction is made again as things were when it was made: the same messages, the same cut.
//! Its record says in whose place it stands, so it never governs where that did not. The oldest comes first,
//! and what one learns the next goes on from; one that fails again and again does not hold up the others.

use crate::compact::{CompactRun, record, say_applied};
use crate::ladder::{Ladder, Made};
use crate::sources::Source;
use anyhow::Context;
use clawutils::cli::model::state_dir;
use clawutils::cli::{Log, Output, StageOutcome, now};
use clawutils::compact::attempts::Attempts;
use clawutils::compact::call_budget::CallBudget;
use clawutils::compact::pending::{Pending, Summaries};
use clawutils::compact::request::SummaryPrompt;
use clawutils::exit::{self, Exit, fail};
use clawutils::input::Input;
use clawutils::json::write::Members;
use clawutils::messages::rebuild::{self, RebuildOptions};
use clawutils::messages::{Message, summary};
use std::io::Write;

/// The longest pause between two tries of one summary, in seconds: a day.
const LONGEST_PAUSE: f64 = 86_400.0;

impl CompactRun<'_> {
    /// Makes the pending summaries of a transcript and writes a record for each.
    ///
    /// # Errors
    /// The status of the last one that failed, when all others were tried; 74 when the transcript cannot be
    /// read or a record not be written.
    pub fn retry(&self, inputs: &[Input], log: Log) -> anyhow::Result<Exit> {
        let _progress = log.wait_for("looking for summaries that are still to be made");
        let mut summaries = Summaries::read(inputs)?;
        if self.args.show {
            return self.show_pending(&summaries.pending());
        }
        let mut out = Output::open();
        let mut exit = Exit::Done;
        let pending = summaries.pending();
        if pending.is_empty() {
            log.outcome("no summary is missing", &StageOutcome::Skipped.member());
        }
        for one in pending {
            let messages = before(inputs, &one, &summaries);
            let known = messages.as_deref().unwrap_or_default();
            if let Some(why) = self.why_not_yet(&one, known)? {
                let text = format!("the summary of '{}' is not tried: {why}", one.id);
                log.outcome(&text, &StageOutcome::Skipped.member().string("id", &one.id));
                continue;
            }
            match self.retry_one(messages, &one, &mut summaries, log) {
                Ok(line) => {
                    let written = writeln!(out, "{line}").and_then(|()| out.flush());
                    written.context("cannot write '<stdout>'")?;
                }
                Err(error) => {
                    exit = exit::status(&error);
                    let text = format!("no summary for '{}': {}", one.id, exit::text(&error));
                    log.outcome(&text, &StageOutcome::Failed.member().string("id", &one.id));
                }
            }
        }
        out.finish()?;
        Ok(exit)
    }

    /// Why it is not tried now, if it is not. A summary on a summary that is still to be made would be
    /// marked again, and so asked for again and again.
    fn why_not_yet(
        &self,
        one: &Pending,
        messages: &[Message<'_>],
    ) -> anyhow::Result<Option<String>> {
        let base = messages.first().and_then(|first| first.meta.as_ref()?.summary.as_ref());
        if !one.is_stub && base.is_some_and(|base| base.needs_retry) {
            return Ok(Some("it goes on from one that is still to be made".to_owned()));
        }
        let left = self.next_try(one) - now()?;
        let text = || format!("it failed before, and the next try is in {:.0} s", left.ceil());
        // More than a day is left only where the clock was set back.
        Ok((left > 0.0 && left <= LONGEST_PAUSE).then(text))
    }

    /// When it may be tried next, in Unix seconds: after the pause, then after twice
    /// that, and so on.
    fn next_try(&self, one: &Pending) -> f64 {
        let failures = attempts(one).failures(f64::INFINITY);
        let Some(times) = failures.count.checked_sub(1) else { return 0.0 };
        let pause = self.args.pause.retry_interval as f64 * 2f64.powi(times.min(20) as i32);
        failures.last + pause.min(LONGEST_PAUSE)
    }

    /// One summary, as the record that stands in the place of the stub.
    fn retry_one(
        &self,
        messages: anyhow::Result<Vec<Message<'_>>>,
        one: &Pending,
        summaries: &mut Summaries,
        log: Log,
    ) -> anyhow::Result<String> {
        let spent = CallBudget::new(self.args.max_calls, self.args.deadline);
        let made = messages.and_then(|messages| self.make_again(&messages, one, &spent, log));
        attempts(one).note(made.is_ok(), now()?);
        let (made, line) = made?;
        say_applied(log, &made, &spent);
        summaries.mend(&one.id, made.planned.summary(&made.reply.text));
        Ok(line)
    }

    fn make_again(
        &self,
        messages: &[Message<'_>],
        one: &Pending,
        spent: &CallBudget,
        log: Log,
    ) -> anyhow::Result<(Made, String)> {
        let task = self.task(messages);
        let Some(planned) = task.plan_from(&one.first_kept) else {
            let text = format!("what it covers is not found: no cut at '{}'", one.first_kept);
            return fail(Exit::Data, text);
        };
        let prompt = self.prompt()?;
        let prompt = SummaryPrompt { text: &prompt, focus: self.args.focus.as_deref() };
        let models = self.models()?.into_iter();
        let sources: Vec<Source> = models.map(|asked| Source::Model(Box::new(asked))).collect();
        let made = Ladder { session: self, spent, prompt, log }.climb(&sources, &task, &planned)?;
        let line = record(&task, &made, Some(&one.id))?;
        Ok((made, line))
    }

    fn show_pending(&self, pending: &[Pending]) -> anyhow::Result<Exit> {
        let mut out = Output::open();
        let shown = Members::new()
            .objects("pending", pending, |it, one| {
                let failures = attempts(one).failures(f64::INFINITY).count;
                it.string("id", &one.id)
                    .number("failures", failures)
                    .decimal("next_try", self.next_try(one))
            })
            .number("retry_seconds", self.args.pause.retry_interval);
        out.write_all(shown.into_line().as_bytes()).context("cannot write '<stdout>'")?;
        out.finish()?;
        Ok(Exit::Done)
    }
}

/// The messages as they were when the compaction was made, with what was learned since.
fn before(
    inputs: &[Input],
    one: &Pending,
    summaries: &Summaries,
) -> anyhow::Result<Vec<Message<'static>>> {
    let Some(at) = one.before.clone() else { return Ok(Vec::new()) };
    let options = RebuildOptions { at: Some(at), ..RebuildOptions::default() };
    let mut messages = rebuild::from_inputs(inputs, &options)?.messages;
    if let Some(first) = messages.first_mut()
        && let Some(meta) = &mut first.meta
        && let Some(better) = summaries.better(&meta.id)
    {
        meta.summary = Some(better.clone());
        first.content = summary::message(better).content;
    }
    Ok(messages)
}

fn attempts(one: &Pending) -> Attempts {
    Attempts::at(format!("retry:{}", one.id), state_dir())
}
