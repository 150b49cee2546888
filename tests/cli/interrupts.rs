//! P-6. Signals in the middle of an answer: nothing is written by halves, and what was shown stays shown.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::provider::{FakeProvider, Step};
use crate::common::shapes::Shape;
use crate::common::{Cmd, Sandbox, hears};
use crate::shapes::{HELLO, call};
use crate::talks::{Talk, log, rebuild, words};

const SIGNALS: [(&str, i32); 3] = [("INT", 2), ("TERM", 15), ("KILL", 9)];

/// Those that a program here would hear.
fn signals() -> Vec<(&'static str, i32)> {
    SIGNALS.into_iter().filter(|(_, number)| hears(*number)).collect()
}

/// Sends a signal to a program and all that it started.
fn signal(child: &Child, name: &str) {
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-s", name, "--", &group]).status();
    assert!(sent.is_ok_and(|status| status.success()));
}

/// Reads the beginning of the text that is shown; sends the signal; gives all that was shown, and the end.
fn interrupt(mut child: Child, shown: &mut impl Read, name: &str) -> (String, ExitStatus) {
    let mut text = vec![0; "Reply to".len()];
    shown.read_exact(&mut text).expect("the begin of a text");
    signal(&child, name);
    shown.read_to_end(&mut text).expect("the rest of it");
    (String::from_utf8(text).expect("text"), child.wait().expect("its end"))
}

#[test]
fn p_6_claw_call_writes_nothing_of_an_answer_that_it_did_not_wait_for() {
    for shape in Shape::ALL {
        for (name, number) in signals() {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            provider.script(Step::Slow(4, Duration::from_secs(60)));
            let cmd = call(&sandbox, &provider, shape, &["--stream", "--record", "tape"]);
            let mut child = cmd.stdin(HELLO).spawn();
            let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
            let (shown, end) = interrupt(child, stderr.as_mut().expect("a pipe"), name);
            assert!(shown.starts_with("Reply to"), "{shown}");
            assert_eq!(end.signal(), Some(number), "{shape:?} {name}");
            let mut records = String::new();
            stdout.as_mut().expect("a pipe").read_to_string(&mut records).expect("text");
            assert_eq!(records, "", "{shape:?} {name}");
            assert!(!sandbox.exists("tape"), "nor is it recorded");
        }
    }
}

/// A turn with a stream on `s.jsonl`, in a folder for temporary files that can be looked into.
fn turn(sandbox: &Sandbox, provider: &FakeProvider, shape: Shape, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").envs(provider.env_for(shape)).env("CLAW_WINDOW", "12000");
    let usual = ["--no-checkpoint", "--stream"];
    cmd.env("TMPDIR", sandbox.dir()).args(usual).args(args).arg("s.jsonl")
}

#[test]
fn p_6_claw_turn_leaves_the_prompt_and_no_half_of_an_answer() {
    for shape in Shape::ALL {
        for (name, number) in signals() {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            Talk::of("uacr", 9).assistant("Well.").append(&sandbox, "s.jsonl");
            let before = sandbox.read("s.jsonl");
            provider.script(Step::Slow(4, Duration::from_secs(60)));
            let mut child = turn(&sandbox, &provider, shape, &["-m", "next?"]).spawn();
            let mut stdout = child.stdout.take().expect("a pipe");
            let (shown, end) = interrupt(child, &mut stdout, name);
            assert!(shown.starts_with("Reply to"), "{shown}");
            let own = if name == "KILL" { end.signal() } else { end.code().map(|code| code - 128) };
            assert_eq!(own, Some(number), "{shape:?} {name}: {end}");
            if name != "KILL" {
                sandbox.sh("ls -d claw-turn.* 2>/dev/null").run().stdout_is("");
            }
            let after = sandbox.read("s.jsonl");
            let added = String::from_utf8(after[before.len()..].to_vec()).expect("text");
            assert!(after.starts_with(&before) && added.lines().count() == 1, "{added}");
            assert!(added.contains(r#""type":"user""#), "{added}");
            // It can be sent as it is, and is answered.
            let again = turn(&sandbox, &provider, shape, &["--again"]).run();
            again.ok().stdout_is("Reply to 5 messages: next?\n");
            assert_eq!(rebuild(&sandbox, "s.jsonl").matches("next?").count(), 2);
            provider.all_legal();
        }
    }
}

#[test]
fn v58_p6_killed_at_any_moment_of_a_ladder_with_streams_the_transcript_goes_on() {
    let talk = (0..6).fold(Talk::new(), |talk, n| {
        let talk = talk.user(&format!("Build target {n}.")).tool(log(150)).assistant("It fails.");
        talk.user("Why?").assistant(&words(600))
    });
    thread::scope(|scope| {
        for shape in Shape::ALL {
            let talk = &talk;
            scope.spawn(move || {
                let sandbox = Sandbox::new();
                talk.append(&sandbox, "base.jsonl");
                let base = sandbox.read("base.jsonl");
                let args = ["--no-proactive", "--max-tokens", "500", "-m", "next?"];
                let run = |provider: &FakeProvider| turn(&sandbox, provider, shape, &args);
                sandbox.write("s.jsonl", &base);
                let began = Instant::now();
                run(&FakeProvider::new().window(4000)).run().ok().err_has("summarised ");
                let whole = began.elapsed();
                for round in 0..9 {
                    sandbox.write("s.jsonl", &base);
                    std::fs::remove_dir_all(sandbox.path("state")).expect("no window is known");
                    let provider = FakeProvider::new().window(4000);
                    let mut child = run(&provider).spawn();
                    thread::sleep(whole * (round + 1) / 10);
                    if child.try_wait().expect("its state").is_none() {
                        let signals = signals();
                        signal(&child, signals[round as usize % signals.len()].0);
                    }
                    child.wait().expect("its end");
                    assert!(sandbox.read("s.jsonl").starts_with(&base), "{shape:?} {round}");
                    sandbox.cmd("claw-rebuild").arg("s.jsonl").run().ok();
                    run(&provider).run().ok().stdout_has("next?");
                    for request in provider.requests() {
                        let rule = request.violation.map(|violation| violation.rule);
                        assert!(matches!(rule, None | Some("A12")), "{shape:?} {round}: {rule:?}");
                    }
                }
            });
        }
    });
}
