//! Any bytes in a line of a transcript have the outcome that claw-record(5) documents, crash no program, and affect
//! no other record.

use std::env;
use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;

use crate::common::{AssertExt, Sandbox};
use crate::conversations::words;

/// The name of the transcript.
const FILE: &str = "s.jsonl";

const BEFORE: &str = r#"{"type":"user","content":"before"}"#;
const AFTER: &str = r#"{"type":"assistant","content":"after"}"#;

/// A line and its expected outcome.
struct OddLine {
    line: Vec<u8>,
    /// The text that its message contains; `None` if the line is skipped.
    sent: Option<String>,
    /// The rules that `claw-rebuild` reports.
    found: &'static [&'static str],
    /// The rules that only `claw-check` reports.
    noted: &'static [&'static str],
    /// True if `claw-append` accepts the line.
    appended: bool,
}

impl OddLine {
    /// A line whose message contains `sent`.
    fn sent(line: impl Into<Vec<u8>>, sent: &str) -> OddLine {
        let (line, sent) = (line.into(), Some(sent.to_owned()));
        OddLine { line, sent, found: &[], noted: &[], appended: true }
    }

    /// A line that is skipped, and that `claw-append` rejects.
    fn skipped(line: impl Into<Vec<u8>>, found: &'static [&'static str]) -> OddLine {
        OddLine { line: line.into(), sent: None, found, noted: &[], appended: false }
    }

    fn noted(self, noted: &'static [&'static str]) -> OddLine {
        OddLine { noted, ..self }
    }

    fn found(self, found: &'static [&'static str]) -> OddLine {
        OddLine { found, ..self }
    }

    fn not_appended(self) -> OddLine {
        OddLine { appended: false, ..self }
    }

    #[track_caller]
    fn check(&self) {
        let sandbox = Sandbox::new();
        let line = self.line.as_slice();
        let file = [BEFORE.as_bytes(), line, AFTER.as_bytes(), b""].join(&b'\n');
        sandbox.cmd("claw-append").arg(FILE).write_stdin("").assert().success();
        sandbox.write(FILE, &file);

        let run = sandbox.cmd("claw-rebuild").args(["--log", "json", FILE]).assert();
        let run = self.assert_sent(run.success());
        let run = run.stdout(contains("before")).stdout(contains("after"));
        assert_eq!(rules(run.stderr_text()), self.found, "{}", self.name());

        let check = sandbox.cmd("claw-check").arg(FILE).assert();
        assert!(check.get_output().status.code().is_some(), "killed by a signal\n{check}");
        let reported = rules(&check.stdout_text());
        for rule in self.found.iter().chain(self.noted) {
            assert!(reported.iter().any(|name| name == rule), "{}: {reported:?}", self.name());
        }

        // Counting the tokens of long messages is slow in an unoptimised build;
        // `b_7_a_line_may_be_as_long_as_memory_allows` covers them.
        if run.get_output().stdout.len() < 1 << 20 {
            let filter = |name| sandbox.cmd(name).args(["--window", "99000000"]);
            filter("claw-estimate")
                .write_stdin(run.get_output().stdout.clone())
                .assert()
                .success()
                .stderr("");
            let cut = filter("claw-truncate")
                .write_stdin(run.get_output().stdout.clone())
                .assert()
                .success();
            assert!(
                cut.get_output().stdout == run.get_output().stdout,
                "the messages have changed\n{cut}"
            );
        }

        sandbox
            .cmd("claw-append")
            .arg("new.jsonl")
            .write_stdin(line)
            .assert()
            .code(if self.appended { 0 } else { 65 });
        if self.appended {
            self.assert_sent(sandbox.cmd("claw-rebuild").arg("new.jsonl").assert().success());
        }
    }

    /// Checks that the message is present, or absent if the line is skipped.
    #[track_caller]
    fn assert_sent(&self, run: Assert) -> Assert {
        match &self.sent {
            Some(sent) => run.stdout(contains(sent)),
            None => run.stdout(contains("odd").not()),
        }
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.line[..self.line.len().min(100)]).into_owned()
    }
}

/// Returns the rules named in JSON findings, except `open-mode`.
fn rules(lines: &str) -> Vec<String> {
    let rule = |line: &str| Some(line.split_once(r#""rule":""#)?.1.split('"').next()?.to_owned());
    let mut rules: Vec<String> = lines.lines().filter_map(rule).collect();
    rules.retain(|rule| rule != "open-mode");
    rules
}

/// Returns a user record with this content, given as JSON.
fn user(content: &str) -> String {
    format!(r#"{{"type":"user","content":{content}}}"#)
}

/// Returns `count` nested arrays.
fn arrays(count: usize) -> String {
    format!("{}{}", "[".repeat(count), "]".repeat(count))
}

/// Returns records that are nested `depth` levels deep, counting the record itself: in content, in the input of a
/// call, in a result, and in a record of an unknown type.
fn nested(depth: usize) -> [String; 4] {
    [
        user(&format!(r#"[{{"type":"text","text":"odd","x":{}}}]"#, arrays(depth - 3))),
        format!(
            r#"{{"type":"tool_use","tool_use_id":"odd","name":"f","input":{{"x":{}}}}}"#,
            arrays(depth - 2)
        ),
        format!(
            r#"{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":"odd","x":{}}}]}}"#,
            arrays(depth - 3)
        ),
        format!(r#"{{"type":"new_kind","odd":{}}}"#, arrays(depth - 1)),
    ]
}

// ---- bytes -----------------------------------------------------------------------------------

#[test]
fn b_2_b_3_lone_surrogates_are_read_and_sent_as_replacement_characters() {
    for (text, sent) in [
        (r#""odd \ud83d""#, r#""odd \ufffd""#),
        (r#""\udc00 odd""#, r#""\ufffd odd""#),
        (r#""odd \ude00\ud83d""#, r#""odd \ufffd\ufffd""#),
        (r#""odd \ud83d\ud83d\ude00""#, r#""odd \ufffd\ud83d\ude00""#),
    ] {
        OddLine::sent(user(text), sent).noted(&["lone-surrogate"]).check();
        let blocks = format!(r#"[{{"type":"text","text":{text}}}]"#);
        OddLine::sent(user(&blocks), sent).noted(&["lone-surrogate"]).check();
    }
}

#[test]
fn v22_a_line_that_is_not_utf_8_is_skipped() {
    for bytes in [&b"\xff"[..], b"\xe6\x97", b"\xed\xa0\xbd", b"\xc0\x80", b"\xf5\x80\x80\x80"] {
        let line = [br#"{"type":"user","content":"odd"#, bytes, br#""}"#].concat();
        OddLine::skipped(line, &["invalid-utf8"]).check();
    }
}

#[test]
fn a_6_nul_bytes_around_a_record_are_ignored() {
    let record = user(r#""odd""#);
    for (before, after) in [("\0\0\0", ""), ("", "\0"), ("\0", "\0\0")] {
        let line = format!("{before}{record}{after}");
        OddLine::sent(line, r#""odd""#).found(&["nul-bytes"]).not_appended().check();
    }
    OddLine::skipped("\0".repeat(700), &["nul-bytes"]).check();
    OddLine::skipped(user("\"odd\0\""), &["bad-json"]).check();
    OddLine::sent(user(r#""odd \u0000""#), r#""odd \u0000""#).check();
}

#[test]
fn v5_a_byte_order_mark_and_carriage_returns_are_not_part_of_a_record() {
    let record = user(r#""odd""#);
    OddLine::sent(format!("{record}\r"), r#""odd""#).check();
    OddLine::sent(format!(" \t{record} \r"), r#""odd""#).check();
    // A byte order mark in the middle of a file, where it ends up if two files are concatenated, is reported.
    let joined = OddLine::sent(format!("\u{feff}{record}"), r#""odd""#);
    joined.found(&["not-an-object", "fused-line"]).check();
    let sandbox = Sandbox::new();
    sandbox.write(FILE, format!("\u{feff}{record}\r\n{AFTER}\r\n"));
    sandbox
        .cmd("claw-rebuild")
        .args(["--strict", FILE])
        .assert()
        .success()
        .stdout(contains(r#""odd""#));
}

#[test]
fn audit_25_a_byte_order_mark_before_the_first_line_is_ignored() {
    let sandbox = Sandbox::new();
    let marked = format!("\u{feff}{}\n", user(r#""odd""#));
    sandbox
        .cmd("claw-append")
        .args(["new.jsonl", "--tee"])
        .write_stdin(marked.clone())
        .assert()
        .success();
    let text = sandbox.read_text("new.jsonl");
    assert!(text.starts_with("{\"id\":\""), "{text}");
    // The same holds for an existing file and for messages.
    sandbox.write(FILE, format!("\u{feff}{text}"));
    let id = text[7..23].to_owned();
    let append = || sandbox.cmd("claw-append").args([FILE, "--expect-tail", &id]);
    append().write_stdin(AFTER).assert().success();
    append().write_stdin(AFTER).assert().code(75);
    sandbox.cmd("claw-rebuild").args(["--strict", FILE]).assert().success().stdout(contains("odd"));
    let message = "\u{feff}{\"role\":\"user\",\"content\":\"odd\"}\n";
    sandbox.cmd("claw-truncate").args(["--window", "9000"]).write_stdin(message).assert().success();
}

#[test]
fn audit_25_a_raw_carriage_return_between_values_becomes_a_space() {
    let sandbox = Sandbox::new();
    let call =
        "{\"type\":\"tool_use\",\r\"tool_use_id\":\"t\",\"name\":\"f\",\"input\":{\"a\":\r[\r1]}}";
    let lines = [user("[\r{\"type\":\"text\",\r\"text\":\"odd\"}]"), call.to_owned()].join("\n");
    sandbox.cmd("claw-append").arg(FILE).write_stdin(lines).assert().success();
    let text = sandbox.read_text(FILE);
    assert!(!text.contains('\r') && text.contains("[ {") && text.contains(": [ 1]"), "{text:?}");
    assert_eq!(text.lines().count(), 2);
    sandbox.cmd("claw-check").arg(FILE).assert().success();
    // In a string, a raw carriage return is invalid JSON.
    let raw = user("\"odd\r\"");
    sandbox.cmd("claw-append").arg(FILE).write_stdin(raw).assert().code(65);
    // A call from another program's file is also printed on one line.
    sandbox.write("other.jsonl", call);
    let open = sandbox.cmd("claw-rebuild").args(["--open", "other.jsonl"]).assert().success();
    assert!(!open.stdout_text().contains('\r'), "a carriage return is in the output\n{open}");
}

#[test]
fn b_5_v8_unicode_line_separators_do_not_split_a_record() {
    for separator in ["\u{2028}", "\u{2029}", "\u{85}"] {
        let sandbox = Sandbox::new();
        let text = format!(r#""odd {separator} odd""#);
        sandbox.write(FILE, user(&text));
        // claw-rebuild prints them unescaped; claw-append escapes them.
        sandbox
            .cmd("claw-rebuild")
            .args(["--strict", FILE])
            .assert()
            .success()
            .stdout(contains(&text));
        sandbox.cmd("claw-append").arg("new.jsonl").write_stdin(user(&text)).assert().success();
        assert!(!sandbox.read_text("new.jsonl").contains(separator));
        let run = sandbox.cmd("claw-rebuild").arg("new.jsonl").assert();
        assert_eq!(run.success().json_one()["content"], format!("odd {separator} odd"));
    }
}

#[test]
fn v8_escaped_control_characters_are_kept_and_raw_ones_are_invalid() {
    for escape in [r"\u000b", r"\f", r"\b", r"\u001b[31m", r"\u007f", r"\u0085", r"\/"] {
        let text = format!(r#""odd {escape}""#);
        OddLine::sent(user(&text), &text).check();
    }
    for raw in ["\u{b}", "\u{c}", "\t", "\u{1b}", "\r"] {
        OddLine::skipped(user(&format!(r#""odd {raw} ""#)), &["bad-json"]).check();
    }
}

#[test]
fn b_6_v8_numbers_and_unknown_members_keep_their_bytes() {
    for odd in [
        "19876543210987654321",
        "-123456789012345678901234567890",
        "9007199254740993",
        "1e400",
        "-0.0",
        "1.0",
        "1E+2",
        r#"{"z":1,"a":2,"z":3}"#,
        r#"{"\u0061":1,"a":2}"#,
    ] {
        let block = format!(r#"{{"x":{odd},"type":"text","text":"odd"}}"#);
        OddLine::sent(user(&format!("[{block}]")), &block).check();
    }
}

#[test]
fn b_8_the_last_of_two_members_with_the_same_name_counts() {
    let twice = r#"{"type":"user","content":"lost","content":"odd"}"#;
    OddLine::sent(twice, r#""odd""#).noted(&["duplicate-member"]).check();
    Sandbox::new()
        .cmd("claw-rebuild")
        .write_stdin(twice)
        .assert()
        .success()
        .stdout("{\"role\":\"user\",\"content\":\"odd\"}\n");
}

// ---- depth -----------------------------------------------------------------------------------

#[test]
fn b_7_a_record_that_is_nested_too_deep_is_skipped() {
    // The call has no result and the result has no call; this test needs only that both are read.
    let outcomes: [(&str, &[&str]); 4] =
        [(r#""text":"odd""#, &[]), (r#""id":"odd""#, &[]), ("", &["orphan-result"]), ("", &[])];
    for (line, (sent, found)) in nested(1000).into_iter().zip(outcomes) {
        OddLine::sent(line, sent).found(found).check();
    }
    for depth in [1001, 10_000] {
        for line in nested(depth) {
            OddLine::skipped(line, &["too-deep"]).check();
        }
    }
}

#[test]
fn b_7_a_million_nested_arrays_crash_no_program() {
    const MILLION: usize = 1_000_000;
    for line in nested(MILLION) {
        OddLine::skipped(line, &["too-deep"]).check();
    }
    OddLine::skipped(arrays(MILLION), &["not-an-object"]).check();
    OddLine::skipped("[".repeat(MILLION), &["not-an-object"]).check();
    OddLine::skipped(r#"{"a":"#.repeat(MILLION), &["torn-line"]).check();
    OddLine::skipped(user(&r#"[{"odd":"#.repeat(MILLION / 2)), &["bad-json"]).check();
}

#[test]
fn b_7_every_filter_accepts_the_deepest_output_of_rebuild_and_rejects_deeper_input() {
    let [_, call, _, _] = nested(1000);
    let result = nested(1000)[2].replace(r#""t""#, r#""odd""#);
    let sandbox = Sandbox::new();
    sandbox.write(FILE, [BEFORE, &call, &result].join("\n"));
    let run = sandbox.cmd("claw-rebuild").args(["--strict", "--ready", "--meta", FILE]).assert();
    let deepest = run.success().stdout_text();
    let deeper = format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"x","x":{}}}]}}"#,
        arrays(1000)
    );
    for (program, args) in [
        ("claw-estimate", &[][..]),
        ("claw-truncate", &["--window", "100000"]),
        ("claw-compact", &["--plan", "--window", "100000"]),
        ("claw-checkpoint", &["--if-due", "--window", "100000"]),
        ("claw-call", &["--dry-run", "--provider", "offline", "--model", "m"]),
    ] {
        if program == "claw-call" && !cfg!(feature = "http") {
            continue;
        }
        let good = sandbox.cmd(program).args(args).write_stdin(deepest.clone()).assert();
        // Three messages are too few to summarise.
        good.code(if program == "claw-compact" { 5 } else { 0 });
        let bad = sandbox.cmd(program).args(args).write_stdin(deeper.clone()).assert();
        let what =
            format!("{program}: cannot read '<stdin>' line 1: nested more than 1002 levels deep\n");
        bad.code(65).stdout("").stderr(what.clone());
    }
}

// ---- length ----------------------------------------------------------------------------------

#[test]
fn v8_a_string_of_20_mib_keeps_its_bytes() {
    let text = format!(r#""odd {}""#, "日本 \\n".repeat(20 * 1024 * 1024 / 9));
    OddLine::sent(user(&text), &text).check();
}

/// Appends, checks, rebuilds and estimates a transcript with a long line, and prints the size of its messages in
/// bytes.
const LONG: &str = r#"set -e
claw-append s.jsonl <batch
claw-append --user s.jsonl <hi
claw-check s.jsonl
claw-rebuild s.jsonl >messages
claw-estimate messages >/dev/null
wc -c <messages"#;

#[test]
fn b_7_a_line_may_be_as_long_as_memory_allows() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    let length = if is_full { 256 << 20 } else { 16 << 20 };
    let sandbox = Sandbox::new();
    let text = words(length / 5);
    sandbox
        .write("batch", format!("{BEFORE}\n{AFTER}\n{}\n{AFTER}\n", user(&format!(r#""{text}""#))));
    sandbox.write("hi", "hi");
    let run = sandbox.sh(LONG).timeout(Duration::from_secs(1200)).assert();
    let printed: usize = run.success().stdout_text().trim().parse().expect("a number");
    assert!((text.len()..text.len() + 500).contains(&printed), "{printed}");
}

#[test]
fn b_7_a_long_torn_line_affects_no_other_record() {
    let sandbox = Sandbox::new();
    let block = r#"{"type":"text","text":"odd"},"#;
    let torn = |blocks| format!(r#"{{"type":"user","content":[{}"#, block.repeat(blocks));
    // A complete record after a torn one on the same line is found.
    let lines = [BEFORE, &torn(100_000), AFTER, &(torn(1000) + BEFORE)].join("\n");
    sandbox.write(FILE, lines);
    let run = sandbox.cmd("claw-rebuild").args(["--log", "json", FILE]).assert().success();
    assert_eq!(rules(run.stderr_text()), ["torn-line", "torn-line", "fused-line"]);
    run.stdout(contains("before")).stdout(contains("after"));
}
