//! Turns through OpenAI's Responses API and Gemini: what a model sent with a call goes back to it unchanged, and to no other.

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{API_KEY, FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{Cmd, Sandbox};

fn answer(body: &Value) -> Step {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Step::Raw { status: 200, headers, body: body.to_string().into() }
}

/// Returns a sandbox with a tool.
fn with_tool() -> Sandbox {
    let sandbox = Sandbox::new();
    // A shell writes the tool, for the reason given in `Sandbox::program`.
    let tool =
        "mkdir tools workspace; printf '#!/bin/sh\\necho 1 2 3\\n' >tools/seq; chmod 755 tools/seq";
    sandbox.sh(tool).assert().success();
    let definition = json!({"name": "seq", "input_schema": {"type": "object"}});
    sandbox.write("tools/seq.json", definition.to_string());
    sandbox
}

fn turn(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Cmd {
    let fixed = ["--no-checkpoint", "--tools", "tools", "-m", "Count.", "s.jsonl"];
    sandbox.cmd("claw-turn").envs(provider.env_for(shape)).args(args).args(fixed)
}

/// Returns the body of the last request.
fn sent(provider: &FakeProvider) -> Value {
    let requests = provider.requests();
    serde_json::from_slice(&requests.last().expect("a request").body).expect("a body")
}

#[test]
fn reasoning_of_responses_goes_back_with_its_call_and_to_no_other() {
    let (sandbox, provider) = (with_tool(), FakeProvider::new());
    let reasoning = json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "I should run it."}], "encrypted_content": "c2VhbGVk"});
    let call = json!({"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "seq", "arguments": "{}", "status": "completed"});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "phase": "final_answer", "content": [{"type": "output_text", "text": "Three.", "annotations": []}]});
    let response = |items: &[&Value]| {
        answer(
            &json!({"status": "completed", "model": "gpt-6-astra", "output": items, "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5}}),
        )
    };
    provider.script(response(&[&reasoning, &call]));
    provider.script(response(&[&message]));
    let args = ["--api", "responses", "--model", "gpt-6-astra", "--effort", "low"];
    turn(&sandbox, &provider, Shape::OpenAi, &args).assert().success().stdout(contains("Three."));
    let body = sent(&provider);
    let input = body["input"].as_array().expect("items");
    assert_eq!(input[1], reasoning, "{body}");
    assert_eq!(
        (&input[2]["type"], &input[2]["call_id"]),
        (&json!("function_call"), &json!("call_1"))
    );
    assert_eq!(input[3]["output"], "1 2 3\n");
    assert_eq!((&body["store"], &body["reasoning"]["effort"]), (&json!(false), &json!("low")));
    assert_eq!(body["tools"][0]["name"], "seq");
    let request = provider.requests().pop().expect("a request");
    assert_eq!(request.path, "/v1/responses");
    sandbox.cmd("claw-show").arg("s.jsonl").assert().success().stdout(contains("I should run it."));
    // The phase goes back as well.
    provider.script(response(&[&message]));
    turn(&sandbox, &provider, Shape::OpenAi, &args).assert().success();
    assert_eq!(sent(&provider)["input"][4]["phase"], "final_answer");
    // Other protocols and other models get neither.
    for (shape, model) in [(Shape::Anthropic, "claude-opus-5-5"), (Shape::OpenAi, "gpt-4o")] {
        turn(&sandbox, &provider, shape, &["--model", model]).assert().success();
        let other = sent(&provider).to_string();
        assert!(other.contains("seq") && !other.contains("c2VhbGVk"), "{other}");
        assert!(!other.contains("final_answer") && !other.contains("I should"), "{other}");
    }
}

#[test]
fn signatures_of_gemini_go_back_with_their_call_and_to_no_other() {
    let (sandbox, provider) = (with_tool(), FakeProvider::new());
    let call = json!({"functionCall": {"id": "g1", "name": "seq", "args": {}}, "thoughtSignature": "c2lnbmVk"});
    let gemini = |part: &Value| {
        answer(
            &json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9}, "modelVersion": "gemini-3.5-flash"}),
        )
    };
    provider.script(gemini(&call));
    provider.script(gemini(&json!({"text": "Three."})));
    let base = provider.url();
    let model = ["--provider", "gemini", "--base-url", &base, "--model", "gemini-3.5-flash"];
    let run = turn(&sandbox, &provider, Shape::OpenAi, &model).env("GEMINI_API_KEY", API_KEY);
    run.assert().success().stdout(contains("Three."));
    let body = sent(&provider);
    assert_eq!(body["contents"][1]["parts"][0], call, "{body}");
    let result = &body["contents"][2]["parts"][0]["functionResponse"];
    assert_eq!(
        (&result["name"], &result["response"]["output"]),
        (&json!("seq"), &json!("1 2 3\n"))
    );
    let request = provider.requests().pop().expect("a request");
    assert_eq!(request.path, "/v1beta/models/gemini-3.5-flash:generateContent");
    assert!(!sandbox.read("s.jsonl").windows(API_KEY.len()).any(|it| it == API_KEY.as_bytes()));
    turn(&sandbox, &provider, Shape::Anthropic, &[]).assert().success();
    let other = sent(&provider).to_string();
    assert!(other.contains("g1") && !other.contains("c2lnbmVk"), "{other}");
}

#[test]
fn a_model_that_needs_responses_is_told_from_one_without_tools() {
    let (sandbox, provider) = (with_tool(), FakeProvider::new());
    let text = "Function tools with reasoning_effort are not supported for gpt-5.9 in /v1/chat/completions. Please use /v1/responses instead.";
    let body = json!({"error": {"message": text, "type": "invalid_request_error"}}).to_string();
    provider.script(Step::Raw { status: 400, headers: Vec::new(), body: body.into() });
    let run = turn(&sandbox, &provider, Shape::OpenAi, &["--model", "gpt-5.9"]).assert().code(76);
    run.stderr(contains("the model needs OpenAI's Responses API; give --api responses"));
}
