//! Results that stand before any call with their id, until one comes.

use crate::messages::ById;
use crate::messages::part::Early;
use std::collections::hash_map::Entry;
use std::iter;

/// Results that wait for a call. All lie in one list: there may be many, nearly always one for an id.
#[derive(Default)]
pub(super) struct Waiting {
    /// In the order of the file; one that was taken leaves its place empty.
    results: Vec<Link>,
    /// For each call id the places of the first and the last result that waits for it.
    ends: ById<(usize, usize)>,
}

/// A result, and the place of the next one for the same call.
struct Link {
    early: Option<Early>,
    next: Option<usize>,
}

impl Waiting {
    /// Adds a result behind all others.
    pub(super) fn push(&mut self, early: Early) {
        let place = self.results.len();
        match self.ends.entry(early.answer.id.clone()) {
            Entry::Vacant(ends) => {
                ends.insert((place, place));
            }
            Entry::Occupied(mut ends) => {
                let (_, last) = ends.get_mut();
                self.results[*last].next = Some(place);
                *last = place;
            }
        }
        self.results.push(Link { early: Some(early), next: None });
    }

    /// Takes the first result for the call `id`.
    pub(super) fn take_first(&mut self, id: &str) -> Option<Early> {
        let (first, _) = self.ends.get_mut(id)?;
        let link = &mut self.results[*first];
        match link.next.take() {
            Some(next) => *first = next,
            None => {
                self.ends.remove(id);
            }
        }
        link.early.take()
    }

    /// Gives all that are left: in the order of the file, but those for one call together.
    pub(super) fn into_groups(self) -> impl Iterator<Item = Early> {
        let Waiting { mut results, .. } = self;
        let (mut places, mut next) = (0..results.len(), None);
        iter::from_fn(move || {
            loop {
                let link = &mut results[next.or_else(|| places.next())?];
                next = link.next.take();
                if let Some(early) = link.early.take() {
                    return Some(early);
                }
            }
        })
    }
}
