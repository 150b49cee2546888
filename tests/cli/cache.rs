//! Prompt caching: what requests ask for, what a session pays, and servers that refuse it. Issue 40.

use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::cache::Totals;
use crate::common::provider::{FakeProvider, Step};
use crate::common::tls::{Front, Proxy, Signer};
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::exec::tools;

/// A tool with a result of about 250 tokens.
const WORK: &str = "n=$(sed 's/[^0-9]//g'); i=0
    while test $i -lt 20; do echo \"step $i of $n: compiled the module that has number $i\"; i=$((i+1)); done";

/// Compacts the session.
const COMPACT: &str =
    "claw-rebuild --meta -- s.jsonl | claw-compact --record | claw-append -- s.jsonl";

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

/// Returns a sandbox with a tool and a system prompt of about 1200 tokens.
fn sandbox() -> Sandbox {
    let sandbox = tools(&[("work", WORK)]);
    sandbox.write("box/work.json", r#"{"input_schema":{"type":"object"}}"#);
    sandbox.write(
        "system",
        "Answer briefly, and use the tool to build what the user names. ".repeat(75),
    );
    sandbox
}

/// Returns a program that calls the provider's Messages API, with a cache as by default.
fn program(sandbox: &Sandbox, provider: &FakeProvider, name: &str) -> Cmd {
    let cmd = sandbox.cmd(name).envs(provider.env()).env_remove("CLAW_CACHE");
    cmd.env("CLAW_SYSTEM", sandbox.path("system"))
}

/// Returns the prompt of a turn, about 80 tokens.
fn prompt(turn: usize) -> String {
    format!(
        "Turn {turn}: {}",
        "please look at the next part of the program and tell me. ".repeat(6)
    )
}

/// Scripts the replies of a turn: every second turn calls the tool first.
fn script(provider: &FakeProvider, turn: usize) {
    if turn.is_multiple_of(2) {
        provider.script(Step::call(&format!("t{turn}"), "work", json!({ "n": turn })));
    }
    provider.script(Step::text(format!(
        "Done with turn {turn}: {}",
        "it works as it should. ".repeat(10)
    )));
}

/// Checks that at least 90 % of the prompts came from the cache, for at most 1.15 times the ideal cost.
#[track_caller]
fn assert_paid_once(totals: Totals) {
    let Totals { tokens, cost, ideal } = totals;
    let share = tokens.read as f64 / tokens.prompt as f64;
    assert!(share >= 0.9, "{:.1} % from the cache: {totals:?}", share * 100.0);
    assert!(cost <= 1.15 * ideal, "{:.3} times the ideal cost: {totals:?}", cost / ideal);
}

#[test]
fn audit_40_forty_turns_with_tools_and_a_compaction_are_paid_once() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    for turn in 1..=40 {
        script(&provider, turn);
        let cmd = program(&sandbox, &provider, "claw-turn").env("CLAW_WINDOW", "40000");
        let cmd =
            cmd.args(["--no-checkpoint", "--no-guard", "--tools", "box", "-m", &prompt(turn)]);
        cmd.arg("s.jsonl").assert().success();
        if turn == 25 {
            let cmd = sandbox.sh(COMPACT).envs(provider.env()).env_remove("CLAW_CACHE");
            cmd.env("CLAW_WINDOW", "40000").assert().success();
        }
    }
    provider.all_legal();
    let requests = provider.requests();
    assert_eq!(requests.len(), 61);
    let summary =
        requests.iter().filter(|it| !String::from_utf8_lossy(&it.body).contains("cache_control"));
    assert_eq!(summary.count(), 1, "only the summary asks for no cache");
    assert_paid_once(provider.cache_totals());
}

#[test]
fn audit_40_a_chat_is_paid_once() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    let lines: String = (1..=40).map(|turn| prompt(turn) + "\n").collect();
    (1..=40).for_each(|turn| script(&provider, turn));
    let cmd = program(&sandbox, &provider, "claw-chat").env("CLAW_TOOLS", "box");
    cmd.arg("--no-checkpoint").write_stdin(lines).assert().success();
    provider.all_legal();
    assert_paid_once(provider.cache_totals());
}

#[test]
fn audit_40_without_a_cache_everything_is_paid_again() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    for turn in 1..=3 {
        let cmd =
            program(&sandbox, &provider, "claw-turn").args(["--no-checkpoint", "--cache", "off"]);
        cmd.args(["-m", &prompt(turn), "s.jsonl"]).assert().success();
    }
    assert_eq!(provider.cache_totals().tokens.read, 0);
    for request in provider.requests() {
        assert!(request.system().is_string(), "the body is as before");
    }
}

#[test]
fn the_longer_lifetime_survives_a_pause() {
    for (choice, read) in [("auto", false), ("1h", true)] {
        let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
        for _ in 0..2 {
            let cmd = program(&sandbox, &provider, "claw-call").args(["--cache", choice]);
            cmd.write_stdin(HELLO).assert().success();
            provider.later(600);
        }
        assert_eq!(provider.cache_totals().tokens.read > 0, read, "{choice}");
    }
}

/// Returns a proxy on which the provider has a name, and the front behind it. The certificate is in `ca.pem`.
fn named(sandbox: &Sandbox, provider: &FakeProvider, name: &str) -> (Proxy, Front) {
    let signer = Signer::new();
    sandbox.write("ca.pem", signer.pem());
    let front = Front::tls(provider, signer.server(name));
    (Proxy::to(front.address()), front)
}

#[test]
fn audit_40_openais_cache_is_found_by_the_key_of_the_session() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    let (proxy, _front) = named(&sandbox, &provider, "api.openai.com");
    let openai = |cmd: Cmd| {
        let cmd = cmd.env("OPENAI_API_KEY", "test-key-1").env("CLAW_WINDOW", "40000");
        let cmd = cmd.env("CLAW_PROVIDER", "openai").env("CLAW_MODEL", "gpt-5.2");
        let cmd = cmd.env("CLAW_SYSTEM", "system").env("CLAW_CA", sandbox.path("ca.pem"));
        cmd.env("HTTPS_PROXY", proxy.url()).env_remove("NO_PROXY")
    };
    for turn in 1..=40 {
        script(&provider, turn);
        let cmd = openai(sandbox.cmd("claw-turn")).args(["--no-checkpoint", "--no-guard"]);
        cmd.args(["--tools", "box", "-m", &prompt(turn), "s.jsonl"]).assert().success();
        if turn == 25 {
            openai(sandbox.sh(COMPACT)).assert().success();
        }
    }
    provider.all_legal();
    let requests = provider.requests();
    let key = |at: usize| requests[at].json.as_ref().map(|it| it["prompt_cache_key"].clone());
    assert!(key(0).is_some_and(|key| key.as_str().is_some_and(|key| key.len() == 16)));
    let with_key = (1..requests.len()).filter(|at| key(*at) == key(0)).count();
    assert_eq!((requests.len(), with_key), (61, 59), "all but the summary");
    let tokens = provider.cache_totals().tokens;
    let share = tokens.read as f64 / tokens.prompt as f64;
    assert!(share >= 0.9, "{:.1} % from the cache: {tokens:?}", share * 100.0);
}

fn refuses_marks(body: &Value) -> Option<Step> {
    let message = "messages.0.content.0.text.cache_control: Extra inputs are not permitted";
    let refusal = || Step::error(400, "invalid_request_error", message);
    body.to_string().contains("cache_control").then(refusal)
}

fn refuses_an_hour(body: &Value) -> Option<Step> {
    let message = "tools.0.cache_control.ttl: Extra inputs are not permitted";
    let refusal = || Step::error(400, "invalid_request_error", message);
    body.to_string().contains("\"ttl\"").then(refusal)
}

#[test]
fn a_server_that_refuses_the_marks_gets_them_once() {
    for (refuses, args, says, stored) in [
        (refuses_marks as fn(&Value) -> _, ["--cache", "auto"], "no prompt cache", "cache_control"),
        (refuses_an_hour, ["--cache", "1h"], "the default lifetime of the cache", "long_cache"),
    ] {
        let (sandbox, provider) = (sandbox(), FakeProvider::new().refusing(refuses));
        let call = || program(&sandbox, &provider, "claw-call").args(args).write_stdin(HELLO);
        call().assert().success().stderr(contains(format!("trying again with {says}")));
        assert_eq!(sandbox.read_json("state/refused.jsonl")[0]["refuses"], stored);
        call().assert().success().stderr("");
        assert_eq!(provider.requests().len(), 3, "{says}");
    }
}

#[test]
fn a_count_asks_for_no_cache_and_further_members_win() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new());
    let run = program(&sandbox, &provider, "claw-call").arg("--count").write_stdin(HELLO);
    run.assert().success();
    assert!(!String::from_utf8_lossy(&provider.single_request().body).contains("cache_control"));
    let own = r#"{"cache_control":{"type":"ephemeral","ttl":"1h"}}"#;
    let run = program(&sandbox, &provider, "claw-call").args(["--dry-run", "--extra", own]);
    let shown = run.write_stdin(HELLO).assert().success().stdout_text();
    assert_eq!(shown.matches("cache_control").count(), 1, "{shown}");
    assert!(predicate::str::contains(r#""ttl":"1h""#).eval(&shown));
}

#[test]
fn recordings_without_a_cache_are_replayed_to_requests_with_one() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new());
    provider.script(Step::text("Recorded."));
    let call = |options: &[&str]| {
        program(&sandbox, &provider, "claw-call").args(options).write_stdin(HELLO).assert()
    };
    call(&["--cache", "off", "--record", "tapes"]).success();
    call(&["--replay", "tapes"]).success().stdout(contains("Recorded."));
    call(&["--replay", "tapes", "--max-tokens", "77"]).code(8);
    assert_eq!(provider.requests().len(), 1);
}

/// The time of the sandbox, in seconds since 1970.
const NOW: u64 = 1_767_225_600;

/// Writes a session whose replies call a tool; each result has this many words. The newest reply was made `age` seconds ago.
fn session(sandbox: &Sandbox, replies: u64, words: usize, age: u64) {
    let mut lines = vec![json!({"type": "user", "ts": NOW - 9000, "content": "Begin."})];
    for at in 0..replies {
        let ts = NOW - age - 10 * (replies - at - 1);
        let call =
            json!({"type": "tool_use", "id": format!("t{at}"), "name": "work", "input": {"n": at}});
        lines
            .push(json!({"type": "assistant", "ts": ts, "content": [call], "model": "test-model"}));
        let text = format!("{at} {}", "result ".repeat(words));
        lines.push(json!({"type": "tool_result", "ts": ts, "tool_use_id": format!("t{at}"), "content": text}));
    }
    lines.push(
        json!({"type": "assistant", "ts": NOW - age, "content": "Done.", "model": "test-model"}),
    );
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    sandbox.write("s.jsonl", text.join("\n") + "\n");
}

/// Returns the records that a turn adds, without those of the prompt and the reply; and its diagnostics.
fn turn(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> (Vec<Value>, String) {
    let before = sandbox.read_text("s.jsonl").lines().count();
    let cmd =
        program(sandbox, provider, "claw-turn").args(["--models", "models", "--max-tokens", "500"]);
    let run = cmd.args(args).args(["-m", "Go on.", "s.jsonl"]).assert().success();
    let text = sandbox.read_text("s.jsonl");
    let records = text.lines().skip(before).map(|line| serde_json::from_str(line).expect("JSON"));
    let is_view = |it: &Value| it["type"] != "user" && it["type"] != "assistant";
    (records.filter(is_view).collect(), run.stderr_text().to_owned())
}

#[test]
fn audit_40_old_results_are_shortened_when_the_cache_has_expired() {
    for (age, args, shortened) in [
        (400, &[][..], 6),
        (200, &[], 0),
        (400, &["--cache", "1h"], 0),
        (4000, &["--cache", "1h"], 6),
        (4000, &["--cache", "off"], 0),
        (400, &["--no-proactive"], 0),
    ] {
        let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
        sandbox.write("models", "test-model 30000 -\n");
        session(&sandbox, 8, 1000, age);
        let (records, stderr) = turn(&sandbox, &provider, args);
        assert_eq!(records.len(), shortened, "{age} {args:?}: {stderr}");
        for record in records {
            assert_eq!(
                (&record["type"], &record["reason"]),
                (&json!("truncation"), &json!("cost"))
            );
        }
        let sent = String::from_utf8_lossy(&provider.requests().last().expect("a request").body)
            .into_owned();
        assert_eq!(sent.matches("result ").count() < 8000, shortened > 0);
        provider.all_legal();
    }
}

#[test]
fn audit_40_a_cut_is_made_when_it_pays() {
    let prices = "test-model 200000 - input=3 cache-read=0.3 cache-write=3.75 output=15\n";
    for (replies, args, cuts) in [
        (60, &["--compact-when", "cost"][..], 1),
        (60, &[], 0),
        (3, &["--compact-when", "cost"], 0),
    ] {
        let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
        sandbox.write("models", prices);
        session(&sandbox, replies, 800, 20);
        if cuts > 0 {
            provider.script(Step::text(
                "The user had sixty things built, and all of them work. ".repeat(4),
            ));
        }
        let (records, stderr) = turn(&sandbox, &provider, args);
        assert_eq!(records.len(), cuts, "{replies} {args:?}: {stderr}");
        if let [cut] = &records[..] {
            assert_eq!((&cut["type"], &cut["reason"]), (&json!("compaction"), &json!("cost")));
            assert!(stderr.contains("a cut pays: reading the old part has cost $"), "{stderr}");
            // The next request reads little, so that nothing pays.
            assert_eq!(turn(&sandbox, &provider, args).0, [] as [Value; 0]);
        }
    }
}

/// Imported sessions and messages without `_meta` have no times: then no cache expires, and the requests count all the same.
#[test]
fn audit_40_a_cut_pays_without_the_times_of_replies() {
    let sandbox = sandbox();
    let prices = "test-model 200000 - input=3 cache-read=0.3 cache-write=3.75 output=15\n";
    sandbox.write("models", prices);
    session(&sandbox, 60, 800, 20);
    let check = |file: &str, cache: &str| {
        let cmd =
            sandbox.cmd("claw-estimate").args(["--models", "models", "--model", "test-model"]);
        let cmd = cmd.args(["--check", "--compact-when", "cost", "--cache", cache, file]);
        cmd.assert().code(5).stderr_text().to_owned()
    };
    let text = sandbox.read_text("s.jsonl").replace("\"ts\":", "\"x\":");
    sandbox.write("untimed.jsonl", text);
    assert_eq!(check("untimed.jsonl", "auto"), check("s.jsonl", "auto"));
    assert!(check("s.jsonl", "off") != check("s.jsonl", "auto"), "without a cache, all is input");
}

#[test]
fn audit_40_without_a_price_only_the_window_counts() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    sandbox.write("models", "test-model 200000 -\n");
    session(&sandbox, 60, 800, 20);
    let (records, stderr) = turn(&sandbox, &provider, &["--compact-when", "cost"]);
    assert_eq!(records, [] as [Value; 0]);
    assert!(stderr.contains("no price for 'test-model'"), "{stderr}");
}

#[test]
fn audit_40_a_log_says_how_much_of_the_last_request_is_repeated() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    let call = |lines: &str, format: &str| {
        let cmd = program(&sandbox, &provider, "claw-call").env("CLAW_SESSION", "s.jsonl");
        let run = cmd.args(["--log", format]).write_stdin(lines).assert().success();
        run.stderr_text().to_owned()
    };
    let three =
        "{\"role\":\"assistant\",\"content\":\"hi\"}\n{\"role\":\"user\",\"content\":\"more\"}\n";
    assert_eq!(call(HELLO, "json"), "");
    let line: Value =
        serde_json::from_str(&call(&[HELLO, three].concat(), "json")).expect("a line");
    assert_eq!(line["prefix_bytes"], line["last_bytes"]);
    assert!(line["bytes"].as_u64() > line["last_bytes"].as_u64(), "{line}");
    let changed = HELLO.replace("hello", "other");
    let line: Value =
        serde_json::from_str(&call(&[&changed, three].concat(), "json")).expect("a line");
    assert!(line["prefix_bytes"].as_u64() < line["last_bytes"].as_u64(), "{line}");
    assert_eq!(call(HELLO, "text"), "");
}

/// Anthropic's own service is asked why, the next time and only for a log; others might refuse the question.
#[test]
fn audit_40_the_providers_reason_for_a_cache_miss_is_in_the_log() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    let (proxy, _front) = named(&sandbox, &provider, "api.anthropic.com");
    let call = |system: &str, args: &[&str]| {
        let cmd = program(&sandbox, &provider, "claw-call").env("CLAW_SESSION", "s.jsonl");
        let cmd = cmd.env("ANTHROPIC_BASE_URL", "https://api.anthropic.com");
        let cmd = cmd.env("CLAW_CA", sandbox.path("ca.pem")).env("HTTPS_PROXY", proxy.url());
        let cmd = cmd.env_remove("NO_PROXY").env("CLAW_SYSTEM", system);
        let run = cmd.args(args).write_stdin(HELLO).assert().success();
        run.stderr_text().to_owned()
    };
    sandbox.write("other", "Answer at length.");
    for args in [&["--log", "json"][..], &["--log", "json", "--stream"]] {
        assert!(!call("system", args).contains("cache_miss"), "the prefix is the same");
        let said = call("other", args);
        assert!(said.contains(r#""cache_miss":"system_changed","cache_miss_tokens":"#), "{said}");
        call("system", &[]);
        let asked = provider.requests().into_iter().filter_map(|it| it.json);
        let asked: Vec<_> =
            asked.map(|it| it["diagnostics"]["previous_message_id"].clone()).collect();
        assert_eq!(asked.last(), Some(&Value::Null), "without a log, nothing is asked");
        assert_eq!(asked[asked.len() - 2], format!("msg_{}", asked.len() - 2));
        std::fs::remove_dir_all(sandbox.path("state")).expect("the state");
    }
}

/// A tool round with more blocks than Anthropic's servers look back for an earlier prefix.
#[test]
fn audit_40_many_blocks_in_a_round_do_not_lose_the_cache() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    for turn in 1..=4 {
        let calls = (0..30).map(|n| (format!("t{turn}-{n}"), "work".to_owned(), json!({ "n": n })));
        provider.script(Step::Calls(calls.collect()));
        provider.script(Step::text("All thirty are done."));
        let cmd = program(&sandbox, &provider, "claw-turn").env("CLAW_WINDOW", "400000");
        let cmd = cmd.args(["--no-checkpoint", "--tools", "box", "-m", &prompt(turn), "s.jsonl"]);
        cmd.assert().success();
    }
    provider.all_legal();
    let Totals { cost, ideal, .. } = provider.cache_totals();
    assert!(cost <= 1.001 * ideal, "{cost} instead of {ideal}");
}

#[test]
fn audit_40_after_a_pause_the_cache_is_kept_for_an_hour() {
    let (sandbox, provider) = (sandbox(), FakeProvider::new().caching());
    sandbox.write("models", "test-model 200000 -\n");
    for (age, args, is_long) in [
        (100, &[][..], false),
        (400, &[], true),
        (3500, &[], true),
        (3700, &[], false),
        (400, &["--cache", "off"], false),
        (400, &["--call", "claw-call --record tapes"], false),
    ] {
        session(&sandbox, 3, 10, age);
        turn(&sandbox, &provider, args);
        let sent = provider.requests().pop().expect("a request").body;
        let has_hour = String::from_utf8_lossy(&sent).contains(r#""ttl":"1h""#);
        assert_eq!(has_hour, is_long, "{age} {args:?}");
    }
}
