//! Tests sessions of pi that mix, in any order and on any branches, prompts, replies, results, edits, compactions and summaries of
//! branches.

use super::any::{Law, is_sound, lines, same};
use super::expect;
use clawutils::dialect::{Choice, Dialect, open};
use clawutils::input::Input;
use clawutils::messages::rebuild::{RebuildOptions, Rebuilt, from_inputs};

/// The lines from which the first byte of a pair selects one. The second byte selects the digits for `#`, the record's id, and
/// `@`, the record that it follows or names.
const LINES: [&str; 18] = [
    r##"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}"##,
    r##"{"type":"message","id":"u#","parentId":"a@","timestamp":"t","message":{"role":"user","content":"q#"}}"##,
    r##"{"type":"message","id":"u#","parentId":null,"timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"q#"}]}}"##,
    r##"{"type":"message","id":"a#","parentId":"u@","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"a#"}],"stopReason":"stop"}}"##,
    r##"{"type":"message","id":"a#","parentId":"u@","timestamp":"t","message":{"role":"assistant","content":[{"type":"toolCall","id":"c#","name":"f","arguments":{}}],"stopReason":"toolUse"}}"##,
    r##"{"type":"message","id":"a#","parentId":"r@","timestamp":"t","message":{"role":"assistant","content":[],"stopReason":"aborted"}}"##,
    r##"{"type":"message","id":"r#","parentId":"a@","timestamp":"t","message":{"role":"toolResult","toolCallId":"c@","content":[{"type":"text","text":"r#"}],"isError":false}}"##,
    r##"{"type":"message","id":"r#","parentId":"r@","timestamp":"t","message":{"role":"toolResult","toolCallId":"c@","content":[]}}"##,
    r##"{"type":"context_edit","id":"e#","parentId":"a@","timestamp":"t","targetId":"a@","replacement":null}"##,
    r##"{"type":"context_edit","id":"e#","parentId":"r@","timestamp":"t","targetId":"r@","replacement":[{"type":"text","text":"e#"}]}"##,
    r##"{"type":"context_edit","id":"e#","parentId":"e@","timestamp":"t","targetId":"e@","replacement":"e#"}"##,
    r##"{"type":"compaction","id":"k#","parentId":"a@","timestamp":"t","summary":"s#","firstKeptEntryId":"u@","tokensBefore":9}"##,
    r##"{"type":"compaction","id":"k#","parentId":"k@","timestamp":"t","summary":"s#","firstKeptEntryId":"","tokensBefore":9}"##,
    r##"{"type":"branch_summary","id":"b#","parentId":"u@","timestamp":"t","summary":"b#","fromId":"a@"}"##,
    r##"{"type":"message","id":"u#","parentId":"k@","timestamp":"t","message":{"role":"system","content":"y#"}}"##,
    r##"{"type":"custom_message","id":"m#","parentId":"b@","timestamp":"t","customType":"x","content":"m#","display":true}"##,
    r##"{"type":"usage","id":"g#","parentId":"a@","timestamp":"t","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cacheWrite1h":9}}"##,
    r##"{"type":"label","id":"l#","parentId":"e@","timestamp":"t","targetId":"u@","label":"l"}"##,
];

/// Tests the session that `bytes` select, two bytes for each line, after a header.
pub fn run(bytes: &[u8]) {
    let mut text = format!("{}\n", LINES[0]);
    for pair in bytes.chunks_exact(2) {
        let line = LINES[usize::from(pair[0]) % LINES.len()];
        let (own, other) = (pair[1] & 15, pair[1] >> 4);
        text.push_str(&line.replace('#', &own.to_string()).replace('@', &other.to_string()));
        text.push('\n');
    }
    expect(check(&text));
}

/// Checks that a session can be rebuilt with each of several options and from each of several records, always with the same
/// sound messages.
fn check(text: &str) -> Law {
    let plain = RebuildOptions::default();
    let options = [
        RebuildOptions { ignore_compactions: true, ..plain.clone() },
        RebuildOptions { limit_turns: Some(1), ..plain.clone() },
        RebuildOptions { to_turn: Some(1), ..plain.clone() },
    ];
    let whole = rebuild(text, None, &plain)?;
    is_sound(&whole.messages)?;
    for found in whole.findings.iter() {
        if found.place.offset + found.place.length > text.len() as u64 {
            return Err(format!("a finding has the wrong position: {found}"));
        }
    }
    let again = rebuild(text, None, &plain)?;
    same("rebuilt a second time", &lines(&again.messages), &lines(&whole.messages))?;
    for options in options {
        // There may be no such turn.
        if let Ok(rebuilt) = rebuild(text, None, &options) {
            is_sound(&rebuilt.messages).map_err(|why| format!("{options:?}: {why}"))?;
        }
    }
    for leaf in ["u1", "a1", "r1", "e1", "k1", "b1"] {
        // There may be no such record.
        if let Ok(rebuilt) = rebuild(text, Some(leaf), &plain) {
            is_sound(&rebuilt.messages).map_err(|why| format!("to {leaf}: {why}"))?;
        }
    }
    Ok(())
}

/// Rebuilds a session, to a record or to its end.
fn rebuild(text: &str, leaf: Option<&str>, options: &RebuildOptions) -> Result<Rebuilt, String> {
    let leaf = leaf.map(str::to_owned);
    let choice = Choice { from: Some(Dialect::Pi), leaf, ..Choice::default() };
    let input = open(Input::memory("t", text.as_bytes().to_vec()), &choice);
    let rebuilt = input.and_then(|input| from_inputs(&[input], options));
    rebuilt.map_err(|error| format!("rebuild failed: {error:#}"))
}
