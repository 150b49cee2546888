//! `--compact-when cost`: whether a cut pays before the next request.

use clawutils::cli::now;
use clawutils::compact::cut::{self, CutLimits, CutRule};
use clawutils::compact::{KEEP_USER, Task};
use clawutils::cost::cold;
use clawutils::cost::policy::kept_for_cost;
use clawutils::cost::rent::{AfterCut, Rates};
use clawutils::estimate::{Budget, Gauge, Request};
use clawutils::messages::Message;
use clawutils::provider::cache::CacheChoice;
use clawutils::usage::Prices;

/// What was paid for the old part since the last cut, and what a cut costs whatever it covers, both in the prices' currency.
#[derive(Clone, Copy, Debug)]
pub struct Rent {
    pub paid: f64,
    pub cut: f64,
}

impl Rent {
    /// Returns the rent of the conversation, the next request's included; `None` if no cut is possible, or a price is unknown.
    ///
    /// # Errors
    /// If the clock cannot be read.
    pub fn of(
        request: Request<'_, '_>,
        budget: Budget,
        prices: Prices,
        cache: CacheChoice,
    ) -> anyhow::Result<Option<Rent>> {
        let gauge = Gauge::new(request, None);
        let Some(after) = after_cut(request, gauge, budget) else { return Ok(None) };
        let sizes = requests(request, gauge, cache.lifetime().unwrap_or_default(), now()?);
        let rents = sizes.into_iter().map(|(tokens, is_cold)| {
            let rates = Rates::from(prices.rates(tokens)?);
            Some(after.rent(tokens, is_cold, rates) / 1e6)
        });
        let Some(paid) = rents.sum::<Option<f64>>() else { return Ok(None) };
        let cut = prices.rates(after.tokens).map(|rates| after.fixed_price(rates.into()) / 1e6);
        Ok(cut.map(|cut| Rent { paid, cut }))
    }

    /// Returns true if a cut pays.
    pub fn is_due(self) -> bool {
        self.paid > self.cut
    }
}

/// Returns the size of the request after the cut that `claw-compact --for-cost` makes, with a summary of the greatest length.
fn after_cut(request: Request<'_, '_>, gauge: Gauge, budget: Budget) -> Option<AfterCut> {
    let Request { messages, system, tools, model } = request;
    let task = Task {
        messages,
        system,
        tools,
        model,
        gauge,
        target: Some(budget.target()),
        keep_user: KEEP_USER,
        rule: CutRule::Tail(kept_for_cost(budget.window)),
        limits: CutLimits::default(),
    };
    let planned = task.plan()?;
    let kept = gauge.rests(request).get(planned.at).copied().unwrap_or_default();
    let opening = task.opening(&planned, "");
    let opening: u64 = opening.iter().map(|message| gauge.message(message)).sum();
    let summary = task.most_tokens(&planned);
    Some(AfterCut { tokens: kept + opening + summary, summary })
}

/// Returns the size of each request since the last cut, and of the next one, in tokens; and whether the cache had expired before
/// it.
fn requests(request: Request<'_, '_>, gauge: Gauge, lifetime: f64, now: f64) -> Vec<(u64, bool)> {
    let messages = request.messages;
    let rests = gauge.rests(request);
    let base = gauge.tokens(Request { messages: &[], ..request });
    let all = rests.first().copied().unwrap_or(base);
    let place = |message: &Message<'_>| message.meta.as_ref().map_or(0, |meta| meta.offset);
    let cut = match cut::leading_summary(messages) {
        0 => None,
        _ => messages.first().map(place),
    };
    let mut before = None;
    let mut sizes = Vec::new();
    for (at, time) in cold::replies(messages) {
        let is_cold = before.is_some_and(|before| time - before > lifetime);
        before = Some(time);
        // What a cut keeps was sent before it.
        if cut.is_none_or(|cut| place(&messages[at]) > cut) {
            sizes.push((all - (rests[at] - base), is_cold));
        }
    }
    sizes.push((all, before.is_some_and(|before| now - before > lifetime)));
    sizes
}
