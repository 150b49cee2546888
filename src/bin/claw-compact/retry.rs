//! `--retry`: makes missing summaries. A compaction is pending if its summary is a placeholder, or continues a summary
//! that is one.
//!
//! Each pending compaction is repeated with the same messages and the same cut. The new record names the compaction
//! that it replaces, and takes effect only where the old one would. The oldest is repeated first, because later
//! summaries continue its summary. A summary that keeps failing does not hold up the others.

use crate::compact::{record, report_applied};
use crate::ladder::{AcceptedSummary, Ladder};
use crate::run::CompactRun;
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

/// The longest pause between two attempts at one summary: a day, in seconds.
const LONGEST_PAUSE: f64 = 86_400.0;

impl CompactRun<'_> {
    /// Makes the pending summaries of a transcript and writes a record for each.
    ///
    /// # Errors
    /// Fails with 74 if the transcript cannot be read or a record cannot be written. If summaries fail, all others
    /// are tried, and the status of the last failure is returned.
    pub fn retry(&self, inputs: &[Input], log: Log) -> anyhow::Result<Exit> {
        let _progress = log.wait_for("looking for missing summaries");
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
        for compaction in pending {
            let messages = before(inputs, &compaction, &summaries);
            let known = messages.as_deref().unwrap_or_default();
            if let Some(why) = self.why_not_yet(&compaction, known)? {
                let text = format!("skipping the summary of '{}': {why}", compaction.id);
                log.outcome(&text, &StageOutcome::Skipped.member().string("id", &compaction.id));
                continue;
            }
            match self.retry_one(messages, &compaction, &mut summaries, log) {
                Ok(line) => {
                    let written = writeln!(out, "{line}").and_then(|()| out.flush());
                    written.context("cannot write '<stdout>'")?;
                }
                Err(error) => {
                    exit = exit::status(&error);
                    let text =
                        format!("no summary for '{}': {}", compaction.id, exit::text(&error));
                    log.outcome(&text, &StageOutcome::Failed.member().string("id", &compaction.id));
                }
            }
        }
        out.finish()?;
        Ok(exit)
    }

    /// Returns the reason why a summary is not attempted now, if there is one. A summary that continues an earlier one
    /// must wait for it: as long as the earlier one is missing, the new one would also be marked as pending, and be
    /// made again on every run.
    fn why_not_yet(
        &self,
        compaction: &Pending,
        messages: &[Message<'_>],
    ) -> anyhow::Result<Option<String>> {
        let base = messages.first().and_then(|first| first.meta.as_ref()?.summary.as_ref());
        if !compaction.is_stub && base.is_some_and(|base| base.needs_retry) {
            return Ok(Some("it continues a summary that is still missing".to_owned()));
        }
        let left = self.next_try(compaction) - now()?;
        let text = || format!("it failed before; next attempt in {:.0} s", left.ceil());
        // More than a day can be left only if the clock was set back.
        Ok((left > 0.0 && left <= LONGEST_PAUSE).then(text))
    }

    /// Returns the time of the next attempt, in Unix seconds. The pause doubles with each failure.
    fn next_try(&self, compaction: &Pending) -> f64 {
        let failures = attempts(compaction).failures(f64::INFINITY);
        let Some(times) = failures.count.checked_sub(1) else { return 0.0 };
        let pause = self.args.pause.retry_interval as f64 * 2f64.powi(times.min(20) as i32);
        failures.last + pause.min(LONGEST_PAUSE)
    }

    /// Makes one summary, and returns the record that replaces the pending compaction.
    fn retry_one(
        &self,
        messages: anyhow::Result<Vec<Message<'_>>>,
        compaction: &Pending,
        summaries: &mut Summaries,
        log: Log,
    ) -> anyhow::Result<String> {
        let call_budget = CallBudget::new(self.args.max_calls, self.args.deadline);
        let made =
            messages.and_then(|messages| self.make_again(&messages, compaction, &call_budget, log));
        attempts(compaction).note(made.is_ok(), now()?);
        let (made, line) = made?;
        report_applied(log, &made, &call_budget);
        summaries.replace(&compaction.id, made.planned.summary(&made.reply.text));
        Ok(line)
    }

    fn make_again(
        &self,
        messages: &[Message<'_>],
        compaction: &Pending,
        call_budget: &CallBudget,
        log: Log,
    ) -> anyhow::Result<(AcceptedSummary, String)> {
        let mut task = self.task(messages);
        let planned = task.plan_from(&compaction.first_kept);
        let at = planned.as_ref().map(|planned| planned.at);
        // The request may only fit the window with the summary, as it did with the placeholder.
        let planned = planned.and_then(|it| self.or_last_resort(&mut task, Some(it), at));
        let Some(planned) = planned else {
            let text = format!(
                "cannot repeat the compaction: no cut at record '{}'",
                compaction.first_kept
            );
            return fail(Exit::Data, text);
        };
        let prompt = self.prompt()?;
        let prompt = SummaryPrompt { text: &prompt, focus: self.args.focus.as_deref() };
        let models = self.models()?.into_iter();
        let sources: Vec<Source> =
            models.map(|summariser| Source::Model(Box::new(summariser))).collect();
        let made =
            Ladder { run: self, call_budget, prompt, log }.try_each(&sources, &task, &planned)?;
        let line = record(&task, &made, Some(&compaction.id))?;
        Ok((made, line))
    }

    fn show_pending(&self, pending: &[Pending]) -> anyhow::Result<Exit> {
        let shown = Members::new()
            .objects("pending", pending, |it, compaction| {
                let failures = attempts(compaction).failures(f64::INFINITY).count;
                it.string("id", &compaction.id)
                    .number("failures", failures)
                    .decimal("next_try", self.next_try(compaction))
            })
            .number("retry_seconds", self.args.pause.retry_interval);
        Output::lines([shown.into_json()])
    }
}

/// Returns the messages as they were when the compaction was made. If they begin with a placeholder whose summary has
/// been made since, the summary replaces the placeholder.
fn before(
    inputs: &[Input],
    compaction: &Pending,
    summaries: &Summaries,
) -> anyhow::Result<Vec<Message<'static>>> {
    let Some(at) = compaction.before.clone() else { return Ok(Vec::new()) };
    let options = RebuildOptions { at: Some(at), ..RebuildOptions::default() };
    let mut messages = rebuild::from_inputs(inputs, &options)?.messages;
    if let Some(first) = messages.first_mut()
        && let Some(meta) = &mut first.meta
        && let Some(better) = summaries.better(&meta.id)
    {
        meta.summary = Some(Box::new(better.clone()));
        first.content = summary::message(better).content;
    }
    Ok(messages)
}

fn attempts(compaction: &Pending) -> Attempts {
    Attempts::at(format!("retry:{}", compaction.id), state_dir())
}
