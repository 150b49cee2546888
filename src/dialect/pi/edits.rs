//! Edits of the context: records that omit an earlier record of their branch from later requests, or replace its
//! content. pi writes them since version 0.87, for example to withdraw an attempt that failed.
//!
//! Of several edits of a record, the last one on the path applies. The edited record itself stays, as in pi, and is
//! retracted. The new content comes right after it, because the order of messages is the order of records.

use crate::dialect::pi::Kind;
use crate::dialect::tree::{Node, Tree};
use crate::json::outline::Value;
use std::collections::HashMap;

/// An edit of a file.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The id of the record that it edits.
    pub target: String,
    /// True if it replaces the content, false if it omits the record.
    replaces: bool,
}

/// An edit that applies.
#[derive(Clone, Copy, Debug)]
struct Applied {
    edit: Node,
    replaces: bool,
    /// The number of records that the edited record has become.
    records: usize,
}

/// The edits on a path.
#[derive(Debug, Default)]
pub struct PathEdits {
    /// The edits that apply, by the record that they edit.
    applied: HashMap<Node, Applied>,
    /// The records that edits name, by the edit.
    targets: HashMap<Node, Node>,
    /// The edits whose target is not before them on the path, or cannot be edited.
    pub lost: Vec<Node>,
}

impl Edit {
    /// Reads an edit.
    #[must_use]
    pub fn of(entry: Value<'_>) -> Edit {
        let target = entry.string("targetId").unwrap_or_default().into_owned();
        Edit { target, replaces: entry.get("replacement").is_some_and(|raw| raw != "null") }
    }
}

impl PathEdits {
    /// Finds the edits that apply on a path.
    #[must_use]
    pub fn of(edits: &HashMap<Node, Edit>, tree: &Tree<Kind>, path: &[Node]) -> PathEdits {
        let mut own = PathEdits::default();
        if edits.is_empty() {
            return own;
        }
        let mut is_before = tree.flags(&[]);
        for node in path {
            if let Some(Edit { target, replaces }) = edits.get(node) {
                let is_target =
                    |it: &Node| is_before[*it as usize] && tree.entry(*it).kind.is_editable;
                let applied = Applied { edit: *node, replaces: *replaces, records: 0 };
                match tree.find(target).filter(is_target) {
                    Some(target) => {
                        own.targets.insert(*node, target);
                        own.applied.insert(target, applied);
                    }
                    None => own.lost.push(*node),
                }
            }
            is_before[*node as usize] = true;
        }
        own
    }

    /// Sets the number of records that an edited record has become. Returns the edit if it replaces the content.
    pub fn replacement(&mut self, target: Node, records: usize) -> Option<Node> {
        let applied = self.applied.get_mut(&target)?;
        applied.records = records;
        applied.replaces.then_some(applied.edit)
    }

    /// Returns the record that an edit edits and the number of records that it has become, if the edit applies.
    #[must_use]
    pub fn target(&self, edit: Node) -> Option<(Node, usize)> {
        let target = *self.targets.get(&edit)?;
        let applied = self.applied.get(&target).filter(|applied| applied.edit == edit)?;
        Some((target, applied.records))
    }
}
