//! Reads the results of a batch that has ended, and stores them.

use crate::asking::TextAnswer;
use crate::batch::service::{MAX_ANSWER, Service, failed};
use crate::batch::store::{Store, answered, none};
use clawutils::json::Object;
use clawutils::provider::Failure;
use clawutils::provider::batch::Outcome;
use clawutils::provider::batch::ledger::Entry;
use clawutils::provider::question::Question;
use clawutils::provider::reading::MAX_BODY;

/// The results of a batch that are being stored.
pub(super) struct Results<'s, 'b> {
    pub(super) service: &'s Service<'b>,
    pub(super) store: &'s Store,
    pub(super) entry: &'s Entry,
    /// True if a result belongs to another batch.
    pub(super) is_other: bool,
    /// True if something is not a result.
    pub(super) is_unreadable: bool,
    /// The error, if a result could not be stored.
    pub(super) error: Option<anyhow::Error>,
}

impl Results<'_, '_> {
    /// Reads the results in one answer. An error in storing them is kept in `error`.
    pub(super) fn read(&mut self, question: &Question) -> Result<(), Failure> {
        let service = self.service;
        if !service.batches.has_lines() {
            let answer = service.text(question)?;
            if let Ok(object) = Object::parse(answer.text.trim()) {
                let results = service.batches.inline(&object);
                // Without keys, the order counts, but only if no result is missing.
                let is_whole = results.len() == self.entry.requests.len();
                let mut results = results.into_iter().enumerate();
                while let Some((number, result)) = results.next()
                    && self.take(result, if is_whole { number } else { usize::MAX })
                {
                }
            }
            return self.check();
        }
        let (mut line, mut refusal, mut is_long) = (Vec::new(), Vec::new(), false);
        let head = service.asking.stream(question, service.asking.until, &mut |status, piece| {
            if !(200..300).contains(&status) {
                refusal.extend_from_slice(piece);
                return refusal.len() <= MAX_ANSWER;
            }
            let mut parts = piece.split(|byte| *byte == b'\n').peekable();
            let mut goes_on = true;
            while let Some(part) = parts.next() {
                line.extend_from_slice(part);
                is_long |= line.len() > MAX_BODY;
                if parts.peek().is_some() {
                    goes_on = goes_on && self.take(&String::from_utf8_lossy(&line), usize::MAX);
                    line.clear();
                }
            }
            goes_on && !is_long
        });
        let head = head.map_err(failed)?;
        if !head.is_success() {
            let text = String::from_utf8_lossy(&refusal).into_owned();
            let answer = TextAnswer { text, ..head };
            let failure = service.unusable(&answer);
            return Err(failure.unwrap_or_else(|_| Failure::unreachable("no time")));
        }
        if is_long {
            let why = format!("a result is longer than {MAX_BODY} bytes");
            return Err(Failure { retryable: false, ..Failure::unreachable(why) });
        }
        if self.error.is_none() {
            self.take(&String::from_utf8_lossy(&line), usize::MAX);
        }
        self.check()
    }

    /// Checks that all results could be read. One that was cut off is read again, because it is paid for.
    fn check(&self) -> Result<(), Failure> {
        match self.is_unreadable {
            true => Err(Failure::unreachable("a result cannot be read")),
            false => Ok(()),
        }
    }

    /// Stores a result. `number` is that of the request if the result does not name it. Returns false if no further results are
    /// wanted.
    fn take(&mut self, result: &str, number: usize) -> bool {
        let service = self.service;
        let read = |text: &str| service.batches.result(&Object::parse(text).ok()?);
        let Some((id, outcome)) = read(result.trim()) else {
            self.is_unreadable |= !result.trim().is_empty();
            return true;
        };
        let own = |id: &str| id.strip_prefix(&self.entry.name)?.strip_prefix('-')?.parse().ok();
        let number = match id.as_deref().map(own) {
            None => number,
            Some(Some(number)) => number,
            Some(None) => {
                self.is_other = self.entry.is_found;
                return !self.is_other;
            }
        };
        let Some(request) = self.entry.requests.get(number) else { return true };
        let stored = match outcome {
            Outcome::Answer(status, body) => self.store.answer(request, answered(status, body)),
            Outcome::None(why) => self.store.answer(request, none(why)),
        };
        self.error = stored.err();
        self.error.is_none()
    }
}
