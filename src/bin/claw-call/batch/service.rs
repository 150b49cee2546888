//! Asks a batch service, and reads its answers.

use crate::asking::{Asking, NoAnswer, TextAnswer};
use clawutils::json::Object;
use clawutils::provider::Failure;
use clawutils::provider::batch::{Batch, BatchService};
use clawutils::provider::question::Question;

/// The longest answer about batches that is read, in bytes: a page of a list.
pub(super) const MAX_ANSWER: usize = 16 << 20;
/// The longest answer with all results of a batch, in bytes, from a service that gives them at once.
const MAX_RESULTS: usize = 512 << 20;

/// A batch service at an endpoint.
pub(super) struct Service<'b> {
    pub(super) asking: Asking<'b>,
    pub(super) batches: &'b dyn BatchService,
}

impl Service<'_> {
    /// Returns the answer to a question, or the failure that it is.
    pub(super) fn text(&self, question: &Question) -> Result<TextAnswer, Failure> {
        let most = if self.batches.has_lines() { MAX_ANSWER } else { MAX_RESULTS };
        let answer = self.asking.answer(question, most).map_err(failed)?;
        match answer.is_success() {
            true => Ok(answer),
            false => {
                Err(self.unusable(&answer).unwrap_or_else(|_| Failure::unreachable("no time")))
            }
        }
    }

    /// Returns the failure that an answer is.
    pub(super) fn unusable(&self, answer: &TextAnswer) -> anyhow::Result<Failure> {
        answer.failure(&self.asking.rows, "the answer does not describe a batch")
    }

    /// Reads the description of a batch.
    pub(super) fn described(&self, answer: &TextAnswer) -> Option<Batch> {
        self.batches.read(&Object::parse(answer.text.trim()).ok()?)
    }
}

/// Returns the failure that a missing answer is.
pub(super) fn failed(why: NoAnswer) -> Failure {
    match why {
        NoAnswer::Late => Failure::unreachable("no complete answer in time"),
        NoAnswer::TooLong(most) => Failure {
            retryable: false,
            ..Failure::unreachable(format!("the answer is longer than {most} bytes"))
        },
        NoAnswer::Failed(failure) => *failure,
    }
}
