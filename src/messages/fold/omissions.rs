//! Omissions in a fold: replaces the blocks that they leave out.

use super::Fold;
use crate::json::quote;
use crate::messages::Message;
use crate::messages::meta::LeftOut;
use crate::record::Record;
use crate::record::content::{Block, Content};
use crate::record::omission::Omission;
use crate::shorten::stand_in;
use std::borrow::Cow;
use std::io;

/// The content of a result after its omissions.
pub(super) struct PartlyLeftOut<'a> {
    pub(super) content: Content<'a>,
    pub(super) left_out: LeftOut,
}

impl<'v, 'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'v, 'b, F> {
    /// Returns the omissions of a record.
    pub(super) fn omissions(&self, record: &Record<'_>) -> &'v [Omission] {
        let view = self.view;
        match view.omissions.is_empty() {
            true => &[],
            false => view.omissions.get(record.id.as_ref()).map_or(&[], Vec::as_slice),
        }
    }

    /// Marks the provider counts up to the omissions of this record as invalid. Those of results end the counts once the
    /// result is assigned to its call, which can come later.
    pub(super) fn end_counts_of_omissions(&mut self, record: &Record<'_>) {
        if self.omissions(record).iter().any(|omission| omission.tool_use_id.is_none()) {
            self.end_counts(self.changed_at(record));
        }
    }

    /// Replaces the text, images and documents that omissions leave out. Thinking is left for
    /// [`Fold::is_left_out`], and calls and results for the functions that add them.
    pub(super) fn left_out(&self, content: Content<'b>, record: &Record<'_>) -> Content<'b> {
        let omissions = self.omissions(record);
        if omissions.is_empty() {
            return content;
        }
        let of = |index: usize| omissions.iter().find(|omission| omission.is_block(index));
        match content {
            Content::Text(raw) => {
                let line = of(0).map(|omission| quote(&stand_in::line(omission, raw.len())));
                Content::Text(line.map_or(raw, Cow::Owned))
            }
            Content::Blocks(mut blocks) => {
                for (index, block) in blocks.iter_mut().enumerate() {
                    if let Some(stand_in) = of(index).and_then(|it| stand_in::of(block, it)) {
                        *block = stand_in;
                    }
                }
                Content::Blocks(blocks)
            }
        }
    }

    /// Returns true if an omission leaves out the block with this index.
    pub(super) fn is_left_out(&self, record: &Record<'_>, index: usize) -> bool {
        self.omissions(record).iter().any(|omission| omission.is_block(index))
    }

    /// Returns a call, without its input if an omission leaves that out.
    pub(super) fn left_out_call(
        &self,
        block: Block<'b>,
        index: usize,
        record: &Record<'_>,
    ) -> Block<'b> {
        let omission = self.omissions(record).iter().find(|omission| omission.is_block(index));
        omission.and_then(|omission| stand_in::of(&block, omission)).unwrap_or(block)
    }
}

/// Replaces what `omissions` leave out of the content of the result of call `id`. `places` has for each item its index
/// in the record.
pub(super) fn of_result<'a>(
    content: Content<'a>,
    places: &[u64],
    id: &str,
    omissions: &[Omission],
) -> PartlyLeftOut<'a> {
    let mut parts = Vec::new();
    let content = match content {
        Content::Text(_) => content,
        Content::Blocks(mut blocks) => {
            for (index, (part, place)) in blocks.iter_mut().zip(places).enumerate() {
                let place = usize::try_from(*place).unwrap_or(usize::MAX);
                if let Some(omission) = omissions.iter().find(|it| it.is_part(id, place)) {
                    *part = stand_in::of_part(part, omission);
                    parts.push(index as u64);
                }
            }
            Content::Blocks(blocks)
        }
    };
    let left_out = if parts.is_empty() { LeftOut::Nothing } else { LeftOut::Parts(parts) };
    PartlyLeftOut { content, left_out }
}
