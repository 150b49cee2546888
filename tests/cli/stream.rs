//! claw-call --stream: the records are the same as without the option, and the text is shown as it arrives.

use std::io::Read;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::json;

use crate::broken::no_reply;
use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{AssertExt, Sandbox, into_closed_pipe, kill_group, patiently};
use crate::fake::client::{self, post, streamed};
use crate::shapes::{HELLO, call, hello, two_calls};

/// Text that a careless parser would break.
const TEXT: &str = "Caf\u{e9}, \u{65e5}\u{672c}, \u{1f600}:\n\n\t\"data: {}\" and \\u0041\r\n";

/// Returns the bytes of the stream that the fake provider sends for a step.
fn wire(shape: Shape, step: Step) -> Vec<u8> {
    let provider = FakeProvider::new();
    provider.script(step);
    let mut body = streamed(client::hello(shape));
    if shape == Shape::OpenAi {
        body["stream_options"] = json!({"include_usage": true});
    }
    post(&provider, shape, &body).pieces.concat()
}

/// Returns the records that claw-call makes from the provider's answer to a step, and the text that it
/// shows.
#[track_caller]
fn read(shape: Shape, step: Step) -> (Vec<serde_json::Value>, String) {
    let provider = FakeProvider::new();
    provider.script(step);
    let run = hello(&provider, shape, &["--stream", "--max-retries", "0"]);
    provider.all_legal();
    let run = run.success();
    (run.json(), run.stderr_text().to_owned())
}

// ---- the records -----------------------------------------------------------------------------

#[test]
fn a_stream_gives_the_same_records_as_a_whole_answer() {
    for shape in Shape::ALL {
        for step in [Step::text(TEXT), Step::text("a"), two_calls(shape, 1)] {
            let run = |args: &[&str]| {
                let provider = FakeProvider::new();
                provider.script(step.clone());
                let run = hello(&provider, shape, args);
                assert_eq!(provider.single_request().streams(), !args.is_empty());
                provider.all_legal();
                run.success().stdout_text()
            };
            let whole = run(&[]);
            assert_eq!(run(&["--stream"]), whole, "{shape:?}");
            assert_eq!(run(&["--stream=shown"]), whole, "{shape:?}");
        }
    }
}

#[test]
fn a_stream_may_come_in_pieces_of_any_size() {
    for shape in Shape::ALL {
        for step in [Step::text(TEXT), two_calls(shape, 1)] {
            let bytes = wire(shape, step.clone());
            let expected = read(shape, step);
            for size in [1, 2, 3, 7, 1000] {
                let pieces = read(shape, Step::stream(&bytes, size));
                assert_eq!(pieces, expected, "{shape:?} {size}");
            }
        }
    }
}

#[test]
fn pings_comments_and_unknown_events_change_nothing() {
    for shape in Shape::ALL {
        let text = String::from_utf8(wire(shape, two_calls(shape, 1))).expect("text");
        let expected = read(shape, Step::stream(text.as_bytes(), 1000));
        let (end, between) = match shape {
            Shape::Anthropic => (
                "\n\n",
                ": keep-alive\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\ndata: {\"type\":\"new\"}\n\n",
            ),
            Shape::OpenAi => ("\n\n", ": OPENROUTER PROCESSING\n\nid: 1\nretry: 5\n\n"),
            Shape::Ollama => ("\n", "\n \n"),
        };
        let busy = between.to_owned() + &text.replace(end, &format!("{end}{between}"));
        assert_eq!(read(shape, Step::stream(busy.as_bytes(), 1000)), expected, "{shape:?}");
        // Lines may end in CR LF.
        let lines = text.replace('\n', "\r\n");
        assert_eq!(read(shape, Step::stream(lines.as_bytes(), 5)), expected, "{shape:?}");
    }
}

#[test]
fn streams_with_missing_parts_are_understood() {
    let without_start = concat!(
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"So.\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "data: {\"type\":\"message_stop\"}\n\n",
    );
    let without_done = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"So.\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    for (shape, text) in [(Shape::Anthropic, without_start), (Shape::OpenAi, without_done)] {
        let (records, shown) = read(shape, Step::stream(text.as_bytes(), 1000));
        assert_eq!(records[0]["content"], json!([{"type": "text", "text": "So."}]));
        assert_eq!((&records[0]["model"], &records[0]["usage"]), (&json!(null), &json!(null)));
        assert_eq!((&records[0]["stop_reason"], shown.as_str()), (&json!("end_turn"), "So.\n"));
        // Some proxies send a stream with another content type.
        for kind in ["text/plain", "application/json"] {
            let headers = [("content-type", kind), ("request-id", "req_1")];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let raw = Step::Raw { status: 200, headers, body: text.into() };
            assert_eq!(read(shape, raw), (records.clone(), shown.clone()), "{shape:?} {kind}");
        }
    }
}

#[test]
fn a_whole_answer_to_a_streaming_request_is_accepted() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let whole = post(&provider, shape, &client::hello(shape)).json();
        let (records, shown) = read(shape, Step::Reply(whole.clone()));
        assert_eq!(records[0]["content"][0]["text"], "Reply to 1 message: hello");
        assert_eq!(shown, "Reply to 1 message: hello\n");
        // A whole answer that is declared as a stream is also accepted.
        let same = read(shape, Step::stream(whole.to_string().as_bytes(), 1000));
        assert_eq!(same.1, shown);
        assert_eq!(same.0[0]["content"], records[0]["content"]);
    }
}

#[test]
fn a_stream_is_recorded_and_replayed() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        let run = |option: &str| {
            let cmd = call(&sandbox, &provider, shape, &["--stream", option, "tape"]);
            cmd.write_stdin(HELLO).assert()
        };
        let first = run("--record").success();
        let again = run("--replay").success().stderr(first.stderr_text().to_owned());
        // The recording does not have the provider's request id.
        let without_request_id = |run: &Assert| {
            let mut record = run.json_one();
            record["request_id"] = json!(null);
            record
        };
        assert_eq!(without_request_id(&again), without_request_id(&first));
        provider.single_request();
    }
}

// ---- the shown text --------------------------------------------------------------------------

#[test]
fn the_text_is_shown_on_standard_error_or_at_the_end_of_a_file() {
    for shape in Shape::ALL {
        for (text, shown) in [("One.\nTwo.", "One.\nTwo.\n"), ("One.\n", "One.\n"), (TEXT, TEXT)] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            (0..3).for_each(|_| provider.script(Step::text(text)));
            let run = |option: &str| {
                call(&sandbox, &provider, shape, &[option]).write_stdin(HELLO).assert()
            };
            run("--stream").success().stderr(shown);
            sandbox.write("shown", "Before.\n");
            run("--stream=shown").success().stderr("");
            run("--stream=shown").success().stderr("");
            assert_eq!(sandbox.read_text("shown"), format!("Before.\n{shown}{shown}"));
        }
    }
}

#[test]
fn only_text_is_shown_and_a_reply_without_text_shows_nothing() {
    let calls = json!([{"type": "tool_use", "id": "a", "name": "f", "input": {"x": "y"}}]);
    let provider = FakeProvider::new();
    provider
        .script(Step::Reply(json!({"content": calls, "model": "m", "stop_reason": "tool_use"})));
    hello(&provider, Shape::Anthropic, &["--stream"]).success().stderr("");
    provider.script(two_calls(Shape::OpenAi, 1));
    hello(&provider, Shape::OpenAi, &["--stream"]).success().stderr("Reply to 1 message: hello\n");
}

#[test]
fn the_text_is_shown_before_the_answer_ends() {
    for shape in Shape::ALL {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(Step::Slow(4, Duration::from_secs(60)));
        let mut child = call(&sandbox, &provider, shape, &["--stream"]).write_stdin(HELLO).spawn();
        let mut stderr = child.stderr.take().expect("a piped stderr");
        let (mut shown, mut byte) = (Vec::new(), [0]);
        while shown.len() < "Reply to".len() && stderr.read(&mut byte).is_ok_and(|count| count == 1)
        {
            shown.push(byte[0]);
        }
        assert_eq!(String::from_utf8_lossy(&shown), "Reply to", "{shape:?}");
        assert!(
            child.try_wait().expect("the state of the process").is_none(),
            "the call ended before the answer"
        );
        kill_group(child.id());
        child.wait().expect("an exit status");
    }
}

#[test]
fn if_the_file_is_unwritable_the_call_exits_with_74_before_sending_anything() {
    let provider = FakeProvider::new();
    hello(&provider, Shape::OpenAi, &["--stream=no/such/place"])
        .code(74)
        .stdout("")
        .stderr(contains("'no/such/place'"));
    assert!(provider.requests().is_empty());
    // Without `=`, the argument after the option is the file of messages, not the file for the text.
    let sandbox = Sandbox::new();
    sandbox.write("m", HELLO);
    call(&sandbox, &provider, Shape::OpenAi, &["--stream", "m"]).assert().success();
    assert_eq!(sandbox.read_text("m"), HELLO);
}

#[test]
fn the_reply_is_complete_even_if_the_reader_has_exited() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    sandbox.write("m", HELLO);
    let script = "{ claw-call --stream=/dev/fd/3 m 3>&1 >reply; echo $? >status; } | :";
    sandbox.sh(script).envs(provider.env_for(Shape::OpenAi)).assert().success();
    assert_eq!(sandbox.read_text("status"), "0\n");
    assert_eq!(sandbox.read_json("reply")[0]["stop_reason"], "end_turn");
}

#[test]
#[allow(clippy::print_stdout, reason = "reports a skipped test")]
fn control_characters_are_escaped_on_a_terminal() {
    let sandbox = Sandbox::new();
    if sandbox.sh("command -v script").assert().get_output().status.code() != Some(0) {
        println!("skipped: no script(1)");
        return;
    }
    let evil = "red\n\u{1b}[31m\u{9b}31m\r\u{7f}\u{202e}evil";
    let shown = "red\n\\u{1b}[31m\\u{9b}31m\\r\\u{7f}\\u{202e}evil\n";
    sandbox.write("m", HELLO);
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let run = |command: &str| -> Assert {
            provider.script(Step::text(evil));
            let script = format!("script -qec '{command}' /dev/null");
            sandbox.sh(&script).envs(provider.env_for(shape)).env("CLAW_WINDOW", "32768").assert()
        };
        for command in ["claw-call --stream m >reply", "claw-call --stream=/dev/tty m >reply 2>&1"]
        {
            // After a second, the program would show that it waits.
            patiently(|_| {
                let run = run(command).success();
                // The terminal itself adds a carriage return to each line end.
                let text = run.stdout_text().replace("\r\n", "\n");
                assert_eq!(text, shown, "{shape:?} {command}");
            });
            assert_eq!(sandbox.read_json("reply")[0]["content"][0]["text"], evil);
        }
        // A file or pipe gets every byte.
        run("claw-call --stream=shown m >reply").success().stdout("");
        assert_eq!(sandbox.read_text("shown"), format!("{evil}\n"));
        sandbox.sh("rm shown").assert().success();
    }
}

// ---- time ------------------------------------------------------------------------------------

#[test]
fn the_timeout_applies_to_each_piece_of_a_stream() {
    std::thread::scope(|scope| {
        for shape in Shape::ALL {
            scope.spawn(move || patiently(|times| assert_timeout_of_each_piece(shape, times)));
        }
    });
}

/// Checks the timeout of a stream whose pieces come in time, and of one with a piece that is late.
fn assert_timeout_of_each_piece(shape: Shape, times: u32) {
    let provider = FakeProvider::new();
    let run = |seconds: f64| {
        let timeout = (seconds * f64::from(times)).to_string();
        hello(&provider, shape, &["--stream", "--timeout", &timeout])
    };
    provider.script(Step::Slow(0, Duration::from_millis(350) * times));
    let began = Instant::now();
    run(1.0).success();
    assert!(began.elapsed() > Duration::from_millis(1500) * times);

    provider.script(Step::Slow(4, Duration::from_secs(60)));
    run(0.5)
        .code(69)
        .stdout(no_reply())
        .stderr(contains("Reply to"))
        .stderr(contains("\nclaw-call: unreachable "))
        .stderr(contains("timed out in the middle"));
    assert_eq!(provider.requests().len(), 2, "a reply that was shown must not be retried");
}

// ---- records in a file -----------------------------------------------------------------------

#[test]
fn standard_output_gets_the_text_and_a_file_the_records() {
    let sandbox = Sandbox::new();
    let run_asking = |requests: usize, args: &[&str]| {
        let provider = FakeProvider::new();
        provider.script(Step::text(TEXT));
        let run = call(&sandbox, &provider, Shape::Anthropic, args).write_stdin(HELLO).assert();
        assert_eq!(provider.requests().len(), requests);
        run
    };
    let run = |args: &[&str]| run_asking(1, args);
    let records = run(&[]).success().stdout_text();
    run(&["--stream=-", "--reply", "reply"]).success().stdout(TEXT).stderr("");
    assert_eq!(sandbox.read_text("reply"), records);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &sandbox.path("reply").metadata().expect("a file").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    run(&["--reply", "reply"]).success().stdout("");
    assert_eq!(sandbox.read_text("reply"), records);
    run_asking(0, &["--stream=-"]).code(2).stderr(contains("--reply is required"));
    run_asking(0, &["--stream=-", "--reply", "none/reply"])
        .code(74)
        .stderr(contains("cannot write 'none/reply'"));
}

#[test]
fn a_reply_is_whole_in_its_file_when_standard_output_fails() {
    let sandbox = Sandbox::new();
    let call = "claw-call --provider offline --stream=- --reply reply";
    for (script, status, error) in [
        (
            format!("{call} >/dev/full; echo $?"),
            "74\n",
            "claw-call: cannot write '<stdout>' ('reply' has the reply)",
        ),
        (
            format!("{call} >&-; echo $?"),
            "74\n",
            "claw-call: cannot write '<stdout>' ('reply' has the reply): standard output is closed",
        ),
        (into_closed_pipe(call), "141\n", ""),
    ] {
        sandbox.sh("rm -f reply").assert().success();
        sandbox
            .sh(&script)
            .write_stdin(HELLO)
            .assert()
            .success()
            .stdout(status)
            .stderr(contains(error));
        assert!(sandbox.read_text("reply").contains("Reply to 1 message"), "{script}");
    }
}
