//! Ids of calls: whatever ids are stored, those that are sent are legal and unique, and an id that was sent once stays
//! the same when the transcript grows.

use std::collections::HashSet;

use super::any::{Law, rebuild};
use super::choices::Choices;
use clawutils::id::is_id;
use clawutils::json::quote;

/// Pieces of ids: legal characters, ids of other programs, and characters that are replaced, so that different ids may
/// become equal.
const PIECES: &[&str] = &[
    "a",
    "call",
    "_",
    "_2",
    "_3",
    "-",
    ":",
    ".",
    " ",
    "é",
    "日本",
    "\u{2028}",
    "\"\\",
    "\n",
    "functions.Write:6",
    "toolu_01",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// Returns an id to store. It is often one of `before`, or begins with one of them.
fn id(choices: &mut Choices, before: &[String]) -> String {
    let mut id = String::new();
    if !before.is_empty() && choices.one_in(2) {
        id.clone_from(&before[choices.below(before.len())]);
    }
    for _ in 0..choices.below(4) {
        id.push_str(choices.of_these(PIECES));
    }
    if id.is_empty() { "a".to_owned() } else { id }
}

/// Checks the ids that are sent for generated calls after each turn. Each turn has one call and its result.
///
/// # Errors
/// Reports the stored ids, and the wrong ids that are sent for them.
pub fn are_legal_and_stable(seed: u64) -> Law {
    let mut choices = Choices::seeded(seed);
    let mut stored: Vec<String> = Vec::new();
    let (mut text, mut before) = (String::new(), Vec::new());
    for turn in 0..1 + choices.below(12) {
        stored.push(id(&mut choices, &stored));
        let own = quote(&stored[turn]);
        text.push_str(&format!(
            "{{\"type\":\"user\",\"content\":\"go\"}}\n\
             {{\"type\":\"tool_use\",\"tool_use_id\":{own},\"name\":\"f\",\"input\":{{}}}}\n\
             {{\"type\":\"tool_result\",\"tool_use_id\":{own},\"content\":\"of {turn}\"}}\n"
        ));
        let fault =
            |what: &str, ids: &[String]| Err(format!("{what}: stored {stored:?}, sent {ids:?}"));
        let messages = rebuild(text.as_bytes())?.messages;
        let sent = |which: fn(&clawutils::messages::Message<'_>) -> Vec<String>| -> Vec<String> {
            messages.iter().flat_map(which).collect()
        };
        let calls = sent(|message| message.calls().map(str::to_owned).collect());
        let results = sent(|message| message.results().map(str::to_owned).collect());
        if calls.len() != stored.len() || calls != results {
            return fault("calls and results differ", &results);
        }
        if !calls.iter().all(|id| is_id(id)) {
            return fault("not legal", &calls);
        }
        if calls.iter().collect::<HashSet<_>>().len() < calls.len() {
            return fault("not unique", &calls);
        }
        if !calls.starts_with(&before) {
            return fault("earlier ids have changed", &calls);
        }
        let is_kept = |(at, id): (usize, &String)| {
            !is_id(id) || stored[..at].contains(id) || calls[..at].contains(id) || calls[at] == *id
        };
        if !stored.iter().enumerate().all(is_kept) {
            return fault("changed without need", &calls);
        }
        before = calls;
    }
    Ok(())
}
