//! claw-call: what a refusal says about the request, and what the call does about it: the members of the failure
//! record, lower output limits, sizes of bodies.

use std::fs;
use std::path::Path;

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::Conversation;

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

fn call(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape) -> Cmd {
    let args = ["--failure", "failure", "--max-retries", "2"];
    sandbox.cmd("claw-call").envs(provider.env_for(shape)).args(args)
}

/// Returns an answer with this status and this error.
fn refusal(status: u16, error: &Value) -> Step {
    let headers = vec![("content-type".into(), "application/json".into())];
    Step::Raw { status, headers, body: json!({ "error": error }).to_string().into_bytes() }
}

fn empty(status: u16) -> Step {
    Step::Raw { status, headers: Vec::new(), body: Vec::new() }
}

/// Returns messages with a prompt of `bytes` bytes.
fn long(bytes: usize) -> String {
    let prompt = json!({"role": "user", "content": "word ".repeat(bytes / 5)});
    format!(
        "{{\"role\":\"user\",\"content\":\"a\"}}\n{{\"role\":\"assistant\",\"content\":\"b\"}}\n{prompt}\n"
    )
}

#[test]
fn an_output_limit_above_a_small_window_is_lowered() {
    for (message, limits) in [
        (
            "max_tokens=8096 cannot be greater than max_model_len=2048. Please request fewer output tokens.",
            "8096,1977",
        ),
        // vLLM counts the prompt only up to the limit and one more.
        (
            "You passed 2 input tokens and requested 8096 output tokens. However, the model's context length is only 8097 tokens, resulting in a maximum input length of 1 tokens.",
            "8096,8026",
        ),
        ("max_tokens 8096 is larger than the maximum of 4096 for this model", "8096,4096"),
        ("The maximum tokens you requested exceeds the model limit of 4096.", "8096,4096"),
        (
            "Unable to submit request because it has a maxOutputTokens value of 8096 but the supported range is from 1 (inclusive) to 4097 (exclusive).",
            "8096,4096",
        ),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(refusal(400, &json!({ "message": message })));
        call(&sandbox, &provider, Shape::OpenAi)
            .write_stdin(HELLO)
            .assert()
            .success()
            .stderr(contains("trying again with --max-tokens"));
        let asked = provider.requests();
        let asked: Vec<String> = asked
            .iter()
            .map(|it| it.json.as_ref().expect("a body")["max_tokens"].to_string())
            .collect();
        assert_eq!(asked.join(","), limits, "{message}");
    }
}

#[test]
fn a_likely_overflow_teaches_no_window() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(refusal(400, &json!("请压缩上下文后重试")));
    let run = call(&sandbox, &provider, Shape::OpenAi).write_stdin(HELLO).assert().code(3);
    run.stderr(contains("likely overflow (rule evidence)"));
    let record = &sandbox.read_json("failure")[0];
    assert_eq!((&record["fault"], &record["certainty"]), (&json!("tokens"), &json!("likely")));
    assert_eq!(record["why"], "it says '上下文' and '压缩'");
    provider.script(refusal(400, &json!("Token limit exceeded: 300000 > 200000")));
    call(&sandbox, &provider, Shape::OpenAi).write_stdin(HELLO).assert().code(3);
    assert!(!sandbox.path("state/windows.jsonl").exists());
    // Numbers that agree with the estimate are certain.
    provider.script(refusal(400, &json!("Token limit exceeded: 11000 > 8000")));
    call(&sandbox, &provider, Shape::OpenAi).write_stdin(long(50_000)).assert().code(3);
    assert_eq!(sandbox.read_json("state/windows.jsonl")[0]["window"], 8000);
}

#[test]
fn the_place_of_a_refused_block_is_that_in_the_messages_that_were_read() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}});
    let messages = [
        json!({"role": "user", "content": "look"}),
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_01", "name": "f", "input": {}},
            {"type": "tool_use", "id": "toolu_02", "name": "f", "input": {}}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01", "content": "1"},
            {"type": "tool_result", "tool_use_id": "toolu_02", "content": [{"type": "text", "text": "2"}, image]}]}),
    ];
    let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let details = json!({
        "type": "invalid_request_error", "message": "image dimensions exceed the limit",
        "details": {"error_code": "image_dimensions_too_large", "paths": ["messages.2.content.1.content.1"], "max_side_length_pixels": 2000},
    });
    let chat = json!({"message": "Invalid image", "param": "messages[5].content[0].image_url"});
    for (shape, error) in [(Shape::Anthropic, details), (Shape::OpenAi, chat)] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("system", "be brief");
        provider.script(refusal(400, &error));
        let run = call(&sandbox, &provider, shape).args(["--system", "system"]);
        run.write_stdin(input.clone()).assert().code(76);
        let record = &sandbox.read_json("failure")[0];
        assert_eq!((&record["fault"], &record["certainty"]), (&json!("block"), &json!("certain")));
        let place = &record["places"][0];
        let found = (&place["message"], &place["block"], &place["part"]);
        assert_eq!(found, (&json!(2), &json!(1), &json!(1)), "{record}");
    }
}

#[test]
fn a_large_body_is_the_likely_cause_of_a_failure_that_repeats() {
    for step in [Step::Drop, empty(200), refusal(500, &json!({"message": "Internal error"}))] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(step.clone());
        provider.script(step.clone());
        let run = call(&sandbox, &provider, Shape::OpenAi).write_stdin(long(1_200_000)).assert();
        run.code(4).stderr(contains("likely too-large (rule repeated)"));
        let record = &sandbox.read_json("failure")[0];
        assert_eq!((&record["fault"], &record["certainty"]), (&json!("bytes"), &json!("likely")));
        assert!(record["request_bytes"].as_u64() > Some(1_200_000), "{record}");
        assert_eq!(provider.requests().len(), 2);
        // The endpoint has accepted a larger body, so it is another reason: all three attempts fail.
        call(&sandbox, &provider, Shape::OpenAi).write_stdin(long(1_300_000)).assert().success();
        assert!(
            sandbox.read_json("state/sizes.jsonl")[0]["accepted_bytes"].as_u64() > Some(1_300_000)
        );
        (0..3).for_each(|_| provider.script(step.clone()));
        call(&sandbox, &provider, Shape::OpenAi).write_stdin(long(1_200_000)).assert().code(69);
    }
}

#[test]
fn a_stated_limit_in_bytes_is_remembered() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let page = "<html><head><title>413 Request Entity Too Large</title></head></html>";
    let html = Step::Raw { status: 413, headers: Vec::new(), body: page.into() };
    let stated = json!({"message": "request entity too large, the limit is 500000 bytes"});
    for (step, limit) in
        [(html.clone(), None), (refusal(413, &stated), Some(500_000)), (html, Some(500_000))]
    {
        provider.script(step);
        let run = call(&sandbox, &provider, Shape::OpenAi).write_stdin(long(600_000)).assert();
        run.code(4);
        let record = &sandbox.read_json("failure")[0];
        assert_eq!((&record["fault"], &record["certainty"]), (&json!("bytes"), &json!("certain")));
        assert_eq!(record["limit_bytes"].as_u64(), limit, "{record}");
    }
}

#[test]
fn an_error_as_the_first_event_of_a_stream_is_a_refusal() {
    let text = "Input length (70000 tokens) exceeds the maximum allowed length (32768 tokens).";
    let event = json!({"object": "error", "message": text, "type": "BadRequestError", "code": 400});
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(Step::stream(format!("data: {event}\n\n").as_bytes(), 1000));
    let run = call(&sandbox, &provider, Shape::OpenAi).arg("--stream").write_stdin(HELLO).assert();
    run.code(3).stderr(contains("actual 70000, limit 32768"));
}

/// Returns the refusals that a project knows.
fn known(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a file of refusals");
    text.lines().map(|line| serde_json::from_str(line).expect("a refusal")).collect()
}

/// The texts of other projects. docs/refusals.md has the shares.
#[test]
fn refusals_that_other_projects_know_are_classified() {
    let sandbox = Sandbox::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/refusals");
    let (mut overflows, mut missed, mut mistaken) = (0, Vec::new(), Vec::new());
    for half in ["build", "held_out"] {
        let files = fs::read_dir(format!("{data}/{half}")).expect("a directory");
        for row in files.flat_map(|entry| known(&entry.expect("an entry").path())) {
            let status = row["status"].as_u64().unwrap_or(400).to_string();
            let text = row["text"].as_str().expect("a text").to_owned();
            let call = sandbox.cmd("claw-call").args(["--classify", &status]);
            let verdict: Value =
                serde_json::from_str(&call.write_stdin(text.clone()).assert().stdout_text())
                    .expect("a verdict");
            let is_shrunk = verdict["fault"] == "tokens" || verdict["fault"] == "bytes";
            match (row["expect"].as_str(), row["kind"].as_str()) {
                (Some("overflow"), _) => {
                    overflows += 1;
                    missed.extend(Some(text).filter(|_| !is_shrunk));
                }
                (Some("other"), Some("bytes" | "block" | "output")) => {}
                // The row says why its project is not right about it.
                (Some("other"), Some(_)) if row.get("disputed").is_some() => {}
                (Some("other"), Some(_)) => mistaken.extend(Some(text).filter(|_| is_shrunk)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(overflows > 80 && missed.len() * 16 <= overflows, "{overflows}: {missed:#?}");
    // The project that has this one is held out, so there is no rule for it.
    assert_eq!(mistaken, [r#"{"error":{"message":"prompt is too long for this schema"}}"#]);
}

/// Runs a turn with a provider that gives this answer first.
fn turn(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Cmd {
    let fixed = ["--no-checkpoint", "-m", "Hello?", "s.jsonl"];
    sandbox.cmd("claw-turn").envs(provider.env_for(shape)).args(args).args(fixed)
}

#[test]
fn case_01_an_overflow_in_vllms_words_leads_to_a_step() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    Conversation::plain(12, 600).append(&sandbox, "s.jsonl");
    let text = "You passed 2501 input tokens and requested 500 output tokens. However, the model's context length is only 3000 tokens, resulting in a maximum input length of 2500 tokens.";
    provider.script(refusal(
        400,
        &json!({"message": text, "type": "BadRequestError", "param": "input_tokens", "code": 400}),
    ));
    let run = turn(&sandbox, &provider, Shape::OpenAi, &["--max-tokens", "500"]).assert().success();
    run.stderr(contains("summarising the old part"));
    let records = sandbox.read_json("s.jsonl");
    let error = records.iter().find(|record| record["type"] == "error").expect("an error");
    let found = (&error["limit"], &error["actual"], &error["actual_is_floor"]);
    assert_eq!(found, (&json!(3000), &json!(2501), &json!(true)), "{error}");
}

#[test]
fn case_12_an_empty_answer_is_asked_for_once_more_and_then_reported() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let empty = json!({"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]});
    provider.script(Step::Reply(empty.clone()));
    provider.script(Step::Reply(empty));
    turn(&sandbox, &provider, Shape::OpenAi, &[])
        .assert()
        .code(6)
        .stderr(contains("the answer has neither text nor tool calls"));
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn case_18_an_empty_account_is_not_a_rate_limit() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let text = "Insufficient balance or no resource package. Please recharge.";
    provider.script(refusal(429, &json!({"code": "1113", "message": text})));
    turn(&sandbox, &provider, Shape::OpenAi, &["--max-retries", "3"]).assert().code(77);
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn case_26_cerebras_numbers_are_read() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let text = "Please reduce the length of the messages or completion. Current length is 143425 while limit is 131072";
    provider.script(refusal(400, &json!({"message": text, "type": "invalid_request_error", "code": "context_length_exceeded"})));
    call(&sandbox, &provider, Shape::OpenAi).write_stdin(HELLO).assert().code(3);
    let record: Value = serde_json::from_str(&sandbox.read_text("failure")).expect("a record");
    assert_eq!((&record["limit"], &record["actual"]), (&json!(131_072), &json!(143_425)));
    assert!(sandbox.read_text("state/windows.jsonl").contains("131072"));
}

#[test]
fn case_33_ids_of_another_provider_fit_mistral() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    Conversation::new()
        .user("Begin.")
        .call("f", json!({}))
        .result("one")
        .assistant("I see.")
        .append(&sandbox, "s.jsonl");
    let args = ["--model", "mistral-large-latest"];
    turn(&sandbox, &provider, Shape::OpenAi, &args).assert().success();
    let body: Value = serde_json::from_slice(&provider.requests()[0].body).expect("a body");
    let (call, result) =
        (&body["messages"][1]["tool_calls"][0]["id"], &body["messages"][2]["tool_call_id"]);
    assert_eq!(call, result);
    let id = call.as_str().expect("an id");
    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
}

#[test]
fn a_model_that_takes_no_calls_gets_them_as_text_from_then_on() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let refused = || {
        refusal(
            400,
            &json!({"code": 400, "type": "invalid_request_error", "message": "Unable to generate parser for this template. Automatic parser generation failed: \n------------\nError: Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."}),
        )
    };
    Conversation::new()
        .user("Begin.")
        .call("read", json!({"path": "a"}))
        .result("hello")
        .assistant("I see.")
        .append(&sandbox, "s.jsonl");
    provider.script(refused());
    turn(&sandbox, &provider, Shape::OpenAi, &[])
        .assert()
        .success()
        .stderr(contains("trying again with tool calls and results as text"));
    turn(&sandbox, &provider, Shape::OpenAi, &[]).assert().success();
    let bodies: Vec<String> = provider
        .requests()
        .iter()
        .map(|it| String::from_utf8(it.body.clone()).expect("text"))
        .collect();
    assert_eq!(bodies.len(), 3, "the second turn is not refused first");
    assert!(bodies[0].contains("tool_calls"));
    for body in &bodies[1..] {
        assert!(!body.contains("tool_call"), "{body}");
        assert!(body.contains(r#"[call of read: {\"path\":\"a\"}]"#) && body.contains("hello"));
    }
    // With tools, the model would have to call them.
    sandbox.write("tools.json", r#"[{"name":"read","input_schema":{"type":"object"}}]"#);
    provider.script(refused());
    let rebuilt = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success();
    let mut input = rebuilt.get_output().stdout.clone();
    input.extend_from_slice(HELLO.as_bytes());
    let run = call(&sandbox, &provider, Shape::OpenAi).args(["--tools", "tools.json"]);
    let run = run.write_stdin(input).assert().code(76);
    run.stderr(contains("if the model takes no tools, leave out --tools"));
}

#[test]
fn case_03_reasoning_goes_back_to_the_model_that_wrote_it_and_to_no_other() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    // A shell writes the tool, for the reason given in `Sandbox::program`.
    let tool =
        "mkdir tools workspace; printf '#!/bin/sh\\necho 1 2 3\\n' >tools/seq; chmod 755 tools/seq";
    sandbox.sh(tool).assert().success();
    let definition = json!({"name": "seq", "input_schema": {"type": "object"}});
    sandbox.write("tools/seq.json", definition.to_string());
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "seq", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": "", "reasoning_content": "I should run it.", "tool_calls": [call]});
    provider.script(Step::Reply(
        json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}),
    ));
    let args = ["--tools", "tools", "--model", "deepseek-v4-pro"];
    turn(&sandbox, &provider, Shape::OpenAi, &args).assert().success();
    let sent = || -> Value {
        let requests = provider.requests();
        let body = &requests.last().expect("a request").body;
        serde_json::from_slice::<Value>(body).expect("a body")["messages"][1].clone()
    };
    let own = sent();
    assert_eq!(own["reasoning_content"], "I should run it.", "{own}");
    sandbox.cmd("claw-show").arg("s.jsonl").assert().success().stdout(contains("I should run it."));
    // Another model, and other protocols.
    for (shape, model) in [
        (Shape::OpenAi, "kimi-k3"),
        (Shape::Anthropic, "claude-opus-5-5"),
        (Shape::Ollama, "qwen3"),
    ] {
        turn(&sandbox, &provider, shape, &["--model", model]).assert().success();
        let other = sent().to_string();
        assert!(!other.contains("I should"), "{other}");
        assert!(other.contains("seq") && !other.contains("reasoning"), "{other}");
    }
    // The first model gets it back again, in the same words.
    turn(&sandbox, &provider, Shape::OpenAi, &["--model", "deepseek-v4-pro"]).assert().success();
    assert_eq!(sent(), own);
    let refused = sandbox.read_json("s.jsonl").iter().any(|record| record["type"] == "error");
    assert!(!refused);
}
