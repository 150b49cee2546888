//! Progress on a terminal: shown after a second of waiting, never mixed with other output, and cleared
//! afterwards. Without a terminal, nothing is shown.

use std::fs::File;

use crate::common::pty::{self, Pty};
use crate::common::{AssertExt, Sandbox, patiently};
use crate::exec::tools;

const SIZE: (u16, u16) = (120, 10);

#[test]
fn claw_append_shows_that_it_waits_for_the_lock() {
    let sandbox = Sandbox::new();
    if pty::can_run() {
        let held = File::open(sandbox.write("s.jsonl", "")).expect("a file");
        held.lock().expect("a lock");
        let append = sandbox.sh("echo hi | claw-append --user s.jsonl; echo \"status $?\"");
        let mut pty = Pty::run(append, SIZE);
        pty.wait_for("claw-append: waiting for the lock of 's.jsonl' (");
        drop(held);
        pty.end().success();
        assert_eq!(pty.screen(), "status 0");
        // The line is also cleared before an error.
        let held = File::open(sandbox.path("s.jsonl")).expect("a file");
        held.lock().expect("a lock");
        patiently(|times| {
            let seconds = 1.5 * f64::from(times);
            let append = format!("echo hi | claw-append --user --lock-timeout {seconds} s.jsonl");
            let mut pty = Pty::run(sandbox.sh(&append), SIZE);
            pty.wait_for("waiting for the lock").end().code(75);
            let why = format!("another writer held it for {seconds} s; try again");
            assert_eq!(pty.screen(), format!("claw-append: cannot lock 's.jsonl': {why}"));
        });
    }
}

#[test]
fn a_turn_shows_that_it_waits_for_another_turn() {
    let sandbox = Sandbox::new();
    if pty::can_run() {
        let hold = ["lock", "./s.jsonl", "--", "sh", "-c", "echo held; cat"];
        let mut holder = sandbox.cmd("claw-session").args(hold).spawn();
        let mut begun = [0; 5];
        let stdout = holder.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(stdout, &mut begun).expect("a holder");
        let lock = sandbox.cmd("claw-session").args(["lock", "./s.jsonl", "--", "echo", "ours"]);
        let mut pty = Pty::run(lock, SIZE);
        pty.wait_for("claw-session: waiting for the turn of './s.jsonl' (");
        drop(holder.stdin.take());
        pty.end().success();
        assert_eq!(pty.screen(), "ours");
        holder.wait().expect("an exit status");
    }
}

#[test]
fn claw_exec_shows_which_tools_run() {
    let sandbox = tools(&[("slow", "cat ../pipe"), ("quick", "echo q")]);
    if pty::can_run() {
        let calls = ["slow", "quick", "slow"].iter().enumerate().map(|(n, name)| {
            format!(r#"{{"type":"tool_use","tool_use_id":"t{n}","name":"{name}","input":{{}}}}"#)
        });
        sandbox.write("calls", calls.collect::<Vec<_>>().join("\n"));
        sandbox.sh("mkfifo pipe").assert().success();
        let mut pty = Pty::run(sandbox.sh("claw-exec --tools box --jobs 3 <calls"), (200, 10));
        pty.wait_for("claw-exec: running slow, slow (");
        sandbox.sh("echo done >pipe").assert().success();
        pty.end().success();
        let screen = pty.screen();
        let ids: Vec<&str> = screen.lines().filter_map(|line| line.get(37..39)).collect();
        assert_eq!(ids, ["t0", "t1", "t2"], "{screen}");
    }
}

#[test]
fn claw_rebuild_shows_how_much_it_has_read_unless_a_pager_has_the_terminal() {
    let sandbox = Sandbox::new();
    if pty::can_run() {
        let text = "x".repeat(1 << 16);
        let turn = ["user", "assistant"]
            .map(|kind| format!(r#"{{"type":"{kind}","content":"{text}"}}"#) + "\n");
        sandbox.write("s.jsonl", turn.concat().repeat(128) + "torn {");
        let slow = "while test ! -e go; do dd bs=65536 count=1 >&2; sleep 0.05; done 2>/dev/null";
        let script = format!("claw-rebuild s.jsonl | {{ {slow}; cat >/dev/null; }}");
        let mut pty = Pty::run(sandbox.sh(&script), SIZE);
        pty.wait_for("claw-rebuild: s.jsonl ").wait_for(" % (").wait_for(" of 16.0 MiB)");
        sandbox.write("go", "");
        pty.end().success();
        let what =
            "not-an-object: 's.jsonl' line 257, byte 16785280, 6 bytes: skipped: not a JSON object";
        assert_eq!(pty.screen(), format!("claw-rebuild: {what}\nclaw-rebuild: 1 finding"));
        // A pager that reads keys owns the terminal, so no progress is shown.
        let rebuild = "until test -e asks; do sleep 0.01; done; exec claw-rebuild s.jsonl";
        let asks = "stty -icanon </dev/tty; : >asks; head -c 9 && sleep 2.5; echo; echo next";
        let script = format!("{{ {rebuild}; }} | {{ {asks}; }}");
        let mut pty = Pty::run(sandbox.sh(&script), SIZE);
        pty.end().success().stdout("{\"role\":\"\r\nnext\r\n");
    }
}

#[cfg(feature = "http")]
mod calls {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::common::Cmd;
    use crate::common::provider::{FakeProvider, MODEL, SUMMARY, Step};
    use crate::common::pty::CTRL_C;
    use crate::conversations::{Conversation, words};
    use crate::shapes::HELLO;

    /// A delay that is longer than any successful test takes.
    const LONG: Duration = Duration::from_secs(60);

    /// Returns a command that runs a shell script with a provider.
    fn script(sandbox: &Sandbox, provider: &FakeProvider, script: &str) -> Cmd {
        sandbox.write("messages", HELLO);
        sandbox.sh(script).envs(provider.env())
    }

    #[test]
    fn claw_call_shows_what_it_waits_for_and_clears_the_line() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        if pty::can_run() {
            provider.script(Step::Hang(LONG));
            let mut pty = Pty::run(script(&sandbox, &provider, "claw-call <messages >reply"), SIZE);
            pty.wait_until("the model", |screen| {
                screen.starts_with(&format!("claw-call: waiting for {MODEL} ("))
            });
            provider.release();
            pty.end().success();
            assert_eq!(pty.screen(), "");
            assert_eq!(sandbox.read_json("reply")[0]["type"], "assistant");
        }
    }

    #[test]
    fn no_progress_is_shown_except_on_a_foreground_terminal() {
        thread::scope(|scope| {
            for run in [
                "claw-call <messages >reply 2>said; cat said",
                "claw-call --log json <messages >reply",
                "TERM=dumb claw-call <messages >reply",
                "unset TERM; claw-call <messages >reply",
                "set -m; claw-call <messages >reply & wait $!",
            ] {
                scope.spawn(move || {
                    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
                    if pty::can_run() {
                        provider.script(Step::Hang(Duration::from_millis(2500)));
                        Pty::run(script(&sandbox, &provider, run), SIZE).end().success().stdout("");
                    }
                });
            }
        });
    }

    #[test]
    fn the_pause_before_a_retry_is_counted_down_below_the_message() {
        if !pty::can_run() {
            return;
        }
        patiently(|_| {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            let headers = vec![("retry-after".into(), "3".into())];
            let (kind, message) = ("rate_limit_error".into(), "Too many".into());
            provider.script(Step::Error { status: 429, kind, message, headers });
            let mut pty = Pty::run(script(&sandbox, &provider, "claw-call <messages >reply"), SIZE);
            pty.wait_for("trying again in 3.0 s\r\n").wait_for("claw-call: next try in 1 s");
            pty.end().success();
            let screen = pty.screen();
            assert!(screen.ends_with("trying again in 3.0 s"), "{screen}");
            assert_eq!(screen.lines().count(), 1, "{screen}");
        });
    }

    #[test]
    fn a_model_name_is_escaped_and_shown_on_one_line() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        if pty::can_run() {
            provider.script(Step::Hang(LONG));
            let model = format!("\u{1b}[31m\u{202e}{}", "日本語".repeat(20));
            let cmd = script(&sandbox, &provider, "claw-call --model \"$NAME\" <messages >reply");
            let mut pty = Pty::run(cmd.env("NAME", model), (60, 5));
            pty.wait_until("the name", |screen| screen.contains("日本語"));
            let screen = pty.screen();
            assert!(
                screen.starts_with(r"claw-call: waiting for \u{1b}[31m\u{202e}日本語"),
                "{screen}"
            );
            assert_eq!(screen.lines().count(), 1, "{screen}");
        }
    }

    #[test]
    fn progress_does_not_alter_a_streamed_reply() {
        for stream in ["", "| cat"] {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            if pty::can_run() {
                provider.script(Step::Hang(LONG));
                let turn = format!("claw-turn --stream --no-checkpoint -m next? s.jsonl {stream}");
                let mut pty = Pty::run(script(&sandbox, &provider, &turn), SIZE);
                pty.wait_for("claw-call: waiting for ");
                provider.release();
                pty.end().success();
                assert_eq!(pty.screen(), "Reply to 1 message: next?", "{stream}");
            }
        }
    }

    #[test]
    fn a_signal_clears_the_progress_line() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        if pty::can_run() {
            provider.script(Step::Hang(LONG));
            let mut pty = Pty::run(script(&sandbox, &provider, "claw-call <messages >reply"), SIZE);
            pty.wait_for("claw-call: waiting for ").press(CTRL_C).end().killed_by(2);
            assert_eq!(pty.screen(), "");
            provider.script(Step::Hang(LONG));
            let turn = "exec claw-turn --no-checkpoint -m next? s.jsonl";
            let mut pty = Pty::run(script(&sandbox, &provider, turn), SIZE);
            pty.wait_for("claw-call: waiting for ").press(CTRL_C).end().code(130);
            let last = "claw-turn: the prompt is kept; continue with: claw-turn --again 's.jsonl'";
            assert_eq!(pty.screen(), last);
        }
    }

    #[test]
    fn an_ignored_signal_stays_ignored() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        if pty::can_run() {
            provider.script(Step::Hang(LONG));
            let ignoring = "trap '' INT; claw-call <messages >reply";
            let mut pty = Pty::run(script(&sandbox, &provider, ignoring), SIZE);
            pty.wait_for("claw-call: waiting for ").press(CTRL_C).wait_for("^C");
            provider.release();
            pty.end().success();
        }
    }

    #[test]
    fn progress_is_not_drawn_over_a_stream() {
        if !pty::can_run() {
            return;
        }
        patiently(|_| {
            let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
            provider.script(Step::Slow(4, LONG));
            let turn = "claw-turn --stream --no-checkpoint -m next? s.jsonl";
            let mut pty = Pty::run(script(&sandbox, &provider, turn), SIZE);
            pty.wait_for("Reply to");
            // The pause in the middle of the text is longer than the delay before progress is shown.
            thread::sleep(Duration::from_millis(2000));
            provider.release();
            let shown = pty.end().success().stdout_text();
            assert!(!shown.contains("waiting"), "{shown:?}");
            assert_eq!(pty.screen(), "Reply to 1 message: next?");
        });
    }

    #[test]
    fn claw_call_shows_progress_while_it_makes_a_summary() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        if pty::can_run() {
            let conversation = (0..6).fold(Conversation::new(), |conversation, n| {
                conversation.user(&format!("Question {n}.")).assistant(&words(400))
            });
            conversation.append(&sandbox, "s.jsonl");
            provider.script(Step::Hang(LONG));
            let compact = "claw-rebuild --meta s.jsonl | claw-compact --window 4000 --record >made";
            let mut pty = Pty::run(script(&sandbox, &provider, compact), SIZE);
            pty.wait_for("claw-call: waiting for ");
            provider.release();
            pty.end().success();
            let screen = pty.screen();
            assert!(screen.starts_with("claw-compact: summarised "), "{screen}");
            assert_eq!(sandbox.read_json("made")[0]["summary"], SUMMARY);
        }
    }
}
