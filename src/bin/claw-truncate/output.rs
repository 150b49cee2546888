//! The output and the diagnostics of `claw-truncate`.

use anyhow::Context;
use clawutils::cli::{Log, Output, StageOutcome};
use clawutils::estimate::Budget;
use clawutils::exit::{Error, Exit};
use clawutils::messages::{self, Message};
use clawutils::truncate;
use std::io::Write;

/// Writes the messages or the truncation records.
///
/// # Errors
/// Fails with 74 or 141 if standard output cannot be written.
pub fn write_truncated(
    messages: &[Message<'_>],
    outcome: &truncate::TruncateOutcome,
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

/// Reports the outcome: skipped if nothing was changed, failed if the request is still over its budget, else applied.
///
/// `must_gain` is true after a refused request, and for records. It is then an error to change nothing, even if the
/// estimate is within the budget, because the provider may count more tokens.
///
/// # Errors
/// Fails with 5 if the request is over its budget, if the gain is less than `--min-gain`, or if nothing was changed
/// with `must_gain`.
pub fn report_truncated(
    log: Log,
    outcome: &truncate::TruncateOutcome,
    budget: Budget,
    must_gain: bool,
) -> anyhow::Result<Exit> {
    let (after, prompt) = (outcome.after, budget.prompt());
    let is_over = after > prompt;
    let how = match outcome.is_unchanged() {
        true => StageOutcome::Skipped,
        false if is_over => StageOutcome::Failed,
        false => StageOutcome::Applied,
    };
    let text = match how {
        StageOutcome::Skipped if outcome.too_small_gain.is_some() => {
            let gain = outcome.too_small_gain.unwrap_or_default();
            format!("nothing changed: would save {gain} of {after} tokens, less than --min-gain")
        }
        StageOutcome::Skipped if is_over || must_gain => {
            format!("no result can be shortened: {after} tokens, budget {prompt}")
        }
        StageOutcome::Skipped => format!("nothing to shorten: {after} tokens, budget {prompt}"),
        StageOutcome::Failed => {
            format!("{}, still over the budget of {prompt}", what_was_done(outcome))
        }
        _ => what_was_done(outcome),
    };
    let members = how.members(outcome.before, after);
    if is_over || outcome.too_small_gain.is_some() || must_gain && how == StageOutcome::Skipped {
        return Err(Error::new(Exit::NoGain, text).with(members).into());
    }
    log.outcome(&text, &members);
    Ok(Exit::Done)
}

fn what_was_done(outcome: &truncate::TruncateOutcome) -> String {
    let truncate::TruncateOutcome { before, after, shortened, left_out, .. } = outcome;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let texts = format!("shortened {shortened} result{}", plural(*shortened));
    let (s, also) = (plural(*left_out), if *shortened == 0 { "" } else { ", " });
    let media = format!("{also}left out {left_out} image{s} or document{s}");
    let texts = if *shortened == 0 { "" } else { &texts };
    let media = if *left_out == 0 { "" } else { &media };
    format!("{texts}{media}: {before} -> {after} tokens")
}
