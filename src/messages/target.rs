//! Ids that the provider takes.
//!
//! The API wants every call id once in a request, of letters, digits, `_` and `-`. Ids on disk may be
//! anything (other providers', or used again in a later turn), so they are mapped on the way out:
//! deterministic, without collision, the same for call and result. Disk keeps the original, and an id
//! that is fine as it is stays.

use crate::id::{ById, Id, is_id};
use std::collections::HashSet;
use std::collections::hash_map::Entry;

/// The length of an id that is kept before an appended number.
const MOST_STEM: usize = 48;

/// The ids given out so far in one request.
#[derive(Debug, Default)]
pub struct Ids {
    /// Each with whether a call has it on disk, too.
    given: ById<bool>,
    /// The ids on disk that no call was given.
    others: HashSet<Id>,
    /// The last number that was appended to an id, or to a long one with the same beginning.
    numbers: ById<u64>,
}

impl Ids {
    /// Whether a call whose id on disk is `original` was given an id.
    #[must_use]
    pub fn is_known(&self, original: &str) -> bool {
        self.given.get(original) == Some(&true) || self.others.contains(original)
    }

    /// The id to send for a call whose id on disk is `original`. It depends only on the calls before,
    /// so a longer transcript gives the same ids.
    pub fn give(&mut self, original: &Id) -> Id {
        match self.given.entry(original.clone()) {
            Entry::Vacant(place) if is_id(original) => {
                place.insert(true);
                return original.clone();
            }
            Entry::Vacant(_) => {
                self.others.insert(original.clone());
            }
            Entry::Occupied(mut given) => *given.get_mut() = true,
        }
        let id = self.free(Id::from(sanitise(original)));
        self.given.insert(id.clone(), false);
        id
    }

    /// `id`, with a number behind it if it was given before.
    fn free(&mut self, id: Id) -> Id {
        if !self.given.contains_key(&id) {
            return id;
        }
        let next = self.numbers.entry(Id::from(&id[..id.len().min(MOST_STEM)])).or_insert(1);
        loop {
            *next += 1;
            let suffix = format!("_{next}");
            let candidate = format!("{}{suffix}", &id[..id.len().min(64 - suffix.len())]);
            if !self.given.contains_key(candidate.as_str()) {
                return Id::from(candidate);
            }
        }
    }
}

/// `original` in letters, digits, `_` and `-`, at most 64 of them.
fn sanitise(original: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let id: String = original.chars().take(64).map(|c| if fits(c) { c } else { '_' }).collect();
    if id.is_empty() { "call".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_never_collide() {
        let mut ids = Ids::default();
        let given: Vec<String> = ["a", "a:b", "a.b", "a_b", "a", "a_2", "", "日本"]
            .iter()
            .map(|id| ids.give(&Id::from(*id)).to_string())
            .collect();
        assert_eq!(given, ["a", "a_b", "a_b_2", "a_b_3", "a_2", "a_2_2", "call", "__"]);
        assert!(given.iter().all(|id| is_id(id)));
    }

    #[test]
    fn long_ids_stay_apart() {
        let mut ids = Ids::default();
        let [a, b] = [80, 90].map(|length| Id::from("x".repeat(length)));
        let given = [ids.give(&a), ids.give(&b)];
        assert_ne!(given[0], given[1]);
        assert!(given.iter().all(|id| is_id(id)));
    }
}
