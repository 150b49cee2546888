//! claw-call with recorded answers of a real server (llama.cpp, through both of its APIs), and a complete turn of
//! claw-turn with it.

use std::path::{Path, PathBuf};

use assert_cmd::assert::Assert;
use clawutils::usage::Counts;
use predicates::str::contains;
use serde_json::{Map, Value, json};

use crate::common::{AssertExt, Sandbox};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Returns the path and the body of a recorded request.
fn recorded_request(name: &str) -> (String, Map<String, Value>) {
    let text = std::fs::read_to_string(data("http").join(name).join("request.json"));
    let text = text.expect("a recording");
    let request: Value = serde_json::from_str(&text).expect("JSON");
    let body = request["body"].as_object().expect("a body").clone();
    (request["path"].as_str().expect("a path").to_owned(), body)
}

/// Makes a recorded request again with claw-call, which replays the recorded answer.
fn replay(name: &str, args: &[&str]) -> Assert {
    let sandbox = Sandbox::new();
    let (path, body) = recorded_request(name);
    let provider = if path.ends_with("/chat/completions") { "openai" } else { "anthropic" };
    let messages = body["messages"].as_array().expect("messages");
    let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let model = body["model"].as_str().expect("a model");
    let tape = data("http").display().to_string();
    let mut cmd = sandbox.cmd("claw-call").args(["--provider", provider, "--model", model]);
    // No server listens on this port.
    cmd = cmd.args(["--replay", &tape, "--base-url", "http://127.0.0.1:9"]).args(args);
    if let Some(tokens) = body.get("max_tokens") {
        cmd = cmd.args(["--max-tokens", &tokens.to_string()]);
    }
    if let Some(system) = body.get("system") {
        sandbox.write("system", system.as_str().expect("a string"));
        cmd = cmd.args(["--system", "system"]);
    }
    if let Some(tools) = body.get("tools") {
        sandbox.write("tools", tools.to_string());
        cmd = cmd.args(["--tools", "tools"]);
    }
    if body.get("temperature").is_some() {
        sandbox.write("extra", r#"{"temperature":0}"#);
        cmd = cmd.args(["--extra", "extra"]);
    }
    if body.get("stream").is_some() {
        cmd = cmd.arg("--stream=shown");
    }
    cmd.write_stdin(lines).assert()
}

#[test]
fn replies_of_a_real_server_are_read() {
    for (name, status, begin, stop) in [
        ("llama-messages", 6, "1. Red: This is the most obvious colour", "max_tokens"),
        ("llama-messages-max-tokens", 6, "I'm here to help", "max_tokens"),
        ("llama-messages-tool-result", 0, "The answer is 42.", "end_turn"),
        ("llama-summary", 0, "The Rust tool is ready", "end_turn"),
        ("llama-messages-stream", 6, "はくはく", "max_tokens"),
        ("llama-chat", 6, "1. Red: This is the most obvious colour", "max_tokens"),
        ("llama-chat-stream", 6, "1. Red: This is the most obvious colour", "max_tokens"),
    ] {
        let run = replay(name, &[]);
        let record = run.code(status).json_one();
        let text = record["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with(begin), "{name}: {text}");
        assert_eq!(record["stop_reason"], stop, "{name}");
        assert!(record["usage"].as_object().is_some_and(|usage| !usage.is_empty()), "{name}");
    }
}

/// The second turn of a conversation with a real server, which had the first one in its own cache.
#[test]
fn audit_40_a_real_server_reports_what_it_had_in_its_cache() {
    let record = replay("llama-chat-second-turn", &[]).code(6).json_one();
    let usage = Counts::read(&record["usage"].to_string()).expect("counts");
    let expected = Counts { input: 88, cache_read: 106, output: 20, ..Counts::default() };
    assert_eq!(usage, expected);
}

#[test]
fn an_overflow_of_a_real_server_is_classified_with_its_numbers() {
    for name in ["llama-messages-overflow", "llama-messages-overflow-stream", "llama-chat-overflow"]
    {
        replay(name, &["--failure", "why"])
            .code(3)
            .stdout("")
            .stderr(contains("(actual 5031, limit 2048)"));
    }
}

#[test]
fn i9_the_token_count_of_a_real_server_is_read() {
    replay("llama-count-tokens", &["--count"]).success().stdout("34\n");
}

/// The recorded server accepted this request, but other providers refuse a request that ends with an assistant message,
/// so claw-call does not send it.
#[test]
fn a_conversation_that_ends_with_a_reply_is_not_sent() {
    replay("llama-messages-assistant-last", &[]).code(7);
}

/// The provider refuses the first request, and also the second, in which results are shortened. Then the model writes a
/// summary, and answers the request that begins with it.
#[test]
fn a_recorded_turn_succeeds_after_two_overflows_and_a_summary() {
    let sandbox = Sandbox::new();
    let turn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/recorded/turn.sh");
    sandbox
        .sh(r#"sh "$TURN" ."#)
        .env("TURN", turn)
        .assert()
        .success()
        .stdout(contains("The build of target_1 fails at step 30: zlib.h is missing."))
        .stderr(contains("request (3181 tokens) exceeds the available context size (2048 tokens)"))
        .stderr(contains("claw-compact: summarised 7 messages"));
    let records = sandbox.read_json("real.jsonl");
    let summary = records.iter().find(|record| record["type"] == "compaction");
    let summary = summary.expect("a summary");
    assert_eq!(
        (&summary["strategy"], &summary["model"]),
        (&json!("llm"), &json!("smollm2-135m-instruct"))
    );
    let errors = records.iter().filter(|record| record["class"] == "overflow").count();
    assert_eq!(errors, 2);
}
