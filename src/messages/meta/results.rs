//! The tool results in `_meta`.

use crate::id::Id;
use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::record::truncation::KeptSpan;

/// The record of a tool result, and the part of it that is shown.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ResultMeta {
    /// The id of its call in the message.
    pub tool_use_id: Id,
    /// The id of the call on disk, if it differs.
    pub original_id: Option<Id>,
    /// The id of the record that contains the result.
    pub record: Id,
    /// The part that is shown, if a truncation shortens the result.
    pub shown: Option<KeptSpan>,
    /// The parts that omissions leave out.
    pub left_out: LeftOut,
    /// For each item of the content, its index in the record. Empty if the two are the same.
    pub parts: Vec<u64>,
}

/// The parts of a result that omissions leave out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum LeftOut {
    /// Nothing.
    #[default]
    Nothing,
    /// The items of the content with these indices in the message, which are now lines of text.
    Parts(Vec<u64>),
    /// The whole content, which is now a line of text.
    All,
}

impl LeftOut {
    /// Adds the item with this index.
    pub fn add(&mut self, index: u64) {
        match self {
            LeftOut::Nothing => *self = LeftOut::Parts(vec![index]),
            LeftOut::Parts(parts) => parts.push(index),
            LeftOut::All => {}
        }
    }
}

impl ResultMeta {
    /// Returns the id of the call on disk.
    #[must_use]
    pub fn id_on_disk(&self) -> &Id {
        self.original_id.as_ref().unwrap_or(&self.tool_use_id)
    }

    /// Returns the index in the record of the item with this index in the message.
    #[must_use]
    pub fn part_on_disk(&self, index: usize) -> u64 {
        self.parts.get(index).copied().unwrap_or(index as u64)
    }

    /// Returns true if an omission replaces the item with this index in the message.
    #[must_use]
    pub fn is_left_out(&self, index: usize) -> bool {
        match &self.left_out {
            LeftOut::Nothing => false,
            LeftOut::Parts(parts) => parts.contains(&(index as u64)),
            LeftOut::All => true,
        }
    }
}

pub(super) fn parse(meta: &Object<'_>) -> Result<Vec<ResultMeta>, String> {
    match meta.get("results").map(elements) {
        None => Ok(Vec::new()),
        Some(None) => Err("'_meta.results' is not a list".to_owned()),
        Some(Some(list)) => list.into_iter().map(parse_one).collect(),
    }
}

fn parse_one(raw: &str) -> Result<ResultMeta, String> {
    let bad = || "'_meta.results' contains an invalid result".to_owned();
    let object = Object::parse(raw).map_err(|_| bad())?;
    let shown = object.get("bytes").map(|_| KeptSpan::parse(&object)).transpose();
    let shown = shown.map_err(|_| bad())?;
    let left_out = match object.get("left_out") {
        None => LeftOut::Nothing,
        Some("true") => LeftOut::All,
        Some(list) => LeftOut::Parts(numbers(list).ok_or_else(bad)?),
    };
    Ok(ResultMeta {
        tool_use_id: object.string("tool_use_id").ok_or_else(bad)?.into(),
        original_id: object.string("original_id").map(Into::into),
        record: object.string("record").ok_or_else(bad)?.into(),
        shown,
        left_out,
        parts: object.get("parts").map_or(Some(Vec::new()), numbers).ok_or_else(bad)?,
    })
}

fn numbers(raw: &str) -> Option<Vec<u64>> {
    elements(raw)?.into_iter().map(|number| number.parse().ok()).collect()
}

pub(super) fn add(results: &[ResultMeta], members: Members) -> Members {
    if results.is_empty() { members } else { members.objects("results", results, add_one) }
}

fn add_one(members: Members, result: &ResultMeta) -> Members {
    let mut members = members
        .string("tool_use_id", &result.tool_use_id)
        .optional(Members::string, "original_id", result.original_id.as_deref())
        .string("record", &result.record);
    if let Some(shown) = &result.shown {
        members = shown.add_to(members);
    }
    members = match &result.left_out {
        LeftOut::Nothing => members,
        LeftOut::Parts(parts) => members.list("left_out", parts.iter().map(u64::to_string)),
        LeftOut::All => members.bool("left_out", true),
    };
    match result.parts.is_empty() {
        true => members,
        false => members.list("parts", result.parts.iter().map(u64::to_string)),
    }
}
