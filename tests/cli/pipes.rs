//! Tests how the programs of a pipeline handle input that is closed, missing or invalid, readers that are slow or have
//! exited, and a full disk. On bad input, each program exits with the documented status, prints one line, and changes
//! no file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::str::contains;

use crate::common::{AssertExt, Cmd, Sandbox, into_closed_pipe};

/// A program to test, its command line, and valid and invalid input for it.
struct Program {
    name: &'static str,
    /// The command line that reads standard input and writes to standard output.
    usual: &'static str,
    /// Valid input of several lines.
    good: String,
    /// An invalid line.
    bad: &'static str,
    /// The error for this line.
    why: &'static str,
    /// The exit status for this line.
    status: i32,
}

/// Returns a long conversation, with each line made from the template for its role.
fn conversation(user: &str, assistant: &str) -> String {
    let turn = |n: usize| {
        let text = format!("{n} {}", "words ".repeat(500));
        format!("{user}\n{assistant}\n").replace("TEXT", &text)
    };
    (0..100).map(turn).collect()
}

fn records() -> String {
    conversation(
        r#"{"type":"user","content":"TEXT"}"#,
        r#"{"type":"assistant","content":[{"type":"text","text":"TEXT"}]}"#,
    )
}

fn messages() -> String {
    conversation(r#"{"role":"user","content":"TEXT"}"#, r#"{"role":"assistant","content":"TEXT"}"#)
}

/// Returns the programs to test. `claw-compact` reads the file `summary` of its sandbox.
fn programs() -> Vec<Program> {
    let filter = |name, usual| Program {
        name,
        usual,
        good: messages() + r#"{"role":"user","content":"and now?"}"#,
        bad: r#"{"role":"nobody","content":"x"}"#,
        why: "role",
        status: 65,
    };
    vec![
        Program {
            good: records(),
            bad: r#"{"type":"user"}"#,
            why: "no 'content'",
            ..filter("claw-append", "claw-append --tee new.jsonl")
        },
        Program {
            good: records(),
            bad: r#"{"type":"user","content":"torn"#,
            why: "torn",
            ..filter("claw-rebuild", "claw-rebuild --strict")
        },
        filter("claw-estimate", "claw-estimate"),
        filter("claw-truncate", "claw-truncate --window 1000000"),
        filter("claw-compact", "claw-compact --window 1000000 --summary summary"),
        #[cfg(feature = "http")]
        filter("claw-call", "claw-call --provider offline --window 1000000"),
    ]
}

/// Runs a test for each program, in a new sandbox that has the program's valid input in the file `good`.
#[track_caller]
fn for_each(test: impl Fn(&Program, &Sandbox)) {
    for program in programs() {
        let sandbox = Sandbox::new();
        sandbox.write("summary", "In short: words.");
        sandbox.write("good", &program.good);
        test(&program, &sandbox);
    }
}

/// Returns a command that runs `script`, with `CMD` replaced by the usual command line of the program.
fn sh(sandbox: &Sandbox, program: &Program, script: &str) -> Cmd {
    sandbox.sh(&script.replace("CMD", program.usual)).timeout(Duration::from_secs(60))
}

/// Checks that the program wrote one line to standard error, beginning with the program's name.
#[track_caller]
fn one_line(run: &Assert, program: &Program) {
    assert!(
        run.stderr_text().starts_with(&format!("{}: ", program.name)),
        "the line must begin with the program's name\n{run}"
    );
    assert!(run.stderr_text().lines().count() == 1, "expected one line\n{run}");
}

/// Returns every file of the sandbox with its bytes.
fn files(sandbox: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries =
        walkdir::WalkDir::new(sandbox.dir()).into_iter().map(|entry| entry.expect("an entry"));
    let files =
        entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

// ---- input ----------------------------------------------------------------------------------

#[test]
fn a_closed_standard_input_is_an_error() {
    for_each(|program, sandbox| {
        let before = files(sandbox);
        let run = sh(sandbox, program, "CMD <&-")
            .assert()
            .code(74)
            .stdout("")
            .stderr(contains("'<stdin>'"))
            .stderr(contains("closed"));
        one_line(&run, program);
        assert_eq!(files(sandbox), before, "{}", program.name);
    });
}

#[test]
fn bad_input_is_reported_with_file_line_and_reason_and_changes_nothing() {
    for_each(|program, sandbox| {
        let Program { name, bad, why, status, .. } = program;
        let good = program.good.lines().next().expect("a line");
        let input = format!("{good}\n\n{bad}\n");
        sandbox.write("input file", &input);
        let before = files(sandbox);
        let from_stdin = ("<stdin>", "CMD <'input file'");
        let from_file = ("input file", "CMD 'input file'");
        for (input, script) in [from_stdin, from_file] {
            // The operand of claw-append is its output file.
            if *name == "claw-append" && input != "<stdin>" {
                continue;
            }
            let run = sh(sandbox, program, script).assert().code(*status).stdout("");
            let place = format!("'{input}' line 3");
            let naming: Vec<&str> =
                run.stderr_text().lines().filter(|l| l.contains(&place)).collect();
            assert!(
                matches!(naming.as_slice(), [one] if one.starts_with(name) && one.contains(why)),
                "expected one line with {place} and {why:?}\n{run}"
            );
            assert_eq!(files(sandbox), before, "{name}");
        }
    });
}

#[test]
fn input_that_is_not_utf_8_is_bad_input() {
    for_each(|program, sandbox| {
        let good = program.good.lines().next().expect("a line");
        let input = [good.as_bytes(), b"\n", program.bad.as_bytes(), b"\xff\n"].concat();
        sh(sandbox, program, "CMD")
            .write_stdin(input)
            .assert()
            .code(65)
            .stdout("")
            .stderr(contains("'<stdin>' line 2"))
            .stderr(contains("UTF-8"));
    });
}

#[test]
fn a_missing_file_is_named() {
    for_each(|program, sandbox| {
        // claw-append creates its file, but not below a path that is not a directory.
        let (script, operand) = match program.name {
            "claw-append" => ("claw-append good/new.jsonl <good", "'good/new.jsonl'"),
            _ => ("CMD nowhere.jsonl", "'nowhere.jsonl'"),
        };
        let before = files(sandbox);
        let run =
            sh(sandbox, program, script).assert().code(74).stdout("").stderr(contains(operand));
        one_line(&run, program);
        assert_eq!(files(sandbox), before, "{}", program.name);
    });
}

#[test]
fn a_directory_is_refused_as_input() {
    for_each(|program, sandbox| {
        let run = sandbox
            .cmd(program.name)
            .arg("state")
            .write_stdin(program.good.clone())
            .assert()
            .code(74)
            .stdout("")
            .stderr(contains("'state'"));
        one_line(&run, program);
    });
}

#[test]
fn an_unknown_option_is_a_usage_error() {
    for_each(|program, sandbox| {
        let before = files(sandbox);
        sh(sandbox, program, "CMD --no-such-option")
            .write_stdin(program.good.clone())
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains("--no-such-option"))
            .stderr(contains("--help"));
        assert_eq!(files(sandbox), before, "{}", program.name);
    });
}

// ---- output ---------------------------------------------------------------------------------

#[test]
fn every_program_ends_quietly_when_its_reader_has_exited() {
    for_each(|program, sandbox| {
        sh(sandbox, program, &into_closed_pipe("CMD <good"))
            .assert()
            .success()
            .stdout("141\n")
            .stderr("");
    });
}

#[test]
fn a_reader_that_takes_one_line_gets_it() {
    for_each(|program, sandbox| {
        let script = "{ CMD <good; echo $? >status; } | head -n 1; cat status";
        let run = sh(sandbox, program, script).assert().success();
        let lines = run.lines();
        let [_, status] = lines.as_slice() else { panic!("expected two lines: {lines:?}") };
        // claw-estimate and claw-call write only one line, so they may finish before the reader exits.
        let is_long = !["claw-estimate", "claw-call"].contains(&program.name);
        let expected: &[&str] = if is_long { &["141"] } else { &["0", "141"] };
        assert!(expected.contains(&status.as_str()), "{expected:?}\n{run}");
        run.stderr("");
    });
}

#[test]
fn a_full_output_is_an_error() {
    for_each(|program, sandbox| {
        let run = sh(sandbox, program, "CMD <good >/dev/full")
            .assert()
            .code(74)
            .stderr(contains("cannot write '<stdout>'"));
        one_line(&run, program);
    });
}

#[test]
fn if_tee_fails_append_reports_that_the_file_has_the_records() {
    let sandbox = Sandbox::new();
    let record = r#"{"type":"user","content":"hi"}"#;
    sandbox
        .sh("claw-append --tee s.jsonl >/dev/full")
        .write_stdin(record)
        .assert()
        .code(74)
        .stderr(contains("'s.jsonl' has the records"));
    assert_eq!(sandbox.read_json("s.jsonl")[0]["content"], "hi");
}

/// Reads the output of a command slowly, and checks that the command succeeds.
#[track_caller]
fn read_slowly(cmd: Cmd) -> Vec<u8> {
    let mut child = cmd.spawn();
    let mut stdout = child.stdout.take().expect("a piped stdout");
    let (mut all, mut buffer) = (Vec::new(), vec![0; 100_000]);
    loop {
        let count = stdout.read(&mut buffer).expect("the output");
        if count == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..count]);
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().expect("an exit status").success());
    all
}

#[test]
fn a_slow_reader_gets_every_byte_of_ten_mebibytes() {
    let sandbox = Sandbox::new();
    let text = "0123456789abcdef".repeat(1 << 12);
    let records: String = (0..160)
        .map(|n| {
            format!(
                "{{\"type\":\"user\",\"content\":\"{n} {text}\"}}\n\
                 {{\"type\":\"assistant\",\"content\":\"{n}\"}}\n"
            )
        })
        .collect();
    assert!(records.len() > 10 << 20);
    let append = sandbox.cmd("claw-append").args(["--tee", "--no-sync", "s.jsonl"]);
    let tee = read_slowly(append.write_stdin(records));
    assert!(tee == sandbox.read("s.jsonl"), "the output of --tee differs from the file");

    let rebuilt = read_slowly(sandbox.cmd("claw-rebuild").arg("s.jsonl"));
    let expected: String = (0..160)
        .map(|n| {
            format!(
                "{{\"role\":\"user\",\"content\":\"{n} {text}\"}}\n\
                 {{\"role\":\"assistant\",\"content\":\"{n}\"}}\n"
            )
        })
        .collect();
    assert!(rebuilt == expected.as_bytes(), "the rebuilt messages differ");
}

// ---- help -----------------------------------------------------------------------------------

#[test]
fn help_and_version_work_with_closed_standard_streams() {
    for_each(|program, sandbox| {
        let Program { name, .. } = program;
        for option in ["--help", "--version"] {
            sandbox.sh(&format!("{name} {option} <&- >&- 2>&-")).assert().success();
            sandbox.sh(&format!("{name} {option} <&- | head -n 1")).assert().success().stderr("");
        }
        let version = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
        sandbox.cmd(name).arg("--version").assert().success().stdout(version.clone()).stderr("");
        sandbox
            .cmd(name)
            .arg("--help")
            .assert()
            .success()
            .stdout(contains(format!("Usage: {name}")))
            .stderr("");
    });
}
