//! Chooses the provider's token count that the estimate is based on, from those in the messages.
//!
//! [`rebuild`](crate::messages::rebuild) gives a message its count only if no later record has changed what the
//! count covers. To be used, a count must also be close to the estimate and come from a model of the same family.

use super::{Model, Request, weigh::tokens};
use crate::messages::Message;
use crate::messages::meta::Meta;
use crate::usage::Counts;
use std::fmt;

/// The number of tokens by which a count may always differ from the estimate. With a larger difference, a count of less
/// than half or more than twice the estimate is ignored. Providers add prompts of their own, whose share is larger
/// in short conversations.
const SLACK: u64 = 500;

/// A count that the estimate uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// The number of messages that it covers, from the first one.
    pub covered: usize,
    /// The tokens of the prompt and of the answer, which is now the last of these messages.
    pub tokens: u64,
    /// The estimated weight of what the count covers: the system prompt, the tools and these messages.
    pub weight: u64,
}

/// A count that the estimate ignores, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// The count is too far from the estimate.
    Implausible {
        /// The number of tokens in the prompt, as the provider counted them.
        count: u64,
        /// The estimated number of tokens in the prompt.
        estimate: u64,
    },
    /// The count comes from a model of another family.
    OtherFamily {
        /// The number of tokens in the prompt, as the provider counted them.
        count: u64,
    },
}

impl Unused {
    /// Returns the provider's count in tokens.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Unused::Implausible { count, .. } | Unused::OtherFamily { count } => count,
        }
    }

    /// Returns the reason as one word, for JSON.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Unused::Implausible { .. } => "implausible",
            Unused::OtherFamily { .. } => "other-family",
        }
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count();
        write!(f, "the provider's count of {count} tokens is not used: ")?;
        match self {
            Unused::Implausible { estimate, .. } => {
                write!(f, "the estimate for the same prompt is {estimate}")
            }
            Unused::OtherFamily { .. } => f.write_str("it comes from a model of another family"),
        }
    }
}

/// Returns the newest usable count, and the newest of the ignored counts after it. `base` is the weight of
/// everything before the messages, and `weights` holds the weight of each message.
pub(super) fn find(
    request: &Request<'_, '_>,
    base: u64,
    weights: &[u64],
) -> (Option<Anchor>, Option<Unused>) {
    let mut weight: u64 = base + weights.iter().sum::<u64>();
    let mut unused = None;
    for (index, message) in request.messages.iter().enumerate().rev() {
        let before = weight - weights[index];
        if let Some((meta, counts)) = count_of(message) {
            match why_not(counts.prompt(), meta.model.as_deref(), tokens(before), request.model) {
                None => {
                    let anchor = Anchor { covered: index + 1, tokens: counts.all(), weight };
                    return (Some(anchor), unused);
                }
                why => unused = unused.or(why),
            }
        }
        weight = before;
    }
    (None, unused)
}

fn count_of<'m>(message: &'m Message<'_>) -> Option<(&'m Meta, Counts)> {
    let meta = message.meta.as_deref()?;
    Some((meta, Counts::read(meta.usage.as_ref()?)?))
}

/// Returns the reason why the count of a prompt is ignored, or `None` if it is used.
fn why_not(
    count: u64,
    model: Option<&str>,
    estimate: u64,
    asked: Option<Model<'_>>,
) -> Option<Unused> {
    if let (Some(model), Some(asked)) = (model, asked)
        && asked.differs_from(model)
    {
        return Some(Unused::OtherFamily { count });
    }
    let is_off = count < estimate / 2 || count / 2 > estimate;
    (is_off && count.abs_diff(estimate) > SLACK).then_some(Unused::Implausible { count, estimate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_14_a_count_between_half_and_twice_the_estimate_is_used() {
        let gpt = Some(Model::named("gpt-5"));
        for (count, estimate, is_used) in [
            (5, 12_000, false),
            (5999, 12_000, false),
            (6000, 12_000, true),
            (24_001, 12_000, true),
            (24_002, 12_000, false),
            // Differences of `SLACK` and of one token more.
            (5, 505, true),
            (5, 506, false),
            (520, 20, true),
            (521, 20, false),
            (u64::MAX, 1, false),
        ] {
            let why = why_not(count, None, estimate, gpt);
            assert_eq!(why.is_none(), is_used, "{count} {estimate}");
        }
        let foreign = why_not(12_000, Some("claude-opus-5"), 12_000, gpt);
        assert_eq!(foreign, Some(Unused::OtherFamily { count: 12_000 }));
    }
}
