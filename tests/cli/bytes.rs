//! Any bytes: whatever stands in a line has an outcome that claw-record(5) tells, ends no program, and
//! costs no other record.

use std::env;
use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;

use crate::common::{AssertExt, Sandbox};
use crate::talks::words;

/// The transcript of every test.
const FILE: &str = "s.jsonl";

const BEFORE: &str = r#"{"type":"user","content":"before"}"#;
const AFTER: &str = r#"{"type":"assistant","content":"after"}"#;

/// A line, and what becomes of it.
struct Odd {
    line: Vec<u8>,
    /// How it is sent; none when it is passed over.
    sent: Option<String>,
    /// What `claw-rebuild` says of it.
    found: &'static [&'static str],
    /// What only `claw-check` says of it.
    noted: &'static [&'static str],
    /// Whether `claw-append` takes it.
    appended: bool,
}

impl Odd {
    /// A line that is sent with this in it.
    fn sent(line: impl Into<Vec<u8>>, sent: &str) -> Odd {
        let (line, sent) = (line.into(), Some(sent.to_owned()));
        Odd { line, sent, found: &[], noted: &[], appended: true }
    }

    /// A line that is passed over, and not appended.
    fn skipped(line: impl Into<Vec<u8>>, found: &'static [&'static str]) -> Odd {
        Odd { line: line.into(), sent: None, found, noted: &[], appended: false }
    }

    fn noted(self, noted: &'static [&'static str]) -> Odd {
        Odd { noted, ..self }
    }

    fn found(self, found: &'static [&'static str]) -> Odd {
        Odd { found, ..self }
    }

    fn not_appended(self) -> Odd {
        Odd { appended: false, ..self }
    }

    #[track_caller]
    fn try_it(&self) {
        let sandbox = Sandbox::new();
        let line = self.line.as_slice();
        let file = [BEFORE.as_bytes(), line, AFTER.as_bytes(), b""].join(&b'\n');
        sandbox.cmd("claw-append").arg(FILE).write_stdin("").assert().success();
        sandbox.write(FILE, &file);

        let run = sandbox.cmd("claw-rebuild").args(["--log", "json", FILE]).assert();
        let run = self.is_sent(run.success());
        let run = run.stdout(contains("before")).stdout(contains("after"));
        assert_eq!(rules(run.stderr_text()), self.found, "{}", self.name());

        let check = sandbox.cmd("claw-check").arg(FILE).assert();
        assert!(check.get_output().status.code().is_some(), "an exit\n{check}");
        let said = rules(&check.stdout_text());
        for rule in self.found.iter().chain(self.noted) {
            assert!(said.iter().any(|said| said == rule), "{}: {said:?}", self.name());
        }

        // Weighing long texts takes long in a build for tests; there is a test for that.
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
                "messages as they were\n{cut}"
            );
        }

        sandbox
            .cmd("claw-append")
            .arg("new.jsonl")
            .write_stdin(line)
            .assert()
            .code(if self.appended { 0 } else { 65 });
        if self.appended {
            self.is_sent(sandbox.cmd("claw-rebuild").arg("new.jsonl").assert().success());
        }
    }

    /// The message is there, or is not.
    #[track_caller]
    fn is_sent(&self, run: Assert) -> Assert {
        match &self.sent {
            Some(sent) => run.stdout(contains(sent)),
            None => run.stdout(contains("odd").not()),
        }
    }

    fn name(&self) -> String {
        String::from_utf8_lossy(&self.line[..self.line.len().min(100)]).into_owned()
    }
}

/// The rules that are named in JSON lines.
fn rules(lines: &str) -> Vec<String> {
    let rule = |line: &str| Some(line.split_once(r#""rule":""#)?.1.split('"').next()?.to_owned());
    let mut rules: Vec<String> = lines.lines().filter_map(rule).collect();
    rules.retain(|rule| rule != "open-mode");
    rules
}

/// A user's record of this content.
fn user(content: &str) -> String {
    format!(r#"{{"type":"user","content":{content}}}"#)
}

/// So many arrays, one in the other.
fn arrays(count: usize) -> String {
    format!("{}{}", "[".repeat(count), "]".repeat(count))
}

/// Records that are nested so deep, themselves included, in content, in the input of a call, in a result
/// and where nobody looks.
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
        Odd::sent(user(text), sent).noted(&["lone-surrogate"]).try_it();
        let blocks = format!(r#"[{{"type":"text","text":{text}}}]"#);
        Odd::sent(user(&blocks), sent).noted(&["lone-surrogate"]).try_it();
    }
}

#[test]
fn v22_bytes_that_are_not_utf_8_cost_their_line() {
    for bytes in [&b"\xff"[..], b"\xe6\x97", b"\xed\xa0\xbd", b"\xc0\x80", b"\xf5\x80\x80\x80"] {
        let line = [br#"{"type":"user","content":"odd"#, bytes, br#""}"#].concat();
        Odd::skipped(line, &["invalid-utf8"]).try_it();
    }
}

#[test]
fn a_6_nul_bytes_around_a_record_are_passed_over() {
    let record = user(r#""odd""#);
    for (before, after) in [("\0\0\0", ""), ("", "\0"), ("\0", "\0\0")] {
        let line = format!("{before}{record}{after}");
        Odd::sent(line, r#""odd""#).found(&["nul-bytes"]).not_appended().try_it();
    }
    Odd::skipped("\0".repeat(700), &["nul-bytes"]).try_it();
    Odd::skipped(user("\"odd\0\""), &["bad-json"]).try_it();
    Odd::sent(user(r#""odd \u0000""#), r#""odd \u0000""#).try_it();
}

#[test]
fn v5_a_byte_order_mark_and_carriage_returns_are_no_part_of_a_record() {
    let record = user(r#""odd""#);
    Odd::sent(format!("{record}\r"), r#""odd""#).try_it();
    Odd::sent(format!(" \t{record} \r"), r#""odd""#).try_it();
    // A mark in the middle of a file, where two were joined, is a word more; alone, the line is the first.
    let joined = Odd::sent(format!("\u{feff}{record}"), r#""odd""#);
    joined.found(&["not-an-object", "fused-line"]).try_it();
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
fn audit_25_a_byte_order_mark_before_the_first_line_is_no_part_of_it() {
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
    // The same in a file and in messages, whether or not there is a second line.
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
fn audit_25_a_raw_carriage_return_between_values_is_written_as_a_space() {
    let sandbox = Sandbox::new();
    let call =
        "{\"type\":\"tool_use\",\r\"tool_use_id\":\"t\",\"name\":\"f\",\"input\":{\"a\":\r[\r1]}}";
    let lines = [user("[\r{\"type\":\"text\",\r\"text\":\"odd\"}]"), call.to_owned()].join("\n");
    sandbox.cmd("claw-append").arg(FILE).write_stdin(lines).assert().success();
    let text = sandbox.read_text(FILE);
    assert!(!text.contains('\r') && text.contains("[ {") && text.contains(": [ 1]"), "{text:?}");
    assert_eq!(text.lines().count(), 2);
    sandbox.cmd("claw-check").arg(FILE).assert().success();
    // In a string it is no JSON.
    let raw = user("\"odd\r\"");
    sandbox.cmd("claw-append").arg(FILE).write_stdin(raw).assert().code(65);
    // What another program wrote is sent on as a line for every reader, too.
    sandbox.write("other.jsonl", call);
    let open = sandbox.cmd("claw-rebuild").args(["--open", "other.jsonl"]).assert().success();
    assert!(!open.stdout_text().contains('\r'), "no carriage return\n{open}");
}

#[test]
fn b_5_v8_line_separators_of_others_split_no_record() {
    for separator in ["\u{2028}", "\u{2029}", "\u{85}"] {
        let sandbox = Sandbox::new();
        let text = format!(r#""odd {separator} odd""#);
        sandbox.write(FILE, user(&text));
        // Read raw, sent as they are; appended, they are escaped.
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
fn v8_control_characters_are_kept_as_escapes_and_none_may_stand_raw() {
    for escape in [r"\u000b", r"\f", r"\b", r"\u001b[31m", r"\u007f", r"\u0085", r"\/"] {
        let text = format!(r#""odd {escape}""#);
        Odd::sent(user(&text), &text).try_it();
    }
    for raw in ["\u{b}", "\u{c}", "\t", "\u{1b}", "\r"] {
        Odd::skipped(user(&format!(r#""odd {raw} ""#)), &["bad-json"]).try_it();
    }
}

#[test]
fn b_6_v8_numbers_and_members_keep_their_bytes() {
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
        Odd::sent(user(&format!("[{block}]")), &block).try_it();
    }
}

#[test]
fn b_8_of_a_member_that_comes_twice_the_last_one_counts() {
    let twice = r#"{"type":"user","content":"lost","content":"odd"}"#;
    Odd::sent(twice, r#""odd""#).noted(&["name-twice"]).try_it();
    Sandbox::new()
        .cmd("claw-rebuild")
        .write_stdin(twice)
        .assert()
        .success()
        .stdout("{\"role\":\"user\",\"content\":\"odd\"}\n");
}

// ---- depth -----------------------------------------------------------------------------------

#[test]
fn b_7_a_record_is_read_up_to_its_depth_and_passed_over_beyond() {
    // The call stays open and the result has no call; what counts is that they are read.
    let outcomes: [(&str, &[&str]); 4] =
        [(r#""text":"odd""#, &[]), (r#""id":"odd""#, &[]), ("", &["orphan-result"]), ("", &[])];
    for (line, (sent, found)) in nested(1000).into_iter().zip(outcomes) {
        Odd::sent(line, sent).found(found).try_it();
    }
    for depth in [1001, 10_000] {
        for line in nested(depth) {
            Odd::skipped(line, &["too-deep"]).try_it();
        }
    }
}

#[test]
fn b_7_a_million_arrays_end_no_program() {
    const MILLION: usize = 1_000_000;
    for line in nested(MILLION) {
        Odd::skipped(line, &["too-deep"]).try_it();
    }
    Odd::skipped(arrays(MILLION), &["not-an-object"]).try_it();
    Odd::skipped("[".repeat(MILLION), &["not-an-object"]).try_it();
    Odd::skipped(r#"{"a":"#.repeat(MILLION), &["torn-line"]).try_it();
    Odd::skipped(user(&r#"[{"odd":"#.repeat(MILLION / 2)), &["bad-json"]).try_it();
}

#[test]
fn b_7_what_rebuild_gives_every_filter_takes_and_what_is_deeper_none() {
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
        let what = format!("{program}: cannot read '<stdin>' line 1: nested more than 1002 deep\n");
        bad.code(65).stdout("").stderr(what.clone());
    }
}

// ---- length ----------------------------------------------------------------------------------

#[test]
fn v8_a_string_of_20_mib_keeps_its_bytes() {
    let text = format!(r#""odd {}""#, "日本 \\n".repeat(20 * 1024 * 1024 / 9));
    Odd::sent(user(&text), &text).try_it();
}

/// A long line goes through every program; what it prints is the length of what came out.
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
fn b_7_a_long_torn_line_costs_itself() {
    let sandbox = Sandbox::new();
    let block = r#"{"type":"text","text":"odd"},"#;
    let torn = |blocks| format!(r#"{{"type":"user","content":[{}"#, block.repeat(blocks));
    // A whole record behind a torn one is found, wherever it begins.
    let lines = [BEFORE, &torn(100_000), AFTER, &(torn(1000) + BEFORE)].join("\n");
    sandbox.write(FILE, lines);
    let run = sandbox.cmd("claw-rebuild").args(["--log", "json", FILE]).assert().success();
    assert_eq!(rules(run.stderr_text()), ["torn-line", "torn-line", "fused-line"]);
    run.stdout(contains("before")).stdout(contains("after"));
}
