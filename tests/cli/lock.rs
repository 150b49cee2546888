//! claw-session lock: the turn lock of a session is held while a command runs, and signals reach the command.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::str::contains;

use crate::common::pty::{CTRL_C, ENTER, Pty, can_run};
use crate::common::{AssertExt, Cmd, Sandbox, send};

const SIZE: (u16, u16) = (80, 24);
const CTRL_Z: &str = "\x1a";

/// Returns a `claw-session lock` command on `s.jsonl`.
fn lock(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    sandbox
        .cmd("claw-session")
        .args(["lock", "s.jsonl"])
        .args(args)
        .timeout(Duration::from_secs(60))
}

/// Tries to run a command under the lock, without waiting for the lock.
fn take(sandbox: &Sandbox) -> Assert {
    lock(sandbox, &["--lock-timeout", "0", "true"]).assert()
}

/// Starts a command under the lock and waits until it prints `ready`.
fn ready(cmd: Cmd) -> Child {
    let mut child = cmd.spawn();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    child
}

#[test]
fn the_command_gets_the_path_of_the_session_and_its_status_is_passed_on() {
    let sandbox = Sandbox::new();
    let script =
        "test $CLAW_LOCKED = $PPID && echo $CLAW_SESSION; test -e .s.jsonl.lock && exit 42";
    lock(&sandbox, &["sh", "-c", script]).assert().code(42).stdout("s.jsonl\n");
    assert!(!sandbox.exists(".s.jsonl.lock"));
    let cmd = sandbox.cmd("claw-session");
    let script = "echo $CLAW_SESSION $0";
    cmd.args(["lock", "--", "-x.jsonl", "sh", "-c", script, "--"])
        .assert()
        .stdout("./-x.jsonl --\n");
    for (name, number) in [("TERM", 15), ("KILL", 9), ("QUIT", 3), ("USR1", 10)] {
        let script = format!("ulimit -c 0; kill -s {name} $$");
        lock(&sandbox, &["--", "sh", "-c", &script]).assert().killed_by(number);
        assert!(!sandbox.exists(".s.jsonl.lock"));
    }
    lock(&sandbox, &["--", "no-such-program"]).assert().code(78).stderr(contains("cannot run"));
    assert!(!sandbox.exists(".s.jsonl.lock"));
}

#[test]
fn a_signal_to_the_holder_reaches_all_its_descendants() {
    for name in ["HUP", "INT", "QUIT", "TERM"] {
        let sandbox = Sandbox::new();
        let script =
            "ulimit -c 0; trap 'exit 7' HUP INT QUIT TERM; sh -c 'echo ready; sleep 60; :'";
        let mut child = ready(lock(&sandbox, &["sh", "-c", script]));
        send(name, child.id());
        let mut rest = Vec::new();
        child.stdout.take().expect("a pipe").read_to_end(&mut rest).expect("the end of the output");
        assert_eq!(child.wait().expect("an exit status").code(), Some(7), "{name}");
        assert!(!sandbox.exists(".s.jsonl.lock"));
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let sandbox = Sandbox::new();
    let script = "trap '' HUP; exec claw-session lock s.jsonl sh -c 'echo ready; read x; echo $x'";
    let mut child = ready(sandbox.sh(script));
    send("HUP", child.id());
    child.stdin.take().expect("a pipe").write_all(b"on\n").expect("a reader");
    let output = child.wait_with_output().expect("an exit status");
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"on\n".to_vec()));
}

#[test]
fn a_killed_holder_leaves_the_lock_to_its_command() {
    let sandbox = Sandbox::new();
    let script = "echo ready; read x; echo over >over";
    let mut child = ready(lock(&sandbox, &["sh", "-c", script]));
    let stdin = child.stdin.take();
    send("KILL", child.id());
    assert_eq!(child.wait().expect("an exit status").signal(), Some(9));
    take(&sandbox).code(75).stderr(contains("another turn held it"));
    drop(stdin);
    lock(&sandbox, &["--lock-timeout", "20", "cat", "over"]).assert().success().stdout("over\n");
}

#[test]
fn background_processes_do_not_hold_the_lock_and_nested_locks_do_not_wait() {
    let sandbox = Sandbox::new();
    let script = "sleep 5 >/dev/null 2>&1 & claw-session lock ./s.jsonl --lock-timeout 0 sh -c \
                  'claw-session lock s.jsonl --lock-timeout 0 echo again'";
    lock(&sandbox, &["sh", "-c", script]).assert().success().stdout("again\n");
    take(&sandbox).success();
    // The lock of a turn and the lock of summary retries are independent.
    let mut retry = ready(lock(&sandbox, &["--retry", "sh", "-c", "echo ready; read x"]));
    let other = "claw-session lock --retry --lock-timeout 0 s.jsonl true";
    lock(&sandbox, &["sh", "-c", other]).assert().code(75).stderr(contains("summary retry"));
    drop(retry.stdin.take());
    retry.wait().expect("an exit status");
}

#[test]
fn lock_replaces_an_expired_session_and_rejects_a_name_that_is_also_a_file() {
    let sandbox = Sandbox::new();
    let session = |args: &[&str]| sandbox.cmd("claw-session").args(args);
    session(&["new", "--label", "work"]).assert().success();
    let later = |args: &[&str]| session(args).env("SOURCE_DATE_EPOCH", "1767230000").assert();
    let before = session(&["path", "work"]).assert().success().stdout_text();
    let show = ["sh", "-c", "echo $CLAW_SESSION"];
    later(&[&["lock", "work"], &show[..]].concat()).success().stdout(before.clone());
    let next =
        later(&[&["lock", "work", "--idle", "30"], &show[..]].concat()).success().stdout_text();
    assert_ne!(next, before);
    assert!(sandbox.exists(next.trim_end()), "{next}");
    // A path names the transcript itself, so reset settings do not apply.
    session(&["lock", "s.jsonl", "--idle", "30", "true"]).assert().success().stderr("");
    sandbox.write("notes.txt", "x");
    session(&["lock", "notes.txt", "true"])
        .assert()
        .code(1)
        .stderr(contains("'notes.txt' is also a file; to use the file, write ./notes.txt"));
}

#[test]
fn ctrl_c_and_ctrl_z_reach_the_command_once() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let script = "trap 'echo caught' INT; echo ready; read x; read y; echo got $x $y";
    let mut pty = Pty::run(lock(&sandbox, &["sh", "-c", script]), SIZE);
    pty.wait_for("ready").press(CTRL_C).wait_for("caught").press("a\rb\r").wait_for("got");
    pty.end().success();
    assert_eq!(pty.screen().matches("caught").count(), 1, "{}", pty.screen());
    // Without a trap, the signal ends both the command and the holder.
    let mut pty = Pty::run(lock(&sandbox, &["sh", "-c", "echo ready; exec sleep 60"]), SIZE);
    pty.wait_for("ready").press(CTRL_C).end().killed_by(2);
    assert!(!sandbox.exists(".s.jsonl.lock"));
    let shell = sandbox.sh("exec sh -i").env("PS1", "% ");
    let mut pty = Pty::run(shell, SIZE);
    pty.wait_for("% ")
        .press("claw-session lock s.jsonl sh -c 'echo re\"\"ady; read x; echo go\"\"t $x'");
    pty.press(ENTER)
        .wait_for("ready")
        .press(CTRL_Z)
        .wait_for("% ")
        .press("fg\r")
        .wait_for("read x");
    pty.press("on\r").wait_for("got on").wait_for("% ").press("exit\r").end();
    assert!(!sandbox.exists(".s.jsonl.lock"));
}

#[test]
fn the_shell_gets_the_terminal_only_after_the_command_stopped() {
    if !can_run() {
        return;
    }
    let sandbox = Sandbox::new();
    let lock = |script: &str| format!("claw-session lock s.jsonl sh -c '{script}'\r");
    let mut pty = Pty::run(sandbox.sh("exec sh -i").env("PS1", "% "), SIZE);
    // The command ignores Ctrl-Z and continues to read the terminal.
    let ignoring = lock(r#"trap "" TSTP; echo re""ady; read x; echo go""t $x"#);
    pty.wait_for("% ").press(&ignoring).wait_for("ready").press(CTRL_Z).press("on\r");
    pty.wait_for("got on").wait_for("% ");
    assert!(!pty.screen().contains("Stopped"), "{}", pty.screen());
    // Some programs stop themselves with SIGSTOP, which cannot be caught.
    let stopping = lock(r#"echo re""ady; kill -STOP $$; read x; echo go""t $x"#);
    pty.press(&stopping).wait_for("ready").wait_for("% ").press("fg\r").wait_for("read x");
    pty.press("again\r").wait_for("got again").wait_for("% ").press("exit\r").end();
    assert!(!sandbox.exists(".s.jsonl.lock"));
}
