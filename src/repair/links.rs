//! The tree of the records: each names its parent, and the program walks from the last record to the root. A walk that
//! ends at a missing parent, or in a circle, loses what came before, and often begins with the result of a lost call.

use super::program::{Links, Program, with};
use super::sheet::Sheet;
use crate::dialect::tree::{ParentName, PathEnd, Tree};
use crate::input::origin::SourcePlace;
use crate::json::{Object, quote};
use std::collections::HashSet;

/// The records that are linked, with the lines they are in.
type Linked = Tree<usize>;

/// Repairs ids and parents, and returns the lines from the root to the leaf.
pub(super) fn mend(program: &dyn Program, links: Links, sheet: &mut Sheet<'_>) -> Vec<usize> {
    separate_twins(program, links, sheet);
    // Each round corrects one parent of the path.
    for _ in 0..=sheet.len() {
        let tree = read(links, sheet);
        let Some(leaf) = leaf(program, &tree, sheet) else { return Vec::new() };
        let path = tree.path(leaf, |_| None);
        let (Some(first), false) = (path.nodes.first(), path.end == PathEnd::Root) else {
            return path.nodes.iter().map(|node| tree.entry(*node).kind).collect();
        };
        let on_path: HashSet<_> = path.nodes.iter().copied().collect();
        let row = tree.entry(*first).kind;
        let is_aside = |row: usize| sheet.record(row).is_some_and(|it| it.is_true("isSidechain"));
        let before = (0..*first).rev().find(|node| {
            !on_path.contains(node) && is_aside(tree.entry(*node).kind) == is_aside(row)
        });
        let (parent, instead) = match before {
            Some(before) => (quote(tree.id(before)), "the record before it is its parent now"),
            None => ("null".to_owned(), "the conversation begins here now"),
        };
        let why = match &path.end {
            PathEnd::Missing(parent) => format!("its parent '{parent}' is not in the file"),
            _ => "its parent is also its descendant".to_owned(),
        };
        let text = with(sheet.text(row), &[links.parent], &parent);
        sheet.set(row, text, format!("{why}; {instead}"));
    }
    Vec::new()
}

/// Reads the tree. A record without an id is not in it.
fn read(links: Links, sheet: &Sheet<'_>) -> Linked {
    let mut tree = Tree::default();
    for (row, record) in sheet.records() {
        let Some(id) = record.string(links.id) else { continue };
        let parent = record.string(links.parent);
        let parent = parent.as_deref().map_or(ParentName::None, ParentName::Id);
        if is_member(&record, links) {
            tree.add(SourcePlace::default(), Some(&id), parent, row);
        }
    }
    tree.finish();
    tree
}

/// Returns true if a record is part of the tree: the header of a session has an id, but no parent.
fn is_member(record: &Object<'_>, links: Links) -> bool {
    record.get(links.parent).is_some()
}

/// Returns the record that the program would continue from.
fn leaf(program: &dyn Program, tree: &Linked, sheet: &Sheet<'_>) -> Option<u32> {
    let find = |is_aside| {
        tree.nodes().rfind(|node| {
            let record = sheet.record(tree.entry(*node).kind);
            record.is_some_and(|record| program.is_leaf(&record, is_aside))
        })
    };
    find(false).or_else(|| find(true))
}

/// Leaves out the copies of a record, and gives other records that have the id of an earlier one an id of their own,
/// which their children name from then on.
fn separate_twins(program: &dyn Program, links: Links, sheet: &mut Sheet<'_>) {
    let mut seen: HashSet<String> = HashSet::new();
    let mut texts: HashSet<String> = HashSet::new();
    for row in 0..sheet.len() {
        let Some(record) = sheet.record(row).filter(|record| is_member(record, links)) else {
            continue;
        };
        let Some(id) = record.string(links.id).map(std::borrow::Cow::into_owned) else { continue };
        if seen.insert(id.clone()) {
            texts.insert(crate::record::digest(sheet.text(row)));
        } else if !texts.insert(crate::record::digest(sheet.text(row))) {
            sheet.remove(row, "it is a copy of an earlier line");
        } else {
            let new = unused(program, sheet, links, &id);
            let text = with(sheet.text(row), &[links.id], &quote(&new));
            sheet.set(row, text, format!("an earlier record has the id '{id}'"));
            seen.insert(new.clone());
            for later in row + 1..sheet.len() {
                let Some(record) = sheet.record(later) else { continue };
                if record.string(links.parent).as_deref() == Some(&id) {
                    let text = with(sheet.text(later), &[links.parent], &quote(&new));
                    sheet.set(later, text, "its parent has another id now");
                }
            }
        }
    }
}

/// Returns an id that no record has.
pub(super) fn unused(program: &dyn Program, sheet: &Sheet<'_>, links: Links, seed: &str) -> String {
    let is_used = |id: &String| {
        sheet.records().any(|(_, record)| record.string(links.id).as_deref() == Some(id))
    };
    let mut ids = (0_u64..).map(|number| program.new_id(&format!("{seed} {number}")));
    ids.find(|id| !is_used(id)).unwrap_or_default()
}
