//! Formats an estimate as text and as JSON.

use crate::estimate::Unused;
use crate::estimate::{Budget, Estimate};
use crate::json::write::Members;
use crate::messages::Message;

/// The width of the context bar in characters.
const CELLS: u64 = 30;

/// Returns claw0's context bar: thirty cells, a percentage with one decimal, the tokens used, and the window.
/// The bar stays within its thirty cells; the percentage can exceed 100.
#[must_use]
pub fn bar(estimate: &Estimate, budget: Budget) -> String {
    let (used, window) = (estimate.tokens, budget.window);
    let filled = (used.saturating_mul(CELLS) / window).min(CELLS);
    let percent = used as f64 * 100.0 / window as f64;
    format!(
        "[{}{}] {percent:.1}%  ~{} / {} tokens",
        "#".repeat(filled as usize),
        "-".repeat((CELLS - filled) as usize),
        grouped(used),
        grouped(window)
    )
}

/// Returns the tokens as text, for a prompt whose window is not known.
#[must_use]
pub fn without_window(estimate: &Estimate) -> String {
    let used = grouped(estimate.tokens);
    format!("~{used} tokens; the window is not known: set it with --window or CLAW_WINDOW")
}

/// Returns the name and the tokens of each kind of content. The tokens of the whole prompt are divided among
/// the kinds in proportion to their estimates.
fn kinds(estimate: &Estimate) -> [(&'static str, u64); 8] {
    let kinds = estimate.kinds;
    let mut kinds = [
        ("system", estimate.system),
        ("tools", estimate.tools),
        ("text", kinds.text),
        ("calls", kinds.calls),
        ("results", kinds.results),
        ("thinking", kinds.thinking),
        ("media", kinds.media),
        ("other", kinds.other),
    ];
    share_out(estimate.tokens, &mut kinds);
    kinds
}

/// Scales `parts` so that they add up to `total`. The estimates do not: each is rounded up, and a provider's
/// count replaces some of them in the total. Rounding applies to the cumulative sums, so that each part
/// differs by at most one from its share. If all parts are empty, the last one gets everything.
fn share_out(total: u64, parts: &mut [(&'static str, u64)]) {
    let sum: u128 = parts.iter().map(|(_, tokens)| u128::from(*tokens)).sum();
    let (mut before, mut shared) = (0, 0);
    for (_, tokens) in parts.iter_mut() {
        before += u128::from(*tokens);
        let boundary = (u128::from(total) * before + sum / 2).checked_div(sum).unwrap_or(0);
        let boundary = u64::try_from(boundary).unwrap_or(total);
        (*tokens, shared) = (boundary - shared, boundary);
    }
    if let Some((_, last)) = parts.last_mut() {
        *last += total - shared;
    }
}

/// Returns a line for each kind of content that the prompt has and, if the window is known, one for the tokens that are
/// left before compaction.
#[must_use]
pub fn parts(estimate: &Estimate, budget: Option<Budget>) -> Vec<String> {
    let left = budget
        .map(|budget| ("left before compaction", budget.trigger().saturating_sub(estimate.tokens)));
    let there = kinds(estimate).into_iter().filter(|(_, tokens)| *tokens > 0).chain(left);
    there.map(|(name, tokens)| format!("{:>11}  {name}", grouped(tokens))).collect()
}

/// Formats a number with commas between groups of three digits.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns the error for a prompt that does not fit, with the arithmetic.
#[must_use]
pub fn too_large(estimate: &Estimate, budget: Budget) -> String {
    format!(
        "does not fit: {} tokens, window {} - reserve {} = {}",
        estimate.tokens,
        budget.window,
        budget.reserve,
        budget.trigger()
    )
}

/// Returns the breakdown as one JSON object: measured and estimated tokens, tokens by kind, the window if it
/// is known, and each message.
#[must_use]
pub fn json(estimate: &Estimate, messages: &[Message<'_>], budget: Option<Budget>) -> String {
    let mut numbers = vec![
        ("tokens", estimate.tokens),
        ("measured", estimate.measured),
        ("measured_messages", estimate.measured_messages as u64),
        ("estimated", estimate.tokens - estimate.measured),
    ];
    numbers.extend(kinds(estimate));
    numbers.push(("bytes", estimate.bytes));
    numbers.extend(estimate.unused.map(|unused| ("unused", unused.count())));
    if let Some(budget) = budget {
        numbers.extend([
            ("window", budget.window),
            ("reserve", budget.reserve),
            ("output", budget.output),
            ("margin", budget.margin),
            ("prompt_budget", budget.prompt()),
            ("left", budget.trigger().saturating_sub(estimate.tokens)),
        ]);
    }
    let members =
        numbers.into_iter().fold(Members::new(), |it, (name, value)| it.number(name, value));
    members
        .optional(Members::string, "unused_why", estimate.unused.map(Unused::why))
        .optional(Members::decimal, "scale", estimate.scale)
        .objects("messages", messages.iter().zip(&estimate.messages), |it, (message, tokens)| {
            let id = message.meta.as_ref().map(|meta| &*meta.id);
            it.string("role", message.role.name()).number("tokens", *tokens).optional(
                Members::string,
                "id",
                id,
            )
        })
        .into_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_28_parts_add_up_to_the_total() {
        for (total, parts) in [
            (0, [0; 8]),
            (7, [0; 8]),
            (1, [1, 1, 1, 1, 1, 1, 1, 1]),
            (18, [0, 0, 10, 0, 0, 0, 0, 16]),
            (170_510, [12, 530, 99, 1, 0, 7, 0, 8]),
            (u64::MAX, [u64::MAX / 8; 8]),
        ] {
            let mut shared = parts.map(|tokens| ("kind", tokens));
            share_out(total, &mut shared);
            assert_eq!(shared.iter().map(|(_, tokens)| tokens).sum::<u64>(), total, "{parts:?}");
            let is_kept = |(own, new): (&u64, &(_, u64))| *own > 0 || new.1 == 0;
            let is_empty = parts == [0; 8];
            assert!(is_empty || parts.iter().zip(&shared).all(is_kept), "{parts:?} {shared:?}");
        }
        // Parts that already add up do not change.
        let mut parts = [("a", 5), ("b", 0), ("c", 1_000_003)];
        share_out(1_000_008, &mut parts);
        assert_eq!(parts, [("a", 5), ("b", 0), ("c", 1_000_003)]);
    }

    #[test]
    fn v38_the_bar_never_exceeds_its_width() {
        let budget = Budget::new(100_000, None, None).unwrap();
        let bar = |tokens| bar(&Estimate { tokens, ..Estimate::default() }, budget);
        assert_eq!(bar(0), format!("[{}] 0.0%  ~0 / 100,000 tokens", "-".repeat(30)));
        assert_eq!(
            bar(20_100),
            format!("[{}{}] 20.1%  ~20,100 / 100,000 tokens", "#".repeat(6), "-".repeat(24))
        );
        for (tokens, percent) in [(99_950, "100.0%"), (100_000, "100.0%"), (250_000, "250.0%")] {
            let bar = bar(tokens);
            assert_eq!(bar.find(']'), Some(31), "{bar}");
            assert!(bar.contains(percent), "{bar}");
        }
    }
}
