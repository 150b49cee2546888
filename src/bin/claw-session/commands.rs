//! The commands of claw-session.

use crate::carry;
use crate::export;
use crate::find;
use crate::history;
use crate::import;
use crate::indexing;
use crate::list;
use crate::lock;
use crate::make;
use crate::place::SessionPlace;
use crate::remove;
use crate::repair;
use crate::status;
use std::process::ExitCode;

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Make a session, which becomes the current session of its agent, and print its id
    New(make::New),
    /// List sessions, the most recently active first
    List(list::List),
    /// Print the path of a session's transcript
    Path(find::Path),
    /// Print the id of the current session
    Current(find::Current),
    /// Make a session the current session of its agent, and print its id
    Switch(find::Switch),
    /// Change the label of a session, or print it
    Label(make::Label),
    /// Show the last records of a session, one line each
    History(history::History),
    /// Show the names, the path and statistics of a session
    Status(status::Status),
    /// Copy a session or its beginning into a new session, and print the id of the copy
    Fork(make::Fork),
    /// Import transcripts of other programs, and print the ids of their sessions
    Import(import::Import),
    /// Write a session in the form of another program, or sessions as examples or spans
    Export(export::Export),
    /// Write a session for another program, and print the command that resumes it
    Carry(carry::Carry),
    /// Repair sessions of other programs, so that those programs can go on with them
    Repair(repair::Repair),
    /// Delete a session, and print the path of its transcript
    Delete(remove::Delete),
    /// Delete sessions beyond a limit of age or number, and print the paths of their transcripts
    Expire(remove::Expire),
    /// Rebuild the indexes
    Reindex(list::Reindex),
    /// Hold the turn lock of a session while a command runs
    Lock(lock::Lock),
}

impl Command {
    /// Returns true if the command changes no session. With `--create`, or after a reset, it may make a new one.
    fn only_reads(&self) -> bool {
        matches!(
            self,
            Command::List(_)
                | Command::Path(_)
                | Command::Current(_)
                | Command::History(_)
                | Command::Export(_)
                | Command::Carry(_)
                | Command::Repair(_)
                | Command::Status(_)
        )
    }

    /// Runs the command.
    ///
    /// # Errors
    /// As documented for each command in claw-session(1).
    pub fn run(self, place: &SessionPlace) -> anyhow::Result<ExitCode> {
        if self.only_reads() {
            return self.act(place);
        }
        place.store.require_own()?;
        let is_lock = matches!(self, Command::Lock(_));
        let done = self.act(place);
        // `lock` updates the index itself: if a signal ended its command, it does not return.
        if !is_lock {
            indexing::begin(place, None);
        }
        done
    }

    fn act(self, place: &SessionPlace) -> anyhow::Result<ExitCode> {
        let exit = match self {
            Command::New(new) => new.run(place),
            Command::List(list) => list.run(place),
            Command::Path(path) => path.run(place),
            Command::Current(current) => current.run(place),
            Command::Switch(switch) => switch.run(place),
            Command::Label(label) => label.run(place),
            Command::History(history) => history.run(place),
            Command::Status(status) => status.run(place),
            Command::Fork(fork) => fork.run(place),
            Command::Import(import) => import.run(place),
            Command::Export(export) => export.run(place),
            Command::Carry(carry) => carry.run(place),
            Command::Repair(repair) => repair.run(place),
            Command::Delete(delete) => delete.run(place),
            Command::Expire(expire) => expire.run(place),
            Command::Reindex(reindex) => reindex.run(place),
            Command::Lock(lock) => return lock.run(place),
        }?;
        Ok(exit.into())
    }
}
