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
use clawutils::settings::deferred::Deferred;
use std::process::ExitCode;

/// The commands.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Make a session, which becomes the current session of its agent, and print its id
    New(Deferred<make::New>),
    /// List sessions, the most recently active first
    List(Deferred<list::List>),
    /// Print the path of a session's transcript
    Path(Deferred<find::Path>),
    /// Print the id of the current session
    Current(Deferred<find::Current>),
    /// Make a session the current session of its agent, and print its id
    Switch(Deferred<find::Switch>),
    /// Change the label of a session, or print it
    Label(Deferred<make::Label>),
    /// Show the last records of a session, one line each
    History(Deferred<history::History>),
    /// Show the names, the path and statistics of a session
    Status(Deferred<status::Status>),
    /// Copy a session or its beginning into a new session, and print the id of the copy
    Fork(Deferred<make::Fork>),
    /// Import transcripts of other programs, and print the ids of their sessions
    Import(Deferred<import::Import>),
    /// Write a session in the form of another program, or sessions as examples or spans
    Export(Deferred<export::Export>),
    /// Write a session for another program, and print the command that resumes it
    Carry(Deferred<carry::Carry>),
    /// Repair sessions of other programs, so that those programs can go on with them
    Repair(Deferred<repair::Repair>),
    /// Delete a session, and print the path of its transcript
    Delete(Deferred<remove::Delete>),
    /// Delete sessions beyond a limit of age or number, and print the paths of their transcripts
    Expire(Deferred<remove::Expire>),
    /// Rebuild the indexes
    Reindex(Deferred<list::Reindex>),
    /// Hold the turn lock of a session while a command runs
    Lock(Deferred<lock::Lock>),
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
            Command::New(Deferred(new)) => new.run(place),
            Command::List(Deferred(list)) => list.run(place),
            Command::Path(Deferred(path)) => path.run(place),
            Command::Current(Deferred(current)) => current.run(place),
            Command::Switch(Deferred(switch)) => switch.run(place),
            Command::Label(Deferred(label)) => label.run(place),
            Command::History(Deferred(history)) => history.run(place),
            Command::Status(Deferred(status)) => status.run(place),
            Command::Fork(Deferred(fork)) => fork.run(place),
            Command::Import(Deferred(import)) => import.run(place),
            Command::Export(Deferred(export)) => export.run(place),
            Command::Carry(Deferred(carry)) => carry.run(place),
            Command::Repair(Deferred(repair)) => repair.run(place),
            Command::Delete(Deferred(delete)) => delete.run(place),
            Command::Expire(Deferred(expire)) => expire.run(place),
            Command::Reindex(Deferred(reindex)) => reindex.run(place),
            Command::Lock(Deferred(lock)) => return lock.run(place),
        }?;
        Ok(exit.into())
    }
}
