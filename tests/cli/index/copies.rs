//! Copies of a session: a call to a provider is counted once, in the session that made it and on the day when it was
//! made.

use std::fs;

use serde_json::{Value, json};

use super::{index, rows};
use crate::common::{AssertExt, Sandbox};

/// Returns the tokens per day.
fn per_day(sandbox: &Sandbox) -> Vec<Value> {
    rows(sandbox, "i.db", "SELECT day, calls, total FROM tokens_by_day ORDER BY day")
}

/// Returns a file of `tests/data/dialects`.
fn data(name: &str) -> String {
    let path = format!("{}/tests/data/dialects/{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(path).expect("a session")
}

#[test]
fn dialects_4_a_fork_of_codex_that_repeats_its_parent_counts_it_once() {
    let sandbox = Sandbox::new();
    let (first, second) =
        ("01970000-0000-7000-8000-000000000001", "01970000-0000-7000-8000-000000000002");
    for (day, thread) in [("01", first), ("02", second)] {
        let name = format!("rollout-2026-05-{day}T10-00-00-{thread}.jsonl");
        sandbox.write(&format!("d/{name}"), data(&format!("codex/{name}")));
    }
    // The order in which the files are read does not matter.
    for files in [["02", "01"], ["01", "02"]] {
        for day in files {
            let file = format!(
                "d/rollout-2026-05-{day}T10-00-00-{}.jsonl",
                if day == "01" { first } else { second }
            );
            index(&sandbox, "i.db", &["update", "--quiet", &file]).success();
        }
        let days = [("2026-05-01", 2), ("2026-05-02", 1)];
        let days = days.map(|(day, calls)| json!({"day": day, "calls": calls, "total": 3300}));
        assert_eq!(per_day(&sandbox), days);
        let by_session = "SELECT calls, total FROM tokens_by_session ORDER BY calls";
        let sessions = [1, 2].map(|calls| json!({"calls": calls, "total": 3300}));
        assert_eq!(rows(&sandbox, "i.db", by_session), sessions);
        fs::remove_file(sandbox.path("i.db")).expect("removed");
    }
}

#[test]
fn a_fork_of_pi_and_an_import_count_once() {
    let sandbox = Sandbox::new();
    let session = data("pi/context-edit.jsonl");
    sandbox.write("d/one.jsonl", &session);
    let fork = session.replacen("0190aaaa", "0190bbbb", 1);
    let more = r#"{"type":"message","id":"a2","parentId":"a5","timestamp":"2026-11-21T14:00:00.000Z","message":{"role":"assistant","content":[{"type":"text","text":"more"}],"provider":"anthropic","model":"m","usage":{"input":100,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"stop"}}"#;
    sandbox.write("d/two.jsonl", format!("{fork}{more}\n"));
    sandbox.cmd("claw-session").args(["import", "d/one.jsonl"]).assert().success();
    index(&sandbox, "i.db", &["update", "--quiet", "."]).success();
    let kinds = "SELECT kind, count(*) AS n, sum(cache_read) AS cached, sum(input) AS input FROM calls GROUP BY kind ORDER BY kind";
    // Two replies, of which one was omitted, and the warmed cache; then another reply, whose id is that of an older one.
    assert_eq!(
        rows(&sandbox, "i.db", kinds),
        [
            json!({"kind": "aside", "n": 1, "cached": 50000, "input": 0}),
            json!({"kind": "reply", "n": 3, "cached": 0, "input": 120}),
        ]
    );
}

#[test]
fn a_call_of_codex_is_known_by_its_response() {
    let sandbox = Sandbox::new();
    let line = |time: &str, kind: &str, payload: Value| {
        json!({"timestamp": time, "type": kind, "payload": payload}).to_string() + "\n"
    };
    let usage = json!({"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2});
    let call = |time: &str, thread: &str, response: &str| {
        let text = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": response}]});
        line(time, "response_item", text)
            + &line(
                time,
                "token_usage_record",
                json!({"thread_id": thread, "response_id": response, "usage": usage}),
            )
            + &line(
                time,
                "event_msg",
                json!({"type": "token_count", "info": {"total_token_usage": {"n": response}, "last_token_usage": usage}}),
            )
    };
    let meta = |id: &str| line("2026-05-01T10:00:00Z", "session_meta", json!({"id": id}));
    // A call that wrote a summary is followed by no item.
    let summary = line(
        "2026-05-01T11:00:00Z",
        "token_usage_record",
        json!({"thread_id": "t1", "response_id": "r2", "usage": usage}),
    );
    let one = meta("t1") + &call("2026-05-01T10:00:00Z", "t1", "r1") + &summary;
    let two = meta("t2")
        + &call("2026-05-03T10:00:00Z", "t1", "r1")
        + &call("2026-05-03T10:00:00Z", "t2", "r3");
    sandbox.write("d/rollout-1-t1.jsonl", one);
    sandbox.write("d/rollout-2-t2.jsonl", two);
    index(&sandbox, "i.db", &["update", "--quiet", "d"]).success();
    let days = [("2026-05-01", 2, 24), ("2026-05-03", 1, 12)];
    let days = days.map(|(day, calls, total)| json!({"day": day, "calls": calls, "total": total}));
    assert_eq!(per_day(&sandbox), days);
}

/// Returns the calls, and the sum of all tokens, of each kind.
fn per_kind(sandbox: &Sandbox) -> Vec<Value> {
    let sql = "SELECT kind, count(*) AS calls, sum(input) AS input, sum(cache_read) AS cached, sum(output) AS output FROM calls GROUP BY kind ORDER BY kind";
    rows(sandbox, "i.db", sql)
}

#[test]
fn audit_41_copilot_counts_calls_of_subagents_and_copies_once() {
    let sandbox = Sandbox::new();
    let event = |kind: &str, data: Value| json!({"type": kind, "data": data, "id": kind, "timestamp": "2026-05-01T10:00:00Z", "parentId": null});
    let used = |id: &str| {
        let origin = json!({"sourceSessionId": "s", "sequence": 1, "usageId": id});
        let usage = json!({"model": "m", "inputTokens": 12, "cacheReadTokens": 2, "outputTokens": 9, "apiCallId": id, "accounting": origin});
        event("session.usage_record", json!({"usage": usage}))
    };
    let reply = json!({"model": "m", "content": "hello", "toolRequests": [], "apiCallId": "r1"});
    let start =
        |id: &str| event("session.start", json!({"sessionId": id, "context": {"cwd": "/w"}}));
    let rest = [
        event("user.message", json!({"content": "hi"})),
        used("r1"),
        event("assistant.message", reply),
        used("r2"),
    ];
    let rest: String = rest.iter().map(|event| format!("{event}\n")).collect();
    for id in ["s", "t"] {
        sandbox.write(&format!("d/{id}/events.jsonl"), format!("{}\n{rest}", start(id)));
    }
    index(&sandbox, "i.db", &["update", "--quiet", "d"]).success();
    let row = |kind: &str| json!({"kind": kind, "calls": 1, "input": 10, "cached": 2, "output": 9});
    assert_eq!(per_kind(&sandbox), [row("aside"), row("reply")]);
    let words = sandbox.cmd("claw-rebuild").arg("d/s/events.jsonl").assert().success().stderr("");
    let hello = json!([{"type": "text", "text": "hello"}]);
    let messages =
        [json!({"role": "user", "content": "hi"}), json!({"role": "assistant", "content": hello})];
    assert_eq!(words.json(), messages);
}

#[test]
fn audit_41_gemini_cli_counts_what_a_resume_replaced() {
    let sandbox = Sandbox::new();
    let reply = |id: &str| {
        let tokens = json!({"input": 10, "output": 5, "cached": 4, "thoughts": 1});
        json!({"id": id, "timestamp": "2026-05-01T10:00:00Z", "type": "gemini", "content": "hello", "model": "m", "tokens": tokens})
    };
    let user =
        json!({"id": "u", "timestamp": "2026-05-01T10:00:00Z", "type": "user", "content": "hi"});
    let lines = [
        json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-05-01T10:00:00Z", "kind": "main"}),
        user.clone(),
        reply("a"),
        json!({"$set": {"messages": [user]}}),
        reply("b"),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write("d/session-1.jsonl", &text);
    sandbox.write("d/session-2.jsonl", &text);
    index(&sandbox, "i.db", &["update", "--quiet", "d"]).success();
    let row = |kind: &str| json!({"kind": kind, "calls": 1, "input": 6, "cached": 4, "output": 6});
    assert_eq!(per_kind(&sandbox), [row("aside"), row("reply")]);
}
