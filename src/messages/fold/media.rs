//! Images and documents in a fold: each is corrected, or a line of text takes its place. A block stays one block, and an
//! item of a result stays one item, because omissions name them by their index.

use super::Fold;
use crate::finding::rules;
use crate::messages::Message;
use crate::messages::meta::LeftOut;
use crate::record::Record;
use crate::record::content::{Block, BlockKind, Content};
use crate::record::omission::Omission;
use crate::rules::{media, parts};
use crate::shorten::omit;
use std::io;

impl<'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'_, 'b, F> {
    /// Returns the content with blocks in the form of other APIs converted, and true if there were some.
    pub(super) fn own_forms<'c>(
        &mut self,
        mut content: Content<'c>,
        record: &Record<'_>,
    ) -> (Content<'c>, bool) {
        let mut is_changed = false;
        for block in content.blocks_mut().iter_mut().filter(|it| it.kind == BlockKind::Other) {
            let own = parts::own_form(&block.raw).and_then(|own| Block::parse(own).ok());
            let Some(own) = own else { continue };
            let what = format!("'{}' is a block of another API", omit::kind_of(block));
            self.note(&rules::FOREIGN_BLOCK, record, what);
            (*block, is_changed) = (own, true);
        }
        (content, is_changed)
    }

    /// Returns the content of a prompt with images and documents that providers accept.
    pub(super) fn fitting_media(
        &mut self,
        content: Content<'b>,
        record: &Record<'_>,
    ) -> Content<'b> {
        let (content, _) = self.own_forms(content, record);
        let Content::Blocks(mut blocks) = content else { return content };
        for block in blocks.iter_mut().filter(|block| block.kind == BlockKind::Media) {
            if let Some(fitting) = self.fitting(block, record) {
                *block = fitting;
            }
        }
        Content::Blocks(blocks)
    }

    /// Returns the content of a result with images and documents that providers accept, or `None` if nothing was changed.
    /// Lines that take the place of an item are added to `left_out`, because they are not text of the result.
    pub(super) fn fitting_parts(
        &mut self,
        content: &Content<'_>,
        left_out: &mut LeftOut,
        record: &Record<'_>,
    ) -> Option<Content<'static>> {
        let mut changed = Vec::new();
        let items = content.blocks().iter().enumerate();
        for (index, item) in items.filter(|(_, item)| item.kind == BlockKind::Media) {
            changed.extend(self.fitting(item, record).map(|fitting| (index, fitting)));
        }
        if changed.is_empty() {
            return None;
        }
        let mut content = content.clone().into_owned();
        for (index, fitting) in changed {
            if fitting.kind == BlockKind::Text {
                left_out.add(index as u64);
            }
            content.blocks_mut()[index] = fitting;
        }
        Some(content)
    }

    /// Returns the corrected block, or a line of text that says what it was. `None` if the block can be sent as it is.
    fn fitting(&mut self, block: &Block<'_>, record: &Record<'_>) -> Option<Block<'static>> {
        let kind = omit::kind_of(block);
        let reason =
            match media::judge(&block.raw).map(|judged| judged.map(media::Correction::apply)) {
                Ok(None) => return None,
                Ok(Some(Ok(corrected))) => {
                    let what = format!("{kind} corrected: {}", corrected.what);
                    self.note(&rules::MEDIA_CORRECTED, record, what);
                    let raw = corrected.block.into();
                    return Some(Block { raw, kind: BlockKind::Media });
                }
                Err(why) | Ok(Some(Err(why))) => ["it ", &why].concat(),
            };
        self.note(&rules::MEDIA_LEFT_OUT, record, format!("{kind} left out: {reason}"));
        let record_id = record.id.to_string();
        let omission = Omission { record_id, kind, reason, ..Omission::default() };
        Some(Block::from_text(&omit::line(&omission, block.raw.len())))
    }
}
