//! claw-replay: unusual operands, state files, outputs and option values.

use predicates::str::contains;

use super::{Reports, check, each, transcript};
use crate::common::{AssertExt, Sandbox};

#[test]
fn a_file_that_cannot_be_a_state_file_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", transcript(1));
    // The file `long` begins like a state file.
    let key = "{\"key\":\"0123456789abcdef0123456789abcdef\"";
    sandbox.write("long", key);
    let make = "mkfifo pipe; truncate -s 1G sparse long; touch empty";
    sandbox.sh(make).assert().success();
    let run = |path: &str| {
        let script =
            "ulimit -v 200000; exec timeout 20 claw-replay check --quiet --state \"$1\" a.jsonl";
        sandbox.sh(script).args(["sh", path]).assert()
    };
    for path in ["pipe", "/dev/zero", "/dev/full", "/dev/null", "sparse"] {
        let text = format!("claw-replay: cannot use '{path}': not a state file; ");
        run(path).code(65).stdout("").stderr(contains(text));
    }
    for path in ["long", "empty"] {
        run(path).success();
        assert_eq!(sandbox.read_text(path).lines().count(), 1, "{path}");
    }
}

#[test]
fn reports_are_not_lost_if_standard_output_is_closed() {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", transcript(1));
    let closed = "standard output is closed; redirect it to a file, a pipe or /dev/null\n";
    for (script, what) in [
        ("claw-replay check --quiet a.jsonl", "claw-replay: cannot write '<stdout>'"),
        (
            "claw-replay check --quiet --junit /dev/stdout a.jsonl",
            "claw-replay: cannot write '/dev/stdout'",
        ),
        (
            "echo Hi | claw-append --assistant --print s.jsonl",
            "claw-append: cannot write '<stdout>' ('s.jsonl' has the records)",
        ),
    ] {
        sandbox
            .sh(&[script, " >&-"].concat())
            .assert()
            .code(74)
            .stderr(format!("{what}: {closed}"));
        // Some parent processes open /dev/null for both reading and writing; this does not count as closed.
        for null in [">/dev/null", "1<>/dev/null"] {
            sandbox.sh(&format!("{script} {null}")).assert().success().stderr("");
        }
    }
    assert_eq!(sandbox.read_json("s.jsonl").len(), 3);
    sandbox.sh("echo Hi | claw-append --assistant s.jsonl >&-").assert().success().stderr("");
}

#[test]
fn each_directory_without_transcripts_is_a_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", transcript(1));
    sandbox.write("other/text", "text");
    sandbox.sh("mkdir empty").assert().success();
    for directory in ["empty", "other"] {
        let reports = check(&sandbox, &[directory, "a.jsonl"]).code(1).reports();
        assert_eq!(each(&reports, "status"), ["unreadable", "passed"]);
        let text = format!("no transcripts in '{directory}'; check the path and --glob");
        assert_eq!((&reports[0]["message"], &reports[0]["exit"]), (&text.into(), &1.into()));
    }
    // Only one shard of a run reports an empty directory, and a shard may be empty.
    let parts = ["1/3", "2/3", "3/3"].map(|part| {
        let run = check(&sandbox, &["--shard", part, "empty"]);
        (run.get_output().status.code(), run.reports().len())
    });
    assert_eq!(parts.iter().filter(|part| **part == (Some(1), 1)).count(), 1, "{parts:?}");
    assert_eq!(parts.iter().filter(|part| **part == (Some(0), 0)).count(), 2, "{parts:?}");
    // A directory is not reported if all its transcripts were already found through other operands.
    sandbox.write("d/a.jsonl", transcript(1));
    assert_eq!(check(&sandbox, &["d", "./d", "d/a.jsonl"]).success().reports().len(), 1);
    let list = sandbox.cmd("claw-replay").args(["check", "--files-from", "-"]).write_stdin("\n");
    let run = list.assert().code(1).stderr(contains("the list of paths is empty; "));
    assert_eq!(run.reports().len(), 0);
}

#[test]
fn a_log_that_an_open_descriptor_writes_to_is_not_truncated() {
    for (option, log, number) in [
        ("--markdown", "/dev/stderr", 2),
        ("--junit", "/dev/stdout", 1),
        ("--markdown", "/dev/fd/2", 2),
        ("--junit", "/proc/self/fd/1", 1),
        ("--markdown", "/dev/fd/3", 3),
    ] {
        for direction in [">", ">>"] {
            let sandbox = Sandbox::new();
            sandbox.write("a.jsonl", transcript(1));
            sandbox.write("log", "");
            let script = format!(
                "{{ echo before >&{number}; claw-replay check {option} {log} a.jsonl; }} {number}{direction}log"
            );
            sandbox.sh(&script).assert().success();
            let text = sandbox.read_text("log");
            let part = if option == "--junit" {
                "</testsuites>"
            } else {
                "## claw-replay\n\n1 file: 1 passed"
            };
            assert!(text.starts_with("before\n") && text.contains(part), "{script}:\n{text}");
            let own = ["{\"path\":\"a.jsonl\"", "claw-replay: 1 file"].get(number - 1);
            assert!(own.is_none_or(|own| text.contains(own)), "{script}:\n{text}");
        }
    }
}

#[test]
fn an_error_in_a_directory_states_its_path_and_cause_once() {
    let sandbox = Sandbox::new();
    let deep = "mkdir d && cd d && name=$(printf %0250d 0)
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do mkdir \"$name\" && cd -P \"$name\"; done";
    sandbox.sh(deep).assert().success();
    let reports = check(&sandbox, &["d"]).code(1).reports();
    let message = reports[0]["message"].as_str().expect("a message");
    let (path, why) = message.split_once("': ").expect("a path");
    assert!(path.starts_with("cannot read 'd/000"), "{message}");
    assert_eq!(why, "file name too long");
}

#[test]
fn a_wrong_value_is_quoted_as_it_was_given() {
    let sandbox = Sandbox::new();
    for value in ["[", "[a", "x[", "a]b[", "<[", "..["] {
        let text = format!("claw-replay: invalid value '{value}' for --glob: ");
        check(&sandbox, &["--glob", value, "d"]).code(2).stderr(contains(text));
    }
    for value in ["[x]", "<x>", "..."] {
        let text = format!("'{value}'");
        sandbox.cmd("claw-replay").arg(value).assert().code(2).stderr(contains(text));
    }
}

#[test]
fn reports_that_are_given_twice_are_merged_once() {
    let sandbox = Sandbox::new();
    sandbox.write("d/a.jsonl", transcript(1));
    sandbox.write("d/b.jsonl", transcript(1) + super::ORPHAN);
    for part in ["1", "2"] {
        let run = check(&sandbox, &["--shard", &format!("{part}/2"), "d"]);
        sandbox.write(part, run.stdout_text());
    }
    let merge = |files: &[&str]| sandbox.cmd("claw-replay").arg("merge").args(files).assert();
    let once = merge(&["1", "2"]).code(1);
    let totals = "claw-replay: 2 files: 1 passed, 1 failed\n";
    assert_eq!(once.stderr_text(), totals);
    let twice = merge(&["1", "2", "1", "2"]).code(1).stdout(once.stdout_text());
    assert_eq!(twice.stderr_text(), format!("claw-replay: left out 2 repeated reports\n{totals}"));
    // Another report on the same transcript is not a repetition.
    sandbox.write("3", check(&sandbox, &["--window", "8000", "d/a.jsonl"]).stdout_text());
    let text = "claw-replay: 3 files: 2 passed, 1 failed\n";
    assert_eq!(merge(&["1", "2", "3"]).code(1).stderr_text(), text);
}

#[test]
fn an_output_never_replaces_a_transcript() {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", transcript(1));
    sandbox.write("b.jsonl", "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/\"}\n");
    let error = |name: &str| {
        format!("cannot write '{name}': it is a transcript; give the output another name\n")
    };
    for name in ["a.jsonl", "b.jsonl"] {
        let before = sandbox.read_text(name);
        for option in ["--junit", "--markdown"] {
            let run = check(&sandbox, &[option, name, "a.jsonl"]).code(65).stdout("");
            run.stderr(contains(error(name)));
        }
        let show = sandbox
            .cmd("claw-show")
            .args(["a.jsonl", "--format", "text", "--replace", "--output", name])
            .assert();
        show.code(65).stderr(contains(error(name)));
        assert_eq!(sandbox.read_text(name), before);
    }
    sandbox.write("empty.xml", "");
    check(&sandbox, &["--junit", "empty.xml", "a.jsonl"]).success();
}

#[test]
fn standard_input_is_not_a_transcript() {
    let sandbox = Sandbox::new();
    let run = check(&sandbox, &["-"]).code(1);
    let message = run.report()["message"].clone();
    let advice = "no such file; claw-check reads a transcript from standard input";
    assert!(message.as_str().is_some_and(|it| it.contains(advice)), "{message}");
}
