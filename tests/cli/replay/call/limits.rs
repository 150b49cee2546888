//! claw-replay call: repetitions, and limits on tokens and cost.

use serde_json::json;

use super::super::Reports;
use super::{answer, append_records, live, offline, prompt};
use crate::common::Sandbox;
use crate::common::provider::{FakeProvider, Step};

#[test]
fn a_share_of_the_repetitions_must_pass() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    append_records(&sandbox, "s.jsonl", &[prompt("hi"), answer("yes")]);
    let run = |rate: &str| {
        for reply in ["yes", "no", "yes", "yes"] {
            provider.script(Step::text(reply));
        }
        live(&sandbox, &provider, &["--repeat", "4", "--pass-rate", rate, "s.jsonl"])
    };
    let report = run("0.75").success().report();
    let message = "3 of 4 passed, 3 required: the text differs in line 1";
    assert_eq!(report["cases"][0]["message"], message);
    let repeats = json!([{"name": "turn 1", "passed": 3, "of": 4}]);
    assert_eq!(report["numbers"]["repeats"], repeats);
    let report = run("0.76").code(1).report();
    assert_eq!(report["cases"][0]["detail"], "--- recorded\n+++ new\n-yes\n+no\n");
    assert_eq!(provider.pending(), 0);
}

#[test]
fn all_calls_of_a_run_share_the_limits() {
    let sandbox = Sandbox::new();
    for n in 0..8 {
        let records = [prompt("hi"), answer("Reply to 1 message: hi")];
        append_records(&sandbox, &format!("d/{n}.jsonl"), &records);
    }
    let whole = offline(&sandbox, &["d"]).success().reports();
    let usage = &whole[0]["numbers"]["usage"];
    let number = |name: &str| usage[name].as_u64().expect("a number");
    let (input, all) = (number("input"), number("input") + number("output"));
    // One token less than three calls and the prompt of a fourth call need.
    let most = (3 * all + input - 1).to_string();
    sandbox.write("prices", "* 1000000 0 0 1000000\n");
    for limit in [&["--max-total", &most][..], &["--max-cost", &most, "--prices", "prices"]] {
        let args = [limit, &["--jobs", "1", "d"]].concat();
        let reports = offline(&sandbox, &args).code(1).reports();
        let passed = reports.iter().filter(|report| report["status"] == "passed").count();
        assert_eq!(passed, 3, "{limit:?}");
        let message = reports[3]["message"].as_str().expect("a message");
        assert!(
            message.starts_with("turn 1: not called: this prompt would bring the "),
            "{message}"
        );
        let args = [limit, &["--jobs", "4", "d"]].concat();
        let reports = offline(&sandbox, &args).code(1).reports();
        let passed = reports.iter().filter(|report| report["status"] == "passed").count();
        // Until a call ends, only its prompt counts, because its answer may have any length. So the number of calls
        // that are made varies.
        assert!((1..=5).contains(&passed), "{limit:?}: {passed}");
    }
    let args = ["--prices", "prices", "d/0.jsonl"];
    let report = offline(&sandbox, &args).success().report();
    assert_eq!(report["numbers"]["cost"].as_f64(), Some(all as f64));
}

#[test]
fn a_limit_on_the_cost_needs_a_price() {
    let sandbox = Sandbox::new();
    append_records(&sandbox, "s.jsonl", &[prompt("hi"), answer("yes")]);
    sandbox.write("prices", "other 1 1 1 1\n");
    let args = ["--max-cost", "1", "--prices", "prices", "s.jsonl"];
    offline(&sandbox, &args).code(78).stdout("");
}
