//! Sandboxes to run programs in.
//!
//! [`Sandbox`] is a temporary directory for one test, and [`Cmd`] a program to run there. A test uses a `Cmd` like an
//! `assert_cmd::Command`: [`Cmd::assert`] returns assert_cmd's [`Assert`], and checks take predicates. [`AssertExt`]
//! adds a check of the signal that ended a program, and returns the program's output as text and JSON. Every program
//! gets the same small environment, and the same signals, limits and file mode mask ([`isolation`]); only the end of
//! `PATH` comes from the caller.
//!
//! [`provider::FakeProvider`] is a provider on loopback, which checks requests against [`rules`] and [`shapes`];
//! [`wire`] puts TLS, other addresses and proxies in front of it. [`pty::Pty`] runs a program on a terminal.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    reason = "without the http feature parts are unused, and tests report failures by panicking"
)]

#[cfg(feature = "mcp")]
pub mod frames;
mod isolation;
pub mod media;
pub mod provider;
pub mod pty;
pub mod rules;
pub mod shapes;
#[cfg(feature = "http")]
pub mod strict;
#[cfg(feature = "http")]
pub mod tls;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use tempfile::TempDir;

/// The default limit on the run time of a program. On a loaded machine, one that takes seconds may take a minute.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The longest wait for the last output of a program that was killed.
const GRACE: Duration = Duration::from_secs(20);

/// A temporary directory with the directories `state/`, to which `CLAW_STATE_DIR` points, and `tmp/`, to which `TMPDIR`
/// points. It is removed when the sandbox and all of its commands have been dropped.
pub struct Sandbox {
    dir: Arc<TempDir>,
}

impl Sandbox {
    /// Creates the directory.
    pub fn new() -> Sandbox {
        isolation::begin();
        let dir = TempDir::new().expect("a temporary directory");
        for name in ["state", "tmp"] {
            fs::create_dir(dir.path().join(name)).expect("a directory in the sandbox");
        }
        Sandbox { dir: Arc::new(dir) }
    }

    /// Returns the path of the directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the full path of a file in the directory, which need not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Returns true if a file or directory of that name exists.
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

    /// Reads a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        match fs::read(self.path(name)) {
            Ok(bytes) => bytes,
            Err(e) => panic!("read {name}: {e}"),
        }
    }

    /// Reads a file, which must be UTF-8.
    #[track_caller]
    pub fn read_text(&self, name: &str) -> String {
        match String::from_utf8(self.read(name)) {
            Ok(text) => text,
            Err(e) => panic!("read {name}: {e}"),
        }
    }

    /// Reads the values of a JSONL file.
    #[track_caller]
    pub fn read_json(&self, name: &str) -> Vec<Value> {
        match jsonl(&self.read_text(name)) {
            Ok(values) => values,
            Err(e) => panic!("read {name}: {e}"),
        }
    }

    /// Reads the values of the whole lines of a JSONL file that another program may be writing.
    #[track_caller]
    pub fn read_json_so_far(&self, name: &str) -> Vec<Value> {
        let bytes = self.read(name);
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        match str::from_utf8(&bytes[..whole]).map_err(|e| e.to_string()).and_then(jsonl) {
            Ok(values) => values,
            Err(e) => panic!("read {name}: {e}"),
        }
    }

    /// Adds a shell script that `PATH` finds before any program of the same name.
    #[track_caller]
    pub fn program(&self, name: &str, script: &str) {
        // A separate shell writes the file. If this process had it open for writing, a program that another test
        // starts at that moment could inherit it, and running the script would fail with "text file busy".
        self.sh(r#"mkdir -p bin && cat >"bin/$NAME" && chmod 755 "bin/$NAME""#)
            .env("NAME", name)
            .write_stdin(format!("#!/bin/sh\n{script}\n"))
            .assert()
            .success();
    }

    /// Returns a program of this package, either a built one or a script of the repository.
    #[track_caller]
    pub fn cmd(&self, program: &str) -> Cmd {
        let places = [built_programs().join(program), scripts().join(program)];
        match places.iter().find(|path| path.is_file()) {
            Some(path) => Cmd::new(path, &self.dir),
            None => panic!("no program {program}: tried {places:?}"),
        }
    }

    /// Returns a shell script with this package's programs on its `PATH`.
    pub fn sh(&self, script: &str) -> Cmd {
        Cmd::new(Path::new("/bin/sh"), &self.dir).arg("-c").arg(script)
    }

    /// Runs `script` as an unprivileged user: if the tests run as root, as nobody in the directory `own`, otherwise as
    /// the current user. Returns `None` if the user nobody cannot run the programs.
    pub fn as_nobody(&self, script: &str, input: &str) -> Option<Assert> {
        const WRAPPER: &str = r#"
test "$(id -u)" = 0 || exec sh -c "$SCRIPT"
chmod 755 . && mkdir own && chown 65534:65534 own tmp && cd own || exit 99
drop="setpriv --reuid=65534 --regid=65534 --clear-groups"
$drop claw-append --version >/dev/null 2>&1 || exit 99
exec $drop sh -c "$SCRIPT""#;
        let run = self.sh(WRAPPER).env("SCRIPT", script).write_stdin(input).assert();
        (run.get_output().status.code() != Some(99)).then_some(run)
    }
}

/// Returns the directory of the built programs: `CLAW_PROGRAMS`, with which CI tests the programs that `make install`
/// installs, otherwise the one above the running test's own directory.
///
/// `env!("CARGO_BIN_EXE_claw-call")` would fail to compile without the `http` feature.
fn built_programs() -> PathBuf {
    if let Some(directory) = env::var_os("CLAW_PROGRAMS") {
        return directory.into();
    }
    let test = env::current_exe().expect("the path of the running test");
    test.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned()
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// A program to run in a sandbox, with empty input and the limit [`TIMEOUT`].
///
/// Its methods are named like those of `assert_cmd::Command`. That type is not used, because at a timeout it kills only
/// the program itself, not its process group, and then waits until nothing holds the output open.
#[must_use = "call assert or spawn to run the command"]
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
            .env("TMPDIR", dir.join("tmp"))
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

    /// Sets standard input.
    pub fn write_stdin(mut self, bytes: impl Into<Vec<u8>>) -> Cmd {
        self.stdin = Some(bytes.into());
        self
    }

    /// Sets the limit on the run time.
    pub fn timeout(mut self, timeout: Duration) -> Cmd {
        self.timeout = timeout;
        self
    }

    /// Runs the program until it has ended and both its outputs are closed.
    ///
    /// After the timeout, kills the process group, which includes programs that the program left running in the
    /// background, and panics with a report.
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
        let why = format!("killed after {:?}", self.timeout);
        match by(Instant::now() + GRACE, &output) {
            Some(output) => panic!("{why}\n{}", assert_that(output, command)),
            None => panic!("{why}, and its output is still open: {command}"),
        }
    }

    /// Starts the program with both outputs piped.
    ///
    /// If the test has set an input, it is written as by [`Cmd::assert`]; otherwise `Child::stdin` stays open. The
    /// program leads its own process group, which [`kill_group`] kills. The test must keep the sandbox until the
    /// child has ended.
    #[track_caller]
    pub fn spawn(self) -> Child {
        self.spawn_into(Stdio::piped())
    }

    /// Starts the program as [`Cmd::spawn`] does, but with the given standard output.
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

/// Returns the reply of the offline provider, and of the fake one, to a request of `count` messages that ends with this
/// prompt.
pub fn reply_to(count: usize, prompt: &str) -> String {
    format!("Reply to {count} message{}: {prompt}", if count == 1 { "" } else { "s" })
}

/// Returns a shell script that runs a command whose standard output is a pipe without a reader, and prints the
/// status of the command.
pub fn into_closed_pipe(command: &str) -> String {
    format!(
        "rm -f closed; {{ until test -e closed; do sleep 0.01; done; {command}; echo $? >status; }} |
        {{ exec <&-; : >closed; }}; cat status"
    )
}

/// Returns the process id as the type that signals are sent with.
fn pid(process: u32) -> Pid {
    i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process")
}

/// Returns the signal with a name such as `TERM`.
fn signal(name: &str) -> Signal {
    match name {
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "QUIT" => Signal::QUIT,
        "KILL" => Signal::KILL,
        "TERM" => Signal::TERM,
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        _ => panic!("no signal {name}"),
    }
}

/// Runs a check of what happens within a limited time. If it fails, it runs again, twice at most: on a loaded machine, a
/// process may be scheduled seconds late. The check gets 1, then 4 and then 16, by which it may multiply the times that
/// are not part of what it checks. A program that is itself too slow or too fast fails each time.
pub fn patiently(check: impl Fn(u32)) {
    let passes = |times| panic::catch_unwind(AssertUnwindSafe(|| check(times))).is_ok();
    if !passes(1) && !passes(4) {
        check(16);
    }
}

/// Sends a signal to a process. Fails if it has ended and was waited for.
#[track_caller]
pub fn send(name: &str, process: u32) {
    kill_process(pid(process), signal(name)).expect("a process that can be signalled");
}

/// Sends a signal to a process group, given the process id of its leader. Returns false if the group has ended.
pub fn send_to_group(name: &str, leader: u32) -> bool {
    kill_process_group(pid(leader), signal(name)).is_ok()
}

/// Kills a process group, given the process id of its leader.
pub fn kill_group(leader: u32) {
    // This fails if the group has already ended.
    let _ = send_to_group("KILL", leader);
}

/// Writes a child's input from a thread, then closes it.
fn feed(child: &mut Child, bytes: Vec<u8>) {
    let mut stdin = child.stdin.take().expect("a piped stdin");
    // A program may end before it has read everything; the test checks the outcome.
    thread::spawn(move || {
        let _ = stdin.write_all(&bytes);
    });
}

fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    // The receiver is gone if the test has failed.
    thread::spawn(move || {
        let _ = sender.send(work());
    });
    receiver
}

fn by<T>(deadline: Instant, receiver: &Receiver<T>) -> Option<T> {
    receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

/// Returns an [`Assert`] for the output of a program. If a check fails, the report shows the output, the command, and
/// its status or signal.
fn assert_that(output: Output, command: String) -> Assert {
    let status = output.status;
    Assert::new(output).append_context("command", command).append_context("ended", status)
}

/// Methods that [`Assert`] lacks: a check of the signal that ended a program, and the program's output as text and as
/// JSON.
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

    /// Parses each line of standard output as JSON, and returns the values.
    #[track_caller]
    fn json(&self) -> Vec<Value>;

    /// Returns standard output, which must be one JSON value.
    #[track_caller]
    fn json_one(&self) -> Value;
}

impl AssertExt for Assert {
    fn killed_by(self, signal: i32) -> Assert {
        assert_eq!(self.get_output().status.signal(), Some(signal), "the wrong signal\n{self}");
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
    use std::cell::Cell;
    use std::panic::catch_unwind;

    use super::*;

    /// Returns the message of a panic, which must happen.
    fn panic_of(work: impl FnOnce()) -> String {
        let cause = catch_unwind(AssertUnwindSafe(work)).expect_err("a panic");
        cause.downcast_ref::<String>().expect("a formatted panic").clone()
    }

    #[test]
    fn a_program_sees_only_the_fixed_environment() {
        let sandbox = Sandbox::new();
        let run = sandbox.sh("env | sed 's/=.*//' | sort").assert();
        let mut names = run.success().lines();
        // The shell adds these.
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name.as_str()));
        let fixed = "CLAW_STATE_DIR HOME LC_ALL NO_PROXY PATH SOURCE_DATE_EPOCH TMPDIR TZ";
        assert_eq!(names, fixed.split(' ').collect::<Vec<_>>());
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
    fn killed_by_checks_the_signal() {
        let run = Sandbox::new().sh("kill -TERM $$").assert();
        run.interrupted().killed_by(15);
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        patiently(|times| {
            let sandbox = Sandbox::new();
            let limit = Duration::from_millis(300) * times;
            let hang = sandbox.sh("echo started; sleep 600 & wait").timeout(limit);
            let started = Instant::now();
            let report = panic_of(move || drop(hang.assert()));
            for part in ["killed after", "\"/bin/sh\" \"-c\"", "signal: 9", "started"] {
                assert!(report.contains(part), "no {part:?} in:\n{report}");
            }
            assert!(started.elapsed() < Duration::from_secs(30));
        });
    }

    #[test]
    fn a_check_that_takes_time_has_three_attempts() {
        let attempts = Cell::new(Vec::new());
        let noted = |times| {
            let mut before = attempts.take();
            before.push(times);
            attempts.set(before);
            times
        };
        patiently(|times| assert!(noted(times) > 4, "too early"));
        assert_eq!(attempts.take(), [1, 4, 16]);
        patiently(|times| assert_eq!(noted(times), 1));
        assert_eq!(attempts.take(), [1]);
        assert!(panic_of(|| patiently(|times| assert!(times > 16, "{times}"))).contains("16"));
    }

    #[test]
    fn a_background_process_that_holds_the_output_is_killed() {
        let leak = Sandbox::new().sh("sleep 600 & exit 0").timeout(Duration::from_millis(300));
        assert!(panic_of(move || drop(leak.assert())).contains("killed after"));
    }

    #[test]
    fn a_failed_check_reports_the_command_its_status_and_its_output() {
        let sandbox = Sandbox::new();
        let run = sandbox.sh("echo out; echo 'it broke' >&2; exit 7").env("A", "b c").assert();
        let report = panic_of(|| drop(run.success()));
        for part in ["Unexpected failure", "A=\"b c\"", "code=7", "out", "it broke"] {
            assert!(report.contains(part), "no {part:?} in:\n{report}");
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let sandbox = Sandbox::new();
        let report = panic_of(move || drop(sandbox.cmd("claw-nothing")));
        assert!(report.contains("no program claw-nothing"), "{report}");
    }

    #[test]
    fn programs_of_the_sandbox_come_first_on_the_path() {
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
