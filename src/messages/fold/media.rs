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
use crate::shorten::stand_in;
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
            let what = format!("'{}' is a block of another API", stand_in::kind_of(block));
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
        let correction = match media::judge(&block.raw) {
            Ok(None) => return None,
            Ok(Some(correction)) if correction.pixels > self.pixels => {
                Err("is one of too many images to scale down".to_owned())
            }
            Ok(Some(correction)) => {
                self.pixels -= correction.pixels;
                correction.apply()
            }
            Err(why) => Err(why),
        };
        let kind = stand_in::kind_of(block);
        let reason = match correction {
            Ok(corrected) => {
                let what = format!("{kind} corrected: {}", corrected.summary("sent"));
                self.note(&rules::MEDIA_CORRECTED, record, what);
                let raw = corrected.block.into();
                return Some(Block { raw, kind: BlockKind::Media });
            }
            Err(why) => ["it ", &why].concat(),
        };
        self.note(&rules::MEDIA_LEFT_OUT, record, format!("{kind} left out: {reason}"));
        let record_id = record.id.to_string();
        let omission = Omission { record_id, kind, reason, ..Omission::default() };
        Some(Block::from_text(&stand_in::line(&omission, block.raw.len())))
    }
}

#[cfg(test)]
mod tests {
    use crate::input::Input;
    use crate::json::write::Members;
    use crate::media::encoded::encode;
    use crate::messages::rebuild::{RebuildOptions, from_inputs};

    #[test]
    fn the_work_for_images_is_bounded() {
        // The headers of images of 9,999 by 9,999 pixels. Neither has a picture.
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x27\x0f\0\0\x27\x0f\x08\0\0\0\0\
            \0\0\0\0\0\0\0\0IDAT\0\0\0\0\0\0\0\0IEND\0\0\0\0";
        let bmp = b"BM\x3C\0\0\0\0\0\0\0\x3C\0\0\0\x28\0\0\0\x0f\x27\0\0\x0f\x27\0\0\x01\0\x09";
        for (kind, file) in [("image/png", &png[..]), ("image/bmp", bmp)] {
            let source = |it: Members| {
                it.string("type", "base64").string("media_type", kind).string("data", &encode(file))
            };
            let image = Members::of_type("image").object("source", source).into_json();
            let record = Members::of_type("user").list("content", [image]).into_line();
            let input = Input::memory("t", record.repeat(12).into_bytes());
            let findings = from_inputs(&[input], &RebuildOptions::default()).unwrap().findings;
            let is_over = |message: &str| message.contains("too many images to scale down");
            let over: Vec<bool> = findings.iter().map(|found| is_over(&found.message)).collect();
            assert_eq!(over, [[false; 10].as_slice(), &[true; 2]].concat(), "{kind}");
        }
    }
}
