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
use crate::usage::Counts;
use crate::usage::prices::Prices;

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

    /// Begins a session just after a cut before request `at`, with nothing paid; `None` if the cut would not make it smaller.
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

    /// Returns the size of the next request after a cut before it; `None` if a cut would not make it smaller.
    #[must_use]
    pub fn after(&self) -> Option<AfterCut> {
        let Terms { base, summary, .. } = *self.terms;
        let kept: u64 = self.steps[self.kept_from()..=self.at].iter().map(|step| step.new).sum();
        let earlier = if self.has_summary { summary } else { 0 };
        let after = AfterCut { tokens: base + summary + kept, base, summary, earlier };
        (after.tokens < self.tokens).then_some(after)
    }

    /// Makes a cut before the next request; returns false if it would not make it smaller. The kept part is whole again.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        prices: Prices {
            input: Some(3.0),
            cache_read: Some(0.3),
            cache_write: Some(3.75),
            output: Some(15.0),
            above: None,
        },
        base: 1000,
        summary: 500,
        limit: 0,
        keep: Keep::Half,
        shorten_from: 5600,
    };
    const STEPS: [Step; 8] = [Step { new: 1000, shortened: 400, output: 100, is_cold: false }; 8];

    #[test]
    fn each_request_is_paid_by_the_part_that_is_still_cached() {
        let [call, cut, shorten]: [fn(&mut Run<'_>); 3] =
            [|run| run.call(), |run| assert!(run.cut()), |run| run.shorten()];
        let mut run = Run::new(&STEPS, &TERMS);
        assert_eq!(run.tokens, 2000);
        // The size of the next request afterwards, and the tokens paid: as input, read from the cache and written to it.
        for (number, (act, size, input, read, write)) in [
            (call, 3000, 0, 0, 2000),
            (call, 4000, 0, 2000, 1000),
            (call, 5000, 0, 3000, 1000),
            (shorten, 5000, 0, 0, 0),
            (call, 6000, 0, 4000, 1000),
            // The oldest result, because the three newest replies are protected. All that follows it is written again.
            (shorten, 5600, 0, 0, 0),
            (call, 6600, 0, 1000, 4600),
            (shorten, 6200, 0, 0, 0),
            // Two shortened results, one that is not, and the answer; only the system prompt stays cached.
            (cut, 4500, 2200, 0, 0),
            (call, 5500, 0, 1000, 3500),
            (shorten, 5500, 0, 0, 0),
            (call, 6500, 0, 4500, 1000),
            (shorten, 6100, 0, 0, 0),
            (call, 6100, 0, 1500, 4600),
        ]
        .into_iter()
        .enumerate()
        {
            let before = run.paid.counts;
            act(&mut run);
            let paid = run.paid.counts;
            assert_eq!(run.tokens, size, "{number}");
            assert_eq!(
                (paid.input, paid.cache_read, paid.cache_write),
                (before.input + input, before.cache_read + read, before.cache_write + write),
                "{number}"
            );
        }
        let Paid { counts, cost, cuts, shortenings, largest } = run.paid;
        assert_eq!((cuts, shortenings, largest, counts.output), (1, 3, 6100, 800 + 500));
        assert!((cost - 0.101_325).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn old_results_are_shortened_from_a_size_on() {
        for (shorten_from, shortenings, size) in [(5999, 1, 5600), (6000, 1, 5600), (6001, 0, 6000)]
        {
            let terms = Terms { shorten_from, ..TERMS };
            let mut run = Run::new(&STEPS, &terms);
            (0..4).for_each(|_| run.call());
            run.shorten();
            assert_eq!((run.paid.shortenings, run.tokens), (shortenings, size), "{shorten_from}");
        }
        let short = STEPS.map(|step| Step { shortened: 0, ..step });
        let mut run = Run::new(&short, &TERMS);
        (0..6).for_each(|_| run.call());
        run.shorten();
        assert_eq!((run.paid.shortenings, run.tokens), (0, 8000));
    }

    #[test]
    fn a_cut_keeps_the_newer_half_or_a_tail_and_must_make_the_request_smaller() {
        // The next request is the fourth, with 5000 tokens; the first may be kept, or one of the later ones.
        for (keep, summary, size) in [
            (Keep::Half, 500, Some(3500)),
            (Keep::Half, 1999, Some(4999)),
            (Keep::Half, 2000, None),
            (Keep::Tail(1000), 500, Some(2500)),
            (Keep::Tail(1001), 500, Some(3500)),
            (Keep::Tail(4000), 0, None),
            (Keep::Tail(9000), 0, None),
        ] {
            let terms = Terms { keep, summary, ..TERMS };
            let mut run = Run::new(&STEPS, &terms);
            (0..3).for_each(|_| run.call());
            assert_eq!(run.after().map(|after| after.tokens), size, "{keep:?} {summary}");
            assert_eq!(run.cut(), size.is_some(), "{keep:?} {summary}");
            assert_eq!(run.tokens, size.unwrap_or(5000), "{keep:?} {summary}");
            let just_after = Run::after_cut(&STEPS, &terms, 3);
            assert_eq!(just_after.map(|run| run.tokens), size, "{keep:?} {summary}");
        }
    }
}
