//! The providers' counts in the messages: which are used, and which are not.
//!
//! [`rebuild`](crate::messages::rebuild) gives a message its count only while no later record has changed
//! what that covers. Here a count has to be plausible as well: beside the estimate, and for the model.

use super::{Request, families, tokens};
use crate::messages::Message;
use crate::messages::meta::Meta;
use crate::usage::Counts;
use std::fmt;

/// A prompt's count that is less than half or more than twice the estimate is not used, if it is off by more
/// tokens than these: providers add prompts of their own, which weigh more in short conversations.
const SLACK: u64 = 500;

/// A count that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// How many messages from the first one it covers.
    pub covered: usize,
    /// The tokens of the prompt and of the answer that is now the last of these messages.
    pub tokens: u64,
    /// Our weight of the same.
    pub weight: u64,
}

/// A count that is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// It is too far from the estimate.
    Implausible {
        /// The prompt's tokens by the count.
        count: u64,
        /// Our estimate of the same.
        estimate: u64,
    },
    /// It was made by a model of another family than the one that is asked.
    OtherFamily {
        /// The prompt's tokens by the count.
        count: u64,
    },
}

impl Unused {
    /// The count.
    #[must_use]
    pub fn count(self) -> u64 {
        match self {
            Unused::Implausible { count, .. } | Unused::OtherFamily { count } => count,
        }
    }

    /// One word for why it is not used.
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
            Unused::OtherFamily { .. } => f.write_str("a model of another family counted them"),
        }
    }
}

/// The newest count that is used, and the newest after it that is not. `base` weighs what stands before the
/// messages, `weights` each of them.
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

/// Why the count of a prompt is not used, if it is not.
fn why_not(count: u64, model: Option<&str>, estimate: u64, asked: Option<&str>) -> Option<Unused> {
    if let (Some(model), Some(asked)) = (model, asked)
        && families::differ(model, asked)
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
    fn audit_14_a_count_is_used_within_half_and_twice_the_estimate() {
        for (count, estimate, is_used) in [
            (5, 12_000, false),
            (5999, 12_000, false),
            (6000, 12_000, true),
            (24_001, 12_000, true),
            (24_002, 12_000, false),
            // Too small to tell.
            (5, 505, true),
            (5, 506, false),
            (520, 20, true),
            (521, 20, false),
            (u64::MAX, 1, false),
        ] {
            let why = why_not(count, None, estimate, Some("gpt-5"));
            assert_eq!(why.is_none(), is_used, "{count} {estimate}");
        }
        let foreign = why_not(12_000, Some("claude-opus-5"), 12_000, Some("gpt-5"));
        assert_eq!(foreign, Some(Unused::OtherFamily { count: 12_000 }));
    }
}
