//! claw-replay diff: compares the transcripts in two directories, or the reports of two runs.

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use super::{ORPHAN, Reports, check, each, transcript, transcripts};
use crate::common::{AssertExt, Sandbox};

/// Runs `claw-replay diff --quiet`.
fn diff(sandbox: &Sandbox, args: &[&str]) -> Assert {
    sandbox.cmd("claw-replay").args(["diff", "--quiet"]).args(args).assert()
}

/// Returns the path and the change of each report.
fn changes(reports: &[Value]) -> Vec<(String, String)> {
    let change =
        |report: &Value| report["numbers"]["change"].as_str().expect("a change").to_owned();
    each(reports, "path").into_iter().zip(reports.iter().map(change)).collect()
}

#[test]
fn directories_are_compared_by_the_paths_below_them() {
    let sandbox = Sandbox::new();
    for directory in ["a", "b"] {
        transcripts(&sandbox, directory, 5);
    }
    diff(&sandbox, &["a", "b"]).success();
    sandbox.sh("rm a/0/000.jsonl b/1/001.jsonl").assert().success();
    // Different timestamps do not change messages or numbers.
    let text = sandbox.read_text("b/2/002.jsonl");
    sandbox.write("b/2/002.jsonl", text.replace("{\"content\"", "{\"ts\":5,\"content\""));
    sandbox.write("b/0/003.jsonl", transcript(111) + "\n" + ORPHAN + "\n" + &transcript(2));
    let run = diff(&sandbox, &["--jobs", "2", "a", "b"]).code(1);
    let reports = run.reports();
    let expected = [
        ("0/000.jsonl", "added"),
        ("0/003.jsonl", "changed"),
        ("1/001.jsonl", "removed"),
        ("1/004.jsonl", "same"),
        ("2/002.jsonl", "same"),
    ];
    assert_eq!(
        changes(&reports),
        expected.map(|(path, change)| (path.to_owned(), change.to_owned()))
    );
    let [messages, numbers] = [&reports[1]["cases"][0], &reports[1]["cases"][1]];
    assert_eq!(messages["message"], "first difference in message 3 (3 messages -> 5)");
    assert_eq!((&numbers["name"], &numbers["status"]), (&json!("numbers"), &json!("failed")));
    assert_eq!(reports[1]["numbers"]["numbers"]["messages"], json!({"a": 3, "b": 5}));
    assert_eq!(diff(&sandbox, &["--jobs", "1", "a", "b"]).stdout_text(), run.stdout_text());
}

#[test]
fn a_changed_message_is_shown_as_a_diff() {
    let sandbox = Sandbox::new();
    for (path, word) in [("a/s.jsonl", "old"), ("b/s.jsonl", "new")] {
        let text = format!("first\n{word} \u{1b}[31m line\nlast");
        sandbox.write(path, json!({"type": "user", "content": text}).to_string());
    }
    let run = diff(&sandbox, &["a", "b"]).code(1);
    assert!(!run.stdout_text().contains('\u{1b}'));
    let detail = run.report()["cases"][0]["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.contains("\n-old ") && detail.contains("\n+new "), "{detail}");
}

#[test]
fn reports_of_two_runs_are_compared_by_path_and_mode() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 4);
    sandbox.write("a", check(&sandbox, &["d"]).stdout_text());
    sandbox.write("d/1/001.jsonl", transcript(1) + ORPHAN);
    sandbox.write("b", check(&sandbox, &["d"]).stdout_text());
    let reports = diff(&sandbox, &["a", "b"]).code(1).reports();
    let changed: Vec<_> = changes(&reports).into_iter().filter(|(_, it)| it == "changed").collect();
    assert_eq!(changed, [("d/1/001.jsonl".to_owned(), "changed".to_owned())]);
    assert_eq!(reports[2]["message"], "cases: passed -> failed");
    diff(&sandbox, &["a", "a"]).success();
    diff(&sandbox, &["a", "d"]).code(2).stderr(contains("one operand is a directory"));
    diff(&sandbox, &["d", "d/0"]).code(2).stderr(contains("one directory is in the other"));
    diff(&sandbox, &["a", "d/1/001.jsonl"]).code(65).stderr(contains("line 1 is not a report"));
}

#[test]
fn operands_that_cannot_be_compared_are_named() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 3);
    let missing = "claw-replay: cannot read 'none': no such file or directory; check the path\n";
    for args in [["none", "d"], ["d", "none"], ["none", "none"]] {
        assert_eq!(diff(&sandbox, &args).code(74).stdout("").stderr_text(), missing, "{args:?}");
    }
    // Reports of different modes are not compared, even if they are on the same paths.
    let guard = ["guard", "--quiet", "--window", "8000", "d"];
    let guarded = sandbox.cmd("claw-replay").args(guard).assert().success().stdout_text();
    sandbox.write("a", check(&sandbox, &["d"]).stdout_text());
    sandbox.write("b", guarded);
    let reports = diff(&sandbox, &["a", "b"]).code(1).reports();
    let messages = each(&reports, "message");
    let only = |change: &str, mode: &str| {
        format!("presence: {change}: the other file has no {mode} report on this path")
    };
    assert_eq!(messages[..2], [only("removed", "check"), only("added", "guard")]);
    // A file with two reports on the same path is refused.
    let other = check(&sandbox, &["--window", "4000", "d"]).stdout_text();
    sandbox.write("c", sandbox.read_text("a") + &other);
    let text =
        "cannot read 'c': two reports on the path 'd/0/000.jsonl'; give the reports of one run";
    diff(&sandbox, &["a", "c"]).code(65).stdout("").stderr(contains(text));
}

/// One file was a transcript and was replaced with text, and the other was text.
#[test]
fn a_file_that_is_a_transcript_on_one_side_only_has_changed() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "a", 2);
    sandbox.sh("cp -r a b; echo text >a/0/000.jsonl; echo text >b/1/001.jsonl").assert().success();
    let reports = diff(&sandbox, &["a", "b"]).code(1).reports();
    assert_eq!(
        each(&reports, "message"),
        [
            "presence: changed: only the second file is a transcript",
            "presence: changed: only the first file is a transcript"
        ]
    );
    assert_eq!(reports[1]["numbers"], json!({"change": "changed"}));
}

#[test]
fn unreadable_files_are_also_named_by_their_path_below_the_directory() {
    let sandbox = Sandbox::new();
    for directory in ["a", "b"] {
        transcripts(&sandbox, directory, 2);
        sandbox.write(&format!("{directory}/text.jsonl"), format!("plain text {directory}"));
    }
    let reports = diff(&sandbox, &["a", "b"]).success().reports();
    assert_eq!(each(&reports, "path"), ["0/000.jsonl", "1/001.jsonl", "text.jsonl"]);
    // A symbolic link is not followed, whichever directory it is in.
    sandbox.sh("mv b/0/000.jsonl b/x; ln -s ../x b/0/000.jsonl").assert().success();
    let there = diff(&sandbox, &["a", "b"]).code(1).reports();
    let back = diff(&sandbox, &["b", "a"]).code(1).reports();
    assert_eq!(
        [&there[0]["numbers"]["change"], &back[0]["numbers"]["change"]],
        ["removed", "added"]
    );
}

#[test]
fn two_directories_without_transcripts_are_an_error() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir a b").assert().success();
    let run = diff(&sandbox, &["a", "b"]).code(1);
    run.stderr(contains("no transcripts in 'a' and 'b'; check the paths and --glob"));
    sandbox.write("b/s.jsonl", transcript(1));
    diff(&sandbox, &["a", "b"]).code(1).stderr("");
}
