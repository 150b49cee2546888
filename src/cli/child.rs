//! Running another program: the user's command, with messages on its standard input.

use crate::exit::{Error, Exit};
use anyhow::Context;
use std::io::Write;
use std::process::{Command, Stdio};

/// What a child left.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status; none when a signal ended it.
    pub status: Option<i32>,
    /// All that it wrote.
    pub stdout: Vec<u8>,
}

impl Ended {
    /// Its status, if that is one of ours.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.status.and_then(Exit::from_code)
    }

    /// The failure that its end is, under its own status where that is one of ours. `what` is what could
    /// not be done: `cannot count`.
    #[must_use]
    pub fn failure(&self, command: &str, what: &str) -> anyhow::Error {
        let how =
            self.status.map_or("by a signal".to_owned(), |code| format!("with status {code}"));
        let exit = match (self.exit(), self.status) {
            (_, Some(126 | 127)) => Exit::Config,
            // Who went away is its reader and not ours.
            (Some(exit), _) if !matches!(exit, Exit::ReaderGone | Exit::Done) => exit,
            _ => Exit::Unavailable,
        };
        Error::new(exit, format!("{what}: '{command}' ended {how}")).into()
    }
}

/// Runs `command` (as the shell reads it, so it may bring arguments of its own) with `arguments` after
/// it and `input` on its standard input. Its standard error is ours.
///
/// # Errors
/// When the shell cannot be started or the child cannot be fed.
pub fn run(command: &str, arguments: &[String], input: &[u8]) -> anyhow::Result<Ended> {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{command} \"$@\""))
        .arg("sh")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run '{command}'"))?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A child that does not read to the end has its reasons; its status tells them.
            stdin.map(|mut stdin| stdin.write_all(input))
        });
        child.wait_with_output()
    });
    let output = output.with_context(|| format!("cannot wait for '{command}'"))?;
    Ok(Ended { status: output.status.code(), stdout: output.stdout })
}
