//! claw-replay: examines many transcripts in parallel, and writes the same reports in each run.

#[cfg(feature = "http")]
mod call;
mod edges;
mod engines;
mod formats;
mod diff;
mod guard;
mod robust;

use std::io::{BufRead, BufReader, Write};

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// Returns a transcript with a prompt, a reply of about `words` words, and another prompt.
fn transcript(words: usize) -> String {
    let records = [
        json!({"type": "user", "content": "question"}),
        json!({"type": "assistant", "content": "word ".repeat(words + 1)}),
        json!({"type": "user", "content": "more"}),
    ];
    records.map(|record| format!("{record}\n")).concat()
}

/// A tool result without a call, which `claw-replay check` reports as a failure.
const ORPHAN: &str = r#"{"type":"tool_result","tool_use_id":"x","content":"lost"}"#;

/// Creates `count` transcripts in three subdirectories of `directory`. One transcript in seven ends with [`ORPHAN`].
fn transcripts(sandbox: &Sandbox, directory: &str, count: usize) {
    for n in 0..count {
        let mut text = transcript(n * 37 % 500);
        if n % 7 == 3 {
            text.push_str(ORPHAN);
        }
        sandbox.write(&format!("{directory}/{}/{n:03}.jsonl", n % 3), text);
    }
}

/// Runs `claw-replay check --quiet`.
fn check(sandbox: &Sandbox, args: &[&str]) -> Assert {
    sandbox.cmd("claw-replay").args(["check", "--quiet"]).args(args).assert()
}

/// The reports of a complete run.
trait Reports {
    /// Returns the reports on standard output. Checks that the last line counts them.
    #[track_caller]
    fn reports(&self) -> Vec<Value>;

    /// Returns the only report.
    #[track_caller]
    fn report(&self) -> Value;
}

impl Reports for Assert {
    fn reports(&self) -> Vec<Value> {
        let mut reports = self.json();
        let end = reports.pop().expect("a line");
        assert!(end["end"] == "complete" || end["end"] == "stopped", "{end}\n{self}");
        let counts = ["passed", "failed", "unreadable", "not_transcripts"];
        let all: u64 = counts.iter().map(|name| end[name].as_u64().expect("a number")).sum();
        assert_eq!(all, reports.len() as u64, "{end}\n{self}");
        reports
    }

    fn report(&self) -> Value {
        match &self.reports()[..] {
            [report] => report.clone(),
            reports => panic!("{} reports\n{self}", reports.len()),
        }
    }
}

/// Returns the member `name`, a string, of each report.
fn each(reports: &[Value], name: &str) -> Vec<String> {
    let text = |report: &Value| report[name].as_str().expect("a string").to_owned();
    reports.iter().map(text).collect()
}

#[test]
fn reports_are_in_the_order_of_paths_whatever_the_number_of_jobs() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 40);
    sandbox.write("d/0-file.jsonl", "");
    let run = |jobs| {
        let args = ["--jobs", jobs, "--window", "4000,32000", "d/1", "d", "d/1/001.jsonl"];
        check(&sandbox, &args).code(1)
    };
    let one = run("1");
    let (reports, paths) = (one.reports(), each(&one.reports(), "path"));
    let (first, rest) = paths.split_at(13);
    assert!(first.iter().all(|path| path.starts_with("d/1/")) && first.is_sorted(), "{first:?}");
    assert!(rest.is_sorted() && rest[0] == "d/0-file.jsonl", "{rest:?}");
    assert_eq!(paths.len(), 41);
    let failed = each(&reports, "status").iter().filter(|status| *status == "failed").count();
    assert_eq!(failed, 6);
    for jobs in ["2", "7"] {
        assert_eq!(run(jobs).stdout_text(), one.stdout_text());
    }
}

#[test]
fn shards_are_disjoint_and_together_complete() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 30);
    let mut whole = each(&check(&sandbox, &["d"]).reports(), "path");
    let mut parts: Vec<String> = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let paths = each(&check(&sandbox, &["--shard", part, "./d"]).reports(), "path");
        assert!((3..20).contains(&paths.len()), "{part}: {}", paths.len());
        parts.extend(paths.iter().map(|path| path.replace("./d", "d")));
    }
    whole.sort();
    parts.sort();
    assert_eq!(parts, whole);
    for wrong in ["0/3", "4/3", "1", "a/b"] {
        check(&sandbox, &["--shard", wrong, "d"]).code(2).stdout("");
    }
}

#[test]
fn fail_fast_stops_at_the_first_failure_in_order() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 30);
    sandbox.write("d/0/001.jsonl", "not a transcript");
    for jobs in ["1", "2", "8"] {
        let run = check(&sandbox, &["--fail-fast", "--jobs", jobs, "d"]).code(1);
        assert_eq!(run.json().last().expect("a line")["end"], "stopped");
        let reports = run.reports();
        assert_eq!(each(&reports, "status"), ["passed", "unreadable", "failed"]);
        let args = ["--fail-fast", "--strict", "--jobs", jobs, "d"];
        assert_eq!(check(&sandbox, &args).code(65).reports().len(), 2);
    }
    // Reports in other formats state that not all transcripts were examined.
    let stopped = "stopped at the first failure; further transcripts were not examined";
    let args = ["--fail-fast", "--junit", "r.xml", "--markdown", "r.md", "--html", "r"];
    let run = sandbox.cmd("claw-replay").arg("check").args(args).arg("d").assert().code(1);
    let totals = "3 files: 1 passed, 1 failed, 1 not a transcript; ";
    assert_eq!(run.stderr_text(), format!("claw-replay: {totals}{stopped}\n"));
    for (file, part) in [
        ("r.md", format!("{totals}{stopped}\n")),
        ("r/index.html", format!("{totals}{stopped}<")),
        ("r.xml", format!("<skipped message=\"{stopped}\">")),
    ] {
        let text = sandbox.read_text(file);
        assert!(text.contains(&part), "no {part} in {file}:\n{text}");
    }
}

#[test]
fn equal_windows_are_one_case() {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", transcript(1));
    for mode in ["check", "guard"] {
        let args = [mode, "--quiet", "--window", "8000,4000,8000", "a.jsonl"];
        let report = sandbox.cmd("claw-replay").args(args).assert().success().report();
        let cases = report["cases"].as_array().expect("cases");
        let names: Vec<_> = cases.iter().map(|case| &case["name"]).collect();
        let windows = names.iter().filter(|name| name.to_string().contains("window")).count();
        assert_eq!(windows, 2, "{names:?}");
    }
}

#[test]
fn reports_arrive_while_the_list_of_paths_is_still_open() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 2);
    let args = ["check", "--quiet", "--files-from", "-"];
    let mut child = sandbox.cmd("claw-replay").args(args).spawn();
    let mut input = child.stdin.take().expect("an input");
    let mut output = BufReader::new(child.stdout.take().expect("an output"));
    for path in ["d/0/000.jsonl", "d/1/001.jsonl", "none"] {
        writeln!(input, "{path}").expect("a reader");
        let mut line = String::new();
        output.read_line(&mut line).expect("a report");
        assert!(line.contains(path), "{line}");
    }
    drop(input);
    let mut line = String::new();
    output.read_line(&mut line).expect("the end");
    assert_eq!(
        line,
        "{\"end\":\"complete\",\"passed\":2,\"failed\":0,\"unreadable\":1,\"not_transcripts\":0}\n"
    );
    assert_eq!(child.wait().expect("an exit status").code(), Some(1));
}

#[test]
fn a_list_may_contain_any_path() {
    let sandbox = Sandbox::new();
    for (name, end, args) in [
        ("a b.jsonl", "\n", &["--files-from", "-"][..]),
        ("a\nb.jsonl", "\0", &["--files-from", "-", "-0"]),
    ] {
        sandbox.write(name, transcript(1));
        let list = format!("{name}{end}{end}{name}{end}./{name}");
        let run = sandbox.cmd("claw-replay").arg("check").args(args).write_stdin(list).assert();
        let run = run.success().stderr("claw-replay: 1 file: 1 passed, 0 failed\n");
        assert_eq!(run.report()["path"], name);
    }
    let returns = "a b.jsonl\r\nnone\r\n";
    let run = sandbox.cmd("claw-replay").args(["check", "--files-from", "-"]).write_stdin(returns);
    let reports = run.assert().code(1).reports();
    let message = "cannot read 'a b.jsonl\r': no such file; the path ends in a carriage return, so convert the list with tr -d '\\r'";
    assert_eq!((&reports[0]["message"], &reports[0]["exit"]), (&json!(message), &json!(74)));
    let long = "x".repeat(70_000);
    let run = sandbox.cmd("claw-replay").args(["check", "--files-from", "-"]).write_stdin(long);
    run.assert().code(65).stderr(contains("cannot read '<stdin>': a path has 65536 bytes"));
}

#[test]
fn a_file_that_is_unreadable_or_not_a_transcript_does_not_end_the_run() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 1);
    sandbox.write("d/0/binary.jsonl", [0xff, 0xfe, 0x80, 1, 2]);
    sandbox.write("d/0/text.jsonl", "plain text\n");
    sandbox.sh("mkfifo pipe.jsonl d/0/pipe.jsonl; ln -s .. d/0/loop.jsonl").assert().success();
    let reports = check(&sandbox, &["d"]).success().reports();
    assert_eq!(each(&reports, "status"), ["passed", "unreadable", "unreadable"]);
    assert_eq!((&reports[1]["exit"], &reports[2]["exit"]), (&json!(65), &json!(65)));
    assert_eq!(check(&sandbox, &["--strict", "d"]).code(65).reports(), reports);
    let missing = check(&sandbox, &["none", "pipe.jsonl", "d/0/000.jsonl"]).code(1).reports();
    assert_eq!(each(&missing, "status"), ["unreadable", "unreadable", "passed"]);
    assert_eq!((&missing[0]["exit"], &missing[1]["exit"]), (&json!(74), &json!(65)));
    sandbox.sh("mkdir empty").assert().success();
    let empty = check(&sandbox, &["empty"]).code(1).report();
    assert_eq!((&empty["status"], &empty["exit"]), (&json!("unreadable"), &json!(1)));
    check(&sandbox, &[]).code(2).stderr(contains("no transcripts given"));
}

#[test]
fn a_run_continues_from_its_state_file() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 30);
    let whole = check(&sandbox, &["d"]).stdout_text();
    // A run that is killed leaves only the beginning of its state file, which may end in a torn line.
    check(&sandbox, &["--state", "d/s.jsonl", "d"]).code(1).stdout(whole.clone());
    let state = sandbox.read("d/s.jsonl");
    sandbox.sh("test \"$(stat -c %a d/s.jsonl)\" = 600").assert().success();
    for part in [0, 1, state.len() / 2, state.len()] {
        sandbox.write("d/s.jsonl", &state[..part]);
        check(&sandbox, &["--state", "d/s.jsonl", "d"]).code(1).stdout(whole.clone());
        assert!(sandbox.read("d/s.jsonl") == state, "{part} bytes");
    }
    // A transcript is examined again if it or the options have changed.
    sandbox.write("d/0/000.jsonl", transcript(3));
    check(&sandbox, &["--state", "d/s.jsonl", "--window", "4000", "d/0/000.jsonl"]).success();
    assert_eq!(sandbox.read_text("d/s.jsonl").lines().count(), 31);
    check(&sandbox, &["--state", "d/1/001.jsonl", "d"]).code(65).stdout("");
}
