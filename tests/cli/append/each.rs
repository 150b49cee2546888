//! claw-append --each appends records as they arrive; --print writes the text of replies.

use std::io::Write;
use std::thread;
use std::time::Duration;

use predicates::str::contains;
use serde_json::json;

use super::append;
use crate::common::pty::{Pty, can_run};
use crate::common::{Sandbox, into_closed_pipe};

/// Waits until the transcript has `count` records.
fn wait_for_records(sandbox: &Sandbox, count: usize) {
    let has = || sandbox.exists("s.jsonl") && sandbox.read_json_so_far("s.jsonl").len() == count;
    for _ in 0..12_000 {
        if has() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("no {count} records: {}", sandbox.read_text("s.jsonl"));
}

#[test]
fn each_appends_records_as_they_arrive_and_ignores_signals() {
    let sandbox = Sandbox::new();
    let mut child = append(&sandbox).args(["--each", "--tee"]).spawn();
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut send = |text: &str| {
        let record = json!({"type": "user", "content": text});
        stdin.write_all(format!("{record}\n\n").as_bytes()).expect("a reader");
    };
    send("one");
    wait_for_records(&sandbox, 1);
    for signal in ["HUP", "INT", "TERM"] {
        crate::common::send(signal, child.id());
        send(signal);
    }
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, sandbox.read("s.jsonl"));
    assert_eq!(sandbox.read_json("s.jsonl").len(), 4);
    sandbox.cmd("claw-check").arg("s.jsonl").assert().success();
}

#[test]
fn each_keeps_the_records_before_an_invalid_line() {
    let sandbox = Sandbox::new();
    let good = r#"{"type":"user","content":"hi"}"#;
    let each = |input: String| append(&sandbox).arg("--each").write_stdin(input).assert();
    each(format!("\u{feff}{good}\n{good}")).success();
    each(format!("{good}\n\nbad\n{good}\n"))
        .code(65)
        .stderr(contains("'<stdin>' line 3: not a JSON object"));
    assert_eq!(sandbox.read_json("s.jsonl").len(), 3);
    for args in [&["--user"][..], &["--expect-tail", ""], &["--tool-result", "c"]] {
        append(&sandbox).arg("--each").args(args).assert().code(2).stderr(contains("exclude"));
    }
}

#[test]
fn print_writes_only_the_text_of_replies() {
    let sandbox = Sandbox::new();
    let records = [
        json!({"type": "user", "content": "hi"}),
        json!({"type": "assistant", "content": [{"type": "text", "text": "one\u{1b}[31m"}]}),
        json!({"type": "tool_use", "tool_use_id": "c", "name": "ls", "input": {}}),
        json!({"type": "assistant", "content": []}),
        json!({"type": "assistant", "content": "two\n"}),
    ];
    let records = records.map(|record| format!("{record}\n")).concat();
    let text = "one\u{1b}[31m\ntwo\n";
    let print = |args: &[&str]| append(&sandbox).args(args).write_stdin(&*records).assert();
    print(&["--print"]).success().stdout(text);
    print(&["--print", "--each"]).success().stdout(text);
    print(&["--print", "--tee"]).code(2).stderr(contains("--print and --tee exclude each other"));
    for (args, count) in [("--print", 15), ("--print --each", 20), ("--tee --each", 25)] {
        let full = sandbox.sh(&format!("claw-append {args} s.jsonl >/dev/full"));
        full.write_stdin(&*records).assert().code(74).stderr(contains("'s.jsonl' has the records"));
        assert_eq!(sandbox.read_json("s.jsonl").len(), count);
    }
    let gone = into_closed_pipe("claw-append --print --each s.jsonl");
    sandbox.sh(&gone).write_stdin(&*records).assert().success().stdout("141\n").stderr("");
    assert_eq!(sandbox.read_json("s.jsonl").len(), 30);
    if can_run() {
        sandbox.write("records", &records);
        let mut pty = Pty::run(sandbox.sh("claw-append --print s.jsonl <records"), (80, 24));
        pty.end().success();
        assert_eq!(pty.screen(), "one\\u{1b}[31m\ntwo");
    }
}
