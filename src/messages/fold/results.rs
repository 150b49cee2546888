//! Tool results in a fold: applies truncations, and assigns each result to its call.

use super::{Fold, omissions};
use crate::finding::rules;
use crate::id::Id;
use crate::json::{self, Object, quote};
use crate::messages::Message;
use crate::messages::meta::{LeftOut, Meta, ResultMeta};
use crate::messages::pending::{EarlyResult, PendingResult, RecordName};
use crate::record::Record;
use crate::record::block_text::BlockText;
use crate::record::content::{Block, BlockKind, Content};
use crate::record::truncation::KeptSpan;
use crate::shorten::{self, stand_in};
use std::borrow::Cow;
use std::io;

/// The text of an empty result.
pub const NO_OUTPUT: &str = "(no output)";

impl<'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'_, 'b, F> {
    /// Adds a `tool_result` record: the result of call `id`, whose content is JSON, and its blocks if they were read.
    pub(super) fn tool_result(
        &mut self,
        id: Cow<'b, str>,
        (content, blocks): (Cow<'b, str>, Option<Content<'b>>),
        is_error: bool,
        meta: Option<Box<Meta>>,
        record: &Record<'_>,
    ) {
        let mut shown = self.show_result(Some(&content), blocks, &id, record);
        let content = shown.changed.take().map_or(content, Cow::Owned);
        // The call's own id is shared, because a new one would take memory.
        let known = self.calls.get_key_value(&*id).map(|(id, _)| id.clone());
        let id = known.unwrap_or_else(|| Id::from(id));
        let raw = BlockText::of_result(&id, content, is_error);
        self.answer(id, raw, shown, meta, record);
    }

    /// Adds a result that is a block of a user record.
    pub(super) fn result_block(
        &mut self,
        block: Block<'b>,
        meta: Option<Box<Meta>>,
        record: &Record<'_>,
    ) {
        let BlockKind::ToolResult { id } = &block.kind else { return };
        let Ok(object) = Object::parse(&block.raw) else { return };
        let mut shown = self.show_result(object.get("content"), None, id, record);
        let raw = match shown.changed.take() {
            Some(content) => object.with("content", &content).into(),
            None => block.raw.clone(),
        };
        self.answer(id.clone(), raw, shown, meta, record);
    }

    fn answer(
        &mut self,
        id: Id,
        raw: BlockText<'b>,
        shown: ShownResult,
        mut meta: Option<Box<Meta>>,
        record: &Record<'_>,
    ) {
        if let Some(meta) = &mut meta {
            meta.drop_count();
            let (tool_use_id, record) = (id.clone(), meta.id.clone());
            let ShownResult { shown, left_out, parts, .. } = shown;
            let original_id = None;
            let result = ResultMeta { tool_use_id, original_id, record, shown, left_out, parts };
            meta.results = vec![result];
        }
        let changed_at = self.changed_at(record);
        self.assign(PendingResult { id, raw, meta, changed_at }, record);
    }

    /// Decides how a result is shown: shortened by its truncation if there is one, without what its omissions leave out,
    /// and never empty.
    fn show_result<'r>(
        &mut self,
        raw: Option<&'r str>,
        blocks: Option<Content<'r>>,
        id: &str,
        record: &Record<'_>,
    ) -> ShownResult {
        let (view, omissions) = (self.view, self.omissions(record));
        if let Some(whole) = omissions.iter().find(|omission| omission.is_result(id)) {
            let line = quote(&stand_in::line(whole, raw.map_or(0, str::len)));
            let (changed, left_out) = (Some(line), LeftOut::All);
            return ShownResult { changed, left_out, ..ShownResult::default() };
        }
        let truncation = match view.truncations.is_empty() {
            true => None,
            false => view.truncations.get(&(record.id.to_string(), id.to_owned())),
        };
        let content = blocks.or_else(|| Content::parse(raw?).ok());
        let (content, is_foreign) = self.own_forms(content.unwrap_or(Content::nothing()), record);
        let (content, mut places) = repair_result(content);
        let (mut shown, is_repaired) = (None, places.is_some() || is_foreign);
        let mut content = content;
        if let Some(truncation) = truncation {
            let text = shorten::ResultText::whole(&shorten::text_of(&content));
            match shorten::show(&content, &text, truncation, Some(record.id.as_ref())) {
                Some(short) => {
                    places = moved(&content, places, &short);
                    (content, shown) = (short, Some(truncation.clone()));
                }
                None => {
                    let what = "a truncation does not fit this result and is not applied";
                    self.note(&rules::TRUNCATION_MISMATCH, record, what);
                }
            }
        }
        let mut left_out = LeftOut::Nothing;
        if !omissions.is_empty() {
            let same = || (0..content.blocks().len() as u64).collect();
            let places = places.clone().unwrap_or_else(same);
            let shown = omissions::of_result(content, &places, id, omissions);
            (content, left_out) = (shown.content, shown.left_out);
        }
        let fitting = self.fitting_parts(&content, &mut left_out, record);
        let is_fitted = fitting.is_some();
        content = fitting.unwrap_or(content);
        let is_changed =
            is_repaired || shown.is_some() || left_out != LeftOut::Nothing || is_fitted;
        let changed = is_changed.then(|| content.to_json());
        ShownResult { shown, changed, left_out, parts: places.unwrap_or_default() }
    }

    /// Assigns a result to the newest pending call with its id. If no call with this id has been read, the result waits
    /// for one. A second result is left out, and so is one whose call was already laid out.
    fn assign(&mut self, answer: PendingResult<'b>, record: &Record<'_>) {
        let id = answer.id.clone();
        let newest_call = self.calls.get(&id).map(|(number, call)| (number - self.first, *call));
        match newest_call {
            Some((at, call)) if self.pending[at].calls[call].answer.is_none() => {
                self.end_counts(answer.changed_at);
                let message = &mut self.pending[at];
                message.reply.end();
                message.calls[call].answer = Some(answer);
                let early = message.calls[call].early.take();
                self.note_orphan(early);
                if at + 1 < self.pending.len() {
                    // Later counts were made with a fixed text in place of this result.
                    let later = self
                        .pending
                        .range_mut(at + 1..)
                        .filter_map(|message| message.meta.as_mut());
                    later.for_each(|meta| meta.drop_count());
                    let what = format!("result of call '{id}' comes late; moved to its call");
                    self.note(&rules::LATE_RESULT, record, what);
                }
            }
            None if !self.layout.ids.is_known(&id) => {
                let answer = answer.into_owned();
                let source = RecordName::of(record);
                self.early.push(Box::new(EarlyResult { answer, source }));
            }
            _ => {
                let what =
                    format!("result of call '{id}' is a duplicate or comes too late; left out");
                self.note(&rules::DUPLICATE_RESULT, record, what);
            }
        }
    }

    /// Adds a finding for a result that comes before its call and was not assigned to it.
    pub(super) fn note_orphan(&mut self, early: Option<Box<EarlyResult>>) {
        if let Some(early) = early {
            let id = &early.answer.id;
            let what = format!("result of call '{id}' comes before the call; left out");
            self.note_at(&rules::ORPHAN_RESULT, early.source, what);
        }
    }
}

/// A result as it is shown.
#[derive(Default)]
struct ShownResult {
    /// The kept span, if a truncation is applied.
    shown: Option<KeptSpan>,
    /// The JSON of the content, if it differs from the record.
    changed: Option<String>,
    /// The parts that omissions leave out.
    left_out: LeftOut,
    /// For each item, its index in the record; empty if nothing was moved.
    parts: Vec<u64>,
}

/// Repairs a result's content so that it can be sent: removes blank text blocks, and gives an empty result a fixed
/// text. If the content was changed, also returns for each block that is left its index before.
fn repair_result(content: Content<'_>) -> (Content<'_>, Option<Vec<u64>>) {
    let no_output = || (Content::Text(Cow::Owned(quote(NO_OUTPUT))), Some(Vec::new()));
    match content {
        Content::Text(raw) => match json::is_blank(&raw) {
            true => no_output(),
            false => (Content::Text(raw), None),
        },
        Content::Blocks(mut blocks) if blocks.iter().any(Block::is_blank) => {
            let kept = blocks.iter().enumerate().filter(|(_, block)| !block.is_blank());
            let places: Vec<u64> = kept.map(|(index, _)| index as u64).collect();
            blocks.retain(|block| !block.is_blank());
            match blocks.len() {
                0 => no_output(),
                _ => (Content::Blocks(blocks), Some(places)),
            }
        }
        Content::Blocks(blocks) if blocks.is_empty() => no_output(),
        blocks @ Content::Blocks(_) => (blocks, None),
    }
}

/// Returns the index in the record of each item of a shortened result. Shortening can drop text, but keeps everything
/// else in its order.
fn moved(before: &Content<'_>, places: Option<Vec<u64>>, after: &Content<'_>) -> Option<Vec<u64>> {
    let (before, after) = (before.blocks(), after.blocks());
    if before.len() == after.len() {
        return places;
    }
    let is_text = |block: &Block<'_>| block.kind == BlockKind::Text;
    let mut next = 0;
    let find = |block: &Block<'_>| {
        let same = |(_, old): &(usize, &Block<'_>)| is_text(old) == is_text(block);
        let found = before.iter().enumerate().skip(next).find(same);
        let index = found.map_or(next, |(index, _)| index);
        next = index + 1;
        places.as_ref().and_then(|places| places.get(index).copied()).unwrap_or(index as u64)
    };
    Some(after.iter().map(find).collect())
}
