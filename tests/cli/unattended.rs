//! Long sessions in a small context window, without intervention.

use std::collections::HashSet;
use std::env;

use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Recorded, SUMMARY};
use crate::common::{AssertExt, Sandbox, rules};
use crate::conversations::{append, log, words};

const WINDOW: u64 = 4000;
/// The number of turns normally, and if `CLAW_TEST_FULL` is set.
const TURNS: [usize; 2] = [24, 500];
/// The most requests for one turn: three for its reply (unchanged, shortened, summarised), and three for each of two
/// summaries (before an overflow and after one).
const MAX_CALLS: usize = 3 + 2 * 3;

/// The beginning of the first prompt; [`RULES`] follow. The fake provider's replies repeat the first hundred characters
/// of a prompt. This text is longer than that, so no reply repeats the rules.
const GREETING: &str = "Hello! Over the next days we are going to look after the website of a small \
                        museum in Lyon, its pages, its pictures and its shop.";
const RULES: &str = "Never push to main. Always answer in French. You must not delete pictures without \
                     asking me first. The budget is 250 euros.";

/// Returns the prompt of a turn.
fn prompt(turn: usize) -> String {
    match turn % 6 {
        1 if turn == 1 => format!("{GREETING} {RULES}"),
        1 => format!("What is next after step {turn}?"),
        2 => format!("Here is the page of room {turn}, as it is now:\n{}", words(700)),
        3 => format!("The tool ran for the {turn}th time. What does it say?"),
        4 => format!(
            "{turn}番目の展示室の説明文です。{}",
            "古い時計と絵画が並んでいます。".repeat(30)
        ),
        5 => format!("In room {turn} you must only use the new colours. Is that done?"),
        _ => format!("Thank you. ({turn})"),
    }
}

/// Appends a tool call and its long result. Some turns have these before their prompt.
fn tool(sandbox: &Sandbox, turn: usize) {
    let id = format!("call_{turn}");
    let call =
        json!({"type": "tool_use", "tool_use_id": id, "name": "build", "input": {"n": turn}});
    let output = format!("run {turn}\n{}", log(100 + turn % 7 * 60));
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": output});
    append(sandbox, "s.jsonl", format!("{call}\n{result}\n"));
}

/// Returns all text of a request's messages.
fn request_text(request: &Recorded) -> String {
    let texts = |content: &Value| match content {
        Value::String(text) => text.clone(),
        other => {
            let blocks = other.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    };
    request.messages().iter().map(|message| texts(&message["content"]) + "\n").collect()
}

/// Runs a session of this many turns, and checks each turn, all requests, the content of the last request, and the
/// transcript.
fn session(turns: usize, args: &[&str]) {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new().window(WINDOW));
    let mut asked = 0;
    for turn in 1..=turns {
        if turn % 6 == 3 {
            tool(&sandbox, turn);
        }
        let cmd = sandbox.cmd("claw-turn").envs(provider.env()).args(args).arg("s.jsonl");
        let run = cmd.write_stdin(prompt(turn)).assert();
        assert_eq!(run.get_output().status.code(), Some(0), "turn {turn}: {}", run.stderr_text());
        let now = provider.requests().len();
        assert!(
            now - asked <= MAX_CALLS,
            "turn {turn}: {} calls: {}",
            now - asked,
            run.stderr_text()
        );
        asked = now;
    }
    assert!(asked <= 2 * turns, "{asked} calls for {turns} turns");
    let requests = provider.requests();
    within_the_window(&requests);
    let bodies: HashSet<&[u8]> = requests.iter().map(|request| &request.body[..]).collect();
    assert_eq!(bodies.len(), requests.len(), "a request was sent twice");
    let last = requests.last().expect("a request");
    assert!(
        request_text(last).contains(RULES) && request_text(last).contains(SUMMARY),
        "{}",
        request_text(last)
    );

    sandbox.cmd("claw-check").arg("s.jsonl").assert().success().stdout("");
    let records = sandbox.read_json("s.jsonl");
    let count = |kind: &str| records.iter().filter(|record| record["type"] == kind).count();
    assert_eq!(count("user"), turns);
    // Other programs are known to compact in an endless loop.
    assert!((1..=turns / 3).contains(&count("compaction")), "{} compactions", count("compaction"));
    assert!(count("truncation") > 0, "no result was shortened");
}

/// Checks that accepted requests were within the window, and that other requests were refused only for their size.
fn within_the_window(requests: &[Recorded]) {
    for request in requests {
        let body = request.json.as_ref().expect("JSON");
        let tokens = rules::count_tokens(body) + body["max_tokens"].as_u64().unwrap_or(0);
        match &request.violation {
            None => assert!(tokens <= WINDOW && request.status == 200, "{tokens}"),
            Some(broken) => assert_eq!(broken.rule, "A12", "{}", broken.message),
        }
    }
}

#[test]
fn m4_n3_a_long_session_keeps_its_rules() {
    let turns = TURNS[usize::from(env::var_os("CLAW_TEST_FULL").is_some())];
    session(turns, &["--window", &WINDOW.to_string()]);
}

#[test]
fn j1_a_long_session_learns_the_window_from_refusals() {
    session(TURNS[0], &[]);
}
