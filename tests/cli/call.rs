//! claw-call: requests, replies, failures and retries, the secrecy of the key, and the offline provider.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{API_KEY, FakeProvider, Recorded, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox, patiently, rules};
use crate::conversations::{Conversation, append, rebuild_meta, words};

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

/// Returns a claw-call command that uses the provider; the test adds standard input.
fn call(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> Cmd {
    sandbox.cmd("claw-call").envs(provider.env()).args(args)
}

/// Sends "hello" from a new sandbox.
fn hello(provider: &FakeProvider, args: &[&str]) -> Assert {
    call(&Sandbox::new(), provider, args).write_stdin(HELLO).assert()
}

fn body(request: &Recorded) -> &Value {
    request.json.as_ref().expect("a JSON body")
}

/// Returns an answer with this content and stop reason.
fn answer(content: Value, stop_reason: Value) -> Step {
    Step::Reply(json!({
        "id": "msg", "type": "message", "role": "assistant", "model": "test-model-1",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 12, "output_tokens": 3},
    }))
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn refusal(status: u16, headers: &[(&str, &str)]) -> Step {
    let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let message = format!("The answer to everything is {status}");
    Step::Error { status, kind: "some_error".into(), message, headers }
}

// ---- the reply -------------------------------------------------------------------------------

#[test]
fn a_reply_becomes_records_byte_for_byte() {
    let provider = FakeProvider::new();
    // The provider's spelling, the order of its members, and unknown members are kept.
    let body = concat!(
        r#"{"id":"msg","content":[{"type":"thinking","thinking":"hm","signature":"s=="},"#,
        r#"{"type":"text","text":"caf\u00e9","citations":null},"#,
        r#"{"type":"tool_use","id":"a","name":"read","input":{"z":1e2,"a":"x"}},"#,
        r#"{"type":"tool_use","id":"b","name":"list","input":{}}],"#,
        r#""model":"test-model-1","stop_reason":"tool_use","#,
        r#""usage":{"output_tokens":3,"input_tokens":12,"service_tier":"x","server":{"n":1.50}}}"#,
    );
    let headers = vec![("request-id".into(), "req_of_mine".into())];
    provider.script(Step::Raw { status: 200, headers, body: body.into() });
    hello(&provider, &[]).success().stderr("").stdout(concat!(
        r#"{"type":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=="},"#,
        r#"{"type":"text","text":"caf\u00e9","citations":null}],"model":"test-model-1","#,
        r#""provider":"anthropic","stop_reason":"tool_use","#,
        r#""usage":{"output_tokens":3,"input_tokens":12,"service_tier":"x","server":{"n":1.50}},"#,
        r#""request_id":"req_of_mine"}"#,
        "\n",
        r#"{"type":"tool_use","tool_use_id":"a","name":"read","input":{"z":1e2,"a":"x"}}"#,
        "\n",
        r#"{"type":"tool_use","tool_use_id":"b","name":"list","input":{}}"#,
        "\n",
    ));
    provider.all_legal();
}

#[test]
fn an_empty_reply_and_text_after_a_call_are_recorded() {
    let provider = FakeProvider::new();
    let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    provider.script(answer(json!([call, text_block("and so on")]), json!("end_turn")));
    let records = hello(&provider, &[]).success().json();
    let types: Vec<&Value> = records.iter().map(|record| &record["type"]).collect();
    assert_eq!(types, ["assistant", "tool_use", "assistant"]);
    assert_eq!(records[2], json!({"type": "assistant", "content": [text_block("and so on")]}));

    // An empty answer is asked for once more.
    let provider = FakeProvider::new();
    provider.script(answer(json!([]), json!("end_turn")));
    hello(&provider, &[]).success().stderr(contains("neither text nor tool calls; trying again"));
    for (content, cause) in [
        (json!([]), "larger than the server's window"),
        (json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]), "only thought"),
    ] {
        let provider = FakeProvider::new();
        provider.script(answer(content.clone(), json!("end_turn")));
        provider.script(answer(content.clone(), json!("end_turn")));
        let run = hello(&provider, &[]).code(6).stderr(contains(cause));
        let records = run.json();
        assert_eq!((records.len(), &records[0]["content"]), (1, &content));
        assert_eq!(records[0]["usage"], json!({"input_tokens": 12, "output_tokens": 3}));
        assert_eq!(provider.requests().len(), 2);
    }
}

#[test]
fn v66_k3_a_truncated_answer_ends_with_6_and_an_incomplete_call_is_dropped() {
    let provider = FakeProvider::new();
    let half = json!({"type": "tool_use", "id": "a", "name": "write_file", "input": {}});
    for reason in ["max_tokens", "model_context_window_exceeded"] {
        provider.script(answer(json!([text_block("So I"), half]), json!(reason)));
        let run = hello(&provider, &[])
            .code(6)
            .stderr(contains(format!("stop reason '{reason}'")))
            .stderr(contains("incomplete call to 'write_file'"));
        let record = run.json_one();
        assert_eq!(
            (&record["content"], &record["stop_reason"]),
            (&json!([text_block("So I")]), &json!(reason))
        );
    }
}

#[test]
fn v66_k3_a_refusal_is_noted_and_an_unknown_stop_reason_ends_with_6() {
    let provider = FakeProvider::new();
    let (refusal, unknown) = ("ended in a refusal: stop reason", "unknown stop reason");
    for (reason, status, what) in [
        (json!("refusal"), 0, refusal),
        (json!("new_reason"), 6, unknown),
        (json!(null), 6, unknown),
    ] {
        provider.script(answer(json!([text_block("Well.")]), reason.clone()));
        let run = hello(&provider, &[]).code(status).stderr(contains(what));
        assert_eq!(run.json_one()["stop_reason"], reason);
    }
}

#[test]
fn v66_the_next_request_is_legal_after_any_stop_reason() {
    let provider = FakeProvider::new();
    let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    for content in
        [json!([]), json!([text_block(" ")]), json!([call]), json!([text_block("x"), call])]
    {
        for reason in ["max_tokens", "refusal", "pause_turn", "model_context_window_exceeded"] {
            let sandbox = Sandbox::new();
            Conversation::new().user("hi").append(&sandbox, "s.jsonl");
            provider.script(answer(content.clone(), json!(reason)));
            let messages = rebuild_meta(&sandbox, "s.jsonl");
            let reply = self::call(&sandbox, &provider, &[]).write_stdin(messages).assert();
            append(&sandbox, "s.jsonl", reply.get_output().stdout.clone());
            Conversation::new().user("go on").append(&sandbox, "s.jsonl");
            let messages = sandbox.cmd("claw-rebuild").args(["--meta", "s.jsonl"]).assert();
            let messages = messages.success().get_output().stdout.clone();
            self::call(&sandbox, &provider, &[]).write_stdin(messages).assert().success();
        }
    }
    provider.all_legal();
}

#[test]
fn an_invalid_answer_ends_with_69() {
    let provider = FakeProvider::new();
    let html = "<html><title>502 Bad Gateway</title></html>";
    for (status, text) in
        [(200, ""), (200, html), (200, "{}"), (200, "[1]"), (502, html), (502, "")]
    {
        provider.script(Step::Raw { status, headers: vec![], body: text.into() });
        hello(&provider, &["--max-retries", "0"])
            .code(69)
            .stdout("")
            .stderr(contains("claw-call: "));
    }
    // The diagnostic quotes the answer.
    provider.script(Step::Raw { status: 502, headers: vec![], body: html.into() });
    hello(&provider, &["--max-retries", "0"]).stderr(contains("502 Bad Gateway"));
}

// ---- the request -----------------------------------------------------------------------------

#[test]
fn a_dry_run_prints_the_request_that_a_call_sends() {
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    Conversation::of("uacrCRau", 50).append(&sandbox, "s.jsonl");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    assert!(messages.contains("_meta"));
    let args = ["--max-tokens", "77"];
    let dry =
        call(&sandbox, &provider, &args).arg("--dry-run").write_stdin(messages.clone()).assert();
    assert!(provider.requests().is_empty(), "a dry run sent a request");
    let url = provider.url();
    let dry = dry.success().stderr(format!(
        "claw-call: would send POST {url}/v1/messages\n\
         claw-call: would send anthropic-version: 2023-06-01\n\
         claw-call: would send x-api-key: (hidden)\n"
    ));
    call(&sandbox, &provider, &args).write_stdin(messages).assert().success();
    let sent = provider.single_request();
    assert!(sent.body == dry.stdout_text().trim_end().as_bytes());
    assert!(!String::from_utf8_lossy(&sent.body).contains("_meta"));
    assert_eq!(body(&sent)["max_tokens"], 77);
    provider.all_legal();
}

#[test]
fn the_system_prompt_and_the_tools_are_in_the_body() {
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    let tools = json!([{"name": "f", "description": "d", "input_schema": {"type": "object"}}]);
    sandbox.write("system", "Be brief.\n");
    sandbox.write("blank", "\n");
    sandbox.write("tools", tools.to_string());
    let args = ["--system", "system", "--tools", "tools"];
    call(&sandbox, &provider, &args).write_stdin(HELLO).assert().success();
    let request = provider.single_request();
    assert_eq!(
        (&body(&request)["system"], &body(&request)["tools"]),
        (&json!("Be brief.\n"), &tools)
    );
    call(&sandbox, &provider, &["--system", "blank"]).write_stdin(HELLO).assert().success();
    assert_eq!(
        body(&provider.requests()[1])["system"],
        Value::Null,
        "providers refuse a blank system prompt"
    );
    provider.all_legal();
}

/// OpenAI refuses these schemas, which Anthropic accepts.
#[test]
fn schemas_without_properties_are_completed_for_chat_completions() {
    let sandbox = Sandbox::new();
    let tools = json!([
        {"name": "f", "input_schema": {"type": "object"}},
        {"name": "g", "input_schema": {}},
        {"name": "h", "input_schema": {"type": "object", "properties": {"a": {"type": "array"}}}},
    ]);
    sandbox.write("tools", tools.to_string());
    for shape in [Shape::OpenAi, Shape::Ollama] {
        let provider = FakeProvider::new();
        let call =
            sandbox.cmd("claw-call").envs(provider.env_for(shape)).args(["--tools", "tools"]);
        call.write_stdin(HELLO).assert().success();
        let request = provider.single_request();
        let parameters = &body(&request)["tools"][2]["function"]["parameters"];
        assert_eq!(parameters["properties"]["a"]["items"], json!({}), "{shape:?}");
        provider.all_legal();
    }
}

#[test]
fn max_tokens_is_8096_or_a_quarter_of_a_small_window() {
    let provider = FakeProvider::new();
    let max_tokens = |args: &[&str]| {
        let run = hello(&provider, &[&["--dry-run"], args].concat());
        run.success().json_one()["max_tokens"].clone()
    };
    assert_eq!(max_tokens(&[]), 8096);
    assert_eq!(max_tokens(&["--window", "200000"]), 8096);
    assert_eq!(max_tokens(&["--window", "4000"]), 1000);
    assert_eq!(max_tokens(&["--window", "4000", "--max-tokens", "5"]), 5);
    hello(&provider, &["--max-tokens", "0"]).code(2);
}

#[test]
fn each_kind_of_key_is_sent_in_its_header() {
    let provider = FakeProvider::new();
    hello(&provider, &[]).success();
    let by_token = call(&Sandbox::new(), &provider, &[]).env_remove("ANTHROPIC_API_KEY");
    by_token.env("ANTHROPIC_AUTH_TOKEN", "a-secret").write_stdin(HELLO).assert().success();
    let requests = provider.requests();
    let headers = |n: usize| (requests[n].header("x-api-key"), requests[n].header("authorization"));
    assert_eq!(headers(0), (Some(API_KEY), None));
    assert_eq!(headers(1), (None, Some("Bearer a-secret")));
}

#[test]
fn a_redirect_is_not_followed() {
    let (provider, other) = (FakeProvider::new(), FakeProvider::new());
    let headers = vec![("location".into(), other.url())];
    provider.script(Step::Raw { status: 307, headers, body: vec![] });
    hello(&provider, &["--max-retries", "0"]).failure().stdout("");
    assert!(other.requests().is_empty());
}

// ---- before anything is sent -----------------------------------------------------------------

#[test]
fn an_incomplete_conversation_ends_with_7_and_an_illegal_one_with_76() {
    let provider = FakeProvider::new();
    let user = |content: Value| json!({"role": "user", "content": content}).to_string() + "\n";
    let assistant =
        |content: Value| json!({"role": "assistant", "content": content}).to_string() + "\n";
    let use_of = |id: &str| json!([{"type": "tool_use", "id": id, "name": "f", "input": {}}]);
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "x"}]);
    let hi = user(json!("hi"));
    for (status, messages) in [
        (7, hi.clone() + &assistant(json!("there"))),
        (7, hi.clone() + &assistant(use_of("a"))),
        (7, String::new()),
        (76, assistant(json!("there")) + &hi),
        (76, hi.clone() + &hi),
        (76, hi.clone() + &assistant(json!("x")) + &user(result("a"))),
        (7, hi.clone() + &assistant(use_of("a")) + &hi),
        (76, hi.clone() + &assistant(use_of("a")) + &user(result("b"))),
        (76, hi.clone() + &assistant(use_of("a.b")) + &user(result("a.b"))),
        (76, user(json!(""))),
        (76, user(json!([text_block(" ")]))),
        (65, "nonsense\n".to_owned()),
    ] {
        let run = call(&Sandbox::new(), &provider, &[])
            .write_stdin(messages.clone())
            .assert()
            .code(status)
            .stdout("");
        assert!(!run.stderr_text().is_empty(), "{}\n{run}", messages);
    }
    assert!(provider.requests().is_empty());
}

#[test]
fn missing_and_invalid_settings_are_reported_before_any_connection() {
    let provider = FakeProvider::new();
    let run = |cmd: Cmd| cmd.write_stdin(HELLO).assert();
    let call = || call(&Sandbox::new(), &provider, &[]);
    run(call().env("ANTHROPIC_AUTH_TOKEN", "t"))
        .code(78)
        .stdout("")
        .stderr(contains("both ANTHROPIC_API_KEY and ANTHROPIC_AUTH_TOKEN are set"));
    run(call().env_remove("CLAW_MODEL")).code(78).stderr(contains("no model"));
    run(call().env("CLAW_PROVIDER", "oracle")).code(78).stderr(contains("'oracle'"));
    run(call().arg("--provider").arg("oracle")).code(2);
    run(call().args(["--timeout", "soon"])).code(2);
    run(call().args(["--max-wait", "-1"])).code(2);
    let began = Instant::now();
    let secure = call().env("ANTHROPIC_BASE_URL", "https://api.example.invalid");
    run(secure.env_remove("ANTHROPIC_API_KEY"))
        .code(77)
        .stdout("")
        .stderr(contains("no key for anthropic; set ANTHROPIC_API_KEY"));
    for url in [
        "http://example.org",
        "http://127.0.0.1@example.org",
        "http://10.0.0.1/v1",
        "ftp://localhost",
    ] {
        run(call().env("ANTHROPIC_BASE_URL", url))
            .code(78)
            .stdout("")
            .stderr(contains("cannot send"))
            .stderr(contains("https"));
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(provider.requests().is_empty());
}

// ---- failures --------------------------------------------------------------------------------

#[test]
fn v61_temporary_failures_are_retried() {
    let soon = [("retry-after-ms", "20")];
    for step in [
        refusal(429, &soon),
        refusal(429, &[("retry-after", "0")]),
        refusal(529, &soon),
        refusal(500, &soon),
        refusal(503, &soon),
        Step::Drop,
        Step::Cut(30),
    ] {
        let provider = FakeProvider::new();
        provider.script(step.clone());
        hello(&provider, &[]).success().stderr(contains("; trying again in "));
        let requests = provider.requests();
        assert!(requests.len() == 2 && requests[0].body == requests[1].body, "{step:?}");
    }
}

#[test]
fn v61_max_retries_limits_the_retries() {
    let soon = [("retry-after-ms", "5")];
    for (step, status) in [
        (refusal(429, &soon), 75),
        (refusal(529, &soon), 75),
        (refusal(503, &soon), 75),
        (refusal(500, &soon), 69),
        (refusal(504, &soon), 69),
    ] {
        for retries in [0, 1, 3] {
            let provider = FakeProvider::new();
            (0..9).for_each(|_| provider.script(step.clone()));
            hello(&provider, &["--max-retries", &retries.to_string()])
                .code(status)
                .stdout("")
                .stderr(contains("The answer to everything is "));
            assert_eq!(provider.requests().len(), retries + 1, "{step:?}");
        }
    }
}

#[test]
fn v61_a_missing_answer_ends_with_69() {
    let check = |step: Step, timeout: f64, why: &str| {
        let provider = FakeProvider::new();
        (0..2).for_each(|_| provider.script(step.clone()));
        hello(&provider, &["--timeout", &timeout.to_string(), "--max-retries", "1"])
            .code(69)
            .stdout("")
            .stderr(contains(why));
        assert_eq!(provider.requests().len(), 2, "{step:?}");
    };
    check(Step::Drop, 30.0, "no answer");
    check(Step::Cut(30), 30.0, "the connection was lost");
    let hang = Step::Hang(Duration::from_secs(60));
    patiently(|times| check(hang.clone(), 0.3 * f64::from(times), "timed out"));
    let stopped = FakeProvider::stopped();
    Sandbox::new()
        .cmd("claw-call")
        .envs(stopped.env())
        .args(["--max-retries", "0"])
        .write_stdin(HELLO)
        .assert()
        .code(69)
        .stdout("")
        .stderr(contains("no answer"));
}

#[test]
fn v61_permanent_failures_are_not_retried() {
    for (status, exit) in
        [(400, 76), (401, 77), (402, 77), (403, 77), (404, 76), (413, 4), (422, 76)]
    {
        let provider = FakeProvider::new();
        provider.script(refusal(status, &[]));
        hello(&provider, &["--max-retries", "9"])
            .code(exit)
            .stdout("")
            .stderr(contains(format!("The answer to everything is {status}")));
        provider.single_request();
    }
}

#[test]
fn v61_k1_a_rate_limit_on_tokens_is_not_an_overflow() {
    let message = "This request would exceed your rate limit of 30,000 input tokens per minute";
    for text in
        [message, "Too many tokens, please wait before trying again.", "Number of tokens: context"]
    {
        let provider = FakeProvider::new();
        provider.script(Step::error(429, "rate_limit_error", text));
        let sandbox = Sandbox::new();
        call(&sandbox, &provider, &["--max-retries", "0"]).write_stdin(HELLO).assert().code(75);
        assert!(!sandbox.exists("state/windows.jsonl"));
    }
}

#[test]
fn v61_a_retry_waits_as_long_as_the_provider_asks_and_ends_with_75_if_that_is_too_long() {
    let provider = FakeProvider::new();
    provider.script(refusal(429, &[("retry-after-ms", "700")]));
    let began = Instant::now();
    hello(&provider, &[]).success();
    assert!(began.elapsed() >= Duration::from_millis(700));

    provider.script(refusal(429, &[("retry-after", "120")]));
    let began = Instant::now();
    hello(&provider, &["--max-wait", "60"])
        .code(75)
        .stdout("")
        .stderr(contains("retry after 120 s"));
    assert!(began.elapsed() < Duration::from_secs(40));
    assert_eq!(provider.requests().len(), 3);

    provider.script(refusal(429, &[("retry-after", "120")]));
    let run = hello(&provider, &["--log", "json"]);
    let line: Value =
        serde_json::from_str(run.code(75).stderr_text().trim()).expect("one JSON line");
    assert_eq!(line["retry_after"], 120);
}

#[test]
fn v65_max_tokens_is_lowered_if_the_prompt_itself_fits() {
    let provider = FakeProvider::new().window(4000);
    let prompt = json!({"role": "user", "content": "word".repeat(3000)}).to_string();
    let sandbox = Sandbox::new();
    call(&sandbox, &provider, &["--max-tokens", "2000"])
        .write_stdin(prompt)
        .assert()
        .success()
        .stderr(contains("trying again with --max-tokens 928"));
    let limits: Vec<u64> =
        provider.requests().iter().filter_map(|r| body(r)["max_tokens"].as_u64()).collect();
    assert_eq!(limits, [2000, 928]);
}

#[test]
fn an_overflow_ends_with_3_is_recorded_and_its_window_is_remembered() {
    let provider = FakeProvider::new().window(2000);
    let sandbox = Sandbox::new();
    let prompt = json!({"role": "user", "content": "word".repeat(3000)}).to_string();
    let args = ["--failure", "failure", "--max-tokens", "100"];
    call(&sandbox, &provider, &args)
        .write_stdin(prompt)
        .assert()
        .code(3)
        .stdout("")
        .stderr(contains("overflow"))
        .stderr(contains("actual 3008"))
        .stderr(contains("limit 2000"));
    provider.single_request();
    let record = json!({
        "type": "error", "class": "overflow", "status": 400, "limit": 2000, "actual": 3008,
        "message": "prompt is too long: 3008 tokens > 2000 maximum", "model": "test-model",
        "fault": "tokens", "certainty": "certain", "request_bytes": 12081,
    });
    assert_eq!(sandbox.read_json("failure"), [record]);
    let mode = std::fs::metadata(sandbox.path("failure")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The record can be appended and adds no message.
    append(&sandbox, "s.jsonl", sandbox.read("failure"));
    assert_eq!(rebuild_meta(&sandbox, "s.jsonl"), "");
    // The window of this model at this endpoint is remembered.
    let remembered = &sandbox.read_json("state/windows.jsonl")[0];
    let known = (&remembered["endpoint"], &remembered["model"], &remembered["window"]);
    assert_eq!(known, (&json!(provider.url()), &json!("test-model"), &json!(2000)));
    let check = sandbox.cmd("claw-estimate").envs(provider.env()).args(["--check"]);
    check.write_stdin(json!({"role": "user", "content": words(1800)}).to_string()).assert().code(3);
}

/// A window is not remembered if the refusal only quotes it, or if it is implausibly small or large. The user's window
/// overrides a remembered one.
#[test]
fn audit_11_a_refusal_does_not_make_a_model_unusable() {
    let refused = |text: &str, args: &[&str]| {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::error(400, "invalid_request_error", text));
        let run = call(&sandbox, &provider, args).write_stdin(HELLO).assert();
        let state = sandbox.path("state/windows.jsonl");
        let lines = std::fs::read_to_string(state).unwrap_or_default();
        (run.get_output().status.code(), lines.lines().count())
    };
    let quoted = "error parsing tool call: raw='prompt is too long: 9000 tokens > 5000 maximum'";
    assert_eq!(refused(quoted, &[]), (Some(76), 0));
    assert_eq!(refused("prompt is too long: 9 tokens > 5 maximum", &[]), (Some(3), 0));
    assert_eq!(refused("Prompt exceeds max length", &[]), (Some(3), 0));
    let large = "prompt is too long: 90000 tokens > 80000 maximum";
    assert_eq!(refused(large, &["--window", "7999"]), (Some(3), 0));
    assert_eq!(refused(large, &["--window", "8000"]), (Some(3), 1));
    assert_eq!(refused(large, &[]), (Some(3), 1));

    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    provider.script(Step::error(400, "invalid_request_error", large));
    call(&sandbox, &provider, &[]).write_stdin(HELLO).assert().code(3);
    let warning = format!(
        "claw-call: the window is set to 100000 tokens, but the provider refused a request and stated a limit of \
         80000; if that limit is wrong, delete its \
         line in '{}'\n",
        sandbox.path("state/windows.jsonl").display()
    );
    call(&sandbox, &provider, &["--window", "100000"])
        .write_stdin(HELLO)
        .assert()
        .success()
        .stderr(warning.clone());
    call(&sandbox, &provider, &[])
        .env("CLAW_WINDOW", "100000")
        .write_stdin(HELLO)
        .assert()
        .success()
        .stderr(warning.clone());
    call(&sandbox, &provider, &["--window", "8000"])
        .write_stdin(HELLO)
        .assert()
        .success()
        .stderr("");
}

#[test]
fn a_failure_file_that_cannot_be_written_ends_with_74() {
    let provider = FakeProvider::new();
    provider.script(refusal(401, &[]));
    hello(&provider, &["--failure", "no/such/place"])
        .code(74)
        .stdout("")
        .stderr(contains("'no/such/place'"))
        .stderr(contains("auth"));
}

#[test]
fn log_json_prints_one_json_object_per_line() {
    let provider = FakeProvider::new().window(1000);
    provider.script(refusal(529, &[("retry-after-ms", "1")]));
    let overflow = json!({"role": "user", "content": "word".repeat(3000)}).to_string();
    let log = |input: &str, args: &[&str]| -> Vec<Value> {
        let run = call(&Sandbox::new(), &provider, args)
            .args(["--log", "json"])
            .write_stdin(input)
            .assert();
        run.stderr_text()
            .lines()
            .map(|line| serde_json::from_str(line).expect("a JSON line"))
            .collect()
    };
    let busy = log(HELLO, &["--max-tokens", "9"]);
    assert!(busy.len() == 1 && busy[0]["program"] == "claw-call", "{busy:?}");
    let failed = log(&overflow, &["--max-tokens", "9"]);
    let [line] = failed.as_slice() else { panic!("{failed:?}") };
    for (member, value) in [
        ("program", json!("claw-call")),
        ("class", json!("overflow")),
        ("status", json!(400)),
        ("limit", json!(1000)),
        ("actual", json!(3008)),
    ] {
        assert_eq!(line[member], value, "{member}");
    }
    assert_eq!(log(HELLO, &["--dry-run"]).len(), 3);
}

#[test]
fn the_key_is_in_no_output_and_no_file() {
    for message in ["invalid x-api-key", &format!("Incorrect API key provided: {API_KEY}")] {
        for log in ["text", "json"] {
            let provider = FakeProvider::new();
            provider.script(Step::error(401, "authentication_error", message));
            provider.script(Step::error(
                400,
                "invalid_request_error",
                &format!("prompt is too long: 3000 tokens > 2000 maximum, {API_KEY}"),
            ));
            provider.script(Step::error(529, "overloaded_error", message));
            let sandbox = Sandbox::new();
            let mut seen = String::new();
            for failure in ["one", "two", "three"] {
                let run = call(&sandbox, &provider, &["--failure", failure, "--log", log])
                    .write_stdin(HELLO)
                    .assert();
                seen += &(run.stdout_text() + run.stderr_text());
                if run.get_output().status.code() != Some(0) {
                    seen += &sandbox.read_text(failure);
                }
            }
            seen += &sandbox.read_text("state/windows.jsonl");
            seen += call(&sandbox, &provider, &["--dry-run"])
                .write_stdin(HELLO)
                .assert()
                .success()
                .stderr_text();
            assert!(!seen.contains(API_KEY), "{seen}");
        }
    }
}

// ---- nesting -----------------------------------------------------------------

/// Returns `count` nested arrays.
fn arrays(count: usize) -> String {
    format!("{}{}", "[".repeat(count), "]".repeat(count))
}

#[test]
fn b_7_tools_that_are_nested_too_deep_are_not_sent() {
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    let tools = |depth: usize| {
        format!(r#"[{{"name":"f","input_schema":{{"type":"object","x":{}}}}}]"#, arrays(depth - 3))
    };
    let run = |args: &[&str]| call(&sandbox, &provider, args).write_stdin(HELLO).assert();
    sandbox.write("tools", tools(1000));
    run(&["--dry-run", "--tools", "tools"]).success().stdout(contains(tools(1000)));
    for deep in [tools(1001), tools(1_000_000)] {
        sandbox.write("tools", deep);
        run(&["--tools", "tools"])
            .code(65)
            .stdout("")
            .stderr("claw-call: cannot use tools 'tools': nested more than 1000 levels deep\n");
    }
    assert_eq!(provider.requests().len(), 0);
}

/// Returns answers whose records have `depth` levels: in an unknown member of a block, and in the input of a call.
fn deep_answers(depth: usize) -> [String; 2] {
    let answer = |block: String| {
        format!(
            r#"{{"content":[{block}],"model":"m","stop_reason":"end_turn","usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        )
    };
    [
        answer(format!(r#"{{"type":"text","text":"deep","x":{}}}"#, arrays(depth - 3))),
        answer(format!(
            r#"{{"type":"tool_use","id":"a","name":"f","input":{{"x":{}}}}}"#,
            arrays(depth - 2)
        )),
    ]
}

#[test]
fn b_7_the_records_of_a_deeply_nested_reply_can_be_appended_and_rebuilt() {
    let provider = FakeProvider::new();
    let reply = |body: String| {
        let sandbox = Sandbox::new();
        Conversation::new().user("hi").append(&sandbox, "s.jsonl");
        provider.script(Step::Raw { status: 200, headers: Vec::new(), body: body.into_bytes() });
        let messages = rebuild_meta(&sandbox, "s.jsonl");
        let run = call(&sandbox, &provider, &["--max-retries", "0"]).write_stdin(messages).assert();
        (sandbox, run)
    };
    for body in deep_answers(1000) {
        let (sandbox, run) = reply(body);
        append(&sandbox, "s.jsonl", run.success().get_output().stdout.clone());
        let messages = rebuild_meta(&sandbox, "s.jsonl");
        assert_eq!(messages.lines().count(), 2);
        sandbox.cmd("claw-estimate").write_stdin(messages).assert().success();
    }
    for body in deep_answers(1001).into_iter().chain(deep_answers(1_000_000)) {
        let (_, run) = reply(body);
        run.code(69).stdout("").stderr(contains("the answer is nested more than 1000 levels deep"));
    }
    // A deeply nested refusal does not crash the program.
    let body = format!(r#"{{"error":{}}}"#, arrays(1_000_000)).into_bytes();
    provider.script(Step::Raw { status: 400, headers: Vec::new(), body });
    hello(&provider, &[]).code(76).stdout("");
}

// ---- connections ---------------------------------------------------------------------------

/// By default, plain HTTP is allowed only to the local host; a proxy would send the key elsewhere.
#[test]
fn t6_plain_http_ignores_the_proxy_variables() {
    let (provider, proxy) = (FakeProvider::new(), FakeProvider::new());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        for url in [proxy.url(), "http://127.0.0.1:1".to_owned(), "nonsense".to_owned()] {
            let sandbox = Sandbox::new();
            let cmd = call(&sandbox, &provider, &[]).env_remove("NO_PROXY").env(name, url);
            cmd.write_stdin(HELLO)
                .assert()
                .success()
                .stderr("")
                .stdout(contains(r#""type":"assistant""#));
        }
    }
    assert_eq!(provider.requests().len(), 18);
    assert_eq!(proxy.requests().len(), 0);
    provider.all_legal();
}

// ---- the offline provider ---------------------------------------------------------------------

fn offline(args: &[&str], input: impl Into<Vec<u8>>) -> Assert {
    Sandbox::new()
        .cmd("claw-call")
        .args(["--provider", "offline"])
        .args(args)
        .write_stdin(input)
        .assert()
}

#[test]
fn the_offline_provider_needs_no_environment_and_is_deterministic() {
    let cmd = Sandbox::new().cmd("claw-call").args(["--provider", "offline"]).write_stdin(HELLO);
    let names = ["HOME", "CLAW_STATE_DIR", "LC_ALL", "TZ", "NO_PROXY", "SOURCE_DATE_EPOCH", "PATH"];
    let run = names.into_iter().fold(cmd, Cmd::env_remove).assert().success().stderr("").stdout(concat!(
        r#"{"type":"assistant","content":[{"type":"text","text":"Reply to 1 message: hello"}],"#,
        r#""model":"offline","provider":"offline","stop_reason":"end_turn","#,
        r#""usage":{"input_tokens":7,"output_tokens":11},"request_id":null}"#,
        "\n"
    ));
    offline(&[], HELLO).success().stdout(run.stdout_text());
}

/// claw-rebuild never writes messages that end in thinking, but another program may.
#[test]
fn audit_01_messages_that_end_in_thinking_are_refused() {
    for block in [
        r#"{"type":"thinking","thinking":"hm","signature":"s"}"#,
        r#"{"type":"redacted_thinking","data":"eHg="}"#,
    ] {
        let reply = format!(r#"{{"role":"assistant","content":[{block}]}}"#);
        for messages in [format!("{HELLO}{reply}\n"), format!("{HELLO}{reply}\n{HELLO}")] {
            offline(&[], messages).code(76).stdout("").stderr(contains(
                "not ready to send: final-thinking: message 2: its last block is thinking",
            ));
        }
    }
}

#[test]
fn the_offline_provider_must_be_selected() {
    Sandbox::new()
        .cmd("claw-call")
        .args(["--model", "offline"])
        .write_stdin(HELLO)
        .assert()
        .code(77)
        .stdout("")
        .stderr(contains("no key"));
    Sandbox::new()
        .cmd("claw-call")
        .env("CLAW_PROVIDER", "offline")
        .write_stdin(HELLO)
        .assert()
        .success();
}

#[test]
fn the_offline_provider_refuses_a_prompt_over_its_window_in_the_words_of_a_real_provider() {
    let long = json!({"role": "user", "content": words(900)}).to_string();
    offline(&["--window", "500"], long.clone())
        .code(3)
        .stdout("")
        .stderr(contains("prompt is too long: 1193 tokens > 500 maximum"))
        .stderr(contains("actual 1193"))
        .stderr(contains("limit 500"));
    // A prompt that fits with a smaller --max-tokens is answered.
    offline(&["--window", "2000", "--max-tokens", "1000"], long)
        .success()
        .stderr(contains("exceed context limit: 1193 + 1000 > 2000"))
        .stderr(contains("--max-tokens 743"));
}

#[test]
fn the_offline_provider_stops_at_max_tokens() {
    let run =
        offline(&["--max-tokens", "4"], HELLO).code(6).stderr(contains("stop reason 'max_tokens'"));
    assert_eq!(run.json_one()["content"][0]["text"], "Reply to ");
}

#[test]
fn replies_of_the_offline_provider_are_legal_in_the_next_request() {
    let sandbox = Sandbox::new();
    for n in 0..3 {
        Conversation::new().user(&format!("question {n}")).append(&sandbox, "s.jsonl");
        append(
            &sandbox,
            "s.jsonl",
            offline(&[], rebuild_meta(&sandbox, "s.jsonl")).success().get_output().stdout.clone(),
        );
    }
    Conversation::new().user("last").append(&sandbox, "s.jsonl");
    let run = offline(&["--dry-run"], rebuild_meta(&sandbox, "s.jsonl"));
    let body = run.success().json_one();
    rules::check(&body, body.to_string().as_bytes()).expect("a legal request");
}
