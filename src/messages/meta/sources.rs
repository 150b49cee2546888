//! The records of the blocks of a message, in `_meta`.
//!
//! Without an entry, the blocks of a message are those of its first record, in the same order. An entry is written
//! where that is not so, so most messages need none. Tool results are found by their ids instead.

use super::Meta;
use crate::id::Id;
use crate::json::write::Members;
use crate::json::{Object, elements};

/// The place of a block in the transcript.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BlockOrigin {
    /// The id of its record.
    pub record: Id,
    /// Its index in the content of the record.
    pub block: usize,
}

/// The place in the transcript of consecutive blocks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BlockSource {
    /// The index of the first of these blocks in the message.
    pub at: usize,
    /// The id of their record.
    pub record: Id,
    /// The index of the first of these blocks in the content of the record.
    pub block: usize,
}

impl Meta {
    /// Returns the place in the transcript of the block with this index. The block must not be a tool result.
    #[must_use]
    pub fn origin_of(&self, index: usize) -> BlockOrigin {
        match self.sources.iter().rev().find(|source| source.at <= index) {
            Some(source) => {
                let (record, block) = (source.record.clone(), source.block + index - source.at);
                BlockOrigin { record, block }
            }
            None => BlockOrigin { record: self.id.clone(), block: index },
        }
    }

    /// Sets the places of all blocks of the message.
    pub(in crate::messages) fn set_origins(&mut self, origins: &[BlockOrigin]) {
        self.sources.clear();
        for (at, origin) in origins.iter().enumerate() {
            self.add_source(at, &origin.record, origin.block);
        }
    }

    /// Adds an entry for the blocks from `at` on, if it is needed.
    pub(in crate::messages) fn add_source(&mut self, at: usize, record: &str, block: usize) {
        let known = self.origin_of(at);
        if *known.record != *record || known.block != block {
            self.sources.push(BlockSource { at, record: record.into(), block });
        }
    }

    /// Keeps the places of the blocks if the message is about to get another id.
    pub(super) fn keep_sources(&mut self) {
        if !self.id.is_empty() && self.sources.first().is_none_or(|first| first.at > 0) {
            let own = BlockSource { at: 0, record: self.id.clone(), block: 0 };
            self.sources.insert(0, own);
        }
    }

    /// Adds the places of the blocks of `other`, which follow the first `at` blocks of this message.
    pub(super) fn join_sources(&mut self, other: &Meta, at: usize) {
        self.sources.retain(|source| source.at < at);
        let begins = |sources: &[BlockSource]| sources.first().is_some_and(|first| first.at == 0);
        if at > 0 && !other.id.is_empty() && !begins(&other.sources) {
            self.add_source(at, &other.id, 0);
        }
        for source in &other.sources {
            self.add_source(at + source.at, &source.record, source.block);
        }
    }
}

pub(super) fn parse(meta: &Object<'_>) -> Result<Vec<BlockSource>, String> {
    match meta.get("sources").map(elements) {
        None => Ok(Vec::new()),
        Some(None) => Err("'_meta.sources' is not a list".to_owned()),
        Some(Some(list)) => list.into_iter().map(parse_one).collect(),
    }
}

fn parse_one(raw: &str) -> Result<BlockSource, String> {
    let bad = || "'_meta.sources' contains an invalid entry".to_owned();
    let object = Object::parse(raw).map_err(|_| bad())?;
    let index = |name: &str| usize::try_from(object.number(name).unwrap_or(0)).map_err(|_| bad());
    let record = object.string("record").ok_or_else(bad)?.into();
    Ok(BlockSource { at: index("at")?, record, block: index("block")? })
}

pub(super) fn add(sources: &[BlockSource], members: Members) -> Members {
    if sources.is_empty() { members } else { members.objects("sources", sources, add_one) }
}

fn add_one(members: Members, source: &BlockSource) -> Members {
    let members = members.number("at", source.at).string("record", &source.record);
    if source.block == 0 { members } else { members.number("block", source.block) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(id: &str, offset: u64) -> Meta {
        Meta { id: id.into(), offset, ..Meta::default() }
    }

    fn origin(record: &str, block: usize) -> BlockOrigin {
        BlockOrigin { record: record.into(), block }
    }

    #[test]
    fn blocks_of_one_record_need_no_entry() {
        let mut meta = meta("a", 0);
        meta.set_origins(&[origin("a", 0), origin("a", 1)]);
        assert!(meta.sources.is_empty());
        assert_eq!(meta.origin_of(1), origin("a", 1));
    }

    #[test]
    fn every_block_is_found_after_a_merge() {
        let all = [origin("a", 0), origin("a", 2), origin("b", 0), origin("c", 1)];
        let mut first = meta("a", 10);
        first.set_origins(&all[..2]);
        let mut second = meta("b", 20);
        second.set_origins(&all[2..]);
        first.join(second, Some(2));
        let found: Vec<BlockOrigin> = (0..4).map(|index| first.origin_of(index)).collect();
        assert_eq!(found, all);
        // A record that comes earlier in the file gives the message its id.
        let mut late = meta("z", 90);
        late.join(meta("a", 10), Some(1));
        assert_eq!((late.origin_of(0), late.origin_of(1)), (origin("z", 0), origin("a", 0)));
    }
}
