//! Requests for summaries, as `claw-compact` and `claw-checkpoint` make them: the models, their limits, and the calls.

mod models;
pub mod writer;

use crate::cli::model::ModelArgs;
use crate::cli::now;
use crate::compact::attempts::Attempts;
use crate::compact::call_budget::CallBudget;
use crate::compact::{BYTES_PER_TOKEN, pieces};
use crate::estimate::{Budget, Gauge};
pub use models::{SummariserArgs, Via};
pub use writer::Writer;

/// The option for the command that calls the model.
#[derive(Clone, Debug, clap::Args)]
pub struct CommandArgs {
    /// Command that calls the model
    #[arg(long = "call", value_name = "COMMAND", env = "CLAW_CALL", default_value = "claw-call")]
    pub command: String,
}

/// A model that writes summaries.
#[derive(Clone, Debug)]
pub struct SummaryModel {
    /// Its name: `main`, `provider`, or as in `--via`.
    pub name: String,
    /// The provider, the address and the model.
    pub model: ModelArgs,
    /// The budget of its context window, if that is known.
    pub window: Option<Budget>,
    /// True for the summary that the model's server makes of its own.
    pub by_server: bool,
    /// The longest wait for its answer, in seconds.
    pub timeout: Option<u64>,
    /// The log of its attempts; `None` for the conversation's own model.
    pub attempts: Option<Attempts>,
}

impl SummaryModel {
    /// Returns the model of the conversation.
    #[must_use]
    pub fn main(model: &ModelArgs, window: Option<Budget>) -> SummaryModel {
        let (name, model) = ("main".to_owned(), model.clone());
        SummaryModel { name, model, window, by_server: false, timeout: None, attempts: None }
    }

    /// Returns the limits on its requests. The summary may have at most `most` tokens, and at most a quarter of the
    /// window. A limit in bytes also limits the tokens.
    #[must_use]
    pub fn limits(&self, gauge: Gauge, most: u64, calls: usize) -> pieces::PieceLimits {
        let summary = self.window.map_or(most, |budget| most.min(budget.window / 4));
        let room = self.window.map(|b| b.window.saturating_sub(summary + b.margin));
        // Without a clock, no limit is known.
        let bytes = self.model.byte_limit().ok().flatten();
        let by_bytes = bytes.map(|limit| limit.most() / BYTES_PER_TOKEN);
        let room = room.into_iter().chain(by_bytes).min();
        pieces::PieceLimits { gauge, room, summary, calls }
    }

    /// Logs whether an attempt has succeeded, for `--max-failures`. Reaching a limit of `call_budget` is not a failure of
    /// the model.
    ///
    /// # Errors
    /// Fails if the time cannot be determined.
    pub fn note_attempt(&self, is_good: bool, call_budget: &CallBudget) -> anyhow::Result<()> {
        if let Some(attempts) = &self.attempts
            && (is_good || !call_budget.is_over())
        {
            attempts.note(is_good, now()?);
        }
        Ok(())
    }
}
