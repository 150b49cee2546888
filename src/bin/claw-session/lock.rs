//! lock: hold the turn lock of a session while a command runs.
//!
//! This takes two processes. The first one chooses the session, starts the second one, forwards signals to it, waits,
//! and removes the lock file. The second one takes the lock and then executes the command. The lock belongs to the
//! second process: it is still held if the first one is killed, and programs that the command starts do not inherit it.

use crate::find::follow;
use crate::foreground;
use crate::indexing;
use crate::place::SessionPlace;
use anyhow::Context;
use clawutils::cli::options::{LockArgs, ResetArgs};
use clawutils::cli::{diagnostics, variable};
use clawutils::exit::{self, Exit, fail};
use clawutils::process::relatives::is_ancestor;
use clawutils::session::temporary::{self, TemporaryDirectory};
use clawutils::session::turn::{HeldTurn, Purpose, holder, lock_path, tidy};
use std::env::temp_dir;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The variable with the path of the temporary directory.
const TEMPORARY: &str = "CLAW_TEMPORARY";

/// Hold the turn lock of a session while a command runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Lock {
    /// Id, key or label of the session, or the path of a transcript if it contains a / or ends in .jsonl
    pub name: OsString,
    #[command(flatten)]
    resets: ResetArgs,
    /// Hold the lock that claw-retry uses instead of the turn lock; turns do not wait for it
    #[arg(long)]
    pub retry: bool,
    /// Make a temporary directory for the command, and name it in CLAW_TEMPORARY
    #[arg(long)]
    temporary: bool,
    #[command(flatten)]
    lock: LockArgs,
    /// Take the lock in this process, and then execute the command
    #[arg(long, hide = true)]
    hold: bool,
    /// Command to run, and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    pub command: Vec<OsString>,
}

impl Lock {
    pub(super) fn run(self, place: &SessionPlace) -> anyhow::Result<ExitCode> {
        let path = self.path(place)?;
        if self.hold {
            return self.hold(place, &path);
        }
        let lock = lock_path(&path, self.purpose());
        let is_held = is_held_above(&lock);
        let mut command = if is_held { self.command()? } else { self.holding(&path)? };
        command.env("CLAW_SESSION", operand(&path));
        command.env("CLAW_LOCKED", std::process::id().to_string());
        let temporary = self.temporary.then(|| TemporaryDirectory::path_in(&temp_dir()));
        command.envs(temporary.iter().map(|path| (TEMPORARY, path)));
        let owned = temporary.as_deref().filter(|_| is_held).map(create_temporary).transpose()?;
        let ended = foreground::run(&mut command).or_else(|error| cannot_run(&command, &error))?;
        drop(owned);
        temporary.iter().for_each(|path| temporary::remove(path));
        if !is_held {
            tidy(&lock);
            indexing::begin(place, Some(&path));
        }
        Ok(foreground::end_like(ended))
    }

    /// Takes the lock and executes the command in this process.
    fn hold(&self, place: &SessionPlace, path: &Path) -> anyhow::Result<ExitCode> {
        let (purpose, shown) = (self.purpose(), path.display());
        let mut command = self.command()?;
        // The kernel closes the files of a killed process in order of their descriptors. That of the directory is made
        // first, so the next holder of the lock finds the directory abandoned.
        let temporary = variable(TEMPORARY).filter(|_| self.temporary);
        let temporary = temporary.map(|path| create_temporary(Path::new(&path))).transpose()?;
        let progress =
            place.log.wait_for(format!("waiting for the {} of '{shown}'", purpose.name()));
        let turn = HeldTurn::take(path, purpose, self.lock.lock_timeout)?;
        drop(progress);
        turn.leave().with_context(|| format!("cannot lock the {} of '{shown}'", purpose.name()))?;
        if let Some(directory) = temporary {
            directory.remove_abandoned();
            directory.leave()?;
        }
        let error = command.exec();
        cannot_run(&command, &error)
    }

    fn purpose(&self) -> Purpose {
        if self.retry { Purpose::Retry } else { Purpose::Turn }
    }

    /// Returns the command on the command line.
    fn command(&self) -> anyhow::Result<Command> {
        // After `-- NAME`, clap passes a second `--` on as a word.
        let words = self.command.strip_prefix(&["--".into()]).unwrap_or(&self.command);
        let Some((program, arguments)) = words.split_first() else {
            return fail(Exit::Usage, "CMD is required; see claw-session lock --help");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        Ok(command)
    }

    /// Returns the command for the second process, which takes the lock.
    fn holding(&self, path: &Path) -> anyhow::Result<Command> {
        let own = std::env::current_exe().context("cannot find the program 'claw-session'")?;
        let mut command = Command::new(own);
        command.args([
            "lock",
            "--hold",
            "--log",
            if diagnostics::is_json() { "json" } else { "text" },
        ]);
        command.arg("--lock-timeout").arg(self.lock.lock_timeout.as_secs_f64().to_string());
        command.args(self.retry.then_some("--retry")).args(self.temporary.then_some("--temporary"));
        command.arg(operand(path)).arg("--");
        let given = self.command()?;
        command.arg(given.get_program()).args(given.get_args());
        Ok(command)
    }

    /// Returns the path of the transcript.
    fn path(&self, place: &SessionPlace) -> anyhow::Result<PathBuf> {
        let (bytes, name) = (self.name.as_encoded_bytes(), self.name.to_string_lossy());
        if !(bytes.contains(&b'/') || bytes.ends_with(b".jsonl")) {
            return self.named_transcript(place, &name);
        }
        Ok(PathBuf::from(&self.name))
    }

    /// Returns the path of the transcript of a named session, or of the session that replaces it after a reset.
    fn named_transcript(&self, place: &SessionPlace, name: &str) -> anyhow::Result<PathBuf> {
        let entries = place.entries()?;
        if let Some(entry) = place.look_up(&entries, name, false)? {
            return Ok(follow(self.resets, place, &entries, entry)?.path);
        }
        place.not_found_but_file(name)
    }
}

/// Returns a path that cannot be mistaken for an option.
fn operand(path: &Path) -> PathBuf {
    let is_like_option = path.as_os_str().as_encoded_bytes().starts_with(b"-");
    if is_like_option { Path::new(".").join(path) } else { path.to_owned() }
}

/// Returns true if an ancestor of this process holds the lock, and `CLAW_LOCKED` is set.
fn is_held_above(lock: &Path) -> bool {
    variable("CLAW_LOCKED").is_some() && holder(lock).is_some_and(is_ancestor)
}

fn create_temporary(path: &Path) -> anyhow::Result<TemporaryDirectory> {
    let cannot = || format!("cannot make the directory '{}'; check TMPDIR", path.display());
    TemporaryDirectory::create(path).with_context(cannot)
}

fn cannot_run<T>(command: &Command, error: &std::io::Error) -> anyhow::Result<T> {
    let program = command.get_program().display();
    fail(Exit::Config, format!("cannot run '{program}': {}", exit::why(error)))
}
