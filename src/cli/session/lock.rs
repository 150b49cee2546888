//! lock: a session's turn, held while a command runs.

use super::Place;
use crate::cli::{seconds, variable};
use crate::exit::{self, Exit, fail};
use crate::session::turn::{Purpose, Turn, is_same, lock_path};
use anyhow::Context;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Hold a session's turn while a command runs.
#[derive(Clone, Debug, clap::Args)]
pub struct Lock {
    /// Id, key or label of the session, or the path of a transcript (with a / or .jsonl)
    pub name: OsString,
    /// Hold the lock of the work on missing summaries instead, which no turn waits for
    #[arg(long)]
    pub retry: bool,
    /// Longest wait for another turn, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub lock_timeout: Duration,
    /// Command and its arguments
    #[arg(value_name = "CMD", last = true, required = true)]
    pub command: Vec<OsString>,
}

impl Lock {
    pub(super) fn run(self, place: &Place) -> anyhow::Result<Exit> {
        let path = self.path(place)?;
        let purpose = if self.retry { Purpose::Retry } else { Purpose::Turn };
        let lock = lock_path(&path, purpose);
        let Some((program, arguments)) = self.command.split_first() else {
            return fail(Exit::Usage, "a command is required");
        };
        let holder = match held_by(&lock) {
            Some(holder) => holder,
            None => {
                let what = format!("waiting for the {} of '{}'", purpose.name(), path.display());
                let progress = place.log.wait_for(what);
                let turn = Turn::take(&path, purpose, self.lock_timeout)?;
                drop(progress);
                turn.leave().with_context(|| format!("cannot lock '{}'", lock.display()))?;
                std::process::id().to_string()
            }
        };
        let mut mark = OsString::from(holder);
        mark.push(":");
        mark.push(std::path::absolute(&lock).unwrap_or(lock));
        let error = Command::new(program).args(arguments).env("CLAW_LOCK", mark).exec();
        fail(Exit::Config, format!("cannot run '{}': {}", program.display(), exit::why(&error)))
    }

    /// The transcript that is named.
    fn path(&self, place: &Place) -> anyhow::Result<PathBuf> {
        let bytes = self.name.as_encoded_bytes();
        if bytes.contains(&b'/') || bytes.ends_with(b".jsonl") {
            return Ok(PathBuf::from(&self.name));
        }
        let entries = place.entries()?;
        Ok(place.find(&entries, &self.name.to_string_lossy())?.path.clone())
    }
}

/// The process that holds the lock already, if that is one that runs this one.
fn held_by(lock: &Path) -> Option<String> {
    let mark = variable("CLAW_LOCK")?;
    let (holder, path) = mark.split_once(':')?;
    is_same(Path::new(path), lock).then(|| holder.to_owned())
}
