//! Files without records: every program that reads records reports in one line what such a file looks like and what to
//! do.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use predicates::str::contains;

use crate::common::pty::{self, Pty};
use crate::common::{AssertExt, Cmd, Sandbox};

const RECORD: &str = "{\"type\":\"user\",\"content\":\"hi\"}\n";

/// Files that users mistake for transcripts, their description in the error, and the advice.
const STRANGERS: [(&str, &str, &str); 9] = [
    ("# Notes\n\nBuy milk.\n", "text", "'claw-append --user' turns text into a record"),
    ("%PDF-1.7\n1 0 obj\n", "a PDF file", "give a transcript"),
    ("\u{7f}ELF\u{2}\u{1}\0\0", "binary data", "give a transcript"),
    (
        "{\"role\":\"user\",\"content\":\"hi\"}\n",
        "messages, as claw-rebuild prints them",
        "give the transcript that the messages come from",
    ),
    (
        "{\"id\":\"chatcmpl-1\",\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"hi\"}}]}\n",
        "a provider's answer",
        "claw-call writes answers as records",
    ),
    ("[{\"name\":\"user\"}]\n", "a JSON array", "a transcript has one record on each line"),
    (
        "{\n  \"type\": \"user\",\n  \"content\": \"hi\"\n}\n",
        "a record that spans several lines",
        "write each record on one line, as 'jq -c .' does",
    ),
    (
        "{\"a\":1}\n",
        "JSON objects without a record type",
        "a transcript has one record on each line",
    ),
    // The search for a record reads the file in parts, which end within this line.
    ("words ", "text", "'claw-append --user' turns text into a record"),
];

/// Command lines of programs that read the transcript 'x'.
const READERS: [&[&str]; 15] = [
    &["claw-rebuild", "x"],
    &["claw-rebuild", "--array", "x"],
    &["claw-rebuild", "--ready", "x"],
    &["claw-rebuild", "--open", "x"],
    &["claw-rebuild", "--undo", "turn", "x"],
    &["claw-rebuild", "--redo", "x"],
    &["claw-rebuild", "--record", "a", "x"],
    &["claw-show", "x"],
    &["claw-show", "--format", "html", "x"],
    &["claw-show", "--follow", "x"],
    &["claw-check", "x"],
    &["claw-compact", "--retry", "x"],
    &["claw-exec", "--tools", "state", "--workspace", "state", "x"],
    &["claw-call", "--provider", "offline", "--max-total", "9", "--spent", "x", "messages"],
    &["claw-session", "status", "s"],
];

/// Returns a sandbox with `text` as the transcript 'x', which is also the transcript of the session 's'.
fn sandbox_with(text: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let path = sandbox.write("x", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    sandbox.write("messages", "{\"role\":\"user\",\"content\":\"hi\"}\n");
    let sessions = "workspace/.sessions/agents/main/sessions";
    sandbox.write(&format!("{sessions}/s.jsonl"), "");
    fs::remove_file(sandbox.path(&format!("{sessions}/s.jsonl"))).expect("a name");
    fs::hard_link(path, sandbox.path(&format!("{sessions}/s.jsonl"))).expect("a link");
    sandbox
}

fn command(sandbox: &Sandbox, words: &[&str]) -> Cmd {
    sandbox.cmd(words[0]).args(&words[1..])
}

#[test]
fn audit_13_every_reader_refuses_a_file_without_records_in_one_line() {
    for (text, looks, advice) in STRANGERS {
        // Long enough for thousands of findings.
        let sandbox = sandbox_with(&text.repeat(if text.starts_with('\u{7f}') { 1 } else { 3000 }));
        let expected = format!("': not a transcript (looks like {looks}); {advice}");
        // All programs share the code that reads files, so only the first file is tried with all programs.
        let readers = if text == STRANGERS[0].0 { &READERS[..] } else { &READERS[..1] };
        for words in readers {
            let run =
                command(&sandbox, words).assert().code(65).stdout("").stderr(contains(&expected));
            assert!(run.stderr_text().lines().count() == 1, "expected one line\n{run}");
        }
    }
}

#[test]
fn audit_13_nothing_is_appended_to_a_file_without_records() {
    for (text, looks, _) in STRANGERS {
        let text = text.repeat(if text.starts_with('\u{7f}') { 1 } else { 3000 });
        let sandbox = sandbox_with(&text);
        let run = sandbox.cmd("claw-append").arg("x").write_stdin(RECORD).assert();
        let expected = format!(
            "claw-append: cannot append to 'x': not a transcript (looks like {looks}); append to a new file\n"
        );
        run.code(65).stdout("").stderr(expected.clone());
        assert_eq!(sandbox.read_text("x"), text);
    }
    let sandbox = sandbox_with("Buy milk.\n");
    sandbox.cmd("claw-session").args(["label", "s", "text"]).assert().code(65);
    let turn = ["--provider", "offline", "-m", "hi", "./x"];
    sandbox.cmd("claw-turn").args(turn).assert().code(65).stderr(contains("looks like text"));
    assert_eq!(sandbox.read_text("x"), "Buy milk.\n");
}

#[test]
fn audit_13_a_file_without_records_is_reported_among_transcripts() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", RECORD);
    sandbox.write("empty", "");
    sandbox.write("notes", "Buy milk.\n");
    sandbox.cmd("claw-rebuild").args(["empty", "s.jsonl", "empty"]).assert().success().stderr("");
    sandbox
        .cmd("claw-rebuild")
        .args(["s.jsonl", "notes"])
        .assert()
        .code(65)
        .stdout("")
        .stderr(contains("cannot read 'notes': not a transcript (looks like text)"));
    sandbox
        .cmd("claw-rebuild")
        .write_stdin("Buy milk.\n")
        .assert()
        .code(65)
        .stderr(contains("cannot read '<stdin>': not a transcript (looks like text)"));
}

#[test]
fn audit_13_a_torn_first_record_can_be_read_and_appended_to() {
    for torn in [
        "{\"id\":\"0123456789abcdef\",\"type\":\"us",
        "{\"type\":\"user\",\"conte",
        "{",
        "\0\0\0\0",
        "\n\n",
        "",
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", torn);
        sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().stdout("");
        sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(RECORD).assert().success();
        sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(RECORD).assert().success();
        assert_eq!(sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().json().len(), 1);
    }
    // The first lines do not matter if a record follows, near or far, short or long.
    let long = format!("{{\"type\":\"user\",\"content\":\"{}\"}}\n", "x".repeat(200_000));
    for first in ["garbage\n", "{\"a\":1}\n", "{\"type\":\"us\n", "", &"garbage\n".repeat(20_000)] {
        for record in [RECORD, &long] {
            let sandbox = Sandbox::new();
            sandbox.write("s.jsonl", format!("{first}{record}"));
            sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(record).assert().success();
            assert_eq!(
                sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().json().len(),
                1
            );
        }
    }
}

#[test]
fn audit_13_bytes_between_records_at_both_ends_are_not_checked() {
    let note = "{\"type\":\"note\"}\n";
    for (first, last) in [(note, note), (RECORD, note), ("", RECORD), ("", note)] {
        let sandbox = Sandbox::new();
        let path = sandbox.write("s.jsonl", first);
        let mut file = fs::OpenOptions::new().append(true).open(path).expect("the file");
        file.set_len(8 << 30).expect("a hole");
        file.write_all(format!("\n{last}").as_bytes()).expect("the last record");
        // A program that read the bytes between the records would run out of memory.
        let script = "ulimit -v 1000000; exec claw-append s.jsonl";
        sandbox.sh(script).write_stdin(RECORD).assert().success();
    }
}

#[test]
fn audit_13_input_without_messages_or_records_is_refused_with_advice() {
    let sandbox = Sandbox::new();
    let claude =
        "{\"parentUuid\":null,\"type\":\"user\",\"message\":{\"role\":\"user\"},\"uuid\":\"u\"}\n";
    for (text, for_messages, for_records) in [
        (RECORD, "these are records, pipe them through claw-rebuild", ""),
        (STRANGERS[3].0, "", "these are messages; a record has a type, see claw-record(5)"),
        (
            STRANGERS[5].0,
            "give one message per line: jq -c '.[]'",
            "a transcript has one record on each line, see claw-record(5)",
        ),
        (
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n",
            "pipe it through claw-rebuild",
            "'claw-session import' converts it to records, see claw-dialects(7)",
        ),
        (
            claude,
            "pipe it through claw-rebuild",
            "'claw-session import' converts it to records, see claw-dialects(7)",
        ),
        (
            STRANGERS[0].0,
            "give messages as claw-rebuild prints them",
            "'claw-append --user' turns text into a record",
        ),
    ] {
        // claw-estimate also reads transcripts, including those of other programs.
        let readers = match text == STRANGERS[0].0 {
            true => &["claw-estimate", "claw-truncate", "claw-compact", "claw-call"][..],
            false => &["claw-truncate", "claw-compact", "claw-call"],
        };
        for program in readers.iter().filter(|_| !for_messages.is_empty()) {
            let cmd = sandbox.cmd(program).args(["--window", "8000"]).env("CLAW_MODEL", "m");
            cmd.write_stdin(text)
                .assert()
                .code(65)
                .stdout("")
                .stderr(contains(format!("; {for_messages}\n")));
        }
        if !for_records.is_empty() {
            sandbox
                .cmd("claw-append")
                .arg("new.jsonl")
                .write_stdin(text)
                .assert()
                .code(65)
                .stderr(contains(format!("; {for_records}\n")));
            assert!(!sandbox.exists("new.jsonl"));
        }
    }
}

#[test]
fn audit_13_a_terminal_gets_the_first_findings_of_a_rule_and_a_file_gets_all() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", RECORD.to_owned() + &"garbage\n".repeat(50) + "{\"type\n[1]\n");
    let run = sandbox
        .cmd("claw-rebuild")
        .arg("s.jsonl")
        .assert()
        .success()
        .stderr(contains("claw-rebuild: 52 findings\n"));
    assert_eq!(run.stderr_text().lines().count(), 53);
    if !pty::can_run() {
        return;
    }
    let mut pty = Pty::run(sandbox.sh("claw-rebuild s.jsonl >messages"), (200, 60));
    pty.end().success();
    let screen = pty.screen();
    assert_eq!(screen.matches("not-an-object: 's.jsonl'").count(), 20, "{screen}");
    assert_eq!(screen.matches("torn-line: 's.jsonl'").count(), 1, "{screen}");
    let more = "claw-rebuild: not-an-object: 31 more; claw-check lists them";
    assert!(screen.contains(more) && screen.contains("52 findings"), "{screen}");
}
