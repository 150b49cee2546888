//! Estimates that are repeated while a request changes: a [`Gauge`] for the whole, a [`Weight`] for each message, and a
//! [`Tally`] that follows single changes.

use super::counted::{self, Anchor};
use super::weigh::{Weigher, tokens};
use super::{Estimate, Method, Model, Request, Unused, scale_of, size};
use crate::messages::Message;
use crate::record::content::Block;
use crate::record::scale::Scale;

/// An estimator for a request and for changed versions of it. The provider's count of the request, if there is one,
/// calibrates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    weigher: Weigher,
    /// The factor for estimates where no count applies; `None` if no provider has counted.
    scale: Option<Scale>,
    /// True if a refusal counted the whole request. Older counts are then ignored.
    is_from_refusal: bool,
    unused: Option<Unused>,
}

impl Gauge {
    /// Returns a gauge for `request`. It is calibrated by `actual`, the count in a refusal of this request; else by
    /// the provider's count of a part of it; else by the scale that the first message stores, if any.
    #[must_use]
    pub fn new(request: Request<'_, '_>, actual: Option<u64>) -> Gauge {
        let estimate = Estimate::of(request, Method::Script);
        let weigher = Weigher::new(request, Method::Script);
        let by_count = |count| Scale::new(count, estimate.unmeasured, weigher.basis());
        let measured = (estimate.measured > 0).then(|| by_count(estimate.tokens));
        let scale = actual.map(by_count).or(measured).or(estimate.scale);
        let unused = estimate.unused.filter(|_| actual.is_none());
        Gauge { weigher, scale, is_from_refusal: actual.is_some(), unused }
    }

    /// Returns the newest ignored count of the request, if there is one.
    #[must_use]
    pub fn unused(&self) -> Option<Unused> {
        self.unused
    }

    /// Returns the number of tokens in a request: as in its [`Estimate`], unless a refusal gave a better count.
    #[must_use]
    pub fn tokens(&self, request: Request<'_, '_>) -> u64 {
        self.tally(request).tokens()
    }

    /// Starts a running count of a request that is changed block by block.
    #[must_use]
    pub fn tally(&self, request: Request<'_, '_>) -> Tally {
        let (system, tools) = self.weigher.system_and_tools(request);
        let base = system + tools;
        let weights: Vec<u64> =
            request.messages.iter().map(|message| self.weigh(message).0).collect();
        let anchor =
            if self.is_from_refusal { None } else { counted::find(&request, base, &weights).0 };
        Tally { gauge: *self, weight: base + weights.iter().sum::<u64>(), anchor }
    }

    /// Returns, for each message, the tokens of the request without the messages before it.
    #[must_use]
    pub fn rests(&self, request: Request<'_, '_>) -> Vec<u64> {
        let mut rest = self.tally(Request { messages: &[], ..request });
        let mut rests: Vec<u64> = Vec::with_capacity(request.messages.len());
        for message in request.messages.iter().rev() {
            rest.weight += self.weigh(message).0;
            rests.push(rest.tokens());
        }
        rests.reverse();
        rests
    }

    /// Returns the number of tokens in one message.
    #[must_use]
    pub fn message(&self, message: &Message<'_>) -> u64 {
        self.scaled(self.weigh(message).tokens())
    }

    /// Returns the number of tokens in one block.
    #[must_use]
    pub fn block(&self, block: &Block<'_>) -> u64 {
        self.scaled(tokens(self.weigher.block(block)))
    }

    /// Returns the number of tokens in `text`.
    #[must_use]
    pub fn text(&self, text: &str) -> u64 {
        self.scaled(tokens(self.weigher.text(text)))
    }

    /// Weighs a message, to add it to a [`Tally`].
    #[must_use]
    pub fn weigh(&self, message: &Message<'_>) -> Weight {
        Weight(self.weigher.whole(message))
    }

    /// Applies the scale to an estimate.
    #[must_use]
    pub fn scaled(&self, ours: u64) -> u64 {
        self.scale.unwrap_or_default().apply(ours)
    }

    /// Returns the scale to use for messages that no count covers any more.
    #[must_use]
    pub fn scale(&self) -> Option<Scale> {
        self.scale
    }
}

/// The weight of a message in an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(u64);

impl Weight {
    /// Weighs a message for a model.
    #[must_use]
    pub fn of(message: &Message<'_>, model: Option<Model<'_>>) -> Weight {
        let request = Request { model, ..Request::default() };
        Weight(Weigher::new(request, Method::Script).whole(message))
    }

    /// Returns the estimate of the message.
    #[must_use]
    pub fn tokens(self) -> u64 {
        tokens(self.0)
    }
}

/// A running count of a request. Only the changed blocks are weighed again.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    gauge: Gauge,
    weight: u64,
    anchor: Option<Anchor>,
}

impl Tally {
    /// Returns the number of tokens in the whole request.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        size(self.anchor, self.gauge.scale.unwrap_or_default(), self.weight)
    }

    /// Returns the current factor of the estimates; `None` while a count applies, or if there never was one.
    #[must_use]
    pub fn scale(&self) -> Option<Scale> {
        self.gauge.scale.filter(|_| self.anchor.is_none())
    }

    /// Returns true if `new` costs less than `old`.
    #[must_use]
    pub fn is_smaller(&self, new: &Block<'_>, old: &Block<'_>) -> bool {
        self.gauge.weigher.block(new) < self.gauge.weigher.block(old)
    }

    /// Adds a message at the end of the request.
    pub fn add(&mut self, message: Weight) {
        self.weight += message.0;
    }

    /// Replaces a block in the message with this index. A count that covers the message no longer applies.
    pub fn replace(&mut self, message: usize, old: &Block<'_>, new: &Block<'_>) {
        self.anchor = self.anchor.filter(|anchor| anchor.covered <= message);
        let weigher = self.gauge.weigher;
        self.weight = (self.weight + weigher.block(new)).saturating_sub(weigher.block(old));
    }
}

/// Returns the number of tokens in a conversation, given the outlines of its messages and their weights for `model`. The
/// result is the same as that of [`Estimate::of`].
#[must_use]
pub fn outlined(outlines: &[Message<'_>], weights: &[Weight], model: Option<Model<'_>>) -> u64 {
    let request = Request { messages: outlines, model, ..Request::default() };
    let weights: Vec<u64> = weights.iter().map(|weight| weight.0).collect();
    let (anchor, _) = counted::find(&request, 0, &weights);
    let basis = Weigher::new(request, Method::Script).basis();
    let scale = scale_of(outlines, basis).filter(|_| anchor.is_none());
    size(anchor, scale.unwrap_or_default(), weights.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn a_count_in_a_refusal_calibrates_the_gauge() {
        let messages =
            messages::read("t", br#"{"role":"user","content":"some words here"}"#).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        let ours = Gauge::new(request, None).tokens(request);
        assert_eq!(Gauge::new(request, Some(ours * 2)).tokens(request), ours * 2);
    }
}
