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

/// The aim of a run.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// To leave out a block that the provider may have refused.
    Block,
    /// To have at most this many bytes, after a refusal because of bytes.
    Bytes(u64),
    /// To keep the budget in tokens and the limit in bytes, as far as they are known.
    Limits(Option<Budget>, Option<u64>),
}

impl Aim {
    /// Returns the size that misses the aim, for a diagnostic.
    fn missed(self, outcome: &TruncateOutcome) -> Option<String> {
        let bytes = outcome.bytes.map(|(_, after)| after);
        let is_over = |most: &u64| bytes.is_some_and(|bytes| bytes > *most);
        match self {
            Aim::Block => None,
            Aim::Bytes(target) => Some(format!("still over the target of {target} bytes"))
                .filter(|_| is_over(&target)),
            Aim::Limits(budget, most) => {
                let budget = budget.map(|budget| budget.prompt());
                let over = budget.filter(|budget| outcome.after > *budget);
                let tokens = over.map(|budget| format!("still over the budget of {budget}"));
                let most = most.filter(is_over);
                tokens.or_else(|| Some(format!("still over the limit of {} bytes", most?)))
            }
        }
    }

    /// Describes an unchanged request, with its size and the aim.
    fn unchanged(self, outcome: &TruncateOutcome, is_error: bool) -> String {
        let bytes = outcome.bytes.map_or(0, |(_, after)| after);
        let none = if is_error { "no result can be shortened" } else { "nothing to shorten" };
        match self {
            Aim::Block => "nothing that the provider may have refused can be left out".to_owned(),
            Aim::Bytes(target) => format!(
                "nothing can be left out or shortened to save bytes: {bytes} bytes, target {target}"
            ),
            Aim::Limits(Some(budget), _) => {
                format!("{none}: {} tokens, budget {}", outcome.after, budget.prompt())
            }
            Aim::Limits(None, Some(most)) => format!("{none}: {bytes} bytes, limit {most}"),
            Aim::Limits(None, None) => none.to_owned(),
        }
    }
}

/// Reports the outcome: skipped if nothing was changed, failed if the request still misses the aim, else applied.
///
/// `must_gain` is true after a refused request, and for records. It is then an error to change nothing, even if the
/// estimate is within the budget, because the provider may count more tokens.
///
/// # Errors
/// Fails with 5 if the request misses the aim, if the gain is less than `--min-gain`, or if nothing was changed
/// with `must_gain`.
pub fn report_truncated(
    log: Log,
    outcome: &TruncateOutcome,
    aim: Aim,
    must_gain: bool,
) -> anyhow::Result<Exit> {
    let missed = aim.missed(outcome);
    let how = match outcome.is_unchanged() {
        true => StageOutcome::Skipped,
        false if missed.is_some() => StageOutcome::Failed,
        false => StageOutcome::Applied,
    };
    let text = match (how, &missed) {
        (StageOutcome::Skipped, _) if outcome.too_small_gain.is_some() => {
            let (gain, after) = (outcome.too_small_gain.unwrap_or_default(), outcome.after);
            format!("nothing changed: would save {gain} of {after} tokens, less than --min-gain")
        }
        (StageOutcome::Skipped, missed) => aim.unchanged(outcome, missed.is_some() || must_gain),
        (StageOutcome::Failed, Some(why)) => what_was_done(outcome, &format!(", {why}")),
        _ => what_was_done(outcome, ""),
    };
    let mut members = how.members(outcome.before, outcome.after);
    if let Some((before, after)) = outcome.bytes {
        members = members.number("bytes_before", before).number("bytes_after", after);
    }
    let is_short = outcome.too_small_gain.is_some() || must_gain && how == StageOutcome::Skipped;
    if missed.is_some() || is_short {
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
