//! claw-call with the API of each provider: each API gets a legal request, and equal replies become equal records.

use std::collections::HashSet;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Recorded, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox, media};
use crate::conversations::{Conversation, append, rebuild, rebuild_meta, words};

/// One message as input for a call.
pub const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

/// Returns a `claw-call` command for a provider whose API has this shape. The caller adds the input.
pub fn call(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-call").envs(provider.env_for(shape));
    // Without a configured window, each call to Ollama reports that it requests a default window.
    let cmd = if shape == Shape::Ollama { cmd.env("CLAW_WINDOW", "32768") } else { cmd };
    cmd.args(args)
}

/// Runs a call with a greeting in a new sandbox.
#[track_caller]
pub fn hello(provider: &FakeProvider, shape: Shape, args: &[&str]) -> Assert {
    call(&Sandbox::new(), provider, shape, args).write_stdin(HELLO).assert()
}

/// Returns the value of `--provider` for a shape.
pub fn name(shape: Shape) -> &'static str {
    match shape {
        Shape::Anthropic => "anthropic",
        Shape::OpenAi => "openai",
        Shape::Ollama => "ollama",
    }
}

/// Returns a reply with two tool calls; for Ollama, without ids, as older servers send them.
pub fn two_calls(shape: Shape, turn: usize) -> Step {
    let id = |n: usize| match shape {
        Shape::Ollama => String::new(),
        Shape::Anthropic | Shape::OpenAi => format!("toolu_{turn}_{n}"),
    };
    let input = json!({"path": "a/\u{e9}.txt", "n": [1, 2], "deep": {"s": "\"\n"}});
    Step::Calls(vec![(id(1), "read".into(), input), (id(2), "list".into(), json!({}))])
}

pub fn body(request: &Recorded) -> &Value {
    request.json.as_ref().expect("a JSON body")
}

// ---- the reply -------------------------------------------------------------------------------

#[test]
fn a_text_becomes_the_same_record_in_every_shape() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        provider.script(Step::text("Caf\u{e9} \u{1f600}\nand \"more\"."));
        let run = hello(&provider, shape, &[]);
        let mut record = run.success().stderr("").json_one();
        let usage = record.as_object_mut().expect("an object").remove("usage");
        assert!(usage.is_some_and(|usage| usage.is_object()), "{shape:?}");
        let id = if shape == Shape::Ollama { Value::Null } else { json!("req_1") };
        assert_eq!(
            record,
            json!({
                "type": "assistant",
                "content": [{"type": "text", "text": "Caf\u{e9} \u{1f600}\nand \"more\"."}],
                "model": "test-model", "provider": name(shape), "stop_reason": "end_turn",
                "request_id": id,
            })
        );
        provider.all_legal();
    }
}

#[test]
fn r_1_counts_are_stored_once_and_unchanged() {
    let bodies = [
        r#"{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"x","name":"f","input":{}},{"type":"text","text":"b"}],"model":"m","stop_reason":"tool_use","usage":{"output_tokens":3,"new":{"n":1.50},"input_tokens":12,"cache_read_input_tokens":7}}"#,
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"model":"m","usage":{"total_tokens":15,"prompt_tokens":12,"prompt_tokens_details":{"cached_tokens":7},"x":1e2,"completion_tokens":3}}"#,
        r#"{"model":"m","message":{"role":"assistant","content":"a","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true,"done_reason":"stop","total_duration":4e3,"prompt_eval_count":12,"eval_count":3}"#,
    ];
    let counts = [
        r#""usage":{"output_tokens":3,"new":{"n":1.50},"input_tokens":12,"cache_read_input_tokens":7}"#,
        r#""usage":{"total_tokens":15,"prompt_tokens":12,"prompt_tokens_details":{"cached_tokens":7},"x":1e2,"completion_tokens":3}"#,
        r#""usage":{"total_duration":4e3,"prompt_eval_count":12,"eval_count":3}"#,
    ];
    for ((shape, body), counts) in Shape::ALL.into_iter().zip(bodies).zip(counts) {
        let provider = FakeProvider::new();
        provider.script(Step::Raw { status: 200, headers: vec![], body: body.into() });
        let run = hello(&provider, shape, &[]);
        let text = run.success().stdout_text();
        assert_eq!((text.matches(counts).count(), text.matches("usage").count()), (1, 1), "{text}");
        assert!(text.lines().next().is_some_and(|line| line.contains(counts)), "{text}");
    }
}

#[test]
fn parallel_calls_become_the_same_records_in_every_shape() {
    let mut all = Vec::new();
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        provider.script(two_calls(shape, 1));
        let mut records = hello(&provider, shape, &[]).success().json();
        let ids: HashSet<String> = records
            .iter()
            .filter_map(|record| Some(record["tool_use_id"].as_str()?.into()))
            .collect();
        assert_eq!((records.len(), ids.len()), (3, 2), "{shape:?}");
        assert_eq!(records[0]["stop_reason"], "tool_use");
        records.iter_mut().for_each(|record| record["tool_use_id"] = Value::Null);
        let head = ["type", "content"].map(|name| records[0][name].clone());
        all.push((head, records[1..].to_vec()));
    }
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    assert_eq!(all[0].1[0]["input"]["deep"]["s"], "\"\n");
}

/// An unknown stop reason is kept, and the call fails.
#[test]
fn k_3_stop_reasons_are_normalised_in_every_shape() {
    for (shape, reason, expected, exit) in [
        (Shape::OpenAi, json!("stop"), json!("end_turn"), 0),
        (Shape::OpenAi, json!("length"), json!("max_tokens"), 6),
        (Shape::OpenAi, json!("content_filter"), json!("refusal"), 0),
        (
            Shape::OpenAi,
            json!("model_context_window_exceeded"),
            json!("model_context_window_exceeded"),
            6,
        ),
        (Shape::OpenAi, json!("odd"), json!("odd"), 6),
        (Shape::OpenAi, json!(null), json!(null), 6),
        (Shape::Ollama, json!("stop"), json!("end_turn"), 0),
        (Shape::Ollama, json!("length"), json!("max_tokens"), 6),
        (Shape::Ollama, json!("load"), json!("load"), 6),
        (Shape::Ollama, json!(null), json!(null), 6),
    ] {
        let provider = FakeProvider::new();
        let message = json!({"role": "assistant", "content": "So"});
        provider.script(Step::Reply(match shape {
            Shape::OpenAi => {
                json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]})
            }
            _ => json!({"message": message, "done": true, "done_reason": reason}),
        }));
        let run = hello(&provider, shape, &[]).code(exit);
        assert_eq!(run.json_one()["stop_reason"], expected);
        assert_eq!(run.stderr_text().is_empty(), expected == "end_turn", "{}", run.stderr_text());
    }
}

#[test]
fn unsigned_thinking_is_kept_and_not_sent_again() {
    let message = |member: &str| json!({"role": "assistant", "content": "So.", member: "I think"});
    let choice = json!({"message": message("reasoning_content"), "finish_reason": "stop"});
    for (shape, reply) in [
        (Shape::OpenAi, json!({"choices": [choice]})),
        (
            Shape::Ollama,
            json!({"message": message("thinking"), "done": true, "done_reason": "stop"}),
        ),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::Reply(reply));
        Conversation::new().user("hi").append(&sandbox, "s.jsonl");
        let messages = rebuild_meta(&sandbox, "s.jsonl");
        let run = call(&sandbox, &provider, shape, &[]).write_stdin(messages).assert().success();
        assert_eq!(run.json_one()["reasoning"], "I think");
        append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
        Conversation::new().user("and?").append(&sandbox, "s.jsonl");
        for next in Shape::ALL {
            let messages = rebuild_meta(&sandbox, "s.jsonl");
            call(&sandbox, &provider, next, &[]).write_stdin(messages).assert().success();
        }
        provider.all_legal();
        let sent = provider.requests();
        let has = |r: &Recorded| String::from_utf8_lossy(&r.body).contains("I think");
        assert!(!sent.iter().any(has));
    }
}

// ---- one conversation with all providers -----------------------------------------------------

/// Asks a provider for the next reply and appends it. Returns the records of the reply.
#[track_caller]
fn step(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Vec<Value> {
    let messages = rebuild_meta(sandbox, "s.jsonl");
    let run = call(sandbox, provider, shape, args).write_stdin(messages).assert().success();
    let records = run.json();
    append(sandbox, "s.jsonl", run.get_output().stdout.clone());
    records
}

#[test]
fn each_turn_of_a_transcript_can_use_another_provider() {
    let tools = json!([
        {"name": "read", "description": "d", "input_schema": {"type": "object"}},
        {"name": "list", "input_schema": {"type": "object"}},
    ]);
    for args in [&["--tools", "tools", "--system", "system"][..], &["--tools", "tools", "--stream"]]
    {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("tools", tools.to_string());
        sandbox.write("system", "Be brief.");
        let mut ids = HashSet::new();
        for turn in 1..=4 {
            Conversation::new().user(&format!("question {turn}")).append(&sandbox, "s.jsonl");
            // A turn has two rounds of calls and an answer, each from another provider, in an order that changes from
            // turn to turn.
            for round in 0..2 {
                let shape = Shape::ALL[(turn + round) % 3];
                provider.script(two_calls(shape, 2 * turn + round));
                let records = step(&sandbox, &provider, shape, args);
                for record in &records[1..] {
                    let id = record["tool_use_id"].as_str().expect("an id").to_owned();
                    let result = json!({
                        "type": "tool_result", "tool_use_id": id, "content": format!("of {id}"),
                        "is_error": record["name"] == "list",
                    });
                    append(&sandbox, "s.jsonl", result.to_string());
                    ids.insert(id);
                }
            }
            let shape = Shape::ALL[(turn + 2) % 3];
            let records = step(&sandbox, &provider, shape, args);
            assert_eq!(records[0]["provider"], name(shape));
        }
        provider.all_legal();
        assert_eq!(provider.requests().len(), 12);
        let messages: Vec<Value> = rebuild(&sandbox, "s.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).expect("a message"))
            .collect();
        assert_eq!(messages.len(), 24);
        let mut seen = HashSet::new();
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        for block in blocks.filter(|block| block["type"] == "tool_use") {
            assert!(seen.insert(block["id"].clone()), "the id of another call: {block}");
        }
        assert_eq!(seen.len(), 16);
    }
}

// ---- the request -----------------------------------------------------------------------------

/// Returns messages with every kind of content that has to be converted.
fn varied_messages() -> String {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}});
    let messages = [
        json!({"role": "user", "content": [{"type": "text", "text": "look"}, image]}),
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "b", "name": "g", "input": {}},
        ]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "seen"}, image]},
            {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": true},
            {"type": "text", "text": "and?"},
        ]}),
    ];
    messages.iter().map(|message| format!("{message}\n")).collect()
}

#[test]
fn every_kind_of_content_is_sent_in_every_shape() {
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    sandbox.write("system", "Be brief.");
    for shape in Shape::ALL {
        let run = call(&sandbox, &provider, shape, &["--system", "system"]);
        run.write_stdin(varied_messages()).assert().success();
    }
    provider.all_legal();
    let [anthropic, openai, ollama] = &provider.requests()[..] else {
        panic!("expected three requests")
    };
    let thinking = &body(anthropic)["messages"][1]["content"][0];
    assert_eq!(
        (&body(anthropic)["system"], &thinking["signature"]),
        (&json!("Be brief."), &json!("s"))
    );
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let link = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}});
    assert_eq!(
        body(openai)["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "look"}, link]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                call("a", "f", json!("{\"x\":1}")), call("b", "g", json!("{}")),
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "seen\n[image]"},
            {"role": "tool", "tool_call_id": "b", "content": "ERROR: no"},
            {"role": "user", "content": [link, {"type": "text", "text": "and?"}]},
        ])
    );
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        body(ollama)["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "look", "images": ["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                call("a", "f", json!({"x": 1})), call("b", "g", json!({})),
            ]},
            {"role": "tool", "tool_name": "f", "tool_call_id": "a", "content": "seen\n[image]"},
            {"role": "tool", "tool_name": "g", "tool_call_id": "b", "content": "ERROR: no"},
            {"role": "user", "content": "and?", "images": ["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="]},
        ])
    );
}

#[test]
fn a_dry_run_prints_what_is_sent_in_every_shape() {
    for (shape, path) in Shape::ALL.into_iter().zip(["messages", "chat/completions", "chat"]) {
        for args in [&["--max-tokens", "77"][..], &["--max-tokens", "77", "--stream"]] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            let dry = call(&sandbox, &provider, shape, args)
                .arg("--dry-run")
                .write_stdin(varied_messages())
                .assert();
            assert!(provider.requests().is_empty(), "a connection was opened");
            let dry = dry.success().stderr(contains(format!("/{path}\n")));
            call(&sandbox, &provider, shape, args)
                .write_stdin(varied_messages())
                .assert()
                .success();
            let sent = provider.single_request();
            assert_eq!(sent.body, dry.stdout_text().trim_end().as_bytes());
            assert_eq!(sent.streams(), args.contains(&"--stream"));
            provider.all_legal();
        }
    }
}

#[test]
fn only_openai_itself_gets_the_newer_name_of_the_output_limit() {
    let names = |url: &str| {
        let args = ["--provider", "openai", "--model", "m", "--dry-run", "--base-url", url];
        let run = Sandbox::new().cmd("claw-call").args(args).write_stdin(HELLO).assert();
        let body = run.success().json_one();
        ["max_tokens", "max_completion_tokens"].map(|name| body[name].as_u64())
    };
    assert_eq!(names("https://api.openai.com/v1"), [None, Some(8096)]);
    assert_eq!(names("https://api.openai.com"), [None, Some(8096)]);
    for url in
        ["https://openrouter.ai/api/v1", "https://api.openai.com.example.org", "http://localhost:1"]
    {
        assert_eq!(names(url), [Some(8096), None], "{url}");
    }
}

/// A message may become empty when it is converted for another API; the roles of the messages around it must still
/// alternate.
#[test]
fn v66_the_request_after_any_reply_is_legal_in_every_shape() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let blank = json!({"type": "text", "text": " "});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let assistant = |content: Value| json!({"type": "assistant", "content": content});
    let user = |content: Value| json!({"type": "user", "content": content});
    let document = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": media::base64(&media::pdf(1))}});
    for records in [
        vec![user(json!("hi")), assistant(json!([thinking])), user(json!("go on"))],
        vec![user(json!("hi")), assistant(json!([blank])), user(json!("go on"))],
        vec![user(json!("hi")), assistant(json!([])), user(json!("go on"))],
        vec![user(json!([document])), assistant(json!("so")), user(json!([document]))],
        vec![
            user(json!("hi")),
            assistant(json!([thinking, call("a.b/c"), call("d")])),
            user(json!([result("a.b/c", json!("")), result("d", json!([]))])),
            assistant(json!([thinking])),
            user(json!("go on")),
        ],
        vec![
            user(json!("hi")),
            assistant(json!([thinking, call("a")])),
            user(json!([result("a", json!([document, blank])), {"type": "text", "text": "and?"}])),
        ],
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
        append(&sandbox, "s.jsonl", lines);
        let run = sandbox.cmd("claw-rebuild").args(["--meta", "s.jsonl"]).assert();
        let messages = run.success().stdout_text();
        for shape in Shape::ALL {
            self::call(&sandbox, &provider, shape, &[])
                .write_stdin(messages.clone())
                .assert()
                .success();
        }
        provider.all_legal();
    }
}

// ---- failures --------------------------------------------------------------------------------

#[test]
fn a_refusal_has_the_documented_exit_status_in_every_shape() {
    for shape in Shape::ALL {
        for (status, exit) in [
            (400, 76),
            (401, 77),
            (402, 77),
            (403, 77),
            (404, 76),
            (413, 4),
            (422, 76),
            (429, 75),
            (500, 69),
            (502, 69),
            (503, 69),
            (529, 75),
        ] {
            let provider = FakeProvider::new();
            provider.script(Step::error(status, "some_error", "The tokens of the context are out"));
            let sandbox = Sandbox::new();
            call(&sandbox, &provider, shape, &["--max-retries", "0"])
                .write_stdin(HELLO)
                .assert()
                .code(exit)
                .stdout("")
                .stderr(contains("The tokens of the context are out"));
            assert!(!sandbox.exists("state/windows.jsonl"));
            provider.single_request();
        }
    }
    let provider = FakeProvider::new();
    provider.script(Step::error(429, "insufficient_quota", "You exceeded your current quota"));
    hello(&provider, Shape::OpenAi, &[]).code(77).stderr(contains("billing"));
}

#[test]
fn the_window_that_an_overflow_states_is_remembered_in_every_shape() {
    let prompt = json!({"role": "user", "content": "word".repeat(3000)}).to_string();
    for shape in Shape::ALL {
        let provider = FakeProvider::new().window(2000);
        let sandbox = Sandbox::new();
        let args = ["--failure", "failure", "--max-tokens", "100"];
        call(&sandbox, &provider, shape, &args)
            .write_stdin(prompt.clone())
            .assert()
            .code(3)
            .stdout("")
            .stderr(contains("actual 3008, limit 2000"));
        provider.single_request();
        let record = &sandbox.read_json("failure")[0];
        let numbers = ["class", "status", "limit", "actual"].map(|name| record[name].clone());
        assert_eq!(numbers, [json!("overflow"), json!(400), json!(2000), json!(3008)]);
        assert_eq!(sandbox.read_json("state/windows.jsonl")[0]["window"], 2000);
        let check = sandbox.cmd("claw-estimate").envs(provider.env_for(shape)).arg("--check");
        check
            .write_stdin(json!({"role": "user", "content": words(1800)}).to_string())
            .assert()
            .code(3);
    }
}

/// The error message is vLLM's.
#[test]
fn j_2_the_output_limit_is_lowered_once_for_chat_completions() {
    let refusal = "This model's maximum context length is 4096 tokens. However, you requested 5000 \
                   tokens (3000 in the messages, 2000 in the completion). Please reduce the length \
                   of the messages or completion.";
    let provider = FakeProvider::new();
    (0..2).for_each(|_| provider.script(Step::error(400, "BadRequestError", refusal)));
    hello(&provider, Shape::OpenAi, &["--max-tokens", "2000"])
        .code(3)
        .stdout("")
        .stderr(contains("trying again with --max-tokens 1032"));
    let limits: Vec<Value> =
        provider.requests().iter().map(|request| body(request)["max_tokens"].clone()).collect();
    assert_eq!(limits, [2000, 1032]);
}
