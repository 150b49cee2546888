//! Asking a model for a text that stands for a part of a conversation, as `claw-compact` and
//! `claw-checkpoint` do: which model, at what cost, in how many calls.

mod models;
pub mod writer;

use crate::cli::model::ModelArgs;
use crate::compact::attempts::Attempts;
use crate::compact::pieces;
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

/// A model that is asked for summaries.
#[derive(Clone, Debug)]
pub struct SummaryModel {
    /// How it is named: `main`, or as in `--via`.
    pub name: String,
    /// Where and which it is.
    pub model: ModelArgs,
    /// Its window (tokens) and what of it is left free, if it is known.
    pub window: Option<Budget>,
    /// The longest wait for it, in seconds.
    pub timeout: Option<u64>,
    /// How its failures are counted; those of the conversation's own model are not.
    pub attempts: Option<Attempts>,
}

impl SummaryModel {
    /// The model of the conversation.
    #[must_use]
    pub fn main(model: &ModelArgs, window: Option<Budget>) -> SummaryModel {
        let (name, model) = ("main".to_owned(), model.clone());
        SummaryModel { name, model, window, timeout: None, attempts: None }
    }

    /// What its requests may cost. `most` is the longest that its text may be (tokens); of a small window it
    /// gets a quarter.
    #[must_use]
    pub fn limits(&self, gauge: Gauge, most: u64, calls: usize) -> pieces::PieceLimits {
        let summary = self.window.map_or(most, |budget| most.min(budget.window / 4));
        let room = self.window.map(|b| b.window.saturating_sub(summary + b.margin));
        pieces::PieceLimits { gauge, room, summary, calls }
    }
}
