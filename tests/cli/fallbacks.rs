//! claw-compact and claw-turn: if a model makes no summary, they report that and try the next source. If a turn had to
//! use a stub, later turns retry the summary in the background.

use std::thread;
use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Cmd, Sandbox};
use crate::conversations::{Conversation, rebuild};
use crate::summaries::{TALKED, calls, compact, compacted, reply, says, with_model};

/// Returns the ways in which a request for a summary can fail, each as an exit status and an output of the model.
fn failures() -> Vec<(String, String)> {
    let statuses = [1, 2, 3, 4, 5, 7, 8, 65, 69, 74, 75, 76, 77, 78, 127, 255];
    let text = |text| json!({"type": "text", "text": text});
    let call = json!({"type": "tool_use", "tool_use_id": "t", "name": "f", "input": {}});
    let replies = [
        says(""),
        says(" \n\t"),
        reply(&[text("So far")], "max_tokens"),
        reply(&[], "refusal"),
        says("I look.") + &call.to_string(),
        "nonsense\n".to_owned(),
        String::new(),
    ];
    let failed = statuses.iter().map(|status| (status.to_string(), String::new()));
    failed.chain(replies.map(|reply| ("0".to_owned(), reply))).collect()
}

#[test]
fn audit_06_the_next_source_is_tried_after_every_failure_of_a_model() {
    for (status, reply) in failures() {
        let sandbox = with_model();
        Conversation::plain(12, 300).append(&sandbox, "s.jsonl");
        sandbox.write("status", &status);
        sandbox.write("reply", &reply);
        let record = compact(&sandbox, &["--via", "offline"])
            .success()
            .stderr(contains("no summary from offline: "))
            .stderr(contains("; trying main\n"))
            .stderr(contains("; trying local\n"))
            .stderr(contains("; source: local)\n"));
        assert_eq!(record.json_one()["strategy"], "local", "{status} {reply}");
        let stopped = compact(&sandbox, &["--no-fallback"]);
        assert_ne!(stopped.stdout("").get_output().status.code(), Some(0), "{status} {reply}");
    }
}

#[test]
fn audit_06_options_select_the_sources_of_a_summary() {
    let sandbox = with_model();
    Conversation::plain(12, 300).append(&sandbox, "s.jsonl");
    let sources = |args: &[&str]| {
        let cmd = sandbox.cmd("claw-compact").args(["--show", "--prefer-checkpoint"]).args(args);
        let shown = cmd.write_stdin(rebuild(&sandbox, "s.jsonl")).assert();
        if shown.get_output().status.code() == Some(0) {
            shown.json_one()["sources"].clone()
        } else {
            Value::Null
        }
    };
    let small = ["--window", "2000"];
    for (args, expected) in [
        (&[][..], json!(["checkpoint", "main", "local"])),
        (&small, json!(["checkpoint", "main", "local", "stub"])),
        (&["--via", "offline"], json!(["checkpoint", "offline", "main", "local"])),
        (&["--via", "main", "--via", "offline"], json!(["checkpoint", "main", "offline", "local"])),
        (&["--no-fallback", small[0], small[1]], json!(["checkpoint", "main"])),
        (&["--fallback", "local", small[0], small[1]], json!(["checkpoint", "main", "local"])),
        (&["--emergency"], json!(["checkpoint", "main", "stub"])),
        (&["--max-calls", "0"], json!(["checkpoint", "local"])),
    ] {
        assert_eq!(sources(args), expected, "{args:?}");
    }
    for other in [&["--emergency"][..], &["--fallback", "local"]] {
        compact(&sandbox, &[&["--no-fallback"], other].concat()).code(2);
    }
    assert_eq!(calls(&sandbox), 0);
}

// ---- turns -----------------------------------------------------------------------------------

/// Returns a sandbox with a conversation that the program `model` refuses as too long unless it begins with a summary.
/// When asked for a summary, `model` waits for the file `go` if the file `wait` exists, prints the file `summary`,
/// and ends with the status in the file `status`. The file `asked` has a line for each such request.
fn with_failing_model() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(
        "model",
        r#"cat >"input.$$"
        if grep -q '<conversation ' "input.$$"
        then
            echo "$*" >>asked
            if test -e wait; then until test -e go; do sleep 0.02; done; fi
            cat summary 2>/dev/null
            exit "$(cat status 2>/dev/null || echo 0)"
        fi
        grep -q 'Previous conversation summary' "input.$$" || exit 3
        echo '{"type":"assistant","content":"Done.","stop_reason":"end_turn"}'"#,
    );
    Conversation::plain(12, 300).append(&sandbox, "s.jsonl");
    sandbox
}

fn turn(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").args(["--no-checkpoint", "--call", "model"]);
    cmd.args(args).args(["-m", "next?", "s.jsonl"])
}

fn compactions(sandbox: &Sandbox) -> Vec<Value> {
    let records = sandbox.read_json_so_far("s.jsonl").into_iter();
    records.filter(|record| record["type"] == "compaction").collect()
}

#[test]
fn audit_06_a_turn_succeeds_without_a_model_for_summaries() {
    for (status, summary) in [("69", ""), ("77", ""), ("0", &*says(" "))] {
        let sandbox = with_failing_model();
        sandbox.write("status", status);
        sandbox.write("summary", summary);
        turn(&sandbox, &["--no-fallback"])
            .assert()
            .code(3)
            .stdout("")
            .stderr(contains("claw-turn: the request does not fit after all steps; "))
            .stderr(contains("try a model with a larger window (--model, --window)"));
        assert!(compactions(&sandbox).is_empty());
        turn(&sandbox, &[])
            .assert()
            .success()
            .stdout("Done.\n")
            .stderr(contains("source: local)\n"));
        assert_eq!(compactions(&sandbox)[0]["strategy"], "local");
        turn(&sandbox, &["--no-retry"]).assert().success().stdout("Done.\n");
    }
    // If the request is still too long at the end, the message says what to try.
    let sandbox = with_failing_model();
    sandbox.program("model", "exit 3");
    turn(&sandbox, &[])
        .assert()
        .code(3)
        .stderr(contains("does not fit after all steps; try a model with a larger"));
}

/// Waits until `is_so` returns true.
#[track_caller]
fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn asked(sandbox: &Sandbox) -> usize {
    if sandbox.exists("asked") { sandbox.read_text("asked").lines().count() } else { 0 }
}

/// Returns the sandbox of [`with_failing_model`] with a stub summary in its transcript.
fn with_stub() -> Sandbox {
    let sandbox = with_failing_model();
    let stub = compacted(&sandbox, &["--max-calls", "0", "--emergency"]);
    assert_eq!(stub["needs_summary_retry"], true);
    sandbox
}

#[test]
fn audit_06_a_missing_summary_is_made_once_in_the_background() {
    let sandbox = with_stub();
    sandbox.write("summary", says(&format!("What they said. {TALKED}")));
    sandbox.write("wait", "");
    // `assert` waits until both outputs of the turn are closed. It would hang if the first retry, which is still
    // running, kept them open.
    for _ in 0..3 {
        turn(&sandbox, &[]).assert().success().stdout("Done.\n").stderr("");
        wait_for("request", || asked(&sandbox) == 1);
    }
    sandbox
        .cmd("claw-retry")
        .args(["--call", "model", "s.jsonl"])
        .assert()
        .code(75)
        .stderr(contains("another summary retry held it for 0 s; try again"));
    sandbox.write("go", "");
    wait_for("summary", || compactions(&sandbox).len() == 2);
    assert_eq!(compactions(&sandbox)[1]["summary"], format!("What they said. {TALKED}"));
    wait_for("end", || !sandbox.exists(".s.jsonl.retry"));
    turn(&sandbox, &[]).assert().success();
    assert_eq!((asked(&sandbox), compactions(&sandbox).len()), (1, 2));
}

#[test]
fn audit_06_a_retry_in_the_background_is_limited_and_never_fails_the_turn() {
    let sandbox = with_stub();
    sandbox.write("status", "69");
    for args in [&["--no-retry"][..], &[], &[]] {
        turn(&sandbox, args).assert().success().stdout("Done.\n").stderr("");
        if args.is_empty() {
            wait_for("attempt", || sandbox.exists("state/attempts.jsonl"));
        } else {
            thread::sleep(Duration::from_millis(200));
            assert_eq!(asked(&sandbox), 0);
        }
    }
    // After a failure, no turn retries until the interval is over.
    wait_for("end", || !sandbox.exists(".s.jsonl.retry"));
    assert_eq!((asked(&sandbox), compactions(&sandbox).len()), (1, 1));
}
