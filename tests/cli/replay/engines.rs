//! claw-replay in several processes: CI jobs, GNU parallel and Apache Spark make the same reports as one process.

use std::fs;
use std::path::Path;
use std::time::Duration;

use predicates::str::contains;

use super::{check, transcripts};
use crate::common::{AssertExt, Cmd, Sandbox};
use crate::man::{can_run, has_tool};

/// Creates 40 transcripts (of which some fail), a file that is not a transcript, and a list of all 41 paths.
fn many() -> Sandbox {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 40);
    sandbox.write("d/0/it's \"no\" transcript.jsonl", "plain text\n");
    sandbox.sh("find \"$PWD/d\" -name '*.jsonl' | sort >list").assert().success();
    sandbox
}

const ARGS: [&str; 4] = ["--window", "4000,9000", "--files-from", "list"];

/// Returns the reports of one process.
fn local(sandbox: &Sandbox) -> String {
    check(sandbox, &ARGS).code(1).stdout_text()
}

#[test]
fn merged_reports_have_the_results_and_the_status_of_one_run() {
    let sandbox = many();
    let whole = local(&sandbox);
    check(&sandbox, &[&ARGS[..], &["--junit", "whole.xml"]].concat()).code(1);
    let merge = |args: &[&str]| {
        sandbox.cmd("claw-replay").arg("merge").args(args).write_stdin(whole.clone()).assert()
    };
    let run = merge(&["--junit", "merged.xml"]).code(1).stdout(whole.clone());
    let totals = "claw-replay: 41 files: 34 passed, 6 failed, 1 not a transcript\n";
    assert_eq!(run.stderr_text(), totals);
    assert_eq!(sandbox.read_text("merged.xml"), sandbox.read_text("whole.xml"));
    merge(&["--strict", "--quiet"]).code(65).stdout(whole.clone()).stderr("");
    // The same paths, divided between two runs, in two files and in one.
    let parts = "head -n 20 list | claw-replay check --quiet --window 4000,9000 --files-from - >a
        tail -n +21 list | claw-replay check --quiet --window 4000,9000 --files-from - >b
        cat a b >both";
    sandbox.sh(parts).assert().code(0);
    merge(&["--quiet", "a", "b"]).code(1).stdout(whole.clone());
    merge(&["--quiet", "both"]).code(1).stdout(whole.clone());
    merge(&["missing"]).code(74).stdout("");
}

#[test]
fn no_part_of_a_run_that_was_cut_off_counts_as_complete() {
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 2);
    let whole = check(&sandbox, &["d"]).success().stdout_text();
    let merge = |text: &str| {
        sandbox.write("r", text);
        let args = ["merge", "--quiet", "--junit", "r.xml", "r"];
        let run = sandbox.cmd("claw-replay").args(args).assert();
        assert_eq!(sandbox.exists("r.xml"), run.get_output().status.success());
        run
    };
    let is_tried = |cut: &usize| {
        cut.is_multiple_of(151) || whole[cut.saturating_sub(2)..cut + 1].contains('\n')
    };
    for cut in (0..whole.len()).filter(is_tried) {
        let run = merge(&whole[..cut]).code(65);
        assert!(run.stderr_text().starts_with("claw-replay: cannot read 'r': "), "{run}");
        let diff = sandbox.cmd("claw-replay").args(["diff", "--quiet", "r", "r"]).assert();
        diff.code(65).stdout("").stderr(run.stderr_text().to_owned());
    }
    let unfinished = "the run that wrote these reports did not finish; repeat it\n";
    merge("").stderr(format!("claw-replay: cannot read 'r': {unfinished}"));
    // A run whose output is followed by that of another one.
    let first = whole.find('\n').expect("a line") + 1;
    let text = "claw-replay: cannot read 'r': line 4 ends a run with 2 reports, but 3 are before it; give all output of each run\n";
    merge(&[&whole[..first], &whole].concat()).code(65).stderr(text);
    merge(&[&*whole, &whole].concat()).success().stdout(whole.clone());
    // A run that stopped at the first failure, and one without reports.
    transcripts(&sandbox, "d", 5);
    let stopped = check(&sandbox, &["--fail-fast", "d"]).code(1).stdout_text();
    assert_eq!(stopped.lines().count(), 3);
    let run = sandbox.cmd("claw-replay").arg("merge").write_stdin(stopped.clone()).assert();
    let run = run.code(1).stdout(stopped);
    run.stderr(contains("2 files: 1 passed, 1 failed; stopped at the first failure; "));
    let none = check(&sandbox, &["--shard", "1/9999", "d/0/000.jsonl"]).success().stdout_text();
    let run = sandbox.cmd("claw-replay").arg("merge").write_stdin(none).assert();
    run.code(1).stderr(contains("no reports found"));
}

/// A fake ssh that runs commands on this machine and appends the name of the host to the file `hosts`. The host `down`
/// is unreachable, and the host `silent` runs nothing.
const SSH: &str = r#"
while :; do case $1 in -[lpoi]) shift 2 ;; -*) shift ;; *) break ;; esac; done
host=$1; shift; test "$1" != -- || shift
echo "$host" >>"$HOME/hosts"
case $host in down) exit 255 ;; silent) exit ;; esac
SHELL=/bin/sh exec sh -c "$*"
"#;

/// Returns a `claw-replay-parallel` command that reaches `hosts` through the fake ssh and reads the list of paths from
/// standard input.
fn parallel(sandbox: &Sandbox, hosts: &str, args: &[&str]) -> Cmd {
    sandbox.program("fake-ssh", SSH);
    // The value is a command line, so it is not a path, which may contain spaces.
    let options = ["--ssh", "fake-ssh", "--sshlogin", hosts, "-N", "5"];
    let directory = sandbox.path("");
    let command = sandbox.cmd("claw-replay-parallel").args(options);
    command.arg("--workdir").arg(directory).arg("--").args(args).write_stdin(sandbox.read("list"))
}

#[test]
fn gnu_parallel_on_two_hosts_makes_the_same_reports_as_one_process() {
    if !has_tool("parallel") {
        return;
    }
    let sandbox = many();
    let whole = local(&sandbox);
    check(&sandbox, &[&ARGS[..], &["--junit", "whole.xml"]].concat()).code(1);
    let args = ["check", "--junit", "r.xml", "--window", "4000,9000"];
    let run = parallel(&sandbox, "1/one,1/two", &args).assert().code(1).stdout(whole);
    assert!(
        run.stderr_text()
            .ends_with("claw-replay: 41 files: 34 passed, 6 failed, 1 not a transcript\n"),
        "{run}"
    );
    assert_eq!(sandbox.read_text("r.xml"), sandbox.read_text("whole.xml"));
    let hosts = sandbox.sh("sort -u hosts").assert().success();
    hosts.stdout("one\ntwo\n");
    parallel(&sandbox, "2/one", &["check", "--strict", "--quiet"]).assert().code(65).stderr("");
}

#[test]
fn a_failed_worker_and_wrong_options_are_reported() {
    if !has_tool("parallel") {
        return;
    }
    let sandbox = many();
    sandbox.write("r.xml", "old");
    for host in ["down", "silent"] {
        let hosts = format!("1/one,1/{host}");
        let run = parallel(&sandbox, &hosts, &["check", "--junit=r.xml"]).assert().code(69);
        run.stderr(contains(format!("a worker on '{host}' failed, so reports are missing")));
        assert_eq!(sandbox.read_text("r.xml"), "old");
    }
    let run = parallel(&sandbox, "1/one", &["check", "--windo", "1"]).assert().code(2);
    // The option is reported once, not by each worker.
    let lines: Vec<&str> = run.stderr_text().lines().collect();
    assert!(matches!(lines[..], [line] if line.contains("try --window")), "{run}");
}

#[test]
fn parallel_refuses_what_workers_cannot_use_before_they_start() {
    if !has_tool("parallel") {
        return;
    }
    let sandbox = Sandbox::new();
    transcripts(&sandbox, "d", 1);
    sandbox.sh("mkdir empty").assert().success();
    let refused = |args: &[&str], text: &str| {
        let command = sandbox.cmd("claw-replay-parallel").args(args);
        let run = command.write_stdin("d/0/000.jsonl\n").assert().code(2).stdout("");
        assert_eq!(run.stderr_text(), format!("claw-replay-parallel: {text}\n"));
    };
    for operand in ["missing", "empty", "d", "d/0/000.jsonl"] {
        let text = "paths are read from standard input, but the mode has operands; leave them out";
        refused(&["--", "check", operand], text);
        refused(&["--", "call", "--provider", "offline", operand], text);
    }
    for option in ["--state", "--fail-fast", "--shard=1/2", "--jobs", "--files-from", "-0"] {
        let text = format!("cannot use {option} with several workers; leave it out");
        refused(&["-j", "1", "--", "check", option], &text);
    }
    for option in ["--dry-run", "--joblog=jobs"] {
        let text = format!("cannot use {option} with several workers; leave it out");
        refused(&[option, "--", "check"], &text);
    }
    for args in [&["check"][..], &["--"], &["--", "diff", "a", "b"], &["--", "merge"]] {
        refused(args, "give -- and then check, guard or call; see claw-replay-parallel --help");
    }
    let run = sandbox.cmd("claw-replay-parallel").args(["--bogus", "--", "check"]).assert().code(2);
    assert!(run.stderr_text().starts_with("Unknown option: bogus\n"), "{run}");
    assert!(!run.stderr_text().contains("claw-replay"), "{run}");
}

#[test]
fn a_missing_claw_replay_is_reported() {
    if !has_tool("parallel") {
        return;
    }
    let sandbox = Sandbox::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/claw-replay-parallel");
    sandbox.program("parallel", "exit 0");
    let command = sandbox.sh("PATH=bin exec /bin/sh \"$1\" -- check").arg("sh").arg(script);
    let text = "claw-replay-parallel: claw-replay is not installed; install it\n";
    command.assert().code(69).stdout("").stderr(text);
}

#[test]
fn an_empty_list_of_paths_is_reported_like_by_one_process() {
    if !has_tool("parallel") {
        return;
    }
    let sandbox = Sandbox::new();
    let args = ["check", "--quiet"];
    let one = sandbox.cmd("claw-replay").args(args).args(["--files-from", "-"]).assert().code(1);
    assert!(one.stderr_text().contains("the list of paths is empty"), "{one}");
    let run = sandbox.cmd("claw-replay-parallel").arg("--").args(args).assert().code(1);
    let run = run.stdout(one.stdout_text());
    assert!(run.stderr_text().starts_with(one.stderr_text()), "{run}");
}

#[test]
#[allow(clippy::print_stderr, reason = "reports which test was skipped")]
fn spark_makes_the_same_reports_as_one_process() {
    let sandbox = many();
    let found = sandbox.sh("python3 -c 'import pyspark' && command -v java").assert();
    if !found.get_output().status.success() {
        // Spark takes 500 MB, so only scripts/dev/spark installs it.
        assert!(std::env::var_os("CLAW_TEST_SPARK").is_none(), "no pyspark or Java");
        eprintln!("skipped: no pyspark or Java");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/spark_replay.py");
    let spark = |args: &[&str]| {
        // Two workers, each a process with one processor and 1024 MB.
        let submit = "--master local-cluster[2,1,1024] --conf spark.ui.enabled=false pyspark-shell";
        let command = sandbox.sh("exec python3 \"$@\"").arg("sh").arg(script);
        let command = command.env("PYSPARK_SUBMIT_ARGS", submit).timeout(Duration::from_secs(300));
        command.args(["--paths", "list", "--partitions", "5"]).args(args).assert()
    };
    let run = spark(&["--", "check", "--window", "4000,9000"]).success();
    let merge =
        sandbox.cmd("claw-replay").args(["merge", "--quiet"]).write_stdin(run.stdout_text());
    merge.assert().code(1).stdout(local(&sandbox));
    spark(&["--", "check", "--windo", "4000"]).failure().stdout("");
}

/// Returns the first literal display after the text `after` in claw-replay(1).
fn display(after: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/claw-replay.1");
    let page = fs::read_to_string(path).expect("the page");
    let rest = page.split_once(after).unwrap_or_else(|| panic!("no {after} in the page")).1;
    let text = rest.split_once(".Bd -literal\n").and_then(|(_, rest)| rest.split_once(".Ed\n"));
    text.expect("a display").0.replace("\\e", "\\").replace("\\(aq", "'").replace("\\&", "")
}

/// Returns the block below each line `key`: the more deeply indented lines that follow, without their indentation.
fn blocks(yaml: &str, key: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = yaml.lines().collect();
    let begins = lines.iter().enumerate().filter(|(_, line)| line.trim_start() == key);
    let block = |(at, begin): (usize, &&str)| {
        let inside = lines[at + 1..].iter().take_while(|line| indent(line) > indent(begin));
        inside.map(|line| [line.trim_start(), "\n"].concat()).collect()
    };
    begins.map(block).collect()
}

/// Creates four sessions with recordings of their calls. If `is_sound` is false, session b ends with a tool result
/// without a call.
fn sessions(is_sound: bool) -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c", "d"] {
        let turn =
            sandbox.cmd("claw-turn").args(["--provider", "offline", "--record", "recordings"]);
        turn.args(["-m", name, &format!("sessions/{name}.jsonl")]).assert().success();
    }
    if !is_sound {
        let path = "sessions/b.jsonl";
        sandbox.write(path, [sandbox.read_text(path), super::ORPHAN.to_owned() + "\n"].concat());
    }
    sandbox
}

#[test]
fn the_example_for_github_works() {
    if !can_run("claw-call") {
        return;
    }
    let steps = blocks(&display("GitHub Actions,"), "run: |");
    assert!(steps.len() == 3 && steps[0].starts_with("make -C clawutils install"), "{steps:?}");
    for (is_sound, status) in [(true, 0), (false, 1)] {
        let sandbox = sessions(is_sound);
        let run = |step: &str| {
            sandbox.sh(&["set -e\n", step].concat()).env("GITHUB_STEP_SUMMARY", "summary").assert()
        };
        run(&steps[1]).code(status);
        assert_eq!(sandbox.read_text("check.jsonl").lines().count(), 5);
        assert_eq!(
            sandbox.read_text("summary").contains("| sessions/b.jsonl | sound |"),
            !is_sound
        );
        assert!(sandbox.exists("report/index.html"));
        // A tool result without a call changes no reply.
        run(&steps[2]).success();
        assert!(sandbox.read_text("call.xml").contains("name=\"sessions/d.jsonl: turn 1\""));
    }
}

#[test]
fn the_example_for_gitlab_works() {
    if !can_run("claw-call") {
        return;
    }
    let script = blocks(&display("GitLab CI,"), "script:").concat();
    let steps: Vec<&str> = script.split("- >-\n").skip(1).collect();
    assert_eq!(steps.len(), 2, "{script}");
    let sandbox = sessions(true);
    let mut reports = 0;
    for index in ["1", "2", "3", "4"] {
        for step in &steps {
            let command = step.replace('\n', " ");
            let run = sandbox.sh(&command).env("CI_NODE_INDEX", index).env("CI_NODE_TOTAL", "4");
            run.assert().success();
        }
        assert!(sandbox.exists("check.xml") && sandbox.exists("call.xml"));
        // Each job also writes a line for the end of the run.
        reports += sandbox.read_text("check.jsonl").lines().count() - 1;
        reports += sandbox.read_text("call.jsonl").lines().count() - 1;
    }
    assert_eq!(reports, 8);
}
