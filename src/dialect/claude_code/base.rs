//! The conversation that the file of a subagent continues.
//!
//! A subagent that is a fork of the conversation has only its own records in its file. A `fork-context-ref` record names the
//! session, `parentSessionId`, and the last record of it that the subagent got, `parentLastUuid`; Claude Code puts the
//! branch that ends there, without sidechains, before the records of the subagent, as version 2.1.332 was observed to do. The file is
//! `SESSION/subagents/agent-ID.jsonl`, that of the session is `SESSION.jsonl`.

use crate::dialect::joined::Joined;
use crate::dialect::tree::{Node, Tree};
use crate::finding::rules;
use crate::input::Input;
use crate::input::lines::Lines;
use crate::input::origin::{Remark, SourcePlace};
use crate::new_file::directory_of;
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

/// The type of the record.
pub const KIND: &str = "fork-context-ref";

/// The conversation that a file continues.
#[derive(Debug, Default)]
pub struct Base {
    /// The offset at which the file itself begins, after that of the session.
    pub begin: u64,
    /// The id of the last record of the session that counts.
    last: String,
    place: SourcePlace,
    session: String,
}

impl Base {
    /// Joins a file with that of the session which it continues, if it continues one. Returns a remark if the session is not
    /// found.
    ///
    /// # Errors
    /// Fails if one of the files cannot be read.
    pub fn of(input: &Input) -> anyhow::Result<(Joined, Base, Option<Remark>)> {
        let alone =
            |base, remark| Ok((Joined::of(&input.name, vec![input.clone()])?, base, remark));
        let Some(mut base) = Base::read(input)? else { return alone(Base::default(), None) };
        let Some(path) = find(Path::new(&*input.name), &base.session) else {
            let remark = base.remark("cannot be found");
            return alone(Base::default(), Some(remark));
        };
        let joined = Joined::of(&input.name, vec![Input::open(&path)?, input.clone()])?;
        base.begin = joined.source.length - input.length;
        base.place.offset += base.begin;
        base.place.line += joined.files.last().map_or(0, |file| file.lines);
        Ok((joined, base, None))
    }

    /// Reads the record, which comes before the first record of the conversation.
    fn read(input: &Input) -> anyhow::Result<Option<Base>> {
        let mut lines = Lines::of(input);
        let Some(batch) = lines.batch()? else { return Ok(None) };
        let mut others = batch.flatten().take_while(|line| line.object.get("uuid").is_none());
        let Some(line) = others.find(|line| line.object.string("type").as_deref() == Some(KIND))
        else {
            return Ok(None);
        };
        let text = |name| line.object.string(name).map_or_else(String::new, Cow::into_owned);
        let (session, last) = (text("parentSessionId"), text("parentLastUuid"));
        Ok(Some(Base { begin: 0, last, place: SourcePlace::of(&line.place), session }))
    }

    /// Returns the record with which a walk towards the root continues after the first record of the subagent.
    #[must_use]
    pub fn before<K: Copy>(&self, node: Node, tree: &Tree<K>) -> Option<Node> {
        let is_own = self.begin > 0 && tree.entry(node).place.offset >= self.begin;
        tree.find(&self.last).filter(|_| is_own)
    }

    /// Returns a remark if the session does not have the record that it names.
    #[must_use]
    pub fn remark_of<K: Copy>(&self, tree: &Tree<K>) -> Option<Remark> {
        let is_lost = self.begin > 0 && tree.find(&self.last).is_none();
        is_lost.then(|| self.remark(&format!("does not have its record '{}'", self.last)))
    }

    fn remark(&self, why: &str) -> Remark {
        let message =
            format!("it continues session '{}', which {why}; reading begins here", self.session);
        Remark { rule: &rules::MISSING_BASE, place: self.place, id: None, message }
    }
}

/// Finds the file of a session beside that of a subagent, or above the directory of its subagents. Names of files are
/// compared with the id, so that the text of a session never becomes a path.
fn find(file: &Path, session: &str) -> Option<PathBuf> {
    let directory = directory_of(file);
    let name = format!("{session}.jsonl");
    let within = |directory: &Path| {
        let paths = fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        paths.into_iter().find(|path| path.file_name().is_some_and(|own| *own == *name))
    };
    let is_file = |path: &PathBuf| path.is_file() && path != file;
    let above = [directory.join("../.."), directory.to_owned()];
    above.iter().filter_map(|directory| within(directory)).find(is_file)
}
