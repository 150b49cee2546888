//! Records to messages: replies put together, calls paired with their results, roles alternating.
//!
//! Records are read in file order into *pending messages* (one for each reply and each run of user words), and a
//! result goes to its call by id wherever it stands: to the nearest before it, or to the next one after it if
//! that has no other when something follows its reply. Then they are laid out as messages: the
//! results of a reply come together right after it, in call order, before any words of the user. What
//! has no place (a result without a call, a second result) is a finding; what is missing in the middle
//! (a call that was never answered) is filled in with a fixed text. The order is the file's alone, so
//! the same records always give the same messages, and more records change only the last; a late result
//! alone replaces the fixed text of its call further up.

mod results;

use crate::finding::Finding;
use crate::finding::rules::{self, Rule};
use crate::id::{ById, Id};
use crate::json::write::{member, opening};
use crate::json::{self, Object};
use crate::messages::Message;
pub use crate::messages::fold::results::NO_OUTPUT;
use crate::messages::layout::Layout;
pub use crate::messages::layout::{BEGINNING, INTERRUPTED};
use crate::messages::meta::{self, Meta};
use crate::messages::pending::{PendingCall, PendingMessage, RecordName, can_be_sent};
use crate::messages::target::Ids;
use crate::messages::view::View;
use crate::messages::waiting::Waiting;
use crate::record::content::{Block, BlockKind, Content, Role};
use crate::record::{Body, Record};
use crate::redact;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io;

/// So many replies and user messages are held at the most while a call waits for its result. A result
/// that comes still later is left out.
const HORIZON: usize = 1000;

/// Records in, messages out. What it holds of records it only borrows until [`Fold::into_owned`].
pub struct Fold<'v, 'b, F> {
    view: &'v View,
    /// Whether messages are to say which records they are made of.
    with_meta: bool,
    /// The pending messages; the first of them has this number.
    pending: VecDeque<PendingMessage<'b>>,
    first: usize,
    /// For each id the newest call in these messages that has it: number of the message, index in it.
    calls: ById<(usize, usize)>,
    early: Waiting,
    layout: Layout<'b, F>,
    findings: &'v mut Vec<Finding>,
    /// A provider's count in a record before this place no longer holds: something that it covers was changed
    /// there, or by a view record there.
    counts_from: u64,
    /// A prompt was left out, so the assistant's next text is a reply of its own.
    is_other_reply: bool,
}

impl<'v, 'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'v, 'b, F> {
    /// A fold for the records of `view`; it adds to `findings` and gives messages to `out`. Without
    /// `with_meta` their `_meta` says next to nothing.
    pub fn new(
        view: &'v View,
        with_meta: bool,
        findings: &'v mut Vec<Finding>,
        out: F,
    ) -> Fold<'v, 'b, F> {
        let (ids, checkpoint) = (Ids::default(), view.checkpoint.clone());
        let (after_summary, open_calls) = (None, Vec::new());
        let scale = view.scale.filter(|_| with_meta);
        let mut layout =
            Layout { out, open: None, ids, after_summary, checkpoint, scale, open_calls };
        if let Some(governing) = &view.governing {
            layout.summary(governing);
        }
        let (pending, calls, early) = (VecDeque::new(), ById::default(), Waiting::default());
        let (counts_from, is_other_reply) = (view.counts_from, false);
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
            is_other_reply,
        }
    }

    /// The same with bytes of its own for all that it holds.
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
            is_other_reply: self.is_other_reply,
        }
    }

    /// Notes something that was found in the input.
    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// When a message that is complete now cannot be given out.
    pub fn take(&mut self, mut record: Record<'b>) -> io::Result<()> {
        if self.view.retracted.contains(record.id.as_ref()) {
            self.end_counts(self.changed_at(&record));
            self.is_other_reply |= matches!(record.body, Body::User { .. });
            return Ok(());
        }
        let meta = self.with_meta.then(|| {
            let id = Id::from(record.id.as_ref());
            Box::new(Meta { id, offset: record.offset, end: record.end, ..Meta::default() })
        });
        let body = std::mem::replace(&mut record.body, Body::Other);
        self.add(body, meta, &record);
        while self.pending.len() > 1
            && (self.pending[0].is_settled() || self.pending.len() > HORIZON)
        {
            self.give_out(false)?;
        }
        Ok(())
    }

    /// Adds the body of a record to the pending messages. `record` is the record without it.
    fn add(&mut self, body: Body<'b>, mut meta: Option<Box<Meta>>, record: &Record<'_>) {
        match body {
            Body::User { content, pin } => {
                meta.iter_mut().for_each(|meta| meta.pin = pin);
                self.user(content, meta, record);
            }
            Body::Assistant { content, usage, model } => {
                if let (Some(meta), Some(usage)) = (&mut meta, usage) {
                    meta.usage = Some(usage.into_owned());
                    meta.model = model.and_then(|raw| json::string(&raw).map(Cow::into_owned));
                }
                self.assistant(content, meta, record);
            }
            // Its usage is never an anchor, because it does not count the whole reply.
            Body::Interrupted { content } if self.view.interrupted => {
                self.end_counts(u64::MAX);
                self.assistant(content, meta, record);
            }
            Body::ToolUse { id, name, input } => {
                let rest = [member!("name"), &*name, member!("input"), &*input, "}"];
                let raw = put_together(opening!("type": "tool_use", "id"), &id, &rest);
                let kind = BlockKind::ToolUse { id: Id::from(id) };
                self.call(Block { raw: Cow::Owned(raw), kind }, meta, record);
            }
            Body::ToolResult { id, content, is_error, pin } => {
                meta.iter_mut().for_each(|meta| meta.pin = pin);
                self.tool_result(id, content, is_error, meta, record);
            }
            Body::Compaction { .. } if self.view.is_whole => self.end_counts(u64::MAX),
            _ => {}
        }
    }

    /// The place of the view record that changed how a record is shown; 0 if none did.
    fn changed_at(&self, record: &Record<'_>) -> u64 {
        self.view.changed_at.get(record.id.as_ref()).copied().unwrap_or(0)
    }

    /// Notes that what comes now was shown in another way before `place`: counts that stand before that and cover
    /// this do not hold.
    fn end_counts(&mut self, place: u64) {
        self.counts_from = self.counts_from.max(place);
    }

    /// Ends the reading. Results whose call never came have no place; calls of the last message stay open, and
    /// their records are given.
    ///
    /// # Errors
    /// When the last messages cannot be given out.
    pub fn finish(mut self) -> io::Result<Vec<String>> {
        for early in std::mem::take(&mut self.early).into_groups() {
            let what = ["result of call '", &early.answer.id, "' has no call, left out"].concat();
            self.note_at(&rules::ORPHAN_RESULT, early.source, what);
        }
        let last = self.pending.iter().rposition(PendingMessage::says_something);
        let mut at_end = last.map(|last| last + self.first);
        while !self.pending.is_empty() {
            at_end = at_end.filter(|last| *last >= self.first);
            self.give_out(at_end == Some(self.first))?;
        }
        self.layout.finish()
    }

    /// Lays out the first pending message.
    fn give_out(&mut self, at_end: bool) -> io::Result<()> {
        let Some(mut message) = self.pending.pop_front() else { return Ok(()) };
        if let Some(source) = message.drop_final_thinking() {
            self.note_at(&rules::FINAL_THINKING, source, "a reply ends in thinking, left out");
        }
        for call in &mut message.calls {
            self.pass_over(call.early.take());
        }
        for call in &message.calls {
            if let Entry::Occupied(newest) = self.calls.entry(call.id.clone())
                && newest.get().0 == self.first
            {
                newest.remove();
            }
        }
        self.first += 1;
        if message.says_something() {
            self.layout.message(message, at_end, self.findings)?;
        }
        Ok(())
    }

    fn user(&mut self, content: Content<'b>, meta: Option<Box<Meta>>, record: &Record<'_>) {
        let (words, only_results) = match content {
            Content::Text(_) => (content, false),
            Content::Blocks(blocks) => {
                let (results, mut words): (Vec<_>, Vec<_>) =
                    blocks.into_iter().partition(Block::is_result);
                let only_results = words.is_empty() && !results.is_empty();
                let count = words.len();
                words.retain(|block| block.fits(Role::User));
                for _ in words.len()..count {
                    self.note_misplaced(record);
                }
                for block in results {
                    self.result_block(block, meta.clone(), record);
                }
                (Content::Blocks(words), only_results)
            }
        };
        if can_be_sent(&words) {
            self.open_message(Role::User, true, meta).content.absorb(words);
        } else if !only_results {
            let what = "a user record says nothing, left out";
            self.note(&rules::EMPTY_MESSAGE, record, what);
        }
    }

    fn assistant(&mut self, content: Content<'b>, meta: Option<Box<Meta>>, record: &Record<'_>) {
        let continues = self.pending.back().is_some_and(|last| last.reply.takes_text());
        let message = self.open_message(Role::Assistant, continues, meta.clone());
        let Content::Blocks(blocks) = content else {
            message.content.absorb(content);
            return;
        };
        for block in blocks {
            match block.kind {
                BlockKind::ToolUse { .. } => self.call(block, meta.clone(), record),
                BlockKind::ToolResult { .. } => self.result_block(block, meta.clone(), record),
                _ if !block.fits(Role::Assistant) => self.note_misplaced(record),
                BlockKind::Thinking { signed: false } => {
                    let what = "a thinking block has no signature or no data, left out";
                    self.note(&rules::UNSIGNED_THINKING, record, what);
                }
                BlockKind::Thinking { .. } if was_redacted(&block, record) => {
                    let what =
                        "a thinking block was redacted and no longer fits its signature, left out";
                    self.note(&rules::UNSIGNED_THINKING, record, what);
                }
                _ => {
                    let continues = self.takes_calls();
                    let meta = if continues { None } else { meta.clone() };
                    let message = self.open_message(Role::Assistant, continues, meta);
                    if block.is_thinking() {
                        message.thinking = Some(RecordName::of(record));
                    }
                    message.add_block(block);
                }
            }
        }
    }

    /// Returns true if the last pending message is a reply that takes more blocks.
    fn takes_calls(&self) -> bool {
        self.pending.back().is_some_and(|last| last.reply.takes_calls())
    }

    /// Returns the pending message that takes a record: the last one if it has that role and the record `continues` it,
    /// else a new one.
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
            // It covers a part of what is now one reply.
            meta.drop_count();
        }
        meta::join(&mut message.meta, meta);
        message
    }

    fn call(&mut self, block: Block<'b>, meta: Option<Box<Meta>>, record: &Record<'_>) {
        let BlockKind::ToolUse { id } = block.kind.clone() else { return };
        if self.is_written_again(&id, &block, record) {
            self.open_message(Role::Assistant, true, meta);
            return;
        }
        let early = self.early.take_first(&id);
        let message = self.open_message(Role::Assistant, self.takes_calls(), meta);
        message.reply.add_call(early.is_some());
        let (block, index) = (message.add_block(block), message.calls.len());
        let place = record.place.clone();
        message.calls.push(PendingCall { id: id.clone(), block, answer: None, early, place });
        self.calls.insert(id, (self.first + self.pending.len() - 1, index));
    }

    /// Whether the newest reply has this call already: claw0's present program writes every call
    /// twice, inside the assistant record and again as a `tool_use` record.
    fn is_written_again(&mut self, id: &str, block: &Block<'_>, record: &Record<'_>) -> bool {
        let Some((number, index)) = self.calls.get(id).copied() else { return false };
        let reply = match self.pending.back() {
            Some(last) if number + 1 == self.first + self.pending.len() => last,
            _ => return false,
        };
        let Some(call) = reply.calls.get(index) else { return false };
        let same = |name| reply.content.blocks()[call.block].member(name) == block.member(name);
        if !(same("name") && same("input")) {
            let what =
                format!("call '{id}' comes twice in one reply and differs; the first is kept");
            self.note(&rules::CALL_TWICE, record, what);
        }
        true
    }

    fn note_misplaced(&mut self, record: &Record<'_>) {
        let what = "a block stands in a record of a role that cannot say it, left out";
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

/// A block's JSON: `before`, an id, and the rest. Content may be long, and is not moved as it grows.
fn put_together(before: &str, id: &str, rest: &[&str]) -> String {
    let length: usize = rest.iter().map(|part| part.len()).sum();
    let mut raw = String::with_capacity(before.len() + id.len() + 2 + length);
    raw.push_str(before);
    json::push_quoted(&mut raw, id);
    rest.iter().for_each(|part| raw.push_str(part));
    raw
}

/// Whether something was taken out of a block: its record says that it was redacted, and it shows.
fn was_redacted(block: &Block<'_>, record: &Record<'_>) -> bool {
    let says_so = || Object::parse(&record.text).is_ok_and(|it| it.get("redacted").is_some());
    block.raw.contains(redact::MARK) && says_so()
}
