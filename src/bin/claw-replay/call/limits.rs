//! Limits on the tokens and the cost of a run, over all its calls. All threads share them.

use crate::run::lock;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::LimitArgs;
use clawutils::cost::PriceList;
use clawutils::usage::Counts;
use std::sync::Mutex;

/// The limits, and how much of them the calls so far have used.
#[derive(Debug)]
pub struct RunLimits {
    max_total: Option<u64>,
    max_cost: Option<f64>,
    prices: PriceList,
    model: String,
    used: Mutex<Used>,
}

/// The sums over all calls, or what is reserved for one until its counts are known. Calls whose counts are not known, or not
/// known yet, are included with their estimates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    tokens: u64,
    cost: f64,
}

impl RunLimits {
    /// Reads the limits and the prices. `called` is the model that is called.
    ///
    /// # Errors
    /// Fails as [`LimitArgs::prices`] does.
    pub fn new(args: &LimitArgs, called: &ModelArgs) -> anyhow::Result<RunLimits> {
        let LimitArgs { max_total, max_cost, .. } = *args;
        let prices = args.prices(called)?;
        let model = called.model().unwrap_or_default();
        Ok(RunLimits { max_total, max_cost, prices, model, used: Mutex::new(Used::default()) })
    }

    /// Returns the prices alone.
    pub fn without_limit(self) -> RunLimits {
        RunLimits { max_total: None, max_cost: None, ..self }
    }

    /// Returns true if there is a limit.
    pub fn is_limited(&self) -> bool {
        self.max_total.is_some() || self.max_cost.is_some()
    }

    /// Returns the cost of a reply; `None` if it is not known.
    pub fn cost(&self, model: Option<&str>, counts: &Counts) -> Option<f64> {
        let named = model.and_then(|model| self.prices.cost(model, counts));
        named.or_else(|| self.prices.cost(&self.model, counts))
    }

    /// Reserves `prompt`, the estimated tokens of a prompt, and their cost.
    ///
    /// # Errors
    /// Returns the reason if a limit does not allow the call.
    pub fn reserve(&self, prompt: u64) -> Result<Used, String> {
        let counts = Counts { input: prompt, ..Counts::default() };
        let more = Used { tokens: prompt, cost: self.cost(None, &counts).unwrap_or_default() };
        let mut used = lock(&self.used);
        let (tokens, cost) = (used.tokens.saturating_add(more.tokens), used.cost + more.cost);
        if let Some(most) = self.max_total.filter(|most| tokens > *most) {
            return Err(format!(
                "not called: this prompt would bring the total to {tokens} tokens, above --max-total {most}"
            ));
        }
        if let Some(most) = self.max_cost.filter(|most| cost > *most) {
            return Err(format!(
                "not called: this prompt would bring the cost to {cost:.6}, above --max-cost {most}"
            ));
        }
        *used = Used { tokens, cost };
        Ok(more)
    }

    /// Replaces the estimate of a call with the counts of its reply. Without counts, the estimate remains.
    pub fn settle(&self, reserved: Used, model: Option<&str>, counts: Option<Counts>) {
        let Some(counts) = counts else { return };
        let mut used = lock(&self.used);
        used.tokens = (used.tokens - reserved.tokens).saturating_add(counts.all());
        used.cost += self.cost(model, &counts).unwrap_or_default() - reserved.cost;
    }

    /// Releases the reservation of a call that was not made.
    pub fn release(&self, reserved: Used) {
        let mut used = lock(&self.used);
        used.tokens -= reserved.tokens;
        used.cost -= reserved.cost;
    }
}
