//! The parts of a session that are compared: a prompt, a reply with its calls and their results, or a view record.

use crate::input::Input;
use crate::input::lines::Lines;
use crate::messages::view;
use crate::show::totals::Totals;
use crate::show::walk::TranscriptWalk;
use crate::show::wording::Language;
use crate::show::{Item, ShowNotes, ShowOptions, ShownEntry, ShownPart, words};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::rc::Rc;

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitKind {
    /// The prompt that begins a turn.
    Prompt,
    /// A reply, or what follows a note in one.
    Reply,
    /// A view record, or another record that is not part of the conversation.
    Note,
}

/// A part of a session.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The number of its turn; 0 before the first one.
    pub turn: u64,
    pub kind: UnitKind,
    pub entries: Vec<ShownEntry>,
}

/// A part of a session without its content.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub turn: u64,
    pub kind: UnitKind,
    /// A hash of what it says. Parts with the same hash are the same.
    pub hash: u64,
    pub totals: Totals,
    /// The number of messages.
    pub messages: u64,
}

impl Unit {
    /// Returns the facts that are needed to compare it.
    pub fn mark(&self, state: &RandomState) -> Mark {
        let mut hasher = state.build_hasher();
        let mut totals = Totals::default();
        for entry in &self.entries {
            totals.take(entry);
            hash(&entry.item, &mut hasher);
        }
        let has_results = self.entries.iter().any(|it| matches!(it.item, Item::Result(_)));
        let messages = match self.kind {
            UnitKind::Note => 0,
            _ => 1 + u64::from(has_results),
        };
        Mark { turn: self.turn, kind: self.kind, hash: hasher.finish(), totals, messages }
    }
}

/// Adds what an entry says to a hash. Ids, times and token counts are not compared: a copy of a record may have others. Nor
/// is text of programs, such as a reminder with the date.
fn hash(item: &Item, to: &mut impl Hasher) {
    let bytes = |kind: u8, texts: &[&str], to: &mut dyn Hasher| {
        to.write_u8(kind);
        for text in texts {
            to.write_usize(text.len());
            to.write(text.as_bytes());
        }
    };
    match item {
        Item::Session(_) | Item::Label(_) | Item::Turn(_) | Item::Injected { .. } => {}
        Item::Reply(facts) => {
            bytes(1, &[facts.model.as_deref().unwrap_or_default()], to);
            facts.interrupted.hash(to);
        }
        Item::Text { role, text } => bytes(2, &[role.name(), text], to),
        Item::Thinking(text) => bytes(3, &[text], to),
        Item::Call { name, input, .. } => bytes(4, &[name, input], to),
        Item::Result(result) => {
            bytes(5, &[&result.text], to);
            result.is_error.hash(to);
            result.media.iter().for_each(|media| bytes(6, &[&media.raw], to));
        }
        Item::Media { role, media } => bytes(7, &[role.name(), &media.raw], to),
        Item::Hosted(act) => bytes(8, &[&format!("{act:?}")], to),
        Item::Other { role, kind, bytes: size } => {
            bytes(9, &[role.name(), kind, &size.to_string()], to)
        }
        Item::Compaction(it) => bytes(10, &[&it.summary.text], to),
        Item::Truncation { name, shown, .. } => {
            bytes(11, &[name.as_deref().unwrap_or_default(), &format!("{shown:?}")], to);
        }
        Item::Omission(it) => bytes(12, &[&it.kind, &it.reason], to),
        Item::Checkpoint(it) => bytes(13, &[&it.render()], to),
        Item::Retract(_) => bytes(14, &[], to),
        Item::Error(it) => bytes(15, &[&it.class, &it.message], to),
    }
}

/// The parts of a session, read one after the other.
pub struct Units<'r> {
    inputs: &'r [Input],
    lines: Lines<'r>,
    walk: TranscriptWalk<'r>,
    /// The entries that were read and belong to parts that are not returned yet.
    entries: VecDeque<ShownEntry>,
    turn: u64,
}

impl<'r> Units<'r> {
    /// Begins to read a session.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(inputs: &'r [Input], options: &'r ShowOptions) -> anyhow::Result<Units<'r>> {
        let view = Rc::new(view::whole(inputs)?);
        let walk = TranscriptWalk::new(view, options, ShownPart::default());
        let lines = Lines::new(inputs, 0..u64::MAX);
        Ok(Units { inputs, lines, walk, entries: VecDeque::new(), turn: 0 })
    }

    /// Returns the next part. `each` gets every entry, also those that are in no part.
    ///
    /// # Errors
    /// If the session cannot be read.
    pub fn next(&mut self, each: &mut dyn FnMut(&ShownEntry)) -> anyhow::Result<Option<Unit>> {
        let mut unit: Option<Unit> = None;
        while let Some(entry) = self.entry()? {
            let kind = match &entry.item {
                Item::Turn(_) => Some(UnitKind::Prompt),
                Item::Reply(_) => Some(UnitKind::Reply),
                _ if words::note(&entry, Language::En).is_some() => Some(UnitKind::Note),
                _ => None,
            };
            let ends = kind.is_some() || unit.as_ref().is_some_and(|it| it.kind == UnitKind::Note);
            if ends && unit.is_some() {
                self.entries.push_front(entry);
                break;
            }
            each(&entry);
            match entry.item {
                Item::Session(_) | Item::Label(_) => continue,
                Item::Turn(number) => self.turn = number,
                _ => {}
            }
            let (turn, kind) = (self.turn, kind.unwrap_or(UnitKind::Reply));
            let own = unit.get_or_insert_with(|| Unit { turn, kind, entries: Vec::new() });
            own.entries.push(entry);
        }
        Ok(unit)
    }

    fn entry(&mut self) -> anyhow::Result<Option<ShownEntry>> {
        let entries = &mut self.entries;
        while entries.is_empty() {
            let mut take = |entry: &ShownEntry| {
                entries.push_back(entry.clone());
                Ok(())
            };
            if !self.walk.read_some(&mut self.lines, &mut take)? {
                break;
            }
        }
        Ok(self.entries.pop_front())
    }

    /// Returns the diagnostics so far, and clears them.
    pub fn notes(&mut self) -> ShowNotes {
        self.walk.notes(self.inputs)
    }
}
