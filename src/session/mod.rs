//! Sessions by name: the store of transcripts, its index, and what a name means.
//!
//! All that is known of a session stands in its transcript; the index beside the transcripts is a cache that
//! may be lost, broken or old at any time. Names from outside are compared with what is there and never
//! become a part of a path; the names of agents and sessions that do are checked first ([`name`]).

pub mod expire;
pub mod fork;
pub mod index;
pub mod name;
pub mod probe;
pub mod reset;
pub mod resolve;
pub mod status;
pub mod store;
pub mod time;
pub mod turn;

use probe::Stamp;
use std::path::PathBuf;

/// A session, as listings show it. Times are microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The name of its file, without the end.
    pub id: String,
    /// The agent that it belongs to.
    pub agent: String,
    /// Its transcript.
    pub path: PathBuf,
    /// Its key; empty where it has none.
    pub key: String,
    /// Its label; empty where it has none.
    pub label: String,
    /// When it was made.
    pub created: i64,
    /// The time of its last record.
    pub active: i64,
    /// How many records it has, without the header.
    pub records: u64,
    /// The state of the file in which all this was found.
    pub stamp: Option<Stamp>,
}

impl Entry {
    /// Returns whether the transcript has changed since the entry was read.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let stamp = self.path.symlink_metadata().ok().map(|meta| Stamp::of(&meta));
        stamp.is_none() || stamp != self.stamp
    }
}

/// Sorts: what was active last comes first, and always in the same order.
pub fn sort(entries: &mut [Entry]) {
    entries.sort_by(|a, b| {
        b.active.cmp(&a.active).then(b.created.cmp(&a.created)).then_with(|| a.path.cmp(&b.path))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_to_since_it_was_listed_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let stamp = Some(Stamp::of(&path.symlink_metadata().unwrap()));
        let entry = Entry { path: path.clone(), stamp, ..Entry::default() };
        assert!(!entry.has_changed());
        std::fs::write(&path, "{}\n{}\n").unwrap();
        assert!(entry.has_changed());
        std::fs::remove_file(&path).unwrap();
        assert!(entry.has_changed());
    }
}
