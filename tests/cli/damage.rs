//! claw-turn: an ordinary turn makes a damaged session usable again, without a manual step.

use serde_json::{Value, json};

use crate::common::provider::FakeProvider;
use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, builds, log, rebuild_meta, words};

/// A damaged transcript, and the context window of the provider if it enforces one.
struct DamagedSession {
    name: &'static str,
    lines: String,
    window: Option<u64>,
}

fn damaged(name: &'static str, lines: impl Into<String>) -> DamagedSession {
    DamagedSession { name, lines: lines.into(), window: None }
}

fn thinking(kind: &str) -> Value {
    match kind {
        "thinking" => json!({"type": kind, "thinking": "Let me see.", "signature": "c2lnbmVk"}),
        _ => json!({"type": kind, "data": "b3BhcXVl"}),
    }
}

/// Returns a transcript whose last reply consists of thinking, because it reached the output limit.
fn ends_in(kind: &str) -> String {
    let reply =
        json!({"type": "assistant", "content": [thinking(kind)], "stop_reason": "max_tokens"});
    Conversation::new().user("Why?").record(reply).lines()
}

/// Returns a transcript whose truncation records do not match the results that they shorten.
fn wrong_truncation() -> String {
    let sandbox = Sandbox::new();
    builds().append(&sandbox, "s.jsonl");
    let run = sandbox
        .cmd("claw-truncate")
        .args(["--record", "--window", "4000"])
        .write_stdin(rebuild_meta(&sandbox, "s.jsonl"))
        .assert();
    let mut records = run.json();
    assert!(!records.is_empty(), "nothing was shortened");
    for record in &mut records {
        record["sha256"] = json!("0".repeat(16));
    }
    let views: String = records.iter().map(|record| format!("{record}\n")).collect();
    sandbox.read_text("s.jsonl") + &views
}

fn damaged_sessions() -> Vec<DamagedSession> {
    let chat = Conversation::plain(4, 40);
    let count = |tokens: u64| {
        json!({"type": "assistant", "content": "Yes.", "model": "test-model",
            "usage": {"input_tokens": tokens, "output_tokens": 1}})
    };
    let broken = json!({"type": "assistant", "content": "It is", "interrupted": true});
    let overflow = json!({"type": "error", "class": "overflow", "message": "prompt is too long"});
    let call = |id: &str| json!({"type": "tool_use", "tool_use_id": id, "name": "ls", "input": {}});
    let result =
        |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let reused = Conversation::new().user("List.").record(result("c", "early")).record(call("c"));
    vec![
        damaged("a reply that ends in thinking", ends_in("thinking")),
        damaged("a reply that ends in redacted thinking", ends_in("redacted_thinking")),
        damaged("a truncation that matches no result", wrong_truncation()),
        damaged("an empty file", ""),
        damaged("an overflow error", chat.user("Go on.").record(overflow).lines()),
        damaged(
            "an interrupted reply",
            Conversation::plain(4, 40).user("Go on.").record(broken).lines(),
        ),
        damaged("a call id that is used twice", reused.record(result("c", "late")).lines()),
        damaged(
            "a call without a result",
            Conversation::new().user("List.").record(call("d")).lines(),
        ),
        damaged("a line of text", format!("{}not a record\n", Conversation::plain(2, 40).lines())),
        damaged(
            "a torn last line",
            format!("{}{{\"type\":\"us", Conversation::plain(2, 40).lines()),
        ),
        DamagedSession {
            window: Some(4000),
            ..damaged("a token count that is far too small", {
                let conversation = builds().user(&log(200)).record(count(5));
                conversation.user(&words(500)).assistant(&words(500)).lines()
            })
        },
        DamagedSession {
            window: Some(60_000),
            ..damaged("a token count that is far too large", {
                Conversation::plain(4, 40).user("More.").record(count(9_000_000)).lines()
            })
        },
    ]
}

#[test]
fn an_ordinary_turn_makes_every_damaged_session_usable() {
    for DamagedSession { name, lines, window } in damaged_sessions() {
        let (sandbox, mut provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("s.jsonl", &lines);
        let mut turn = sandbox.cmd("claw-turn").arg("--no-checkpoint");
        if let Some(tokens) = window {
            provider = provider.window(tokens);
            turn = turn.args(["--window", &tokens.to_string()]);
        }
        let run = turn.envs(provider.env()).args(["-m", "And now?", "s.jsonl"]).assert();
        assert!(run.get_output().status.code() == Some(0), "the turn after {name} failed\n{run}");
        provider.all_legal();
        assert!(
            sandbox.read_text("s.jsonl").starts_with(&lines),
            "{name}: the transcript was rewritten"
        );
        let requests = provider.requests();
        let answered =
            requests.last().is_some_and(|last| last.last_user_text().ends_with("And now?"));
        assert!(answered, "{name}: the prompt was not sent last");
    }
}

#[test]
fn audit_11_an_implausible_learned_window_does_not_make_a_model_unusable() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let learned =
        json!({"endpoint": provider.url(), "model": "test-model", "window": 5, "ts": 1e9});
    sandbox.write("state/windows.jsonl", format!("{learned}\n"));
    sandbox.write("s.jsonl", Conversation::plain(4, 40).lines());
    let turn = sandbox.cmd("claw-turn").envs(provider.env()).args(["-m", "And now?", "s.jsonl"]);
    turn.assert().success();
    provider.all_legal();
}
