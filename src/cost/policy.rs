//! Policies: when a session is cut and when its old results are shortened; and the least that any could have cost.

use super::rent::AfterCut;
use super::session::{Keep, Paid, Run, Step, Terms};

/// pi keeps this many tokens free (`reserveTokens` of its compaction settings, pi 1.5.2).
const PI_RESERVE: u64 = 16_384;
/// OpenClaw keeps at least this many tokens free (`reserveTokensFloor`, OpenClaw 2026.9).
const OPENCLAW_RESERVE: u64 = 20_000;
/// The newest tokens that pi and OpenClaw keep (`keepRecentTokens`), and that a cut for cost keeps.
pub const KEEP_RECENT: u64 = 20_000;

/// Returns how many of the newest tokens a cut for cost keeps in a window of this many tokens.
#[must_use]
pub fn kept_for_cost(window: u64) -> u64 {
    KEEP_RECENT.min(window / 10)
}

/// The share of the window, in percent, from which old results are shortened, as in OpenClaw.
pub const SHORTEN_FROM: u64 = 30;

/// When a session is cut, and when its old results are shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Policy {
    /// Never; the window is not kept
    None,
    /// Cut when the window less the reserve is full, keeping the newer half
    Window,
    /// Cut as pi does
    Pi,
    /// Cut as OpenClaw does, and shorten old results when the cache has expired
    Openclaw,
    /// As window, and shorten old results when the cache has expired
    Cold,
    /// Cut when reading the old part has cost as much as a cut, and shorten old results when the cache has expired
    Cost,
}

/// The window of a model, in tokens.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The whole window.
    pub tokens: u64,
    /// The request size from which the guard cuts.
    pub trigger: u64,
}

impl Policy {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Window => "window",
            Policy::Pi => "pi",
            Policy::Openclaw => "openclaw",
            Policy::Cold => "cold",
            Policy::Cost => "cost",
        }
    }

    /// Returns the terms of this policy in a window. The other members of `terms` stay.
    #[must_use]
    pub fn terms(self, terms: Terms, window: Window) -> Terms {
        let tail = Keep::Tail(kept_for_cost(window.tokens));
        let (limit, keep) = match self {
            Policy::None => (u64::MAX, Keep::Half),
            Policy::Window | Policy::Cold => (window.trigger, Keep::Half),
            Policy::Pi => (window.tokens.saturating_sub(PI_RESERVE), tail),
            Policy::Openclaw => (window.tokens.saturating_sub(OPENCLAW_RESERVE), tail),
            Policy::Cost => (window.trigger, tail),
        };
        Terms { limit, keep, shorten_from: window.tokens / 100 * SHORTEN_FROM, ..terms }
    }

    fn shortens(self) -> bool {
        matches!(self, Policy::Openclaw | Policy::Cold | Policy::Cost)
    }

    /// Returns what a session costs under this policy, with the [`Policy::terms`] of it.
    #[must_use]
    pub fn price(self, steps: &[Step], terms: &Terms) -> Paid {
        let mut run = Run::new(steps, terms);
        let mut rent = 0.0;
        while let Some(step) = run.next() {
            if self.shortens() && step.is_cold {
                run.shorten();
            }
            let after = run.after();
            rent += after.map_or(0.0, |after| after.rent(run.tokens, step.is_cold, run.rates()));
            let pays = |after: AfterCut| self == Policy::Cost && after.pays(rent, run.rates());
            if (run.tokens >= terms.limit || after.is_some_and(pays)) && run.cut() {
                rent = 0.0;
            }
            run.call();
        }
        run.paid
    }
}

/// Returns the least that the session could have cost under the terms of [`Policy::Cost`], if the future had been known: the
/// cuts are at the places with the least cost, by dynamic programming. Old results are shortened as under that policy.
#[must_use]
pub fn optimum(steps: &[Step], terms: &Terms) -> f64 {
    // The least cost of arriving just after a cut before each request.
    let mut best = vec![f64::INFINITY; steps.len()];
    let mut least = f64::INFINITY;
    for begin in 0..steps.len().max(1) {
        let (spent, run) = match begin {
            0 => (0.0, Some(Run::new(steps, terms))),
            _ => (best[begin], Run::after_cut(steps, terms, begin)),
        };
        let Some(mut run) = run.filter(|_| spent.is_finite()) else { continue };
        loop {
            let Some(step) = run.next() else {
                least = least.min(spent + run.paid.cost);
                break;
            };
            if step.is_cold {
                run.shorten();
            }
            let (at, mut other) = (run.at(), run.clone());
            if at > begin && other.cut() {
                best[at] = best[at].min(spent + other.paid.cost);
                if run.tokens >= terms.limit {
                    break;
                }
            }
            run.call();
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::prices::Prices;

    const PRICES: Prices = Prices {
        input: Some(3.0),
        cache_read: Some(0.3),
        cache_write: Some(3.75),
        output: Some(15.0),
        above: None,
    };
    const WINDOW: Window = Window { tokens: 200_000, trigger: 170_000 };

    fn terms(policy: Policy) -> Terms {
        let terms = Terms {
            prices: PRICES,
            base: 5000,
            summary: 2000,
            limit: 0,
            keep: Keep::Half,
            shorten_from: 0,
        };
        policy.terms(terms, WINDOW)
    }

    fn paid(policy: Policy, steps: &[Step]) -> Paid {
        policy.price(steps, &terms(policy))
    }

    #[test]
    fn audit_40_a_request_reads_what_the_previous_one_sent() {
        let step = |new, is_cold| Step { new, shortened: 0, output: 100, is_cold };
        let steps = [step(1000, true), step(500, false), step(500, true)];
        let paid = paid(Policy::None, &steps);
        assert_eq!((paid.counts.cache_read, paid.counts.cache_write), (6000, 6000 + 500 + 7000));
        assert_eq!((paid.largest, paid.cuts, paid.counts.output), (7000, 0, 300));
    }

    #[test]
    fn audit_40_the_window_is_kept_and_cost_cuts_earlier() {
        let step = Step { new: 2000, shortened: 1500, output: 200, is_cold: false };
        let steps = vec![step; 400];
        let [none, window, cost] =
            [Policy::None, Policy::Window, Policy::Cost].map(|policy| paid(policy, &steps));
        assert!(none.largest == 805_000 && window.largest < 170_000 + 2000);
        assert!(cost.cuts > window.cuts && cost.cost < 0.7 * window.cost, "{window:?} {cost:?}");
        assert!(window.cost < none.cost);
        let least = optimum(&steps, &terms(Policy::Cost));
        assert!(least <= cost.cost && cost.cost <= 2.0 * least, "{least} {cost:?}");
    }

    #[test]
    fn audit_40_the_optimum_is_the_least_of_all_choices_of_cuts() {
        let steps: Vec<Step> = (0..7)
            .map(|at| Step { new: 4000 + at * 900, shortened: 0, output: 300, is_cold: at == 5 })
            .collect();
        for limit in [24_000, 60_000] {
            let keep = Keep::Tail(6000);
            let terms = Terms { limit, keep, summary: 200, ..terms(Policy::Cost) };
            let cost = |choice: u32| {
                let mut run = Run::new(&steps, &terms);
                while run.next().is_some() {
                    if choice >> run.at() & 1 == 1 || run.tokens >= limit {
                        run.cut();
                    }
                    run.call();
                }
                run.paid.cost
            };
            let least = (0..1 << steps.len()).map(cost).fold(f64::INFINITY, f64::min);
            assert!((optimum(&steps, &terms) - least).abs() < 1e-9, "{limit} {least}");
            assert!(limit == 24_000 || least < cost(0), "{limit} {least}");
        }
    }

    #[test]
    fn each_policy_has_its_limit_and_the_part_that_it_keeps() {
        for (tokens, shorten_from, kept) in [(200_000, 60_000, 20_000), (32_000, 9600, 3200)] {
            let window = Window { tokens, trigger: tokens - 5000 };
            for (policy, limit, keep) in [
                (Policy::None, u64::MAX, Keep::Half),
                (Policy::Window, tokens - 5000, Keep::Half),
                (Policy::Pi, tokens - 16_384, Keep::Tail(kept)),
                (Policy::Openclaw, tokens - 20_000, Keep::Tail(kept)),
                (Policy::Cold, tokens - 5000, Keep::Half),
                (Policy::Cost, tokens - 5000, Keep::Tail(kept)),
            ] {
                let terms = policy.terms(terms(policy), window);
                assert_eq!(
                    (terms.limit, terms.keep, terms.shorten_from),
                    (limit, keep, shorten_from)
                );
            }
        }
    }

    #[test]
    fn audit_40_old_results_are_shortened_only_when_the_cache_has_expired() {
        let mut steps = vec![Step { new: 3000, shortened: 1500, output: 200, is_cold: false }; 40];
        assert_eq!(paid(Policy::Cold, &steps), paid(Policy::Window, &steps));
        steps[30].is_cold = true;
        let (cold, window) = (paid(Policy::Cold, &steps), paid(Policy::Window, &steps));
        assert_eq!((cold.shortenings, window.shortenings), (1, 0));
        assert!(cold.cost < window.cost);
    }
}
