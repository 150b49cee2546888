//! An estimate for people and for programs.

use crate::estimate::{Budget, Estimate};
use crate::json::quote;
use crate::messages::Message;

/// Cells of the context bar.
const CELLS: u64 = 30;

/// claw0's context bar: thirty cells, a percentage with one decimal, used of window. The bar is never
/// longer than it is; the percentage says the truth.
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

/// The tokens of each kind, by its name.
fn kinds(estimate: &Estimate) -> [(&'static str, u64); 8] {
    let kinds = estimate.kinds;
    [
        ("system", estimate.system),
        ("tools", estimate.tools),
        ("text", kinds.text),
        ("calls", kinds.calls),
        ("results", kinds.results),
        ("thinking", kinds.thinking),
        ("media", kinds.media),
        ("other", kinds.other),
    ]
}

/// What fills the window, a line each: the kinds that are there, and what is left of it.
#[must_use]
pub fn parts(estimate: &Estimate, budget: Option<Budget>) -> Vec<String> {
    let left = budget
        .map(|budget| ("left before compaction", budget.trigger().saturating_sub(estimate.tokens)));
    let there = kinds(estimate).into_iter().filter(|(_, tokens)| *tokens > 0).chain(left);
    there.map(|(name, tokens)| format!("{:>11}  {name}", grouped(tokens))).collect()
}

/// A number with commas between its thousands.
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

/// Why `--check` fails, with the arithmetic.
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

/// The breakdown as one JSON object: what is measured and what is estimated, tokens by kind, the
/// window if it is known, and each message.
#[must_use]
pub fn json(estimate: &Estimate, messages: &[Message<'_>], budget: Option<Budget>) -> String {
    let mut members = vec![
        ("tokens", estimate.tokens),
        ("measured", estimate.measured),
        ("measured_messages", estimate.measured_messages as u64),
        ("estimated", estimate.tokens - estimate.measured),
    ];
    members.extend(kinds(estimate));
    members.push(("bytes", estimate.bytes));
    if let Some(budget) = budget {
        members.extend([
            ("window", budget.window),
            ("reserve", budget.reserve),
            ("output", budget.output),
            ("margin", budget.margin),
            ("prompt_budget", budget.prompt()),
            ("left", budget.trigger().saturating_sub(estimate.tokens)),
        ]);
    }
    let members: Vec<String> =
        members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let each = messages.iter().zip(&estimate.messages).map(|(message, tokens)| {
        let id = message.meta.as_ref().map(|meta| format!(",\"id\":{}", quote(&meta.id)));
        let id = id.unwrap_or_default();
        format!("{{\"role\":\"{}\",\"tokens\":{tokens}{id}}}", message.role)
    });
    let each: Vec<String> = each.collect();
    format!("{{{},\"messages\":[{}]}}", members.join(","), each.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v38_the_bar_is_never_longer_than_it_is() {
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
