//! Tells by the counts in an answer whether the server truncated the prompt.

use crate::json::Object;

/// The number of tokens that the server keeps from the beginning when it truncates a prompt: its default for
/// `num_keep`, and one more for models with a start-of-sequence token (server/routes.go, llm/llama_server.go).
const KEPT: [u64; 2] = [4, 5];
/// The smallest estimate, in tokens, whose ratio to the server's count is checked. This value is a guess.
const MIN_ESTIMATE: u64 = 1000;
/// The ratio of estimate to count, 3/2, above which the prompt may have been truncated. This value is a guess.
const SUSPICIOUS_RATIO: (u64, u64) = (3, 2);
/// The ratio of estimate to count above which the prompt was certainly truncated: for the estimate to be this far off,
/// the tokenizer would have to average at least twelve characters per token, which none does on text.
const CERTAIN_RATIO: u64 = 3;

/// The likelihood that the server silently truncated a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// There is no sign of truncation.
    No,
    /// The server's count is far below the estimate. Some tokenizers differ that much from the estimate.
    Perhaps,
    /// The count is exactly what the server keeps of a truncated prompt, or lower than any tokenizer could make it.
    Surely,
}

/// Compares `estimate` with the usage in the answer, to detect a truncated prompt. The estimate should be on the low
/// side, to avoid false alarms. `num_ctx` is the requested window in tokens. A count that is missing or 0 is ignored:
/// older servers omit it, or count only tokens that were not cached.
///
/// The server truncates in two ways (server/prompt.go, llm/llama_server.go). It drops whole messages from the front
/// until the rest fits; the count is then any number below the window. Or it cuts the tokens down to
/// `num_ctx - max((num_ctx - num_keep) / 2, 1)`.
#[must_use]
pub fn was_truncated(estimate: u64, usage: Option<&str>, num_ctx: u64) -> Cut {
    let count = usage.and_then(|usage| Object::parse(usage).ok()?.number("prompt_eval_count"));
    let Some(count) = count.filter(|count| *count > 0) else { return Cut::No };
    let left = |kept: u64| num_ctx.saturating_sub((num_ctx.saturating_sub(kept) / 2).max(1));
    if KEPT.into_iter().any(|kept| count == left(kept)) && estimate > count {
        return Cut::Surely;
    }
    let (most, of) = SUSPICIOUS_RATIO;
    match estimate {
        ..MIN_ESTIMATE => Cut::No,
        _ if estimate > count.saturating_mul(CERTAIN_RATIO) => Cut::Surely,
        _ if estimate.saturating_mul(of) > count.saturating_mul(most) => Cut::Perhaps,
        _ => Cut::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silently_truncated_prompt_is_detected() {
        let counted = |count: u64| format!(r#"{{"prompt_eval_count":{count},"eval_count":1}}"#);
        for (estimate, count, num_ctx, expected) in [
            // Counts seen on real servers, also for models with a start-of-sequence token.
            (2100, 2050, 4096, Cut::Surely),
            (2100, 2051, 4096, Cut::Surely),
            (1100, 1026, 2048, Cut::Surely),
            (1100, 1027, 2048, Cut::Surely),
            // The prompt is no longer than what truncation leaves.
            (2050, 2050, 4096, Cut::No),
            // The count is not one that truncation leaves.
            (2100, 2049, 4096, Cut::No),
            // The server dropped messages.
            (6000, 3999, 4096, Cut::Perhaps),
            (6000, 2000, 4096, Cut::Perhaps),
            (6000, 1999, 4096, Cut::Surely),
            (6000, 4000, 4096, Cut::No),
            (1000, 600, 4096, Cut::Perhaps),
            // The prompt is too short, or the count is missing.
            (999, 10, 4096, Cut::No),
            (9000, 0, 4096, Cut::No),
        ] {
            let usage = counted(count);
            let outcome = was_truncated(estimate, Some(&usage), num_ctx);
            assert_eq!(outcome, expected, "{estimate} {count} {num_ctx}");
        }
        assert_eq!(was_truncated(9000, None, 4096), Cut::No);
        assert_eq!(was_truncated(9000, Some("{}"), 4096), Cut::No);
        assert_eq!(was_truncated(u64::MAX, Some(&counted(1)), 0), Cut::Surely);
    }
}
