//! Tool results in a fold: applies truncations, and assigns each result to its call.

use super::Fold;
use crate::finding::rules;
use crate::id::Id;
use crate::json::{self, Object, quote};
use crate::messages::Message;
use crate::messages::meta::{Meta, ResultMeta};
use crate::messages::pending::{EarlyResult, PendingResult, RecordName};
use crate::record::Record;
use crate::record::block_text::BlockText;
use crate::record::content::{Block, BlockKind, Content};
use crate::record::truncation::KeptSpan;
use crate::shorten;
use std::borrow::Cow;
use std::io;

/// The text of an empty result.
pub const NO_OUTPUT: &str = "(no output)";

impl<'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'_, 'b, F> {
    /// Adds a `tool_result` record: the result of call `id`, whose content is JSON.
    pub(super) fn tool_result(
        &mut self,
        id: Cow<'b, str>,
        content: Cow<'b, str>,
        is_error: bool,
        meta: Option<Box<Meta>>,
        record: &Record<'_>,
    ) {
        let (shown, changed) = self.show_result(Some(&content), &id, record);
        let content = changed.map_or(content, Cow::Owned);
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
        let (shown, changed) = self.show_result(object.get("content"), id, record);
        let raw = match changed {
            Some(content) => object.with("content", &content).into(),
            None => block.raw.clone(),
        };
        self.answer(id.clone(), raw, shown, meta, record);
    }

    fn answer(
        &mut self,
        id: Id,
        raw: BlockText<'b>,
        shown: Option<KeptSpan>,
        mut meta: Option<Box<Meta>>,
        record: &Record<'_>,
    ) {
        if let Some(meta) = &mut meta {
            meta.drop_count();
            let (tool_use_id, record) = (id.clone(), meta.id.clone());
            meta.results = vec![ResultMeta { tool_use_id, original_id: None, record, shown }];
        }
        let changed_at = self.changed_at(record);
        self.assign(PendingResult { id, raw, meta, changed_at }, record);
    }

    /// Decides how a result is shown: shortened by its truncation if there is one, and never empty. Returns the kept
    /// span of an applied truncation, and the JSON of the content if it is changed.
    fn show_result(
        &mut self,
        raw: Option<&str>,
        id: &str,
        record: &Record<'_>,
    ) -> (Option<KeptSpan>, Option<String>) {
        let view = self.view;
        let truncation = match view.truncations.is_empty() {
            true => None,
            false => view.truncations.get(&(record.id.to_string(), id.to_owned())),
        };
        let content = raw.and_then(|raw| Content::parse(raw).ok());
        let (content, is_repaired) = repair_result(content.unwrap_or(Content::nothing()));
        let repaired = |content: &Content<'_>| is_repaired.then(|| content.to_json());
        let Some(shown) = truncation else { return (None, repaired(&content)) };
        let text = shorten::ResultText::whole(&shorten::text_of(&content));
        match shorten::show(&content, &text, shown, Some(record.id.as_ref())) {
            Some(short) => (Some(shown.clone()), Some(short.to_json())),
            None => {
                let what = "a truncation does not fit this result and is not applied";
                self.note(&rules::TRUNCATION_MISMATCH, record, what);
                (None, repaired(&content))
            }
        }
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

/// Repairs a result's content so that it can be sent: removes blank text blocks, and gives an empty result a fixed
/// text. Returns true if the content was changed.
fn repair_result<'a>(content: Content<'a>) -> (Content<'a>, bool) {
    let no_output = || (Content::Text(Cow::Owned(quote(NO_OUTPUT))), true);
    match content {
        Content::Text(raw) => match json::is_blank(&raw) {
            true => no_output(),
            false => (Content::Text(raw), false),
        },
        Content::Blocks(mut blocks) => {
            let count = blocks.len();
            blocks.retain(|block| !block.is_blank());
            match blocks.len() {
                0 => no_output(),
                kept => (Content::Blocks(blocks), kept < count),
            }
        }
    }
}
