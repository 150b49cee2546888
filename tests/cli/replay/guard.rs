//! claw-replay guard: finds the turns that would overflow a context window, and simulates the steps of claw-turn's
//! overflow guard (shortening results, summarising) without a model.

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use super::{ORPHAN, Reports, check, each, transcript};
use crate::common::{AssertExt, Sandbox};

/// Runs `claw-replay guard --quiet`.
fn guard(sandbox: &Sandbox, args: &[&str]) -> Assert {
    sandbox.cmd("claw-replay").args(["guard", "--quiet"]).args(args).assert()
}

/// Returns a transcript of `turns` turns: a prompt, a call with a result of `words` words, and an answer.
fn tool_turns(turns: usize, words: usize) -> String {
    let turn = |n: usize| {
        let call =
            json!({"type": "tool_use", "tool_use_id": format!("c{n}"), "name": "f", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": format!("c{n}"), "content": "snow ".repeat(words)});
        let usage = json!({"input_tokens": 10, "output_tokens": 3});
        let answer =
            json!({"type": "assistant", "content": "done", "model": "m-1", "usage": usage});
        [json!({"type": "user", "content": format!("question {n}")}), call, result, answer]
    };
    (0..turns).flat_map(turn).map(|record| format!("{record}\n")).collect()
}

/// Returns the numbers of the report's only window.
fn window(run: &Assert) -> Value {
    run.report()["numbers"]["windows"][0].clone()
}

#[test]
fn a_window_that_is_large_enough_never_overflows() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", tool_turns(5, 100));
    let run = guard(&sandbox, &["--window", "32000", "s.jsonl"]).success();
    let window = window(&run);
    assert_eq!(run.report()["numbers"]["turns"], 5);
    // Each turn has two requests: the reply to one is the tool call, and the reply to the other is the answer.
    assert_eq!((&window["requests"], &window["overflow_count"]), (&json!(10), &json!(0)));
    assert_eq!((&window["first_turn"], &window["summary_calls"]), (&Value::Null, &json!(0)));
}

#[test]
fn the_report_states_the_turn_and_size_of_an_overflow_and_what_each_step_saves() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", tool_turns(20, 400));
    let run = guard(&sandbox, &["--window", "8000", "s.jsonl"]).success();
    let window = window(&run);
    let first = &window["overflows"][0];
    let turn = window["first_turn"].as_u64().expect("a turn");
    assert!((4..20).contains(&turn) && first["turn"] == turn, "{window}");
    // The size is what claw-estimate prints for one of the turn's two requests. For the second request, the
    // provider's counts are hidden from claw-estimate.
    let lines = 4 * (turn - 1) + 3;
    let estimate = format!(
        "head -n {lines} s.jsonl | sed 's/\"usage\"/\"x\"/' | claw-rebuild | claw-estimate"
    );
    let whole = sandbox.sh(&estimate).assert().success().stdout_text();
    let before = format!("head -n {} s.jsonl | claw-rebuild | claw-estimate", lines - 2);
    let before = sandbox.sh(&before).assert().success().stdout_text();
    let size = format!("{}\n", first["tokens"]);
    assert!(size == whole || size == before, "{size}, {whole}, {before}");
    let number = |name: &str| first[name].as_u64().expect("a number");
    assert!(number("truncate") > 0 && number("compact") > 0, "{first}");
    assert!(number("after") <= window["prompt_budget"].as_u64().expect("a budget"), "{first}");
    assert!(window["summary_calls"].as_u64() > Some(0), "{window}");
    // A compaction in the transcript does not change the report.
    let compact = "claw-rebuild --meta s.jsonl | claw-compact --record --window 4000 --fallback local --max-calls 0 |
        claw-append s.jsonl";
    sandbox.sh(compact).assert().success();
    assert_eq!(guard(&sandbox, &["--window", "8000", "s.jsonl"]).report(), run.report());
}

/// A reply of 100 words names a model whose tokenizer gives fewer tokens than the largest estimates do.
#[test]
fn tokens_are_estimated_for_the_model_of_the_newest_reply() {
    let sandbox = Sandbox::new();
    let reply = |model: &str| json!({"type": "assistant", "content": "snow 12 ".repeat(100), "model": model});
    let prompt = json!({"type": "user", "content": "more"});
    sandbox.write("s.jsonl", format!("{prompt}\n{}\n{}\n{prompt}\n", reply("m-1"), reply("gpt-5")));
    let estimate = |model: &[&str]| -> u64 {
        let cmd = sandbox.cmd("claw-estimate");
        cmd.args(model)
            .arg("s.jsonl")
            .assert()
            .success()
            .stdout_text()
            .trim()
            .parse()
            .expect("a number")
    };
    let of_messages = |run: &Assert| run.report()["numbers"]["tokens"].as_u64().expect("a number");
    let unknown = estimate(&["--model", "m-1"]);
    for (model, expected) in
        [(&[][..], estimate(&["--model", "gpt-5"])), (&["--model", "m-1"], unknown)]
    {
        let run = check(&sandbox, &[model, &["s.jsonl"]].concat()).success();
        assert_eq!(of_messages(&run), expected, "{model:?}");
        let run = guard(&sandbox, &[model, &["--window", "32000", "s.jsonl"]].concat()).success();
        assert_eq!(window(&run)["largest"], expected, "{model:?}");
    }
    assert!(estimate(&["--model", "gpt-5"]) < unknown);
    // Without a model, the largest estimates apply.
    sandbox.sh("sed -i 's/\"model\"/\"x\"/' s.jsonl").assert().success();
    assert_eq!(of_messages(&check(&sandbox, &["s.jsonl"]).success()), unknown);
}

#[test]
fn a_turn_that_does_not_fit_after_any_step_fails() {
    let sandbox = Sandbox::new();
    let prompt = json!({"type": "user", "content": "snow ".repeat(9000)});
    let rest = json!({"type": "assistant", "content": "done"});
    sandbox
        .write("s.jsonl", format!("{}{prompt}\n{rest}\n{}", tool_turns(3, 50), tool_turns(2, 50)));
    let run = guard(&sandbox, &["--window", "200000,8000", "s.jsonl"]).code(1);
    let report = run.report();
    assert_eq!(report["cases"][0]["name"], "window 8000");
    assert_eq!(
        (&report["cases"][0]["status"], &report["cases"][1]["status"]),
        (&json!("failed"), &json!("passed"))
    );
    let message = report["message"].as_str().expect("a message");
    assert!(message.starts_with("window 8000: turn 4 does not fit: 12"), "{message}");
    assert_eq!(report["numbers"]["windows"][0]["failed_turn"], 4);
}

#[test]
fn r3_calls_without_a_price_are_counted_as_unpriced() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", tool_turns(2, 100));
    sandbox.write("prices", "m-1 1000 100 2000 10000\nfree 0 0 0 0\n");
    let priced = |args: &[&str]| {
        let args = [&["--window", "32000", "--prices", "prices"], args, &["s.jsonl"]].concat();
        window(&guard(&sandbox, &args).success())
    };
    // The record of the first reply, a tool call, does not name the model, so its request has no price.
    let own = priced(&[]);
    assert_eq!(own["unpriced"], 1);
    let named = priced(&["--model", "m-1"]);
    let cost = |name: &str| named[name].as_f64().expect("a cost");
    let number = |name: &str| named[name].as_f64().expect("a number");
    let expected = number("input") / 1e3 + number("output") / 1e2;
    assert!((cost("cost") - expected).abs() < 1e-6, "{named}");
    assert!(cost("cost_with_cache") < cost("cost") * 2.0 && cost("cost_with_cache") > 0.0);
    assert_eq!(priced(&["--model", "free"])["cost"], 0);
    let other = priced(&["--model", "other"]);
    assert_eq!((&other["cost"], &other["unpriced"]), (&Value::Null, &json!(4)));
    guard(&sandbox, &["s.jsonl"]).code(2).stderr(contains("--window"));
    guard(&sandbox, &["--window", "0", "s.jsonl"]).code(78);
}

#[test]
fn check_reports_only_damage_and_guard_reports_only_overflows() {
    let sandbox = Sandbox::new();
    for n in 0..200 {
        sandbox.write(&format!("d/{n:03}.jsonl"), transcript(n % 20));
    }
    let failures = |mode: &str| {
        let args = [mode, "--window", "8000", "--quiet", "d"];
        let run = sandbox.cmd("claw-replay").args(args).assert();
        let mut reports = run.reports();
        assert_eq!(reports.len(), 200);
        reports.retain(|report| report["status"] != "passed");
        each(&reports, "path")
    };
    assert_eq!((failures("check"), failures("guard")), (Vec::new(), Vec::new()));
    // Only check reports damage.
    sandbox.write("d/077.jsonl", transcript(17) + ORPHAN);
    assert_eq!(
        (failures("check"), failures("guard")),
        (vec!["d/077.jsonl".to_owned()], Vec::new())
    );
    // A compaction now covers a prompt that was too long when it was sent. Only guard reports the prompt, because it
    // ignores compactions and measures the request of each turn.
    let prompt = json!({"type": "user", "content": "snow ".repeat(9000)});
    let answer = json!({"type": "assistant", "content": "done"});
    let summary = json!({"type": "compaction", "summary": "all of it", "first_kept_entry_id": "k"});
    let kept = json!({"type": "user", "content": "next", "id": "k"});
    sandbox.write("d/077.jsonl", format!("{prompt}\n{answer}\n{kept}\n{summary}\n"));
    assert_eq!(
        (failures("check"), failures("guard")),
        (Vec::new(), vec!["d/077.jsonl".to_owned()])
    );
}

/// Returns the policies of a window by name.
fn policies<'w>(window: &'w Value) -> impl Fn(&str) -> &'w Value {
    move |name| {
        let all = window["policies"].as_array().expect("policies");
        all.iter().find(|it| it["policy"] == name).expect("a policy")
    }
}

#[test]
fn audit_40_policies_are_priced_over_a_session() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", tool_turns(300, 900));
    let list = "none,window,pi,openclaw,cold,cost";
    let args = ["--window", "200000", "--policy", list, "--model", "claude-sonnet-4-5", "s.jsonl"];
    let report = window(&guard(&sandbox, &args).success());
    let of = policies(&report);
    let cost = |name: &str| of(name)["cost"].as_f64().expect("a cost");
    let optimum = report["optimum"].as_f64().expect("a cost");
    for name in list.split(',') {
        // Other policies keep another part, so that they may cost less than cuts that keep 20,000 tokens.
        assert!(name != "cost" || (optimum..=1.5 * optimum).contains(&cost(name)), "{report}");
        assert!(name == "none" || of(name)["largest"].as_u64() < Some(200_000), "{report}");
    }
    assert!(cost("cost") < cost("window") && cost("window") < cost("none"), "{report}");
    assert_eq!((&of("none")["cuts"], &of("window")["shortenings"]), (&json!(0), &json!(0)));

    let args = ["--window", "200000", "--policy", "cost", "--model", "unheard-of", "s.jsonl"];
    let report = window(&guard(&sandbox, &args).success());
    assert_eq!(
        (&report["optimum"], &policies(&report)("cost")["cost"]),
        (&Value::Null, &Value::Null)
    );
}

/// The session is not in the repository; the test is skipped where it is absent.
#[test]
#[expect(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn audit_40_a_real_session_costs_less_than_half() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus/pi/large-session.jsonl");
    if !std::path::Path::new(path).exists() {
        println!("skipped: no session at {path}");
        return;
    }
    let sandbox = Sandbox::new();
    let args =
        ["--window", "200000", "--policy", "window,cost", "--model", "claude-sonnet-4-5", path];
    let report = window(&guard(&sandbox, &args).success());
    let cost = policies(&report)("cost");
    let ratio =
        cost["cost"].as_f64().unwrap() / policies(&report)("window")["cost"].as_f64().unwrap();
    assert!(ratio <= 0.6, "{ratio}");
    assert!(cost["of_optimum"].as_f64() <= Some(1.3), "{cost}");
}
