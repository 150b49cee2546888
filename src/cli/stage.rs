//! What `claw-truncate` writes and says.

use crate::cli::{Log, Output};
use crate::estimate::Budget;
use crate::exit::{Exit, fail};
use crate::messages::{self, Message};
use crate::truncate::Outcome;
use anyhow::Context;
use std::io::Write;

/// Writes the messages, or the records that shorten them.
///
/// # Errors
/// 74 when standard output cannot be written to.
pub fn write_truncated(
    messages: &[Message<'_>],
    outcome: &Outcome,
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

/// Says what was gained. With `must_gain` (a request was refused, or records are wanted) it is not
/// enough that the request fits by estimate.
///
/// # Errors
/// 5 when nothing was gained that had to be, or the budget was not reached.
pub fn report_truncated(
    log: Log,
    outcome: &Outcome,
    budget: Budget,
    must_gain: bool,
) -> anyhow::Result<Exit> {
    let Outcome { before, after, shortened, .. } = outcome;
    let prompt = budget.prompt();
    if *shortened == 0 {
        return match *after > prompt || must_gain {
            true => fail(
                Exit::NoGain,
                format!("no result can be shortened: {after} tokens, budget {prompt}"),
            ),
            false => Ok(Exit::Done),
        };
    }
    let results = if *shortened == 1 { "result" } else { "results" };
    let text = format!("shortened {shortened} {results}: {before} -> {after} tokens");
    if *after > prompt {
        return fail(Exit::NoGain, format!("{text}, still over the budget of {prompt}"));
    }
    let members = format!(r#""outcome":"applied","before":{before},"after":{after}"#);
    log.outcome(&text, &members);
    Ok(Exit::Done)
}
