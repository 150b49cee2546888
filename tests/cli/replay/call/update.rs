//! claw-replay call --update: new expected replies are stored beside the transcripts, which never change.

use std::os::unix::fs::PermissionsExt;

use super::super::Reports;
use super::{answer, append_records, cases, live, offline, prompt};
use crate::common::provider::{FakeProvider, Step};
use crate::common::{AssertExt, Sandbox};

#[test]
fn an_updated_reply_is_expected_and_the_transcript_stays_the_same() {
    let sandbox = Sandbox::new();
    let records =
        [prompt("why?"), answer("old"), prompt("how?"), answer("Reply to 3 messages: how?")];
    append_records(&sandbox, "s.jsonl", &records);
    let before = sandbox.read("s.jsonl");
    let run = |args: &[&str]| offline(&sandbox, &[&["--state", "kept", "s.jsonl"], args].concat());
    run(&[]).code(1);
    let report = run(&["--update"]).success().report();
    let (_, status, message) = &cases(&report)[0];
    assert_eq!((&**status, &**message), ("passed", "the expected reply was updated"));
    let detail = "--- recorded\n+++ new\n-old\n+Reply to 1 message: why?\n";
    assert_eq!(report["cases"][0]["detail"], detail);
    run(&[]).success();
    assert_eq!(sandbox.read("s.jsonl"), before);
    let expected = sandbox.read_json("s.jsonl.expected");
    assert_eq!(expected.len(), 1);
    assert_eq!(
        (&expected[0]["case"], &expected[0]["text"]),
        (&"turn 1".into(), &"Reply to 1 message: why?".into())
    );
    let meta = std::fs::metadata(sandbox.path("s.jsonl.expected")).expect("the file");
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    // Without the file, the recorded reply is expected again.
    std::fs::remove_file(sandbox.path("s.jsonl.expected")).expect("the file");
    run(&[]).code(1);
}

/// The state file must not keep `--update` from writing the expected reply again.
#[test]
fn an_expected_reply_that_was_removed_is_written_again() {
    let sandbox = Sandbox::new();
    append_records(&sandbox, "s.jsonl", &[prompt("why?"), answer("old")]);
    let run = || offline(&sandbox, &["--update", "--state", "kept", "s.jsonl"]).success();
    let first = run().stdout_text();
    let expected = sandbox.read_text("s.jsonl.expected");
    std::fs::remove_file(sandbox.path("s.jsonl.expected")).expect("the file");
    assert_eq!(run().stdout_text(), first);
    assert_eq!(sandbox.read_text("s.jsonl.expected"), expected);
    // The report of a run that updates nothing is stored in the state file once.
    for _ in 0..2 {
        run();
        assert_eq!(sandbox.read_text("kept").lines().count(), 1);
    }
}

#[test]
fn expectations_for_another_recorded_reply_are_ignored() {
    let sandbox = Sandbox::new();
    append_records(&sandbox, "a.jsonl", &[prompt("why?"), answer("old")]);
    offline(&sandbox, &["--update", "a.jsonl"]).success();
    append_records(&sandbox, "b.jsonl", &[prompt("why?"), answer("other")]);
    sandbox.write("b.jsonl.expected", sandbox.read("a.jsonl.expected"));
    offline(&sandbox, &["b.jsonl"]).code(1);
    sandbox.write("b.jsonl.expected", "no JSON\n");
    let report = offline(&sandbox, &["b.jsonl"]).code(1).report();
    assert_eq!((&report["status"], &report["exit"]), (&"unreadable".into(), &1.into()));
}

#[test]
fn an_expectation_that_is_no_longer_needed_is_removed() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    append_records(&sandbox, "s.jsonl", &[prompt("hi"), answer("recorded")]);
    for (reply, exists) in [("new", true), ("recorded", false), ("recorded", false)] {
        provider.script(Step::text(reply));
        live(&sandbox, &provider, &["--update", "s.jsonl"]).success();
        assert_eq!(sandbox.exists("s.jsonl.expected"), exists, "{reply}");
    }
    // A call that fails updates nothing.
    provider.script(Step::error(400, "invalid_request_error", "no"));
    live(&sandbox, &provider, &["--update", "s.jsonl"]).code(1);
    assert!(!sandbox.exists("s.jsonl.expected"));
}
