//! Limits on the tokens and the cost of batches, checked before anything is sent.

use crate::batch::store::{Place, Store};
use crate::prices::Prices;
use clawutils::cli::options::LimitArgs;
use clawutils::exit::{Error, Exit, fail};
use clawutils::provider::Reply;
use clawutils::provider::cassette::{Cassette, Exchange};
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::reading::Reading;
use clawutils::provider::refusal::Rows;
use clawutils::usage::Counts;

/// Checks that the limits allow the answers so far, and the largest answers to all requests without one.
pub(super) fn check(
    (limits, prices): (&LimitArgs, &Prices),
    store: &Store,
    endpoint: &Endpoint,
    queued: &[Place],
) -> anyhow::Result<()> {
    if limits.max_total.is_none() && limits.max_cost.is_none() {
        return Ok(());
    }
    let mut all = answered(store, endpoint)?;
    for (dir, request) in store.waiting(true)?.iter().chain(queued) {
        let estimate = store.of(dir).estimate(request);
        let why = || format!("a request in '{dir}' has no estimate; queue it again");
        all.push(estimate.ok_or_else(|| Error::new(Exit::Data, why()))?);
    }
    let tokens = all.iter().fold(0u64, |sum, (_, counts)| sum.saturating_add(counts.all()));
    let advice = "raise the limit or lower --max-tokens";
    if let Some(most) = limits.max_total.filter(|most| tokens > *most) {
        let text = format!(
            "not sent: the batch could bring the total to {tokens} tokens, above --max-total {most}; {advice}"
        );
        return fail(Exit::NoGain, text);
    }
    let Some(most) = limits.max_cost else { return Ok(()) };
    let mut cost = 0.0;
    for (model, counts) in &all {
        cost += prices.cost(model, counts)?;
    }
    if cost > most {
        let text = format!(
            "not sent: the batch could bring the cost to {cost:.6}, above --max-cost {most}; {advice}"
        );
        return fail(Exit::NoGain, text);
    }
    Ok(())
}

/// Returns the models and the counts of all answers in the wanted directories.
fn answered(store: &Store, endpoint: &Endpoint) -> anyhow::Result<Vec<(String, Counts)>> {
    let mut all = Vec::new();
    for dir in &store.dirs {
        let dir = store.dir.join(dir);
        if !dir.exists() {
            continue;
        }
        for exchange in Cassette::open(&dir)?.all()? {
            let Some(reply) = reply(endpoint, exchange) else { continue };
            let counts = reply.usage.as_deref().and_then(Counts::read);
            let model = reply.model.unwrap_or_default();
            all.extend(counts.map(|counts| (model, counts)));
        }
    }
    Ok(all)
}

/// Reads a recorded reply.
fn reply(endpoint: &Endpoint, exchange: &Exchange) -> Option<Reply> {
    let (mut show, rows) = (|_: &str| {}, Rows::default());
    let mut reading = Reading::new(endpoint.protocol, &rows, &mut show);
    let sent = exchange.play(&mut reading);
    reading.finish(0.0, sent).ok()
}
