//! `--policy`: what each policy of cutting and shortening would have cost.

use clawutils::cost::cold::LIFETIMES;
use clawutils::cost::policy::{Policy, Window, optimum};
use clawutils::cost::session::{Keep, Paid, Step, Terms};
use clawutils::estimate::{Budget, Weight};
use clawutils::json::write::Members;
use clawutils::messages::Message;
use clawutils::record::content::Role;
use clawutils::truncate::aged;
use clawutils::usage::prices::Prices;

/// The session as a series of requests, which is made while the messages are read.
#[derive(Debug, Default)]
pub struct Steps {
    steps: Vec<Step>,
    /// What the next request adds to the last one.
    next: Step,
    /// The time of the last reply.
    time: Option<f64>,
}

impl Steps {
    /// Adds a message with this weight.
    pub fn take(&mut self, message: &Message<'_>, weight: Weight) {
        if message.role == Role::Assistant {
            let time = message.meta.as_ref().and_then(|meta| meta.time);
            let pause = time.zip(self.time).map(|(now, before)| now - before);
            let is_cold = pause.is_some_and(|pause| pause > LIFETIMES[0]);
            let step = std::mem::take(&mut self.next);
            self.steps.push(Step { output: weight.tokens(), is_cold, ..step });
            self.time = time.or(self.time);
        }
        self.next.new += weight.tokens();
        self.next.shortened += aged::saving(message, weight.tokens());
    }
}

/// The result of the policies in one window.
#[derive(Debug)]
pub struct Priced {
    policies: Vec<(Policy, Paid)>,
    /// The least cost that was possible; `None` without prices.
    optimum: Option<f64>,
}

impl Priced {
    /// Prices the policies. `base` is the size of the system prompt and the tools in tokens.
    pub fn new(
        policies: &[Policy],
        steps: &Steps,
        base: u64,
        prices: Option<Prices>,
        budget: Budget,
    ) -> Priced {
        let window = Window { tokens: budget.window, trigger: budget.trigger() };
        let terms = |policy: Policy| {
            let summary = clawutils::compact::summary_tokens(Some(budget.target()));
            let prices = prices.unwrap_or_default();
            let (limit, keep, shorten_from) = (0, Keep::Half, 0);
            policy.terms(Terms { prices, base, summary, limit, keep, shorten_from }, window)
        };
        let price = |policy: &Policy| (*policy, policy.price(&steps.steps, &terms(*policy)));
        Priced {
            policies: policies.iter().map(price).collect(),
            optimum: prices.map(|_| optimum(&steps.steps, &terms(Policy::Cost))),
        }
    }

    /// Adds the numbers of each policy, and the optimum.
    pub fn add_to(&self, members: Members) -> Members {
        // Round to millionths, to hide the rounding errors of binary fractions.
        let rounded = |cost: f64| (cost * 1e6).round() / 1e6;
        let optimum = self.optimum.filter(|cost| cost.is_finite());
        members.or_null(Members::decimal, "optimum", optimum.map(rounded)).objects(
            "policies",
            &self.policies,
            |it, (policy, paid)| {
                let cost = self.optimum.map(|_| rounded(paid.cost));
                let ratio = optimum.filter(|least| *least > 0.0).map(|least| paid.cost / least);
                let ratio = ratio.map(|ratio| (ratio * 1000.0).round() / 1000.0);
                let it = it.string("policy", policy.name()).or_null(Members::decimal, "cost", cost);
                let it = it.or_null(Members::decimal, "of_optimum", ratio);
                let it = it.number("cuts", paid.cuts).number("shortenings", paid.shortenings);
                paid.counts.add_to(it.number("largest", paid.largest))
            },
        )
    }
}
