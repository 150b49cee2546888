//! Chooses the stages of the guard after a refusal. CONTRIBUTING.md has the whole way of a refusal.

use crate::estimate::Refused;
use crate::exit::Exit;
use crate::fault::Fault;

/// The most calls in a turn for one reply.
const MOST_CALLS: usize = 8;
/// The word for a request that was sent again.
pub const SENT: &str = "sent";

/// A stage of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// claw-truncate
    Truncate,
    /// claw-compact
    Compact,
}

impl Stage {
    /// Returns the program that runs the stage.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Stage::Truncate => "claw-truncate",
            Stage::Compact => "claw-compact",
        }
    }

    /// Returns the text of the diagnostic before the stage.
    #[must_use]
    pub fn announcement(self, fault: Fault, is_likely: bool) -> String {
        let reason = match fault {
            Fault::Tokens => "overflow",
            Fault::Bytes => "too many bytes",
            Fault::Block | Fault::Wait | Fault::Other => "refused",
        };
        let likely = if is_likely && fault != Fault::Block { "likely " } else { "" };
        let what = match (self, fault) {
            (Stage::Compact, _) => {
                "summarising the old part (claw-rebuild --ignore-compactions shows it)"
            }
            (Stage::Truncate, Fault::Bytes) => "leaving out images, then shortening results",
            (Stage::Truncate, Fault::Block) => "leaving out what the provider may not accept",
            (Stage::Truncate, _) => "shortening tool results",
        };
        format!("{likely}{reason}: {what}")
    }
}

/// Returns the fault that a stage may cure. Without an error record, the status decides.
#[must_use]
pub fn fault(status: u8, refused: Option<&Refused>) -> Option<Fault> {
    let is = |exit: Exit| status == exit as u8;
    let fault = match refused {
        Some(refused) => refused.fault,
        None if is(Exit::Overflow) => Fault::Tokens,
        None if is(Exit::TooLarge) => Fault::Bytes,
        None => Fault::Other,
    };
    let exits = [Exit::Overflow, Exit::TooLarge, Exit::Unavailable, Exit::Refused];
    Some(fault).filter(|fault| fault.is_in_messages() && exits.into_iter().any(is))
}

/// Returns the next stage after those that were `tried`, with the word `sent` after each after which the request was sent
/// again. A stage that changed nothing is not tried again for the same refusal, and one for a likely overflow or too many
/// bytes only once. After results were shortened in vain, the summary comes first. A block that is only likely is not worth
/// a summary.
#[must_use]
pub fn next(fault: Fault, is_likely: bool, tried: &[&str]) -> Option<Stage> {
    let sent = tried.iter().filter(|word| **word == SENT).count();
    if sent + 1 >= MOST_CALLS {
        return None;
    }
    let newest = tried.iter().rposition(|word| *word == SENT).map_or(0, |last| last + 1);
    let (earlier, now) = tried.split_at(newest);
    let has = |words: &[&str], stage: Stage| words.contains(&stage.program());
    let last = earlier.iter().rfind(|word| **word != SENT);
    let is_shortened = fault == Fault::Tokens && last == Some(&Stage::Truncate.program());
    let order = match is_shortened {
        true => [Stage::Compact, Stage::Truncate],
        false => [Stage::Truncate, Stage::Compact],
    };
    let is_worth = |stage: Stage| match fault {
        Fault::Block => !is_likely || stage == Stage::Truncate,
        _ => !is_likely || !has(earlier, stage),
    };
    order.into_iter().find(|stage| !has(now, *stage) && is_worth(*stage))
}

/// Returns the advice after all stages that were `tried`; [`next`] describes the words.
#[must_use]
pub fn advice(fault: Fault, tried: &[&str]) -> &'static str {
    match fault {
        Fault::Tokens => {
            "the request does not fit after all steps; try a model with a larger window (--model, --window) or a shorter answer (--max-tokens)"
        }
        Fault::Bytes => {
            "the request has too many bytes after all steps; undo the turn (claw-rebuild --undo turn) and attach less, or try another provider"
        }
        Fault::Block | Fault::Wait | Fault::Other if tried.contains(&SENT) => {
            "no step cured the refusal, so the steps are undone; undo the turn (claw-rebuild --undo turn), or try another model"
        }
        Fault::Block | Fault::Wait | Fault::Other => {
            "there is nothing to leave out that may cure the refusal; undo the turn (claw-rebuild --undo turn), or try another model"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Object;

    /// Returns the stages that are tried if each of them changes the request and each request is refused.
    fn stages(fault: Fault, is_likely: bool) -> Vec<Stage> {
        let (mut tried, mut stages) = (Vec::new(), Vec::new());
        while let Some(stage) = next(fault, is_likely, &tried) {
            stages.push(stage);
            tried.extend([stage.program(), SENT]);
        }
        stages
    }

    #[test]
    fn there_are_at_most_eight_calls_and_one_try_of_what_is_likely() {
        use Stage::{Compact, Truncate};
        assert_eq!(stages(Fault::Tokens, true), [Truncate, Compact]);
        assert_eq!(stages(Fault::Bytes, true), [Truncate, Compact]);
        let both = [Truncate, Compact, Truncate, Compact, Truncate, Compact, Truncate];
        assert_eq!(stages(Fault::Tokens, false), both);
        assert_eq!(stages(Fault::Bytes, false), [Truncate; 7]);
        assert_eq!(stages(Fault::Block, true), [Truncate; 7]);
    }

    #[test]
    fn a_stage_that_changed_nothing_is_not_tried_again_for_the_same_refusal() {
        let next = |words: &[&str]| next(Fault::Tokens, false, words);
        assert_eq!(next(&["claw-truncate"]), Some(Stage::Compact));
        assert_eq!(next(&["claw-truncate", "claw-compact"]), None);
        assert_eq!(next(&["claw-truncate", "sent"]), Some(Stage::Compact));
        assert_eq!(next(&["claw-truncate", "sent", "claw-compact"]), Some(Stage::Truncate));
        assert_eq!(next(&["claw-truncate", "sent", "claw-compact", "claw-truncate"]), None);
        assert_eq!(next(&["claw-compact", "sent"]), Some(Stage::Truncate));
    }

    #[test]
    fn only_steps_that_were_made_are_undone() {
        let is_undone = |tried| advice(Fault::Block, tried).contains("undone");
        assert!(!is_undone(&[]) && !is_undone(&["claw-truncate", "claw-compact"]));
        assert!(is_undone(&["claw-truncate", "sent", "claw-truncate"]));
    }

    #[test]
    fn only_what_a_stage_may_cure_has_a_fault() {
        for (status, record, expected) in [
            (3, None, Some(Fault::Tokens)),
            (4, None, Some(Fault::Bytes)),
            (76, None, None),
            (76, Some(r#"{"class":"bad-request"}"#), None),
            (76, Some(r#"{"class":"bad-request","fault":"block"}"#), Some(Fault::Block)),
            (69, Some(r#"{"class":"server","fault":"bytes"}"#), Some(Fault::Bytes)),
            (69, Some(r#"{"class":"server","fault":"wait"}"#), None),
            (75, Some(r#"{"class":"rate-limit","fault":"tokens"}"#), None),
            (0, None, None),
        ] {
            let refused = record.map(|record| Refused::of(&Object::parse(record).unwrap()));
            assert_eq!(fault(status, refused.as_ref()), expected, "{status} {record:?}");
        }
    }
}
