//! Generated transcripts of pi, which are trees: branches, compactions, interrupted replies, and damage.
//!
//! The first law is that a tree gives the same messages as a transcript that has only the records on the path to the
//! leaf. The second is that a tree gives the same messages as a list of what pi 1.5.2 would send, without edits and with
//! at most one compaction: [`projection`] is a model of pi's own rules, from its documentation (docs/session-format.md,
//! "Context Building") and session-manager.ts. The code here that finds the path is independent of the reader.

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

/// Generates a tree as pi 1.5 writes it: edits name messages of their own branch, and compactions a record of it or
/// themselves.
fn edited_tree(choices: &mut Choices) -> Vec<Value> {
    let mut tree = Tree { choices, records: Vec::new(), calls: 0 };
    for _ in 0..2 + tree.choices.below(24) {
        tree.grow();
        let own = tree.records.len() - 1;
        let path = path(&tree.records, own);
        let ancestors = &path[..path.len() - 1];
        let editable: Vec<&Value> = ancestors.iter().filter(|it| is_editable(it)).collect();
        let place = tree.records[own].clone();
        let mut record = match tree.choices.below(8) {
            0 | 1 if !editable.is_empty() => {
                let target = editable[tree.choices.below(editable.len())]["id"].clone();
                let text = json!([{"type": "text", "text": format!("new{own}")}]);
                let replacement = match tree.choices.below(4) {
                    0 | 1 => Value::Null,
                    2 => json!({"content": format!("new{own}")}),
                    _ => json!({"content": text}),
                };
                json!({"type": "context_edit", "targetId": target, "replacement": replacement})
            }
            2 => {
                let kept = path[tree.choices.below(path.len())]["id"].clone();
                json!({"type": "compaction", "summary": format!("s{own}"), "firstKeptEntryId": kept,
                    "systemMessage": {"role": "system", "content": "prompt"}})
            }
            3 => json!({"type": "message",
                "message": {"role": "system", "content": "", "sections": {"cwd": format!("{own}")}}}),
            4 => json!({"type": "custom_message", "customType": "x", "content": format!("x{own}")}),
            5 => json!({"type": "usage", "kind": "cache_warm", "usage": {"cacheRead": 9}}),
            _ if place["type"] == "compaction" => json!({"type": "custom", "customType": "x"}),
            _ => continue,
        };
        for member in ["id", "parentId", "timestamp"] {
            record[member] = place[member].clone();
        }
        tree.records[own] = record;
    }
    tree.records
}

fn role(record: &Value) -> Option<&str> {
    match record["type"].as_str() {
        Some("custom_message") => Some("custom"),
        Some("message") => record["message"]["role"].as_str(),
        _ => None,
    }
}

fn is_editable(record: &Value) -> bool {
    matches!(role(record), Some("user" | "assistant" | "toolResult" | "custom"))
}

/// Returns the records that pi sends for a path, as a session of its own: a list without edits, whose only compaction
/// comes first and keeps nothing.
fn projection(path: &[Value]) -> Vec<Value> {
    let compaction = path.iter().rposition(|record| record["type"] == "compaction");
    let mut chosen: Vec<&Value> = Vec::new();
    if let Some(at) = compaction {
        chosen.push(&path[at]);
        let kept = path[..at].iter().position(|it| it["id"] == path[at]["firstKeptEntryId"]);
        chosen.extend(path[kept.unwrap_or(at)..at].iter().filter(|it| role(it) != Some("system")));
    }
    chosen.extend(&path[compaction.map_or(0, |at| at + 1)..]);
    let edits = chosen.iter().filter(|record| record["type"] == "context_edit");
    let edits: HashMap<&str, &Value> =
        edits.filter_map(|edit| Some((edit["targetId"].as_str()?, &edit["replacement"]))).collect();
    let mut sent: Vec<Value> = Vec::new();
    for (index, record) in chosen.into_iter().enumerate() {
        let edit = record["id"].as_str().and_then(|id| edits.get(id));
        let is_sent = match record["type"].as_str() {
            Some("compaction") => index == 0,
            Some("branch_summary") => true,
            _ => role(record).is_some_and(|role| role != "system"),
        };
        if !is_sent || edit.is_some_and(|edit| edit.is_null()) {
            continue;
        }
        let mut own = record.clone();
        if let Some(edit) = edit {
            let content = match (&edit["content"], role(record)) {
                (Value::String(text), Some("assistant" | "toolResult")) => {
                    json!([{"type": "text", "text": text}])
                }
                (content, _) => content.clone(),
            };
            let place = if own["type"] == "message" { &mut own["message"] } else { &mut own };
            place["content"] = content;
        }
        if own["type"] == "compaction" {
            own["firstKeptEntryId"] = own["id"].clone();
        }
        own["parentId"] = sent.last().map_or(Value::Null, |last| last["id"].clone());
        sent.push(own);
    }
    sent
}

/// Checks that a path gives the messages of the list that pi would send.
fn gives_its_projection(records: &[Value]) -> Law {
    let last = records.len() - 1;
    let ours = rebuild(&text(records), None)?;
    is_sound(&ours.messages)?;
    let sent = rebuild(&text(&projection(&path(records, last))), None)?;
    same("the tree differs from what pi sends", &lines(&ours.messages), &lines(&sent.messages))?;
    let reports = |rebuilt: &Rebuilt, rule: &str| {
        rebuilt.findings.iter().any(|finding| finding.rule.name == rule)
    };
    match ["unknown-target", "unknown-first-kept"].iter().find(|rule| reports(&ours, rule)) {
        Some(rule) => Err(format!("{rule} is reported")),
        None => Ok(()),
    }
}

/// Checks that trees with edits, system messages and compactions give the messages that pi would send. A tree that does
/// not is reduced first.
pub fn give_what_pi_sends(seed: u64) -> Law {
    let mut records = edited_tree(&mut Choices::seeded(seed));
    let Err(mut why) = gives_its_projection(&records) else { return Ok(()) };
    let mut at = 0;
    while at < records.len() && records.len() > 1 {
        match gives_its_projection(&without(&records, at)) {
            Err(also) => (records, why, at) = (without(&records, at), also, 0),
            Ok(()) => at += 1,
        }
    }
    Err(format!("{why}\n---\n{}---", text(&records)))
}

/// Returns the records without one and its edits. Its children become children of its parent.
fn without(records: &[Value], at: usize) -> Vec<Value> {
    let (id, parent) = (&records[at]["id"], &records[at]["parentId"]);
    let mut rest: Vec<Value> = records.iter().filter(|it| it["id"] != *id).cloned().collect();
    for record in &mut rest {
        if record["parentId"] == *id {
            record["parentId"] = parent.clone();
        }
        if record["targetId"] == *id {
            record["type"] = json!("custom");
        }
        if record["firstKeptEntryId"] == *id {
            record["firstKeptEntryId"] = record["id"].clone();
        }
    }
    rest
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
