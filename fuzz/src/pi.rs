//! Tests sessions of pi that mix, in any order and on any branches, prompts, replies, results, edits, compactions and summaries of
//! branches.

use super::{expect, laws};

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
    expect(laws::check(text.as_bytes()).map(drop));
    expect(laws::check_each_option(text.as_bytes()));
}
