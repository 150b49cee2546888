//! A private place to run a program in, and what came of the run.
//!
//! [`Sandbox`] is a directory of its own per test, [`Cmd`] a program about to run there, [`Run`]
//! what it left behind. Every program gets the same small environment and nothing of the
//! caller's but the end of `PATH`; standard input comes from a thread and both outputs are
//! drained by threads, so no size of input or output can block; a program that does not end is
//! killed with its whole process group. A failed assertion tells the command, the directory,
//! what is in it, the status and both outputs.
//!
//! [`provider::FakeProvider`] is the other end of the wire, [`rules`] and [`shapes`] the law it
//! applies, and [`wire`] the ways there that are not plain loopback. [`pty::Pty`] is a terminal to run on.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "each test file uses a part of the harness, and a harness reports by panicking"
)]

pub mod provider;
pub mod pty;
pub mod rules;
pub mod shapes;
#[cfg(feature = "http")]
pub mod wire;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Whether a program here hears a signal, by its number. One that is started in the background by a shell
/// without job control is deaf to some; that is said.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
pub fn hears(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_deaf = (ignored >> (signal - 1)) & 1 == 1;
    if is_deaf {
        println!("skipped: signal {signal} is ignored here");
    }
    !is_deaf
}

/// How long a program may run unless a test says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long to wait for the last output of a program that was killed.
const GRACE: Duration = Duration::from_secs(2);

/// The most of one text, in bytes, that a failure report repeats.
const EXCERPT: usize = 4096;

/// The most files a failure report lists.
const LISTED: usize = 50;

/// A private directory. It holds `state/`, where `CLAW_STATE_DIR` points, and is removed with
/// the last of the sandbox, its commands and their runs.
pub struct Sandbox {
    dir: Arc<TempDir>,
}

impl Sandbox {
    /// Makes the directory.
    pub fn new() -> Sandbox {
        let dir = TempDir::new().expect("a temporary directory");
        fs::create_dir(dir.path().join("state")).expect("the state directory");
        Sandbox { dir: Arc::new(dir) }
    }

    /// The directory itself.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The full path of a file in the directory, there or not.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Whether a file or directory of that name is there.
    pub fn exists(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    /// Writes a file, and the directories above it; returns its path.
    #[track_caller]
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        let parent = path.parent().expect("a file has a directory");
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, bytes));
        if let Err(e) = written {
            panic!("write {name}: {e}\n{}", listing(self.dir()));
        }
        path
    }

    /// The bytes of a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        match fs::read(self.path(name)) {
            Ok(bytes) => bytes,
            Err(e) => panic!("read {name}: {e}\n{}", listing(self.dir())),
        }
    }

    /// The text of a file, which must be UTF-8.
    #[track_caller]
    pub fn read_text(&self, name: &str) -> String {
        match String::from_utf8(self.read(name)) {
            Ok(text) => text,
            Err(e) => panic!("read {name}: {e}"),
        }
    }

    /// The values of a JSONL file.
    #[track_caller]
    pub fn read_json(&self, name: &str) -> Vec<Value> {
        match jsonl(&self.read_text(name)) {
            Ok(values) => values,
            Err(e) => panic!("read {name}: {e}"),
        }
    }

    /// Puts a shell script where `PATH` finds it before any program of the same name.
    #[track_caller]
    pub fn program(&self, name: &str, script: &str) {
        // A shell of its own writes the file: were it open for writing here, even for a moment,
        // a program started by another test could inherit it, and running it would fail as busy.
        self.sh(r#"mkdir -p bin && cat >"bin/$NAME" && chmod 755 "bin/$NAME""#)
            .env("NAME", name)
            .stdin(format!("#!/bin/sh\n{script}\n"))
            .run()
            .ok();
    }

    /// A program of this package: a built one, or else a script of the repository.
    #[track_caller]
    pub fn cmd(&self, program: &str) -> Cmd {
        let places = [built_programs().join(program), scripts().join(program)];
        match places.iter().find(|path| path.is_file()) {
            Some(path) => Cmd::new(path, program, &self.dir),
            None => panic!("no program {program}: tried {places:?}"),
        }
    }

    /// A shell script, with this package's programs on its `PATH`.
    pub fn sh(&self, script: &str) -> Cmd {
        Cmd::new(Path::new("/bin/sh"), "/bin/sh", &self.dir).arg("-c").arg(script)
    }
}

/// Where cargo put the programs: the directory above that of the running test.
///
/// Asked at run time, since a build without the `http` feature has no `claw-call` to name in
/// `env!("CARGO_BIN_EXE_claw-call")`.
fn built_programs() -> PathBuf {
    let test = env::current_exe().expect("the path of the running test");
    test.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned()
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// The whole environment of a program in `dir`.
fn environment(dir: &Path) -> BTreeMap<OsString, OsString> {
    let inherited = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let places = [dir.join("bin"), built_programs(), scripts()];
    let path = env::join_paths(places.into_iter().chain(env::split_paths(&inherited)))
        .expect("directories without a colon");
    let state = dir.join("state");
    let members: [(&str, &OsStr); 7] = [
        ("PATH", &path),
        ("HOME", dir.as_os_str()),
        ("LC_ALL", OsStr::new("C.UTF-8")),
        ("TZ", OsStr::new("UTC")),
        ("SOURCE_DATE_EPOCH", OsStr::new("1767225600")),
        ("CLAW_STATE_DIR", state.as_os_str()),
        ("NO_PROXY", OsStr::new("*")),
    ];
    members.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A program about to run in a sandbox, with no input and [`TIMEOUT`] to end.
#[must_use = "a command does nothing until it is run"]
pub struct Cmd {
    program: PathBuf,
    name: String,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    changed: Vec<String>,
    root: Arc<TempDir>,
    cwd: PathBuf,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
}

impl Cmd {
    fn new(program: &Path, name: &str, dir: &Arc<TempDir>) -> Cmd {
        Cmd {
            program: program.to_owned(),
            name: name.to_owned(),
            args: Vec::new(),
            env: environment(dir.path()),
            changed: Vec::new(),
            root: Arc::clone(dir),
            cwd: dir.path().to_owned(),
            stdin: None,
            timeout: TIMEOUT,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Cmd {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Cmd {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Cmd {
        let (name, value) = (name.as_ref(), value.as_ref());
        self.changed.push(format!("{}={}", name.display(), quoted(value)));
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets variables, such as those of [`provider::FakeProvider::env`].
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        self,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Cmd {
        vars.into_iter().fold(self, |cmd, (name, value)| cmd.env(name, value))
    }

    /// Removes a variable.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Cmd {
        let name = name.as_ref();
        self.changed.push(format!("-u {}", name.display()));
        self.env.remove(name);
        self
    }

    /// Runs in a directory of the sandbox instead of its top.
    pub fn cwd(mut self, name: &str) -> Cmd {
        self.cwd = self.root.path().join(name);
        self
    }

    /// Gives these bytes as standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Cmd {
        self.stdin = Some(bytes.into());
        self
    }

    /// Changes how long the program may run.
    pub fn timeout(mut self, timeout: Duration) -> Cmd {
        self.timeout = timeout;
        self
    }

    /// Runs the program until it has ended and both its outputs are closed.
    ///
    /// Panics with a report when that takes longer than the timeout, whether the program itself
    /// hangs or something it left behind does.
    #[track_caller]
    pub fn run(self) -> Run {
        let deadline = Instant::now() + self.timeout;
        let mut child = self.start(Stdio::piped());
        feed(&mut child, self.stdin.clone().unwrap_or_default());
        let group = child.id();
        let stdout = drain(child.stdout.take().expect("a piped stdout"));
        let stderr = drain(child.stderr.take().expect("a piped stderr"));
        let exit = in_thread(move || child.wait().expect("the status of a child"));

        let timely = (by(deadline, &exit), by(deadline, &stdout), by(deadline, &stderr));
        let ended = matches!(timely, (Some(_), Some(_), Some(_)));
        if !ended {
            kill_group(group);
        }
        // What was missed at the deadline comes now, for the report.
        let late = Instant::now() + GRACE;
        let exit = timely.0.or_else(|| by(late, &exit));
        let stdout = timely.1.or_else(|| by(late, &stdout)).unwrap_or_default();
        let stderr = timely.2.or_else(|| by(late, &stderr)).unwrap_or_default();

        let run = Run {
            status: exit.and_then(|exit| exit.code()),
            signal: exit.and_then(|exit| exit.signal()),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            command: self.command_line(),
            root: self.root,
            cwd: self.cwd,
        };
        if !ended {
            run.fail(&format!("not over after {:?}, killed", self.timeout));
        }
        run
    }

    /// Starts the program and leaves it to the test, with both outputs piped.
    ///
    /// Standard input is fed as by [`Cmd::run`] if the test gave some, else it stays open in
    /// `Child::stdin`. The program leads a process group of its own, which [`kill_group`] ends.
    /// The test must keep the sandbox until the child has ended.
    #[track_caller]
    pub fn spawn(self) -> Child {
        self.spawn_into(Stdio::piped())
    }

    /// The same, with a standard output of the test's own.
    #[track_caller]
    pub fn spawn_into(mut self, stdout: Stdio) -> Child {
        let mut child = self.start(stdout);
        if let Some(bytes) = self.stdin.take() {
            feed(&mut child, bytes);
        }
        child
    }

    #[track_caller]
    fn start(&self, stdout: Stdio) -> Child {
        let child = Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.cwd)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn();
        match child {
            Ok(child) => child,
            Err(e) => panic!("start {}: {e}", self.command_line()),
        }
    }

    fn command_line(&self) -> String {
        let env = if self.changed.is_empty() { None } else { Some("env".to_owned()) };
        let args = self.args.iter().map(|arg| quoted(arg));
        let words = env.into_iter().chain(self.changed.iter().cloned());
        words.chain([self.name.clone()]).chain(args).collect::<Vec<_>>().join(" ")
    }
}

/// Returns a shell script that runs a command whose standard output is a pipe that nothing reads any more, and
/// prints the status of the command.
pub fn into_closed_pipe(command: &str) -> String {
    format!(
        "rm -f closed; {{ until test -e closed; do sleep 0.01; done; {command}; echo $? >status; }} |
        {{ exec <&-; : >closed; }}; cat status"
    )
}

/// Kills a process group, given the process that leads it.
pub fn kill_group(leader: u32) {
    let script = format!("kill -s KILL -- -{leader}");
    // It may have ended by itself in the meantime, and then there is nothing to kill.
    let _ = Command::new("/bin/sh").arg("-c").arg(script).stderr(Stdio::null()).status();
}

/// Writes a child's whole input from a thread, then closes it.
fn feed(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().expect("a piped stdin");
    // A program may end before it has read everything; what it made of that is for the test.
    thread::spawn(move || {
        let _ = stdin.write_all(&bytes);
    });
}

/// Reads a stream to its end in a thread.
fn drain(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    in_thread(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the output of a child");
        bytes
    })
}

fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    // Nobody listens any more once the test has failed.
    thread::spawn(move || {
        let _ = sender.send(work());
    });
    receiver
}

fn by<T>(deadline: Instant, receiver: &Receiver<T>) -> Option<T> {
    receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

/// What a program left behind. Assertions panic with a full report, and can be chained.
pub struct Run {
    /// The exit status; none when a signal ended the program.
    pub status: Option<i32>,
    /// The signal that ended the program, if one did.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, with U+FFFD for what is not UTF-8.
    pub stderr: String,
    command: String,
    root: Arc<TempDir>,
    cwd: PathBuf,
}

impl Run {
    /// The program exited with 0.
    #[track_caller]
    pub fn ok(&self) -> &Run {
        self.code(0)
    }

    /// The program exited with this status.
    #[track_caller]
    pub fn code(&self, status: i32) -> &Run {
        self.expect(self.status == Some(status), || format!("expected exit {status}"))
    }

    /// The program was ended by this signal.
    #[track_caller]
    pub fn killed_by(&self, signal: i32) -> &Run {
        self.expect(self.signal == Some(signal), || format!("expected signal {signal}"))
    }

    /// Standard output is exactly this.
    #[track_caller]
    pub fn stdout_is(&self, text: &str) -> &Run {
        self.expect(self.stdout == text.as_bytes(), || {
            format!("expected as the whole of stdout:\n{}", excerpt(text.as_bytes()))
        })
    }

    /// Standard output holds no reply: nothing, or the one record of what was shown of it.
    #[track_caller]
    pub fn no_reply(&self) -> &Run {
        let records = self.json();
        let is_part =
            |record: &Value| record["interrupted"] == true && record["content"] != json!([]);
        self.expect(records.len() <= 1 && records.iter().all(is_part), || {
            "expected no reply in stdout, or what was shown of one".to_owned()
        })
    }

    /// Standard output contains this.
    #[track_caller]
    pub fn stdout_has(&self, text: &str) -> &Run {
        let stdout = String::from_utf8_lossy(&self.stdout);
        self.expect(stdout.contains(text), || format!("expected in stdout: {text:?}"))
    }

    /// Standard error is exactly this.
    #[track_caller]
    pub fn err_is(&self, text: &str) -> &Run {
        self.expect(self.stderr == text, || {
            format!("expected as the whole of stderr:\n{}", excerpt(text.as_bytes()))
        })
    }

    /// Standard error contains this.
    #[track_caller]
    pub fn err_has(&self, text: &str) -> &Run {
        self.expect(self.stderr.contains(text), || format!("expected in stderr: {text:?}"))
    }

    /// Standard error does not contain this.
    #[track_caller]
    pub fn err_lacks(&self, text: &str) -> &Run {
        self.expect(!self.stderr.contains(text), || format!("not expected in stderr: {text:?}"))
    }

    /// Standard output as text, which it must be.
    #[track_caller]
    pub fn stdout_text(&self) -> String {
        match String::from_utf8(self.stdout.clone()) {
            Ok(text) => text,
            Err(e) => self.fail(&format!("stdout: {e}")),
        }
    }

    /// Standard output as lines, without their ends.
    #[track_caller]
    pub fn lines(&self) -> Vec<String> {
        self.stdout_text().lines().map(str::to_owned).collect()
    }

    /// Standard output as the values of its lines, each of which must be JSON.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        match jsonl(&self.stdout_text()) {
            Ok(values) => values,
            Err(e) => self.fail(&format!("stdout: {e}")),
        }
    }

    /// Standard output as the one JSON value it must be.
    #[track_caller]
    pub fn json_one(&self) -> Value {
        match serde_json::from_slice(&self.stdout) {
            Ok(value) => value,
            Err(e) => self.fail(&format!("stdout is not one JSON value: {e}")),
        }
    }

    /// Any other claim about the run, with the full report when it is false.
    #[track_caller]
    pub fn expect(&self, holds: bool, claim: impl FnOnce() -> String) -> &Run {
        if !holds {
            self.fail(&claim());
        }
        self
    }

    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        panic!("{why}\n{}", self.report())
    }

    fn report(&self) -> String {
        let end = match (self.status, self.signal) {
            (Some(status), _) => format!("exit {status}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown".to_owned(),
        };
        format!(
            "command: {}\ncwd: {}\nended: {end}\n--- files\n{}--- stdout\n{}\n--- stderr\n{}\n---",
            self.command,
            self.cwd.display(),
            listing(self.root.path()),
            excerpt(&self.stdout),
            excerpt(self.stderr.as_bytes()),
        )
    }
}

fn jsonl(text: &str) -> Result<Vec<Value>, String> {
    let value = |(n, line)| {
        serde_json::from_str(line).map_err(|e| format!("line {}: {e}: {line:?}", n + 1))
    };
    text.lines().enumerate().map(value).collect()
}

/// A word as a shell would need it written.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The text itself, or its two ends when it is long.
fn excerpt(bytes: &[u8]) -> String {
    if bytes.len() <= EXCERPT {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let (head, rest) = bytes.split_at(EXCERPT / 2);
    let (middle, tail) = rest.split_at(rest.len() - EXCERPT / 2);
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    format!("{head}\n[... {} bytes ...]\n{tail}", middle.len())
}

/// The files below a directory, one on a line with its size.
fn listing(dir: &Path) -> String {
    let mut lines = Vec::new();
    for entry in walkdir::WalkDir::new(dir).min_depth(1).sort_by_file_name() {
        let Ok(entry) = entry else { continue };
        if lines.len() == LISTED {
            lines.push("...\n".to_owned());
            break;
        }
        let name = entry.path().strip_prefix(dir).unwrap_or(entry.path()).display();
        lines.push(match entry.metadata() {
            Ok(meta) if meta.is_file() => format!("{name} ({} bytes)\n", meta.len()),
            _ => format!("{name}/\n"),
        });
    }
    lines.concat()
}

mod tests {
    use super::*;

    /// The message of a panic that must happen.
    fn panic_of(work: impl FnOnce() + std::panic::UnwindSafe) -> String {
        let cause = std::panic::catch_unwind(work).expect_err("a panic");
        cause.downcast_ref::<String>().expect("a formatted panic").clone()
    }

    #[test]
    fn a_program_sees_only_the_fixed_environment() {
        let sandbox = Sandbox::new();
        let run = sandbox.sh("env | sed 's/=.*//' | sort").run();
        let mut names = run.ok().lines();
        // Shells add these themselves.
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
        let fixed =
            ["CLAW_STATE_DIR", "HOME", "LC_ALL", "NO_PROXY", "PATH", "SOURCE_DATE_EPOCH", "TZ"];
        assert_eq!(names, fixed);
        sandbox.sh("test -d \"$CLAW_STATE_DIR\" && test -z \"$(cat)\"").run().ok();
    }

    #[test]
    fn large_input_and_output_do_not_block() {
        let sandbox = Sandbox::new();
        let big = vec![b'x'; 1 << 20];
        let run = sandbox.sh("tee copy; cat copy >&2").stdin(big.clone()).run();
        run.ok();
        assert!(run.stdout == big && run.stderr.len() == big.len() && sandbox.read("copy") == big);
    }

    #[test]
    fn a_program_may_leave_its_input_unread() {
        Sandbox::new().sh("exit 3").stdin(vec![b'x'; 1 << 20]).run().code(3).stdout_is("");
    }

    #[test]
    fn a_signal_is_not_a_status() {
        let run = Sandbox::new().sh("kill -TERM $$").run();
        assert_eq!((run.status, run.signal), (None, Some(15)));
        run.killed_by(15);
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children_and_reported() {
        let sandbox = Sandbox::new();
        sandbox.write("note", "hello");
        let hang = sandbox.sh("echo started; sleep 600 & wait").timeout(Duration::from_millis(300));
        let started = Instant::now();
        let report = panic_of(move || drop(hang.run()));
        for part in ["not over after", "/bin/sh -c", "signal 9", "note (5 bytes)", "started"] {
            assert!(report.contains(part), "no {part:?} in:\n{report}");
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for_forever() {
        let leak = Sandbox::new().sh("sleep 600 & exit 0").timeout(Duration::from_millis(300));
        assert!(panic_of(move || drop(leak.run())).contains("not over after"));
    }

    #[test]
    fn a_failure_tells_everything() {
        let sandbox = Sandbox::new();
        sandbox.write("dir/file", "12345");
        let run = sandbox.sh("echo out; echo 'it broke' >&2; exit 7").env("A", "b c").run();
        let report = panic_of(move || {
            run.ok();
        });
        for part in
            ["expected exit 0", "env A='b c'", "exit 7", "dir/file (5 bytes)", "out", "it broke"]
        {
            assert!(report.contains(part), "no {part:?} in:\n{report}");
        }
    }

    #[test]
    fn a_program_that_is_nowhere_is_named() {
        let sandbox = Sandbox::new();
        let report = panic_of(move || drop(sandbox.cmd("claw-nothing")));
        assert!(report.contains("no program claw-nothing"), "{report}");
    }

    #[test]
    fn a_program_of_the_test_comes_first_on_the_path() {
        let sandbox = Sandbox::new();
        sandbox.program("claw-call", "echo mine");
        sandbox.sh("claw-call").run().ok().stdout_is("mine\n");
    }

    #[test]
    fn a_spawned_program_keeps_its_input_open() {
        let sandbox = Sandbox::new();
        let mut child = sandbox.sh("read line; echo \"got $line\"").spawn();
        let mut stdin = child.stdin.take().expect("an open stdin");
        stdin.write_all(b"it\n").expect("a reader");
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.stdout, b"got it\n");
    }
}
