//! claw-replay call --batch: the same reports as without it, at half the price.

use super::super::Reports;
use super::{answer, append_records, cases, prompt, tool_turn};
use crate::common::provider::batch::Fate;
use crate::common::provider::{API_KEY, FakeProvider, MODEL, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox, kill_group, reply_to};
use predicates::str::contains;
use serde_json::{Value, json};
use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

/// The APIs that have a batch service.
const APIS: [&str; 4] = ["anthropic", "chat", "responses", "gemini"];

/// Returns the environment for an API of a provider.
fn env(provider: &FakeProvider, api: &str) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    match api {
        "anthropic" => provider.env(),
        "gemini" => vec![
            pair("CLAW_PROVIDER", "gemini".to_owned()),
            pair("GEMINI_BASE_URL", provider.url()),
            pair("GEMINI_API_KEY", API_KEY.to_owned()),
            pair("CLAW_MODEL", MODEL.to_owned()),
        ],
        api => {
            let mut env = provider.env_for(Shape::OpenAi);
            env.push(pair("CLAW_API", api.to_owned()));
            env
        }
    }
}

/// Returns a command that runs `claw-replay call --quiet` with these arguments.
fn replay(sandbox: &Sandbox, provider: &FakeProvider, api: &str, args: &[&str]) -> Cmd {
    let command = sandbox.cmd("claw-replay").envs(env(provider, api));
    command.args(["call", "--quiet"]).args(args)
}

/// Returns a command that replays the directory `d` in batches.
fn batch(sandbox: &Sandbox, provider: &FakeProvider, api: &str, args: &[&str]) -> Cmd {
    let batch = ["--batch", "--state", "kept", "--poll", "0.01", "--timeout", "2"];
    replay(sandbox, provider, api, &[&batch, args, &["d"]].concat())
}

/// Appends `count` transcripts of a turn each, half of whose replies are those that the provider gives.
fn transcripts(sandbox: &Sandbox, count: usize) {
    for number in 0..count {
        let asked = format!("question {number}");
        let reply = if number % 2 == 0 { reply_to(1, &asked) } else { "another reply".to_owned() };
        append_records(sandbox, &format!("d/{number:02}.jsonl"), &[prompt(&asked), answer(&reply)]);
    }
}

/// Returns the reports of a run without batches, which must fail because half of the replies differ.
fn expected(sandbox: &Sandbox, provider: &FakeProvider, api: &str) -> String {
    replay(sandbox, provider, api, &["d"]).assert().code(1).stdout_text()
}

#[test]
fn audit_40_batches_give_the_same_reports_in_every_api() {
    for api in APIS {
        let sandbox = Sandbox::new();
        let provider = FakeProvider::new().batching(2, |_| Fate::Answered);
        transcripts(&sandbox, 6);
        let expected = expected(&sandbox, &provider, api);
        let alone = provider.requests();
        let run = batch(&sandbox, &provider, api, &[]).assert().code(1);
        assert_eq!(run.stdout_text(), expected, "{api}");
        provider.all_legal();
        let [requests] = &provider.batches()[..] else { panic!("one batch") };
        // The bodies are those that were sent alone, and each is paid for once.
        let mut bodies: Vec<Value> = alone.into_iter().filter_map(|it| it.json).collect();
        let mut batched: Vec<Value> = requests.iter().map(|(_, body)| body.clone()).collect();
        for bodies in [&mut bodies, &mut batched] {
            bodies.sort_by_key(Value::to_string);
        }
        assert_eq!(batched, bodies, "{api}");
        for _ in 0..2 {
            let again = batch(&sandbox, &provider, api, &["--jobs", "3"]).assert().code(1);
            assert_eq!(again.stdout_text(), expected, "{api}");
        }
        assert_eq!(provider.batches().len(), 1, "{api}");
    }
}

#[test]
fn audit_40_what_expired_or_failed_is_sent_again_on_request() {
    for api in APIS {
        let sandbox = Sandbox::new();
        let fate = |number| [Fate::Answered, Fate::Expires, Fate::Fails][number % 3];
        let provider = FakeProvider::new().batching(1, fate);
        transcripts(&sandbox, 6);
        let expected = expected(&sandbox, &provider, api);
        let first = batch(&sandbox, &provider, api, &[]).assert().code(1);
        let text = first.stdout_text();
        assert!(text.contains("busy"), "{api}: {text}");
        let expired = match api {
            "anthropic" => "no answer from the batch: the request expired",
            "gemini" => "expired",
            _ => "no answer from the batch: batch_expired: not executed in time",
        };
        assert!(text.contains(expired), "{api}: {text}");
        // Without a request, nothing is sent again.
        let second = batch(&sandbox, &provider, api, &[]).assert().code(1);
        assert_eq!((second.stdout_text(), provider.batches().len()), (text, 1), "{api}");
        let third = batch(&sandbox, &provider, api, &["--resend"]).assert().code(1);
        assert_eq!(third.stdout_text(), expected, "{api}");
        let batches = provider.batches();
        let sizes: Vec<_> = batches.iter().map(Vec::len).collect();
        assert_eq!(sizes, [6, 4], "{api}: only what has no reply is sent again");
        provider.all_legal();
    }
}

#[test]
fn audit_40_a_run_that_is_killed_twenty_times_pays_once() {
    for api in APIS {
        let sandbox = Sandbox::new();
        let fate = |number| if number % 3 == 1 { Fate::Fails } else { Fate::Answered };
        let provider = FakeProvider::new().batching(usize::MAX, fate);
        transcripts(&sandbox, 5);
        let expected = expected(&sandbox, &provider, api);
        let paid = provider.requests().len();
        for number in 0..20u64 {
            let child = batch(&sandbox, &provider, api, &[]).spawn();
            // Killed at different moments: before and after the batch is sent, and while it is waited for.
            thread::sleep(Duration::from_millis(number * 12));
            kill(child);
        }
        batch(&sandbox, &provider, api, &["--deadline", "0.3"]).assert().code(75);
        provider.end_batches();
        batch(&sandbox, &provider, api, &[]).assert().code(1);
        let run = batch(&sandbox, &provider, api, &["--resend"]).assert().code(1);
        assert_eq!(run.stdout_text(), expected, "{api}");
        // Each request was answered once alone and once in a batch.
        assert_eq!(provider.requests().len(), 2 * paid, "{api}");
    }
}

/// Kills claw-replay, and the claw-call that it has started.
fn kill(child: Child) {
    let id = child.id();
    let started = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    kill_group(id);
    started.split_whitespace().filter_map(|id| id.parse().ok()).for_each(kill_group);
    drop(child.wait_with_output());
}

#[test]
fn audit_40_a_batch_whose_id_is_lost_is_found_and_not_paid_twice() {
    for (api, is_shared) in
        [("anthropic", false), ("anthropic", true), ("chat", false), ("gemini", false)]
    {
        let sandbox = Sandbox::new();
        let provider = FakeProvider::new().batching(2, |_| Fate::Answered);
        transcripts(&sandbox, 4);
        let expected = expected(&sandbox, &provider, api);
        provider.lose_batch(is_shared);
        let run = batch(&sandbox, &provider, api, &[]).assert().code(1);
        assert_eq!(run.stdout_text(), expected, "{api}");
        assert_eq!(provider.batches().len(), 1, "{api} {is_shared}");
        assert!(run.stderr_text().contains("cannot send a batch"), "{run}");
    }
}

#[test]
fn limits_hold_before_a_batch_is_sent() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().batching(1, |_| Fate::Answered);
    transcripts(&sandbox, 4);
    sandbox.write("prices", "* 1000000 0 0 1000000\n");
    // The largest answers to four requests take 400 tokens.
    let limited = ["--max-tokens", "100", "--prices", "prices"];
    for limit in [["--max-total", "400"], ["--max-cost", "400"]] {
        let run = batch(&sandbox, &provider, "anthropic", &[&limited[..], &limit].concat());
        let run = run.assert().code(5).stdout("");
        assert!(
            run.stderr_text().contains("claw-call: not sent: the batch could bring the "),
            "{run}"
        );
    }
    assert_eq!(provider.batches().len(), 0);
    let run =
        batch(&sandbox, &provider, "anthropic", &[&limited[..], &["--max-total", "800"]].concat());
    run.assert().code(1).stderr("");
    assert_eq!(provider.batches().len(), 1);
}

#[test]
fn repeated_requests_get_answers_of_their_own() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().batching(1, |_| Fate::Answered);
    append_records(&sandbox, "d/a.jsonl", &[prompt("hi"), answer("yes")]);
    for reply in ["yes", "no", "yes"] {
        provider.script(Step::text(reply));
    }
    let args = ["--repeat", "3", "--pass-rate", "0.6"];
    let report = batch(&sandbox, &provider, "anthropic", &args).assert().success().report();
    assert_eq!(cases(&report)[0].2, "2 of 3 passed, 2 required: the text differs in line 1");
    let [requests] = &provider.batches()[..] else { panic!("one batch") };
    assert_eq!(requests.len(), 3);
}

#[test]
fn what_an_answer_leads_to_is_sent_in_a_further_batch() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().batching(1, |_| Fate::Answered);
    append_records(&sandbox, "d/a.jsonl", &tool_turn(json!({"path": "x"})));
    // The answer to the first request is empty, so it is sent once more, as without batches.
    let empty = json!({
        "id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": [],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let script = || {
        provider.script(Step::Reply(empty.clone()));
        provider.script(Step::call("c1", "read", json!({"path": "x"})));
    };
    script();
    let alone = replay(&sandbox, &provider, "anthropic", &["--turns", "1", "d"]);
    let alone = alone.assert().stdout_text();
    provider.script(Step::Reply(empty.clone()));
    provider.script(Step::text("done"));
    provider.script(Step::call("c1", "read", json!({"path": "x"})));
    let run = batch(&sandbox, &provider, "anthropic", &["--turns", "1"]).assert();
    assert_eq!(provider.batches().len(), 2, "{run}");
    let names = |text: &str| -> Vec<Value> {
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
    };
    assert_eq!(names(&alone)[0]["cases"][0], names(&run.stdout_text())[0]["cases"][0], "{run}");
}

#[test]
fn an_address_without_a_batch_service_is_an_error() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, 1);
    for (provider, base, model) in [
        ("openai", "https://openrouter.ai/api/v1", "m"),
        ("openai", "https://x.openai.azure.com/openai/v1", "m"),
        ("anthropic", "https://openrouter.ai/api", "m"),
        ("anthropic", "https://bedrock-runtime.us-east-1.amazonaws.com", "m"),
        ("anthropic", "https://x-aiplatform.googleapis.com/v1/projects/p/locations/x", "m"),
        ("gemini", "https://x-aiplatform.googleapis.com/v1/projects/p/locations/x", "m"),
        ("ollama", "http://127.0.0.1:9", "m"),
        ("offline", "offline", "m"),
    ] {
        let command = sandbox.cmd("claw-replay").args(["call", "--batch", "--state", "s", "d"]);
        let command = command.args(["--provider", provider, "--base-url", base, "--model", model]);
        let run = command.assert().code(78).stdout("");
        run.stderr(contains(format!("claw-replay: no batch service for {provider} at ")));
    }
    let mixed = sandbox.cmd("claw-replay").args(["call", "--batch", "--state", "s"]);
    mixed
        .args(["--files-from", "-", "--provider", "openai"])
        .env("OPENAI_API_KEY", "k")
        .env("CLAW_MODEL", "m")
        .assert()
        .code(2);
    for variable in ["CLAW_RECORD", "CLAW_REPLAY"] {
        let run = sandbox.cmd("claw-replay").args(["call", "--batch", "--state", "s", "d"]);
        run.env(variable, "x")
            .env("CLAW_PROVIDER", "openai")
            .env("OPENAI_API_KEY", "k")
            .assert()
            .code(2);
    }
}

#[test]
fn a_mistyped_name_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir -p later/nightly && touch later/file").assert().success();
    let env = [("CLAW_PROVIDER", "openai"), ("CLAW_MODEL", "m"), ("OPENAI_API_KEY", "k")];
    let run = |dir: &str, names: &str| {
        let base = ["--base-url", "http://127.0.0.1:9/v1"];
        let command = sandbox.cmd("claw-call").args(["--batch", dir]).args(base).envs(env);
        command.write_stdin(names).assert()
    };
    for name in ["nightyl", "file", "../later/nightly"] {
        let run = run("later", &format!("nightly\n{name}\n")).code(65);
        run.stderr(contains(format!("claw-call: cannot use '<stdin>': '{name}' is not ")));
    }
    run("laetr", "nightly\n").code(65).stderr(contains("is not a directory in 'laetr'"));
    run("laetr", "").code(74).stderr(contains("cannot open 'laetr/.ledger'"));
    sandbox.sh("test ! -e laetr").assert().success();
    run("later", "nightly\n").success().stderr("");
}

#[test]
fn no_secret_reaches_the_answers() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().batching(1, |_| Fate::Answered);
    append_records(&sandbox, "d/a.jsonl", &[prompt("hi"), answer("yes")]);
    append_records(&sandbox, "d/b.jsonl", &[prompt("sk-ant-0123456789abcdef"), answer("yes")]);
    provider.script(Step::text("ghp_0123456789abcdefghijABCDEFGHIJ012345"));
    let text = batch(&sandbox, &provider, "anthropic", &[]).assert().code(1).stdout_text();
    assert!(
        text.contains("the answer is not kept: the answer contains what looks like a GitHub token"),
        "{text}"
    );
    assert!(text.contains("cannot record, so nothing is sent"), "{text}");
    let found = sandbox.sh("grep -rE 'ghp_0123|sk-ant-0123|test-key' kept kept.batch").assert();
    found.code(1).stdout("");
    let modes = sandbox.sh("find kept.batch -type f -perm /077 -o -type d -perm /077").assert();
    modes.success().stdout("");
}

#[test]
fn answers_in_a_directory_of_transcripts_are_no_transcripts() {
    let sandbox = Sandbox::new();
    let provider = FakeProvider::new().batching(1, |_| Fate::Answered);
    transcripts(&sandbox, 2);
    let args = ["--glob", "*", "d"];
    let expected = replay(&sandbox, &provider, "chat", &args).assert().code(1).stdout_text();
    let batch = ["--batch", "--state", "d/kept", "--poll", "0.01"];
    for _ in 0..2 {
        let run = replay(&sandbox, &provider, "chat", &[&batch[..], &args].concat());
        assert_eq!(run.assert().code(1).stdout_text(), expected);
    }
}

#[test]
fn results_that_are_cut_off_are_read_again() {
    for api in ["anthropic", "chat"] {
        let sandbox = Sandbox::new();
        let provider = FakeProvider::new().batching(1, |_| Fate::Answered);
        transcripts(&sandbox, 4);
        let expected = expected(&sandbox, &provider, api);
        provider.cut_results();
        let run = batch(&sandbox, &provider, api, &[]).assert().code(1);
        assert_eq!(run.stdout_text(), expected, "{api}");
        assert!(run.stderr_text().contains("a result cannot be read"), "{run}");
        assert_eq!(provider.batches().len(), 1, "{api}");
    }
}
