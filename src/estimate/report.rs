//! Formats an estimate as text and as JSON.

use crate::estimate::bytes::ByteLimit;
use crate::estimate::windows::Origin;
use crate::estimate::{Budget, Estimate, Family, Model, Unused};
use crate::json::write::Members;
use crate::messages::Message;
use crate::printable::printable;
use crate::record::scale::Scale;

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

/// Returns a line for each part that the prompt has, one for each of its largest records and, if the window is known, one
/// for the tokens that are left before compaction, and one for the
/// origin of a window that is not set.
#[must_use]
pub fn parts(
    estimate: &Estimate,
    messages: &[Message<'_>],
    budget: Option<Budget>,
    origin: Option<Origin>,
) -> Vec<String> {
    let mut rows: Vec<(u64, String)> = Vec::new();
    rows.extend(estimate.parts().map(|(part, tokens)| (tokens, part.name().to_owned())));
    rows.retain(|(tokens, _)| *tokens > 0);
    rows.extend(estimate.largest(messages).into_iter().map(|record| {
        (record.tokens, format!("record {} ({})", printable(&record.id), record.part.name()))
    }));
    rows.extend(budget.map(|budget| (left(estimate, budget), "left before compaction".to_owned())));
    rows.extend(
        budget
            .zip(origin.filter(|origin| *origin != Origin::Setting))
            .map(|(budget, origin)| (budget.window, format!("window {}", origin.described()))),
    );
    rows.into_iter().map(|(tokens, what)| format!("{:>11}  {what}", grouped(tokens))).collect()
}

fn left(estimate: &Estimate, budget: Budget) -> u64 {
    budget.trigger().saturating_sub(estimate.tokens)
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

/// Returns the error for a request with too many bytes.
#[must_use]
pub fn too_many_bytes(estimate: &Estimate, limit: ByteLimit) -> String {
    let (bytes, ByteLimit(most)) = (estimate.bytes, limit);
    format!("too many bytes: {bytes}, limit {most} less a margin of {}", most - limit.most())
}

/// Returns the estimate as one JSON object; `costs` is the price of the prompt with and without a cache. It has measured and estimated tokens, tokens by part, the window and the limit in
/// bytes if they are known, the largest records, and each message.
#[must_use]
pub fn json(
    estimate: &Estimate,
    messages: &[Message<'_>],
    (model, costs): (Option<Model<'_>>, Option<(f64, f64)>),
    budget: Option<Budget>,
    origin: Option<Origin>,
    most_bytes: Option<ByteLimit>,
) -> String {
    let mut numbers = vec![
        ("tokens", estimate.tokens),
        ("measured", estimate.measured),
        ("measured_messages", estimate.measured_messages as u64),
        ("estimated", estimate.tokens - estimate.measured),
    ];
    numbers.extend(estimate.parts().map(|(part, tokens)| (part.name(), tokens)));
    numbers.push(("bytes", estimate.bytes));
    numbers.extend(most_bytes.map(|limit| ("bytes_limit", limit.0)));
    numbers.extend(estimate.unused.map(|unused| ("unused", unused.count())));
    if let Some(budget) = budget {
        numbers.extend([
            ("window", budget.window),
            ("reserve", budget.reserve),
            ("output", budget.output),
            ("margin", budget.margin),
            ("prompt_budget", budget.prompt()),
            ("left", left(estimate, budget)),
        ]);
    }
    let members =
        numbers.into_iter().fold(Members::new(), |it, (name, value)| it.number(name, value));
    let members = members
        .optional(Members::string, "window_origin", origin.map(Origin::name))
        .optional(Members::string, "window_date", origin.and_then(Origin::date).as_deref());
    let members = members
        .optional(Members::decimal, "prompt_cost", costs.map(|costs| costs.0))
        .optional(Members::decimal, "prompt_cost_without_cache", costs.map(|costs| costs.1));
    let members = members.optional(Members::string, "unused_why", estimate.unused.map(Unused::why));
    let family = model.map_or(Family::Unknown, |model| model.family);
    let factor = model.filter(|model| model.factor != 1000).map(|it| it.factor as f64 / 1000.0);
    let members = members.optional(Members::string, "model", model.map(|model| model.name));
    let members = members.string("family", family.name());
    let members = members.optional(Members::decimal, "factor", factor);
    Scale::add_to(estimate.scale, members)
        .objects("largest", estimate.largest(messages), |it, record| {
            let it = it.string("id", &record.id).string("part", record.part.name());
            it.number("tokens", record.tokens)
        })
        .objects("messages", messages.iter().zip(estimate.messages()), |it, (message, tokens)| {
            let id = message.meta.as_ref().map(|meta| &*meta.id);
            it.string("role", message.role.name()).number("tokens", tokens).optional(
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
