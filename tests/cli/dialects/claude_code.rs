//! Tests with Claude Code's project files.

use std::fs;

use serde_json::{Value, json};

use super::{assert_same, read_json, run, sessions, used, without_additions, without_reminders};
use crate::common::Sandbox;

/// The prompt with which each session of the corpus was resumed.
const PROBE: &str = "Resume probe: where were we?";

/// Returns the id of the record after which Claude Code continued the session.
fn leaf(text: &str) -> Value {
    let mut records =
        text.lines().rev().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let is_leaf = |record: &Value| {
        let kind = record["type"].as_str();
        matches!(kind, Some("user" | "assistant" | "attachment")) && record["isSidechain"] == false
    };
    records.find(is_leaf).expect("a leaf")["uuid"].clone()
}

/// Returns the messages that Claude Code sent, and the reminders that were in them. The filler that it adds when it
/// resumes a session is left out, and the result of a call that was interrupted becomes `[interrupted]`.
fn sent(request: &Value) -> (Vec<Value>, Vec<String>) {
    let is_filler = |message: &Value| message["content"][0]["text"] == "No response requested.";
    let messages = request["messages"].as_array().expect("messages").iter();
    let messages: Vec<Value> = messages.filter(|message| !is_filler(message)).cloned().collect();
    let (mut messages, reminders) = without_reminders(&messages);
    for block in messages.iter_mut().flat_map(|it| it["content"].as_array_mut().expect("a list")) {
        if block["content"].as_str().is_some_and(|it| it.starts_with("[Tool call interrupted")) {
            block["content"] = json!("[interrupted]");
        }
    }
    (messages, reminders)
}

#[test]
fn every_session_gives_the_request_that_claude_code_sent() {
    for directory in sessions("claude-code") {
        let name = directory.display().to_string();
        let text = fs::read_to_string(directory.join("session.jsonl")).expect("a session");
        let probe = json!({"type": "user", "uuid": "probe", "parentUuid": leaf(&text),
            "isSidechain": false, "message": {"role": "user", "content": PROBE}});
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", format!("{text}{probe}\n"));
        let ours = without_additions(run(&sandbox, &["claw-rebuild", "s.jsonl"]));
        let (ours, own_reminders) = without_reminders(&ours);
        let (theirs, mut their_reminders) =
            sent(&read_json(directory.join("sent-after-resume.json")));
        assert_same(&name, &ours, &theirs);
        // Every reminder in the file must have been sent. Claude Code adds more reminders when it resumes a session.
        for reminder in own_reminders {
            let index = their_reminders.iter().position(|it| *it == reminder);
            their_reminders.remove(index.unwrap_or_else(|| panic!("{name}: {reminder}")));
        }
        sandbox.cmd("claw-rebuild").args(["--ready", "s.jsonl"]).assert().success();
    }
}

#[test]
fn usage_is_the_sum_over_replies() {
    for directory in sessions("claude-code") {
        let facts = read_json(directory.join("facts.json"));
        let compactions = facts["compactions"].as_array().map_or(0, Vec::len);
        // In facts.json, the active branch begins at the last compaction. claw-session also counts the records before
        // the compaction.
        let name = if compactions > 0 { "whole_file" } else { "active_branch" };
        let sum = &facts[name]["usage_sum_once_per_message_id"];
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", fs::read(directory.join("session.jsonl")).expect("a session"));
        let names = [
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens",
        ];
        let sum = names.map(|name| sum[name].as_u64().expect("a count"));
        assert_eq!(used(&sandbox), sum, "{}", directory.display());
    }
}
