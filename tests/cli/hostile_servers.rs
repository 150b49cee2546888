//! claw-call: servers that break the connection, keep it open, send slowly or endlessly, or send odd replies, in
//! three protocols. Each row of the tables states what the server does, the exit status of `claw-call`, limits on its
//! time and memory, and the transcript after `| claw-append`.

mod server;
mod table;
mod words;

use std::env;
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox, kill_group};
use crate::shapes::{HELLO, name};
use server::{Act, Server, head};
use table::{broken, ended, huge, large, odd, slow};
use words::{error, send};

const MIB: usize = 1 << 20;

/// The expected output.
#[derive(Clone, Debug)]
enum Expected {
    /// No record.
    Nothing,
    /// A reply with this text.
    Reply(&'static str),
    /// An interrupted record whose text begins with this.
    Interrupted(&'static str),
    /// At least this many bytes of output, which are not appended.
    Bytes(usize),
}

/// A server, a call to it, and the expected outcome.
struct Row {
    name: String,
    shape: Shape,
    connections: Vec<Vec<Act>>,
    args: &'static [&'static str],
    status: i32,
    /// The longest permitted time, in seconds.
    within: f64,
    /// The largest permitted peak memory, in MiB, without the pages of the program's file.
    memory: usize,
    /// Text that standard error contains.
    stderr: &'static str,
    expected: Expected,
}

/// Returns a row with the default limits: 4 s and 42 MiB.
fn row(name: &str, shape: Shape, acts: Vec<Act>, status: i32, expected: Expected) -> Row {
    Row {
        name: format!("{name} ({shape:?})"),
        shape,
        connections: vec![acts],
        args: &["--max-retries", "0"],
        status,
        within: 4.0,
        memory: 42,
        stderr: "",
        expected,
    }
}

// ---- running a row ------------------------------------------------------------------------------

impl Row {
    fn within(self, seconds: f64) -> Row {
        Row { within: seconds, ..self }
    }

    /// Runs the row; returns a description of the first difference. The server waits so many times longer before it resets a
    /// connection.
    fn check(&self, times: u32) -> Result<(), String> {
        let sandbox = Sandbox::new();
        sandbox.write("m", HELLO);
        let server = Server::resetting_after(times, self.connections.clone());
        let script = r#"exec claw-call --stream=shown "$@" m >out 2>stderr"#;
        let cmd = sandbox.sh(script).arg("sh").args(["--provider", name(self.shape)]);
        let cmd = cmd.args(["--model", "m", "--base-url", &format!("http://{}", server.address)]);
        let began = Instant::now();
        let cmd = cmd.args(self.args).env("ANTHROPIC_API_KEY", "test-key-of-row");
        let mut child = cmd.env("CLAW_WINDOW", "32768").spawn();
        let (mut peak, limit) = (0, Duration::from_secs_f64(self.within + 20.0));
        let status = loop {
            peak = peak.max(peak_of(child.id()).unwrap_or(0));
            if let Some(status) = child.try_wait().expect("the state of the process") {
                break status.code();
            }
            if began.elapsed() > limit {
                kill_group(child.id());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let took = began.elapsed().as_secs_f64();
        let stderr = sandbox.read_text("stderr");
        let fail = |what: String| Err(format!("{}: {what}\n{stderr}", self.name));
        if status != Some(self.status) {
            return fail(format!("ended with {status:?}, expected {}", self.status));
        }
        if took > self.within {
            return fail(format!("took {took:.1} s, expected at most {} s", self.within));
        }
        if peak > self.memory * MIB {
            return fail(format!("used {} MiB, expected at most {}", peak / MIB, self.memory));
        }
        if !stderr.contains(self.stderr) {
            return fail(format!("expected {:?}", self.stderr));
        }
        self.check_transcript(&sandbox).or_else(fail)
    }

    fn check_transcript(&self, sandbox: &Sandbox) -> Result<(), String> {
        if let Expected::Bytes(least) = self.expected {
            let length = fs::metadata(sandbox.path("out")).map_or(0, |file| file.len());
            return match length >= least as u64 {
                true => Ok(()),
                false => Err(format!("wrote {length} bytes, expected {least}")),
            };
        }
        let run = sandbox.sh("claw-append t.jsonl <out").assert();
        let records = if sandbox.exists("t.jsonl") { sandbox.read_json("t.jsonl") } else { vec![] };
        let is_part = |record: &Value| record["interrupted"] == true;
        let text = |record: &Value| -> String {
            let blocks = record["content"].as_array().cloned().unwrap_or_default();
            blocks.iter().filter_map(|block| block["text"].as_str()).collect()
        };
        let is_right = run.get_output().status.code() == Some(0)
            && match (&self.expected, records.as_slice()) {
                (Expected::Nothing, []) => true,
                (Expected::Reply(reply), [one]) => !is_part(one) && text(one) == *reply,
                (Expected::Interrupted(start), [one]) => {
                    is_part(one) && text(one).starts_with(start)
                }
                _ => false,
            };
        match is_right {
            true => Ok(()),
            false => Err(format!("appended {records:?}, expected {:?}", self.expected)),
        }
    }
}

/// Returns the peak memory of claw-call so far, in bytes, without the pages of its own file, which are 6 MiB in an
/// optimised program and 15 in a debug build; `None` if the process does not run claw-call yet, because the figures may
/// then be those of the test process that started it.
fn peak_of(process: u32) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.strip_prefix("Name:\tclaw-call\n")?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<usize>().ok()
    };
    Some(kib("VmHWM:")?.saturating_sub(kib("RssFile:")?) * 1024)
}

fn check(rows: Vec<Row>, at_once: usize) {
    let (rows, failed) = (Mutex::new(rows), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let next = rows.lock().expect("rows").pop();
                    let Some(row) = next else { break };
                    // `failed` is locked only after the row has run; otherwise the rows would run one after
                    // another.
                    let check = |times| row.check(times).err();
                    // On a loaded machine, a process may be scheduled seconds late.
                    let wrong = check(1).and_then(|_| check(4)).and_then(|_| check(16));
                    failed.lock().expect("failures").extend(wrong);
                }
            });
        }
    });
    let failed = failed.into_inner().expect("failures");
    assert!(failed.is_empty(), "{} rows:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn audit_08_a_complete_reply_is_kept_however_the_connection_ends() {
    check(Shape::ALL.into_iter().flat_map(ended).collect(), 6);
}

#[test]
fn audit_09_an_interrupted_answer_and_a_refusal_are_classified_by_what_arrived() {
    check(Shape::ALL.into_iter().flat_map(broken).collect(), 6);
}

#[test]
fn audit_10_sizes_are_limited() {
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    // These rows run one after another, because an unoptimised program needs a long time for 64 MiB.
    check(Shape::ALL.into_iter().flat_map(large).chain(huge(is_full)).collect(), 1);
}

#[test]
fn audit_18_every_part_of_an_odd_reply_is_kept_or_reported() {
    check(odd(), 6);
}

/// A paused turn is continued with the content so far; each reply keeps its own token count.
#[test]
fn audit_18_a_paused_turn_is_continued_a_limited_number_of_times() {
    let answer = |text: &str, reason: &str| {
        let used = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
        let content = [used, json!({"type": "text", "text": text})];
        let body = json!({"content": content, "model": "m", "stop_reason": reason, "usage": {"input_tokens": 9, "output_tokens": 5}});
        vec![send(head(200, &[])), send(body.to_string())]
    };
    let paused = || answer("Look.", "pause_turn");
    for (connections, status, requests) in
        [(vec![paused(), paused(), answer("So.", "end_turn")], 0, 3), (vec![paused()], 6, 11)]
    {
        let (sandbox, server) = (Sandbox::new(), Server::new(connections));
        let cmd = sandbox.cmd("claw-call").args(["--model", "m", "--meta", "--base-url"]);
        let cmd = cmd.arg(format!("http://{}", server.address));
        let run = cmd
            .env("ANTHROPIC_API_KEY", "test-key-of-row")
            .write_stdin(HELLO)
            .assert()
            .code(status);
        let records = run.json();
        assert_eq!(records.len(), requests);
        assert!(records.iter().all(|record| record["usage"]["input_tokens"] == 9));
        assert!(records[1]["call"].is_null() && records[0]["call"].is_object());
        let sent = server.requests();
        assert_eq!(sent.len(), requests);
        let last: Value = serde_json::from_str(&sent[2]).expect("JSON");
        assert_eq!(last["messages"].as_array().map(Vec::len), Some(2), "{last}");
        assert_eq!(last["messages"][1]["content"].as_array().map(Vec::len), Some(4));
        sandbox.write("out", &run.get_output().stdout);
        let script =
            "claw-append --user s.jsonl <m && claw-append s.jsonl <out && claw-rebuild s.jsonl";
        sandbox.write("m", "hello\n");
        let messages = sandbox.sh(script).assert();
        assert_eq!(
            messages.success().json()[1]["content"].as_array().map(Vec::len),
            Some(2 * requests)
        );
    }
}

#[test]
fn audit_18_the_content_so_far_is_kept_if_the_continuation_fails() {
    let block = json!({"type": "text", "text": "Look."});
    let paused = json!({"content": [block], "model": "m", "stop_reason": "pause_turn"});
    let refused = error(Shape::Anthropic, "overloaded_error", "Overloaded");
    let connections = vec![
        vec![send(head(200, &[])), send(paused.to_string())],
        vec![send(head(529, &[])), send(refused)],
    ];
    let row = Row {
        connections,
        ..row("a paused turn", Shape::Anthropic, vec![], 75, Expected::Interrupted("Look."))
    };
    check(vec![row], 1);
}

#[test]
fn audit_19_waits_and_slow_answers_are_limited() {
    check(Shape::ALL.into_iter().flat_map(slow).collect(), 12);
}
