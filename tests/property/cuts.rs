//! Cuts for cost: no session costs more than twice the least that was possible, and that least is the one that trying all cuts
//! finds. The prices of a session with given cuts are computed here independently, from the rules in the documentation of
//! `cost::session`.

use super::any::Law;
use super::choices::Choices;
use clawutils::cost::policy::{Policy, Window, optimum};
use clawutils::cost::session::{Keep, Step, Terms};
use clawutils::usage::prices::Prices;

/// Returns a number that is small more often than it is large.
fn size(choices: &mut Choices, most: usize) -> u64 {
    let limit = 1 + choices.below(most);
    (1 + choices.below(limit)) as u64
}

fn session(choices: &mut Choices, most: usize, are_shortened: bool) -> Vec<Step> {
    let cold = choices.of_these(&[2, 5, 30, 1000]);
    let step = |choices: &mut Choices| {
        let new = size(choices, 6000);
        let shortened = if are_shortened { new * choices.below(90) as u64 / 100 } else { 0 };
        Step { new, shortened, output: size(choices, 500), is_cold: choices.one_in(cold) }
    };
    (0..1 + choices.below(most)).map(|_| step(choices)).collect()
}

fn terms(choices: &mut Choices) -> Terms {
    let input = choices.of_these(&[1.0, 3.0, 10.0]);
    let prices = Prices {
        input: Some(input),
        cache_read: Some(input * choices.of_these(&[0.05, 0.1, 0.25, 0.5, 1.0])),
        cache_write: Some(input * choices.of_these(&[1.0, 1.25, 2.0])),
        output: Some(input * choices.of_these(&[1.0, 4.0, 5.0, 10.0])),
        above: None,
    };
    let window = choices.of_these(&[30_000, 100_000, 1_000_000]);
    let (base, summary) = (size(choices, 40_000), size(choices, 3000));
    let terms = Terms { prices, base, summary, limit: 0, keep: Keep::Half, shorten_from: 0 };
    Policy::Cost.terms(terms, Window { tokens: window, trigger: window * 85 / 100 })
}

/// Returns the cost of a session that is cut before the requests in the set `cuts`, a bit for each; `None` if a cut covers
/// nothing or the limit is exceeded although a cut was possible.
fn cost(steps: &[Step], terms: &Terms, cuts: u32) -> Option<f64> {
    let Keep::Tail(keep) = terms.keep else { panic!("a cut for cost keeps a tail") };
    let [input, read, write, output] = terms.prices.all()?;
    let sum = |range: std::ops::Range<usize>| steps[range].iter().map(|step| step.new).sum::<u64>();
    let (mut total, mut first, mut summary, mut sent) = (0.0, 0, 0, 0);
    for (at, step) in steps.iter().enumerate() {
        let kept = (first..=at).rev().find(|from| sum(*from..at + 1) >= keep).unwrap_or(first);
        let size = |from: usize, summary: u64| terms.base + summary + sum(from..at + 1);
        let can_cut = kept > first && size(kept, terms.summary) < size(first, summary);
        if cuts & (1 << at) != 0 {
            if !can_cut || at == 0 {
                return None;
            }
            total += (summary + sum(first..kept)) as f64 * input + terms.summary as f64 * output;
            (first, summary, sent) = (kept, terms.summary, sent.min(terms.base));
        } else if can_cut && size(first, summary) >= terms.limit {
            return None;
        }
        let tokens = size(first, summary);
        let from_cache = if step.is_cold { 0 } else { sent.min(tokens) };
        total += from_cache as f64 * read + (tokens - from_cache) as f64 * write;
        total += step.output as f64 * output;
        sent = tokens;
    }
    Some(total / 1e6)
}

/// Checks that the optimum of a short session is the least cost over all sets of cuts.
///
/// # Errors
/// Reports the session and both costs.
pub fn the_optimum_is_the_least(seed: u64) -> Law {
    let mut choices = Choices::seeded(seed);
    let (steps, mut terms) = (session(&mut choices, 10, false), terms(&mut choices));
    terms.keep = Keep::Tail(size(&mut choices, 4000));
    terms.limit = choices.of_these(&[8000, 20_000, u64::MAX]);
    let all = (0..1u32 << steps.len()).filter_map(|cuts| cost(&steps, &terms, cuts));
    let (least, found) = (all.fold(f64::INFINITY, f64::min), optimum(&steps, &terms));
    match (least - found).abs() <= 1e-9 * least.max(1e-9) {
        true => Ok(()),
        false => Err(format!("least {least}, optimum {found}: {terms:?} {steps:?}")),
    }
}

/// Checks that cutting for cost costs at most twice the optimum.
///
/// # Errors
/// Reports the session and both costs.
pub fn cost_is_at_most_twice_the_optimum(seed: u64) -> Law {
    let mut choices = Choices::seeded(seed);
    let (steps, terms) = (session(&mut choices, 200, seed.is_multiple_of(2)), terms(&mut choices));
    let (paid, least) = (Policy::Cost.price(&steps, &terms).cost, optimum(&steps, &terms));
    match paid <= 2.0 * least + 1e-9 {
        true => Ok(()),
        false => Err(format!("{} times the optimum of {least}: {terms:?} {steps:?}", paid / least)),
    }
}
