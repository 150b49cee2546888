//! Sessions by name: the store of transcripts, its index, and the resolution of names.
//!
//! A transcript holds all data of its session. The index beside the transcripts is a cache, and may be missing,
//! broken or outdated at any time. A session name from the user is only compared with existing names and
//! never becomes part of a path. An agent's name becomes part of a path, so it is checked first ([`name`]).

pub mod expire;
pub mod export;
pub mod fork;
pub mod import;
pub mod index;
pub mod name;
pub mod openclaw;
pub mod probe;
pub mod reset;
pub mod resolve;
pub mod seen;
pub mod status;
pub mod store;
pub mod temporary;
pub mod time;
pub mod transcript_name;
pub mod turn;

use probe::Stamp;
use std::path::PathBuf;

/// A session in a listing. Times are in microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEntry {
    /// The name of its file without the suffix.
    pub id: String,
    /// The agent of the session.
    pub agent: String,
    /// The path of its transcript.
    pub path: PathBuf,
    /// Its key, or an empty string.
    pub key: String,
    /// Its label, or an empty string.
    pub label: String,
    /// The beginning of the first line that a person typed, or an empty string.
    pub prompt: String,
    /// The time of its creation.
    pub created: i64,
    /// The time of its last record.
    pub active: i64,
    /// The number of its records, without the header.
    pub records: u64,
    /// The state of the file when this entry was read.
    pub stamp: Option<Stamp>,
}

impl SessionEntry {
    /// Returns its label or, if it has none, its first prompt.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.label.is_empty() { &self.prompt } else { &self.label }
    }

    /// Returns true if the transcript has changed since the entry was read.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let stamp = self.path.symlink_metadata().ok().map(|meta| Stamp::of(&meta));
        stamp.is_none() || stamp != self.stamp
    }
}

/// Sorts the most recently active sessions first, with a stable order for ties.
pub fn sort(entries: &mut [SessionEntry]) {
    entries.sort_by(|a, b| {
        b.active.cmp(&a.active).then(b.created.cmp(&a.created)).then_with(|| a.path.cmp(&b.path))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_written_to_after_listing_has_changed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let stamp = Some(Stamp::of(&path.symlink_metadata().unwrap()));
        let entry = SessionEntry { path: path.clone(), stamp, ..SessionEntry::default() };
        assert!(!entry.has_changed());
        std::fs::write(&path, "{}\n{}\n").unwrap();
        assert!(entry.has_changed());
        std::fs::remove_file(&path).unwrap();
        assert!(entry.has_changed());
    }
}
