//! Divides a long session into pages.
//!
//! A page ends before the turn with which it would become too long; in a very long turn, before a reply. The division
//! depends only on what comes before it, so the pages of a session that grows stay the same, except the last one.

use crate::show::{Item, ShownEntry};

/// The length of the content of a page in bytes, after which the next turn begins a page.
const LONG: usize = 512 * 1024;
/// The length after which the next reply begins a page.
const LONGEST: usize = 2 * LONG;

/// The division of a session into pages.
#[derive(Debug, Default)]
pub struct Parts {
    /// The length of the current page.
    bytes: usize,
    /// The number of the current turn.
    turn: u64,
    /// The number of pages before the current one.
    before: usize,
}

/// The place where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With a turn.
    Turn,
    /// Within the turn with this number.
    Within(u64),
}

impl Parts {
    /// Adds an entry. Returns the place if a page begins before it.
    pub fn take(&mut self, entry: &ShownEntry) -> Option<Begin> {
        let begin = match &entry.item {
            Item::Turn(_) if self.bytes > LONG => Some(Begin::Turn),
            Item::Reply(_) if self.bytes > LONGEST => Some(Begin::Within(self.turn)),
            _ => None,
        };
        if let Item::Turn(number) = entry.item {
            self.turn = number;
        }
        if begin.is_some() {
            self.bytes = 0;
            self.before += 1;
        }
        self.bytes += weight(&entry.item);
        begin
    }

    /// Returns the number of the current page, counted from 1.
    pub fn number(&self) -> usize {
        self.before + 1
    }
}

/// Returns about how many bytes an entry takes on a page.
fn weight(item: &Item) -> usize {
    match item {
        Item::Text { text, .. } | Item::Injected { text, .. } | Item::Thinking(text) => text.len(),
        Item::Call { input, .. } => input.len(),
        Item::Result(result) => {
            let media = result.media.iter().map(|media| media.raw.len());
            result.text.len() + media.sum::<usize>()
        }
        Item::Media { media, .. } => media.raw.len(),
        Item::Hosted(act) => act.output.len() + 256 * act.sources.len(),
        Item::Compaction(it) => it.summary.text.len(),
        _ => 0,
    }
}
