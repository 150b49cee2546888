//! The fold of records into messages: merges the records of a reply, pairs calls with results, alternates roles.
//!
//! Records are read in file order into *pending messages*, one for each reply and each run of user records. A result is
//! assigned to the nearest call before it that has its id. If there is none, the result waits for the next call with
//! its id. That call takes the waiting result once the next message begins, unless another result has answered the call
//! by then. A result does not wait if a call with its id has been laid out already.
//!
//! Pending messages are then laid out as messages. The results of a reply come together right after it, in the order of
//! the calls, before any text from the user. A record that fits nowhere (a result without a call, a second result) is
//! left out and reported as a finding. A call that was never answered gets a result with a fixed text, unless it is at
//! the end of the conversation.
//!
//! The messages depend only on the records and their order in the file, never on how they are read. Appended records
//! other than view records change only the last message, except that a late result replaces the fixed text of its call.

mod calls;
mod media;
mod omissions;
mod results;

use crate::finding::rules::{self, Rule};
use crate::finding::{Finding, Findings};
use crate::id::{ById, Id};
use crate::json::{self, Object};
use crate::messages::Message;
pub use crate::messages::fold::results::NO_OUTPUT;
use crate::messages::layout::Layout;
pub use crate::messages::layout::{BEGINNING, INTERRUPTED};
use crate::messages::meta::{self, Meta};
use crate::messages::pending::{PendingMessage, RecordName, can_be_sent};
use crate::messages::target::Ids;
use crate::messages::view::View;
use crate::messages::waiting::Waiting;
use crate::record::block_text::BlockText;
use crate::record::content::{Block, BlockKind, Content, Role, is_valid_call};
use crate::record::{Body, Record};
use crate::redact;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io;

/// The maximum number of pending messages. A result that comes more than this many messages after its call is left out,
/// because the call has been laid out by then.
const HORIZON: usize = 1000;

/// The most pixels that are decoded to make images smaller, in all: about ten seconds of work. More images than that are left
/// out, the later ones, so that further records do not change the earlier ones.
const MOST_PIXELS: u64 = 1_000_000_000;

/// A fold of records into messages. It borrows the text of the records until [`Fold::into_owned`].
pub struct Fold<'v, 'b, F> {
    view: &'v View,
    /// True if messages get `_meta`.
    with_meta: bool,
    /// The pending messages.
    pending: VecDeque<PendingMessage<'b>>,
    /// The number of the first pending message, counted from the beginning.
    first: usize,
    /// For each id the newest call among the pending messages: the number of the message, and the index of the call
    /// in it.
    calls: ById<(usize, usize)>,
    early: Waiting,
    layout: Layout<'b, F>,
    findings: &'v mut Findings,
    /// Provider counts in records before this offset are invalid: a record at this offset changed the messages that
    /// they cover.
    counts_from: u64,
    /// The number of pixels that may still be decoded.
    pixels: u64,
    /// True after a retracted prompt: the assistant's next text belongs to a different reply from its text before the
    /// prompt, even if the two are merged into one message.
    is_other_reply: bool,
}

impl<'v, 'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'v, 'b, F> {
    /// Creates a fold for the records of `view`. It adds to `findings` and passes messages to `out`. Without
    /// `with_meta`, messages have no `_meta`, except those that rebuild adds itself.
    pub fn new(
        view: &'v View,
        with_meta: bool,
        findings: &'v mut Findings,
        out: F,
    ) -> Fold<'v, 'b, F> {
        let (ids, checkpoint) = (Ids::default(), view.checkpoint.clone());
        let (after_summary, open_calls) = (None, Vec::new());
        let scale = view.scale.filter(|_| with_meta);
        let mut layout =
            Layout { out, open: None, ids, after_summary, checkpoint, scale, open_calls };
        if let Some(compaction) = &view.compaction {
            layout.summary(compaction);
        }
        let (pending, calls, early) = (VecDeque::new(), ById::default(), Waiting::default());
        let (counts_from, pixels, is_other_reply) = (view.counts_from, MOST_PIXELS, false);
        Fold {
            view,
            with_meta,
            pending,
            first: 0,
            calls,
            early,
            layout,
            findings,
            counts_from,
            pixels,
            is_other_reply,
        }
    }

    /// Returns the fold with owned data.
    #[must_use]
    pub fn into_owned(self) -> Fold<'v, 'static, F> {
        Fold {
            view: self.view,
            with_meta: self.with_meta,
            pending: self.pending.into_iter().map(PendingMessage::into_owned).collect(),
            first: self.first,
            calls: self.calls,
            early: self.early,
            layout: self.layout.into_owned(),
            findings: self.findings,
            counts_from: self.counts_from,
            pixels: self.pixels,
            is_other_reply: self.is_other_reply,
        }
    }

    /// Adds a finding.
    pub fn add_finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Reads the next record. Takes its body, unless the record is retracted.
    ///
    /// # Errors
    /// When `out` fails for a message that this record completes.
    pub fn take(&mut self, record: &mut Record<'b>) -> io::Result<()> {
        if self.view.retracted.contains(record.id.as_ref()) {
            self.end_counts(self.changed_at(record));
            self.is_other_reply |= matches!(record.body, Body::User { .. });
            return Ok(());
        }
        let meta = self.with_meta.then(|| {
            let id = Id::from(record.id.as_ref());
            Box::new(Meta { id, offset: record.offset, end: record.end, ..Meta::default() })
        });
        let body = std::mem::replace(&mut record.body, Body::Other);
        self.add(body, meta, record);
        while self.pending.len() > 1
            && (self.pending[0].is_settled() || self.pending.len() > HORIZON)
        {
            self.lay_out_first(false)?;
        }
        Ok(())
    }

    /// Adds the body of a record to the pending messages. `record` is the record without its body.
    fn add(&mut self, body: Body<'b>, mut meta: Option<Box<Meta>>, record: &Record<'_>) {
        self.end_counts_of_omissions(record);
        match body {
            Body::User { content, pin, .. } => {
                meta.iter_mut().for_each(|meta| meta.pin = pin);
                self.user(content, meta, record);
            }
            Body::Assistant { content, usage, model, time } => {
                meta.iter_mut().for_each(|meta| meta.time = time);
                if let (Some(meta), Some(usage)) = (&mut meta, usage) {
                    meta.usage = Some(usage.into_owned());
                    meta.model = model.and_then(|raw| json::string(&raw).map(Cow::into_owned));
                }
                self.assistant(content, meta, record);
            }
            // The usage of an interrupted reply is ignored, because it does not count the whole reply.
            Body::Interrupted { content } if self.view.interrupted => {
                self.end_counts(u64::MAX);
                self.assistant(content, meta, record);
            }
            Body::ToolUse { id, name, input } => {
                let raw = BlockText::of_call(&id, &name, &input);
                let is_valid = is_valid_call(Some(&name), Some(&input));
                let kind = BlockKind::ToolUse { id: Id::from(id), is_valid };
                self.call(Block { raw, kind }, 0, meta, record);
            }
            Body::ToolResult { id, content, blocks, is_error, pin } => {
                meta.iter_mut().for_each(|meta| meta.pin = pin);
                self.tool_result(id, (content, blocks), is_error, meta, record);
            }
            Body::Compaction { .. } if self.view.is_whole => self.end_counts(u64::MAX),
            _ => {}
        }
    }

    /// Returns the offset of the view record that changed how a record is shown; 0 if there is none.
    fn changed_at(&self, record: &Record<'_>) -> u64 {
        self.view.changed_at.get(record.id.as_ref()).copied().unwrap_or(0)
    }

    /// Marks the provider counts from the current record up to the offset `place` as invalid, because the record was
    /// shown differently when they were made.
    fn end_counts(&mut self, place: u64) {
        self.counts_from = self.counts_from.max(place);
    }

    /// Lays out the remaining messages. Results without a call become findings. Returns the records of the calls in the
    /// last message that have no result.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn finish(mut self) -> io::Result<Vec<String>> {
        for early in std::mem::take(&mut self.early).into_groups() {
            let what = format!("result of call '{}' has no call; left out", early.answer.id);
            self.note_at(&rules::ORPHAN_RESULT, early.source, what);
        }
        let last = self.pending.iter().rposition(PendingMessage::can_be_sent);
        let at_end = last.map(|last| last + self.first);
        while !self.pending.is_empty() {
            self.lay_out_first(at_end == Some(self.first))?;
        }
        self.layout.finish()
    }

    /// Lays out the first pending message. `at_end` is true for the last message of the conversation.
    fn lay_out_first(&mut self, at_end: bool) -> io::Result<()> {
        let Some(mut message) = self.pending.pop_front() else { return Ok(()) };
        if let Some(source) = message.drop_final_thinking() {
            self.note_at(&rules::FINAL_THINKING, source, "a reply ends in thinking; left out");
        }
        for call in &mut message.calls {
            self.note_orphan(call.early.take());
        }
        for call in &message.calls {
            if let Entry::Occupied(newest) = self.calls.entry(call.id.clone())
                && newest.get().0 == self.first
            {
                newest.remove();
            }
        }
        self.first += 1;
        if message.can_be_sent() {
            self.layout.message(message, at_end, self.findings)?;
        }
        Ok(())
    }

    fn user(&mut self, content: Content<'b>, meta: Option<Box<Meta>>, record: &Record<'_>) {
        // The index in the record of each block; `None` for a string, or if it is not needed.
        let (mut origins, mut only_results) = (None, false);
        let content = self.left_out(content, record);
        let words = match self.fitting_media(content, record) {
            content @ Content::Text(_) => content,
            Content::Blocks(blocks) => {
                let (results, mut words): (Vec<_>, Vec<_>) =
                    blocks.into_iter().enumerate().partition(|(_, block)| block.is_result());
                only_results = words.is_empty() && !results.is_empty();
                let count = words.len();
                words.retain(|(_, block)| block.fits(Role::User));
                for _ in words.len()..count {
                    self.note_misplaced(record);
                }
                for (_, block) in results {
                    self.result_block(block, meta.clone(), record);
                }
                origins = self.with_meta.then(|| words.iter().map(|(index, _)| *index).collect());
                Content::Blocks(words.into_iter().map(|(_, block)| block).collect())
            }
        };
        if can_be_sent(&words) {
            let message = self.open_message(Role::User, true, meta);
            let origins: Vec<usize> = origins.unwrap_or_default();
            match origins.is_empty() {
                true => message.note_origin(&record.id, 0, 0),
                false => origins
                    .iter()
                    .enumerate()
                    .for_each(|(ahead, it)| message.note_origin(&record.id, *it, ahead)),
            }
            message.content.absorb(words);
        } else if !only_results {
            let what = "a user record has no content; left out";
            self.note(&rules::EMPTY_MESSAGE, record, what);
        }
    }

    fn assistant(&mut self, content: Content<'b>, meta: Option<Box<Meta>>, record: &Record<'_>) {
        let continues = self.pending.back().is_some_and(|last| last.reply.takes_text());
        let blocks = match self.left_out(content, record) {
            Content::Blocks(blocks) => blocks,
            text @ Content::Text(_) => {
                let message = self.open_message(Role::Assistant, continues, meta);
                message.note_origin(&record.id, 0, 0);
                message.content.absorb(text);
                return;
            }
        };
        self.open_message(Role::Assistant, continues, meta.clone());
        for (index, block) in blocks.into_iter().enumerate() {
            match block.kind {
                BlockKind::ToolUse { .. } => {
                    let meta = if self.takes_calls() { None } else { meta.clone() };
                    self.call(block, index, meta, record);
                }
                BlockKind::ToolResult { .. } => self.result_block(block, meta.clone(), record),
                BlockKind::Thinking { .. } if self.is_left_out(record, index) => {}
                _ if !block.fits(Role::Assistant) => self.note_misplaced(record),
                BlockKind::Thinking { signed: false } => {
                    let what = "a thinking block has no signature or no data; left out";
                    self.note(&rules::UNSIGNED_THINKING, record, what);
                }
                BlockKind::Thinking { .. } if was_redacted(&block, record) => {
                    let what = "a thinking block was redacted and no longer matches its signature; left out";
                    self.note(&rules::UNSIGNED_THINKING, record, what);
                }
                _ => {
                    let continues = self.takes_calls();
                    let meta = if continues { None } else { meta.clone() };
                    let message = self.open_message(Role::Assistant, continues, meta);
                    if block.is_thinking() {
                        message.thinking = Some(Box::new(RecordName::of(record)));
                    }
                    message.note_origin(&record.id, index, 0);
                    message.add_block(block);
                }
            }
        }
    }

    /// Returns false if there is no pending message, or if the last one is a reply that has ended.
    fn takes_calls(&self) -> bool {
        self.pending.back().is_some_and(|last| last.reply.takes_calls())
    }

    /// Returns the pending message for a record: the last one if it has the role and the record `continues` it, else a
    /// new one.
    fn open_message(
        &mut self,
        role: Role,
        continues: bool,
        mut meta: Option<Box<Meta>>,
    ) -> &mut PendingMessage<'b> {
        if !(continues && self.pending.back().is_some_and(|last| last.role == role)) {
            let changed = self.pending.back_mut().map_or(0, PendingMessage::take_early_answers);
            self.end_counts(changed);
            self.pending.push_back(PendingMessage::begin(role));
        }
        if let Some(meta) = meta.as_mut().filter(|meta| meta.offset < self.counts_from) {
            meta.drop_count();
        }
        let last = self.pending.len() - 1;
        let message = &mut self.pending[last];
        let is_other_reply = std::mem::take(&mut self.is_other_reply);
        if let Some(meta) =
            message.meta.as_mut().filter(|_| is_other_reply && role == Role::Assistant)
        {
            // The count covers only a part of the merged reply.
            meta.drop_count();
        }
        meta::join(&mut message.meta, meta, None);
        message
    }

    fn note_misplaced(&mut self, record: &Record<'_>) {
        let what = "a record has a block that its role cannot have; left out";
        self.note(&rules::MISPLACED_BLOCK, record, what);
    }

    fn note(&mut self, rule: &'static Rule, record: &Record<'_>, what: impl Into<String>) {
        self.note_at(rule, RecordName::of(record), what);
    }

    fn note_at(&mut self, rule: &'static Rule, source: RecordName, what: impl Into<String>) {
        let RecordName { id, place } = source;
        self.findings.push(Finding { rule, place, id: Some(id), message: what.into() });
    }
}

/// Returns true if a block was redacted: its record has the member `redacted`, and the block contains the mark.
fn was_redacted(block: &Block<'_>, record: &Record<'_>) -> bool {
    let is_redacted = || Object::parse(&record.text).is_ok_and(|it| it.get("redacted").is_some());
    block.raw.contains(redact::MARK) && is_redacted()
}
