//! Rent or buy: the moment at which a cut pays.
//!
//! A long conversation pays *rent*: each request reads again what a cut would have removed. A cut *buys* a shorter prefix. Nobody
//! knows how long the conversation goes on, so the rule looks back: **cut when the rent since the last cut, the coming request's
//! included, exceeds the fixed price of a cut**. The rent of a request is what its tokens beyond the size after a cut cost: the
//! price of cached input, or that of writing to the cache if the cache has expired. The fixed price is what a cut costs whatever
//! it covers: writing the new prefix to the cache, the tokens of the summary, and reading the earlier summary. The text that the
//! summary request reads for the first time is not part of it.
//!
//! **No conversation costs more than twice the least that was possible** by cuts alone. Let *i ≤ w* be the prices of input and of
//! writing to the cache, and compare with a planner who knows the future and makes the same cuts at the best places. Divide the
//! conversation into phases, which our cuts end. In a phase let *U* be what both must pay: for answers, for writing the *n* new
//! tokens once, and for sending what a cut leaves; *A* our rent; *F* the fixed price. Our phase costs *U + A + F + i·n*, because
//! each new token is covered once. The rule gives *A ≤ F*, and *i·n ≤ w·n ≤ U*.
//!
//! 1. The planner cuts in this phase. Its phase costs at least *U + F*, and ours at most *U + F + F + U*, twice as much.
//! 2. The planner does not. Its context is at least as long as ours throughout, because no context is shorter than that after a
//!    cut, so it pays our rent *A*, and also that of the request at which we cut instead. Both together exceed *F*. We pay at most
//!    *U + A + F + U ≤ 2·(U + A + that request's rent)*. The rent of that request belongs to this phase alone: in the next phase,
//!    where our request reads only what the cut left, the bound needs the rent of the later requests.
//!
//! The last phase ends without a cut of ours, and costs *U + A* with *A ≤ F*: the planner pays *U + A*, or *U + F* at least. A cut
//! that the window forces ends a phase, too: the planner's context is as long as ours, so the planner must cut, which is case 1. ∎
//!
//! The rule needs no forecast, so a wrong one cannot make it worse. `tests/property/cuts.rs` compares it with the optimum. Three
//! things are outside the proof, and only tried there or not at all: results that are shortened between cuts, prices that rise
//! with the length of the prompt, and cuts that keep different amounts. What the model reads again because a cut removed it is new
//! text like any other, and neither side knows it before.

/// The prices of a request's tokens, per token of any unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Input that is neither read from a cache nor written to one.
    pub input: f64,
    /// Input that is read from a cache.
    pub cache_read: f64,
    /// Input that is written to a cache.
    pub cache_write: f64,
    /// Output.
    pub output: f64,
}

impl From<[f64; 4]> for Rates {
    fn from([input, cache_read, cache_write, output]: [f64; 4]) -> Rates {
        Rates { input, cache_read, cache_write, output }
    }
}

/// A request after a cut. Sizes are in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterCut {
    /// The whole request.
    pub tokens: u64,
    /// The system prompt and the tools in it, which stay cached.
    pub base: u64,
    /// The summary in it.
    pub summary: u64,
    /// The earlier summary, which the summary request reads; 0 if there is none.
    pub earlier: u64,
}

impl AfterCut {
    /// Returns the price of a cut whatever it covers.
    #[must_use]
    pub fn fixed_price(self, rates: Rates) -> f64 {
        let AfterCut { tokens, base, summary, earlier } = self;
        let written = tokens.saturating_sub(base) as f64 * rates.cache_write;
        written + summary as f64 * rates.output + earlier as f64 * rates.input
    }

    /// Returns the rent of a request with this many tokens; `is_cold` is true if the cache has expired before it.
    #[must_use]
    pub fn rent(self, tokens: u64, is_cold: bool, rates: Rates) -> f64 {
        let price = if is_cold { rates.cache_write } else { rates.cache_read };
        tokens.saturating_sub(self.tokens) as f64 * price
    }

    /// Returns true if a cut pays; `rent` is that of all requests since the last cut and of the next one.
    #[must_use]
    pub fn pays(self, rent: f64, rates: Rates) -> bool {
        rent > self.fixed_price(rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_40_a_cut_pays_when_the_rent_exceeds_its_fixed_price() {
        let rates = Rates::from([3.0, 0.3, 3.75, 15.0]);
        let after = AfterCut { tokens: 30_000, base: 10_000, summary: 2000, earlier: 2000 };
        assert_eq!(after.fixed_price(rates), 111_000.0);
        assert_eq!(after.rent(130_000, false, rates), 30_000.0);
        assert_eq!(after.rent(130_000, true, rates), 375_000.0);
        assert_eq!(after.rent(20_000, true, rates), 0.0);
        assert!(after.pays(111_001.0, rates) && !after.pays(111_000.0, rates));
    }
}
