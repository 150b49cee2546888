//! Where transcripts lie: `.sessions/agents/AGENT/sessions/ID.jsonl` in the workspace, the index and the name
//! of the current session beside that folder. Transcripts of claw0's first program, in
//! `.sessions/transcripts`, are listed as well.

use super::probe::{Facts, Stamp, look};
use super::{Entry, index, name, sort};
use crate::exit::{Error, Exit};
use crate::json::write::Members;
use crate::transcript::{self, Batch, make_folder};
use anyhow::Context;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::num::NonZero;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// What names a transcript's file: `.jsonl`.
const END: &str = ".jsonl";
/// From so many sessions on, they are looked at on all processors.
const MANY: usize = 256;

/// All sessions of a workspace.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// What a new session is to be.
#[derive(Clone, Debug, Default)]
pub struct New {
    /// Its agent; checked.
    pub agent: String,
    /// Its key.
    pub key: String,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// The member `parent` of the header, as JSON.
    pub parent: Option<String>,
    /// Makes ids differ.
    pub seed: u64,
}

/// A header, and the file that it is for.
#[derive(Clone, Debug)]
pub struct Header {
    /// The record.
    pub line: String,
    /// The file.
    pub path: PathBuf,
    /// The session's id.
    pub id: String,
}

impl Store {
    /// The store in `workspace`, there or not.
    #[must_use]
    pub fn new(workspace: &Path) -> Store {
        Store { root: workspace.join(".sessions") }
    }

    /// The folder of an agent.
    #[must_use]
    pub fn folder(&self, agent: &str) -> PathBuf {
        self.root.join("agents").join(agent)
    }

    /// The agents that there are.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn agents(&self) -> anyhow::Result<Vec<String>> {
        let names = read_folder(&self.root.join("agents"), |name| Some(name.to_owned()))?;
        let is_there = |agent: &String| {
            let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            is_folder(&self.folder(agent)) && is_folder(&self.folder(agent).join("sessions"))
        };
        Ok(names.into_iter().filter(is_there).collect())
    }

    /// The sessions of an agent, or of all, sorted; the indexes are brought up to date. `is_fresh` makes them
    /// anew.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn list(&self, agent: Option<&str>, is_fresh: bool) -> anyhow::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for own in self.agents()?.iter().filter(|own| agent.is_none_or(|agent| agent == *own)) {
            entries.extend(self.list_agent(own, is_fresh)?);
        }
        entries.extend(self.list_first(agent)?);
        sort(&mut entries);
        Ok(entries)
    }

    fn list_agent(&self, agent: &str, is_fresh: bool) -> anyhow::Result<Vec<Entry>> {
        let folder = self.folder(agent);
        let sessions = folder.join("sessions");
        let known = index::read(&folder.join("sessions.json"));
        let ids = read_folder(&sessions, |name| name.strip_suffix(END).map(str::to_owned))?;
        let place = |id: &str| Entry {
            id: id.to_owned(),
            agent: agent.to_owned(),
            path: sessions.join(format!("{id}{END}")),
            ..Entry::default()
        };
        let entries = look_at_all(&ids, &|id| update(place(id), known.get(id), is_fresh));
        let is_known = |entry: &Entry| known.get(&entry.id).is_some_and(|k| k.stamp == entry.stamp);
        if is_fresh || entries.len() != known.len() || !entries.iter().all(is_known) {
            index::write(&folder, &index::to_text(&entries));
        }
        Ok(entries)
    }

    /// The sessions of claw0's first program. Its index goes by key and is left alone: where two sessions got
    /// one key, it knows only one of them.
    fn list_first(&self, agent: Option<&str>) -> anyhow::Result<Vec<Entry>> {
        let folder = self.root.join("transcripts");
        let stems = read_folder(&folder, |name| name.strip_suffix(END).map(str::to_owned))?;
        let mut entries = Vec::new();
        for stem in stems {
            let id = stem.rsplit('_').next().unwrap_or_default().to_owned();
            let path = folder.join(format!("{stem}{END}"));
            let Some(mut entry) = update(Entry { id, path, ..Entry::default() }, None, true) else {
                continue;
            };
            entry.agent = name::agent_of(&entry.key).unwrap_or("main").to_owned();
            if agent.is_none_or(|agent| agent == entry.agent) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// A header for a new session, with an id that no file has.
    ///
    /// # Errors
    /// 2 when the agent cannot be called so.
    pub fn header(&self, new: &New, created: i64) -> anyhow::Result<Header> {
        let agent = &new.agent;
        let refuse = |why: &str| {
            let text = format!("cannot make a session of agent '{agent}': {why}");
            Error::new(Exit::Usage, text)
        };
        name::component(agent).map_err(|why| refuse(&why))?;
        let is_alike = |other: &String| other.eq_ignore_ascii_case(agent) && other != agent;
        if let Some(other) = self.agents()?.into_iter().find(is_alike) {
            return Err(refuse(&format!("agent '{other}' differs only in case")).into());
        }
        let folder = self.folder(agent).join("sessions");
        let created = super::time::to_text(created);
        let mut seed = new.seed;
        loop {
            let text = format!("{agent}\n{}\n{:?}\n{created}\n{seed}", new.key, new.label);
            let id: String =
                Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            let path = folder.join(format!("{id}{END}"));
            if path.symlink_metadata().is_err() {
                return Ok(Header { line: header_line(new, &id, &created), path, id });
            }
            seed = seed.wrapping_add(1);
        }
    }

    /// Writes a new transcript: records, of which the first is a header.
    ///
    /// # Errors
    /// 75 when another program made a file of this name first; 74 or 77 when it cannot be written.
    pub fn write(&self, path: &Path, records: &str, ts: &str) -> anyhow::Result<()> {
        let options = transcript::Options {
            expect_tail: Some(String::new()),
            lock_timeout: Duration::from_secs(10),
            is_waiting: Arc::default(),
            sync: true,
            ts: ts.to_owned(),
        };
        let batch = Batch::read(&path.display().to_string(), records.as_bytes())?;
        transcript::append(path, &batch, &options)?;
        Ok(())
    }

    /// The lock of an agent's folder, which is made; held while a session is looked for and then made.
    ///
    /// # Errors
    /// 74 or 77 when the folder cannot be made or locked, 75 when another program held it for too long.
    pub fn lock(&self, agent: &str) -> anyhow::Result<File> {
        let folder = self.folder(agent);
        let cannot = || format!("cannot lock '{}'", folder.display());
        transcript::locked(&folder, Duration::from_secs(10), || {
            make_folder(&folder.join("sessions")).with_context(cannot)?;
            File::open(&folder).with_context(cannot)
        })
    }

    /// Where the current session of an agent is remembered.
    #[must_use]
    pub fn current_path(&self, agent: &str) -> PathBuf {
        self.folder(agent).join("current")
    }

    /// The current session among `entries`, which are sorted: the one that was chosen last, or else the one that
    /// was active last.
    #[must_use]
    pub fn current<'e>(&self, agent: &str, entries: &'e [Entry]) -> Option<&'e Entry> {
        let text = std::fs::read_to_string(self.current_path(agent)).unwrap_or_default();
        let mut own = entries.iter().filter(|entry| entry.agent == agent);
        own.clone().find(|entry| entry.id == text.trim()).or_else(|| own.next())
    }

    /// Remembers the current session of its agent.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn choose(&self, agent: &str, id: &str) -> anyhow::Result<()> {
        let path = self.current_path(agent);
        let write = || {
            make_folder(&self.folder(agent))?;
            index::replace(&path, &format!("{id}\n"), 0o600)
        };
        write().with_context(|| format!("cannot write '{}'", path.display()))
    }
}

fn header_line(new: &New, id: &str, created: &str) -> String {
    Members::new()
        .string("id", id)
        .string("type", "session")
        .string("key", &new.key)
        .optional(Members::string, "label", new.label.as_deref())
        .string("created", created)
        .number("version", 1)
        .optional(Members::raw, "parent", new.parent.as_deref())
        .into_json()
}

/// The names in a folder that `take` takes and that are safe, sorted; none where there is no folder.
fn read_folder(
    folder: &Path,
    take: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read '{}'", folder.display()))?,
    };
    let name = |entry: std::fs::DirEntry| take(entry.file_name().to_str()?);
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.retain(|name| !name.starts_with(['-', '.']) && !name.is_empty());
    names.sort();
    Ok(names)
}

/// Looks at all sessions, those that are gone left out.
fn look_at_all(ids: &[String], look: &(impl Fn(&str) -> Option<Entry> + Sync)) -> Vec<Entry> {
    let look_at = |ids: &[String]| ids.iter().filter_map(|id| look(id)).collect::<Vec<Entry>>();
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

/// An entry with what its file says: from the index where the file is as it was, else from the file. None where
/// there is no regular file.
fn update(place: Entry, known: Option<&Entry>, is_fresh: bool) -> Option<Entry> {
    let meta = place.path.symlink_metadata().ok().filter(|meta| meta.is_file())?;
    let stamp = Some(Stamp::of(&meta));
    let Entry { id, agent, path, .. } = place;
    if let Some(known) = known.filter(|known| !is_fresh && known.stamp == stamp) {
        return Some(Entry { agent, path, ..known.clone() });
    }
    let before = known.filter(|_| !is_fresh).and_then(|known| before(known, &Stamp::of(&meta)));
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    let looked = opened.and_then(|file| look(file, meta.len(), before));
    if looked.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return None;
    }
    // One that cannot be read is listed with what is known of it, and looked at again.
    let stamp = stamp.filter(|_| looked.is_ok());
    let found = looked.unwrap_or_default();
    let old = known.cloned().unwrap_or_default();
    let changed = i64::try_from(Stamp::of(&meta).modified / 1000).unwrap_or(0);
    // claw0's transcripts have no header: its index alone says when they were made.
    let remembered = Some(old.created).filter(|time| *time != 0);
    let created = found.created.or(remembered).or(found.first);
    Some(Entry {
        id,
        agent,
        path,
        key: found.key.unwrap_or(old.key),
        label: found.label.unwrap_or(old.label),
        created: created.unwrap_or(changed),
        active: found.active.unwrap_or(changed),
        records: found.records,
        stamp,
    })
}

/// What was known of a file that can only have grown since, and how long it was.
fn before(known: &Entry, now: &Stamp) -> Option<(Facts, u64)> {
    let old = known.stamp.filter(|old| old.inode == now.inode && old.size <= now.size)?;
    Some((facts(known), old.size))
}

fn facts(known: &Entry) -> Facts {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Facts {
        key: text(&known.key),
        label: Some(known.label.clone()),
        created: Some(known.created),
        first: None,
        active: Some(known.active),
        records: known.records,
    }
}
