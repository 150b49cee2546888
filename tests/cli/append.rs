//! claw-append never changes the existing bytes of a file and loses no record that it acknowledged, even if the file
//! is damaged, the disk is full, other processes write, or the program is killed.

mod each;

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::Value;

use crate::common::{AssertExt, Cmd, Sandbox};

/// The name of the transcript.
const FILE: &str = "s.jsonl";

/// A record as a user pipes it to the program.
const HI: &str = r#"{"type":"user","content":"hi"}"#;

/// The line that the program writes to an empty file for [`HI`].
const HI_LINE: &str = r#"{"id":"e0f2898f768c891d","type":"user","ts":1767225600,"content":"hi"}"#;

/// A transcript of three records.
const TURN: &str = concat!(
    r#"{"id":"a1","type":"user","ts":1,"content":"ask"}"#,
    "\n",
    r#"{"id":"a2","type":"assistant","ts":2,"content":[{"type":"text","text":"answer"}]}"#,
    "\n",
    r#"{"id":"a3","type":"user","ts":3,"content":"ask 日本 \"again\" {\"type\":1}"}"#,
    "\n",
);

fn append(sandbox: &Sandbox) -> Cmd {
    sandbox.cmd("claw-append").arg(FILE)
}

/// Appends [`HI`] to a file with these bytes and returns the bytes that were added.
#[track_caller]
fn added_to(sandbox: &Sandbox, before: &[u8]) -> Vec<u8> {
    sandbox.write(FILE, before);
    append(sandbox).arg("--no-sync").write_stdin(HI).assert().success().stderr("").stdout("");
    let after = sandbox.read(FILE);
    assert!(after.starts_with(before), "the existing bytes have changed");
    after[before.len()..].to_vec()
}

/// Rebuilds the file; returns the text of each user message and the line numbers of the findings.
#[track_caller]
fn rebuilt(sandbox: &Sandbox) -> (Vec<String>, Vec<u64>) {
    let run = sandbox.cmd("claw-rebuild").args(["--log", "json", FILE]).assert().success();
    let findings = run.stderr_text().lines().map(|line| {
        let finding: Value = serde_json::from_str(line).expect("a diagnostic in JSON");
        finding["line"].as_u64()
    });
    // The last diagnostic is the count of findings; it has no line.
    let findings = findings.flatten().collect();
    let users = run.json().into_iter().filter(|message| message["role"] == "user");
    (users.flat_map(|message| texts(&message["content"])).collect(), findings)
}

fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

/// Checks that the file holds exactly these bytes and that no other file was created beside it.
#[track_caller]
fn assert_unchanged(sandbox: &Sandbox, bytes: &[u8]) {
    assert!(sandbox.read(FILE) == bytes, "the file has changed");
    let mut names: Vec<_> = fs::read_dir(sandbox.dir())
        .expect("the sandbox")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, [FILE, "state", "tmp"]);
}

// ---- the end of the file --------------------------------------------------------------------

#[test]
fn v1_records_are_appended_to_a_missing_an_empty_and_a_complete_file() {
    let sandbox = Sandbox::new();
    append(&sandbox).write_stdin(HI).assert().success().stdout("").stderr("");
    assert_eq!(sandbox.read_text(FILE), format!("{HI_LINE}\n"));
    assert_eq!(added_to(&sandbox, b""), format!("{HI_LINE}\n").as_bytes());

    let added = added_to(&sandbox, TURN.as_bytes());
    assert!(added.starts_with(b"{\"id\":\"") && added.ends_with(b"\"content\":\"hi\"}\n"));
    assert_eq!(rebuilt(&sandbox), (users(&["ask", AGAIN, "hi"]), vec![]));
}

/// The text of the last record of [`TURN`].
const AGAIN: &str = r#"ask 日本 "again" {"type":1}"#;

fn users(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn v2_a_missing_final_line_feed_is_added() {
    let sandbox = Sandbox::new();
    let added = added_to(&sandbox, TURN.trim_end().as_bytes());
    assert!(added.starts_with(b"\n{\"id\":\""));
    assert_eq!(rebuilt(&sandbox), (users(&["ask", AGAIN, "hi"]), vec![]));
}

#[test]
fn v3_a_torn_last_line_affects_no_other_record() {
    let torn: [&[u8]; 4] = [
        br#"{"id":"a4","type":"user","ts":4,"content":"tor"#,
        b"{\"id\":\"a4\",\"type\":\"user\",\"ts\":4,\"content\":\"\xe6\x97",
        b"\0\0\0\0\0\0\0\0",
        b"{\"id\":\"a4\",\"type\":\"user\"\0\0\0\0",
    ];
    for end in torn {
        let sandbox = Sandbox::new();
        let added = added_to(&sandbox, &[TURN.as_bytes(), end].concat());
        assert!(added.starts_with(b"\n{\"id\":\""), "the record does not begin a new line");
        let (texts, mut lines) = rebuilt(&sandbox);
        lines.dedup();
        assert_eq!((texts, lines), (users(&["ask", AGAIN, "hi"]), vec![4]), "{end:?}");
    }
}

#[test]
fn v3_a_line_of_nul_bytes_is_kept_as_an_invalid_line() {
    let sandbox = Sandbox::new();
    let added = added_to(&sandbox, &[TURN.as_bytes(), b"\0\0\0\n"].concat());
    assert!(added.starts_with(b"{\"id\":\""));
    assert_eq!(rebuilt(&sandbox), (users(&["ask", AGAIN, "hi"]), vec![4]));
}

#[test]
fn v5_crlf_bom_and_blank_lines_are_kept_and_read() {
    let sandbox = Sandbox::new();
    let before = format!("\u{feff}{}\r\n   \r\n", TURN.replace('\n', "\r\n\r\n"));
    added_to(&sandbox, before.as_bytes());
    assert_eq!(rebuilt(&sandbox), (users(&["ask", AGAIN, "hi"]), vec![]));

    // In a batch, blank lines and carriage returns are dropped.
    let batch = format!("\r\n{HI}\r\n\n  \n\t\r\n{HI}");
    fs::remove_file(sandbox.path(FILE)).expect("a file");
    append(&sandbox).write_stdin(batch).assert().success();
    assert_eq!(sandbox.read_json(FILE).len(), 2);
    assert!(!sandbox.read_text(FILE).contains('\r'));
}

#[test]
fn a_1_a_file_cut_at_any_byte_of_its_last_record_can_be_appended_to() {
    let sandbox = Sandbox::new();
    let last = TURN.trim_end().rfind('\n').expect("three lines") + 1;
    for cut in last..=TURN.len() {
        added_to(&sandbox, &TURN.as_bytes()[..cut]);
        let (texts, mut lines) = rebuilt(&sandbox);
        lines.dedup();
        let expected = match cut {
            // The last record is missing completely, or it is complete, with or without its line feed.
            _ if cut == last => (users(&["ask", "hi"]), vec![]),
            _ if cut >= TURN.len() - 1 => (users(&["ask", AGAIN, "hi"]), vec![]),
            _ => (users(&["ask", "hi"]), vec![3]),
        };
        assert_eq!((texts, lines), expected, "cut at byte {cut}");
    }
}

// ---- ids ------------------------------------------------------------------------------------

/// Computes the ids of a transcript with standard tools. An id is a hash of the line before, a line feed, and the
/// line without its id.
const CHAIN: &str = r#"
while IFS= read -r line; do
    body=$(printf '%s' "$line" | sed 's/^{"id":"[0-9a-f]*",/{/')
    printf '%s\n%s' "$before" "$body" | sha256sum | cut -c 1-16
    before=$line
done"#;

#[test]
fn each_id_is_a_hash_of_the_line_before_and_its_own_line() {
    let sandbox = Sandbox::new();
    let record =
        r#"{"type":"assistant","content":[{"type":"text","text":"\\ \"日\" %s"}],"n":1e2}"#;
    append(&sandbox).write_stdin([HI, record, HI].join("\n")).assert().success();
    append(&sandbox).write_stdin(HI).assert().success();
    let expected = sandbox.sh(CHAIN).write_stdin(sandbox.read(FILE)).assert().success().lines();
    let ids: Vec<String> = sandbox
        .read_json(FILE)
        .iter()
        .map(|record| record["id"].as_str().expect("an id").to_owned())
        .collect();
    assert_eq!(ids, expected);
    assert_eq!(ids.len(), 4);
}

#[test]
fn the_id_after_a_torn_line_covers_the_torn_line() {
    let sandbox = Sandbox::new();
    added_to(&sandbox, b"{\"type\":\"user\",\"con");
    let line = sandbox.read_text(FILE).lines().nth(1).expect("a second line").to_owned();
    let hash = sandbox.sh(CHAIN).write_stdin(sandbox.read(FILE)).assert().success().lines();
    assert!(line.starts_with(&format!(r#"{{"id":"{}""#, hash[1])), "{line}");
}

#[test]
fn line_separators_are_escaped() {
    let sandbox = Sandbox::new();
    let content = "a\u{2028}b\u{2029}c\u{85}d";
    append(&sandbox).args(["--user"]).write_stdin(content).assert().success();
    append(&sandbox)
        .write_stdin(format!(r#"{{"type":"user","content":"{content}"}}"#))
        .assert()
        .success();
    let text = sandbox.read_text(FILE);
    assert_eq!(text.matches(r#""content":"a\u2028b\u2029c\u0085d"}"#).count(), 2, "{text}");
    assert_eq!(sandbox.read_json(FILE)[1]["content"], content);
}

#[test]
fn ids_in_the_input_are_replaced_except_that_of_a_session() {
    let sandbox = Sandbox::new();
    let header = r#"{"type":"session","id":"81efc48888b7","key":"main:cli:user","label":"",
        "created":"2026-01-01T00:00:00+00:00","version":1}"#
        .replace("\n        ", "");
    let copied = r#"{"id":"ffffffffffffffff","type":"user","ts":5.25,"content":"hi","x":[1e2]}"#;
    append(&sandbox).write_stdin(format!("{header}\n{copied}")).assert().success();
    let lines = sandbox.read_text(FILE);
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines[0].starts_with(r#"{"id":"81efc48888b7","type":"session","ts":1767225600,"key""#));
    let chain = sandbox.sh(CHAIN).write_stdin(sandbox.read(FILE)).assert().success().lines();
    let rest = r#","type":"user","ts":5.25,"content":"hi","x":[1e2]}"#;
    assert_eq!(lines[1], format!(r#"{{"id":"{}"{rest}"#, chain[1]));
}

// ---- the batch ------------------------------------------------------------------------------

#[test]
fn one_invalid_line_rejects_the_whole_batch_and_is_reported() {
    for (bad, why) in [
        ("not json", "not a JSON object"),
        ("[1]", "not a JSON object"),
        (r#"{"type":"user","content":"torn"#, "not a JSON object"),
        (r#"{"type":"user","content":"hi"}{"type":"user","content":"hi"}"#, "not a JSON object"),
        (r#"{"content":"hi"}"#, "no 'type'"),
        (r#"{"type":"user"}"#, "no 'content'"),
        (r#"{"type":"tool_result","content":"x"}"#, "no 'tool_use_id'"),
        (r#"{"type":"message","message":{"role":"user","content":"x"}}"#, "pi, OpenClaw or GoClaw"),
    ] {
        let sandbox = Sandbox::new();
        let batch = format!("{HI}\n\n{bad}\n{HI}\n");
        let place = "claw-append: cannot append '<stdin>' line 3: ";
        append(&sandbox)
            .write_stdin(batch.clone())
            .assert()
            .code(65)
            .stdout("")
            .stderr(contains(why));
        assert!(!sandbox.exists(FILE), "{bad} created the file");
        sandbox.write(FILE, TURN);
        let run = append(&sandbox)
            .arg("--tee")
            .write_stdin(batch)
            .assert()
            .code(65)
            .stdout("")
            .stderr(contains(place))
            .stderr(contains(why));
        assert!(run.stderr_text().lines().count() == 1, "expected one line\n{run}");
        assert_unchanged(&sandbox, TURN.as_bytes());
    }
}

#[test]
fn a_batch_that_is_not_utf_8_is_rejected() {
    let sandbox = Sandbox::new();
    let batch = [HI.as_bytes(), b"\n{\"type\":\"user\",\"content\":\"\xff\"}\n"].concat();
    append(&sandbox)
        .write_stdin(batch)
        .assert()
        .code(65)
        .stderr(contains("'<stdin>' line 2: not UTF-8"));
    append(&sandbox)
        .arg("--user")
        .write_stdin(*b"\xff")
        .assert()
        .code(65)
        .stderr(contains("not UTF-8"));
    assert!(!sandbox.exists(FILE));
}

#[test]
fn an_empty_batch_changes_nothing() {
    let sandbox = Sandbox::new();
    append(&sandbox).write_stdin("\n  \n").assert().success().stdout("").stderr("");
    assert!(!sandbox.exists(FILE));
    sandbox.write(FILE, "torn");
    append(&sandbox).arg("--tee").assert().success().stdout("");
    assert_unchanged(&sandbox, b"torn");
}

#[test]
fn plain_text_becomes_one_record() {
    let input = "two\nlines, \"quoted\" \\ \ttab\n\n";
    let content = r#""two\nlines, \"quoted\" \\ \ttab\n""#;
    let text = format!(r#"[{{"type":"text","text":{content}}}]"#);
    for (args, record) in [
        (vec!["--user"], format!(r#""type":"user","ts":1767225600,"content":{content}}}"#)),
        (vec!["--assistant"], format!(r#""type":"assistant","ts":1767225600,"content":{text}}}"#)),
        (
            vec!["--tool-result", "t\"1"],
            format!(
                r#""type":"tool_result","ts":1767225600,"tool_use_id":"t\"1","content":{content}}}"#
            ),
        ),
        (
            vec!["--tool-result", "t1", "--is-error"],
            format!(
                r#""type":"tool_result","ts":1767225600,"tool_use_id":"t1","content":{content},"is_error":true}}"#
            ),
        ),
    ] {
        let sandbox = Sandbox::new();
        append(&sandbox).args(&args).write_stdin(input).assert().success();
        let line = sandbox.read_text(FILE);
        assert_eq!(line[r#"{"id":"0123456789abcdef","#.len()..], format!("{record}\n"), "{args:?}");
    }
}

#[test]
fn plain_text_options_are_mutually_exclusive() {
    let sandbox = Sandbox::new();
    for args in [vec!["--user", "--assistant"], vec!["--is-error"], vec!["--user", "--is-error"]] {
        append(&sandbox).args(args).write_stdin("hi").assert().code(2).stdout("");
    }
    assert!(!sandbox.exists(FILE));
}

#[test]
fn tee_prints_the_records_as_written() {
    let sandbox = Sandbox::new();
    sandbox.write(FILE, "{\"type\":");
    let run = append(&sandbox)
        .arg("--tee")
        .write_stdin(format!("{HI}\n{HI}\n"))
        .assert()
        .success()
        .stderr("");
    assert_eq!(sandbox.read_text(FILE), format!("{{\"type\":\n{}", run.stdout_text()));
    assert_eq!(run.lines().len(), 2);
}

// ---- redaction ------------------------------------------------------------------------------

/// Two patterns; a match of the second one contains a match of the first.
const PATTERNS: &str =
    "# secrets that must not be stored\nkey sk-\\w{4,}\nassignment\t(?i)token=\\S+\n";

fn redacting(sandbox: &Sandbox) -> Cmd {
    sandbox.write("patterns", PATTERNS);
    append(sandbox).args(["--redact", "patterns"])
}

#[test]
fn t_3_matches_of_a_pattern_are_redacted_before_the_id_is_computed() {
    let sandbox = Sandbox::new();
    let call = r#"{"type":"tool_use","tool_use_id":"sk-call","name":"sk-tool","input":{"sk-name":"sk-12345","n":1e2}}"#;
    redacting(&sandbox).write_stdin([HI, call].join("\n")).assert().success().stdout("").stderr("");
    let result = "$ env\nTOKEN=sk-12345\n";
    let run = redacting(&sandbox)
        .args(["--tee", "--tool-result", "sk-call"])
        .write_stdin(result)
        .assert();
    assert!(
        sandbox.read_text(FILE).ends_with(&run.success().stdout_text()),
        "--tee prints the redacted record"
    );
    let lines = sandbox.read_text(FILE);
    let lines: Vec<&str> =
        lines.lines().map(|line| &line[r#"{"id":"0123456789abcdef","#.len()..]).collect();
    assert_eq!(
        lines,
        [
            r#""type":"user","ts":1767225600,"content":"hi"}"#,
            r#""type":"tool_use","ts":1767225600,"tool_use_id":"sk-call","name":"sk-tool","input":{"[REDACTED:key]":"[REDACTED:key]","n":1e2},"redacted":["key"]}"#,
            r#""type":"tool_result","ts":1767225600,"tool_use_id":"sk-call","content":"$ env\n[REDACTED:assignment]","redacted":["assignment","key"]}"#,
        ]
    );
    sandbox.cmd("claw-check").arg(FILE).assert().success().stdout("");
}

#[test]
fn t_3_nothing_is_written_if_the_patterns_cannot_be_used() {
    let sandbox = Sandbox::new();
    sandbox.write("bad", "key sk-\\w+\n\nkey (\n");
    sandbox.write("none", "# nothing\n");
    for (file, code, why) in [
        (
            "bad",
            78,
            "cannot use patterns 'bad' line 3: invalid regular expression: found open group",
        ),
        ("none", 78, "cannot use patterns 'none': it has no patterns"),
        ("missing", 74, "cannot read 'missing'"),
    ] {
        let run = append(&sandbox)
            .args(["--redact", file])
            .write_stdin(HI)
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(why));
        assert!(run.stderr_text().lines().count() == 1, "expected one line\n{run}");
    }
    assert!(!sandbox.exists(FILE));
}

#[test]
fn redacted_thinking_is_not_sent() {
    let reply = |thought: &str| {
        format!(
            r#"{{"type":"assistant","content":[{{"type":"thinking","thinking":"{thought}","signature":"c2ln"}},{{"type":"text","text":"done"}}]}}"#
        )
    };
    let sandbox = Sandbox::new();
    redacting(&sandbox)
        .write_stdin([HI, &reply("it is [REDACTED:key]")].join("\n"))
        .assert()
        .success();
    redacting(&sandbox).write_stdin([HI, &reply("it is sk-12345")].join("\n")).assert().success();
    let run = sandbox
        .cmd("claw-rebuild")
        .arg(FILE)
        .assert()
        .success()
        .stderr(contains("unsigned-thinking: 's.jsonl' line 4"))
        .stderr(contains("1 finding"));
    let thoughts: Vec<bool> =
        run.lines().iter().map(|line| line.contains(r#""type":"thinking""#)).collect();
    assert_eq!(thoughts, [false, true, false, false]);
}

// ---- other writers --------------------------------------------------------------------------

/// Appends [`HI`] if the last record has the id `tail`.
fn expecting(sandbox: &Sandbox, tail: &str) -> Assert {
    append(sandbox).args(["--expect-tail", tail]).write_stdin(HI).assert()
}

#[test]
fn expect_tail_accepts_only_the_first_of_two_writers() {
    let sandbox = Sandbox::new();
    sandbox.write(FILE, TURN);
    expecting(&sandbox, "a2").code(75).stderr(contains("its last record is 'a3', not 'a2'"));
    assert_unchanged(&sandbox, TURN.as_bytes());
    expecting(&sandbox, "a3").success();
    expecting(&sandbox, "a3").code(75);
    assert_eq!(sandbox.read_text(FILE).lines().count(), 4);
}

#[test]
fn expect_tail_accepts_the_offset_of_a_line_without_an_id() {
    let sandbox = Sandbox::new();
    sandbox.write(FILE, format!("{HI}\n{HI}\n"));
    expecting(&sandbox, "@0").code(75);
    expecting(&sandbox, &format!("@{}", HI.len() + 1)).success();
}

#[test]
fn audit_25_expect_tail_is_checked_for_an_empty_batch_too() {
    let sandbox = Sandbox::new();
    let nothing = |tail: &str| {
        append(&sandbox)
            .args(["--tee", "--expect-tail", tail])
            .write_stdin("\n")
            .assert()
            .stdout("")
            .get_output()
            .status
            .code()
    };
    assert_eq!((nothing("a3"), nothing("")), (Some(75), Some(0)));
    assert!(!sandbox.exists(FILE));
    // An empty batch does not add the missing final line feed.
    for text in [TURN, TURN.trim_end()] {
        sandbox.write(FILE, text);
        assert_eq!((nothing("a2"), nothing(""), nothing("a3")), (Some(75), Some(75), Some(0)));
        assert_unchanged(&sandbox, text.as_bytes());
    }
}

#[test]
fn audit_25_a_record_with_two_type_members_gets_one_ts() {
    let sandbox = Sandbox::new();
    let twice = r#"{"type":"label","n":1,"type":"user","content":"hi"}"#;
    append(&sandbox).write_stdin(twice).assert().success();
    let line = sandbox.read_text(FILE);
    let rest = r#""type":"label","ts":1767225600,"n":1,"type":"user","content":"hi"}"#;
    assert!(line.trim_end().ends_with(rest), "{line}");
}

#[test]
fn expect_tail_does_not_create_a_missing_file() {
    let sandbox = Sandbox::new();
    expecting(&sandbox, "a3").code(75);
    assert!(!sandbox.exists(FILE));
}

#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn a_writer_waits_for_a_held_lock_until_the_timeout() {
    let sandbox = Sandbox::new();
    if sandbox.sh("command -v flock").assert().get_output().status.code() != Some(0) {
        println!("skipped: no flock(1)");
        return;
    }
    sandbox.write(FILE, TURN);
    let script = format!("exec 9<{FILE}; flock 9 && echo held; read line");
    let mut holder = sandbox.sh(&script).spawn();
    let mut line = String::new();
    let stdout = holder.stdout.take().expect("a piped stdout");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "held\n");

    append(&sandbox)
        .args(["--lock-timeout", "0.2"])
        .write_stdin(HI)
        .assert()
        .code(75)
        .stdout("")
        .stderr(contains("cannot lock 's.jsonl'"))
        .stderr(contains("0.2 s"));
    assert_unchanged(&sandbox, TURN.as_bytes());

    let waiting = append(&sandbox).write_stdin(HI);
    let waiter = thread::spawn(move || waiting.assert());
    thread::sleep(Duration::from_millis(100));
    drop(holder.stdin.take());
    assert!(holder.wait().expect("an end").code().is_some());
    waiter.join().expect("a run").success();
    assert_eq!(sandbox.read_text(FILE).lines().count(), 4);
}

/// Returns true if the tests run at full size, which takes minutes instead of seconds.
fn is_full() -> bool {
    env::var_os("CLAW_TEST_FULL").is_some()
}

#[test]
#[allow(clippy::print_stdout, reason = "the result is a measurement")]
fn c_2_v6_parallel_writers_lose_no_record_and_keep_their_order() {
    const WRITERS: usize = 16;
    // Sizes from 1 B to 1 MiB (64 KiB in a short run), in a different order for each writer.
    let (records, sizes) = if is_full() { (1000, 21) } else { (25, 17) };
    let size = |writer: usize, n: usize| 1 << ((n * 5 + writer) % sizes);
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for n in 0..records {
                    let text = "x".repeat(size(writer, n));
                    let record = format!(
                        r#"{{"type":"user","writer":{writer},"n":{n},"content":"{text}"}}"#
                    );
                    append(sandbox).arg("--no-sync").write_stdin(record).assert().success();
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs();
    let mut next = [0; WRITERS];
    let file = fs::File::open(sandbox.path(FILE)).expect("a transcript");
    let bytes = file.metadata().expect("its size").len();
    for line in BufReader::new(file).lines() {
        let line = line.expect("a line in UTF-8");
        let record: Value = serde_json::from_str(&line).expect("a whole record");
        let number = |name: &str| record[name].as_u64().expect("a number") as usize;
        let (writer, n) = (number("writer"), number("n"));
        assert_eq!(n, next[writer], "order of writer {writer}");
        assert_eq!(record["content"].as_str().map(str::len), Some(size(writer, n)));
        next[writer] += 1;
    }
    assert_eq!(next, [records; WRITERS]);
    println!("{WRITERS} writers x {records} records: {bytes} bytes in {seconds} s");
}

// ---- failures -------------------------------------------------------------------------------

/// Appends with the file size limited to `limit` bytes (`ulimit -f` counts blocks of 512 bytes).
fn append_with_limit(sandbox: &Sandbox, limit: usize, batch: &str) -> Assert {
    let script = format!("ulimit -f {}; exec claw-append {FILE}", limit / 512);
    sandbox.sh(&script).write_stdin(batch).assert()
}

#[test]
fn v7_a_full_disk_leaves_the_file_unchanged() {
    const LIMIT: usize = 4096;
    let line = format!("{HI_LINE}\n");
    let filler = |size: usize| format!("{line}{}\n", " ".repeat(size - line.len() - 1));
    let batch = format!("{HI}\n").repeat(20);
    // Room for no byte, for one, for a part of the first record, and for some records and a part of the next.
    for room in [0, 1, 40, 700] {
        for end in ["", "\n"] {
            let sandbox = Sandbox::new();
            let before = filler(LIMIT - room);
            let before = format!("{}{end}", before.trim_end_matches('\n'));
            sandbox.write(FILE, &before);
            append_with_limit(&sandbox, LIMIT, &batch)
                .code(74)
                .stdout("")
                .stderr(contains("cannot write 's.jsonl' (the file is unchanged)"));
            assert_unchanged(&sandbox, before.as_bytes());
            append(&sandbox).write_stdin(batch.clone()).assert().success();
        }
    }
    // A batch that fits is written.
    let sandbox = Sandbox::new();
    sandbox.write(FILE, filler(LIMIT - 512));
    append_with_limit(&sandbox, LIMIT, HI).success();
}

#[test]
fn audit_07_v7_a_new_file_is_removed_if_the_write_fails() {
    let sandbox = Sandbox::new();
    let big = format!(r#"{{"type":"user","content":"{}"}}"#, "x".repeat(10_000));
    append_with_limit(&sandbox, 512, &big).code(74).stderr(contains("(the file is unchanged)"));
    assert!(!sandbox.exists(FILE));
    // An empty file that existed before stays.
    sandbox.write(FILE, "");
    append_with_limit(&sandbox, 512, &big).code(74);
    assert_unchanged(&sandbox, b"");
}

/// Fills a small file system with whole records, then makes room and appends again. The mount is private to the
/// shell and ends with it.
const FILL: &str = r#"
mkdir mnt && mount -t tmpfs -o size=512k none mnt && head -c 65536 /dev/zero >mnt/filler || exit 99
status=0
while test $status -eq 0; do
    cp mnt/s.jsonl before 2>/dev/null || :
    claw-append mnt/s.jsonl <batch 2>why || status=$?
done
cmp before mnt/s.jsonl && cat why && rm mnt/filler && claw-append mnt/s.jsonl <batch &&
    claw-check mnt/s.jsonl && cp mnt/s.jsonl after
exit $status"#;

#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn a_3_v7_a_full_file_system_leaves_the_file_unchanged() {
    let sandbox = Sandbox::new();
    let shell = ["unshare -m", "unshare -rm"].into_iter().find(|shell| {
        let probe = format!("mkdir -p probe; {shell} mount -t tmpfs none probe 2>/dev/null");
        sandbox.sh(&probe).assert().get_output().status.code() == Some(0)
    });
    let Some(shell) = shell else {
        println!("skipped: mounting is not permitted; only a limit on the file size is tested");
        return;
    };
    // There may be room for only the first of the two records in a batch.
    let record = format!(r#"{{"type":"user","content":"{}"}}"#, "x".repeat(25_000));
    sandbox.write("batch", format!("{record}\n{record}\n"));
    sandbox
        .sh(&format!("exec {shell} sh -c \"$FILL\""))
        .env("FILL", FILL)
        .assert()
        .code(74)
        .stdout(contains("claw-append: cannot write 'mnt/s.jsonl' (the file is unchanged): only "));
    let (before, after) = (sandbox.read("before"), sandbox.read("after"));
    assert!(after.starts_with(&before) && sandbox.read_json("after").len() > 10);
}

fn record(name: &str, text: &str) -> String {
    format!(r#"{{"type":"user","n":"{name}","content":"{text}"}}"#)
}

#[test]
#[allow(clippy::print_stdout, reason = "the result is a measurement")]
fn c_3_v7_a_killed_writer_loses_no_acknowledged_record() {
    let kills = if is_full() { 1000 } else { 50 };
    let sandbox = Sandbox::new();
    let text = "x".repeat(64 * 1024);
    let begun = Instant::now();
    append(&sandbox).arg("--no-sync").write_stdin(record("first", &text)).assert().success();
    // The estimated run time of a writer in µs, adapted so that about half of the writers are killed before they end.
    let mut life = begun.elapsed().as_micros() as u64;
    let (begun, mut rounds, mut killed) = (Instant::now(), 0, 0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut acknowledged = vec!["first".to_owned()];
    while killed < kills {
        rounds += 1;
        assert!(
            rounds <= 10 * kills,
            "only {killed} of {kills} writers were killed before they ended"
        );
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut child = append(&sandbox)
            .arg("--no-sync")
            .write_stdin(record(&format!("k{rounds}"), &text))
            .spawn();
        thread::sleep(Duration::from_micros((random >> 33) % life));
        child.kill().expect("a child to kill");
        if child.wait().expect("an end").success() {
            acknowledged.push(format!("k{rounds}"));
            life = (life - life / 16).max(100);
        } else {
            killed += 1;
            life += life / 16;
        }
        append(&sandbox)
            .arg("--no-sync")
            .write_stdin(record(&format!("a{rounds}"), "hi"))
            .assert()
            .success();
        acknowledged.push(format!("a{rounds}"));
    }
    let mut found: HashMap<String, u32> = HashMap::new();
    for line in sandbox.read_text(FILE).lines() {
        if let Ok(record) = serde_json::from_str::<Value>(line) {
            *found.entry(record["n"].as_str().expect("a name").to_owned()).or_default() += 1;
        }
    }
    for name in &acknowledged {
        assert_eq!(found.get(name), Some(&1), "{name} of {rounds} rounds");
    }
    assert!(found.values().all(|count| *count == 1), "a record was written twice");
    sandbox.cmd("claw-rebuild").arg(FILE).assert().success();
    let (seconds, late) = (begun.elapsed().as_secs(), found.len() - acknowledged.len());
    println!("{killed} of {rounds} writers killed, {late} of them after the write, in {seconds} s");
}

// ---- the file itself ------------------------------------------------------------------------

#[track_caller]
fn mode(sandbox: &Sandbox, name: &str) -> u32 {
    fs::metadata(sandbox.path(name)).expect("a file").permissions().mode() & 0o7777
}

#[test]
fn new_files_are_private_with_any_umask() {
    for umask in ["000", "022", "077", "277", "777"] {
        let sandbox = Sandbox::new();
        let script = format!("umask {umask}; exec claw-append --user a/b/{FILE}");
        sandbox.sh(&script).write_stdin("hi").assert().success();
        let modes = ["a", "a/b", "a/b/s.jsonl"].map(|name| mode(&sandbox, name));
        assert_eq!(modes, [0o700, 0o700, 0o600], "umask {umask}");
    }
}

#[test]
fn the_mode_of_an_existing_file_is_kept() {
    let sandbox = Sandbox::new();
    let path = sandbox.write(FILE, TURN);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
    append(&sandbox).write_stdin(HI).assert().success();
    assert_eq!(mode(&sandbox, FILE), 0o640);
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let sandbox = Sandbox::new();
    sandbox.write("real.jsonl", TURN);
    sandbox.sh("ln -s real.jsonl s.jsonl; ln -s nowhere dangling.jsonl").assert().success();
    append(&sandbox)
        .write_stdin(HI)
        .assert()
        .code(74)
        .stdout("")
        .stderr(contains("cannot open 's.jsonl'"));
    assert_eq!(sandbox.read_text("real.jsonl"), TURN);
    sandbox.cmd("claw-append").arg("dangling.jsonl").write_stdin(HI).assert().code(74);
    assert!(!sandbox.exists("nowhere"));
}

#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn v7_permission_denied_is_reported_and_changes_nothing() {
    let cannot = |name: &str| {
        format!(
            "claw-append: cannot open '{name}': permission denied; check its permissions (ls -l)\n"
        )
    };
    for (prepare, name, status) in [
        ("mkdir ro && chmod 555 ro", "ro/s.jsonl", 77),
        ("mkdir ro && chmod 555 ro", "ro/a/b/s.jsonl", 77),
        ("mkdir ro && : >ro/s.jsonl && chmod 444 ro/s.jsonl", "ro/s.jsonl", 77),
        // Appending to an existing file needs no write permission on its directory.
        ("mkdir ro && : >ro/s.jsonl && chmod 555 ro", "ro/s.jsonl", 0),
    ] {
        let sandbox = Sandbox::new();
        let script =
            format!("{prepare}; claw-append {name}; s=$?; ls -R ro >&2; cat ro/*; exit $s");
        let Some(run) = sandbox.as_nobody(&script, HI) else {
            println!("skipped: the tests run as root, and the user nobody cannot run the programs");
            return;
        };
        let run = run.code(status);
        match status {
            0 => run.stdout(format!("{HI_LINE}\n")),
            _ => run.stdout("").stderr(contains(cannot(name))),
        };
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn the_directory_is_synced_only_for_a_new_file() {
    // A directory that cannot be read cannot be synced.
    for (prepare, option, status) in [(":", "", 77), (":", "--no-sync", 0), (": >d/s.jsonl", "", 0)]
    {
        let sandbox = Sandbox::new();
        let script = format!(
            "mkdir d && {prepare} && chmod 333 d; claw-append {option} d/s.jsonl; s=$?; cat d/s.jsonl; exit $s"
        );
        let Some(run) = sandbox.as_nobody(&script, HI) else {
            println!("skipped: the tests run as root, and the user nobody cannot run the programs");
            return;
        };
        let run = run.code(status).stdout(format!("{HI_LINE}\n"));
        match status {
            0 => run.stderr(""),
            _ => run.stderr(contains("claw-append: cannot sync the directory of 'd/s.jsonl'")),
        };
    }
}

#[test]
fn anything_but_a_regular_file_is_refused_without_blocking() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir directory; mkfifo fifo").assert().success();
    for name in ["directory", "fifo", "/dev/null", "/dev/full"] {
        let run =
            sandbox.cmd("claw-append").arg(name).write_stdin(HI).timeout(Duration::from_secs(30));
        let run = run.assert().code(74).stdout("").stderr(contains(format!("'{name}'")));
        assert!(run.stderr_text().lines().count() == 1, "expected one line\n{run}");
    }
}

#[test]
fn a_session_tree_of_another_program_is_refused() {
    for header in [
        r#"{"type":"session","version":3,"id":"5f0c","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}"#,
        r#"{"type":"message","id":"m1","parentId":null,"message":{"role":"user","content":"x"}}"#,
    ] {
        for before in ["", "\n\r\n", "\u{feff}"] {
            let sandbox = Sandbox::new();
            let file = format!("{before}{header}\r\n");
            sandbox.write(FILE, &file);
            append(&sandbox)
                .write_stdin(HI)
                .assert()
                .code(65)
                .stderr(contains("'s.jsonl'"))
                .stderr(contains("pi, OpenClaw or GoClaw); convert it with claw-session import"));
            assert_unchanged(&sandbox, file.as_bytes());
        }
    }
    // A transcript in claw0's first format also begins with a header, but it is not a tree.
    let sandbox = Sandbox::new();
    added_to(&sandbox, b"{\"type\":\"session\",\"id\":\"81efc48888b7\",\"created\":\"x\"}\n");
}
