//! The place of the sessions: the options that name it, and what all commands look up in it.

use clawutils::cli::options::{PlaceArgs, StoreArgs};
use clawutils::cli::{Log, LogArgs, now, open_transcript};
use clawutils::exit::{Error, Exit, fail};
use clawutils::input::Input;
use clawutils::printable::printable;
use clawutils::session::resolve::{exact, resolve};
use clawutils::session::store::Store;
use clawutils::session::{SessionEntry, name, time};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The options of all commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Shared {
    /// The options that locate the sessions.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The options for diagnostics and the configuration file.
    #[command(flatten)]
    pub log: LogArgs,
}

/// The context of a command: the store, the agent and the log.
#[derive(Clone, Debug)]
pub struct SessionPlace {
    pub(crate) store: Store,
    pub(crate) workspace: PathBuf,
    pub(crate) agent: Option<String>,
    pub(crate) index: StoreArgs,
    pub(crate) log: Log,
}

/// The default agent, as in claw0, unless the sessions of a workspace all belong to another agent.
const DEFAULT_AGENT: &str = "main";

impl Shared {
    /// Opens the store and the log.
    ///
    /// # Errors
    /// Fails with 2 if the name of the agent is invalid.
    pub fn open(&self) -> anyhow::Result<SessionPlace> {
        let log = self.log.open("claw-session");
        let PlaceArgs { workspace, agent, store: index } = self.place.clone();
        let workspace = workspace.workspace;
        if let Some(agent) = &agent {
            let refuse =
                |why| Error::new(Exit::Usage, format!("invalid agent name '{agent}': {why}"));
            name::component(agent).map_err(refuse)?;
        }
        Ok(SessionPlace { store: Store::new(&workspace), workspace, agent, index, log })
    }
}

impl SessionPlace {
    /// Lists the sessions of one agent, or of all agents; see [`Store::list`].
    pub(crate) fn list(
        &self,
        agent: Option<&str>,
        is_fresh: bool,
    ) -> anyhow::Result<Vec<SessionEntry>> {
        let _progress = self.log.wait_for("reading the transcripts of sessions");
        self.store.list(agent, is_fresh)
    }

    /// Locks an agent's directory; see [`Store::lock`].
    pub(crate) fn lock(&self, agent: &str) -> anyhow::Result<File> {
        let directory = self.store.directory(agent);
        let what = format!("waiting for the lock of '{}'", directory.display());
        let _progress = self.log.wait_for(what);
        self.store.lock(agent)
    }

    /// Returns all sessions that a name can refer to, sorted.
    pub(crate) fn entries(&self) -> anyhow::Result<Vec<SessionEntry>> {
        self.list(self.agent.as_deref(), false)
    }

    /// Returns the transcript of each agent's current session.
    pub(crate) fn current(&self, entries: &[SessionEntry]) -> Vec<PathBuf> {
        let agents: BTreeSet<&str> = entries.iter().map(|entry| entry.agent.as_str()).collect();
        let own = |agent| self.store.current(agent, entries).map(|entry| entry.path.clone());
        agents.into_iter().filter_map(own).collect()
    }

    /// Returns the session with this name.
    pub(crate) fn find<'e>(
        &self,
        entries: &'e [SessionEntry],
        name: &str,
    ) -> anyhow::Result<&'e SessionEntry> {
        match self.look_up(entries, name, false)? {
            Some(entry) => Ok(entry),
            None => self.not_found(name),
        }
    }

    /// Opens a session's transcript, given the name of the session or the path of the transcript. A path contains a `/`
    /// or ends in `.jsonl`.
    pub(crate) fn open(&self, name: &str) -> anyhow::Result<Input> {
        open_transcript(&self.path(name)?)
    }

    /// Returns the path of a session's transcript, given the name of the session or the path itself.
    pub(crate) fn path(&self, name: &str) -> anyhow::Result<PathBuf> {
        if name.contains('/') || name.ends_with(".jsonl") {
            return Ok(PathBuf::from(name));
        }
        match self.look_up(&self.entries()?, name, false)? {
            Some(entry) => Ok(entry.path.clone()),
            None => self.not_found_but_file(name),
        }
    }

    /// Returns the session with this name, or `None`. With `is_whole`, the name must be complete.
    pub(crate) fn look_up<'e>(
        &self,
        entries: &'e [SessionEntry],
        name: &str,
        is_whole: bool,
    ) -> anyhow::Result<Option<&'e SessionEntry>> {
        let found = if is_whole { exact(entries, name) } else { resolve(entries, name) };
        match found.as_slice() {
            [] => Ok(None),
            [entry] => Ok(Some(entry)),
            found => {
                for entry in found {
                    let SessionEntry { id, agent, key, label, .. } = entry;
                    self.log.note(&format!(
                        "'{name}' matches session '{id}' of agent '{agent}', key '{key}', label '{label}'"
                    ));
                }
                fail(
                    Exit::Failed,
                    format!("'{name}' names {} sessions; give more of the name", found.len()),
                )
            }
        }
    }

    pub(crate) fn not_found<T>(&self, name: &str) -> anyhow::Result<T> {
        let workspace = self.workspace.display();
        fail(
            Exit::Failed,
            format!(
                "no session '{name}' in '{workspace}'; see claw-session list, or create it with claw-session new --label"
            ),
        )
    }

    /// Fails as [`SessionPlace::not_found`], for a command that takes paths, too. Says how to name a file of this name.
    pub(crate) fn not_found_but_file<T>(&self, name: &str) -> anyhow::Result<T> {
        if Path::new(name).is_file() {
            self.log.note(&format!("'{name}' is also a file; to use the file, write ./{name}"));
        }
        self.not_found(name)
    }

    /// Returns the agent of a session to create: the one from the option, else that of the key, else the default
    /// one.
    pub(crate) fn agent_for(&self, key: Option<&str>) -> anyhow::Result<String> {
        let of_key = || key.and_then(name::agent_of).map(str::to_owned);
        match self.agent.clone().or_else(of_key) {
            Some(agent) => Ok(agent),
            None => Ok(default_agent(&self.entries()?)),
        }
    }
}

/// Returns the default agent: the only one that has sessions, so that a workspace of claw0 can be continued
/// without options, or else `main`.
pub(crate) fn default_agent(entries: &[SessionEntry]) -> String {
    let first = entries.first().map(|entry| entry.agent.as_str());
    let is_only = |agent: &&str| entries.iter().all(|entry| entry.agent == *agent);
    first.filter(is_only).unwrap_or(DEFAULT_AGENT).to_owned()
}

/// Returns the current time in microseconds since 1970, and in the form that records use.
pub(crate) fn clock() -> anyhow::Result<(i64, String)> {
    let now = now()?;
    Ok((time::of_seconds(now), now.to_string()))
}

/// Formats a time for display.
pub(crate) fn short(at: i64) -> String {
    let text = time::to_text(at);
    printable(&text.get(..19).unwrap_or(&text).replace('T', " ")).into_owned()
}
