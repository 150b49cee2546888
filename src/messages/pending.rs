//! Pending messages: replies and runs of user records that may still grow.

use crate::finding::Place;
use crate::id::Id;
use crate::json;
use crate::messages::meta::{BlockOrigin, Meta};
use crate::messages::reply::ReplyState;
use crate::record::Record;
use crate::record::block_text::BlockText;
use crate::record::content::{Block, Content, Role};

/// A tool result that is assigned to a call, or waits for one.
#[derive(Clone, Debug)]
pub(super) struct PendingResult<'b> {
    /// The id of its call, as it is on disk.
    pub(super) id: Id,
    /// The JSON of the result's block, with this id.
    pub(super) raw: BlockText<'b>,
    /// The `_meta` of the result, if it was asked for.
    pub(super) meta: Option<Box<Meta>>,
    /// The offset of the view record that shortens the result; 0 if there is none.
    pub(super) changed_at: u64,
}

impl PendingResult<'_> {
    /// Returns the result with owned data.
    pub(super) fn into_owned(self) -> PendingResult<'static> {
        PendingResult { raw: self.raw.into_owned(), ..self }
    }
}

/// The id and the place of a record, for findings.
#[derive(Clone, Debug)]
pub(super) struct RecordName {
    pub(super) id: Id,
    pub(super) place: Place,
}

impl RecordName {
    pub(super) fn of(record: &Record<'_>) -> RecordName {
        RecordName { id: Id::from(record.id.as_ref()), place: record.place.clone() }
    }
}

/// A result that comes before any call with its id. It owns its data, because its call may come much later.
#[derive(Clone, Debug)]
pub(super) struct EarlyResult {
    pub(super) answer: PendingResult<'static>,
    pub(super) source: RecordName,
}

/// A tool call in a reply.
#[derive(Debug)]
pub(super) struct PendingCall<'b> {
    pub(super) id: Id,
    /// Index of the call's block in its reply.
    pub(super) block: usize,
    pub(super) answer: Option<PendingResult<'b>>,
    /// A result that comes before the call. It becomes the answer if the call still has no result when the next message
    /// begins. Boxed, because few calls have one and it is large.
    pub(super) early: Option<Box<EarlyResult>>,
    pub(super) place: Place,
}

impl PendingCall<'_> {
    fn into_owned(self) -> PendingCall<'static> {
        let PendingCall { id, block, answer, early, place } = self;
        PendingCall { id, block, answer: answer.map(PendingResult::into_owned), early, place }
    }
}

/// A reply, or a run of user records, that is being read.
#[derive(Debug)]
pub(super) struct PendingMessage<'b> {
    pub(super) role: Role,
    /// The content. A plain string stays a string unless more is added.
    pub(super) content: Content<'b>,
    /// The tool calls among the blocks of a reply.
    pub(super) calls: Vec<PendingCall<'b>>,
    pub(super) meta: Option<Box<Meta>>,
    /// Decides which further records belong to the reply.
    pub(super) reply: ReplyState,
    /// The record of its last thinking block. Boxed, because few messages have one.
    pub(super) thinking: Option<Box<RecordName>>,
}

impl<'b> PendingMessage<'b> {
    pub(super) fn begin(role: Role) -> PendingMessage<'b> {
        let (content, calls, meta) = (Content::nothing(), Vec::new(), None);
        let (reply, thinking) = (ReplyState::default(), None);
        PendingMessage { role, content, calls, meta, reply, thinking }
    }

    /// Returns the message with owned data.
    pub(super) fn into_owned(self) -> PendingMessage<'static> {
        let PendingMessage { role, content, calls, meta, reply, thinking } = self;
        let calls = calls.into_iter().map(PendingCall::into_owned).collect();
        let content = content.into_owned();
        PendingMessage { role, content, calls, meta, reply, thinking }
    }

    /// Notes the place in the transcript of the block that is added next. `ahead` is the number of blocks that are added
    /// before it.
    pub(super) fn note_origin(&mut self, record: &str, block: usize, ahead: usize) {
        if let Some(meta) = &mut self.meta {
            meta.add_source(self.content.count() + ahead, record, block);
        }
    }

    /// Adds a block, and returns its index.
    pub(super) fn add_block(&mut self, block: Block<'b>) -> usize {
        match &mut self.content {
            Content::Blocks(blocks) => blocks.push(block),
            Content::Text(_) => self.content.absorb(Content::Blocks(vec![block])),
        }
        self.content.blocks().len() - 1
    }

    /// Returns true if the message has content that can be sent.
    pub(super) fn can_be_sent(&self) -> bool {
        can_be_sent(&self.content)
    }

    /// Answers the open calls with the results that came before them. Called when the next message begins. Returns the
    /// largest `changed_at` of these results, or 0.
    pub(super) fn take_early_answers(&mut self) -> u64 {
        let mut changed_at = 0;
        for call in self.calls.iter_mut().filter(|call| call.answer.is_none()) {
            call.answer = call.early.take().map(|early| early.answer);
            changed_at = changed_at.max(call.answer.as_ref().map_or(0, |answer| answer.changed_at));
        }
        changed_at
    }

    /// Returns true if all calls have results. If another message has also begun, no later record can change this one.
    pub(super) fn is_settled(&self) -> bool {
        self.calls.iter().all(|call| call.answer.is_some())
    }

    /// If the message has thinking, drops thinking and blank blocks at its end. Returns the record of the last thinking
    /// block if a thinking block was dropped. A reply ends with thinking if it reached the token limit while the model
    /// was thinking.
    pub(super) fn drop_final_thinking(&mut self) -> Option<RecordName> {
        let source = self.thinking.take()?;
        let Content::Blocks(blocks) = &mut self.content else { return None };
        let kept = blocks.iter().rposition(can_be_last).map_or(0, |last| last + 1);
        let dropped = blocks.split_off(kept);
        dropped.iter().any(Block::is_thinking).then_some(*source)
    }

    /// Returns the content without blank blocks, and the `_meta`.
    pub(super) fn content(mut self) -> (Content<'b>, Option<Box<Meta>>) {
        if let Content::Blocks(blocks) = &mut self.content
            && blocks.iter().any(Block::is_blank)
        {
            if let Some(meta) = &mut self.meta {
                let kept = blocks.iter().enumerate().filter(|(_, block)| !block.is_blank());
                let origins: Vec<BlockOrigin> =
                    kept.map(|(index, _)| meta.origin_of(index)).collect();
                meta.set_origins(&origins);
            }
            blocks.retain(|block| !block.is_blank());
        }
        (self.content, self.meta)
    }
}

/// Returns true if something is left to send once blank text and thinking at the end are dropped from `content`.
/// Providers refuse both.
pub(super) fn can_be_sent(content: &Content<'_>) -> bool {
    match content {
        Content::Text(raw) => !json::is_blank(raw),
        Content::Blocks(blocks) => blocks.iter().any(can_be_last),
    }
}

/// Returns true if a message may end with `block`.
fn can_be_last(block: &Block<'_>) -> bool {
    !block.is_blank() && !block.is_thinking()
}
