//! `claw-show --follow`: an appended record is shown once its line is complete. If the file is replaced or truncated,
//! showing starts over.

use predicates::str::contains;

use super::{reply, user};
use crate::common::{Sandbox, kill_group};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time to wait for expected output.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that follows `s.jsonl`.
struct Following {
    child: Child,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    path: PathBuf,
    _sandbox: Sandbox,
}

impl Following {
    fn begin(text: &str, args: &[&str]) -> Following {
        let sandbox = Sandbox::new();
        let path = sandbox.write("s.jsonl", text);
        let cmd = sandbox.cmd("claw-show").args(["--follow", "--width", "24"]).args(args);
        let mut child = cmd.arg("s.jsonl").spawn();
        let stdout = parts(child.stdout.take().expect("a piped stdout"));
        let stderr = parts(child.stderr.take().expect("a piped stderr"));
        Following { child, stdout, stderr, path, _sandbox: sandbox }
    }

    fn append(&self, text: &str) {
        append(&self.path, text);
    }

    /// Waits for new standard output, and checks that it is exactly this text.
    #[track_caller]
    fn shows(&self, expected: &str) {
        let mut shown = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        while shown.len() < expected.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.stdout.recv_timeout(left) {
                Ok(part) => shown.extend(part),
                Err(_) => break,
            }
        }
        assert_eq!(String::from_utf8_lossy(&shown), expected);
    }

    /// Waits for new standard error output, and checks that it is exactly this text.
    #[track_caller]
    fn reports(&self, expected: &str) {
        let mut reported = String::new();
        while reported.len() < expected.len() {
            match self.stderr.recv_timeout(PATIENCE) {
                Ok(part) => reported.push_str(&String::from_utf8_lossy(&part)),
                Err(_) => break,
            }
        }
        assert_eq!(reported, expected);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        kill_group(self.child.id());
        let _ = self.child.wait();
    }
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).expect("the transcript");
    file.write_all(text.as_bytes()).expect("an append");
}

/// Returns a channel with the chunks of a stream as they arrive.
fn parts(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part) {
            if sender.send(part[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

const FIRST: &str = "── turn 1 ──────────────\n\nuser\n  one\n";

#[test]
fn an_appended_record_is_shown_when_its_line_is_complete() {
    let following = Following::begin(&user("one"), &[]);
    following.shows(FIRST);
    following.append(&reply("two"));
    following.shows("\nassistant\n  two\n");
    let (begin, end) = (&user("three")[..20], &user("three")[20..]);
    following.append(begin);
    thread::sleep(Duration::from_millis(500));
    following.append(end);
    following.shows("\n── turn 2 ──────────────\n\nuser\n  three\n");
    // A torn line is reported once a line feed ends it.
    following.append("{\"type\":\"us\n");
    following.append(&reply("four"));
    following.shows("\nassistant\n  four\n");
    following.reports(
        "claw-show: torn-line: 's.jsonl' byte 128, 11 bytes: torn after byte 11 of the line: EOF while parsing a string\nclaw-show: 1 finding\n",
    );
}

#[test]
fn a_replaced_or_truncated_file_is_shown_from_its_beginning() {
    let following = Following::begin(&(user("one") + &reply("two")), &["--limit-turns", "1"]);
    following.shows(&(FIRST.to_owned() + "\nassistant\n  two\n"));
    fs::write(&following.path, user("new")).expect("a shorter file");
    following.reports("claw-show: 's.jsonl' was truncated; starting over\n");
    following.shows("\n── turn 1 ──────────────\n\nuser\n  new\n");
    let other = following.path.with_file_name("other");
    fs::write(&other, user("other") + &reply("two") + &reply("three")).expect("another file");
    fs::rename(&other, &following.path).expect("a rename");
    following.reports("claw-show: 's.jsonl' was replaced; starting over\n");
    following.shows("\n── turn 1 ──────────────\n\nuser\n  other\n\nassistant\n  two\n\n  three\n");
    // A file that was removed may appear again.
    fs::remove_file(&following.path).expect("no file");
    thread::sleep(Duration::from_millis(500));
    fs::write(&following.path, user("one")).expect("a new file");
    following.reports("claw-show: 's.jsonl' was replaced; starting over\n");
    following.shows(&format!("\n{FIRST}"));
}

#[test]
fn a_signal_or_a_closed_pipe_ends_the_program_silently() {
    let mut following = Following::begin(&user("one"), &[]);
    following.shows(FIRST);
    let interrupt = format!("kill -s INT {}", following.child.id());
    Sandbox::new().sh(&interrupt).assert().success();
    let status = following.child.wait().expect("an exit status");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(2));
    assert!(following.stderr.recv_timeout(PATIENCE).is_err(), "expected nothing on standard error");
    // If its reader exits, the program ends even if nothing more is appended.
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", user("one"));
    let script = "{ claw-show --follow s.jsonl; echo $? >status; } | head -n 1";
    sandbox.sh(script).assert().success().stderr("");
    assert_eq!(sandbox.read_text("status"), "141\n");
}

#[test]
fn only_one_existing_file_can_be_followed_and_only_as_text() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", user("one"));
    let follow = |args: &[&str]| sandbox.cmd("claw-show").arg("--follow").args(args).assert();
    follow(&["--format", "html", "s.jsonl"]).code(2).stdout("");
    follow(&[]).code(2).stderr("claw-show: --follow takes one file; name one\n");
    follow(&["s.jsonl", "s.jsonl"]).code(2);
    follow(&["-"]).code(2).stderr("claw-show: cannot follow '<stdin>'; name a file\n");
    follow(&["/dev/null"]).code(2).stderr(contains("not a regular file"));
    follow(&["nowhere"]).code(74).stderr(contains("claw-show: cannot read 'nowhere': "));
    sandbox.write("tree", "{\"type\":\"message\",\"message\":{}}\n");
    follow(&["tree"]).code(65);
}
