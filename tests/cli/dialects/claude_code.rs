//! Tests with Claude Code's project files.

use std::fs;

use predicates::str::contains;
use serde_json::{Value, json};

use super::{assert_same, read_json, run, sessions, used, without_additions, without_reminders};
use crate::common::{AssertExt, Sandbox};

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

#[test]
fn audit_41_a_subagent_that_is_a_fork_continues_its_session() {
    let sandbox = Sandbox::new();
    let record = |id: &str, parent: Option<&str>, text: &str, is_aside: bool| {
        let kind = if id.starts_with('a') { "assistant" } else { "user" };
        let content = json!([{"type": "text", "text": text}]);
        let record = json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1", "isSidechain": is_aside, "cwd": "/w",
            "agentId": is_aside.then_some("x1"), "timestamp": "2026-03-01T09:00:00.000Z",
            "message": {"role": kind, "id": format!("m{id}"), "content": content},
        });
        format!("{record}\n")
    };
    let session = record("u1", None, "one", false)
        + &record("a1", Some("u1"), "two", false)
        + &record("u2", Some("a1"), "later", false);
    let reference = |last: &str, session: &str| {
        let record = json!({
            "type": "fork-context-ref", "agentId": "x1", "parentSessionId": session, "parentLastUuid": last,
            "contextLength": 2,
        });
        format!("{record}\n")
    };
    let own = record("u7", None, "task", true) + &record("a7", Some("u7"), "done", true);
    let file = "p/s1/subagents/agent-x1.jsonl";
    std::fs::create_dir_all(sandbox.path("p/s1/subagents")).expect("a directory");
    sandbox.write("p/s1.jsonl", session);
    let texts = |run: assert_cmd::assert::Assert| {
        let lines = run.success().stdout_text();
        let texts = lines.lines().map(|line| {
            let message: Value = serde_json::from_str(line).expect("a message");
            let texts = message["content"].as_array().expect("blocks").iter();
            texts.map(|it| it["text"].as_str().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        });
        texts.collect::<Vec<_>>().join("|")
    };
    sandbox.write(file, reference("a1", "s1") + &own);
    let run = || sandbox.cmd("claw-rebuild").arg(file).assert();
    assert_eq!(texts(run().stderr("")), "one|two|task|done");
    let header = sandbox.cmd("claw-show").arg(file).assert().success().stdout_text();
    assert!(header.contains("subagent x1"), "{header}");
    // A session that is missing, or does not have the record. The id is never a path.
    for (last, session, why) in [
        ("zz", "s1", "continues session 's1', which does not have its record 'zz'"),
        ("a1", "s2", "continues session 's2', which cannot be found"),
        ("a1", "../s1", "continues session '../s1', which cannot be found"),
    ] {
        sandbox.write(file, reference(last, session) + &own);
        assert_eq!(texts(run().stderr(contains(why))), "task|done", "{why}");
    }
}
