//! Options of claw-call, with the API of each provider: extra members, metadata, prices, token counts, and addresses.

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox};
use crate::conversations::append;
use crate::shapes::{HELLO, body, call, hello};

// ---- extra members ---------------------------------------------------------------------------

#[test]
fn effort_becomes_the_member_of_each_api() {
    for (shape, level, member, value) in [
        (Shape::Anthropic, "xhigh", "output_config", json!({"effort": "xhigh"})),
        (Shape::Anthropic, "none", "thinking", json!({"type": "disabled"})),
        (Shape::OpenAi, "minimal", "reasoning_effort", json!("minimal")),
        (Shape::Ollama, "max", "think", json!("high")),
        (Shape::Ollama, "none", "think", json!(false)),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let run = call(&sandbox, &provider, shape, &["--effort", level]);
        run.write_stdin(HELLO).assert().success().stderr("");
        assert_eq!(body(&provider.single_request())[member], value, "{shape:?} {level}");
        // The variable, and the member of --extra, which takes precedence.
        let extra = json!({member: value}).to_string();
        let run = call(&sandbox, &provider, shape, &["--dry-run", "--extra", &extra]);
        let shown = run.env("CLAW_EFFORT", "low").write_stdin(HELLO).assert().success();
        let sent: Value = serde_json::from_slice(&shown.get_output().stdout).expect("a body");
        assert_eq!(sent[member], value, "{shape:?} {level}");
    }
}

#[test]
fn a_budget_for_thinking_is_sent_where_the_api_has_one() {
    let enabled = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    for (shape, tokens, member, value) in [
        (Shape::Anthropic, "1024", "thinking", enabled(1024)),
        (Shape::Anthropic, "8095", "thinking", enabled(8095)),
        (Shape::Anthropic, "0", "thinking", json!({"type": "disabled"})),
        (Shape::OpenAi, "8192", "reasoning_effort", json!("medium")),
        (Shape::Ollama, "9000", "think", json!("high")),
        (Shape::Ollama, "0", "think", json!(false)),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let run = call(&sandbox, &provider, shape, &[]).env("CLAW_THINKING_BUDGET", tokens);
        run.write_stdin(HELLO).assert().success().stderr("");
        assert_eq!(body(&provider.single_request())[member], value, "{shape:?} {tokens}");
    }
}

#[test]
fn a_budget_for_thinking_must_be_possible() {
    for (tokens, why) in [
        (
            "1023",
            "--thinking-budget 1023 is too small for the anthropic API; give at least 1024, or 0 for no thinking",
        ),
        (
            "8096",
            "--thinking-budget 8096 leaves no tokens for the answer, because --max-tokens 8096 includes thinking; raise --max-tokens or lower the budget",
        ),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let args = ["--thinking-budget", tokens, "--max-tokens", "8096"];
        let run = call(&sandbox, &provider, Shape::Anthropic, &args).write_stdin(HELLO);
        run.assert().code(78).stderr(format!("claw-call: {why}\n"));
        assert!(provider.requests().is_empty());
    }
}

#[test]
fn the_temperature_is_in_the_place_of_each_api() {
    for (shape, place) in [(Shape::Anthropic, ""), (Shape::OpenAi, ""), (Shape::Ollama, "/options")]
    {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let run = call(&sandbox, &provider, shape, &["--temperature", "0.5"]);
        run.write_stdin(HELLO).assert().success().stderr("");
        let sent = body(&provider.single_request()).clone();
        assert_eq!(sent.pointer(&format!("{place}/temperature")), Some(&json!(0.5)), "{shape:?}");
        let extra = if place.is_empty() {
            json!({"temperature": 1})
        } else {
            json!({"options": {"temperature": 1}})
        };
        let both = ["--temperature", "0.5", "--extra", &extra.to_string()];
        let run = call(&sandbox, &provider, shape, &both).write_stdin(HELLO).assert();
        run.code(78).stderr(contains("both give a temperature; give it once"));
    }
}

#[test]
fn a_setting_that_the_model_refuses_is_left_out_and_remembered() {
    let refused = "`temperature` may only be set to 1 when thinking is enabled.";
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let run = |args: &[&str]| {
        let run = call(&sandbox, &provider, Shape::Anthropic, args).write_stdin(HELLO);
        run.assert().success().stderr_text().to_owned()
    };
    provider.script(Step::error(400, "invalid_request_error", refused));
    let thinking = ["--thinking-budget", "2000", "--extra", r#"{"temperature":0.5,"top_p":1}"#];
    let said = run(&thinking);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(refused) && said.ends_with("; trying again without temperature\n"));
    let sent = provider.requests();
    let temperatures: Vec<_> = sent.iter().map(|it| body(it).get("temperature")).collect();
    assert_eq!(temperatures, [Some(&json!(0.5)), None]);
    assert_eq!(body(&sent[1])["top_p"], 1, "only what was refused is left out");
    // Later requests do without it, and nothing is said.
    assert_eq!(run(&thinking), "");
    assert_eq!(body(&provider.requests()[2]).get("temperature"), None);
    // The model refuses it only together with thinking.
    assert_eq!(run(&["--temperature", "0.5"]), "");
    assert_eq!(body(&provider.requests()[3])["temperature"], 0.5);
}

#[test]
fn a_value_that_the_model_refuses_is_reported() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let text = "temperature: Input should be less than or equal to 1";
    provider.script(Step::error(400, "invalid_request_error", text));
    let run = call(&sandbox, &provider, Shape::Anthropic, &["--temperature", "1.5"]);
    run.write_stdin(HELLO).assert().code(76).stderr(contains(text));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn a_model_without_budgets_gets_an_effort() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let text = "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
    provider.script(Step::error(400, "invalid_request_error", text));
    let args = ["--thinking-budget", "2000"];
    let run = || call(&sandbox, &provider, Shape::Anthropic, &args).write_stdin(HELLO).assert();
    run().success().stderr(contains("trying again with an effort instead of a thinking budget"));
    run().success().stderr("");
    for sent in &provider.requests()[1..] {
        assert_eq!(body(sent)["thinking"], json!({"type": "adaptive"}));
        assert_eq!(body(sent)["output_config"], json!({"effort": "medium"}));
    }
}

#[test]
fn extra_members_go_into_the_body_and_take_precedence() {
    for (shape, extra) in [
        (Shape::Anthropic, json!({"temperature": 0.5, "max_tokens": 11})),
        (Shape::OpenAi, json!({"temperature": 0.5, "max_tokens": 11})),
        (
            Shape::Ollama,
            json!({"keep_alive": "5m", "options": {"temperature": 0.5, "num_predict": 11}}),
        ),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("extra", extra.to_string());
        let run = || call(&sandbox, &provider, shape, &["--extra", "extra"]);
        run().write_stdin(HELLO).assert().success().stderr("");
        let sent = provider.single_request();
        let sent = body(&sent);
        let options = if shape == Shape::Ollama { &sent["options"] } else { sent };
        assert_eq!(options["temperature"], 0.5);
        match shape {
            Shape::Ollama => {
                assert_eq!(
                    (&options["num_predict"], &sent["keep_alive"]),
                    (&json!(11), &json!("5m"))
                );
                assert_eq!(options["num_ctx"], 32768, "the options of the request must stay");
            }
            Shape::Anthropic | Shape::OpenAi => assert_eq!(sent["max_tokens"], 11),
        }
        assert_eq!(run().arg("--dry-run").write_stdin(HELLO).assert().success().json_one(), *sent);
        provider.all_legal();
    }
}

#[test]
fn extra_members_must_be_an_object() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    for text in ["[1]", "", "{\"a\":", "nonsense"] {
        sandbox.write("extra", text);
        call(&sandbox, &provider, Shape::OpenAi, &["--extra", "extra"])
            .write_stdin(HELLO)
            .assert()
            .code(65)
            .stdout("")
            .stderr(contains("cannot use 'extra': not a JSON object"));
    }
    call(&sandbox, &provider, Shape::OpenAi, &["--extra", "none"])
        .write_stdin(HELLO)
        .assert()
        .code(74);
    assert!(provider.requests().is_empty());
}

#[test]
fn beta_features_are_sent_only_to_anthropic() {
    let provider = FakeProvider::new();
    hello(&provider, Shape::Anthropic, &["--beta", "one", "--beta", "two"]).success();
    assert_eq!(provider.single_request().header("anthropic-beta"), Some("one,two"));
    for shape in [Shape::OpenAi, Shape::Ollama] {
        hello(&provider, shape, &["--beta", "one"]).code(78).stdout("").stderr(contains("--beta"));
    }
    assert_eq!(provider.requests().len(), 1);
}

// ---- metadata of the request -----------------------------------------------------------------

#[test]
fn records_with_meta_describe_the_request_and_can_be_appended() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("system", "Be brief.");
        let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
        sandbox.write("tools", tools.to_string());
        let meta = |args: &[&str]| -> Value {
            provider.script(Step::call("x", "f", json!({})));
            let args = [&["--meta"][..], args].concat();
            let run = call(&sandbox, &provider, shape, &args).write_stdin(HELLO).assert().success();
            let records = run.json();
            assert!(records[1].get("call").is_none(), "only the first record describes the call");
            append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
            records[0]["call"].clone()
        };
        let plain = meta(&[]);
        assert_eq!((&plain["model"], &plain["stream"]), (&json!("test-model"), &json!(false)));
        assert!(plain["system"].is_null() && plain["tools"].is_null());
        let full = meta(&["--system", "system", "--tools", "tools", "--max-tokens", "9"]);
        assert_eq!(full["max_tokens"], 9);
        assert!(full["system"].is_string() && full["tools"].is_string());
        assert_ne!(full["request"], plain["request"]);
        assert_eq!(meta(&[])["request"], plain["request"], "equal requests must have equal hashes");
        assert_eq!(meta(&["--stream=shown"])["stream"], true);
        provider.all_legal();
    }
}

// ---- prices ----------------------------------------------------------------------------------

/// Runs a call with a price file. The provider reports 1000 input tokens and 100 output tokens. If its API counts the
/// tokens that were read from a cache, it reports 600 of the input tokens as such.
fn priced(shape: Shape, prices: &str, args: &[&str]) -> Assert {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    sandbox.write("prices", prices);
    let content = json!([{"type": "text", "text": "a"}]);
    let message = json!({"role": "assistant", "content": "a"});
    provider.script(Step::Reply(match shape {
        Shape::Anthropic => json!({
            "content": content, "model": "m-1", "stop_reason": "end_turn",
            "usage": {"input_tokens": 400, "cache_read_input_tokens": 600, "output_tokens": 100},
        }),
        Shape::OpenAi => json!({
            "choices": [{"message": message, "finish_reason": "stop"}], "model": "m-1",
            "usage": {"prompt_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 600}, "completion_tokens": 100},
        }),
        Shape::Ollama => json!({
            "message": message, "done": true, "done_reason": "stop", "model": "m-1",
            "prompt_eval_count": 1000, "eval_count": 100,
        }),
    }));
    let args = [&["--prices", "prices"][..], args].concat();
    call(&sandbox, &provider, shape, &args).write_stdin(HELLO).assert()
}

fn logged(run: &Assert) -> Value {
    serde_json::from_str(run.stderr_text().trim()).expect("one JSON line")
}

/// A reply without a price is reported as unpriced, not as free.
#[test]
fn r_3_a_reply_is_priced_free_or_unpriced_in_every_shape() {
    for shape in Shape::ALL {
        let json = &["--log", "json"];
        let log = logged(
            &priced(shape, "# in, from cache, to cache, out\nm-* 10 1 20 100\n", json).success(),
        );
        let (cached, cost) = if shape == Shape::Ollama { (0, 0.02) } else { (600, 0.0146) };
        let priced_at = log["cost"].as_f64().expect("a cost");
        assert!((priced_at - cost).abs() < 1e-9, "{shape:?}: {log}");
        assert_eq!(
            (&log["input"], &log["cache_read"], &log["output"]),
            (&json!(1000 - cached), &json!(cached), &json!(100))
        );
        assert_eq!(logged(&priced(shape, "m-1 0 0 0 0\n", json).success())["cost"], 0.0);
        let none = priced(shape, "other 10 1 20 100\n", json);
        assert_eq!(logged(&none.success())["cost"], "unpriced");
        priced(shape, "other 10 1 20 100\n", &[]).success().stderr(contains("unpriced"));
    }
    priced(Shape::OpenAi, "m-1 10 1\n", &[])
        .code(78)
        .stdout("")
        .stderr(contains("line 1 is not a model and four prices"));
}

#[test]
fn r_3_a_reply_without_counts_is_unpriced() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    sandbox.write("prices", "* 10 1 20 100\n");
    let message = json!({"role": "assistant", "content": "a"});
    provider
        .script(Step::Reply(json!({"choices": [{"message": message, "finish_reason": "stop"}]})));
    let args = ["--prices", "prices"];
    call(&sandbox, &provider, Shape::OpenAi, &args)
        .write_stdin(HELLO)
        .assert()
        .success()
        .stderr(contains("the reply has no usage"));
}

/// The usage of replies with the same request id is counted only once, so different replies need different ids, even if
/// they come from a recording.
#[test]
fn r_2_replies_from_recordings_have_distinct_ids() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        for option in ["--record", "--replay"] {
            let ask = |text: &str| {
                let message = json!({"role": "user", "content": text}).to_string();
                let run = call(&sandbox, &provider, shape, &[option, "tape"])
                    .write_stdin(message)
                    .assert();
                run.success().json_one()["request_id"].clone()
            };
            let (one, other) = (ask("one"), ask("other"));
            assert!(one.is_string() && other.is_string() && one != other, "{one} {other}");
        }
    }
}

// ---- counts ----------------------------------------------------------------------------------

#[test]
fn tokens_are_counted_by_providers_that_can() {
    for shape in [Shape::Anthropic, Shape::OpenAi] {
        let provider = FakeProvider::new();
        provider.script(Step::text("for nobody"));
        hello(&provider, shape, &["--count"]).success().stderr("").stdout("10\n");
        provider.all_legal();
        assert!(provider.single_request().path.ends_with("_tokens") && provider.pending() == 1);
    }
    let provider = FakeProvider::new();
    hello(&provider, Shape::Ollama, &["--count"]).code(78).stdout("").stderr("claw-call: ollama cannot count the tokens of a request; use claw-estimate instead of --count\n");
    assert!(provider.requests().is_empty());
    hello(&provider, Shape::OpenAi, &["--count", "--dry-run"]).code(2);
}

#[test]
fn claw_estimate_asks_the_provider_to_count() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let run = sandbox.cmd("claw-estimate").envs(provider.env_for(shape));
        let run = run.args(["--count", "api"]).write_stdin(HELLO).assert();
        if shape == Shape::Ollama {
            run.code(78)
                .stdout("")
                .stderr(contains("ollama cannot count"))
                .stderr(contains("cannot count: 'claw-call'"));
            continue;
        }
        run.success().stdout("10\n").stderr(contains("counted 10 tokens, estimated "));
        provider.all_legal();
    }
}

#[test]
fn a_failed_count_is_classified_like_a_failed_call() {
    for (shape, args) in [(Shape::Anthropic, &["--count"][..]), (Shape::OpenAi, &["--count"])] {
        let stopped = FakeProvider::stopped();
        let env = stopped.env_for(shape);
        let run = Sandbox::new().cmd("claw-call").envs(env).args(args).args(["--max-retries", "0"]);
        run.write_stdin(HELLO).assert().code(69).stdout("").stderr(contains("no answer"));
    }
    // A server without this endpoint.
    let provider = FakeProvider::new();
    let sandbox = Sandbox::new();
    let run = call(&sandbox, &provider, Shape::OpenAi, &["--count"]);
    run.env("OPENAI_BASE_URL", provider.url() + "/api/v1")
        .write_stdin(HELLO)
        .assert()
        .code(76)
        .stdout("")
        .stderr(contains("not-found"));
}

/// Status 141, a broken pipe, usually ends a pipeline quietly. Here it means that the command that counts tokens
/// failed, so it is reported.
#[test]
fn a_failure_of_the_counting_command_is_reported() {
    let sandbox = Sandbox::new();
    for (command, status) in [("exit 141 #", 69), ("exit 75 #", 75), ("kill -9 $$ #", 69)] {
        let args = ["--count", "api", "--call", command];
        sandbox
            .cmd("claw-estimate")
            .args(args)
            .write_stdin(HELLO)
            .assert()
            .code(status)
            .stdout("")
            .stderr(contains("cannot count: "));
    }
}

// ---- addresses and names ---------------------------------------------------------------------

/// Runs `claw-call --dry-run`. Returns its standard error, which shows the address and the headers, and the body.
fn dry(url: &str, args: &[&str], env: &[(&str, &str)]) -> (String, Value) {
    let args = [&["--provider", "openai", "--dry-run", "--base-url", url], args].concat();
    let cmd = Sandbox::new().cmd("claw-call").args(&args).envs(env.iter().copied());
    let run = cmd.write_stdin(HELLO).assert().success();
    (run.stderr_text().to_owned(), run.json_one())
}

#[test]
fn audit_16_the_name_of_the_output_limit_follows_the_model_and_the_setting() {
    let names = |url: &str, args: &[&str], env: &[(&str, &str)]| {
        let (_, body) = dry(url, &[&["--max-tokens", "9"], args].concat(), env);
        ["max_tokens", "max_completion_tokens"].map(|name| body[name].as_u64())
    };
    let (older, newer) = ([Some(9), None], [None, Some(9)]);
    for url in
        ["https://eu.api.openai.com/v1", "https://api.openai.com:443", "https://API.OpenAI.com"]
    {
        assert_eq!(names(url, &["--model", "gpt-4o"], &[]), newer, "{url}");
    }
    let gateway = "https://gateway.example/v1";
    let field = "CLAW_MAX_TOKENS_FIELD";
    for (args, env, expected) in [
        (&["--model", "gpt-4o"][..], &[][..], older),
        (&["--model", "openai/gpt-5-mini"], &[], newer),
        (&["--model", "o3"], &[], newer),
        (&["--model", "o3", "--max-tokens-field", "max_tokens"], &[(field, "auto")], older),
        (&["--model", "deployment"], &[(field, "max_completion_tokens")], newer),
        (
            &["--model", "m", "--max-tokens-field", "auto"],
            &[(field, "max_completion_tokens")],
            older,
        ),
    ] {
        assert_eq!(names(gateway, args, env), expected, "{args:?} {env:?}");
    }
    let cmd = Sandbox::new().cmd("claw-call").args(["--provider", "openai", "--model", "m"]);
    cmd.args(["--dry-run"])
        .env(field, "x")
        .write_stdin(HELLO)
        .assert()
        .code(78)
        .stderr(contains("invalid value 'x' for CLAW_MAX_TOKENS_FIELD: use auto, max_tokens or"));
}

#[test]
fn audit_17_a_base_url_may_name_the_endpoint_and_have_a_query() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    for (shape, path) in [
        (Shape::OpenAi, "/v1/chat/completions?api-version=1"),
        (Shape::OpenAi, "/v1?api-version=1"),
        (Shape::Anthropic, "/v1/messages"),
        (Shape::Ollama, "/api/chat"),
    ] {
        let url = format!("{}{path}", provider.url());
        call(&sandbox, &provider, shape, &["--base-url", &url])
            .write_stdin(HELLO)
            .assert()
            .success();
    }
    let (stderr, _) = dry("https://x.example/inference/chat/completions", &["--model", "m"], &[]);
    assert!(
        stderr.contains("would send POST https://x.example/inference/chat/completions\n"),
        "{stderr}"
    );
}

#[test]
fn audit_17_azure_gets_a_key_or_a_token_in_the_matching_header() {
    let url = "https://name.openai.azure.com/openai/deployments/gpt-5?api-version=2024-10-21";
    for (variable, header) in
        [("AZURE_OPENAI_API_KEY", "api-key"), ("AZURE_OPENAI_AD_TOKEN", "authorization")]
    {
        let env = [(variable, "very-secret-1"), ("OPENAI_API_KEY", "not-for-azure")];
        let (stderr, _) = dry(url, &["--model", "m"], &env);
        assert!(stderr.contains(&format!("would send {header}: (hidden)\n")), "{stderr}");
        assert!(stderr.contains("/gpt-5/chat/completions?api-version=2024-10-21\n"), "{stderr}");
    }
}

#[test]
fn audit_21_a_key_in_a_query_is_not_shown() {
    let (stderr, _) =
        dry("https://x.example/v1?key=very-secret-1&api-version=1", &["--model", "m"], &[]);
    assert!(stderr.contains("chat/completions?key=(hidden)&api-version=1\n"), "{stderr}");
    let args =
        ["--provider", "openai", "--model", "m", "--base-url", "http://x.example?key=secret-1"];
    Sandbox::new()
        .cmd("claw-call")
        .args(args)
        .write_stdin(HELLO)
        .assert()
        .code(78)
        .stderr(contains("cannot send to"))
        .stderr(contains("secret-1").not());
}
