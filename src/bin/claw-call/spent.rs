//! Limits on the tokens and the cost of a session, checked before anything is sent.

use crate::prices::Prices;
use clawutils::cli::options::LimitArgs;
use clawutils::cli::{open_transcript, variable};
use clawutils::exit::{Exit, fail};
use clawutils::input::lines::Lines;
use clawutils::provider::{ModelRequest, estimated};
use clawutils::usage::{Calls, Counts};
use std::path::PathBuf;

/// The options for the limits, and for the transcripts whose calls count towards them.
#[derive(Clone, Debug, clap::Args)]
pub struct SpentArgs {
    /// The limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Transcript whose calls count towards the limits; may be repeated (default: CLAW_SESSION)
    #[arg(long, value_name = "FILE")]
    pub spent: Vec<PathBuf>,
}

impl SpentArgs {
    /// Checks that the earlier calls and the prompt of this call stay within the limits.
    ///
    /// # Errors
    /// Status 5 if a limit is exceeded, 74 if a transcript cannot be read, 78 if a model has no price.
    pub(super) fn check(
        &self,
        request: &ModelRequest<'_, '_>,
        prices: &Prices,
    ) -> anyhow::Result<()> {
        if self.limits.max_total.is_none() && self.limits.max_cost.is_none() {
            return Ok(());
        }
        let prompt = Counts { input: estimated::prompt(request), ..Counts::default() };
        let calls = self.calls()?;
        let this = (request.model.to_owned(), prompt);
        let all = || calls.each().chain([&this]);
        if let Some(most) = self.limits.max_total {
            let total = all().fold(0u64, |sum, (_, it)| sum.saturating_add(it.all()));
            if total > most {
                let text = format!(
                    "not called: this prompt would bring the total to {total} tokens, above --max-total {most}; raise the limit or shorten the session"
                );
                return fail(Exit::NoGain, text);
            }
        }
        let Some(most) = self.limits.max_cost else { return Ok(()) };
        let mut total = 0.0;
        for (model, counts) in all() {
            total += prices.cost(model, counts)?;
        }
        if total > most {
            let text = format!(
                "not called: this prompt would bring the cost to {total:.6}, above --max-cost {most}; raise the limit or shorten the session"
            );
            return fail(Exit::NoGain, text);
        }
        Ok(())
    }

    /// Returns the calls in the transcripts that the options, or else `CLAW_SESSION`, name.
    fn calls(&self) -> anyhow::Result<Calls> {
        let mut calls = Calls::default();
        let of_turn = variable("CLAW_SESSION").map(PathBuf::from).filter(|_| self.spent.is_empty());
        for path in self.spent.iter().chain(&of_turn) {
            let input = open_transcript(path)?;
            let mut lines = Lines::of(&input);
            while let Some(batch) = lines.batch()? {
                batch.flatten().for_each(|line| calls.take(&line.object, &line.place));
            }
        }
        Ok(calls)
    }
}
