//! The bill for calls: their tokens, their cost, and the cost that they would have had without a prompt cache.

use super::PriceList;
use crate::json::write::Members;
use crate::usage::Counts;
use std::collections::BTreeSet;

/// The sum over calls.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// The tokens of all calls.
    pub counts: Counts,
    calls: u64,
    cost: f64,
    uncached: f64,
    /// The models of the calls without a price.
    unpriced: BTreeSet<String>,
}

impl Bill {
    /// Returns the bill for calls, each with its model and its tokens.
    #[must_use]
    pub fn of<'c>(
        calls: impl IntoIterator<Item = &'c (String, Counts)>,
        prices: &PriceList,
    ) -> Bill {
        let mut bill = Bill::default();
        calls.into_iter().for_each(|(model, counts)| bill.add(model, counts, prices));
        bill
    }

    /// Adds a call.
    pub fn add(&mut self, model: &str, counts: &Counts, prices: &PriceList) {
        self.counts = self.counts + *counts;
        self.calls += 1;
        let both = prices
            .of(model)
            .and_then(|prices| Some((prices.cost(counts)?, prices.cost(&counts.without_cache())?)));
        match both {
            Some((cost, uncached)) => {
                self.cost += cost;
                self.uncached += uncached;
            }
            None => drop(self.unpriced.insert(model.to_owned())),
        }
    }

    /// Returns true if there are no calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// Returns the cost, and the cost without a cache; `None` if a call has no price.
    #[must_use]
    pub fn costs(&self) -> Option<(f64, f64)> {
        // Round to millionths, to hide the rounding errors of binary fractions.
        let rounded = |cost: f64| (cost * 1e6).round() / 1e6;
        self.unpriced.is_empty().then(|| (rounded(self.cost), rounded(self.uncached)))
    }

    /// Adds the tokens and the costs as members; the costs are null if a call has no price.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        let costs = self.costs();
        self.counts
            .add_to(members)
            .or_null(Members::decimal, "cost", costs.map(|costs| costs.0))
            .or_null(Members::decimal, "cost_without_cache", costs.map(|costs| costs.1))
    }

    /// Returns the costs as text, or which model has no price.
    #[must_use]
    pub fn amount(&self, prices: &PriceList) -> String {
        let Some((cost, uncached)) = self.costs() else {
            let name = |model: &String| match model.as_str() {
                "" => "a call without a model's name".to_owned(),
                name => format!("'{name}'"),
            };
            let names: Vec<String> = self.unpriced.iter().map(name).collect();
            return format!("cost unknown: no price for {}", names.join(", "));
        };
        match self.counts.cache_read + self.counts.cache_write {
            0 => prices.amount(cost),
            _ => format!("{}, without a cache {}", prices.amount(cost), prices.amount(uncached)),
        }
    }

    /// Returns the whole bill as a line of text.
    #[must_use]
    pub fn line(&self, prices: &PriceList) -> String {
        format!("{}; {}", self.counts, self.amount(prices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_40_a_bill_has_the_cost_without_a_cache_and_guesses_no_price() {
        let call = |model: &str, input, cache_read| {
            let counts = Counts { input, cache_read, output: 1000, ..Counts::default() };
            (model.to_owned(), counts)
        };
        let prices = PriceList::default();
        let known = [call("claude-haiku-4-5", 1000, 99_000), call("claude-haiku-4-5", 2000, 0)];
        let bill = Bill::of(&known, &prices);
        assert_eq!(bill.costs(), Some((0.0229, 0.112)));
        assert_eq!(
            bill.line(&prices),
            "3000 tokens in, 99000 from cache, 0 to cache, 2000 out; $0.0229, without a cache $0.1120"
        );
        assert_eq!(Bill::of(&known[1..], &prices).amount(&prices), "$0.0070");
        let unknown = Bill::of(&[known[0].clone(), call("mine", 1, 0)], &prices);
        assert_eq!(unknown.amount(&prices), "cost unknown: no price for 'mine'");
        let members = unknown.add_to(Members::new()).into_json();
        assert!(members.ends_with(r#""cost":null,"cost_without_cache":null}"#), "{members}");
        let written = Counts { cache_write: 100_000, ..Counts::default() };
        let written = Bill::of(&[("claude-haiku-4-5".to_owned(), written)], &prices);
        assert_eq!(written.amount(&prices), "$0.1250, without a cache $0.1000");
        assert!(Bill::of(&[], &prices).is_empty() && !unknown.is_empty());
    }
}
