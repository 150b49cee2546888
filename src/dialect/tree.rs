//! A transcript whose records name their parents: the index of the tree, and the path from its root to a leaf.
//!
//! The index has one small entry per record, so its size depends on the number of records and not on their content. A
//! walk from a leaf ends at a record without a parent, at a parent that is not in the file, or at a record that the
//! walk has visited. A missing parent or a cycle means that the file is damaged. Every walk ends, whatever the file
//! contains.

use crate::dialect::ids::Ids;
pub use crate::dialect::ids::Node;
use crate::input::origin::SourcePlace;
use std::collections::HashMap;

/// The parent that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentName<'a> {
    /// No parent: the record begins a conversation.
    None,
    /// The record before it in the file, because the record names no parent.
    Previous,
    /// The record with this id.
    Id(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parent {
    None,
    Missing,
    At(Node),
}

/// A record in the index, with data for its dialect.
#[derive(Clone, Copy, Debug)]
pub struct Entry<K> {
    /// Its place in the source.
    pub place: SourcePlace,
    /// The data for its dialect.
    pub kind: K,
    parent: Parent,
}

/// The records of a file.
#[derive(Debug)]
pub struct Tree<K> {
    entries: Vec<Entry<K>>,
    ids: Ids,
    /// The records whose parent is not the record before them, with the ids of the parents. After [`Tree::finish`],
    /// only those whose parents are missing.
    late: Vec<(Node, Box<str>)>,
}

/// The path from the root to a leaf, and how the walk from the leaf ended.
#[derive(Debug)]
pub struct Path {
    /// The records, root first.
    pub nodes: Vec<Node>,
    /// The end of the walk from the leaf.
    pub end: PathEnd,
}

/// The end of a walk from a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// A record without a parent.
    Root,
    /// A record that names this id as its parent, but no record has the id.
    Missing(String),
    /// A record whose parent is the given one, which comes later on the path.
    Cycle(Node),
}

impl<K> Default for Tree<K> {
    fn default() -> Tree<K> {
        Tree { entries: Vec::new(), ids: Ids::default(), late: Vec::new() }
    }
}

impl<K: Copy> Tree<K> {
    /// Adds the next record of the file.
    pub fn add(&mut self, place: SourcePlace, id: Option<&str>, parent: ParentName<'_>, kind: K) {
        let node = self.entries.len() as Node;
        let previous = node.checked_sub(1);
        let parent = match parent {
            ParentName::None => Parent::None,
            ParentName::Previous => previous.map_or(Parent::None, Parent::At),
            ParentName::Id(parent) if id == Some(parent) => Parent::At(node),
            ParentName::Id(parent) => {
                let is_it =
                    |previous: &Node| !parent.is_empty() && self.ids.of(*previous) == parent;
                previous.filter(is_it).map_or_else(
                    || {
                        self.late.push((node, parent.into()));
                        Parent::Missing
                    },
                    Parent::At,
                )
            }
        };
        self.ids.push(id);
        self.entries.push(Entry { place, kind, parent });
    }

    /// Finds the parents that are not the records before their children. Must be called after the last record. Returns
    /// the records with the id of an earlier record; for the lines after it, the id refers to the new record.
    pub fn finish(&mut self) -> Vec<Node> {
        let twins = self.ids.sort();
        let (entries, ids) = (&mut self.entries, &self.ids);
        self.late.retain(|(node, id)| match ids.find_before(*node, id).or_else(|| ids.find(id)) {
            Some(parent) => {
                entries[*node as usize].parent = Parent::At(parent);
                false
            }
            None => true,
        });
        twins
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns a record.
    #[must_use]
    pub fn entry(&self, node: Node) -> &Entry<K> {
        &self.entries[node as usize]
    }

    /// Returns the id of a record; empty if it has none.
    #[must_use]
    pub fn id(&self, node: Node) -> &str {
        self.ids.of(node)
    }

    /// Returns all records in file order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = Node> + use<K> {
        0..self.entries.len() as Node
    }

    /// Returns for each record of the file true if it is one of `nodes`.
    #[must_use]
    pub fn flags(&self, nodes: &[Node]) -> Vec<bool> {
        let mut flags = vec![false; self.entries.len()];
        nodes.iter().for_each(|node| flags[*node as usize] = true);
        flags
    }

    /// Returns the record with this id, or the last one if there are several.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<Node> {
        self.ids.find(id)
    }

    /// Returns the parent of a record, if it is in the file.
    #[must_use]
    pub fn parent(&self, node: Node) -> Option<Node> {
        match self.entry(node).parent {
            Parent::At(parent) => Some(parent),
            Parent::None | Parent::Missing => None,
        }
    }

    /// Walks from a leaf to its root. At a record without a parent, the walk continues with the record that `next`
    /// returns, if there is one: a dialect can link records in another way.
    pub fn path(&self, leaf: Node, next: impl Fn(Node) -> Option<Node>) -> Path {
        let mut is_visited = self.flags(&[]);
        let (mut nodes, mut node) = (Vec::new(), leaf);
        let end = loop {
            is_visited[node as usize] = true;
            nodes.push(node);
            let parent = match self.entry(node).parent {
                Parent::At(parent) => parent,
                Parent::None => match next(node) {
                    Some(next) => next,
                    None => break PathEnd::Root,
                },
                Parent::Missing => {
                    let name = self.late.iter().find(|(child, _)| *child == node);
                    break PathEnd::Missing(name.map(|(_, id)| id.to_string()).unwrap_or_default());
                }
            };
            if is_visited[parent as usize] {
                break PathEnd::Cycle(parent);
            }
            node = parent;
        };
        nodes.reverse();
        Path { nodes, end }
    }

    /// Returns the branches that do not end on the path `nodes`, in the order of their leaves in the file: for each one
    /// its leaf, the number of its records that are neither on the path nor on an earlier branch, and the record where
    /// it branches off, if there is one. Only records for which `is_member` is true can be leaves, and only those for
    /// which `counts` is true are counted. A branch without counted records is left out.
    #[must_use]
    pub fn other_branches(
        &self,
        nodes: &[Node],
        is_member: impl Fn(Node) -> bool,
        counts: impl Fn(Node) -> bool,
    ) -> Vec<(Node, usize, Option<Node>)> {
        let (mut has_child, mut is_seen) = (self.flags(&[]), self.flags(nodes));
        for node in self.nodes().filter(|node| is_member(*node)) {
            if let Some(parent) = self.parent(node) {
                has_child[parent as usize] = true;
            }
        }
        let mut branches = Vec::new();
        for leaf in self.nodes().filter(|leaf| is_member(*leaf) && !has_child[*leaf as usize]) {
            let (mut count, mut node) = (0, Some(leaf));
            while let Some(own) = node.filter(|own| !is_seen[*own as usize]) {
                is_seen[own as usize] = true;
                count += usize::from(counts(own));
                node = self.parent(own);
            }
            if count > 0 {
                branches.push((leaf, count, node));
            }
        }
        branches
    }

    /// Returns the ids of these records. A record without an id is left out, and so is one whose id a later record also
    /// has.
    #[must_use]
    pub fn names(&self, nodes: impl IntoIterator<Item = Node>) -> HashMap<Node, &str> {
        let named = nodes.into_iter().map(|node| (node, self.ids.of(node)));
        named.filter(|(node, id)| self.ids.find(id) == Some(*node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a tree from words `id:parent`; `id:` is a root, and `id` alone follows the word before it.
    fn tree(words: &str) -> Tree<()> {
        let mut tree = Tree::default();
        for word in words.split_whitespace() {
            let (id, parent) = match word.split_once(':') {
                None => (word, ParentName::Previous),
                Some((id, "")) => (id, ParentName::None),
                Some((id, parent)) => (id, ParentName::Id(parent)),
            };
            tree.add(SourcePlace::default(), Some(id), parent, ());
        }
        tree.finish();
        tree
    }

    fn names(tree: &Tree<()>, nodes: &[Node]) -> String {
        let names = tree.names(nodes.iter().copied());
        nodes.iter().map(|node| names[node]).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn v29_every_walk_ends() {
        for (words, leaf, path, end) in [
            ("a: b:a c:b", "c", "a b c", PathEnd::Root),
            ("a b c", "b", "a b", PathEnd::Root),
            ("c:b b:a a:", "c", "a b c", PathEnd::Root),
            ("a: b:x c:b", "c", "b c", PathEnd::Missing("x".to_owned())),
            ("a:a", "a", "a", PathEnd::Cycle(0)),
            ("a:c b:a c:b", "c", "a b c", PathEnd::Cycle(2)),
            ("a:b b:a c:b", "c", "a b c", PathEnd::Cycle(1)),
        ] {
            let tree = tree(words);
            let found = tree.path(tree.find(leaf).unwrap(), |_| None);
            assert_eq!((names(&tree, &found.nodes).as_str(), found.end), (path, end), "{words}");
        }
        // Of two records with the same id, the later one is found.
        let twins = tree("a: b:a a:b c:a");
        assert_eq!(twins.path(3, |_| None).nodes, [0, 1, 2, 3]);
    }

    #[test]
    fn branches_that_do_not_end_on_the_path_are_found() {
        let tree = tree("a: b:a c:b d:a e:d f:d x:");
        let path = tree.path(tree.find("f").unwrap(), |_| None);
        let branches: Vec<_> = tree
            .other_branches(&path.nodes, |_| true, |_| true)
            .into_iter()
            .map(|(leaf, count, from)| {
                (names(&tree, &[leaf]), count, from.map(|from| names(&tree, &[from])))
            })
            .collect();
        let branch = |leaf: &str, count, from: Option<&str>| {
            (leaf.to_owned(), count, from.map(str::to_owned))
        };
        assert_eq!(
            branches,
            [branch("c", 2, Some("a")), branch("e", 1, Some("d")), branch("x", 1, None)]
        );
    }
}
