//! Signals during an answer: no record is written in part, and the text that was shown is kept, except after SIGKILL.

use std::env;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox, send_to_group};
use crate::conversations::{Conversation, log, rebuild, words};
use crate::shapes::{HELLO, call};

const SIGNALS: [(&str, i32); 5] = [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("KILL", 9)];

/// Reads the beginning of the shown text, sends the signal, and returns all of the shown text and the exit status.
fn interrupt(mut child: Child, shown: &mut impl Read, name: &str) -> (String, ExitStatus) {
    let mut text = vec![0; "Reply to".len()];
    shown.read_exact(&mut text).expect("the beginning of the text");
    assert!(send_to_group(name, child.id()));
    shown.read_to_end(&mut text).expect("the rest of the text");
    (String::from_utf8(text).expect("text"), child.wait().expect("an exit status"))
}

#[test]
fn p_6_claw_call_records_the_text_it_showed_and_is_ended_by_the_signal() {
    for shape in Shape::ALL {
        for (name, number) in SIGNALS {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            provider.script(Step::Slow(4, Duration::from_secs(60)));
            let cmd = call(&sandbox, &provider, shape, &["--stream", "--record", "tape"]);
            let mut child = cmd.write_stdin(HELLO).spawn();
            let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
            let (shown, end) = interrupt(child, stderr.as_mut().expect("a pipe"), name);
            assert!(shown.starts_with("Reply to"), "{shown}");
            assert_eq!(end.signal(), Some(number), "{shape:?} {name}");
            let mut records = String::new();
            stdout.as_mut().expect("a pipe").read_to_string(&mut records).expect("text");
            let shown = shown.trim_end_matches('\n');
            let kept: Vec<Value> =
                records.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            if name == "KILL" {
                assert_eq!(records, "", "{shape:?}");
            } else {
                assert_eq!(kept.len(), 1, "{shape:?} {name}: {records}");
                assert_eq!(kept[0]["interrupted"], true, "{records}");
                assert_eq!(kept[0]["content"], json!([{"type": "text", "text": shown}]));
            }
            assert!(!sandbox.exists("tape"), "the interrupted exchange was recorded");
        }
    }
}

/// A program that forwards signals may repeat a signal that the terminal has already sent.
#[test]
fn a_second_signal_does_not_lose_the_shown_text() {
    for (name, number) in SIGNALS.into_iter().filter(|(name, _)| *name != "KILL") {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::Slow(4, Duration::from_secs(60)));
        let args = ["--stream=-", "--reply", "reply"];
        let mut child =
            call(&sandbox, &provider, Shape::Anthropic, &args).write_stdin(HELLO).spawn();
        let mut text = vec![0; "Reply to".len()];
        child
            .stdout
            .as_mut()
            .expect("a pipe")
            .read_exact(&mut text)
            .expect("the beginning of the text");
        let process = child.id();
        let again =
            format!("for n in 1 2 3 4 5; do kill -s {name} {process} || :; done 2>/dev/null");
        let sent = Command::new("sh").args(["-c", &again]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert_eq!(child.wait().expect("an exit status").signal(), Some(number), "{name}");
        assert_eq!(sandbox.read_json("reply")[0]["interrupted"], true, "{name}");
    }
}

/// Returns a `claw-turn --stream` command on `s.jsonl`, with the sandbox as `TMPDIR`.
fn turn(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(provider.env_for(shape)).env("CLAW_WINDOW", "12000");
    let usual = ["--no-checkpoint", "--stream"];
    cmd.env("TMPDIR", sandbox.dir()).args(usual).args(args).arg("s.jsonl")
}

#[test]
fn p_6_claw_turn_keeps_the_prompt_and_the_text_it_showed() {
    for shape in Shape::ALL {
        for (name, number) in SIGNALS {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            Conversation::of("uacr", 9).assistant("Well.").append(&sandbox, "s.jsonl");
            let before = sandbox.read("s.jsonl");
            provider.script(Step::Slow(4, Duration::from_secs(60)));
            let mut child = turn(&sandbox, &provider, shape, &["-m", "next?"]).spawn();
            let mut stdout = child.stdout.take().expect("a pipe");
            let (shown, end) = interrupt(child, &mut stdout, name);
            assert!(shown.starts_with("Reply to"), "{shown}");
            let own = if name == "KILL" { end.signal() } else { end.code().map(|code| code - 128) };
            assert_eq!(own, Some(number), "{shape:?} {name}: {end}");
            if name != "KILL" {
                sandbox.sh("ls -d claw-turn.* 2>/dev/null").assert().stdout("");
            }
            let after = sandbox.read("s.jsonl");
            let added = String::from_utf8(after[before.len()..].to_vec()).expect("text");
            let records = if name == "KILL" { 1 } else { 2 };
            assert!(after.starts_with(&before) && added.lines().count() == records, "{added}");
            assert!(added.contains(r#""type":"user""#), "{added}");
            assert_eq!(added.matches(r#""interrupted":true"#).count(), records - 1, "{added}");
            // A further turn on this transcript succeeds.
            turn(&sandbox, &provider, shape, &["--again"])
                .assert()
                .success()
                .stdout("Reply to 5 messages: next?\n");
            assert_eq!(rebuild(&sandbox, "s.jsonl").matches("next?").count(), 2);
            provider.all_legal();
        }
    }
}

/// The interrupted record is in the transcript but in no request.
#[test]
fn audit_20_shown_text_is_kept_but_not_sent() {
    for shape in Shape::ALL {
        let half = if shape == Shape::Ollama { 450 } else { 900 };
        for step in [Step::Cut(half), Step::stream_error("overloaded_error", "busy")] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            Conversation::of("ua", 9).append(&sandbox, "s.jsonl");
            let before = rebuild(&sandbox, "s.jsonl");
            provider.script(step.clone());
            let run = turn(&sandbox, &provider, shape, &["-m", "next?"]).assert();
            assert!(
                matches!(run.get_output().status.code(), Some(69 | 75)),
                "expected 69 or 75\n{run}"
            );
            let records = sandbox.read_json("s.jsonl");
            let kinds: Vec<&Value> = records.iter().map(|record| &record["type"]).collect();
            assert_eq!(kinds[2..], ["user", "assistant", "error"], "{shape:?} {step:?}");
            let kept = &records[3];
            assert_eq!(kept["interrupted"], true, "{kept}");
            assert_eq!(kept["content"][0]["text"], run.stdout_text().trim_end_matches('\n'));

            let messages = rebuild(&sandbox, "s.jsonl");
            assert!(messages.starts_with(&before) && messages.lines().count() == 3, "{messages}");
            let cmd = |program: &str, args: &[&str]| {
                sandbox.cmd(program).args(args).arg("s.jsonl").assert()
            };
            cmd("claw-rebuild", &["--ready"]).success();
            let meta = cmd("claw-rebuild", &["--meta", "--interrupted"]).success().json();
            assert_eq!(meta[3]["content"], kept["content"]);
            assert_eq!(
                meta[3]["_meta"]["usage"],
                Value::Null,
                "an interrupted record has a token count"
            );
            cmd("claw-check", &[]).success();
            cmd("claw-show", &["--format", "text"]).success().stdout(contains("interrupted"));

            turn(&sandbox, &provider, shape, &["--again"])
                .assert()
                .success()
                .stdout("Reply to 3 messages: next?\n");
            provider.all_legal();
            let targets = cmd("claw-rebuild", &["--undo", "turn"]).success().json();
            assert!(targets.iter().any(|record| record["target"] == kept["id"]), "{targets:?}");
        }
    }
}

#[test]
fn v58_p6_a_turn_killed_at_any_moment_leaves_a_usable_transcript() {
    let conversation = (0..6).fold(Conversation::new(), |conversation, n| {
        let conversation =
            conversation.user(&format!("Build target {n}.")).tool(log(150)).assistant("It fails.");
        conversation.user("Why?").assistant(&words(600))
    });
    let is_full = env::var_os("CLAW_TEST_FULL").is_some();
    thread::scope(|scope| {
        for (offset, shape) in (0..).zip(Shape::ALL) {
            let conversation = &conversation;
            scope.spawn(move || {
                let sandbox = Sandbox::new();
                conversation.append(&sandbox, "base.jsonl");
                let base = sandbox.read("base.jsonl");
                let args = ["--no-proactive", "--max-tokens", "500", "-m", "next?"];
                let run = |provider: &FakeProvider| turn(&sandbox, provider, shape, &args);
                sandbox.write("s.jsonl", &base);
                let began = Instant::now();
                run(&FakeProvider::new().window(4000))
                    .assert()
                    .success()
                    .stderr(contains("summarised "));
                let whole = began.elapsed();
                // The turn is interrupted at nine moments, each with one shape; in a full run, each with every shape.
                for round in (0..9).filter(|round| is_full || round % 3 == offset) {
                    sandbox.write("s.jsonl", &base);
                    std::fs::remove_dir_all(sandbox.path("state"))
                        .expect("the state directory, which may hold a learned window");
                    let provider = FakeProvider::new().window(4000);
                    let mut child = run(&provider).spawn();
                    thread::sleep(whole * (round + 1) / 10);
                    if child.try_wait().expect("the state of the process").is_none() {
                        let signals = SIGNALS;
                        assert!(send_to_group(
                            signals[round as usize % signals.len()].0,
                            child.id()
                        ));
                    }
                    child.wait().expect("an exit status");
                    assert!(sandbox.read("s.jsonl").starts_with(&base), "{shape:?} {round}");
                    sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success();
                    run(&provider).assert().success().stdout(contains("next?"));
                    for request in provider.requests() {
                        let rule = request.violation.map(|violation| violation.rule);
                        assert!(matches!(rule, None | Some("A12")), "{shape:?} {round}: {rule:?}");
                    }
                }
            });
        }
    });
}
