//! The index of an agent's sessions: `sessions.json`, a cache that claw0 can also read and write.

use super::{SessionEntry, probe::Stamp, time};
use crate::json::Object;
use crate::json::write::{Members, table};
use crate::new_file::NewFile;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Reads the entries of an index by session id. An invalid or missing index has no entries.
#[must_use]
pub fn read(path: &Path) -> HashMap<String, SessionEntry> {
    std::fs::read(path).ok().and_then(|bytes| parse(&bytes)).unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Option<HashMap<String, SessionEntry>> {
    let object = Object::parse(std::str::from_utf8(bytes).ok()?.trim()).ok()?;
    let entry = |member: crate::json::Member<'_>| {
        let id = member.name().into_owned();
        Some((id.clone(), entry(id, &Object::parse(member.value).ok()?)))
    };
    Some(object.members().filter_map(entry).collect())
}

fn entry(id: String, object: &Object<'_>) -> SessionEntry {
    let text = |name| object.string(name).map(|text| text.into_owned()).unwrap_or_default();
    SessionEntry {
        id,
        key: text("key"),
        label: text("label"),
        prompt: text("prompt"),
        created: time::of_text(&text("created_at")).unwrap_or(0),
        active: time::of_text(&text("last_active")).unwrap_or(0),
        records: object.number("message_count").unwrap_or(0),
        stamp: Stamp::read(object),
        ..SessionEntry::default()
    }
}

/// Returns the text of an index, sorted by id.
#[must_use]
pub fn to_text(entries: &[SessionEntry]) -> String {
    let mut sorted: Vec<&SessionEntry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.id.cmp(&b.id));
    table(sorted.into_iter().map(|entry| (&entry.id, row(entry))))
}

fn row(entry: &SessionEntry) -> String {
    let row = Members::new()
        .string("label", &entry.label)
        .string("key", &entry.key)
        .string("created_at", &time::to_text(entry.created))
        .string("last_active", &time::to_text(entry.active))
        .number("message_count", entry.records)
        .optional(
            Members::string,
            "prompt",
            Some(entry.prompt.as_str()).filter(|it| !it.is_empty()),
        );
    entry.stamp.into_iter().fold(row, |row, stamp| stamp.add_to(row)).into_json()
}

/// Replaces a file atomically with one that has this text and mode.
///
/// # Errors
/// If it cannot be written.
pub fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = NewFile::create(path, mode)?;
    file.set_mode(mode)?;
    file.write_all(text.as_bytes())?;
    file.finish(true)
}

/// Writes the index of a directory while holding the directory's lock. Failures are ignored, because the index is
/// only a cache: another program may hold the lock, or the directory may be read-only.
pub fn write(directory: &Path, text: &str) {
    let Ok(lock) = File::open(directory) else { return };
    if lock.try_lock().is_ok() {
        let _ = replace(&directory.join("sessions.json"), text, 0o600);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_as_written_and_an_invalid_one_is_empty() {
        let stamp = Some(Stamp { size: 1, modified: 1_767_225_600_123_456_789, inode: 3 });
        let label = "a \"b\"\u{1b}".to_owned();
        let entry = SessionEntry {
            id: "x".into(),
            label,
            active: 7,
            records: 2,
            stamp,
            ..SessionEntry::default()
        };
        let text = to_text(std::slice::from_ref(&entry));
        assert_eq!(parse(text.as_bytes()).unwrap()["x"], entry);
        assert!(parse(b"{\"x\": {").is_none() && parse(b"").is_none() && parse(b"[]").is_none());
        assert_eq!(parse(b"{\"x\":3,\"y\":{}}").unwrap().len(), 1);
        assert!(serde_json::from_str::<serde_json::Value>(&to_text(&[])).is_ok());
    }
}
