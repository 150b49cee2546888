//! Chooses the place where a conversation is cut.

use crate::messages::Message;
use crate::record::content::Role;

/// The rule that chooses the place of a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutRule {
    /// Cover the oldest half, but keep at least the last fifth of the messages and at least four. To reach the
    /// budget, the cut moves toward the end.
    #[default]
    Half,
    /// Count messages as claw0 does. The cut moves only if it would separate a tool call from its result.
    Classic,
    /// Keep the newest messages that together have at least this many tokens. To reach the budget, the cut
    /// moves toward the end.
    Tail(u64),
    /// Keep the newest fifth, but at least four messages. To reach the budget, the cut moves toward the end.
    Fifth,
}

/// Limits on a cut besides the tokens of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutLimits {
    /// The most bytes that the compacted request may have.
    pub bytes: Option<u64>,
    /// The index of a message that the cut must cover.
    pub covers: Option<usize>,
}

impl CutRule {
    /// Returns the preferred number of messages to cover. A cut there need not be [`legal`]. `rests` holds, for
    /// each message, the tokens from there to the end.
    #[must_use]
    pub fn preferred(self, rests: &[u64]) -> usize {
        let n = rests.len();
        match self {
            CutRule::Half | CutRule::Classic => classic(n),
            CutRule::Tail(tokens) => rests.iter().rposition(|rest| *rest >= tokens).unwrap_or(0),
            CutRule::Fifth => latest(n),
        }
    }

    /// Returns how many of `n` messages a compaction should cover at most. A later cut is chosen only if no earlier one
    /// makes the request small enough. `Tail` has no such limit because the user states how much to keep, and `Classic`
    /// has none because claw0 has none.
    #[must_use]
    pub fn latest(self, n: usize) -> usize {
        match self {
            CutRule::Half | CutRule::Fifth => latest(n),
            CutRule::Classic | CutRule::Tail(_) => n,
        }
    }
}

/// Returns how many of `n` messages a compaction can cover if the last fifth, but at least four, are kept.
#[must_use]
pub fn latest(n: usize) -> usize {
    n.saturating_sub(keep(n))
}

/// Returns how many of `n` messages claw0 covers: the oldest half, but at least the last fifth of the messages
/// and at least four are kept; 0 if that covers fewer than two messages.
#[must_use]
pub fn classic(n: usize) -> usize {
    let covered = (n / 2).max(2).min(latest(n));
    if covered < 2 { 0 } else { covered }
}

/// Returns how many of `n` messages must be kept: a fifth of them, but at least four.
#[must_use]
pub fn keep(n: usize) -> usize {
    (n / 5).max(4)
}

/// Returns the indices of the messages that can be the first kept one.
///
/// A message with tool results cannot: the cut would separate them from their calls. Nor can a message whose
/// records are interleaved with those of earlier messages, because a compaction record keeps everything in the file
/// from one offset on. Nor can the message after an earlier summary, because nothing but that summary would be covered.
#[must_use]
pub fn legal(messages: &[Message<'_>]) -> Vec<usize> {
    let summaries = leading_summary(messages);
    let apart = apart(messages);
    (summaries + 1..messages.len())
        .filter(|at| messages[*at].results().next().is_none() && apart[*at])
        .collect()
}

/// Returns the number of messages at the beginning that stand for an earlier compaction: the summary and, if there is
/// one, the assistant's acknowledgement.
#[must_use]
pub fn leading_summary(messages: &[Message<'_>]) -> usize {
    if !messages.first().is_some_and(Message::is_summary) {
        return 0;
    }
    let id = |message: &Message<'_>| message.meta.as_ref().map(|meta| meta.id.clone());
    let acknowledged = messages
        .get(1)
        .is_some_and(|next| next.role == Role::Assistant && id(next) == id(&messages[0]));
    1 + usize::from(acknowledged)
}

/// Returns, for each message, true if a cut before it also divides the file: all records of the messages before it
/// precede all records of this message and the later ones.
fn apart(messages: &[Message<'_>]) -> Vec<bool> {
    let known = |message: &Message<'_>| {
        let meta = message.meta.as_ref().filter(|meta| !meta.id.is_empty() && meta.end > 0);
        meta.map(|meta| (meta.offset, meta.end))
    };
    let spans: Vec<Option<(u64, u64)>> = messages.iter().map(known).collect();
    let mut first = u64::MAX;
    let mut firsts = vec![first; messages.len()];
    for (at, span) in spans.iter().enumerate().rev() {
        first = first.min(span.map_or(u64::MAX, |(begin, _)| begin));
        firsts[at] = first;
    }
    let mut covered = 0;
    let is_apart = |(span, kept): (&Option<(u64, u64)>, u64)| {
        let is_apart = covered <= kept;
        covered = covered.max(span.map_or(0, |(_, end)| end));
        is_apart
    };
    spans.iter().zip(firsts).map(is_apart).collect()
}

/// Returns the first legal cut from `preferred` to `latest` that fits, else the last one before `preferred`
/// that fits and covers more than one message, else the first one after `latest` that fits.
pub fn choose(
    legal: &[usize],
    preferred: usize,
    latest: usize,
    fits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let forward = legal.iter().copied().filter(|at| (preferred..=latest).contains(at));
    let backward = legal.iter().rev().copied().filter(|at| *at < preferred && *at > 1);
    let beyond = legal.iter().copied().filter(|at| *at >= preferred && *at > latest);
    forward.chain(backward).chain(beyond).find(|at| fits(*at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    /// Returns a conversation with a message for each letter: u and a for text, c for a call, r for its result.
    fn conversation(kinds: &str) -> String {
        let mut calls = 0;
        let line = |kind: char| match kind {
            'u' => r#"{"role":"user","content":"words"}"#.to_owned(),
            'a' => r#"{"role":"assistant","content":"words"}"#.to_owned(),
            'c' => {
                calls += 1;
                format!(
                    r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t{calls}","name":"f","input":{{}}}}]}}"#
                )
            }
            _ => format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{calls}","content":"x"}}]}}"#
            ),
        };
        kinds.chars().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn v49_the_classic_rule_counts_as_claw0_does() {
        let table = [
            0, 0, 0, 0, 0, 0, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13,
            13, 14, 14, 15,
        ];
        for (n, covered) in table.into_iter().enumerate() {
            assert_eq!(classic(n), covered, "{n}");
            // Both rules count messages, whatever their size.
            for rule in [CutRule::Half, CutRule::Classic] {
                assert_eq!(rule.preferred(&vec![9000; n]), covered, "{n}");
            }
        }
        for n in table.len()..=100 {
            assert_eq!(classic(n), n / 2, "{n}");
        }
    }

    #[test]
    fn v50_no_cut_separates_a_call_from_its_result() {
        for kinds in ["ucracra", "ucrcrcrcra", "uacrucra", "ucrcrcrcr", "uauacrcrcrua"] {
            let text = conversation(kinds);
            let messages = messages::read("t", text.as_bytes()).unwrap();
            let legal = legal(&messages);
            for at in 1..messages.len() {
                let on_result = kinds.as_bytes()[at] == b'r';
                assert_eq!(legal.contains(&at), !on_result, "{kinds} {at}");
            }
        }
    }

    #[test]
    fn a_cut_moves_forward_until_it_fits_and_otherwise_backward() {
        let (legal, end) = ([1, 3, 5, 9], usize::MAX);
        assert_eq!(choose(&legal, 4, end, |_| true), Some(5));
        assert_eq!(choose(&legal, 4, end, |at| at > 5), Some(9));
        assert_eq!(choose(&legal, 10, end, |_| true), Some(9));
        assert_eq!(choose(&legal, 4, end, |_| false), None);
        assert_eq!(choose(&[], 4, end, |_| true), None);
    }

    #[test]
    fn audit_05_a_cut_is_after_the_latest_place_only_if_no_other_fits() {
        let legal = [1, 3, 5, 7, 9];
        assert_eq!(choose(&legal, 4, 6, |_| true), Some(5));
        assert_eq!(choose(&legal, 6, 6, |_| true), Some(5));
        assert_eq!(choose(&legal, 4, 6, |at| at != 5), Some(3));
        assert_eq!(choose(&legal, 4, 6, |at| at > 5), Some(7));
    }

    #[test]
    fn interleaved_records_are_not_separated() {
        let text = [
            r#"{"role":"user","content":"a","_meta":{"id":"a","offset":50,"end":60}}"#,
            r#"{"role":"assistant","content":"b","_meta":{"id":"b","offset":60,"end":70}}"#,
            r#"{"role":"user","content":"c","_meta":{"id":"c","offset":10,"end":90}}"#,
            r#"{"role":"assistant","content":"d","_meta":{"id":"d","offset":90,"end":99}}"#,
        ]
        .join("\n");
        assert_eq!(legal(&messages::read("t", text.as_bytes()).unwrap()), [3]);
    }
}
