//! `--cost`: the tokens and the cost of the calls in the selected turns.

use crate::args::ShowArgs;
use clawutils::cli::{Operands, Output};
use clawutils::cost::Bill;
use clawutils::exit::Exit;
use clawutils::input::lines::Lines;
use clawutils::messages::range::{self, RebuildOptions};
use clawutils::printable::printable;
use clawutils::show::ShownPart;
use clawutils::usage::Calls;

/// Writes the bill; nothing if the calls have no counts.
///
/// # Errors
/// As for showing transcripts.
pub fn run(args: &ShowArgs, operands: &Operands) -> anyhow::Result<Exit> {
    let (inputs, prices) = (operands.transcripts_of(&args.dialect)?, args.prices()?);
    args.turn.map(|turn| ShownPart::of_turn(&inputs, turn)).transpose()?;
    let limit_turns = args.limit_turns.or(args.turn.map(|_| 1));
    let part = RebuildOptions { to_turn: args.turn, limit_turns, ..RebuildOptions::default() };
    let mut lines = Lines::new(&inputs, range::find(&inputs, &part)?);
    let mut calls = Calls::default();
    while let Some(batch) = lines.batch()? {
        batch.flatten().for_each(|line| calls.take(&line.object, &line.place));
    }
    let bill = Bill::of(calls.each(), &prices);
    let line = printable(&bill.line(&prices)).into_owned();
    let line = if args.has_color() { format!("\x1b[2m{line}\x1b[0m") } else { line };
    Output::lines((!bill.is_empty()).then_some(line))
}
