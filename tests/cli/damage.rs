//! Sessions as faults left them: each is usable again with an ordinary turn, without a manual step.

use serde_json::{Value, json};

use crate::common::provider::FakeProvider;
use crate::common::{AssertExt, Sandbox};
use crate::talks::{Talk, builds, log, rebuild_meta, words};

/// A damage: its name, the transcript that it left, and the window of the provider, if it has one.
struct Damage {
    name: &'static str,
    lines: String,
    window: Option<u64>,
}

fn damage(name: &'static str, lines: impl Into<String>) -> Damage {
    Damage { name, lines: lines.into(), window: None }
}

fn thinking(kind: &str) -> Value {
    match kind {
        "thinking" => json!({"type": kind, "thinking": "Let me see.", "signature": "c2lnbmVk"}),
        _ => json!({"type": kind, "data": "b3BhcXVl"}),
    }
}

/// A reply whose tokens were spent while the model was thinking.
fn ends_in(kind: &str) -> String {
    let reply =
        json!({"type": "assistant", "content": [thinking(kind)], "stop_reason": "max_tokens"});
    Talk::new().user("Why?").record(reply).lines()
}

/// A transcript whose truncation records do not fit the results that they shorten.
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

fn damages() -> Vec<Damage> {
    let chat = Talk::plain(4, 40);
    let count = |tokens: u64| {
        json!({"type": "assistant", "content": "Yes.", "model": "test-model",
            "usage": {"input_tokens": tokens, "output_tokens": 1}})
    };
    let broken = json!({"type": "assistant", "content": "It is", "interrupted": true});
    let overflow = json!({"type": "error", "class": "overflow", "message": "prompt is too long"});
    let call = |id: &str| json!({"type": "tool_use", "tool_use_id": id, "name": "ls", "input": {}});
    let result =
        |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": text});
    let reused = Talk::new().user("List.").record(result("c", "early")).record(call("c"));
    vec![
        damage("a reply that ends in thinking", ends_in("thinking")),
        damage("a reply that ends in redacted thinking", ends_in("redacted_thinking")),
        damage("a truncation that fits no result", wrong_truncation()),
        damage("a file that a failed first write left", ""),
        damage("a turn that failed with 3", chat.user("Go on.").record(overflow).lines()),
        damage("a reply that broke off", Talk::plain(4, 40).user("Go on.").record(broken).lines()),
        damage("an id that is used again", reused.record(result("c", "late")).lines()),
        damage("a call that was interrupted", Talk::new().user("List.").record(call("d")).lines()),
        damage("a line of text", format!("{}not a record\n", Talk::plain(2, 40).lines())),
        damage("a torn last line", format!("{}{{\"type\":\"us", Talk::plain(2, 40).lines())),
        Damage {
            window: Some(4000),
            ..damage("a count that is far too small", {
                let talk = builds().user(&log(200)).record(count(5));
                talk.user(&words(500)).assistant(&words(500)).lines()
            })
        },
        Damage {
            window: Some(60_000),
            ..damage("a count that is far too large", {
                Talk::plain(4, 40).user("More.").record(count(9_000_000)).lines()
            })
        },
    ]
}

#[test]
fn every_damaged_session_is_usable_again_without_a_manual_step() {
    for Damage { name, lines, window } in damages() {
        let (sandbox, mut provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("s.jsonl", &lines);
        let mut turn = sandbox.cmd("claw-turn").arg("--no-checkpoint");
        if let Some(tokens) = window {
            provider = provider.window(tokens);
            turn = turn.args(["--window", &tokens.to_string()]);
        }
        let run = turn.envs(provider.env()).args(["-m", "And now?", "s.jsonl"]).assert();
        assert!(run.get_output().status.code() == Some(0), "a turn after {name}\n{run}");
        provider.all_legal();
        assert!(sandbox.read_text("s.jsonl").starts_with(&lines), "{name}: append-only");
        let requests = provider.requests();
        let answered =
            requests.last().is_some_and(|last| last.last_user_text().ends_with("And now?"));
        assert!(answered, "{name}: the prompt was sent last");
    }
}

#[test]
fn audit_11_a_window_that_was_learned_from_a_quotation_locks_no_model_out() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let learned =
        json!({"endpoint": provider.url(), "model": "test-model", "window": 5, "ts": 1e9});
    sandbox.write("state/windows.jsonl", format!("{learned}\n"));
    sandbox.write("s.jsonl", Talk::plain(4, 40).lines());
    let turn = sandbox.cmd("claw-turn").envs(provider.env()).args(["-m", "And now?", "s.jsonl"]);
    turn.assert().success();
    provider.all_legal();
}
