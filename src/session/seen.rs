//! The files that `import --all` has seen: a cache beside the index of the sessions, in `imports.json`. A file that has not
//! changed since then, and neither has the session that was made of it, need not be read.
//!
//! Files are compared by size, time and inode, as in the index. An entry of another version of the program does not
//! count, because that version may have read the file in another way.

use super::index;
use super::probe::Stamp;
use crate::json::write::{Members, table};
use crate::json::{Member, Object, elements};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// The state of the file.
    pub file: Stamp,
    /// The ids and the states of the sessions that were imported from it; none if it is not a transcript of another program.
    pub sessions: Vec<(String, Stamp)>,
}

/// The files that were seen.
#[derive(Debug)]
pub struct Seen {
    path: PathBuf,
    files: BTreeMap<String, SeenFile>,
    is_changed: bool,
}

impl Seen {
    /// Reads the cache in the directory of an agent. A missing or damaged one is empty.
    #[must_use]
    pub fn read(directory: &Path) -> Seen {
        let path = directory.join("imports.json");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let entry = |member: Member<'_>| {
            let object = Object::parse(member.value).ok()?;
            Some((member.name().into_owned(), of_row(&object)?))
        };
        let object = Object::parse(text.trim()).ok();
        let members = object.iter().flat_map(|object| object.members());
        let files = members.filter_map(entry).collect();
        Seen { path, files, is_changed: false }
    }

    /// Returns what is known about a file if it is still in this state.
    #[must_use]
    pub fn find(&self, file: &Path, stamp: Stamp) -> Option<&SeenFile> {
        self.files.get(&*file.to_string_lossy()).filter(|seen| seen.file == stamp)
    }

    /// Adds a file.
    pub fn add(&mut self, file: &Path, seen: SeenFile) {
        self.is_changed = true;
        self.files.insert(file.to_string_lossy().into_owned(), seen);
    }

    /// Writes the cache if it has changed. A failure is ignored, because the cache only saves time.
    pub fn write(&self) {
        if self.is_changed {
            let text = table(self.files.iter().map(|(file, seen)| (file, row(seen))));
            let _ = index::replace(&self.path, &text, 0o600);
        }
    }
}

fn of_row(object: &Object<'_>) -> Option<SeenFile> {
    if object.string("version").as_deref() != Some(VERSION) {
        return None;
    }
    let session = |raw: &str| {
        let session = Object::parse(raw).ok()?;
        Some((session.string("id")?.into_owned(), Stamp::read(&session)?))
    };
    let sessions = elements(object.get("sessions")?)?.into_iter().map(session);
    Some(SeenFile { file: Stamp::read(object)?, sessions: sessions.collect::<Option<_>>()? })
}

fn row(seen: &SeenFile) -> String {
    let session =
        |(id, state): &(String, Stamp)| state.add_to(Members::new().string("id", id)).into_json();
    let row = seen.file.add_to(Members::new().string("version", VERSION));
    row.list("sessions", seen.sessions.iter().map(session)).into_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_while_it_has_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let (stamp, other) =
            (Stamp { size: 1, modified: 2, inode: 3 }, Stamp { size: 4, modified: 5, inode: 6 });
        let mut seen = Seen::read(directory.path());
        let imported = SeenFile {
            file: stamp,
            sessions: vec![("x".to_owned(), other), ("y".to_owned(), stamp)],
        };
        seen.add(Path::new("/a\"b"), imported.clone());
        seen.add(Path::new("/c"), SeenFile { file: stamp, sessions: Vec::new() });
        seen.write();
        let seen = Seen::read(directory.path());
        assert_eq!(seen.find(Path::new("/a\"b"), stamp), Some(&imported));
        assert_eq!(seen.find(Path::new("/a\"b"), other), None);
        assert_eq!(seen.find(Path::new("/c"), stamp).unwrap().sessions, []);
        let path = directory.path().join("imports.json");
        let text = std::fs::read_to_string(&path).unwrap().replace(VERSION, "0.0.0");
        std::fs::write(&path, text).unwrap();
        assert_eq!(Seen::read(directory.path()).find(Path::new("/c"), stamp), None);
        std::fs::write(&path, "{\"x").unwrap();
        assert!(Seen::read(directory.path()).files.is_empty());
    }
}
