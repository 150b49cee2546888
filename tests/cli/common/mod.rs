//! A private place to run a program in.
//!
//! [`Sandbox`] is a directory of its own per test, and [`Cmd`] a program to run there. A test uses it like
//! `assert_cmd::Command`: [`Cmd::assert`] returns assert_cmd's [`Assert`], and checks take predicates. [`AssertExt`]
//! adds the signal that ended a program, and its output as text and JSON. Every program gets the same small
//! environment and nothing of the caller's but the end of `PATH`.
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

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
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

/// A private directory. It holds `state/`, where `CLAW_STATE_DIR` points, and is removed with
/// the last of the sandbox and its commands.
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
            panic!("write {name}: {e}");
        }
        path
    }

    /// The bytes of a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        match fs::read(self.path(name)) {
            Ok(bytes) => bytes,
            Err(e) => panic!("read {name}: {e}"),
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
            .write_stdin(format!("#!/bin/sh\n{script}\n"))
            .assert()
            .success();
    }

    /// A program of this package: a built one, or else a script of the repository.
    #[track_caller]
    pub fn cmd(&self, program: &str) -> Cmd {
        let places = [built_programs().join(program), scripts().join(program)];
        match places.iter().find(|path| path.is_file()) {
            Some(path) => Cmd::new(path, &self.dir),
            None => panic!("no program {program}: tried {places:?}"),
        }
    }

    /// A shell script, with this package's programs on its `PATH`.
    pub fn sh(&self, script: &str) -> Cmd {
        Cmd::new(Path::new("/bin/sh"), &self.dir).arg("-c").arg(script)
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

/// A program to run in a sandbox, with no input and [`TIMEOUT`] to end.
///
/// Its methods have the names of those of `assert_cmd::Command`, which kills only the program itself at a timeout,
/// not its process group, and then waits until nothing holds the output open.
#[must_use = "a command does nothing until it is run"]
pub struct Cmd {
    command: Command,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
    /// Keeps the directory until the program has ended.
    root: Arc<TempDir>,
}

impl Cmd {
    fn new(program: &Path, root: &Arc<TempDir>) -> Cmd {
        let dir = root.path();
        let inherited = env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let places = [dir.join("bin"), built_programs(), scripts()];
        let path = env::join_paths(places.into_iter().chain(env::split_paths(&inherited)))
            .expect("directories without a colon");
        let mut command = Command::new(program);
        command
            .current_dir(dir)
            .process_group(0)
            .env_clear()
            .env("PATH", path)
            .env("HOME", dir)
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("SOURCE_DATE_EPOCH", "1767225600")
            .env("CLAW_STATE_DIR", dir.join("state"))
            .env("NO_PROXY", "*");
        Cmd { command, stdin: None, timeout: TIMEOUT, root: Arc::clone(root) }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Cmd {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Cmd {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Cmd {
        self.command.env(name, value);
        self
    }

    /// Sets variables, such as those of [`provider::FakeProvider::env`].
    pub fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        vars: impl IntoIterator<Item = (N, V)>,
    ) -> Cmd {
        self.command.envs(vars);
        self
    }

    /// Removes a variable.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Cmd {
        self.command.env_remove(name);
        self
    }

    /// Gives these bytes as standard input.
    pub fn write_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Cmd {
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
    /// After the timeout it kills the process group and panics with a report. This includes programs that the program
    /// left running in the background.
    #[track_caller]
    pub fn assert(mut self) -> Assert {
        let deadline = Instant::now() + self.timeout;
        let mut child = self.start(Stdio::piped());
        feed(&mut child, self.stdin.take().unwrap_or_default());
        let (group, command) = (child.id(), format!("{:?}", self.command));
        let output = in_thread(move || child.wait_with_output().expect("the output of a child"));
        if let Some(output) = by(deadline, &output) {
            return assert_that(output, command);
        }
        kill_group(group);
        let why = format!("not over after {:?}, killed", self.timeout);
        match by(Instant::now() + GRACE, &output) {
            Some(output) => panic!("{why}\n{}", assert_that(output, command)),
            None => panic!("{why}, and its output is still open: {command}"),
        }
    }

    /// Starts the program and leaves it to the test, with both outputs piped.
    ///
    /// Standard input is fed as by [`Cmd::assert`] if the test gave some, else it stays open in
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
    fn start(&mut self, stdout: Stdio) -> Child {
        self.command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        match self.command.spawn() {
            Ok(child) => child,
            Err(e) => panic!("start {:?}: {e}", self.command),
        }
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
    let leader = i32::try_from(leader).ok().and_then(Pid::from_raw).expect("a process");
    // It may have ended by itself in the meantime, and then there is nothing to kill.
    let _ = kill_process_group(leader, Signal::KILL);
}

/// Writes a child's whole input from a thread, then closes it.
fn feed(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().expect("a piped stdin");
    // A program may end before it has read everything; what it made of that is for the test.
    thread::spawn(move || {
        let _ = stdin.write_all(&bytes);
    });
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

/// Returns checks on the output of a program; a failure reports it with the command and its status or signal.
fn assert_that(output: Output, command: String) -> Assert {
    let status = output.status;
    Assert::new(output).append_context("command", command).append_context("ended", status)
}

/// Checks that [`Assert`] lacks: the signal that ended a program, and its output as text and as JSON.
pub trait AssertExt {
    /// Checks that this signal ended the program.
    #[track_caller]
    fn killed_by(self, signal: i32) -> Self;

    /// Returns standard output, which must be UTF-8.
    #[track_caller]
    fn stdout_text(&self) -> String;

    /// Returns standard error, which must be UTF-8.
    #[track_caller]
    fn stderr_text(&self) -> &str;

    /// Returns the lines of standard output, without their ends.
    #[track_caller]
    fn lines(&self) -> Vec<String>;

    /// Returns the values of the lines of standard output, each of which must be JSON.
    #[track_caller]
    fn json(&self) -> Vec<Value>;

    /// Returns standard output, which must be one JSON value.
    #[track_caller]
    fn json_one(&self) -> Value;
}

impl AssertExt for Assert {
    fn killed_by(self, signal: i32) -> Assert {
        assert_eq!(self.get_output().status.signal(), Some(signal), "the signal\n{self}");
        self
    }

    fn stdout_text(&self) -> String {
        match String::from_utf8(self.get_output().stdout.clone()) {
            Ok(text) => text,
            Err(e) => panic!("stdout: {e}\n{self}"),
        }
    }

    fn stderr_text(&self) -> &str {
        match str::from_utf8(&self.get_output().stderr) {
            Ok(text) => text,
            Err(e) => panic!("stderr: {e}\n{self}"),
        }
    }

    fn lines(&self) -> Vec<String> {
        self.stdout_text().lines().map(str::to_owned).collect()
    }

    fn json(&self) -> Vec<Value> {
        match jsonl(&self.stdout_text()) {
            Ok(values) => values,
            Err(e) => panic!("stdout: {e}\n{self}"),
        }
    }

    fn json_one(&self) -> Value {
        match serde_json::from_slice(&self.get_output().stdout) {
            Ok(value) => value,
            Err(e) => panic!("stdout is not one JSON value: {e}\n{self}"),
        }
    }
}

fn jsonl(text: &str) -> Result<Vec<Value>, String> {
    let value = |(n, line)| {
        serde_json::from_str(line).map_err(|e| format!("line {}: {e}: {line:?}", n + 1))
    };
    text.lines().enumerate().map(value).collect()
}

mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// The message of a panic that must happen.
    fn panic_of(work: impl FnOnce()) -> String {
        let cause = catch_unwind(AssertUnwindSafe(work)).expect_err("a panic");
        cause.downcast_ref::<String>().expect("a formatted panic").clone()
    }

    #[test]
    fn a_program_sees_only_the_fixed_environment() {
        let sandbox = Sandbox::new();
        let run = sandbox.sh("env | sed 's/=.*//' | sort").assert();
        let mut names = run.success().lines();
        // Shells add these themselves.
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
        let fixed =
            ["CLAW_STATE_DIR", "HOME", "LC_ALL", "NO_PROXY", "PATH", "SOURCE_DATE_EPOCH", "TZ"];
        assert_eq!(names, fixed);
        sandbox.sh("test -d \"$CLAW_STATE_DIR\" && test -z \"$(cat)\"").assert().success();
    }

    #[test]
    fn large_input_and_output_do_not_block() {
        let sandbox = Sandbox::new();
        let big = vec![b'x'; 1 << 20];
        let run = sandbox.sh("tee copy; cat copy >&2").write_stdin(big.clone()).assert();
        run.success().stdout(big.clone()).stderr(big.clone());
        assert!(sandbox.read("copy") == big);
    }

    #[test]
    fn a_program_may_leave_its_input_unread() {
        Sandbox::new().sh("exit 3").write_stdin(vec![b'x'; 1 << 20]).assert().code(3).stdout("");
    }

    #[test]
    fn a_signal_is_not_a_status() {
        let run = Sandbox::new().sh("kill -TERM $$").assert();
        run.interrupted().killed_by(15);
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children_and_reported() {
        let sandbox = Sandbox::new();
        let hang = sandbox.sh("echo started; sleep 600 & wait").timeout(Duration::from_millis(300));
        let started = Instant::now();
        let report = panic_of(move || drop(hang.assert()));
        for part in ["not over after", "\"/bin/sh\" \"-c\"", "signal: 9", "started"] {
            assert!(report.contains(part), "no {part:?} in:\n{report}");
        }
        assert!(started.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for_forever() {
        let leak = Sandbox::new().sh("sleep 600 & exit 0").timeout(Duration::from_millis(300));
        assert!(panic_of(move || drop(leak.assert())).contains("not over after"));
    }

    #[test]
    fn a_failure_tells_everything() {
        let sandbox = Sandbox::new();
        let run = sandbox.sh("echo out; echo 'it broke' >&2; exit 7").env("A", "b c").assert();
        let report = panic_of(|| drop(run.success()));
        for part in ["Unexpected failure", "A=\"b c\"", "code=7", "out", "it broke"] {
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
        sandbox.sh("claw-call").assert().success().stdout("mine\n");
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
