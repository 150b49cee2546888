//! claw-replay when it is killed, when a disk is full, when its reader exits, and with hostile files.

use std::io::Write;
use std::thread;
use std::time::Duration;

use predicates::str::contains;
use serde_json::json;

use super::{Reports, check, each, transcript, transcripts};
use crate::common::{AssertExt, Sandbox, kill_group};

#[test]
fn a_run_that_is_killed_twenty_times_prints_what_an_undisturbed_one_prints() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 80);
    let whole = check(&sandbox, &["d"]).code(1).stdout_text();
    let args = ["check", "--quiet", "--jobs", "2", "--state", "kept", "d"];
    for kill in 0..20_u64 {
        let child = sandbox.cmd("claw-replay").args(args).spawn();
        thread::sleep(Duration::from_millis(kill * 7 % 23));
        kill_group(child.id());
        child.wait_with_output().expect("an exit status");
    }
    let resumed = sandbox.cmd("claw-replay").args(args).assert().code(1);
    assert_eq!(resumed.stdout_text(), whole);
    let state = sandbox.read_text("kept");
    assert_eq!(state.lines().count(), 80, "each report must be stored once");
    assert!(state.lines().all(|line| line.starts_with("{\"key\":\"") && line.ends_with('}')));
}

#[test]
fn a_full_disk_and_a_reader_that_exits_end_the_run() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 30);
    let full = sandbox.sh("claw-replay check --quiet d >/dev/full").assert();
    full.code(74)
        .stderr("claw-replay: cannot write '<stdout>': no space left on device; free some space\n");
    let limited = "ulimit -f 1; claw-replay check --quiet --state kept d | cat >/dev/null";
    sandbox.sh(limited).assert().stderr(contains("cannot write 'kept': file too large"));
    check(&sandbox, &["--state", "kept", "d"]).code(1);
    assert_eq!(sandbox.read_text("kept").lines().count(), 30);
    let endless = "i=0; { while i=$((i + 1)); do echo none$i || exit; done; } 2>/dev/null |
        { claw-replay check --quiet --files-from -; echo $? >status; } | head -n 3 | wc -l; cat status";
    sandbox.sh(endless).assert().success().stdout("3\n141\n").stderr("");
}

#[test]
fn two_runs_do_not_share_a_state_file() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 1);
    let args = ["check", "--quiet", "--state", "kept", "--files-from", "-"];
    let mut child = sandbox.cmd("claw-replay").args(args).spawn();
    let names = child.stdin.as_mut().expect("a pipe");
    names.write_all(b"d/0/000.jsonl\n").expect("a reader");
    // The run has the file for itself before it writes to it.
    while !sandbox.exists("kept") || sandbox.read("kept").is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    check(&sandbox, &["--state", "kept", "d"]).code(75).stderr(contains("another run is using it"));
    kill_group(child.id());
    child.wait_with_output().expect("an exit status");
    check(&sandbox, &["--state", "kept", "d"]).success();
}

#[test]
fn hostile_files_are_reported_and_do_not_end_the_run() {
    let sandbox = Sandbox::new();
    sandbox.write("d/empty.jsonl", "");
    sandbox
        .write("d/long.jsonl", json!({"type": "user", "content": "x".repeat(1 << 20)}).to_string());
    sandbox.write("d/nul.jsonl", vec![0; 100_000]);
    sandbox.write("d/torn.jsonl", transcript(3) + "{\"type\":\"user\",\"conte");
    sandbox.write("d/deep.jsonl", "[".repeat(100_000));
    sandbox.write("d/bad\u{1b}[31m.jsonl", transcript(1));
    sandbox.sh("ln -s nowhere d/link.jsonl; ln -s . d/loop; mkfifo d/pipe.jsonl; mkdir d/directory.jsonl").assert().success();
    let run = check(&sandbox, &["--jobs", "3", "d"]).code(1);
    assert!(!run.stdout_text().contains('\u{1b}'));
    let reports = run.reports();
    let found: Vec<_> = each(&reports, "path").into_iter().zip(each(&reports, "status")).collect();
    let expected = [
        ("d/bad\u{1b}[31m.jsonl", "passed"),
        ("d/deep.jsonl", "unreadable"),
        ("d/empty.jsonl", "passed"),
        ("d/long.jsonl", "passed"),
        ("d/nul.jsonl", "failed"),
        ("d/torn.jsonl", "failed"),
    ];
    assert_eq!(found, expected.map(|(path, status)| (path.to_owned(), status.to_owned())));
    assert_eq!(reports[5]["cases"][0]["line"], 4);
}

/// The transcript is larger than the memory that the program may use in addition to its code.
#[test]
fn memory_does_not_depend_on_the_size_of_a_transcript() {
    let sandbox = Sandbox::new();
    let progress = json!({"type": "progress", "text": "x".repeat(200_000)}).to_string() + "\n";
    // Because of the blank line, the chain of ids is examined line by line.
    let text = transcript(1) + "\n" + &progress.repeat(100) + &transcript(2);
    sandbox.write("d/large.jsonl", text);
    let limited = "code=$(($(wc -c <\"$(command -v claw-replay)\") / 1024))
        ulimit -v $((code + 16 * 1024)) && exec claw-replay check --quiet --jobs 1 d";
    let report = sandbox.sh(limited).assert().success().report();
    assert_eq!(report["numbers"]["records"], 106);
    let compared = limited.replace("check --quiet --jobs 1 d", "diff --quiet --jobs 1 d e");
    sandbox.sh(&format!("cp -r d e; {compared}")).assert().success();
}

/// Each line of the transcript is a finding. All of them together would need several times the memory that is allowed.
#[test]
fn memory_does_not_depend_on_the_number_of_findings() {
    let sandbox = Sandbox::new();
    let damaged = transcript(1) + &"x\n".repeat(300_000);
    sandbox.write("d/a.jsonl", damaged.clone());
    // Other programs' transcripts are translated first. The last line is a finding of another rule.
    let other = sandbox.cmd("claw-session").args(["export", "--to", "pi", "d/a.jsonl"]).assert();
    sandbox.write("d/b.jsonl", other.stdout_text() + &damaged[transcript(1).len()..] + "{\n");
    // Shared libraries take 4 MiB of the limit. glibc reserves an address range for the allocations of each thread; it does
    // not fit, so each allocation would be a system call.
    let limited = |command: &str| {
        let script = format!(
            "export MALLOC_ARENA_MAX=1; program=$(command -v {command}) && code=$(($(wc -c <\"$program\") / 1024)) &&
            ulimit -v $((code + 20 * 1024)) && exec {command} \"$@\""
        );
        sandbox.sh(&script).arg("sh")
    };
    let run = limited("claw-replay").args(["check", "--quiet", "--jobs", "1", "d"]).assert();
    let run = run.code(1);
    let reports = run.reports();
    let findings: Vec<_> = reports.iter().map(|report| &report["numbers"]["findings"]).collect();
    assert_eq!(findings, [300_000, 300_001]);
    let message = "sound: not-an-object: skipped: not a JSON object; 299999 more";
    assert_eq!(reports[0]["message"], message);
    check(&sandbox, &["--jobs", "4", "d"]).code(1).stdout(run.stdout_text());
    let listed = limited("claw-check").arg("d/b.jsonl").assert().code(65).json();
    let rules = each(&listed, "rule");
    assert_eq!((rules.len(), &*rules[0]), (1003, "open-mode"));
    assert_eq!(rules[1000..], ["not-an-object", "torn-line", "more-findings"]);
    assert_eq!(listed[1002]["message"], "not-an-object: 299000 more, not listed");
    let rebuilt = limited("claw-rebuild").arg("d/b.jsonl").assert().success();
    let end = "claw-rebuild: not-an-object: 299000 more\nclaw-rebuild: 300001 findings\n";
    assert!(rebuilt.stderr_text().ends_with(end));
}

/// The arguments of each mode that examines transcripts.
const MODES: [&str; 3] = ["check", "guard --window 4000", "call --provider offline"];

#[test]
fn a_line_that_needs_more_memory_than_there_is_does_not_end_the_run() {
    let sandbox = Sandbox::new();
    sandbox.write("d/a.jsonl", "{\"type\":\"user\",\"content\":\"");
    sandbox.write("d/b.jsonl", transcript(1) + "{");
    sandbox.write("d/c.jsonl", json!({"type": "user", "content": "last"}).to_string() + "\n");
    sandbox.sh("truncate -s 1G d/a.jsonl d/b.jsonl").assert().success();
    for mode in MODES {
        let script = format!("ulimit -v 300000; exec claw-replay {mode} --quiet --jobs 2 d");
        let reports = sandbox.sh(&script).assert().code(1).reports();
        assert_eq!(each(&reports, "status"), ["unreadable", "unreadable", "passed"], "{mode}");
        let messages = each(&reports[..2], "message");
        let (first, second) = (&messages[0], &messages[1]);
        assert!(first.contains("'d/a.jsonl': the line at byte 0 is longer than 64 MiB"), "{first}");
        let offset = transcript(1).len();
        assert!(second.contains(&format!("the line at byte {offset} is")), "{second}");
        assert_eq!((&reports[0]["exit"], &reports[1]["exit"]), (&json!(1), &json!(1)));
    }
}

#[test]
fn no_mode_passes_a_damaged_transcript_without_an_intact_record() {
    let sandbox = Sandbox::new();
    for (name, content) in [
        ("bad", &b"{\"type\":\"user\"}\n"[..]),
        ("nul", &[0; 10_000]),
        ("torn", b"{\"type\":\"user\",\"conte"),
        ("x-blank", b"\n\n"),
        ("x-empty", b""),
    ] {
        sandbox.write(&format!("d/{name}.jsonl"), content);
    }
    for mode in MODES {
        let run = sandbox.sh(&format!("claw-replay {mode} --quiet d")).assert().code(1);
        let reports = run.reports();
        let expected = if mode == "check" { "failed" } else { "unreadable" };
        let passed = "passed";
        let statuses = [expected, expected, expected, passed, passed];
        assert_eq!(each(&reports, "status"), statuses, "{mode}");
        if mode != "check" {
            let message = "cannot use 'd/nul.jsonl': it has no intact record (ignored 10000 NUL bytes); claw-replay check lists the damage";
            assert_eq!((&reports[1]["message"], &reports[1]["exit"]), (&json!(message), &json!(1)));
        }
    }
}
