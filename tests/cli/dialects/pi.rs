//! Tests with pi's sessions.

use std::fs;

use predicates::str::contains;
use serde_json::{Value, json};

use super::{assert_same, corpus, plain, read_json, run, sessions, used, without_additions};
use crate::common::{AssertExt, Sandbox};

/// The prompt with which each session of the corpus was resumed.
const PROBE: &str = "Resume probe: where were we?";

/// Returns the messages that pi sent, without the text that it puts around summaries, and with `[interrupted]` as the
/// result of an interrupted call.
fn sent(request: &Value) -> Vec<Value> {
    let mut messages = plain(request["messages"].as_array().expect("messages"));
    for block in messages.iter_mut().flat_map(|it| it["content"].as_array_mut().expect("a list")) {
        let text = block["text"].as_str().unwrap_or_default();
        let summary = text.strip_prefix("The conversation history before this point was compacted into the following summary:\n\n<summary>\n");
        if let Some(summary) = summary.and_then(|it| it.strip_suffix("\n</summary>")) {
            block["text"] = json!(summary);
        }
        if block["content"] == "No result provided" {
            block["content"] = json!("[interrupted]");
        }
    }
    messages
}

#[test]
fn every_session_gives_the_request_that_pi_sent() {
    for directory in sessions("pi") {
        let name = directory.display().to_string();
        let text = fs::read_to_string(directory.join("session.jsonl")).expect("a session");
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        let probe = json!({"type": "message", "id": "probe", "parentId": last["id"],
            "message": {"role": "user", "content": PROBE}});
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", format!("{text}{probe}\n"));
        let ours = without_additions(run(&sandbox, &["claw-rebuild", "s.jsonl"]));
        let theirs = sent(&read_json(directory.join("sent-after-resume.json")));
        assert_same(&name, &ours, &theirs);
        sandbox.cmd("claw-rebuild").args(["--ready", "s.jsonl"]).assert().success();
        let usage = &read_json(directory.join("facts.json"))["active_branch"]["usage_sum"];
        assert_eq!(used(&sandbox), counts(usage), "{name}");
    }
}

fn counts(usage: &Value) -> [u64; 4] {
    ["input", "cacheRead", "cacheWrite", "output"]
        .map(|name| usage[name].as_u64().expect("a count"))
}

#[test]
fn a_large_session_of_version_1_is_read_completely() {
    let Some(directory) = corpus("pi") else { return };
    let text = fs::read_to_string(directory.join("large-session.jsonl")).expect("a session");
    let (mut replies, mut calls, mut results, mut sum) = (0, 0, 0, [0; 4]);
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        let message = &entry["message"];
        match message["role"].as_str() {
            Some("assistant") => {
                replies += 1;
                let content = message["content"].as_array().expect("blocks");
                let is_whole = !matches!(message["stopReason"].as_str(), Some("error" | "aborted"));
                let own = content.iter().filter(|block| block["type"] == "toolCall").count();
                calls += if is_whole { own } else { 0 };
                for (sum, own) in sum.iter_mut().zip(counts(&message["usage"])) {
                    *sum += own;
                }
            }
            Some("toolResult") => results += 1,
            _ => {}
        }
    }
    assert_eq!((replies, results), (453, 373));
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", &text);
    sandbox.sh("chmod 600 s.jsonl; claw-check s.jsonl").assert().success().stdout("");
    let messages = run(&sandbox, &["claw-rebuild", "--strict", "s.jsonl"]);
    let count = |kind: &str| {
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        blocks.filter(|block| block["type"] == kind).count()
    };
    assert_eq!((count("tool_use"), count("tool_result")), (calls, 373));
    assert_eq!(used(&sandbox), sum);
}

const TREE: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"b1","parentId":"a1","timestamp":"2026-01-01T00:00:02Z","message":{"role":"user","content":"old"}}
{"type":"message","id":"c1","parentId":"a1","timestamp":"2026-01-01T00:00:03Z","message":{"role":"user","content":"new"}}
"#;

#[test]
fn a_branch_is_chosen_by_its_leaf() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", TREE);
    for (options, texts) in [(vec![], ["one", "new"]), (vec!["--leaf", "b1"], ["one", "old"])] {
        let words = [vec!["claw-rebuild"], options, vec!["s.jsonl"]].concat();
        let messages = run(&sandbox, &words);
        let blocks = messages[0]["content"].as_array().expect("blocks");
        assert_eq!(blocks.iter().map(|it| it["text"].clone()).collect::<Vec<_>>(), texts);
    }
    sandbox.sh("chmod 600 s.jsonl; claw-check s.jsonl").assert().success().stdout(
        "{\"rule\":\"other-branch\",\"severity\":\"note\",\"input\":\"s.jsonl\",\"line\":3,\"offset\":208,\
         \"length\":121,\"id\":\"b1\",\"repaired\":false,\"message\":\"another branch, 1 record after 'a1'; --leaf b1 \
         reads it\"}\n",
    );
    let show = sandbox.cmd("claw-show").args(["--leaf", "b1", "s.jsonl"]).assert().success();
    show.stdout(contains("old"));
    sandbox
        .cmd("claw-rebuild")
        .args(["--leaf", "zz", "s.jsonl"])
        .assert()
        .code(65)
        .stderr("claw-rebuild: cannot find leaf 'zz' in 's.jsonl'; claw-check lists branches\n");
    sandbox
        .cmd("claw-rebuild")
        .args(["--leaf", "zz"])
        .write_stdin("{\"type\":\"user\",\"content\":\"x\"}\n")
        .assert()
        .code(65)
        .stderr("claw-rebuild: cannot choose a leaf in '<stdin>': it has no branches\n");
}

#[test]
fn findings_name_the_lines_of_the_file() {
    let sandbox = Sandbox::new();
    let torn = TREE
        .replace("\"content\":\"new\"", "\"content\":[{\"type\":\"text\",\"text\":\"new\"},{}]");
    sandbox.write("s.jsonl", format!("{torn}torn\n"));
    let run = sandbox.cmd("claw-rebuild").args(["--log", "json", "s.jsonl"]).assert().success();
    let lines: Vec<Value> =
        run.stderr_text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let places: Vec<_> = lines.iter().map(|it| (&it["rule"], &it["line"], &it["offset"])).collect();
    assert_eq!(
        places[..2],
        [
            (&json!("not-an-object"), &json!(5), &json!(torn.len())),
            (&json!("bad-record"), &json!(4), &json!(330)),
        ]
    );
}

#[test]
fn long_values_are_not_copied_to_a_temporary_file() {
    let sandbox = Sandbox::new();
    let mut text = TREE.to_owned();
    let long = "x".repeat(1 << 20);
    for n in 0..10 {
        let parent = if n == 0 { "c1".to_owned() } else { format!("l{}", n - 1) };
        let entry = json!({"type": "message", "id": format!("l{n}"), "parentId": parent,
            "message": {"role": "user", "content": format!("{n}{long}")}});
        text.push_str(&format!("{entry}\n"));
    }
    sandbox.write("s.jsonl", text);
    let run = sandbox.cmd("claw-rebuild").arg("s.jsonl").env("TMPDIR", sandbox.path("none"));
    assert!(run.assert().success().stdout_text().len() > 10 << 20);
}

#[test]
fn a_file_whose_header_has_no_time_is_read_with_from() {
    let sandbox = Sandbox::new();
    let header = r#"{"type":"session","version":3,"id":"s"}"#;
    let prompt =
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"one"}}"#;
    sandbox.write("s.jsonl", format!("{header}\n{prompt}\n"));
    sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().code(65).stdout("").stderr(
        "claw-rebuild: cannot read 's.jsonl': a transcript of pi, OpenClaw or GoClaw; give it as a file of its own, with --from pi\n",
    );
    let message = "{\"role\":\"user\",\"content\":\"one\"}\n";
    let named = ["--from", "pi", "s.jsonl"];
    sandbox.cmd("claw-rebuild").args(named).assert().success().stdout(message);
}
