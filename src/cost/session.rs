//! A session as a series of requests with their sizes, and what it costs under cuts and shortened results.
//!
//! This is a model: sizes are estimates, each summary is as long as [`Terms::summary`], and what the model would have answered
//! otherwise is unknown. All policies and the optimum are priced by the same rules:
//!
//! - A request reads from the cache what the previous one sent, unless the cache expired or the prefix changed; it writes the
//!   rest to the cache.
//! - A cut sends the covered part to the model as ordinary input, which answers with the summary. The next request then begins
//!   with the system prompt and the tools, which are still cached, the summary, and the kept part.
//! - Shortening costs nothing but the prefix from the first shortened result on.

use super::rent::{AfterCut, Rates};
use crate::usage::{Counts, Prices};

/// The newest replies whose results are not shortened, as in OpenClaw.
const PROTECTED_REPLIES: usize = 3;

/// A request of a session, and its answer. Sizes are in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What the request adds to the previous one: its answer, results and prompts.
    pub new: u64,
    /// What shortening old results saves of this.
    pub shortened: u64,
    /// The answer.
    pub output: u64,
    /// True if the previous request was so long ago that the cache has expired.
    pub is_cold: bool,
}

/// The part of a conversation that a cut keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newer half of the requests since the last cut.
    Half,
    /// The newest requests that together have at least this many tokens.
    Tail(u64),
}

/// The rules for a session.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The prices of the model.
    pub prices: Prices,
    /// The system prompt and the tools, in tokens.
    pub base: u64,
    /// A summary, in tokens.
    pub summary: u64,
    /// The request size in tokens from which a cut is necessary.
    pub limit: u64,
    /// The part that a cut keeps.
    pub keep: Keep,
    /// The request size in tokens from which old results are shortened when the cache has expired.
    pub shorten_from: u64,
}

impl Terms {
    /// Returns the rates for a prompt of this many tokens; a model without prices is free.
    fn rates(&self, prompt: u64) -> Rates {
        self.prices.rates(prompt).unwrap_or_default().into()
    }
}

/// What a session cost. Tokens are sums over all calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paid {
    /// The tokens of all requests and answers.
    pub counts: Counts,
    /// The cost.
    pub cost: f64,
    /// The number of cuts.
    pub cuts: u64,
    /// The number of times that old results were shortened.
    pub shortenings: u64,
    /// The size of the largest request.
    pub largest: u64,
}

/// A session up to a request.
#[derive(Clone, Debug)]
pub struct Run<'s> {
    steps: &'s [Step],
    terms: &'s Terms,
    /// The next request.
    at: usize,
    /// The first request whose text is kept; 0 before the first cut.
    from: usize,
    has_summary: bool,
    /// Results of the requests before this one are shortened.
    shortened_to: usize,
    /// The size of the next request.
    pub tokens: u64,
    /// The part of it that the previous request sent.
    cached: u64,
    /// The payments so far.
    pub paid: Paid,
}

impl<'s> Run<'s> {
    /// Begins a session.
    #[must_use]
    pub fn new(steps: &'s [Step], terms: &'s Terms) -> Run<'s> {
        let tokens = terms.base + steps.first().map_or(0, |step| step.new);
        Run {
            steps,
            terms,
            at: 0,
            from: 0,
            has_summary: false,
            shortened_to: 0,
            tokens,
            cached: 0,
            paid: Paid::default(),
        }
    }

    /// Begins a session just after a cut before request `at`, with nothing paid. The cut is not made if it would cover nothing.
    #[must_use]
    pub fn after_cut(steps: &'s [Step], terms: &'s Terms, at: usize) -> Option<Run<'s>> {
        let mut run = Run { at, ..Run::new(steps, terms) };
        run.tokens = run.size_to(at + 1);
        run.cached = terms.base;
        run.cut().then_some(Run { paid: Paid::default(), ..run })
    }

    /// Returns the next request; `None` at the end.
    #[must_use]
    pub fn next(&self) -> Option<Step> {
        self.steps.get(self.at).copied()
    }

    /// Returns the index of the next request.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the rates for the next request.
    #[must_use]
    pub fn rates(&self) -> Rates {
        self.terms.rates(self.tokens)
    }

    /// Makes the next request.
    pub fn call(&mut self) {
        let Some(step) = self.next() else { return };
        let cache_read = if step.is_cold { 0 } else { self.cached.min(self.tokens) };
        let cache_write = self.tokens - cache_read;
        let output = step.output;
        self.pay(Counts { cache_read, cache_write, output, ..Counts::default() });
        self.paid.largest = self.paid.largest.max(self.tokens);
        self.cached = self.tokens;
        self.at += 1;
        self.tokens += self.next().map_or(0, |next| next.new);
    }

    /// Returns the size of the next request after a cut before it; `None` if a cut would cover nothing.
    #[must_use]
    pub fn after(&self) -> Option<AfterCut> {
        let (Terms { base, summary, .. }, from) = (*self.terms, self.kept_from());
        let kept: u64 = self.steps[from..=self.at].iter().map(|step| step.new).sum();
        let earlier = if self.has_summary { summary } else { 0 };
        let after = AfterCut { tokens: base + summary + kept, base, summary, earlier };
        (from > self.from && after.tokens < self.tokens).then_some(after)
    }

    /// Makes a cut before the next request; returns false if it would cover nothing. The kept part is whole again.
    pub fn cut(&mut self) -> bool {
        let Some(after) = self.after() else { return false };
        let from = self.kept_from();
        let earlier = if self.has_summary { self.terms.summary } else { 0 };
        let covered = earlier + (self.from..from).map(|at| self.part(at)).sum::<u64>();
        self.pay(Counts { input: covered, output: self.terms.summary, ..Counts::default() });
        self.paid.cuts += 1;
        (self.from, self.shortened_to, self.has_summary) = (from, from, true);
        self.tokens = after.tokens;
        self.cached = self.cached.min(self.terms.base);
        true
    }

    /// Shortens old results before the next request, if it is large enough.
    pub fn shorten(&mut self) {
        if self.tokens < self.terms.shorten_from {
            return;
        }
        let to = self.at.saturating_sub(PROTECTED_REPLIES).max(self.shortened_to);
        let saved: u64 = self.steps[self.shortened_to..to].iter().map(|step| step.shortened).sum();
        if saved > 0 {
            self.paid.shortenings += 1;
            self.cached = self.cached.min(self.size_to(self.shortened_to));
            self.tokens -= saved;
        }
        self.shortened_to = to;
    }

    fn pay(&mut self, counts: Counts) {
        let Rates { input, cache_read, cache_write, output } = self.terms.rates(counts.prompt());
        let prices = [input, cache_read, cache_write, output];
        let tokens = [counts.input, counts.cache_read, counts.cache_write, counts.output];
        let sum: f64 = tokens.iter().zip(prices).map(|(n, price)| *n as f64 * price).sum();
        self.paid.cost += sum / 1e6;
        self.paid.counts = self.paid.counts + counts;
    }

    /// Returns the tokens of what a request added, as they are sent now.
    fn part(&self, at: usize) -> u64 {
        let Step { new, shortened, .. } = self.steps[at];
        if at < self.shortened_to { new - shortened } else { new }
    }

    /// Returns the size of the next request up to what request `end` added, exclusively.
    fn size_to(&self, end: usize) -> u64 {
        let summary = if self.has_summary { self.terms.summary } else { 0 };
        self.terms.base + summary + (self.from..end).map(|at| self.part(at)).sum::<u64>()
    }

    /// Returns the first request whose text a cut before the next request would keep.
    fn kept_from(&self) -> usize {
        match self.terms.keep {
            Keep::Half => self.from + (self.at + 1 - self.from) / 2,
            Keep::Tail(least) => {
                let mut kept = 0;
                let enough = |at: &usize| {
                    kept += self.steps[*at].new;
                    kept >= least
                };
                (self.from..=self.at).rev().find(enough).unwrap_or(self.from)
            }
        }
    }
}
