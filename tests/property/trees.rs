//! Generated transcripts of pi, which are trees: branches, compactions, interrupted replies, and damage.
//!
//! The law is that a tree gives the same messages as a transcript that has only the records on the path to the leaf.
//! The code here that finds the path is independent of the reader.

use std::collections::HashMap;
use std::path::PathBuf;

use clawutils::dialect::{Choice, Dialect, open};
use clawutils::input::Input;
use clawutils::messages::rebuild::{RebuildOptions, Rebuilt, from_inputs};
use serde_json::{Value, json};

use super::any::{Law, is_sound, lines, same};
use super::choices::Choices;

/// A tree under construction.
struct Tree<'c> {
    choices: &'c mut Choices,
    records: Vec<Value>,
    calls: usize,
}

/// Generates a tree without damage.
fn tree(choices: &mut Choices) -> Vec<Value> {
    let mut tree = Tree { choices, records: Vec::new(), calls: 0 };
    for _ in 0..1 + tree.choices.below(20) {
        tree.grow();
    }
    tree.records
}

impl Tree<'_> {
    /// Adds a record, usually as a child of the last one, otherwise as a child of any record or as a new root.
    fn grow(&mut self) {
        let count = self.records.len();
        let parent = match count {
            0 => None,
            _ if self.choices.one_in(5) => Some(self.choices.below(count)),
            _ if self.choices.one_in(20) => None,
            _ => Some(count - 1),
        };
        let mut record = self.content();
        record["id"] = json!(format!("r{count}"));
        record["parentId"] = json!(parent.map(|parent| format!("r{parent}")));
        record["timestamp"] = json!("2026-01-01T00:00:00Z");
        self.records.push(record);
    }

    fn content(&mut self) -> Value {
        let count = self.records.len();
        let message = |message: Value| json!({"type": "message", "message": message});
        match self.choices.below(10) {
            0..3 => message(json!({"role": "user", "content": format!("u{count}")})),
            3..5 => {
                let stop = self.choices.of_these(&["stop", "aborted", "error", "length"]);
                let text = json!([{"type": "text", "text": format!("a{count}")}]);
                message(json!({"role": "assistant", "content": text, "stopReason": stop}))
            }
            5 => {
                self.calls += 1;
                let id = format!("c{}", self.calls);
                let call = json!([{"type": "toolCall", "id": id, "name": "t", "arguments": {}}]);
                let stop = self.choices.of_these(&["toolUse", "toolUse", "aborted"]);
                message(json!({"role": "assistant", "content": call, "stopReason": stop}))
            }
            6 => {
                let call = 1 + self.choices.below(self.calls.max(1));
                message(json!({"role": "toolResult", "toolCallId": format!("c{call}"),
                    "content": [{"type": "text", "text": format!("t{count}")}]}))
            }
            7 => {
                let kept = format!("r{}", self.choices.below(count + 1));
                json!({"type": "compaction", "summary": format!("s{count}"), "firstKeptEntryId": kept})
            }
            8 => json!({"type": "branch_summary", "summary": format!("b{count}")}),
            _ => json!({"type": self.choices.of_these(&["label", "model_change", "novelty"])}),
        }
    }
}

fn header() -> Value {
    json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z"})
}

fn text(records: &[Value]) -> String {
    [header()].iter().chain(records).map(|record| format!("{record}\n")).collect()
}

fn rebuild(text: &str, leaf: Option<String>) -> Result<Rebuilt, String> {
    let choice = Choice {
        from: Some(Dialect::Pi),
        leaf,
        directory: PathBuf::from("/nonexistent"),
        ..Choice::default()
    };
    let input = Input::memory("t", text.as_bytes().to_vec());
    open(input, &choice)
        .and_then(|input| from_inputs(&[input], &RebuildOptions::default()))
        .map_err(|error| format!("{error:#}"))
}

/// Returns the records from the root to a leaf.
fn path(records: &[Value], leaf: usize) -> Vec<Value> {
    let places: HashMap<&str, usize> = records
        .iter()
        .zip(0..)
        .filter_map(|(record, at)| Some((record["id"].as_str()?, at)))
        .collect();
    let (mut path, mut next) = (Vec::new(), Some(leaf));
    while let Some(at) = next {
        path.insert(0, records[at].clone());
        next = records[at]["parentId"].as_str().map(|parent| places[parent]);
    }
    path
}

/// Checks that a tree gives the same messages as the path to its leaf alone, with the last record and with a random
/// record as the leaf, and that the order of the records does not matter.
pub fn give_the_messages_of_their_path(seed: u64) -> Law {
    let mut choices = Choices::seeded(seed);
    let records = tree(&mut choices);
    let last = records.len() - 1;
    for leaf in [last, choices.below(records.len())] {
        let id = format!("r{leaf}");
        let whole = rebuild(&text(&records), Some(id.clone()))?;
        is_sound(&whole.messages)?;
        let alone = rebuild(&text(&path(&records, leaf)), None)?;
        same("the tree differs from its path", &lines(&whole.messages), &lines(&alone.messages))?;
        let by_default = rebuild(&text(&records[..=leaf]), None)?;
        same(
            "with the leaf as the last record",
            &lines(&by_default.messages),
            &lines(&whole.messages),
        )?;
        let mut reversed = records.clone();
        reversed.reverse();
        let reversed = rebuild(&text(&reversed), Some(id))?;
        same(
            "with the records in reverse order",
            &lines(&reversed.messages),
            &lines(&whole.messages),
        )?;
    }
    Ok(())
}

/// Checks that a damaged tree gives sound messages, the same each time, and that each finding states a place within the
/// file.
pub fn survive_damage(seed: u64) -> Law {
    let mut choices = Choices::seeded(seed);
    let mut records = tree(&mut choices);
    for _ in 0..1 + choices.below(4) {
        let at = choices.below(records.len());
        let other = format!("r{}", choices.below(records.len() + 2));
        match choices.below(5) {
            0 if records.len() > 1 => drop(records.remove(at)),
            1 => records[at]["id"] = json!(other),
            2 => drop(records[at].as_object_mut().map(|record| record.remove("parentId"))),
            3 => drop(records[at].as_object_mut().map(|record| record.remove("message"))),
            _ => records[at]["parentId"] = json!(other),
        }
    }
    let mut bytes = text(&records);
    if choices.one_in(3) {
        bytes.truncate(choices.below(bytes.len()));
    }
    if bytes.trim().is_empty() {
        return Ok(());
    }
    let rebuilt = rebuild(&bytes, None)?;
    is_sound(&rebuilt.messages)?;
    for found in rebuilt.findings.iter() {
        if found.place.offset + found.place.length > bytes.len() as u64 {
            return Err(format!("a finding has the wrong position: {found}"));
        }
    }
    same(
        "rebuilt a second time",
        &lines(&rebuild(&bytes, None)?.messages),
        &lines(&rebuilt.messages),
    )
}
