//! A command that runs while this program talks to it.

use crate::process::family::ProcessFamily;
use anyhow::Context;
use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two checks of whether the command has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// A running command. It stays in the process group of this program, so that whoever kills the group kills both.
#[derive(Debug)]
pub struct CommandBeside {
    child: Child,
    family: ProcessFamily,
}

impl CommandBeside {
    /// Starts a command with pipes for its standard streams. `name` is its name in errors.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command, name: &str) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = ProcessFamily::start_as(command, false);
        let (child, family) = started.with_context(|| format!("cannot run '{name}'"))?;
        Ok(Self { child, family })
    }

    /// Takes the pipes: standard input, standard output and standard error.
    ///
    /// # Errors
    /// If they were taken before.
    pub fn pipes(&mut self) -> io::Result<(ChildStdin, ChildStdout, ChildStderr)> {
        let child = &mut self.child;
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((stdin, stdout), stderr) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok((stdin, stdout, stderr))
    }

    /// Waits until the command ends, and ends it and its descendants if it still runs after `grace`. Returns its status if
    /// it ended by itself.
    pub fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < grace => thread::sleep(PAUSE),
                status => break status.ok().flatten(),
            }
        };
        if status.is_none() {
            self.family.end(|| drop(self.child.try_wait()));
        }
        self.family.forget();
        status
    }
}
