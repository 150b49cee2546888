//! claw-call with Ollama: no part of a prompt is dropped without an error.

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::{log, words};
use crate::shapes::{HELLO, body};

/// Returns a `claw-call` command without a configured context window.
fn call(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> Cmd {
    sandbox.cmd("claw-call").envs(provider.env_for(Shape::Ollama)).args(args)
}

fn ask(provider: &FakeProvider, args: &[&str], text: &str) -> Assert {
    let message = json!({"role": "user", "content": text}).to_string();
    call(&Sandbox::new(), provider, args).write_stdin(message).assert()
}

/// Returns a reply that reports `count` tokens in the prompt.
fn reply_with_count(count: u64) -> Step {
    let message = json!({"role": "assistant", "content": "Fine."});
    Step::Reply(json!({
        "model": "m", "message": message, "done": true, "done_reason": "stop",
        "prompt_eval_count": count, "eval_count": 2,
    }))
}

#[test]
fn the_window_is_always_sent_and_a_default_is_reported() {
    let provider = FakeProvider::new();
    let note = "claw-call: the window of 'test-model' is unknown: requesting 4096 tokens; \
                use --window to change this\n";
    ask(&provider, &[], "hello").success().stderr(note);
    ask(&provider, &["--stream=shown"], "hello").success().stderr(note);
    ask(&provider, &["--window", "8192"], "hello").success().stderr("");
    call(&Sandbox::new(), &provider, &[])
        .env("CLAW_WINDOW", "2048")
        .write_stdin(HELLO)
        .assert()
        .success();
    let sent: Vec<[Value; 3]> = provider
        .requests()
        .iter()
        .map(|sent| {
            [&body(sent)["options"]["num_ctx"], &body(sent)["truncate"], &body(sent)["shift"]]
                .map(Value::clone)
        })
        .collect();
    let with = |window: u64| [json!(window), json!(false), json!(false)];
    assert_eq!(sent, [with(4096), with(4096), with(8192), with(2048)]);
    provider.all_legal();
}

#[test]
fn a_prompt_larger_than_the_window_is_not_sent() {
    let provider = FakeProvider::new();
    for args in [&[][..], &["--window", "4096"], &["--window", "4096", "--stream"]] {
        let sandbox = Sandbox::new();
        let message = json!({"role": "user", "content": words(5000)}).to_string();
        let run = call(&sandbox, &provider, &[args, &["--failure", "why"]].concat());
        run.write_stdin(message.clone())
            .assert()
            .code(3)
            .stdout("")
            .stderr(contains("overflow (rule preflight): "));
        let record = &sandbox.read_json("why")[0];
        assert_eq!((&record["class"], &record["limit"]), (&json!("overflow"), &json!(4096)));
        assert!(record["actual"].as_u64().is_some_and(|actual| actual > 4096));
        // claw-call refuses because of its own estimate, so it learns no window from the refusal.
        assert!(!sandbox.exists("state/windows.jsonl"));
        // claw-truncate can use the error record.
        assert_truncate_uses_failure(&sandbox);
    }
    assert_eq!(provider.requests().len(), 0);
}

/// Checks that claw-truncate shortens a long result when it is given the error record in the file `why`.
fn assert_truncate_uses_failure(sandbox: &Sandbox) {
    let messages = [
        json!({"role": "user", "content": "hi"}),
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": words(6000)}]}),
    ];
    let messages: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let run = sandbox
        .cmd("claw-truncate")
        .args(["--failure", "why"])
        .write_stdin(messages)
        .assert()
        .success();
    assert!(run.get_output().stdout.len() < 25_000, "the result was not shortened\n{run}");
}

#[test]
fn j_2_the_output_limit_is_lowered_to_what_the_window_leaves() {
    let provider = FakeProvider::new();
    let prompt = words(2300);
    ask(&provider, &["--window", "4096", "--max-tokens", "2000"], &prompt).success().stderr("");
    ask(&provider, &["--window", "4096", "--max-tokens", "50"], &prompt).success();
    ask(&provider, &["--window", "4096", "--max-tokens", "2000"], "hello").success();
    let limit = |n: usize| body(&provider.requests()[n])["options"]["num_predict"].as_u64();
    let lowered = limit(0).expect("a number");
    assert!((256..1200).contains(&lowered), "{lowered}");
    assert_eq!([limit(1), limit(2)], [Some(50), Some(2000)]);
    provider.all_legal();
    // A dry run prints the request that would be sent.
    let args = ["--window", "4096", "--max-tokens", "2000", "--dry-run"];
    let dry = ask(&provider, &args, &prompt).success().json_one();
    assert_eq!(dry["options"]["num_predict"], lowered);
}

/// Old Ollama servers silently cut a long prompt to a little more than half of the window, such as 2050 of 4096 tokens.
/// A count far below the estimate, such as 700, also shows that the prompt was cut.
#[test]
fn k_4_a_silently_truncated_prompt_is_an_overflow() {
    for count in [2050, 700] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(reply_with_count(count));
        let message = json!({"role": "user", "content": words(2100)}).to_string();
        let args = ["--window", "4096", "--failure", "why"];
        call(&sandbox, &provider, &args)
            .write_stdin(message)
            .assert()
            .code(3)
            .stdout("")
            .stderr(contains("overflow (rule silent-truncation): "));
        provider.single_request();
        let record = &sandbox.read_json("why")[0];
        assert_eq!((&record["class"], &record["limit"]), (&json!("overflow"), &json!(4096)));
        assert!(!sandbox.exists("state/windows.jsonl"), "the window was changed");
    }
}

#[test]
fn k_4_a_prompt_that_was_read_whole_is_not_an_overflow() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}});
    let long = json!({"role": "user", "content": words(2100)});
    // The number of tokens of an image depends on the model, so a low count shows nothing if there is an image.
    let seen = json!({"role": "user", "content": [{"type": "text", "text": words(2100)}, image]});
    for (message, count) in [(&long, 3010), (&long, 2500), (&long, 0), (&seen, 700)] {
        let provider = FakeProvider::new();
        provider.script(reply_with_count(count));
        let run = call(&Sandbox::new(), &provider, &["--window", "8192"]);
        run.write_stdin(message.to_string())
            .assert()
            .success()
            .stderr("")
            .stdout(contains("Fine."));
    }
}

/// The provider's count is compared with the smallest size that the prompt can have, because a false alarm would
/// discard the reply.
#[test]
fn k_4_an_estimate_that_is_too_high_is_not_an_overflow() {
    let user = |text: String| json!({"role": "user", "content": text}).to_string() + "\n";
    let thinking = json!({"type": "thinking", "thinking": words(4000), "signature": "s"});
    let thought =
        json!({"role": "assistant", "content": [thinking, {"type": "text", "text": "So."}]});
    let tools = json!([{"name": "f", "description": "Reads.", "input_schema": {"type": "object"}}]);
    let log = log(150);
    let counted = log.len() as u64 / 4;
    for (messages, count) in [
        // A short text with a tool definition: the estimate overstates the size of the definition.
        (user(words(500)), 560),
        // Lines that resemble each other.
        (user(log), counted),
        // Thinking, which is not sent.
        (user(words(1000)) + &thought.to_string() + "\n" + &user("And?".into()), 1020),
    ] {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        sandbox.write("tools", tools.to_string());
        provider.script(reply_with_count(count));
        let run = call(&sandbox, &provider, &["--window", "16384", "--tools", "tools"]);
        run.write_stdin(messages).assert().success().stderr("").stdout(contains("Fine."));
    }
}

#[test]
fn a_busy_server_is_retried_but_an_unknown_model_is_an_error() {
    let provider = FakeProvider::new();
    let busy = "server busy, please try again.  maximum pending requests exceeded";
    provider.script(Step::error(503, "", busy));
    ask(&provider, &["--window", "4096"], "hello")
        .success()
        .stderr(contains("trying again in "))
        .stdout(contains("Reply to 1 message: hello"));
    provider.script(Step::error(404, "", "model 'test-model' not found"));
    ask(&provider, &["--window", "4096"], "hello").code(76).stderr(contains("not-found"));
}
