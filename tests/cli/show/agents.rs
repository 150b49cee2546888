//! The transcripts of subagents in the page of their session.

use super::browser::seen;
use super::user;
use crate::common::{AssertExt, Sandbox};
use serde_json::json;
use std::fs;

/// Writes a session of Claude Code with a subagent that has a subagent itself, in the places of an older and a newer version.
fn with_subagents(sandbox: &Sandbox) {
    let record = |kind: &str, agent: &str, number: u64, content: serde_json::Value| {
        let parent = (number > 0).then(|| format!("{agent}{}", number - 1));
        let mut record = json!({
            "type": kind, "uuid": format!("{agent}{number}"), "parentUuid": parent, "sessionId": "s1", "cwd": "/a",
            "timestamp": "2026-03-01T09:00:00.000Z", "isSidechain": !agent.is_empty(),
            "message": {"role": kind, "content": content, "id": format!("m{agent}{number}")},
        });
        if !agent.is_empty() {
            record["agentId"] = agent.into();
        }
        format!("{record}\n")
    };
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Agent", "input": {"subagent_type": "Explore", "prompt": "Count them"}}]);
    let result = |id: &str, agent: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": format!("Four.\nagentId: {agent} (for resuming)")}]);
    let session = record("user", "", 0, json!("count"))
        + &record("assistant", "", 1, call("t1"))
        + &record("user", "", 2, result("t1", "a77"))
        + &record("assistant", "", 3, call("t2"))
        + &record("user", "", 4, result("t2", "../../secret"))
        + &record("assistant", "", 5, call("t3"))
        + &record("user", "", 6, result("t3", "a77"))
        + &record("assistant", "", 7, json!([{"type": "text", "text": "Four files."}]));
    let inner = record("user", "a77", 0, json!("Count <b>them</b>"))
        + &record("assistant", "a77", 1, call("t4"))
        + &record("user", "a77", 2, result("t4", "b88"))
        + &record("assistant", "a77", 3, json!([{"type": "text", "text": "# Found\nsk-123"}]));
    let innermost = record("user", "b88", 0, json!("Look"))
        + &record("assistant", "b88", 1, json!([{"type": "text", "text": "Looked."}]));
    for (file, text) in [
        ("p/s1.jsonl", session),
        ("p/agent-a77.jsonl", inner),
        ("p/s1/subagents/agent-b88.jsonl", innermost),
        ("p/agent-other.jsonl", user("not of a subagent")),
    ] {
        let path = sandbox.path(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
}

#[test]
fn audit_42_transcripts_of_subagents_are_folded_in_the_page_of_their_session() {
    let sandbox = Sandbox::new();
    with_subagents(&sandbox);
    sandbox.write("patterns", "key sk-[0-9]+\n");
    let command = ["--format", "html", "--redact", "patterns", "p/s1.jsonl"];
    let page = sandbox.cmd("claw-show").args(command).assert().success().stderr("").stdout_text();
    for (part, count) in [
        (
            "<details class=\"agent\" id=\"agent-a77\">\n<summary>Transcript of the subagent · 1 call</summary>\n<section class=\"turn\" id=\"agent-a77-turn-1\">\n<h4>",
            1,
        ),
        ("<details class=\"agent\" id=\"agent-b88\">", 1),
        ("<details class=\"agent\"", 2),
        ("<a href=\"#agent-a77\">Transcript of the subagent</a>", 1),
        ("Count &lt;b&gt;them&lt;/b&gt;", 1),
        ("<h5>User", 2),
        ("[REDACTED:key]", 1),
        ("sk-123", 0),
        ("id=\"turn-1\"", 1),
        ("not of a subagent", 0),
    ] {
        assert_eq!(page.matches(part).count(), count, "{part}\n{page}");
    }
    let here = sandbox.sh("cd p && claw-show --format html --redact ../patterns s1.jsonl").assert();
    assert_eq!(here.success().stdout_text(), page, "in the directory of the file");
    let place = |text: &str| page.find(text).expect("a part of the page");
    assert!(place("agentId: a77") < place("agent-a77-turn-1"), "after the result");
    assert!(place("agent-b88-turn-1") < place("Found"), "in the subagent that called it");
    // Other forms, other operands and a directory without the files have none.
    let text = sandbox.cmd("claw-show").arg("p/s1.jsonl").assert().success().stdout_text();
    assert!(!text.contains("Looked."), "{text}");
    let piped = sandbox.sh("claw-show --format html <p/s1.jsonl").assert().success().stdout_text();
    assert!(!piped.contains("Looked."), "{piped}");
    let pages = json!([["subagents", "page.html", 390]]);
    sandbox.write("page.html", page);
    let Some(seen) = seen(&sandbox, &pages) else { return };
    assert_eq!(
        (&seen["subagents"]["overflow"], &seen["subagents"]["active"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn audit_41_subagents_in_the_file_of_the_session_are_folded_after_their_results() {
    let sandbox = Sandbox::new();
    let record = |kind: &str,
                  is_aside: bool,
                  id: &str,
                  parent: &str,
                  content: serde_json::Value| {
        let parent = Some(parent).filter(|parent| !parent.is_empty());
        let record = json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s1", "cwd": "/a", "isSidechain": is_aside,
            "timestamp": "2026-03-01T09:00:00.000Z",
            "message": {"role": kind, "content": content, "id": format!("m{id}")},
        });
        format!("{record}\n")
    };
    let call = |id: &str, prompt: &str| json!([{"type": "tool_use", "id": id, "name": "Task", "input": {"subagent_type": "x", "prompt": prompt}}]);
    let result =
        |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "It is done."}]);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let aside = |id: &str, prompt: &str, answer: &str| {
        record("user", true, &format!("{id}1"), "", json!(prompt))
            + &record("assistant", true, &format!("{id}2"), &format!("{id}1"), text(answer))
    };
    let session = record("user", false, "u1", "", json!("count"))
        + &aside("w", "Warmup", "Ready.")
        + &record("assistant", false, "a1", "u1", call("t1", "Count"))
        + &record("assistant", false, "a2", "a1", call("t2", "Count"))
        + &aside("s", "Count", "First counted.")
        + &aside("t", "Count", "Second counted.")
        + &record("user", false, "r1", "a1", result("t1"))
        + &record("user", false, "r2", "a2", result("t2"))
        + &record("assistant", false, "a3", "r2", text("Both counted."));
    sandbox.write("s1.jsonl", session);
    let page = sandbox.cmd("claw-show").args(["--format", "html", "s1.jsonl"]).assert();
    let page = page.success().stderr("").stdout_text();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no '{text}' in {page}"));
    assert_eq!(page.matches("<details class=\"agent\"").count(), 2, "{page}");
    assert!(place("id=\"agent-in-session-1\"") < place("First counted."), "{page}");
    assert!(place("First counted.") < place("id=\"agent-in-session-2\""), "{page}");
    assert!(place("id=\"agent-in-session-2\"") < place("Second counted."), "{page}");
    assert!(place("Second counted.") < place("Both counted."), "{page}");
    assert!(!page.contains("Ready."), "{page}");
    let text = sandbox.cmd("claw-show").arg("s1.jsonl").assert().success().stdout_text();
    assert!(!text.contains("First counted."), "{text}");
}
