//! The sessions that an import finds and makes: which source each was imported from, and which keys and labels are taken.
//!
//! An import of many files lists the sessions once and remembers what it adds, so that it takes time in proportion to
//! the files. It holds the lock of the agent, which it releases once a second, so that other programs do not wait long;
//! it then lists the sessions again. If there are so many of them that this takes long, it releases the lock less often.

use crate::make::first_unused;
use crate::place::SessionPlace;
use clawutils::session::import::source_of;
use clawutils::session::{SessionEntry, name};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time after which the lock is released for other programs.
const TURN: Duration = Duration::from_secs(1);
/// The least time that the lock is held, in times that it takes to list the sessions.
const LISTINGS: u32 = 10;
/// The most bytes of a header that are read.
const HEADER: u64 = 64 * 1024;

/// The file that a session was imported from, and its name in that; `None` if it was not imported.
type Source = Option<(String, Option<String>)>;

/// The indices of the sessions that were imported from a file, by their names in it, in order.
type Names = BTreeMap<Option<String>, Vec<usize>>;

/// The sessions of an agent, while an import holds the lock of its directory.
pub struct Imported<'p> {
    place: &'p SessionPlace,
    agent: String,
    lock: Option<File>,
    since: Instant,
    /// The time for which the lock is held.
    turn: Duration,
    entries: Vec<SessionEntry>,
    /// The indices of the sessions by id.
    ids: HashMap<String, usize>,
    /// The indices of the sessions by the file that each was imported from, and the name of the session in it; `None`
    /// until they are needed.
    by_file: Option<HashMap<String, Names>>,
    /// The sources of the sessions by id, as far as their headers were read.
    sources: HashMap<String, Source>,
    keys: HashSet<String>,
    labels: HashSet<String>,
    /// For each key that was taken, the number of the newest session with the key.
    numbers: HashMap<String, usize>,
}

impl<'p> Imported<'p> {
    /// Locks the directory of an agent and lists its sessions.
    ///
    /// # Errors
    /// If the directory cannot be locked or read.
    pub fn open(place: &'p SessionPlace, agent: &str) -> anyhow::Result<Imported<'p>> {
        let mut own = Imported {
            place,
            agent: agent.to_owned(),
            lock: None,
            since: Instant::now(),
            turn: TURN,
            entries: Vec::new(),
            ids: HashMap::new(),
            by_file: None,
            sources: HashMap::new(),
            keys: HashSet::new(),
            labels: HashSet::new(),
            numbers: HashMap::new(),
        };
        own.list()?;
        Ok(own)
    }

    fn list(&mut self) -> anyhow::Result<()> {
        self.lock = Some(self.place.lock(&self.agent)?);
        self.since = Instant::now();
        self.entries = self.place.list(Some(&self.agent), false)?;
        self.by_file = None;
        self.numbers.clear();
        let ids = self.entries.iter().map(|entry| entry.id.clone());
        self.ids = ids.zip(0..).collect();
        self.keys = self.entries.iter().map(|entry| entry.key.clone()).collect();
        self.labels = self.entries.iter().map(|entry| entry.label.clone()).collect();
        Ok(())
    }

    /// Lets other programs take the lock, if this one has held it for a while.
    ///
    /// # Errors
    /// If the directory cannot be locked or read.
    pub fn give_way(&mut self) -> anyhow::Result<()> {
        if self.since.elapsed() < self.turn {
            return Ok(());
        }
        self.lock = None;
        let begun = Instant::now();
        // This writes the index, which the next listing reads: an index is not written while its directory is locked.
        self.place.list(Some(&self.agent), false)?;
        self.turn = TURN.max(begun.elapsed() * LISTINGS);
        self.list()
    }

    /// Returns the sessions that were imported from `file`, the most recently active first; only those with this name in
    /// the file, if there is one.
    pub fn of_file(&mut self, file: &Path, name: Option<&str>) -> Vec<SessionEntry> {
        let Imported { entries, by_file, sources, agent, .. } = self;
        let by_file = by_file.get_or_insert_with(|| {
            let prefixes = ["import", "goclaw", "llm", "openclaw", "opencode"]
                .map(|kind| format!("{agent}:{kind}:"));
            let is_import =
                |entry: &SessionEntry| prefixes.iter().any(|it| entry.key.starts_with(it));
            let mut by_file: HashMap<String, Names> = HashMap::new();
            for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| is_import(entry)) {
                let read = || header(&entry.path).and_then(|header| source_of(&header));
                let source = sources.entry(entry.id.clone()).or_insert_with(read).clone();
                if let Some((file, name)) = source {
                    by_file.entry(file).or_default().entry(name).or_default().push(index);
                }
            }
            by_file
        });
        let Some(names) = by_file.get(&*file.to_string_lossy()) else { return Vec::new() };
        let mut indices = match name {
            Some(name) => names.get(&Some(name.to_owned())).cloned().unwrap_or_default(),
            None => names.values().flatten().copied().collect(),
        };
        indices.sort_unstable();
        indices.into_iter().map(|index| entries[index].clone()).collect()
    }

    /// Returns the session with this id, as it was listed.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&SessionEntry> {
        self.ids.get(id).map(|index| &self.entries[*index])
    }

    /// Returns true if no session has the label, and it is valid.
    #[must_use]
    pub fn is_free(&self, label: &str) -> bool {
        name::label(label).is_ok() && !self.labels.contains(label)
    }

    /// Returns a key that no session has: `key`, or the first unused one of `key-2`, `key-3` and so on.
    pub fn unused(&mut self, key: &str) -> String {
        let number = self.numbers.entry(key.to_owned()).or_insert(1);
        first_unused(key, number, |key| self.keys.contains(key))
    }

    /// Adds a session that was just made from the session `name` in `file`.
    pub fn add(&mut self, entry: SessionEntry, file: &Path, name: Option<&str>) {
        self.keys.insert(entry.key.clone());
        self.labels.insert(entry.label.clone());
        let index = self.entries.len();
        self.ids.insert(entry.id.clone(), index);
        let (file, name) = (file.to_string_lossy().into_owned(), name.map(str::to_owned));
        self.sources.insert(entry.id.clone(), Some((file.clone(), name.clone())));
        if let Some(by_file) = &mut self.by_file {
            by_file.entry(file).or_default().entry(name).or_default().push(index);
        }
        self.entries.push(entry);
    }
}

/// Returns the first line of a file.
fn header(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let mut line = String::new();
    BufReader::with_capacity(4096, file.take(HEADER)).read_line(&mut line).ok()?;
    Some(line)
}
