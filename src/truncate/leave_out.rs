//! Leaves blocks out of messages, and writes an omission record for each.

use crate::estimate::Tally;
use crate::json::write::Members;
use crate::json::{Object, quote};
use crate::messages::Message;
use crate::messages::meta::{LeftOut, ResultMeta};
use crate::record::content::{Block, BlockKind, Content};
use crate::record::omission::{Omission, one_line};
use crate::record::scale::Scale;
use crate::shorten::stand_in;
use std::collections::BTreeMap;

/// The place of a block in the messages, or of an item in the content of a tool result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockPlace {
    /// The index of the message.
    pub message: usize,
    /// The index of the block; 0 for content that is a string.
    pub block: usize,
    /// The index of the item in a result; `None` for the whole block.
    pub part: Option<usize>,
}

/// The blocks that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omissions {
    /// The number of blocks of each type.
    pub kinds: BTreeMap<String, usize>,
    /// The omissions whose records are known, in the order of the messages.
    pub records: Vec<Omission>,
}

impl Omissions {
    /// Returns what these omissions leave out.
    pub(super) fn of(omissions: impl IntoIterator<Item = Omission>) -> Omissions {
        let mut all = Omissions::default();
        for omission in omissions {
            all.add(omission);
        }
        all
    }

    /// Returns these omissions and further ones.
    pub(super) fn and(mut self, others: Omissions) -> Omissions {
        for (kind, count) in others.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
        self.records.extend(others.records);
        self
    }

    fn add(&mut self, omission: Omission) {
        *self.kinds.entry(omission.kind.clone()).or_default() += 1;
        self.records.extend(Some(omission).filter(|omission| !omission.record_id.is_empty()));
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.kinds.values().sum()
    }

    /// Returns the records, without id and time.
    #[must_use]
    pub fn to_records(&self, scale: Option<Scale>) -> Vec<String> {
        let record = |omission: &Omission| {
            let members = omission.add_to(Members::of_type("omission"));
            Scale::add_to(scale, members).into_json()
        };
        self.records.iter().map(record).collect()
    }

    /// Leaves out the blocks at `places`, except those that are left out already. `tally` follows the change.
    pub fn leave_out(
        &mut self,
        messages: &mut [Message<'_>],
        places: &[BlockPlace],
        reason: &str,
        tally: &mut Tally,
    ) {
        let mut places = places.to_vec();
        places.sort_unstable();
        places.dedup();
        let (reason, mut made) = (one_line(reason), Vec::new());
        // Thinking leaves no line, so the blocks after it move.
        for place in places.iter().rev() {
            let Some(message) = messages.get_mut(place.message) else { continue };
            made.extend(match place.part {
                Some(part) => leave_out_part(message, *place, part, &reason, tally),
                None => leave_out_block(message, *place, &reason, tally),
            });
        }
        made.into_iter().rev().for_each(|omission| self.add(omission));
        if let Some(first) = places.first() {
            let later = messages.iter_mut().skip(first.message);
            later.filter_map(|message| message.meta.as_mut()).for_each(|meta| meta.drop_count());
        }
    }

    /// Describes what was left out: `2 images, 1 document`.
    #[must_use]
    pub fn describe(&self) -> String {
        let one = |(kind, count): (&String, &usize)| {
            let (what, s) = (stand_in::what(kind), if *count == 1 { "" } else { "s" });
            match what {
                "text" | "thinking" => format!("{count} block{s} of {what}"),
                "input" => format!("the input of {count} call{s}"),
                _ => format!("{count} {what}{s}"),
            }
        };
        self.kinds.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn leave_out_block(
    message: &mut Message<'_>,
    place: BlockPlace,
    reason: &str,
    tally: &mut Tally,
) -> Option<Omission> {
    if let Content::Text(raw) = &message.content {
        let old = Block::parse(Members::of_type("text").raw("text", raw).into_json()).ok()?;
        let omission = of_block(message, place, &old, reason)?;
        let line = quote(&stand_in::line(&omission, raw.len()));
        let new = Block::parse(Members::of_type("text").raw("text", &line).into_json()).ok()?;
        tally.replace(place.message, &old, &new);
        message.content = Content::Text(line.into());
        return Some(omission);
    }
    let old = message.content.blocks().get(place.block)?.clone().into_owned();
    let omission = match &old.kind {
        BlockKind::ToolResult { id } => {
            let meta = result_meta(message, id);
            if is_left_out(&old) || meta.is_some_and(|meta| meta.left_out == LeftOut::All) {
                return None;
            }
            of_result(message, id, None, "tool_result", reason)
        }
        _ => of_block(message, place, &old, reason)?,
    };
    match stand_in::of(&old, &omission) {
        Some(new) => {
            tally.replace(place.message, &old, &new);
            *message.content.blocks_mut().get_mut(place.block)? = new;
        }
        None => {
            tally.replace(place.message, &old, &Block::from_text(""));
            remove(message, place.block);
        }
    }
    if let BlockKind::ToolResult { id } = &old.kind {
        note_result(message, id, |meta| meta.left_out = LeftOut::All);
    }
    Some(omission)
}

/// Leaves out an item of a result. An item that is text is left out together with the rest of the result, because the
/// text of a result is shortened as a whole.
fn leave_out_part(
    message: &mut Message<'_>,
    place: BlockPlace,
    part: usize,
    reason: &str,
    tally: &mut Tally,
) -> Option<Omission> {
    let old = message.content.blocks().get(place.block)?.clone().into_owned();
    let BlockKind::ToolResult { id } = &old.kind else {
        return leave_out_block(message, BlockPlace { part: None, ..place }, reason, tally);
    };
    let object = Object::parse(&old.raw).ok()?;
    let Ok(Content::Blocks(mut items)) = Content::parse(object.get("content")?) else {
        return leave_out_block(message, BlockPlace { part: None, ..place }, reason, tally);
    };
    let item = items.get(part)?;
    if result_meta(message, id).is_some_and(|meta| meta.is_left_out(part))
        || stand_in::is_line(item)
    {
        return None;
    }
    if item.kind == BlockKind::Text {
        return leave_out_block(message, BlockPlace { part: None, ..place }, reason, tally);
    }
    let omission = of_result(message, id, Some(part), &stand_in::kind_of(item), reason);
    items[part] = stand_in::of_part(item, &omission);
    let raw = object.with("content", &Content::Blocks(items).to_json()).into();
    let new = Block { raw, kind: old.kind.clone() };
    tally.replace(place.message, &old, &new);
    *message.content.blocks_mut().get_mut(place.block)? = new;
    note_result(message, id, |meta| meta.left_out.add(part as u64));
    Some(omission)
}

/// Returns the omission of a block that is not a result. `None` if it is left out already.
fn of_block(
    message: &Message<'_>,
    place: BlockPlace,
    block: &Block<'_>,
    reason: &str,
) -> Option<Omission> {
    if is_left_out(block) {
        return None;
    }
    let origin = message.meta.as_ref().map(|meta| meta.origin_of(place.block)).unwrap_or_default();
    Some(Omission {
        record_id: origin.record.to_string(),
        block: Some(origin.block as u64),
        kind: stand_in::kind_of(block),
        reason: reason.to_owned(),
        ..Omission::default()
    })
}

fn of_result(
    message: &Message<'_>,
    id: &str,
    part: Option<usize>,
    kind: &str,
    reason: &str,
) -> Omission {
    let meta = result_meta(message, id);
    Omission {
        record_id: meta.map(|meta| meta.record.to_string()).unwrap_or_default(),
        tool_use_id: Some(meta.map_or(id, |meta| meta.id_on_disk()).to_owned()),
        part: part.map(|part| meta.map_or(part as u64, |meta| meta.part_on_disk(part))),
        kind: kind.to_owned(),
        reason: reason.to_owned(),
        ..Omission::default()
    }
}

fn result_meta<'m>(message: &'m Message<'_>, id: &str) -> Option<&'m ResultMeta> {
    message.meta.as_ref()?.results.iter().find(|result| *result.tool_use_id == *id)
}

fn note_result(message: &mut Message<'_>, id: &str, change: impl Fn(&mut ResultMeta)) {
    let results = message.meta.iter_mut().flat_map(|meta| &mut meta.results);
    results.filter(|result| *result.tool_use_id == *id).for_each(change);
}

/// Removes a block, unless it is the only one, because a message cannot be empty.
fn remove(message: &mut Message<'_>, index: usize) {
    let Content::Blocks(blocks) = &mut message.content else { return };
    if blocks.len() > 1 {
        blocks.remove(index);
    }
}

/// Returns true if an omission has replaced the block.
fn is_left_out(block: &Block<'_>) -> bool {
    match &block.kind {
        BlockKind::ToolUse { .. } => {
            let input = block.member("input").and_then(|raw| Object::parse(raw).ok());
            let line = input.and_then(|input| Some(input.string(stand_in::INPUT)?.into_owned()));
            line.is_some_and(|line| stand_in::reads_like_line(&line))
        }
        BlockKind::ToolResult { .. } => {
            let content = block.result_content();
            matches!(content, Content::Text(_)) && stand_in::reads_like_line(&content.text())
        }
        _ => block.kind == BlockKind::Text && stand_in::is_line(block),
    }
}
