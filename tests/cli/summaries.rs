//! A program in place of `claw-call` that answers with the contents of files, and helpers to inspect the results.

use assert_cmd::assert::Assert;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox, rules};
use crate::conversations::{append, stage};

/// The summary that the model of [`with_model`] writes.
pub const TALKED: &str =
    "They talked.\nThey asked and answered, looked at files, and decided nothing yet.";

/// Returns a sandbox whose `claw-call` logs its requests. Call number N prints the file `reply.N`, or `reply` if there
/// is none, and exits with the status in `status.N` or `status`, or with 0 if neither exists.
pub fn with_model() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(
        "claw-call",
        r#"n=$(($(cat calls 2>/dev/null || echo 0) + 1))
        echo $n >calls
        cat >"stdin.$n"
        printf '%s\n' "$@" >"args.$n"
        cat "reply.$n" 2>/dev/null || cat reply
        exit "$(cat "status.$n" 2>/dev/null || cat status 2>/dev/null || echo 0)""#,
    );
    sandbox.write("reply", says(TALKED));
    sandbox
}

/// Returns the record of a complete reply with this text.
pub fn says(text: &str) -> String {
    reply(&[json!({"type": "text", "text": text})], "end_turn")
}

/// Returns the record of a reply.
pub fn reply(content: &[Value], stop_reason: &str) -> String {
    let usage = json!({"input_tokens": 900, "output_tokens": 5});
    let record = json!({
        "type": "assistant", "content": content, "model": "m", "provider": "p",
        "stop_reason": stop_reason, "usage": usage, "request_id": "r",
    });
    format!("{record}\n")
}

/// Returns the number of calls so far.
pub fn calls(sandbox: &Sandbox) -> usize {
    let calls = sandbox.exists("calls").then(|| sandbox.read_text("calls"));
    calls.map_or(0, |calls| calls.trim().parse().expect("a number"))
}

/// Returns the text of the summary request of call `n`.
pub fn asked(sandbox: &Sandbox, n: usize) -> String {
    let messages = sandbox.read_json(&format!("stdin.{n}"));
    let [message] = messages.as_slice() else { panic!("expected one message: {messages:?}") };
    assert_eq!(message["role"], "user");
    message["content"].as_str().expect("a string").to_owned()
}

/// Runs `claw-compact --record` on the messages of `s.jsonl`. The record is not appended.
pub fn compact(sandbox: &Sandbox, args: &[&str]) -> Assert {
    stage(sandbox, "claw-compact", args, "s.jsonl")
}

/// Compacts `s.jsonl`: appends the record, and returns it.
#[track_caller]
pub fn compacted(sandbox: &Sandbox, args: &[&str]) -> Value {
    let run = compact(sandbox, args).success();
    append(sandbox, "s.jsonl", run.get_output().stdout.clone());
    run.json_one()
}

/// Returns the number of messages that a compaction record covers.
pub fn covered(sandbox: &Sandbox, record: &Value) -> usize {
    let messages = sandbox.cmd("claw-rebuild").args(["--meta", "--ignore-compactions", "s.jsonl"]);
    let messages = messages.assert().json();
    let found = messages.iter().position(|m| m["_meta"]["id"] == record["first_kept_entry_id"]);
    found.expect("the first kept message")
}

/// Returns the messages of the transcript, and checks that a provider would accept them.
#[track_caller]
pub fn legal(sandbox: &Sandbox) -> Vec<Value> {
    let run = sandbox.cmd("claw-rebuild").args(["--strict", "s.jsonl"]).assert();
    let messages = run.success().json();
    let body = json!({"model": "m", "max_tokens": 10, "messages": messages});
    rules::check(&body, body.to_string().as_bytes()).expect("a legal request");
    messages
}
