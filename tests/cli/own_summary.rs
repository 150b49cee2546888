//! `claw-compact --via provider`: the summary that the provider's server makes of its own, where it goes, and what others get.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, MODEL, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, append, rebuild_meta, words};

/// The window, in which half of the conversation fits.
const WINDOW: &str = "8000";
/// The text of the server's summary.
const TEXT: &str = "The user asked about many numbered words, and the assistant repeated them all; nothing is open.";

fn answer(body: &Value) -> Step {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Step::Raw { status: 200, headers, body: body.to_string().into() }
}

fn block() -> Value {
    json!({"type": "compaction", "content": TEXT, "signature": "c2ln", "encrypted_content": null})
}

/// Returns Anthropic's answer to a request for a summary.
fn message(block: &Value, reason: &str) -> Step {
    answer(&json!({"type": "message", "role": "assistant", "model": MODEL, "content": [block],
        "stop_reason": reason, "usage": {"input_tokens": 5000, "output_tokens": 40}}))
}

/// Returns a sandbox with a conversation that has an image, and its messages.
fn conversation() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    Conversation::plain(2, 300).append(&sandbox, "s.jsonl");
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}});
    let text = json!({"type": "text", "text": "What is this?"});
    append(&sandbox, "s.jsonl", json!({"type": "user", "content": [image, text]}).to_string());
    append(&sandbox, "s.jsonl", json!({"type": "assistant", "content": words(300)}).to_string());
    Conversation::plain(16, 300).append(&sandbox, "s.jsonl");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    (sandbox, messages)
}

/// Compacts the conversation, and appends the record if there is one.
fn compact(
    sandbox: &Sandbox,
    messages: &str,
    env: &[(String, String)],
    args: &[&str],
) -> assert_cmd::assert::Assert {
    let fixed = ["--record", "--window", WINDOW, "--max-tokens", "500", "--via", "provider"];
    let run = sandbox.cmd("claw-compact").args(fixed).args(args).envs(env.to_vec());
    let run = run.write_stdin(messages).assert();
    let stdout = run.get_output().stdout.clone();
    if !stdout.is_empty() {
        append(sandbox, "s.jsonl", stdout);
    }
    run
}

/// Sends the next prompt, and returns the body.
fn next(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Value {
    let run = sandbox.cmd("claw-call").envs(provider.env_for(shape)).args(args);
    run.write_stdin(rebuild_meta(sandbox, "s.jsonl")).assert().success();
    let sent = provider.requests().pop().expect("a request");
    sent.json.expect("a body")
}

#[test]
fn anthropics_summary_goes_back_to_its_model_and_its_text_to_others() {
    let (sandbox, messages) = conversation();
    let provider = FakeProvider::new();
    provider.script(message(&block(), "compaction"));
    let run = compact(&sandbox, &messages, &provider.env(), &[]).success();
    let record = run.json_one();
    assert_eq!((&record["strategy"], &record["summary"]), (&json!("provider"), &json!(TEXT)));
    assert_eq!(record["provider_summary"]["block"], block());
    assert_eq!(record["usage"]["output_tokens"], 40);
    let asked = provider.single_request();
    assert_eq!(asked.header("anthropic-beta"), Some("compact-2026-09-04"));
    let body = asked.json.clone().expect("a body");
    assert_eq!(body["compaction"], json!({"type": "summarize"}));
    let text = body.to_string();
    assert!(text.contains("What is this?") && text.contains("left out"), "{text}");
    assert!(!text.contains("iVBOR") && !text.contains("cache_control"), "{text}");
    // The block goes back to the model that made it, in the place of the summary.
    append(&sandbox, "s.jsonl", json!({"type": "user", "content": "Go on."}).to_string());
    let sent = next(&sandbox, &provider, Shape::Anthropic, &[]);
    assert_eq!(sent["messages"][0]["role"], "assistant");
    assert_eq!(sent["messages"][0]["content"][0], block());
    assert!(!sent.to_string().contains("[Previous conversation summary]"), "{sent}");
    let request = provider.requests().pop().expect("a request");
    assert_eq!(request.header("anthropic-beta"), Some("compact-2026-09-04"));
    // Other models and providers get the text.
    for (shape, model) in
        [(Shape::Anthropic, "other"), (Shape::OpenAi, "gpt-4o"), (Shape::Ollama, MODEL)]
    {
        let sent = next(&sandbox, &provider, shape, &["--model", model]).to_string();
        assert!(sent.contains(TEXT) && !sent.contains("c2ln"), "{shape:?}: {sent}");
    }
    for target in ["anthropic", "openai", "responses", "gemini"] {
        let run = sandbox.cmd("claw-rebuild").args(["--to", target, "s.jsonl"]).assert().success();
        run.stdout(contains(TEXT).and(contains("c2ln").not()));
    }
    // The next summary is made from the block, not from its text.
    provider.script(message(&block(), "compaction"));
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    let args = ["--keep-tokens", "600"];
    compact(&sandbox, &messages, &provider.env(), &args).success();
    let asked = provider.requests().pop().and_then(|it| it.json).expect("a body");
    assert_eq!(asked["messages"][0]["content"][0], block());
    provider.all_legal();
}

#[test]
fn openais_item_goes_back_and_a_text_stands_beside_it() {
    let (sandbox, messages) = conversation();
    let provider = FakeProvider::new();
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VhbGVk"});
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is this?"}]});
    provider
        .script(answer(&json!({"id": "resp_1", "object": "response.compaction", "created_at": 1,
        "output": [said, item], "usage": {"input_tokens": 5000, "output_tokens": 40}})));
    // The conversation's model cannot write the text.
    provider.script(Step::error(400, "invalid_request_error", "no"));
    let mut env = provider.env_for(Shape::OpenAi);
    env.push(("CLAW_API".to_owned(), "responses".to_owned()));
    let run = compact(&sandbox, &messages, &env, &[]).success();
    let run = run.stderr(
        contains("only provider can read its summary; trying main for a text beside it")
            .and(contains("trying local")),
    );
    let record = run.json_one();
    assert_eq!(record["strategy"], "local");
    assert_eq!(record["provider_summary"]["block"]["item"], item);
    let asked = &provider.requests()[0];
    assert_eq!(asked.path, "/v1/responses/compact");
    let body = asked.json.clone().expect("a body");
    let members: Vec<&String> = body.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["input", "model"]);
    // The item goes back in the place of the summary; others get the text.
    append(&sandbox, "s.jsonl", json!({"type": "user", "content": "Go on."}).to_string());
    let reply = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]});
    let reply = || answer(&json!({"status": "completed", "output": [reply]}));
    provider.script(reply());
    let args = ["--api", "responses"];
    let sent = next(&sandbox, &provider, Shape::OpenAi, &args);
    assert_eq!(sent["input"][0], item);
    let summary = record["summary"].as_str().and_then(|text| text.lines().next()).expect("text");
    assert!(!sent.to_string().contains(summary), "{sent}");
    provider.script(reply());
    let sent = next(&sandbox, &provider, Shape::OpenAi, &["--api", "responses", "--model", "m"]);
    assert!(sent.to_string().contains(summary) && !sent.to_string().contains("c2VhbGVk"), "{sent}");
    // A server that refuses the item gets the text, once and from then on.
    let text = "The encrypted content for item cmp_1 could not be verified.";
    provider.script(Step::error(400, "invalid_request_error", text));
    provider.script(reply());
    let sent = next(&sandbox, &provider, Shape::OpenAi, &args);
    assert!(sent.to_string().contains(summary), "{sent}");
    let before = provider.requests().len();
    provider.script(reply());
    next(&sandbox, &provider, Shape::OpenAi, &args);
    assert_eq!(provider.requests().len(), before + 1);
}

#[test]
fn what_is_no_summary_falls_to_the_next_source() {
    let null = json!({"type": "compaction", "content": null});
    let blank = json!({"type": "compaction", "content": " ", "signature": "s"});
    let long = json!({"type": "compaction", "content": words(4000), "signature": "s"});
    for (step, why) in [
        (Step::error(404, "not_found_error", "Not Found"), "cannot get a summary"),
        (
            Step::error(400, "invalid_request_error", "compaction: this model does not support it"),
            "cannot get a summary",
        ),
        (message(&null, "compaction"), "the server could not make one"),
        (message(&blank, "compaction"), "it is blank"),
        (message(&long, "compaction"), "tokens; at most"),
        (message(&block(), "max_tokens"), "cannot get a summary"),
    ] {
        let (sandbox, messages) = conversation();
        let provider = FakeProvider::new();
        provider.script(step);
        let run = compact(&sandbox, &messages, &provider.env(), &["--max-calls", "1"]).success();
        let run = run.stderr(contains("no summary from provider: ").and(contains(why)));
        assert_eq!(run.json_one()["strategy"], "local", "{why}");
        assert_eq!(run.json_one().get("provider_summary"), None, "{why}");
    }
}

#[test]
fn providers_without_summaries_of_their_own_say_so() {
    for shape in [Shape::OpenAi, Shape::Ollama] {
        let (sandbox, messages) = conversation();
        let provider = FakeProvider::new();
        let run = compact(&sandbox, &messages, &provider.env_for(shape), &["--max-calls", "1"]);
        let why = "makes no summaries of its own by this API";
        assert_eq!(run.success().stderr(contains(why)).json_one()["strategy"], "local");
        assert!(provider.requests().is_empty());
    }
}

#[test]
fn a_request_for_a_summary_can_be_shown_recorded_and_replayed() {
    let (sandbox, messages) = conversation();
    let provider = FakeProvider::new();
    let call = |args: &[&str]| {
        let run = sandbox.cmd("claw-call").envs(provider.env()).arg("--compact").args(args);
        run.write_stdin(messages.clone()).assert().success()
    };
    let shown = call(&["--dry-run"]).stderr(contains("/v1/messages").and(contains("compact-2026")));
    assert_eq!(shown.json_one()["compaction"], json!({"type": "summarize"}));
    provider.script(message(&block(), "compaction"));
    let record = call(&["--record", "tape"]).json_one();
    assert_eq!(record["content"], json!([block()]));
    assert_eq!(call(&["--replay", "tape"]).json_one()["content"], record["content"]);
    assert_eq!(provider.requests().len(), 1);
}
