//! Where a conversation may be cut, and where it is.

use crate::messages::Message;
use crate::record::content::Role;

/// How the place of a cut is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutRule {
    /// The oldest half goes, at least the last fifth and four messages stay, and a budget moves it on.
    #[default]
    Half,
    /// The seeds' arithmetic and no more: only a call that would be parted from its result moves it.
    Classic,
    /// The newest messages stay that together have this many tokens; a budget moves it on.
    Tail(u64),
    /// The newest fifth and four messages stay; a budget moves it on.
    Fifth,
}

impl CutRule {
    /// How many of the messages go, before it is asked whether a cut is legal there. `rests` are the
    /// request's tokens from each message on.
    #[must_use]
    pub fn preferred(self, rests: &[u64]) -> usize {
        let n = rests.len();
        match self {
            CutRule::Half | CutRule::Classic => classic(n),
            CutRule::Tail(tokens) => rests.iter().rposition(|rest| *rest >= tokens).unwrap_or(0),
            CutRule::Fifth => latest(n),
        }
    }

    /// How many of `n` messages may go at most, unless the request is only then small enough. A place that the
    /// user names has no such limit, and the seeds' arithmetic has its own.
    #[must_use]
    pub fn latest(self, n: usize) -> usize {
        match self {
            CutRule::Half | CutRule::Fifth => latest(n),
            CutRule::Classic | CutRule::Tail(_) => n,
        }
    }
}

/// How many of `n` messages may go while the last fifth, and at least four, stay.
#[must_use]
pub fn latest(n: usize) -> usize {
    n.saturating_sub(keep(n))
}

/// The seeds' arithmetic: how many of `n` messages are summarised. The oldest half, but at least the
/// last fifth and four messages stay; fewer than two are not worth a summary (0).
#[must_use]
pub fn classic(n: usize) -> usize {
    let covered = (n / 2).max(2).min(latest(n));
    if covered < 2 { 0 } else { covered }
}

/// How many of `n` messages stay at least: the last fifth, and four.
#[must_use]
pub fn keep(n: usize) -> usize {
    (n / 5).max(4)
}

/// The places where a cut parts no call from its result: indices of messages that can be the first
/// kept one. A message that begins with results cannot; nor can one whose records are mixed with those
/// of earlier messages in the file (records are kept from one place in the file on). What stands only
/// for an earlier compaction is not worth covering by itself.
#[must_use]
pub fn legal(messages: &[Message<'_>]) -> Vec<usize> {
    let summaries = leading_summary(messages);
    let apart = apart(messages);
    (summaries + 1..messages.len())
        .filter(|at| messages[*at].results().next().is_none() && apart[*at])
        .collect()
}

/// How many messages at the beginning render an earlier compaction.
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

/// For each place whether all records before it stand before all records after it.
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

/// The first legal cut from `preferred` to `latest` that fits; then the last one before these that does; and
/// only if none does, the first one after them.
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

    /// One letter a message: u and a for words, c for a call, r for its result.
    fn talk(kinds: &str) -> String {
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
    fn v49_the_seeds_table() {
        let table = [
            0, 0, 0, 0, 0, 0, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13,
            13, 14, 14, 15,
        ];
        for (n, covered) in table.into_iter().enumerate() {
            assert_eq!(classic(n), covered, "{n}");
            // Neither the size of the messages nor the way to ask for it matters.
            for rule in [CutRule::Half, CutRule::Classic] {
                assert_eq!(rule.preferred(&vec![9000; n]), covered, "{n}");
            }
        }
        for n in table.len()..=100 {
            assert_eq!(classic(n), n / 2, "{n}");
        }
    }

    #[test]
    fn v50_no_cut_parts_a_call_from_its_result() {
        for kinds in ["ucracra", "ucrcrcrcra", "uacrucra", "ucrcrcrcr", "uauacrcrcrua"] {
            let text = talk(kinds);
            let messages = messages::read("t", text.as_bytes()).unwrap();
            let legal = legal(&messages);
            for at in 1..messages.len() {
                let on_result = kinds.as_bytes()[at] == b'r';
                assert_eq!(legal.contains(&at), !on_result, "{kinds} {at}");
            }
        }
    }

    #[test]
    fn a_cut_moves_forward_until_it_fits_and_back_only_at_the_end() {
        let (legal, end) = ([1, 3, 5, 9], usize::MAX);
        assert_eq!(choose(&legal, 4, end, |_| true), Some(5));
        assert_eq!(choose(&legal, 4, end, |at| at > 5), Some(9));
        assert_eq!(choose(&legal, 10, end, |_| true), Some(9));
        assert_eq!(choose(&legal, 4, end, |_| false), None);
        assert_eq!(choose(&[], 4, end, |_| true), None);
    }

    #[test]
    fn audit_05_a_cut_moves_past_the_latest_place_only_if_no_other_fits() {
        let legal = [1, 3, 5, 7, 9];
        assert_eq!(choose(&legal, 4, 6, |_| true), Some(5));
        assert_eq!(choose(&legal, 6, 6, |_| true), Some(5));
        assert_eq!(choose(&legal, 4, 6, |at| at != 5), Some(3));
        assert_eq!(choose(&legal, 4, 6, |at| at > 5), Some(7));
    }

    #[test]
    fn records_that_are_mixed_in_the_file_are_not_parted() {
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
