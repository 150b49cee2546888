//! Call ids that the provider accepts.
//!
//! In a request every call id must be unique and consist of letters, digits, `_` and `-`. Ids on disk may come from
//! other providers or occur again in a later turn, so rebuild maps them. The mapping is deterministic and free of
//! collisions, and a call and its result get the same id. A valid id stays unchanged unless it is already in use, and
//! the transcript keeps the originals.

use crate::id::{ById, Id, is_id};
use std::collections::HashSet;
use std::collections::hash_map::Entry;

/// The maximum length, in bytes, of the id prefixes that are the keys of `Ids::numbers`.
const MAX_STEM: usize = 48;

/// The ids assigned so far in one request.
#[derive(Debug, Default)]
pub struct Ids {
    /// The assigned ids. The value is true if the id is also the original id of some call.
    assigned: ById<bool>,
    /// The invalid ids on disk, each of which was replaced.
    invalid: HashSet<Id>,
    /// The last number that was appended to ids with this prefix of at most `MAX_STEM` bytes.
    numbers: ById<u64>,
}

impl Ids {
    /// Returns true if an id was assigned for a call with the id `original` on disk.
    #[must_use]
    pub fn is_known(&self, original: &str) -> bool {
        self.assigned.get(original) == Some(&true) || self.invalid.contains(original)
    }

    /// Assigns the id to send for a call with the id `original` on disk. It depends only on earlier calls, so appended
    /// records do not change it.
    pub fn assign(&mut self, original: &Id) -> Id {
        match self.assigned.entry(original.clone()) {
            Entry::Vacant(place) if is_id(original) => {
                place.insert(true);
                return original.clone();
            }
            Entry::Vacant(_) => {
                self.invalid.insert(original.clone());
            }
            Entry::Occupied(mut assigned) => *assigned.get_mut() = true,
        }
        let id = self.free(Id::from(sanitise(original)));
        self.assigned.insert(id.clone(), false);
        id
    }

    /// Returns `id` if it is not assigned yet, else `id` with a number appended.
    fn free(&mut self, id: Id) -> Id {
        if !self.assigned.contains_key(&id) {
            return id;
        }
        let next = self.numbers.entry(Id::from(&id[..id.len().min(MAX_STEM)])).or_insert(1);
        loop {
            *next += 1;
            let suffix = format!("_{next}");
            let candidate = format!("{}{suffix}", &id[..id.len().min(64 - suffix.len())]);
            if !self.assigned.contains_key(candidate.as_str()) {
                return Id::from(candidate);
            }
        }
    }
}

/// Replaces invalid characters in `original` by `_`, and limits the id to 64 characters. An empty id becomes `call`.
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
        let assigned: Vec<String> = ["a", "a:b", "a.b", "a_b", "a", "a_2", "", "日本"]
            .iter()
            .map(|id| ids.assign(&Id::from(*id)).to_string())
            .collect();
        assert_eq!(assigned, ["a", "a_b", "a_b_2", "a_b_3", "a_2", "a_2_2", "call", "__"]);
        assert!(assigned.iter().all(|id| is_id(id)));
    }

    #[test]
    fn only_ids_on_disk_are_known() {
        let mut ids = Ids::default();
        for id in ["a", "a:b", "a.b", "a_b"] {
            ids.assign(&Id::from(id));
        }
        let known = ["a", "a:b", "a.b", "a_b", "a_b_2", "b"].map(|id| ids.is_known(id));
        // `a_b_2` was assigned for `a.b`, but no call has it on disk.
        assert_eq!(known, [true, true, true, true, false, false]);
    }

    #[test]
    fn long_ids_stay_distinct() {
        let mut ids = Ids::default();
        let [a, b] = [80, 90].map(|length| Id::from("x".repeat(length)));
        let assigned = [ids.assign(&a), ids.assign(&b)];
        assert_ne!(assigned[0], assigned[1]);
        assert!(assigned.iter().all(|id| is_id(id)));
    }
}
