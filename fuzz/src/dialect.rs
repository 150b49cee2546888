//! Tests transcripts that mix, in any order, lines in claw0's two formats, lines of other programs' tree-shaped
//! transcripts, and records of clawutils.

use super::{expect, laws};
use clawutils::dialect;
use clawutils::json::Object;

/// The lines from which the first byte of a pair selects one. `#` is replaced with the digit that the second byte
/// selects.
const LINES: [&str; 24] = [
    // claw0's first format.
    r##"{"type":"session","id":"81efc48888b#","key":"main:cli:user","created":"2026-01-01T00:00:00+00:00"}"##,
    r##"{"type":"user","content":"q#","ts":"2026-01-01T00:00:0#+00:00"}"##,
    r##"{"type":"assistant","content":"a#","ts":"2026-01-01T00:00:0#+00:00"}"##,
    r##"{"type":"tool_use","name":"f","tool_use_id":"c#","input":{},"ts":"2026-01-01T00:00:0#+00:00"}"##,
    r##"{"type":"tool_result","tool_use_id":"c#","output":"r#","ts":"2026-01-01T00:00:0#+00:00"}"##,
    // claw0's current format.
    r##"{"type":"assistant","content":[{"type":"text","text":"look"},{"type":"tool_use","id":"c#","name":"f","input":{}}],"ts":1.#}"##,
    r##"{"type":"assistant","content":[{"type":"tool_use","id":"c#","name":"f","input":{"a":#}}],"ts":1.#}"##,
    r##"{"type":"tool_use","tool_use_id":"c#","name":"f","input":{},"ts":1.#}"##,
    r##"{"type":"tool_result","tool_use_id":"c#","content":"r#","ts":1.#}"##,
    r##"{"type":"user","content":"q#","ts":1.#}"##,
    // A message as it is sent, and a record with a result as it is sent.
    r##"{"role":"user","content":"q#"}"##,
    r##"{"type":"user","content":[{"type":"tool_result","tool_use_id":"c#","content":[{"type":"text","text":"r#"}]}]}"##,
    // Trees.
    r##"{"type":"session","version":#,"id":"a","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}"##,
    r##"{"type":"message","id":"b#","parentId":"a","timestamp":"x","message":{"role":"user","content":"q"}}"##,
    r##"{"type":"compaction","id":"d#","parentId":"b#","summary":"s","firstKeptEntryId":"b#","tokensBefore":9}"##,
    // Lines that look like those of trees. Only the last of them is part of a tree, because the escape in its type is
    // decoded.
    r##"{"type":"session","timestamp":"x","created":"x"}"##,
    r##"{"type":"message","message":"words"}"##,
    r##"{"type":"message","content":"words"}"##,
    r##"{"type":["session"],"timestamp":"x"}"##,
    r##"{"type":"\u006dessage","message":{"n":#}}"##,
    // Our own format.
    r##"{"id":"e#","type":"user","ts":5.5,"content":"q#"}"##,
    r##"{"id":"f#","type":"compaction","ts":5.5,"summary":"s","first_kept_entry_id":"e#"}"##,
    r##"{"id":"g#","type":"retract","ts":5.5,"target":"f#"}"##,
    r##"{"id":"h#","type":"error","ts":5.5,"class":"overflow","status":400,"message":"m","model":"m"}"##,
];

/// The indices of the lines that identify a file as a tree.
const TREES: [usize; 3] = [12, 13, 19];

/// Tests the transcript that `bytes` select, two bytes for each line.
pub fn run(bytes: &[u8]) {
    let mut text = Vec::new();
    for pair in bytes.chunks_exact(2) {
        let kind = usize::from(pair[0]) % (LINES.len() + 2);
        match LINES.get(kind) {
            Some(line) => {
                let line = line.replace('#', &(pair[1] % 4).to_string());
                let object = Object::parse(&line).expect("lines are objects");
                let is_tree = dialect::foreign_tree(&object).is_some();
                assert_eq!(is_tree, TREES.contains(&kind), "{line}");
                text.extend(line.bytes());
                text.push(b'\n');
            }
            // Damage: an arbitrary byte, or a missing line end.
            None if kind == LINES.len() => text.push(pair[1]),
            None => drop(text.pop()),
        }
    }
    expect(laws::check(&text).map(drop));
    expect(laws::check_each_option(&text));
}
