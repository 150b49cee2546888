//! claw-turn --stream: the reply is shown once, as it arrives; the transcript is the same as without --stream.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Cmd, Sandbox, kill_group, patiently};
use crate::conversations::{Conversation, log, rebuild, words};
use crate::shapes::two_calls;

/// Returns a `claw-turn` command on `s.jsonl` with the prompt "next?".
fn turn(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(provider.env_for(shape)).env("CLAW_WINDOW", "32768");
    cmd.args(args).args(["-m", "next?", "s.jsonl"])
}

/// Runs a shell script in which `$1` stands for a turn with --stream.
fn scripted(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, script: &str) -> Assert {
    let script = script.replace("$1", "claw-turn --stream -m next? s.jsonl");
    sandbox.sh(&script).envs(provider.env_for(shape)).env("CLAW_WINDOW", "32768").assert()
}

const REPLY: &str = "Reply to 1 message: next?\n";

// ---- the shown text ---------------------------------------------------------------------------

#[test]
fn the_transcript_and_the_text_are_the_same_with_and_without_stream() {
    for shape in Shape::ALL {
        for step in [Step::text("One.\nTwo."), Step::text("One.\n"), two_calls(shape, 1)] {
            let [with, without] = [&["--stream"][..], &[]].map(|args| {
                let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
                provider.script(step.clone());
                let run = turn(&sandbox, &provider, shape, args).assert().success().stderr("");
                assert_eq!(provider.single_request().streams(), !args.is_empty());
                provider.all_legal();
                (run.stdout_text(), sandbox.read_json("s.jsonl"))
            });
            assert_eq!(with, without, "{shape:?} {step:?}");
        }
    }
}

#[test]
fn the_text_is_shown_before_the_answer_ends() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::Slow(4, Duration::from_secs(60)));
        let mut child = turn(&sandbox, &provider, shape, &["--stream"]).spawn();
        let mut shown = [0; 8];
        let stdout = child.stdout.as_mut().expect("a piped stdout");
        stdout.read_exact(&mut shown).expect("the beginning of the text");
        assert_eq!(&shown, b"Reply to", "{shape:?}");
        assert!(
            child.try_wait().expect("the state of the process").is_none(),
            "the turn ended before the answer"
        );
        kill_group(child.id());
        child.wait().expect("an exit status");
    }
}

#[test]
fn the_text_is_written_in_order_to_a_pipe_or_a_file() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        scripted(&sandbox, &provider, shape, "$1 | cat").success().stdout(REPLY);
        for (script, expected) in [
            ("rm s.jsonl; $1 >out", REPLY.to_owned()),
            ("rm s.jsonl; echo before >out; $1 >>out", format!("before\n{REPLY}")),
            (
                "rm s.jsonl; { echo before; $1; echo after; } >out",
                format!("before\n{REPLY}after\n"),
            ),
        ] {
            scripted(&sandbox, &provider, shape, script).success().stdout("").stderr("");
            assert_eq!(sandbox.read_text("out"), expected, "{shape:?} {script}");
        }
    }
}

/// Some programs use sockets as the standard streams of their children.
#[test]
fn the_text_is_written_to_a_socket_too() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let (mut ours, theirs) = UnixStream::pair().expect("two sockets");
    let turn = turn(&sandbox, &provider, Shape::OpenAi, &["--stream"]);
    let mut child = turn.spawn_into(Stdio::from(OwnedFd::from(theirs)));
    let mut shown = String::new();
    ours.read_to_string(&mut shown).expect("the shown text");
    assert_eq!(shown, REPLY);
    assert_eq!(child.wait().expect("an exit status").code(), Some(0));
}

#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn control_characters_are_escaped_on_a_terminal_but_not_in_a_pipe() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let evil = "red\n\u{1b}[31m\u{9b}31m\r\u{7f}\u{202e}evil";
    provider.script(Step::text(evil));
    scripted(&sandbox, &provider, Shape::OpenAi, "$1").success().stdout(format!("{evil}\n"));
    if sandbox.sh("command -v script").assert().get_output().status.code() != Some(0) {
        println!("skipped: no script(1)");
        return;
    }
    // After a second, the program would show that it waits.
    patiently(|_| {
        provider.script(Step::text(evil));
        let run = scripted(&sandbox, &provider, Shape::OpenAi, "script -qec '$1' /dev/null");
        let shown = run.success().stdout_text().replace("\r\n", "\n");
        assert_eq!(shown, "red\n\\u{1b}[31m\\u{9b}31m\\r\\u{7f}\\u{202e}evil\n");
    });
}

/// If the reader of the text exits early, so does the renderer: text is lost, but the reply is kept.
#[test]
fn a_rendered_reply_is_kept_if_the_reader_of_the_text_exits_early() {
    for stream in ["", "--stream"] {
        let sandbox = Sandbox::new();
        let turn = "claw-turn --provider offline --no-checkpoint --markdown -m hi s.jsonl";
        let run =
            sandbox.sh(&format!("{{ {turn} {stream}; echo $? >status; }} | :")).assert().success();
        let records = sandbox.read_json("s.jsonl");
        assert_eq!(records.len(), 2, "{stream}: {}", run.stderr_text());
        assert_eq!(
            (&records[1]["type"], records[1]["interrupted"].is_null()),
            (&json!("assistant"), true)
        );
        assert!(!run.stderr_text().contains("continue with"), "{stream}: {}", run.stderr_text());
        let status = sandbox.read_text("status");
        assert!(["141\n", "0\n"].contains(&status.as_str()), "{stream}: {status}");
    }
}

/// If the disk is full, text is lost but the reply is kept, rendered or not.
#[test]
fn a_reply_whose_text_cannot_be_written_is_kept_and_requested_once() {
    for options in ["", "--stream", "--markdown", "--stream --markdown"] {
        let sandbox = Sandbox::new();
        let turn = format!("claw-turn --provider offline --no-checkpoint {options} -m hi s.jsonl");
        let run = sandbox.sh(&format!("{turn} >/dev/full")).assert().code(74);
        assert!(!run.stderr_text().contains("continue with"), "{options}: {}", run.stderr_text());
        let records = sandbox.read_json("s.jsonl");
        assert_eq!(records.len(), 2, "{options}: {}", run.stderr_text());
        assert_eq!(records[1]["type"], "assistant");
    }
}

/// As without --stream, the reply is kept although it cannot be written, but the exit status is not 0.
#[test]
fn p_3_a_reply_that_cannot_be_shown_is_kept_but_the_turn_fails() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        scripted(&sandbox, &provider, shape, "$1 >/dev/full")
            .code(74)
            .stderr(contains("'<stdout>'"));
        scripted(&sandbox, &provider, shape, "{ $1; echo $? >&2; } | :").success().stderr("141\n");
        assert_eq!(rebuild(&sandbox, "s.jsonl").lines().count(), 4, "{shape:?}");
        provider.all_legal();
    }
}

// ---- all steps of the guard ------------------------------------------------------------------------------

/// Returns a conversation with results and prose so long that it fits only after both steps of the guard against
/// overflows: shortening results, then summarising.
fn long_conversation() -> Conversation {
    let conversation = (1..=6).fold(Conversation::new(), |conversation, n| {
        let conversation = conversation.user(&format!("Build target {n}.")).tool(log(150));
        conversation.assistant(&format!("Target {n} fails."))
    });
    (0..6).fold(conversation, |conversation, n| {
        conversation.user(&format!("Why {n}?")).assistant(&words(600))
    })
}

#[test]
fn v59_the_reply_is_shown_once_however_many_steps_the_guard_takes() {
    for shape in Shape::ALL {
        for (args, steps) in [
            (&[][..], "claw-truncate: shortened "),
            (&["--no-proactive"], "claw-compact: summarised "),
        ] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new().window(4000));
            long_conversation().append(&sandbox, "s.jsonl");
            let args = [&["--stream", "--max-tokens", "500"], args].concat();
            let run = turn(&sandbox, &provider, shape, &args)
                .env("CLAW_WINDOW", "12000")
                .assert()
                .success()
                .stderr(contains("overflow: shortening tool results"))
                .stderr(contains(steps));
            let shown = run.stdout_text();
            assert!(
                shown.starts_with("Reply to ") && shown.ends_with(" messages: next?\n"),
                "{shown}"
            );
            assert_eq!(shown.lines().count(), 1, "expected one line: {shown}");
            // Requests for summaries do not ask for a stream, and their answers are not shown.
            let requests = provider.requests();
            let is_summary = |text: &str| text.contains("\n<conversation ");
            for request in &requests {
                assert_eq!(request.streams(), !is_summary(request.last_user_text()));
                let rule = request.violation.as_ref().map(|violation| violation.rule);
                assert!(matches!(rule, None | Some("A12")), "{rule:?}");
            }
            assert!(requests.iter().any(|request| is_summary(request.last_user_text())));
        }
    }
}

// ---- statuses --------------------------------------------------------------------------------

/// Tests each failure in one shape; shapes.rs tests the statuses of claw-call in every shape.
#[test]
fn failures_end_with_the_same_status_with_and_without_stream() {
    let failures = [
        (Step::error(401, "authentication_error", "no such key"), 77),
        (Step::error(404, "not_found_error", "no such model"), 76),
        (Step::error(400, "invalid_request_error", "odd"), 76),
        (Step::error(500, "api_error", "failed"), 69),
        (Step::error(529, "overloaded_error", "busy"), 75),
        (Step::Drop, 69),
        (Step::Cut(0), 69),
    ];
    for ((step, exit), shape) in failures.into_iter().zip(Shape::ALL.into_iter().cycle()) {
        for stream in [&["--stream"][..], &[]] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            provider.script(step.clone());
            let args = [stream, &["--max-retries", "0"]].concat();
            turn(&sandbox, &provider, shape, &args).assert().code(exit).stdout("");
            let records = sandbox.read_json("s.jsonl");
            let kinds: Vec<&Value> = records.iter().map(|record| &record["type"]).collect();
            assert_eq!(kinds, ["user", "error"], "{shape:?} {step:?}");
        }
    }
}

#[test]
fn v66_a_truncated_answer_is_kept_and_shown_and_the_exit_status_is_6() {
    for shape in Shape::ALL {
        let message = json!({"role": "assistant", "content": "So I"});
        let reply = match shape {
            Shape::Anthropic => json!({
                "content": [{"type": "text", "text": "So I"}], "model": "m", "stop_reason": "max_tokens",
            }),
            Shape::OpenAi => {
                json!({"choices": [{"message": message, "finish_reason": "length"}], "model": "m"})
            }
            Shape::Ollama => json!({"message": message, "done": true, "done_reason": "length"}),
        };
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::Reply(reply));
        turn(&sandbox, &provider, shape, &["--stream"]).assert().code(6).stdout("So I\n");
        assert_eq!(sandbox.read_json("s.jsonl")[1]["stop_reason"], "max_tokens");
    }
}

/// The text has been shown, so the request is not retried; the turn fails, and the next turn sends the prompt again.
#[test]
fn a_broken_answer_is_not_sent_in_the_next_request() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::Cut(if shape == Shape::Ollama { 450 } else { 900 }));
        turn(&sandbox, &provider, shape, &["--stream"])
            .assert()
            .code(69)
            .stderr(contains("unreachable"))
            .stdout(contains("Reply to"));
        provider.single_request();
        assert!(!rebuild(&sandbox, "s.jsonl").contains("assistant"));
        let cmd = sandbox.cmd("claw-turn").envs(provider.env_for(shape));
        let again = cmd.env("CLAW_WINDOW", "32768").args(["--again", "--stream", "s.jsonl"]);
        again.assert().success().stdout(REPLY);
        provider.all_legal();
    }
}
