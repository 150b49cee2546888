//! The requests for summaries: their content, number and duration, and their preview with `--show`.

use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::{Value, json};

use super::{applied, configure, conversation, lines, run, show};
use crate::common::{AssertExt, Sandbox, patiently};
use crate::conversations::{Conversation, rebuild_meta, words};
use crate::summaries::{asked, calls, compact, says, with_model};

// ---- pieces, calls and time ------------------------------------------------------------------

/// Configures a model with a window of 2000 tokens that is used only for summaries. Returns the options that select it.
fn small_model(sandbox: &Sandbox) -> [&'static str; 2] {
    configure(sandbox, &json!({"ollama": {"model": "q", "contextTokens": 2000}}));
    ["--config", "config"]
}

#[test]
fn m2_summarising_many_windows_of_text_takes_as_many_calls_as_show_predicts() {
    let sandbox = with_model();
    let (args, messages) = (small_model(&sandbox), conversation(400, 100));
    for most in ["64", "16", "5", "1"] {
        let args = [&args[..], &["--max-calls", most]].concat();
        let shown = show(&sandbox, &args, &messages);
        assert!(shown["tokens_before"].as_u64() > Some(40_000));
        let before = calls(&sandbox);
        let run = run(&sandbox, &args, &messages);
        assert_eq!(applied(&run)["source"], "ollama:q");
        let (made, most) = (calls(&sandbox) - before, most.parse().expect("a number"));
        assert_eq!(json!(made), shown["calls"], "with --max-calls {most}");
        assert!(made <= most);
        // If parts are left out, `--show` states how many, and the run reports the same number.
        let count = format!("\"left_out\":{}", shown["left_out"]);
        assert_eq!(
            run.stderr_text().contains(&count),
            shown["left_out"] != 0,
            "{}",
            run.stderr_text()
        );
        assert_eq!(shown["request"], json!(sandbox.read_json(&format!("stdin.{}", before + 1))));
    }
}

#[test]
fn v54_nothing_changes_if_the_summary_of_a_piece_fails() {
    let sandbox = with_model();
    Conversation::plain(100, 400).append(&sandbox, "s.jsonl");
    let before = sandbox.read("s.jsonl");
    let args = ["--via", "main", "--window", "6000", "--max-calls", "40", "--no-fallback"];
    for (status, code) in [("69", 69), ("75", 75), ("6", 69)] {
        sandbox.sh("rm -f calls status.*").assert().success();
        sandbox.write("status.2", status);
        if status == "6" {
            sandbox.write("reply.2", crate::summaries::reply(&[], "max_tokens"));
        }
        compact(&sandbox, &args).code(code).stdout("");
        assert_eq!(calls(&sandbox), 2);
        assert!(sandbox.read("s.jsonl") == before);
    }
}

#[test]
fn v54_the_deadline_ends_a_call_that_hangs() {
    let sandbox = with_model();
    for more in [&["--no-fallback"][..], &["--fallback", "local"], &[]] {
        patiently(|times| {
            let limit = Duration::from_millis(300) * times;
            let seconds = limit.as_secs_f64().to_string();
            let args = ["--deadline", &seconds, "--call", "exec sleep 60 #"];
            let args = [&args[..], &["--via", "ollama:q", "--via", "main"], more].concat();
            let begun = Instant::now();
            let run = run(&sandbox, &args, &conversation(12, 300));
            let late = begun.elapsed().saturating_sub(limit);
            assert!(late < Duration::from_millis(1200), "{late:?}");
            let run = run.stderr(contains("did not end in time"));
            match more {
                ["--no-fallback"] => run
                    .code(69)
                    .stdout("")
                    .stderr(contains("the time limit of --deadline has passed")),
                _ => run.success(),
            };
        });
    }
}

// ---- names -----------------------------------------------------------------------------------

const NAMES: [&str; 5] = [
    "6f1c0d3e-77aa-4b52-9c1d-0123456789ab",
    "3f9c2ab7d1e0",
    "/srv/app/run.conf",
    "https://a.example/x?y=1",
    "8443",
];

/// Returns a conversation that introduces [`NAMES`] in the part to summarise and uses them in the kept part.
fn with_names() -> String {
    let [id, hash, path, url, port] = NAMES;
    let mut conversation: Vec<(&str, String)> = vec![
        ("user", "Begin.".to_owned()),
        (
            "assistant",
            format!(
                "The job is {id}\nand the commit {hash}.\nIts file is {path}, see {url}; port {port}.\nUnused: ZZ-9999."
            ),
        ),
    ];
    let more = |n: usize| (["user", "assistant"][n % 2], format!("more: {}", words(200)));
    conversation.extend((0..8).map(more));
    conversation
        .push(("user", format!("Restart {id} at {hash} with '{path}' ({url}:) on {port}.")));
    lines(&conversation)
}

#[test]
fn v56_names_missing_from_the_summary_are_requested_once() {
    let sandbox = with_model();
    let better = NAMES[..4].join(" ");
    sandbox.write("reply.2", says(&better));
    let run = run(&sandbox, &["--via", "main"], &with_names());
    let outcome = applied(&run);
    assert_eq!((&outcome["calls"], &outcome["lost"]), (&json!(2), &json!(["8443"])));
    assert!(run.stdout_text().contains(&better));
    let request = asked(&sandbox, 2);
    for name in NAMES {
        assert!(request.contains(&format!("\n  {name}\n")), "{name} is not listed: {request}");
    }
    assert!(request.contains("  They talked.\n") && request.contains("  and the commit "));
    assert!(!request.contains("ZZ-9999"), "unused names must not be requested");
}

#[test]
fn v56_the_better_summary_is_used_and_no_call_is_wasted() {
    let all = NAMES.join(" ");
    let two = NAMES[..2].join(" ");
    let one = NAMES[0].to_owned();
    for (first, second, status, most, used, lost, count) in [
        (&all, &one, "0", "16", &all, 0, 1),
        (&two, &one, "0", "16", &two, 3, 2),
        (&two, &two, "0", "16", &two, 3, 2),
        (&two, &all, "69", "16", &two, 3, 2),
        (&two, &String::new(), "0", "16", &two, 3, 2),
        (&two, &all, "3", "16", &two, 3, 2),
        (&two, &all, "0", "1", &two, 3, 1),
        (&one, &two, "0", "2", &two, 3, 2),
    ] {
        let sandbox = with_model();
        sandbox.write("reply.1", says(first));
        sandbox.write("reply.2", says(second));
        sandbox.write("status.2", status);
        let run = run(&sandbox, &["--record", "--max-calls", most], &with_names());
        let outcome = applied(&run);
        assert_eq!(outcome["lost"].as_array().map(Vec::len), Some(lost), "{}", run.stderr_text());
        assert_eq!((calls(&sandbox), &run.json_one()["summary"]), (count, &json!(used)));
        // The record counts the tokens of both requests if the second one got a reply, whichever summary is used.
        let paid = if status == "0" && !second.is_empty() { count } else { 1 };
        assert_eq!(run.json_one()["usage"]["input_tokens"], json!(900 * paid), "{second}");
    }
}

// ---- the preview -----------------------------------------------------------------------------

#[test]
fn show_makes_no_call_and_prints_the_plan() {
    let sandbox = with_model();
    Conversation::of("uacrCRucracruauacrCRau", 150).append(&sandbox, "s.jsonl");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    let small = small_model(&sandbox);
    // A summary of the greatest length that the prompt allows.
    sandbox.write("reply", says(&"snow ".repeat(120)));
    for args in [&[][..], &["--window", "4000"], &["--via", "main", "--window", "4000"], &small] {
        let before = calls(&sandbox);
        let shown = show(&sandbox, args, &messages);
        assert_eq!(calls(&sandbox), before, "a call was made");
        let ids = |name: &str| {
            let list = shown[name].as_array().expect("a list").clone();
            list.into_iter().map(|message| message["id"].clone()).collect::<Vec<_>>()
        };
        let all: Vec<Value> = messages
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).expect("a message")["_meta"]["id"].clone()
            })
            .collect();
        assert_eq!([ids("covered"), ids("kept")].concat(), all);
        let record = compact(&sandbox, args).success().json_one();
        assert_eq!(record["first_kept_entry_id"], ids("kept")[0]);
        assert!(record["tokens_after"].as_u64() <= shown["tokens_after"].as_u64(), "{record}");
        for name in ["tokens_before", "kept_user", "pinned", "details"] {
            assert_eq!(record[name], shown[name], "{name}");
        }
        let sent = sandbox.read_text(&format!("stdin.{}", before + 1));
        let request =
            run(&sandbox, &[&["--show"], args].concat(), &messages).success().stdout_text();
        let preview = format!("\"request\":[{}]", sent.trim_end());
        assert!(request.contains(&preview), "the preview differs from the request");
    }
}

#[test]
fn show_without_a_model_plans_no_call() {
    let sandbox = with_model();
    sandbox.write("summary", "They talked.");
    for args in [["--summary", "summary"], ["--max-calls", "0"]] {
        let shown = show(&sandbox, &args, &conversation(12, 60));
        assert_eq!((&shown["calls"], &shown["request"]), (&json!(0), &json!([])));
    }
}
