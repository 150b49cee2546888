//! Tool results in the messages: finds them, shortens their text, and leaves out their images.

use crate::estimate::{Gauge, Tally};
use crate::id::Id;
use crate::json::Object;
use crate::json::write::Members;
use crate::messages::Message;
use crate::messages::meta::{LeftOut, ResultMeta};
use crate::record::content::{Block, BlockKind, Content};
use crate::record::omission::Omission;
use crate::record::scale::Scale;
use crate::record::truncation::KeptSpan;
use crate::shorten::{self, ResultText, media, stand_in};
use std::collections::HashMap;

/// The reason in the lines that replace images and documents.
const REASON: &str = "the request had too many tokens";

/// A tool result in the messages, with its text as it was before this truncation.
pub(super) struct ReadResult<'a> {
    /// The index of its message.
    pub message: usize,
    /// The index of its block in the message.
    index: usize,
    /// The content, with its text as it was before this truncation. A line replaces each image and document that is
    /// left out.
    content: Content<'a>,
    text: ResultText,
    /// The current length of the text, in characters.
    pub length: usize,
    pub meta: Option<ResultMeta>,
    /// The kept part, if it has changed.
    pub shown: Option<KeptSpan>,
    /// The names of the images and documents that its truncation record leaves out. Later versions write omissions instead.
    media: Vec<String>,
    /// The images and documents that this truncation left out.
    pub omissions: Vec<Omission>,
    /// The indices of the items that are left out, by this truncation or before.
    pub parts: Vec<u64>,
    /// True if this truncation shortened its text.
    pub is_shorter: bool,
}

/// A tool result in the messages. It is read when it is needed, because most results need not be shortened.
pub(super) struct FoundResult<'a> {
    /// The index of its message.
    pub message: usize,
    /// The index of its block in the message.
    index: usize,
    /// True if the message has `_meta`.
    has_meta: bool,
    /// The entry about the result in that `_meta`.
    meta: Option<ResultMeta>,
    /// The result; `None` before it is read, and `Some(None)` if it cannot be shortened.
    read: Option<Option<ReadResult<'a>>>,
}

/// Finds the results that may be shortened: oldest first, those of the current turn last.
pub(super) fn find<'a>(messages: &[Message<'a>]) -> Vec<FoundResult<'a>> {
    let mut found = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        if message.meta.as_ref().is_some_and(|meta| meta.pin) {
            continue;
        }
        let known = known_results(message);
        for (index, block) in message.blocks().enumerate() {
            let BlockKind::ToolResult { id } = &block.kind else { continue };
            let (has_meta, meta) = (message.meta.is_some(), known.get(id).copied().cloned());
            found.push(FoundResult { message: number, index, has_meta, meta, read: None });
        }
    }
    let turn = messages.iter().rposition(Message::is_from_user).unwrap_or(0);
    found.sort_by_key(|result| result.message > turn);
    found
}

/// Returns the entries about results in the message's `_meta`, by the id of the call.
fn known_results<'m>(message: &'m Message<'_>) -> HashMap<&'m Id, &'m ResultMeta> {
    let results = message.meta.iter().flat_map(|meta| meta.results.iter().rev());
    results.map(|result| (&result.tool_use_id, result)).collect()
}

impl<'a> FoundResult<'a> {
    /// Returns the current block.
    pub fn block<'m>(&self, messages: &'m [Message<'a>]) -> &'m Block<'a> {
        &messages[self.message].content.blocks()[self.index]
    }

    /// Returns the result; `None` if it cannot be shortened. The first call reads the result from `messages`, so it
    /// must come before any change to the result; later calls return what was read.
    pub fn read(&mut self, messages: &[Message<'a>]) -> Option<&mut ReadResult<'a>> {
        if self.read.is_none() {
            self.read = Some(self.read_block(self.block(messages)));
        }
        self.read.as_mut()?.as_mut()
    }

    /// Returns the result if it was read and can be shortened.
    pub fn into_read(self) -> Option<ReadResult<'a>> {
        self.read.flatten()
    }

    fn read_block(&self, block: &Block<'a>) -> Option<ReadResult<'a>> {
        let FoundResult { message, index, has_meta, ref meta, .. } = *self;
        if meta.as_ref().is_some_and(|meta| meta.left_out == LeftOut::All) {
            return None;
        }
        let shown = meta.as_ref().and_then(|meta| meta.shown.as_ref());
        let known = has_meta.then(|| shown.map_or(&[][..], |shown| &shown.media));
        let record = meta.as_ref().map(|meta| meta.record.as_ref());
        let mut content = media::set_aside(content(block)?, known, record);
        for (part, item) in content.blocks_mut().iter_mut().enumerate() {
            let is_known = meta.as_ref().is_some_and(|meta| meta.is_left_out(part));
            if is_known
                || !has_meta && item.text().is_some_and(|text| stand_in::reads_like_line(&text))
            {
                item.kind = BlockKind::Other;
            }
        }
        let aside = content.blocks().iter().filter(|block| block.kind == BlockKind::Other);
        let media = aside.filter_map(media::name).collect();
        let current = shorten::text_of(&content);
        let length = current.chars().count();
        let text = match shown {
            Some(shown) => ResultText::shortened(&current, shown, record)?,
            None if has_meta => ResultText::whole(&current),
            None => ResultText::guess(&current),
        };
        let (meta, shown, is_shorter) = (meta.clone(), None, false);
        let (omissions, parts) = (Vec::new(), Vec::new());
        Some(ReadResult {
            message,
            index,
            content,
            text,
            length,
            meta,
            shown,
            media,
            omissions,
            parts,
            is_shorter,
        })
    }
}

fn content<'a>(block: &Block<'a>) -> Option<Content<'a>> {
    if let Some(raw) = block.raw.borrowed() {
        return Content::parse(Object::parse(raw).ok()?.get("content")?).ok();
    }
    let object = Object::parse(&block.raw).ok()?;
    Some(Content::parse(object.get("content")?).ok()?.into_owned())
}

impl<'a> ReadResult<'a> {
    /// Returns the current block.
    pub fn block<'m>(&self, messages: &'m [Message<'a>]) -> &'m Block<'a> {
        &messages[self.message].content.blocks()[self.index]
    }

    /// Shortens the result to `max` characters. Always shortens the text as it was before this truncation, so repeated
    /// calls give the same text as the last one alone. With `must_gain`, the result is changed only if that also saves
    /// tokens.
    pub fn shorten(
        &mut self,
        messages: &mut [Message<'a>],
        max: usize,
        head_ratio: f64,
        must_gain: bool,
        tally: &mut Tally,
    ) {
        if self.length <= max {
            return;
        }
        let Some(cut) = shorten::plan(&self.text, max, head_ratio, self.record_id()) else {
            return;
        };
        let shown = KeptSpan { media: self.media.clone(), ..cut };
        let Some(short) = self.show(&shown) else { return };
        let length = shorten::text_of(&short).chars().count();
        let Some(changed) = self.with_content(messages, &short) else { return };
        // A marker can have fewer characters but more tokens than the text that it replaces.
        let gains = !must_gain || tally.is_smaller(&changed, self.block(messages));
        if length < self.length && gains {
            self.put(messages, changed, tally);
            (self.length, self.shown, self.is_shorter) = (length, Some(shown), true);
        }
    }

    /// Leaves out the result's next image or document that has more tokens than the line that replaces it. Returns
    /// `false` if there is none.
    pub fn leave_out_next(
        &mut self,
        messages: &mut [Message<'a>],
        gauge: Gauge,
        tally: &mut Tally,
    ) -> bool {
        let items = self.content.blocks().iter().enumerate();
        let next =
            items.filter(|(_, item)| item.kind == BlockKind::Media).find_map(|(at, item)| {
                let omission = self.omission(messages, at, item);
                let line = stand_in::of_part(item, &omission);
                (gauge.block(item) > gauge.block(&line)).then_some((at, omission, line))
            });
        let Some((at, omission, line)) = next else { return false };
        let shown = self.shown.clone().unwrap_or_else(|| self.text.shown());
        let shown = KeptSpan { media: self.media.clone(), ..shown };
        let Content::Blocks(own) = &mut self.content else { return false };
        own[at] = line;
        let Some(short) = self.show(&shown) else { return false };
        let Some(changed) = self.with_content(messages, &short) else { return false };
        let is_line = |item: &Block<'_>| item.kind == BlockKind::Other && stand_in::is_line(item);
        let lines = short.blocks().iter().enumerate().filter(|(_, item)| is_line(item));
        self.parts = lines.map(|(at, _)| at as u64).collect();
        self.omissions.push(omission);
        self.put(messages, changed, tally);
        true
    }

    /// Returns the omission of the item with this index in the content as it was before this truncation.
    fn omission(&self, messages: &[Message<'a>], at: usize, item: &Block<'_>) -> Omission {
        let id = match &self.block(messages).kind {
            BlockKind::ToolResult { id } => id.clone(),
            _ => Id::default(),
        };
        let meta = self.meta.as_ref();
        Omission {
            record_id: meta.map(|meta| meta.record.to_string()).unwrap_or_default(),
            tool_use_id: Some(meta.map_or(&id, ResultMeta::id_on_disk).to_string()),
            part: Some(meta.map_or(at as u64, |meta| meta.part_on_disk(at))),
            kind: stand_in::kind_of(item),
            reason: REASON.to_owned(),
            ..Omission::default()
        }
    }

    fn record_id(&self) -> Option<&str> {
        self.meta.as_ref().map(|meta| meta.record.as_ref())
    }

    fn show(&self, shown: &KeptSpan) -> Option<Content<'a>> {
        shorten::show(&self.content, &self.text, shown, self.record_id())
    }

    /// Returns the result's block with this content.
    fn with_content(&self, messages: &[Message<'a>], content: &Content<'_>) -> Option<Block<'a>> {
        let block = self.block(messages);
        let raw = Object::parse(&block.raw).ok()?.with("content", &content.to_json()).into();
        Some(Block { raw, kind: block.kind.clone() })
    }

    /// Replaces the result's block in the messages.
    fn put(&self, messages: &mut [Message<'a>], changed: Block<'a>, tally: &mut Tally) {
        let block = &mut messages[self.message].content.blocks_mut()[self.index];
        tally.replace(self.message, block, &changed);
        *block = changed;
    }

    /// Returns true if this truncation changed the result.
    pub fn is_changed(&self) -> bool {
        self.is_shorter || !self.omissions.is_empty()
    }

    /// Returns the truncation record, if the result has changed and its record is known. `scale` preserves the ratio
    /// of the provider's counts to the estimate, because this record makes those counts invalid.
    pub fn record(&self, scale: Option<Scale>) -> Option<String> {
        let (meta, shown) = (self.meta.as_ref()?, self.shown.as_ref()?);
        let id = meta.original_id.as_ref().unwrap_or(&meta.tool_use_id);
        let record = Members::of_type("truncation").string("tool_use_id", id);
        let record = shown.add_to(record.string("record_id", &meta.record));
        Some(Scale::add_to(scale, record).into_json())
    }
}
