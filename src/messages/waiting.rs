//! Tool results that come before the call with their id, kept until that call is read.

use crate::id::ById;
use crate::messages::pending::EarlyResult;
use std::collections::hash_map::Entry;
use std::iter;

/// Results that wait for a call. All are in one list, because a list for each call would nearly always hold only one
/// result.
#[derive(Default)]
pub(super) struct Waiting {
    /// The results in the order of the file. A result that was taken leaves an empty place.
    results: Vec<Link>,
    /// The places of the first and last waiting result for each call id.
    ends: ById<(usize, usize)>,
}

/// A result, and the place of the next one for the same call.
struct Link {
    early: Option<Box<EarlyResult>>,
    next: Option<usize>,
}

impl Waiting {
    /// Adds a result at the end.
    pub(super) fn push(&mut self, early: Box<EarlyResult>) {
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
    pub(super) fn take_first(&mut self, id: &str) -> Option<Box<EarlyResult>> {
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

    /// Returns the remaining results, in the order of the file, but with those for the same call together.
    pub(super) fn into_groups(self) -> impl Iterator<Item = Box<EarlyResult>> {
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
