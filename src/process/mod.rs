//! Runs the user's commands, such as one that prints an API key or writes a summary. A command is ended together with
//! its descendants.

mod beside;
mod family;
pub mod relatives;
pub mod signals;

use crate::exit::{Error, Exit, fail};
use anyhow::Context;
pub use beside::CommandBeside;
use family::ProcessFamily;
pub use family::has_terminal;
use signals::await_own_signal;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;

/// The result of a command that has ended.
#[derive(Debug)]
pub struct EndedCommand {
    /// Its exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, if that was piped.
    pub stderr: Vec<u8>,
}

impl EndedCommand {
    /// Returns its exit status, if it is one that the programs of clawutils use.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.status.and_then(Exit::from_code)
    }

    /// Returns the error for a command that failed. `what` is the beginning of the error text, such as `cannot count`.
    ///
    /// The error has the command's exit status if the programs of clawutils use that status for failures. Otherwise it
    /// has [`Exit::Config`] if the shell could not run the command (status 126 or 127), else [`Exit::Unavailable`].
    #[must_use]
    pub fn failure(&self, command: &str, what: &str) -> anyhow::Error {
        let how = self
            .status
            .map_or("was ended by a signal".to_owned(), |code| format!("ended with status {code}"));
        let exit = match (self.exit(), self.status) {
            (_, Some(126 | 127)) => Exit::Config,
            // Status 141 reports that the reader of the output is gone. It is not passed on, because the reader of the
            // command's output is not the reader of this program's output.
            (Some(exit), _) if !matches!(exit, Exit::ReaderGone | Exit::Done) => exit,
            _ => Exit::Unavailable,
        };
        Error::new(exit, format!("{what}: '{command}' {how}")).into()
    }
}

/// Returns the numbers of other processes that have a file open, as far as the system shows them.
#[must_use]
pub fn holders(path: &Path) -> Vec<i32> {
    crate::system::holders(path).into_iter().map(|process| process.as_raw_nonzero().get()).collect()
}

/// Returns a word in single quotes for the shell.
#[must_use]
pub fn quoted(word: &OsStr) -> OsString {
    let mut quoted = Vec::from(b"'");
    for byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

/// Returns true if there is a process with this number.
#[must_use]
pub fn is_alive(process: i32) -> bool {
    let process = rustix::process::Pid::from_raw(process);
    process.is_some_and(|process| {
        let found = rustix::process::test_kill_process(process);
        !matches!(found, Err(rustix::io::Errno::SRCH))
    })
}

/// Limits on a command.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChildLimits<'l> {
    /// The time at which the command is ended if it is still running.
    pub until: Option<Instant>,
    /// The environment variables to set to an empty value for the command, so that it takes no value for these
    /// settings from the environment or the configuration file.
    pub without: &'l [&'l str],
    /// Environment variables for the command: names and values.
    pub with: &'l [(&'l str, &'l str)],
}

/// Runs `command` in a shell, so that it may contain arguments, with `arguments` appended and `input` on its standard
/// input. The command shares the standard error of this program.
///
/// # Errors
/// Fails if the shell cannot be started, and with 69 if the command does not end in time.
pub fn run(
    command: &str,
    arguments: &[String],
    input: Vec<u8>,
    limits: ChildLimits<'_>,
) -> anyhow::Result<EndedCommand> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("{command} \"$@\"")).arg("sh").args(arguments);
    for name in limits.without {
        shell.env(name, "");
    }
    shell.envs(limits.with.iter().copied());
    run_program(&mut shell, command, input, limits.until)
}

/// Runs a program with `input` on its standard input, without a shell. The program shares the standard error of this
/// process unless `program` pipes its own. `name` is its name in errors.
///
/// # Errors
/// Fails if it cannot be started, and with 69 if it does not end in time.
pub fn run_program(
    program: &mut Command,
    name: &str,
    input: Vec<u8>,
    until: Option<Instant>,
) -> anyhow::Result<EndedCommand> {
    program.stdout(Stdio::piped());
    run_with(program, name, input, until)
}

/// Runs a program without input, and with its standard output going to a file. Its standard error is kept in the result.
///
/// # Errors
/// Fails if it cannot be started.
pub fn run_to(program: &mut Command, name: &str, output: File) -> anyhow::Result<EndedCommand> {
    program.stdout(output).stderr(Stdio::piped());
    run_with(program, name, Vec::new(), None)
}

fn run_with(
    program: &mut Command,
    name: &str,
    input: Vec<u8>,
    until: Option<Instant>,
) -> anyhow::Result<EndedCommand> {
    program.stdin(Stdio::piped());
    let (mut child, family) =
        ProcessFamily::start(program).with_context(|| format!("cannot run '{name}'"))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    // A command need not read all of its input, so errors in this thread are ignored.
    std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let errors = std::thread::spawn(move || read_all(stderr));
    let (sender, output) = mpsc::channel();
    std::thread::spawn(move || sender.send(read_all(stdout)));
    let output = match until {
        None => output.recv().ok(),
        Some(until) => match output.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {
                family.end(|| drop(child.try_wait()));
                let _ = child.wait();
                family.forget();
                return fail(Exit::Unavailable, format!("'{name}' did not end in time"));
            }
            output => output.ok(),
        },
    };
    let cannot = || format!("cannot read the output of '{name}'");
    let stdout = output.unwrap_or_else(|| Ok(Vec::new())).with_context(cannot)?;
    let stderr = errors.join().unwrap_or_else(|_| Ok(Vec::new())).with_context(cannot)?;
    let status = child.wait().with_context(|| format!("cannot wait for '{name}'"))?;
    await_own_signal(status);
    family.forget();
    Ok(EndedCommand { status: status.code(), signal: status.signal(), stdout, stderr })
}

fn read_all(output: Option<impl Read>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut output) = output {
        output.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
