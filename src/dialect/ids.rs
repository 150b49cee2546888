//! The ids of the records in a file, and a search for the record with an id.
//!
//! Nearly every record names the one before it as its parent, so hardly any id is searched for. The ids are therefore
//! joined into one text, and sorted by their hashes after the last one. Compared with a hash map from ids to records, a
//! rebuild of 256 MiB of pi takes 13 % less processor time, and 67 MiB of memory instead of 81.

use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// The index of a record in its file.
pub type Node = u32;

/// The ids of records, by the index of the record.
#[derive(Debug, Default)]
pub struct Ids {
    text: String,
    /// For each record, the end of its id in the text.
    ends: Vec<usize>,
    /// For each record with an id: the upper half of the id's hash, and in the lower half the index of the record.
    keys: Vec<u64>,
    hasher: RandomState,
}

/// The part of a key that is the id's hash.
const HASH: u64 = !0 << Node::BITS;

impl Ids {
    /// Adds the id of the next record.
    pub fn push(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.keys.push(self.hash(id) | self.ends.len() as u64);
            self.text.push_str(id);
        }
        self.ends.push(self.text.len());
    }

    /// Prepares the search. Returns the records with the id of an earlier record, in order.
    pub fn sort(&mut self) -> Vec<Node> {
        self.keys.sort_unstable();
        let have_same_hash = |pair: &&[u64]| (pair[0] ^ pair[1]) & HASH == 0;
        let laters = self.keys.windows(2).filter(have_same_hash).map(|pair| pair[1] as Node);
        let is_twin = |node: &Node| self.find_before(*node, self.of(*node)).is_some();
        let mut twins: Vec<Node> = laters.filter(is_twin).collect();
        twins.sort_unstable();
        twins
    }

    /// Returns the id of a record; empty if it has none.
    #[must_use]
    pub fn of(&self, node: Node) -> &str {
        let begin = node.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.text[begin..self.ends[node as usize]]
    }

    /// Returns the last record with this id. Works only after [`Ids::sort`].
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Node> {
        self.find_before(Node::MAX, id)
    }

    /// Returns the last record before `node` with this id. Works only after [`Ids::sort`].
    #[must_use]
    pub fn find_before(&self, node: Node, id: &str) -> Option<Node> {
        let hash = self.hash(id);
        let end = self.keys.partition_point(|key| *key < hash | u64::from(node));
        let same = self.keys[..end].iter().rev().take_while(|key| **key & HASH == hash);
        same.map(|key| *key as Node).find(|node| self.of(*node) == id)
    }

    fn hash(&self, id: &str) -> u64 {
        self.hasher.hash_one(id) & HASH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_record_with_an_id_is_found() {
        let mut ids = Ids::default();
        for id in [Some("a"), None, Some("b"), Some("a"), Some(""), Some("a"), Some("b")] {
            ids.push(id);
        }
        assert_eq!(ids.sort(), [3, 5, 6]);
        assert_eq!([0, 1, 2, 4].map(|node| ids.of(node)), ["a", "", "b", ""]);
        assert_eq!(["a", "b", "", "c"].map(|id| ids.find(id)), [Some(5), Some(6), Some(4), None]);
        assert_eq!(
            [0, 1, 4, 5].map(|node| ids.find_before(node, "a")),
            [None, Some(0), Some(3), Some(3)]
        );
    }

    #[test]
    fn ids_with_the_same_hash_are_told_apart() {
        let mut ids = Ids::default();
        ["a", "b", "a"].iter().for_each(|id| ids.push(Some(id)));
        ids.keys[1] = ids.keys[0] & HASH | 1;
        assert_eq!(ids.sort(), [2]);
        assert_eq!((ids.find("a"), ids.find_before(2, "a")), (Some(2), Some(0)));
    }
}
