//! Records with which OpenClaw (2026.9) says where it goes on, in its own versions of pi's sessions.
//!
//! - A `leaf` goes on after the record `targetId`, which is read as its parent.
//! - A record with `appendMode` `side` is beside the conversation: what follows it goes on after the record before it.
//! - A `reset` begins the conversation anew. From its `firstKeptEntryId` on, the prompts, replies and results before it are
//!   kept.

use crate::dialect::pi::Kind;
use crate::dialect::tree::{Node, Tree};
use crate::json;
use crate::json::outline::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The places of a session.
#[derive(Debug, Default)]
pub struct Navigation {
    /// The record after which the session goes on.
    leaf: Option<Node>,
    /// The ids of the records beside the conversation.
    aside: HashSet<Box<str>>,
    /// The resets, with the ids of the first records that they keep.
    resets: HashMap<Node, Option<String>>,
}

impl Navigation {
    /// Reads the record that comes next in the tree and names `parent`. Returns the JSON of its parent, and the id in it.
    pub fn take<'a>(
        &mut self,
        parent: Option<&'a str>,
        record: Value<'a>,
        tree: &Tree<Kind>,
    ) -> (Option<&'a str>, Option<Cow<'a, str>>) {
        let kind = record.get("type");
        let mut parent = match kind {
            Some("\"leaf\"") => record.get("targetId").or(parent),
            _ => parent,
        };
        let mut id = parent.and_then(json::string);
        if record.get("appendMode") == Some("\"side\"") && kind != Some("\"leaf\"") {
            self.aside.extend(record.string("id").map(|id| id.as_ref().into()));
            return (parent, id);
        }
        if id.as_deref().is_some_and(|id| self.aside.contains(id)) {
            id = self.leaf.map(|leaf| Cow::Owned(tree.id(leaf).to_owned()));
            parent = parent.filter(|_| id.is_some()).or(Some("null"));
        }
        if kind == Some("\"reset\"") {
            let kept = record.string("firstKeptEntryId").map(Cow::into_owned);
            self.resets.insert(tree.len() as Node, kept);
        }
        self.leaf = Some(tree.len() as Node);
        (parent, id)
    }

    /// Returns the record after which the session goes on.
    #[must_use]
    pub fn leaf(&self, tree: &Tree<Kind>) -> Option<Node> {
        self.leaf.or_else(|| tree.nodes().next_back())
    }

    /// Returns the part of a path that the last reset on it leaves.
    #[must_use]
    pub fn since_reset(&self, path: Vec<Node>, tree: &Tree<Kind>) -> Vec<Node> {
        let Some(at) = path.iter().rposition(|node| self.resets.contains_key(node)) else {
            return path;
        };
        let kept = self.resets.get(&path[at]).and_then(Option::as_deref);
        let kept = kept.and_then(|kept| path[..at].iter().position(|node| tree.id(*node) == kept));
        let is_message = |node: &&Node| tree.entry(**node).kind.is_message;
        let before = path[kept.unwrap_or(at)..at].iter().filter(is_message);
        before.chain(&path[at..]).copied().collect()
    }
}
