//! claw-call --stream: an interrupted, failed or invalid stream is never recorded as a complete reply.

use std::thread;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox};
use crate::shapes::{HELLO, call, hello};

/// Returns the smallest complete stream that contains text.
fn small(shape: Shape) -> &'static str {
    match shape {
        Shape::Anthropic => concat!(
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\u{e9}\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        ),
        Shape::OpenAi => concat!(
            "data: {\"choices\":[{\"delta\":{\"content\":\"\u{e9}\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        ),
        Shape::Ollama => concat!(
            "{\"message\":{\"content\":\"\u{e9}\"}}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
        ),
    }
}

/// Formats an event of a stream.
fn event(shape: Shape, data: &Value) -> String {
    if shape == Shape::Ollama { format!("{data}\n") } else { format!("data: {data}\n\n") }
}

/// Formats an error event of a stream.
fn error(shape: Shape, kind: &str, message: &str) -> String {
    let inner = json!({"type": kind, "message": message});
    match shape {
        Shape::Anthropic => {
            format!("event: error\n{}", event(shape, &json!({"type": "error", "error": inner})))
        }
        Shape::OpenAi => event(shape, &json!({"error": inner})),
        Shape::Ollama => event(shape, &json!({"error": message})),
    }
}

/// Returns the exit status for an overload reported inside a stream. Ollama reports an overload only by the HTTP
/// status, so the same error inside its stream counts as a general failure.
fn busy_exit(shape: Shape) -> i32 {
    if shape == Shape::Ollama { 69 } else { 75 }
}

/// Matches standard output without a complete reply: nothing, or a single interrupted record with the text that was
/// shown.
pub fn no_reply() -> impl Predicate<str> {
    let is_part = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("a record");
        record["interrupted"] == true && record["content"] != json!([])
    };
    predicate::function(move |stdout: &str| {
        stdout.lines().count() <= 1 && stdout.lines().all(is_part)
    })
}

fn once(shape: Shape, stream: &[u8]) -> Assert {
    let provider = FakeProvider::new();
    provider.script(Step::stream(stream, 1000));
    hello(&provider, shape, &["--stream", "--max-retries", "0"])
}

// ---- cuts ------------------------------------------------------------------------------------

/// This test cuts the stream at a few places; the unit tests in src/provider/reading.rs cut it at every byte.
#[test]
fn an_incomplete_stream_ends_with_69_and_no_reply() {
    for shape in Shape::ALL {
        let text = small(shape);
        once(shape, text.as_bytes()).success().stdout(contains("\u{e9}")).stderr("\u{e9}\n");
        // Cut at the start, inside a character, after the first line, and before the last byte that matters.
        // Ollama's last line needs no line feed.
        let character = text.find('\u{e9}').expect("a string") + 1;
        let line = text.find('\n').expect("a line") + 1;
        let last = text.len() - 1 - usize::from(shape == Shape::Ollama);
        for at in [0, character, line, last] {
            once(shape, &text.as_bytes()[..at])
                .code(69)
                .stdout(no_reply())
                .stderr(contains("claw-call: broken-answer (rule "));
        }
    }
}

#[test]
fn audit_08_a_broken_connection_ends_with_69_unless_the_reply_was_complete() {
    thread::scope(|scope| {
        for shape in Shape::ALL {
            scope.spawn(move || {
                let cut = |at: usize| {
                    let provider = FakeProvider::new();
                    provider.script(Step::Cut(at));
                    hello(&provider, shape, &["--stream", "--max-retries", "0"])
                };
                cut(usize::MAX).success().stdout(contains("Reply to 1 message: hello"));
                for at in (0..if shape == Shape::Ollama { 500 } else { 900 }).step_by(111) {
                    cut(at)
                        .code(69)
                        .stdout(no_reply())
                        .stderr(contains("claw-call: unreachable (rule no-answer): "));
                }
            });
        }
    });
}

#[test]
fn a_broken_connection_is_retried_unless_text_was_shown() {
    thread::scope(|scope| {
        for shape in Shape::ALL {
            scope.spawn(move || {
                let cut = |at: usize| {
                    let provider = FakeProvider::new();
                    provider.script(Step::Cut(at));
                    let run = hello(&provider, shape, &["--stream"]);
                    provider.all_legal();
                    (run, provider.requests().len())
                };
                let (run, requests) = cut(20);
                let run = run
                    .success()
                    .stderr(contains("; trying again in "))
                    .stderr(contains("\nReply to 1 message: hello\n"));
                assert_eq!((run.json().len(), requests), (1, 2));
                let (run, requests) = cut(if shape == Shape::Ollama { 450 } else { 900 });
                run.code(69)
                    .stdout(no_reply())
                    .stderr(contains("Reply to"))
                    .stderr(contains("trying again").not());
                assert_eq!(requests, 1);
            });
        }
    });
}

// ---- errors ----------------------------------------------------------------------------------

#[test]
fn an_error_at_the_start_of_a_stream_is_classified_by_its_type() {
    for (kind, message, exit) in [
        ("overloaded_error", "Overloaded", 75),
        ("rate_limit_error", "This would exceed your rate limit of 10 tokens", 75),
        ("api_error", "Internal server error", 69),
        ("authentication_error", "invalid x-api-key", 77),
        ("billing_error", "Your credit is used up", 77),
        ("not_found_error", "model: none", 76),
        ("invalid_request_error", "messages: odd", 76),
        ("invalid_request_error", "prompt is too long: 30 tokens > 20 maximum", 3),
    ] {
        for shape in [Shape::Anthropic, Shape::OpenAi] {
            once(shape, error(shape, kind, message).as_bytes())
                .code(exit)
                .stdout("")
                .stderr(contains(message));
        }
    }
    // Ollama has no error types; an overflow is recognised by its text.
    for (message, exit) in [
        ("an error was encountered while running the model: CUDA error", 69),
        (
            "request (30 tokens) exceeds the available context size (20 tokens), try increasing it",
            3,
        ),
    ] {
        once(Shape::Ollama, error(Shape::Ollama, "", message).as_bytes())
            .code(exit)
            .stdout("")
            .stderr(contains(message));
    }
    for text in ["event: error\ndata: oh no\n\n", "error: {\"message\":\"oh no\"}\n\n"] {
        once(Shape::OpenAi, text.as_bytes()).code(69).stdout("").stderr(contains("oh no"));
    }
}

#[test]
fn a_window_stated_in_an_overflow_error_of_a_stream_is_remembered() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let error =
            error(shape, "invalid_request_error", "prompt is too long: 3000 tokens > 2000 maximum");
        provider.script(Step::stream(error.as_bytes(), 1000));
        let run = call(&sandbox, &provider, shape, &["--stream", "--failure", "why"]);
        run.write_stdin(HELLO).assert().code(3).stderr(contains("(actual 3000, limit 2000)"));
        assert_eq!(sandbox.read_json("why")[0]["class"], "overflow");
        assert_eq!(sandbox.read_json("state/windows.jsonl")[0]["window"], 2000);
    }
}

#[test]
fn an_error_in_a_stream_is_retried_unless_text_was_shown() {
    thread::scope(|scope| {
        for shape in Shape::ALL {
            scope.spawn(move || {
                let busy = "server busy, please try again.  maximum pending requests exceeded";
                let provider = FakeProvider::new();
                provider.script(Step::stream(error(shape, "overloaded_error", busy).as_bytes(), 9));
                hello(&provider, shape, &["--stream"])
                    .success()
                    .stderr(contains("trying again in "))
                    .stderr(contains("\nReply to 1 message: hello\n"));
                assert_eq!(provider.requests().len(), 2);

                provider.script(Step::stream_error("overloaded_error", busy));
                let run = hello(&provider, shape, &["--stream"]);
                let exit = busy_exit(shape);
                let run = run.code(exit).stdout(no_reply()).stderr(contains("trying again").not());
                // The error begins on a line of its own, after the text that was shown.
                run.stderr(contains("Reply to"))
                    .stderr(contains("\nclaw-call: "))
                    .stderr(contains(busy));
                assert_eq!(provider.requests().len(), 3);
            });
        }
    });
}

#[test]
fn events_after_an_error_are_ignored() {
    for shape in Shape::ALL {
        let busy = "server busy, please try again.  maximum pending requests exceeded";
        let stream = error(shape, "overloaded_error", busy) + small(shape);
        once(shape, stream.as_bytes())
            .code(busy_exit(shape))
            .stdout("")
            .stderr(contains("\u{e9}").not());
    }
}

// ---- tool calls ------------------------------------------------------------------------------

/// Returns a stream with text, two tool calls and the stop reason `reason`. `input` is the raw input of the second
/// call.
fn calls(shape: Shape, input: &str, reason: &str) -> String {
    let all: Vec<Value> = match shape {
        Shape::Anthropic => {
            let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
            let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": input});
            vec![
                start(0, json!({"type": "text", "text": "So"})),
                json!({"type": "content_block_stop", "index": 0}),
                start(1, call("a")),
                json!({"type": "content_block_stop", "index": 1}),
                start(2, call("b")),
                json!({"type": "content_block_delta", "index": 2, "delta": delta}),
                json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
                json!({"type": "message_stop"}),
            ]
        }
        Shape::OpenAi => {
            let call = |index: u64, id: &str, arguments: &str| {
                let function = json!({"name": "f", "arguments": arguments});
                json!({"choices": [{"delta": {"tool_calls": [{"index": index, "id": id, "function": function}]}}]})
            };
            vec![
                json!({"choices": [{"delta": {"content": "So"}}]}),
                call(0, "a", "{}"),
                call(1, "b", input),
                json!({"choices": [{"delta": {}, "finish_reason": reason}]}),
            ]
        }
        Shape::Ollama => {
            let call = |id: &str, arguments: Value| json!({"id": id, "function": {"name": "f", "arguments": arguments}});
            let calls = [call("a", json!({})), call("b", json!(input))];
            vec![
                json!({"message": {"content": "So", "tool_calls": calls}}),
                json!({"message": {"content": ""}, "done": true, "done_reason": reason}),
            ]
        }
    };
    all.iter().map(|data| event(shape, data)).collect()
}

#[test]
fn v66_an_incomplete_call_at_the_output_limit_is_dropped() {
    for (shape, reason) in Shape::ALL.into_iter().zip(["max_tokens", "length", "length"]) {
        for half in ["{\"x\": 1", "", "{\"x\": \"\\"] {
            let run = once(shape, calls(shape, half, reason).as_bytes())
                .code(6)
                .stderr(contains("dropped an incomplete call to 'f'"))
                .stderr(contains("'max_tokens'"));
            let records = run.json();
            assert_eq!((records.len(), &records[1]["tool_use_id"]), (2, &json!("a")));
            assert_eq!(records[0]["content"], json!([{"type": "text", "text": "So"}]));
        }
    }
}

/// Input that cannot be parsed is not replaced with an empty object.
#[test]
fn a_call_whose_input_is_not_a_json_object_ends_with_69() {
    for (shape, reason) in Shape::ALL.into_iter().zip(["tool_use", "tool_calls", "stop"]) {
        for input in ["{\"x\": 1", "[1]", "nonsense", "{\"x\": 1}}", "\"{}\""] {
            once(shape, calls(shape, input, reason).as_bytes())
                .code(69)
                .stdout(no_reply())
                .stderr(contains("calls 'f' with an input that is not a JSON object"));
        }
    }
}

/// Anthropic ends each complete block with an event, so a block without it is incomplete even if its JSON is valid.
#[test]
fn a_call_without_an_end_event_is_not_recorded() {
    for (reason, exit) in [("tool_use", 69), ("max_tokens", 6)] {
        let run = once(Shape::Anthropic, calls(Shape::Anthropic, "{\"x\": 1}", reason).as_bytes())
            .code(exit);
        assert!(!run.stdout_text().contains("\"x\""), "the incomplete call was recorded\n{run}");
    }
}

#[test]
fn the_input_of_a_call_keeps_its_spelling() {
    for (shape, reason) in [(Shape::OpenAi, "tool_calls"), (Shape::Ollama, "stop")] {
        once(shape, calls(shape, "{\"z\":1e2,\"a\":\"\\u00e9\"}", reason).as_bytes())
            .success()
            .stdout(contains(r#""input":{"z":1e2,"a":"\u00e9"}"#));
    }
}

// ---- invalid streams -------------------------------------------------------------------

#[test]
fn an_answer_that_is_not_a_stream_ends_with_69() {
    let events =
        ["", "\n\n", ": ping\n\n", "data: [DONE]\n\n", "data: nonsense\n\n", "<html></html>"];
    let lines = ["", "\n", "{}\n", "nonsense\n", "<html></html>", "[1]\n"];
    for shape in Shape::ALL {
        for text in if shape == Shape::Ollama { lines } else { events } {
            once(shape, text.as_bytes()).code(69).stdout("").stderr(contains("claw-call: "));
        }
    }
}
