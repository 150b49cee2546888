//! `--compact-when cost`: whether a cut pays before the next request.

use clawutils::cli::now;
use clawutils::compact::cut::{self, CutLimits, CutRule};
use clawutils::compact::{KEEP_USER, Task};
use clawutils::cost::policy::kept_for_cost;
use clawutils::cost::rent::{AfterCut, Rates};
use clawutils::cost::{PriceList, cold};
use clawutils::estimate::{Budget, Gauge, Request};
use clawutils::messages::Message;
use clawutils::provider::cache::CacheChoice;
use clawutils::record::content::Role;
use clawutils::usage::prices::hour_write;

/// The cost of reading the old part since the last cut, and that of a cut whatever it covers, in the currency of the prices.
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
        prices: &PriceList,
        cache: CacheChoice,
    ) -> anyhow::Result<Option<Rent>> {
        let gauge = Gauge::new(request, None);
        let Some(after) = after_cut(request, gauge, budget) else { return Ok(None) };
        let own = request.model.map_or("", |model| model.name);
        let now = now()?;
        let is_long = cache == CacheChoice::Hour || cold::has_long_pause(request.messages, now);
        let rates = |model: &str, tokens: u64| {
            let rates = Rates::from(prices.of(model).or_else(|| prices.of(own))?.rates(tokens)?);
            let Rates { input, cache_write, .. } = rates;
            Some(match cache {
                // Without a cache, the whole prompt is input each time.
                CacheChoice::Off => Rates { cache_read: input, cache_write: input, ..rates },
                _ if is_long => Rates { cache_write: hour_write(input, cache_write), ..rates },
                _ => rates,
            })
        };
        let sent = requests(request, gauge, cache.lifetime(), now);
        let rents = sent.iter().map(|sent| {
            let rates = rates(sent.model.unwrap_or(own), sent.tokens)?;
            Some(after.rent(sent.tokens, sent.is_cold, rates) / 1e6)
        });
        let Some(paid) = rents.sum::<Option<f64>>() else { return Ok(None) };
        let cut = rates(own, after.tokens).map(|rates| after.fixed_price(rates) / 1e6);
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
    let base = gauge.tokens(Request { messages: &[], ..request });
    let earlier = if planned.earlier.is_some() { summary } else { 0 };
    Some(AfterCut { tokens: kept + opening + summary, base, summary, earlier })
}

/// A request since the last cut, or the next one.
struct SentRequest<'m> {
    /// The model that answered it.
    model: Option<&'m str>,
    /// Its size in tokens.
    tokens: u64,
    /// True if the cache had expired before it.
    is_cold: bool,
}

/// Returns the requests since the last cut, and the next one.
fn requests<'m>(
    request: Request<'m, '_>,
    gauge: Gauge,
    lifetime: Option<f64>,
    now: f64,
) -> Vec<SentRequest<'m>> {
    let messages = request.messages;
    let rests = gauge.rests(request);
    let base = gauge.tokens(Request { messages: &[], ..request });
    let all = rests.first().copied().unwrap_or(base);
    let place = |message: &Message<'_>| message.meta.as_ref().map_or(0, |meta| meta.offset);
    let cut = match cut::leading_summary(messages) {
        0 => None,
        _ => messages.first().map(place),
    };
    // The end of what the cache holds, after the newest reply whose time is known.
    let mut until: Option<f64> = None;
    let expired = |until: Option<f64>, now: Option<f64>| {
        until.zip(now).is_some_and(|(until, now)| now > until)
    };
    let mut sent = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.role != Role::Assistant {
            continue;
        }
        let time = cold::time_of(message);
        let is_cold = expired(until, time);
        let held = time.zip(lifetime).map(|(time, asked)| time + cold::lifetime_of(message, asked));
        until = held.or(until);
        // What a cut keeps was sent before it, and so was its summary.
        if cut.is_none_or(|cut| place(message) > cut) {
            let model = message.meta.as_ref().and_then(|meta| meta.model.as_deref());
            sent.push(SentRequest { model, tokens: all - (rests[at] - base), is_cold });
        }
    }
    sent.push(SentRequest { model: None, tokens: all, is_cold: expired(until, Some(now)) });
    sent
}
