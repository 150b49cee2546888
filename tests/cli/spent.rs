//! The cost of replies, limits on tokens and cost, and the description of a request that `claw-call --meta` records.

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::{Conversation, words};

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";
/// The prices of two models, and a pattern for models that are free.
const PRICES: &str = "# per million\ntest-model 3 0.3 3.75 15\nother 1 1 1 1\nlocal* 0 0 0 0\n";

fn reply(usage: Value) -> Step {
    let content = json!([{"type": "text", "text": "hi"}]);
    Step::Reply(
        json!({"content": content, "model": "test-model", "stop_reason": "end_turn", "usage": usage}),
    )
}

fn hello(sandbox: &Sandbox, provider: &FakeProvider, args: &[&str]) -> Cmd {
    sandbox.write("prices", PRICES);
    sandbox.cmd("claw-call").envs(provider.env()).args(args).write_stdin(HELLO)
}

#[test]
fn a_count_that_cannot_be_true_is_said_and_costs_nothing() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let usage = json!({"input_tokens": 5_000_000_000_u64, "output_tokens": 9});
    let note =
        "the provider's count 'input_tokens' cannot be 5000000000, so the call is not counted";
    for (args, cost) in [(&[][..], ""), (&["--prices", "prices"], "so its cost is unknown")] {
        provider.script(reply(usage.clone()));
        let run = hello(&sandbox, &provider, args).assert().success();
        let text = run.stderr_text();
        assert!(text.contains(note) && text.contains(cost), "{text}");
        // The record has what the provider sent.
        assert_eq!(run.json_one()["usage"], usage);
    }
}

/// The tokens of a reply and their cost are reported. A reply without a price is reported as unpriced, not as free.
#[test]
fn r3_the_users_prices_win_over_the_table_of_models() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let usage = json!({
        "input_tokens": 1000, "output_tokens": 200,
        "cache_read_input_tokens": 10_000, "cache_creation_input_tokens": 400,
    });
    provider.script(reply(usage.clone()));
    let run = hello(&sandbox, &provider, &["--prices", "prices"])
        .assert()
        .success()
        .stderr(contains("1000 tokens in, 10000 from cache, 400 to cache, 200 out: 0.0105"));
    // The record has the usage in the form that the provider sent.
    assert_eq!(run.json_one()["usage"], usage);
    provider.script(reply(usage));
    let log = hello(&sandbox, &provider, &["--prices", "prices", "--log", "json"]).assert();
    let line: Value = serde_json::from_str(log.success().stderr_text().trim()).expect("a line");
    assert_eq!((&line["cost"], &line["cache_read"]), (&json!(0.0105), &json!(10_000)));

    // A model that the file does not have is priced by the table of models, or not at all.
    sandbox.write("none", "other 1 1 1 1\n");
    sandbox.write("models", "test-model 200000 - input=3 output=15\n");
    for (args, report) in
        [(&[][..], "unpriced, no price for 'test-model'"), (&["--models", "models"], ": 3")]
    {
        provider.script(reply(json!({"input_tokens": 1_000_000})));
        hello(&sandbox, &provider, &[&["--prices", "none"], args].concat())
            .assert()
            .success()
            .stderr(contains(report));
    }
    sandbox.write("bad", "test-model 3\n");
    hello(&sandbox, &provider, &["--prices", "bad"])
        .assert()
        .code(78)
        .stderr(contains("cannot use prices 'bad': line 1 is not a model and four prices"));
}

/// Nothing is sent if one more call would exceed the limit.
#[test]
fn r4_a_limit_stops_before_the_next_call() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let usage = json!({"input_tokens": 100_000, "output_tokens": 1000});
    let spent = json!({"type": "assistant", "content": "a", "model": "test-model", "usage": usage, "request_id": "r1"});
    // The transcript has the same reply twice, as if it had been merged from two transcripts.
    let conversation = Conversation::new().user("x").record(spent.clone()).record(spent).user("y");
    let summary = json!({
        "type": "compaction", "summary": "s", "first_kept_entry_id": "none", "model": "other",
        "usage": {"prompt_tokens": 50_000, "completion_tokens": 0},
    });
    conversation.record(summary).append(&sandbox, "s.jsonl");
    for (args, status) in [
        (["--max-total", "160000"], 0),
        (["--max-total", "151000"], 5),
        (["--max-total", "10"], 5),
        (["--max-cost", "0.37"], 0),
        (["--max-cost", "0.365"], 5),
    ] {
        let before = provider.requests().len();
        let limits = ["--spent", "s.jsonl", "--prices", "prices"];
        let run = hello(&sandbox, &provider, &[&args[..], &limits].concat()).assert().code(status);
        assert_eq!(provider.requests().len() - before, usize::from(status == 0), "{args:?}");
        if status == 5 {
            run.stdout("").stderr(contains("not called: ")).stderr(contains(args.join(" ")));
        }
    }
    hello(&sandbox, &provider, &["--max-cost", "1"]).assert().code(78);
    let args = ["--max-cost", "1", "--prices", "prices", "--model", "unheard-of"];
    hello(&sandbox, &provider, &args)
        .assert()
        .code(78)
        .stderr(contains("no price for 'unheard-of'"));
    hello(&sandbox, &provider, &["--max-total", "9", "--spent", "none"]).assert().code(74);
}

/// All calls of the session count, not only those of the turn.
#[test]
fn r4_a_turn_ends_when_its_session_reaches_the_limit() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let turn = |limit: &str| {
        let cmd = sandbox.cmd("claw-turn").envs(provider.env());
        cmd.args(["--max-total", limit, "-m", &words(2000), "s.jsonl"]).assert()
    };
    turn("5000").success();
    let asked = provider.requests().len();
    turn("5000").code(5).stdout("").stderr(contains("claw-call: not called: "));
    assert_eq!(provider.requests().len(), asked);
    // The prompt is kept, so the turn can continue without the limit.
    sandbox.cmd("claw-turn").envs(provider.env()).args(["--again", "s.jsonl"]).assert().success();
    provider.all_legal();
}

/// `--meta` records the model, the output limit and hashes of the request, so that requests can be compared later.
#[test]
fn q5_meta_records_the_request() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    sandbox.write("system", "Be brief.");
    let call = |args: &[&str]| {
        hello(&sandbox, &provider, args).assert().success().json_one()["call"].clone()
    };
    assert_eq!(call(&[]), Value::Null);
    let one = call(&["--meta", "--system", "system", "--max-tokens", "64"]);
    assert_eq!((&one["model"], &one["max_tokens"]), (&json!("test-model"), &json!(64)));
    assert_eq!(one["system"].as_str().map(str::len), Some(16));
    assert_eq!(one["tools"], Value::Null);
    assert_eq!(one, call(&["--meta", "--system", "system", "--max-tokens", "64"]));
    assert_ne!(one["request"], call(&["--meta", "--max-tokens", "64"])["request"]);
}

/// A reply that read most of its prompt from the cache.
const CACHED: &str = r#"{"type":"assistant","content":"a","model":"claude-haiku-4-5","request_id":"r","usage":{"input_tokens":1000,"cache_read_input_tokens":99000,"cache_creation_input_tokens":0,"output_tokens":1000}}"#;

/// The same bill is shown by every program that knows the calls of a session.
#[test]
fn audit_40_every_program_shows_what_a_session_costs() {
    let (sandbox, bill) = (Sandbox::new(), "$0.0159, without a cache $0.1050");
    let id = sandbox.cmd("claw-session").args(["new"]).assert().success().stdout_text();
    let id = id.trim().to_owned();
    let path = sandbox.cmd("claw-session").args(["path", &id]).assert().success().stdout_text();
    let path = path.trim().to_owned();
    let records = [r#"{"type":"user","content":"q"}"#, CACHED].join("\n");
    sandbox.cmd("claw-append").args(["--", &path]).write_stdin(records).assert().success();

    let show = |args: &[&str]| sandbox.cmd("claw-show").args(args).arg(&path).assert().success();
    let counts = "1000 tokens in, 99000 from cache, 0 to cache, 1000 out; ";
    show(&["--cost", "--limit-turns", "1"]).stdout(format!("{counts}{bill}\n"));
    let beyond = sandbox.cmd("claw-show").args(["--cost", "--turn", "9"]).arg(&path).assert();
    beyond.code(1).stderr(contains("cannot show turn 9: the turns are 1 to 1"));
    show(&[]).stdout(contains("$0.0159 · 00:00:00"));
    let status = || sandbox.cmd("claw-session").args(["status", &id]);
    status().assert().success().stdout(contains(format!("cost         {bill}\n")));
    let used = &status().arg("--json").assert().success().json_one()["used"];
    assert_eq!((&used["cost"], &used["cost_without_cache"]), (&json!(0.0159), &json!(0.105)));

    sandbox.write("own", "claude-haiku-4-5 10 1 20 100\nother 1 1 1 1\n");
    show(&["--cost", "--prices", "own"]).stdout(contains("; 0.2090, without a cache 1.10\n"));
    let index =
        |args: &[&str]| sandbox.cmd("claw-index").args(["--db", "i.db"]).args(args).assert();
    index(&["update", &path]).success();
    index(&["stats"]).success().stdout(contains("cost 0.02, without a cache 0.1"));
    let sums = [
        "query",
        "--format",
        "csv",
        "SELECT cost, cost_without_cache, unpriced FROM tokens_by_model",
    ];
    index(&sums).success().stdout(contains("0.0159,0.105,0"));
    // Prices apply also to calls that are already in the index.
    index(&["update", "--prices", "own", &path]).success();
    index(&sums).success().stdout(contains("0.209,1.1,0"));
}

#[test]
fn audit_40_a_turn_reports_its_cost_and_an_unknown_price() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let run = |args: &[&str]| {
        provider.script(reply(json!({"input_tokens": 1000, "output_tokens": 10})));
        let cmd = sandbox.cmd("claw-turn").envs(provider.env()).args(args);
        cmd.args(["-m", "hi", "s.jsonl"]).assert().success().stderr_text().to_owned()
    };
    assert_eq!(run(&[]), "");
    let counts = "1000 tokens in, 0 from cache, 0 to cache, 10 out; ";
    assert_eq!(run(&["--cost"]), format!("{counts}cost unknown: no price for 'test-model'\n"));
    sandbox.write("models", "test-model 200000 - input=3 output=15\n");
    let report = run(&["--cost", "--models", "models"]);
    assert!(report.ends_with(&format!("\n{counts}$0.0032\n")), "{report}");
}
