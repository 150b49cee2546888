//! The state of a site: a hidden file in its directory. Its first line is about the site; each other line is about a source.
//!
//! The state does not have the paths of the sources, only digests of them, because sites are published.

use super::name;
use super::summary::Summary;
use crate::json::Object;
use crate::json::write::Members;
use crate::session::probe::Stamp;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The name of the file.
pub const FILE: &str = ".claw-show.jsonl";
/// The type of its first line.
const KIND: &str = "claw-show-site";
/// The maximum length of the file in bytes.
const LONGEST: u64 = 256 << 20;

/// The state of a site.
#[derive(Debug, Default)]
pub struct State {
    /// A digest of everything but the sources that decides what the pages contain.
    pub digest: String,
    /// The rows, by the digests of the paths of their sources.
    pub rows: HashMap<String, Row>,
}

/// The state of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The state of the file when its pages were written; `None` if they are being written.
    pub stamp: Option<Stamp>,
    /// The name of its pages; empty if it is not a transcript.
    pub name: String,
    /// The number of its pages.
    pub parts: usize,
    /// The names of the pages that its pages link to: the session before it, the one after it, and the one that it
    /// belongs to.
    pub links: [String; 3],
    /// The facts.
    pub summary: Summary,
}

impl Row {
    /// Returns the names of the files with its pages.
    pub fn files(&self) -> impl Iterator<Item = String> + '_ {
        let parts = if self.name.is_empty() { 0 } else { self.parts.max(1) };
        (1..=parts).map(|part| name::file(&self.name, part))
    }

    fn to_line(&self, key: &str) -> String {
        let [before, after, parent] = &self.links;
        let row = Members::new().string("source", key);
        let row = match self.stamp {
            Some(Stamp { size, modified, inode }) => {
                row.number("size", size).number("modified", modified).number("inode", inode)
            }
            None => row,
        };
        row.string("name", &self.name)
            .number("pages", self.parts)
            .string("before", before)
            .string("after", after)
            .string("belongs_to", parent)
            .with(|row| row.members(&self.summary.to_members()))
            .into_line()
    }

    fn read(object: &Object<'_>) -> Option<Row> {
        let text = |name: &str| object.string(name).map(Cow::into_owned);
        let stamp = || {
            let (size, modified) = (object.number("size")?, object.number("modified")?);
            Some(Stamp { size, modified, inode: object.number("inode")? })
        };
        let own = text("name").filter(|own| own.is_empty() || name::is_safe(own))?;
        Some(Row {
            stamp: stamp(),
            name: own,
            parts: usize::try_from(object.number("pages")?).ok()?,
            links: [text("before")?, text("after")?, text("belongs_to")?],
            summary: Summary::read(object)?,
        })
    }
}

impl State {
    /// Reads the state of the site in a directory; `None` if there is no site.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(directory: &Path) -> io::Result<Option<State>> {
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(directory.join(FILE));
        let file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut text = Vec::new();
        file.take(LONGEST).read_to_end(&mut text)?;
        Ok(State::parse(&String::from_utf8_lossy(&text)))
    }

    fn parse(text: &str) -> Option<State> {
        let mut lines = text.lines();
        let first = Object::parse(lines.next()?).ok()?;
        first.string("type").filter(|kind| kind == KIND)?;
        let row = |line: &str| {
            let object = Object::parse(line).ok()?;
            Some((object.string("source")?.into_owned(), Row::read(&object)?))
        };
        let digest = first.string("digest")?.into_owned();
        Some(State { digest, rows: lines.filter_map(row).collect() })
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let first = Members::of_type(KIND).number("version", 1).string("digest", &self.digest);
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(key, _)| *key);
        rows.iter().fold(first.into_line(), |text, (key, row)| text + &row.to_line(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let stamp = Some(Stamp { size: 1, modified: 2, inode: 3 });
        let links = ["".into(), "b".into(), "c".into()];
        let row = Row { stamp, name: "a".into(), parts: 2, links, ..Row::default() };
        let rows = HashMap::from([("k".to_owned(), row.clone())]);
        let state = State { digest: "d".into(), rows };
        let read = State::parse(&state.to_text()).unwrap();
        assert_eq!((read.digest.as_str(), &read.rows["k"]), ("d", &row));
        assert_eq!(row.files().collect::<Vec<_>>(), ["a.html", "a.2.html"]);
        assert!(State::parse("").is_none() && State::parse("{\"type\":\"user\"}").is_none());
        // A name that could leave the directory is ignored.
        let hostile = state.to_text().replace("\"name\":\"a\"", "\"name\":\"../a\"");
        assert!(State::parse(&hostile).unwrap().rows.is_empty());
    }
}
