//! Decides whether a checkpoint is due.

use crate::messages::Message;
use crate::messages::checkpoint::{LatestCheckpoint, open_turns};
use std::fmt;

/// The conditions for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// False if no checkpoint is ever due.
    pub enabled: bool,
    /// Shares of the window, in percent. A checkpoint is due each time the request has grown to one of them.
    pub percents: Vec<u64>,
    /// A checkpoint is due after this many turns since the last one; with 0, the number of turns does not count.
    pub turns: u64,
    /// The smallest request, in tokens, for which a checkpoint is due.
    pub min_tokens: u64,
}

/// The state of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationState {
    /// The size of the request, in tokens.
    pub tokens: u64,
    /// The size of the request, in tokens, when the last checkpoint was made or after the compaction in effect,
    /// whichever is larger.
    pub baseline: u64,
    /// The number of turns since the last checkpoint.
    pub turns: u64,
    /// The context window in tokens, if known.
    pub window: Option<u64>,
}

/// The reason why a checkpoint is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The request has grown to this share of the window, in percent.
    Percent(u64),
    /// This many turns have passed.
    Turns(u64),
}

/// The reason why no checkpoint is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDue {
    /// Checkpoints are disabled.
    Disabled,
    /// The request is too small.
    Short {
        /// The size of the request, in tokens.
        tokens: u64,
        /// The smallest size for a checkpoint, in tokens.
        min: u64,
    },
    /// The request has not grown to another share of the window, and too few turns have passed.
    NotYet(ConversationState),
}

impl ConversationState {
    /// Returns the state of a conversation whose request has `tokens` tokens.
    #[must_use]
    pub fn of(messages: &[Message<'_>], tokens: u64, window: Option<u64>) -> ConversationState {
        let last = LatestCheckpoint::among(messages).filter(|known| known.is_current);
        let summary = messages.iter().find_map(|m| m.meta.as_ref()?.summary.as_ref());
        let baseline = last
            .map_or(0, |known| known.checkpoint.tokens)
            .max(summary.and_then(|summary| summary.tokens_after).unwrap_or(0));
        ConversationState { tokens, baseline, turns: open_turns(messages, messages.len()), window }
    }
}

impl Triggers {
    /// Returns the reason why a checkpoint is due: the largest share of the window that was reached, or the number of
    /// turns.
    ///
    /// # Errors
    /// Returns the reason why none is due.
    pub fn ask(&self, state: ConversationState) -> Result<Due, NotDue> {
        let ConversationState { tokens, baseline, turns, window } = state;
        if !self.enabled {
            return Err(NotDue::Disabled);
        }
        if tokens < self.min_tokens {
            return Err(NotDue::Short { tokens, min: self.min_tokens });
        }
        let reaches = |tokens: u64, percent: u64| {
            let share = |window| u128::from(window) * u128::from(percent);
            window.is_some_and(|window| u128::from(tokens) * 100 >= share(window))
        };
        let is_passed = |percent: &u64| reaches(tokens, *percent) && !reaches(baseline, *percent);
        match self.percents.iter().copied().filter(is_passed).max() {
            Some(percent) => Ok(Due::Percent(percent)),
            None if self.turns > 0 && turns >= self.turns => Ok(Due::Turns(turns)),
            None => Err(NotDue::NotYet(state)),
        }
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Due::Percent(percent) => write!(f, "past {percent} % of the window"),
            Due::Turns(turns) => write!(f, "{turns} turns since the last checkpoint"),
        }
    }
}

impl fmt::Display for NotDue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDue::Disabled => f.write_str("checkpoints are disabled in the configuration"),
            NotDue::Short { tokens, min } => {
                write!(f, "{tokens} tokens, at least {min} needed")
            }
            NotDue::NotYet(ConversationState { tokens, baseline, turns, window }) => {
                let noun = if *turns == 1 { "turn" } else { "turns" };
                write!(f, "{tokens} tokens, {baseline} at the last checkpoint or compaction, ")?;
                write!(f, "{turns} {noun} since the last checkpoint; ")?;
                match window {
                    Some(window) => write!(f, "the window is {window}"),
                    None => f.write_str("the window is unknown"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triggers() -> Triggers {
        Triggers { enabled: true, percents: vec![25, 50, 75], turns: 10, min_tokens: 5000 }
    }

    fn state(tokens: u64, baseline: u64) -> ConversationState {
        ConversationState { tokens, baseline, turns: 0, window: Some(100_000) }
    }

    #[test]
    fn v71_each_share_of_the_window_makes_one_checkpoint_due() {
        for (tokens, baseline, due) in [
            (24_900, 0, None),
            (24_999, 0, None),
            (25_000, 0, Some(25)),
            (25_001, 25_000, None),
            (49_999, 25_000, None),
            (50_000, 25_000, Some(50)),
            (75_000, 50_000, Some(75)),
            // A jump past two shares makes one checkpoint.
            (80_000, 20_000, Some(75)),
            (90_000, 80_000, None),
        ] {
            let outcome = triggers().ask(state(tokens, baseline)).ok();
            assert_eq!(outcome, due.map(Due::Percent), "{tokens} {baseline}");
        }
        // Shares are not rounded: a quarter of 40001 is 10000.25.
        let odd = |tokens| ConversationState { window: Some(40_001), ..state(tokens, 0) };
        assert!(triggers().ask(odd(10_000)).is_err() && triggers().ask(odd(10_001)).is_ok());
    }

    #[test]
    fn v71_a_jump_makes_one_checkpoint_and_steady_growth_one_per_share() {
        let made = |tokens: &[u64]| {
            let mut baseline = 0;
            let mut made = Vec::new();
            for tokens in tokens.iter().copied() {
                if triggers().ask(state(tokens, baseline)).is_ok() {
                    made.push(tokens);
                    baseline = tokens;
                }
            }
            made
        };
        assert_eq!(made(&[20_000, 80_000, 81_000, 99_000]), [80_000]);
        let steps: Vec<u64> = (1..=100).map(|n| n * 1000).collect();
        assert_eq!(made(&steps), [25_000, 50_000, 75_000]);
    }

    #[test]
    fn v72_a_checkpoint_needs_enough_tokens_and_turns() {
        let state = |tokens, turns| ConversationState { tokens, baseline: 0, turns, window: None };
        for (tokens, turns, due) in
            [(4999, 50, false), (5000, 9, false), (5000, 10, true), (5000, 11, true)]
        {
            assert_eq!(triggers().ask(state(tokens, turns)).is_ok(), due, "{tokens} {turns}");
        }
        let never = Triggers { turns: 0, ..triggers() };
        assert!(never.ask(state(5000, 1000)).is_err());
        let off = Triggers { enabled: false, ..triggers() };
        assert_eq!(off.ask(state(5000, 1000)), Err(NotDue::Disabled));
    }
}
