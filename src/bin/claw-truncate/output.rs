//! The output and the diagnostics of `claw-truncate`.

use anyhow::Context;
use clawutils::cli::{Log, Output, StageOutcome};
use clawutils::estimate::Budget;
use clawutils::exit::{Error, Exit};
use clawutils::messages::{self, Message};
use clawutils::truncate::TruncateOutcome;
use std::io::Write;

/// Writes the messages or the records.
///
/// # Errors
/// Fails with 74 or 141 if standard output cannot be written.
pub fn write_truncated(
    messages: &[Message<'_>],
    outcome: &TruncateOutcome,
    record: bool,
) -> anyhow::Result<()> {
    let mut out = Output::open();
    if record {
        for line in &outcome.records {
            writeln!(out, "{line}").context("cannot write '<stdout>'")?;
        }
    } else {
        messages::write(messages, &mut out).context("cannot write '<stdout>'")?;
    }
    out.finish()
}

/// The limits that the request must keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The budget in tokens, if it matters.
    pub budget: Option<Budget>,
    /// The largest size in bytes, if it matters.
    pub bytes: Option<u64>,
}

impl Limits {
    /// Returns the sizes that exceed their limits, for a diagnostic.
    fn exceeded(self, outcome: &TruncateOutcome) -> Option<String> {
        let budget = self.budget.map(|budget| budget.prompt());
        let over = self.bytes.zip(outcome.bytes).filter(|(most, (_, bytes))| bytes > most);
        match (budget.filter(|budget| outcome.after > *budget), over) {
            (Some(budget), _) => Some(format!("still over the budget of {budget}")),
            (None, Some((most, _))) => Some(format!("still over the limit of {most} bytes")),
            (None, None) => None,
        }
    }

    /// Describes the size of an unchanged request, and its limit.
    fn unchanged(self, outcome: &TruncateOutcome) -> String {
        match (self.budget, self.bytes.zip(outcome.bytes)) {
            (Some(budget), _) => format!(": {} tokens, budget {}", outcome.after, budget.prompt()),
            (None, Some((most, (_, bytes)))) => format!(": {bytes} bytes, limit {most}"),
            (None, None) => String::new(),
        }
    }
}

/// Reports the outcome: skipped if nothing was changed, failed if the request still exceeds a limit, else applied.
///
/// `must_gain` is true after a refused request, and for records. It is then an error to change nothing, even if the
/// estimate is within the budget, because the provider may count more tokens.
///
/// # Errors
/// Fails with 5 if the request exceeds a limit, if the gain is less than `--min-gain`, or if nothing was changed
/// with `must_gain`.
pub fn report_truncated(
    log: Log,
    outcome: &TruncateOutcome,
    limits: Limits,
    must_gain: bool,
) -> anyhow::Result<Exit> {
    let exceeded = limits.exceeded(outcome);
    let how = match outcome.is_unchanged() {
        true => StageOutcome::Skipped,
        false if exceeded.is_some() => StageOutcome::Failed,
        false => StageOutcome::Applied,
    };
    let size = limits.unchanged(outcome);
    let text = match (how, &exceeded) {
        (StageOutcome::Skipped, _) if outcome.too_small_gain.is_some() => {
            let (gain, after) = (outcome.too_small_gain.unwrap_or_default(), outcome.after);
            format!("nothing changed: would save {gain} of {after} tokens, less than --min-gain")
        }
        (StageOutcome::Skipped, _) if limits.budget.is_none() => {
            format!("nothing that the provider may have refused can be left out{size}")
        }
        (StageOutcome::Skipped, exceeded) if exceeded.is_some() || must_gain => {
            format!("no result can be shortened{size}")
        }
        (StageOutcome::Skipped, _) => format!("nothing to shorten{size}"),
        (StageOutcome::Failed, Some(why)) => what_was_done(outcome, &format!(", {why}")),
        _ => what_was_done(outcome, ""),
    };
    let mut members = how.members(outcome.before, outcome.after);
    if let Some((before, after)) = outcome.bytes {
        members = members.number("bytes_before", before).number("bytes_after", after);
    }
    let is_short = outcome.too_small_gain.is_some() || must_gain && how == StageOutcome::Skipped;
    if exceeded.is_some() || is_short {
        return Err(Error::new(Exit::NoGain, text).with(members).into());
    }
    log.outcome(&text, &members);
    Ok(Exit::Done)
}

/// Describes what was done, with a `remark` on the sizes, and how to see what was left out.
fn what_was_done(outcome: &TruncateOutcome, remark: &str) -> String {
    let TruncateOutcome { before, after, shortened, omissions, bytes, .. } = outcome;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut done = Vec::new();
    if *shortened > 0 {
        done.push(format!("shortened {shortened} result{}", plural(*shortened)));
    }
    if omissions.count() > 0 {
        done.push(format!("left out {}", omissions.describe()));
    }
    let bytes = bytes.map(|(before, after)| format!(", {before} -> {after} bytes"));
    let (bytes, how) = (bytes.unwrap_or_default(), outcome.how_to_see());
    format!("{}: {before} -> {after} tokens{bytes}{remark}{how}", done.join(", "))
}
