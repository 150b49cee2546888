//! The directories of transcripts: `.sessions/agents/AGENT/sessions/ID.jsonl` in the workspace, with the index
//! and the name of the current session beside that directory. Transcripts in claw0's first format, in
//! `.sessions/transcripts`, are listed as well.

use super::probe::{Facts, Stamp, look};
use super::{SessionEntry, index, name, openclaw, sort};
use crate::exit::{Error, Exit};
use crate::json::write::Members;
use crate::system;
use crate::transcript::{self, Batch, make_directory};
use anyhow::Context;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The suffix of a transcript's file name.
const END: &str = ".jsonl";
/// The minimum number of sessions for which several threads are used.
const MANY: usize = 256;

/// The sessions of a workspace.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    /// True if the sessions are OpenClaw's, and are only read.
    is_openclaw: bool,
}

/// The properties of a new session.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// The agent's name; [`Store::header`] checks it.
    pub agent: String,
    /// The key.
    pub key: String,
    /// The label, if there is one.
    pub label: Option<String>,
    /// The member `parent` of the header, as JSON.
    pub parent: Option<String>,
    /// The member `source` of the header, as JSON.
    pub source: Option<String>,
    /// A number that makes the ids of otherwise equal sessions differ.
    pub seed: u64,
}

/// The header of a new transcript, and its file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The record of the header.
    pub line: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The session's id.
    pub id: String,
}

impl Store {
    /// Returns the store in `workspace`, which need not exist. If it has OpenClaw's sessions and no `.sessions`
    /// directory, the store reads OpenClaw's.
    #[must_use]
    pub fn new(workspace: &Path) -> Store {
        let own = workspace.join(".sessions");
        let is_openclaw = !own.is_dir() && openclaw::is_here(workspace);
        Store { root: if is_openclaw { workspace.to_owned() } else { own }, is_openclaw }
    }

    /// Checks that the store may be changed: OpenClaw's sessions are only read.
    ///
    /// # Errors
    /// 77 if the sessions are OpenClaw's.
    pub fn require_own(&self) -> anyhow::Result<()> {
        let root = self.root.display();
        let why = "these are OpenClaw's sessions; import them into another workspace with claw-session import";
        match self.is_openclaw {
            true => {
                Err(Error::new(Exit::Permission, format!("cannot change '{root}': {why}")).into())
            }
            false => Ok(()),
        }
    }

    /// Returns the directory of an agent.
    #[must_use]
    pub fn directory(&self, agent: &str) -> PathBuf {
        self.root.join("agents").join(agent)
    }

    /// Returns the names of the agents that have a directory of sessions.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn agents(&self) -> anyhow::Result<Vec<String>> {
        let names = read_directory(&self.root.join("agents"), |name| Some(name.to_owned()))?;
        let is_there = |agent: &String| {
            let is_directory =
                |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            is_directory(&self.directory(agent))
                && is_directory(&self.directory(agent).join("sessions"))
        };
        Ok(names.into_iter().filter(is_there).collect())
    }

    /// Returns the sessions of one agent or of all, sorted, and updates the indexes. If `is_fresh` is true, the
    /// indexes are rebuilt from the transcripts.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn list(&self, agent: Option<&str>, is_fresh: bool) -> anyhow::Result<Vec<SessionEntry>> {
        let mut entries = Vec::new();
        for own in self.agents()?.iter().filter(|own| agent.is_none_or(|agent| agent == *own)) {
            entries.extend(self.list_agent(own, is_fresh)?);
        }
        entries.extend(self.list_first_format(agent)?);
        sort(&mut entries);
        Ok(entries)
    }

    fn list_agent(&self, agent: &str, is_fresh: bool) -> anyhow::Result<Vec<SessionEntry>> {
        let directory = self.directory(agent);
        let sessions = directory.join("sessions");
        let known = match self.is_openclaw {
            true => HashMap::new(),
            false => index::read(&directory.join("sessions.json")),
        };
        let ids = read_directory(&sessions, |name| name.strip_suffix(END).map(str::to_owned))?;
        let place = |id: &str| SessionEntry {
            id: id.to_owned(),
            agent: agent.to_owned(),
            path: sessions.join(format!("{id}{END}")),
            ..SessionEntry::default()
        };
        let mut entries = look_at_all(&ids, &|id| update(place(id), known.get(id), is_fresh));
        if self.is_openclaw {
            openclaw::complete(&sessions, &mut entries);
            return Ok(entries);
        }
        let is_known =
            |entry: &SessionEntry| known.get(&entry.id).is_some_and(|k| k.stamp == entry.stamp);
        if is_fresh || entries.len() != known.len() || !entries.iter().all(is_known) {
            index::write(&directory, &index::to_text(&entries));
        }
        Ok(entries)
    }

    /// Returns the sessions in claw0's first format. Their index is not used: it maps keys to sessions, so of
    /// several sessions with the same key it lists only one.
    fn list_first_format(&self, agent: Option<&str>) -> anyhow::Result<Vec<SessionEntry>> {
        let directory = self.root.join("transcripts");
        let stems = read_directory(&directory, |name| name.strip_suffix(END).map(str::to_owned))?;
        let mut entries = Vec::new();
        for stem in stems {
            let id = stem.rsplit('_').next().unwrap_or_default().to_owned();
            let path = directory.join(format!("{stem}{END}"));
            let Some(mut entry) =
                update(SessionEntry { id, path, ..SessionEntry::default() }, None, true)
            else {
                continue;
            };
            entry.agent = name::agent_of(&entry.key).unwrap_or("main").to_owned();
            if agent.is_none_or(|agent| agent == entry.agent) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// Returns the header for a new session, with an unused id.
    ///
    /// # Errors
    /// 2 if the name of the agent is invalid, or differs from another agent's name only in case.
    pub fn header(&self, new: &NewSession, created: i64) -> anyhow::Result<Header> {
        let agent = &new.agent;
        let refuse = |why: &str| {
            let text = format!("cannot create a session for agent '{agent}': {why}");
            Error::new(Exit::Usage, text)
        };
        name::component(agent).map_err(|why| refuse(&why))?;
        let is_alike = |other: &String| other.eq_ignore_ascii_case(agent) && other != agent;
        if let Some(other) = self.agents()?.into_iter().find(is_alike) {
            return Err(
                refuse(&format!("agent '{other}' differs only in case; use that name")).into()
            );
        }
        let directory = self.directory(agent).join("sessions");
        let created = super::time::to_text(created);
        let mut seed = new.seed;
        loop {
            let text = format!("{agent}\n{}\n{:?}\n{created}\n{seed}", new.key, new.label);
            let id: String =
                Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            let path = directory.join(format!("{id}{END}"));
            if path.symlink_metadata().is_err() {
                return Ok(Header { line: header_line(new, &id, &created), path, id });
            }
            seed = seed.wrapping_add(1);
        }
    }

    /// Writes a new transcript from records that begin with a header. Unless `sync` is true, [`Store::sync`] then makes it
    /// durable, together with others.
    ///
    /// # Errors
    /// 75 if another program created the file first; 74 or 77 if it cannot be written.
    pub fn write(&self, path: &Path, records: &str, ts: &str, sync: bool) -> anyhow::Result<()> {
        self.require_own()?;
        let options = transcript::AppendOptions {
            expect_tail: Some(String::new()),
            lock_timeout: Duration::from_secs(10),
            is_waiting: Arc::default(),
            sync,
            ts: ts.to_owned(),
        };
        let batch = Batch::read(&path.display().to_string(), records.as_bytes())?;
        transcript::append(path, &batch, &options)?;
        Ok(())
    }

    /// Waits until everything that was written to an agent's directory is on the disk.
    ///
    /// # Errors
    /// 74 if it cannot be written.
    pub fn sync(&self, agent: &str) -> anyhow::Result<()> {
        let directory = self.directory(agent);
        let synced = File::open(&directory).and_then(|file| system::sync_file_system(&file));
        synced.with_context(|| format!("cannot sync '{}'", directory.display()))
    }

    /// Locks an agent's directory, and creates it if necessary. Programs hold this lock while they look for a
    /// session and then create it.
    ///
    /// # Errors
    /// 74 or 77 if the directory cannot be created or locked, 75 if another program holds the lock for too long.
    pub fn lock(&self, agent: &str) -> anyhow::Result<File> {
        self.require_own()?;
        let directory = self.directory(agent);
        let cannot = || format!("cannot lock '{}'", directory.display());
        transcript::locked(&directory, Duration::from_secs(10), || {
            make_directory(&directory.join("sessions")).with_context(cannot)?;
            File::open(&directory).with_context(cannot)
        })
    }

    /// Returns the path of the file that names the current session of an agent.
    #[must_use]
    pub fn current_path(&self, agent: &str) -> PathBuf {
        self.directory(agent).join("current")
    }

    /// Returns an agent's current session: the one chosen last or, if it is not in `entries`, the most recently active
    /// one. `entries` must be sorted with the most recently active session first.
    #[must_use]
    pub fn current<'e>(
        &self,
        agent: &str,
        entries: &'e [SessionEntry],
    ) -> Option<&'e SessionEntry> {
        let text = std::fs::read_to_string(self.current_path(agent)).unwrap_or_default();
        let mut own = entries.iter().filter(|entry| entry.agent == agent);
        own.clone().find(|entry| entry.id == text.trim()).or_else(|| own.next())
    }

    /// Makes a session the current one of its agent.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn choose(&self, agent: &str, id: &str) -> anyhow::Result<()> {
        self.require_own()?;
        let path = self.current_path(agent);
        let write = || {
            make_directory(&self.directory(agent))?;
            index::replace(&path, &format!("{id}\n"), 0o600)
        };
        write().with_context(|| format!("cannot write '{}'", path.display()))
    }
}

fn header_line(new: &NewSession, id: &str, created: &str) -> String {
    Members::new()
        .string("id", id)
        .string("type", "session")
        .string("key", &new.key)
        .optional(Members::string, "label", new.label.as_deref())
        .string("created", created)
        .number("version", 1)
        .optional(Members::raw, "parent", new.parent.as_deref())
        .optional(Members::raw, "source", new.source.as_deref())
        .into_json()
}

/// Returns the names that `take` derives from the entries of a directory, sorted and without those that begin with
/// `-` or `.`. A directory that does not exist has no names.
fn read_directory(
    directory: &Path,
    take: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read '{}'", directory.display()))?,
    };
    let name = |entry: std::fs::DirEntry| take(entry.file_name().to_str()?);
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.retain(|name| !name.starts_with(['-', '.']) && !name.is_empty());
    names.sort();
    Ok(names)
}

/// Reads all sessions, except those that have disappeared.
fn look_at_all(
    ids: &[String],
    look: &(impl Fn(&str) -> Option<SessionEntry> + Sync),
) -> Vec<SessionEntry> {
    let look_at =
        |ids: &[String]| ids.iter().filter_map(|id| look(id)).collect::<Vec<SessionEntry>>();
    if ids.len() < MANY {
        return look_at(ids);
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let shares = ids.chunks(ids.len().div_ceil(processors));
        let looks: Vec<_> = shares.map(|share| scope.spawn(|| look_at(share))).collect();
        looks.into_iter().flat_map(|look| look.join().unwrap_or_default()).collect()
    })
}

/// Completes an entry from the index if the file is unchanged, or else from the file. Returns `None` if there
/// is no regular file.
fn update(
    place: SessionEntry,
    known: Option<&SessionEntry>,
    is_fresh: bool,
) -> Option<SessionEntry> {
    let meta = place.path.symlink_metadata().ok().filter(|meta| meta.is_file())?;
    let stamp = Some(Stamp::of(&meta));
    let SessionEntry { id, agent, path, .. } = place;
    if let Some(known) = known.filter(|known| !is_fresh && known.stamp == stamp) {
        return Some(SessionEntry { agent, path, ..known.clone() });
    }
    let before = known.filter(|_| !is_fresh).and_then(|known| before(known, &Stamp::of(&meta)));
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    let looked = opened.and_then(|file| look(file, meta.len(), before));
    if looked.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return None;
    }
    // A session that cannot be read keeps its known key, label and time of creation, and is read again next time.
    let stamp = stamp.filter(|_| looked.is_ok());
    let found = looked.unwrap_or_default();
    let old = known.cloned().unwrap_or_default();
    let changed = i64::try_from(Stamp::of(&meta).modified / 1000).unwrap_or(0);
    // claw0's transcripts have no header; the time of creation is only in its index.
    let remembered = Some(old.created).filter(|time| *time != 0);
    let created = found.created.or(remembered).or(found.first);
    Some(SessionEntry {
        id,
        agent,
        path,
        key: found.key.unwrap_or(old.key),
        label: found.label.unwrap_or(old.label),
        prompt: found.prompt.unwrap_or(old.prompt),
        created: created.unwrap_or(changed),
        active: found.active.unwrap_or(changed),
        records: found.records,
        stamp,
    })
}

/// Returns the data and the length that the index has for a file, if the file may have grown since then but was not
/// replaced.
fn before(known: &SessionEntry, now: &Stamp) -> Option<(Facts, u64)> {
    let old = known.stamp.filter(|old| old.inode == now.inode && old.size <= now.size)?;
    Some((facts(known), old.size))
}

fn facts(known: &SessionEntry) -> Facts {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Facts {
        key: text(&known.key),
        label: Some(known.label.clone()),
        prompt: text(&known.prompt),
        created: Some(known.created),
        first: None,
        active: Some(known.active),
        records: known.records,
    }
}
