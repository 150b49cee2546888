//! The state of a site: a hidden file in its directory. Its first line is about the site; each other line is about a source.
//!
//! The state does not have the paths of the sources, only digests of them, because sites are published. The first line has a
//! digest of the others. If it does not match, the site is made again, and the names of its pages come from the lines that can
//! be read and from its index.

use super::name;
use super::summary::Summary;
use crate::json::Object;
use crate::json::write::Members;
use crate::record;
use crate::session::probe::Stamp;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
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
/// The maximum number of pages of a session.
const MAX_PAGES: usize = 1_000_000;

/// The state of a site.
#[derive(Debug, Default)]
pub struct State {
    /// A digest of everything but the sources that decides what the pages contain.
    pub digest: String,
    /// The rows, by the digests of the paths of their sources.
    pub rows: HashMap<String, Row>,
    /// True if the file was damaged. Then the digest is empty, so that all pages are made again.
    pub is_damaged: bool,
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
        let row = self.stamp.into_iter().fold(row, |row, stamp| stamp.add_to(row));
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
        let own = text("name").filter(|own| own.is_empty() || name::is_safe(own))?;
        Some(Row {
            stamp: Stamp::read(object),
            name: own,
            parts: usize::try_from(object.number("pages")?).ok().filter(|n| *n <= MAX_PAGES)?,
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
        let Some(text) = read(&directory.join(FILE))? else { return Ok(None) };
        let mut state = State::parse(&text);
        if state.is_damaged {
            state.find_pages(directory);
        }
        Ok(Some(state))
    }

    /// Reads the text of the file. Lines that are damaged are left out.
    fn parse(text: &str) -> State {
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let row = |line: &str| {
            let object = Object::parse(line).ok()?;
            Some((object.string("source")?.into_owned(), Row::read(&object)?))
        };
        let rows = rest.lines().filter_map(row).collect();
        let digest = || {
            let first = Object::parse(first).ok()?;
            first.string("type").filter(|kind| kind == KIND)?;
            first.string("rows").filter(|rows| **rows == record::digest(rest))?;
            Some(first.string("digest")?.into_owned())
        };
        match digest() {
            Some(digest) => State { digest, rows, is_damaged: false },
            None => State { digest: String::new(), rows, is_damaged: true },
        }
    }

    /// Adds a row for each session that the index of the site links to, and counts the pages of all.
    fn find_pages(&mut self, directory: &Path) {
        let index = read(&directory.join("index.html")).ok().flatten().unwrap_or_default();
        let known: HashSet<String> = self.rows.values().map(|row| row.name.clone()).collect();
        let links = index.split("href=\"").skip(1);
        let names = links.filter_map(|link| Some(link.split_once(".html")?.0));
        for name in names.filter(|name| name::is_safe(name) && !known.contains(*name)) {
            let row = || Row { name: name.to_owned(), ..Row::default() };
            self.rows.entry(name.to_owned()).or_insert_with(row);
        }
        for row in self.rows.values_mut().filter(|row| !row.name.is_empty()) {
            let exists = |part: &usize| directory.join(name::file(&row.name, *part)).exists();
            row.parts = (1..=MAX_PAGES).take_while(exists).count();
        }
    }

    /// Returns the text of the file.
    pub fn to_text(&self) -> String {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(key, _)| *key);
        let rows: String = rows.iter().map(|(key, row)| row.to_line(key)).collect();
        let first = Members::of_type(KIND).number("version", 1).string("digest", &self.digest);
        first.string("rows", &record::digest(&rows)).into_line() + &rows
    }
}

/// Reads a file of a site, but does not follow a link; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
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
        let state = State { digest: "d".into(), rows, is_damaged: false };
        let read = State::parse(&state.to_text());
        assert_eq!((read.digest.as_str(), &read.rows["k"], read.is_damaged), ("d", &row, false));
        assert_eq!(row.files().collect::<Vec<_>>(), ["a.html", "a.2.html"]);
        for damaged in ["", "{\"type\":\"user\"}", &state.to_text().replace("\"b\"", "\"c\"")] {
            let read = State::parse(damaged);
            assert!(read.is_damaged && read.digest.is_empty(), "{damaged}");
        }
        // A name that could leave the directory is ignored.
        let hostile = state.to_text().replace("\"name\":\"a\"", "\"name\":\"../a\"");
        assert!(State::parse(&hostile).rows.is_empty());
    }
}
