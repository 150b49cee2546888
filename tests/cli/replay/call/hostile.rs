//! claw-replay call: hostile replies, and errors in place of replies.

use serde_json::json;

use super::super::Reports;
use super::{answer, append_records, cases, live, prompt};
use crate::common::provider::{FakeProvider, Step};
use crate::common::{AssertExt, Sandbox};

#[test]
fn the_report_of_a_hostile_reply_is_one_line_of_limited_length() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    append_records(&sandbox, "s.jsonl", &[prompt("hi"), answer("yes")]);
    let name = format!("n\n+call safe {{}}\u{1b}[2J{}", "x".repeat(300));
    for step in [
        Step::text("\u{1b}]0;title\u{7}\r\u{202e}\n--- recorded\n"),
        Step::text("line\n".repeat(300_000)),
        Step::text("x".repeat(3_000_000)),
        Step::call("c", &name, json!({"a": "\u{1b}[2J"})),
    ] {
        provider.script(step);
        let run = live(&sandbox, &provider, &["s.jsonl"]).code(1);
        let text = run.stdout_text();
        assert!(text.len() < 400_000, "{}", text.len());
        // The report, and the end of the run.
        assert_eq!(text.lines().count(), 2, "{text:.300}");
        let is_hidden = |c: char| c.is_control() || c == '\u{202e}';
        assert!(text.lines().all(|line| !line.contains(is_hidden)), "{text:.300}");
        let [(_, _, message)] = &cases(&run.report())[..] else { panic!("{text:.300}") };
        assert!(message.len() < 300 && !message.contains('\n'), "{message}");
    }
}

#[test]
fn an_error_in_place_of_a_reply_fails_the_case() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    append_records(&sandbox, "s.jsonl", &[prompt("hi"), answer("yes")]);
    for (step, class) in [
        (Step::error(401, "authentication_error", "invalid x-api-key"), "auth"),
        (Step::Overflow, "overflow"),
    ] {
        provider.script(step);
        let report = live(&sandbox, &provider, &["--max-retries", "0", "s.jsonl"]).code(1).report();
        let message = report["message"].as_str().expect("a message");
        assert!(message.starts_with(&format!("turn 1: {class}")), "{message}");
    }
}
