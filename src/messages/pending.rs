//! Pending messages: replies and runs of user words, to which records still add.

use crate::finding::Place;
use crate::id::Id;
use crate::json;
use crate::messages::meta::Meta;
use crate::messages::reply::ReplyState;
use crate::record::Record;
use crate::record::content::{Block, Content, Role};
use std::borrow::Cow;

/// A result, ready to be placed.
#[derive(Clone, Debug)]
pub(super) struct PendingResult<'b> {
    /// The id of its call, as on disk.
    pub(super) id: Id,
    /// The result's block under this id.
    pub(super) raw: Cow<'b, str>,
    /// With what is to be said of the result, if anything is.
    pub(super) meta: Option<Box<Meta>>,
    /// The place of the view record that shortens it; 0 if none does.
    pub(super) changed_at: u64,
}

impl PendingResult<'_> {
    /// The same with bytes of its own.
    pub(super) fn into_owned(self) -> PendingResult<'static> {
        PendingResult { raw: Cow::Owned(self.raw.into_owned()), ..self }
    }
}

/// A record, as findings name it.
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

/// A result that stands before any call with its id. It has bytes of its own: its call may be far away, and
/// there may be many that wait.
#[derive(Clone, Debug)]
pub(super) struct EarlyResult {
    pub(super) answer: PendingResult<'static>,
    pub(super) source: RecordName,
}

/// A call in a reply.
#[derive(Debug)]
pub(super) struct PendingCall<'b> {
    pub(super) id: Id,
    /// Index of the call's block in its reply.
    pub(super) block: usize,
    pub(super) answer: Option<PendingResult<'b>>,
    /// A result that stands before the call. It is the answer if none has come when something follows
    /// the reply.
    pub(super) early: Option<EarlyResult>,
    pub(super) place: Place,
}

impl PendingCall<'_> {
    fn into_owned(self) -> PendingCall<'static> {
        let PendingCall { id, block, answer, early, place } = self;
        PendingCall { id, block, answer: answer.map(PendingResult::into_owned), early, place }
    }
}

/// A reply, or a run of user words, as it is being read.
#[derive(Debug)]
pub(super) struct PendingMessage<'b> {
    pub(super) role: Role,
    /// A plain string stays one if nothing more comes.
    pub(super) content: Content<'b>,
    /// The calls among the blocks of a reply.
    pub(super) calls: Vec<PendingCall<'b>>,
    pub(super) meta: Option<Box<Meta>>,
    /// Decides what still belongs to a reply.
    pub(super) reply: ReplyState,
    /// The record of the last thinking block in it.
    pub(super) thinking: Option<RecordName>,
}

impl<'b> PendingMessage<'b> {
    pub(super) fn begin(role: Role) -> PendingMessage<'b> {
        let (content, calls, meta) = (Content::nothing(), Vec::new(), None);
        PendingMessage { role, content, calls, meta, reply: ReplyState::default(), thinking: None }
    }

    /// The same with bytes of its own.
    pub(super) fn into_owned(self) -> PendingMessage<'static> {
        let PendingMessage { role, content, calls, meta, reply, thinking } = self;
        let calls = calls.into_iter().map(PendingCall::into_owned).collect();
        PendingMessage { role, content: content.into_owned(), calls, meta, reply, thinking }
    }

    /// Adds a block, and says which it is.
    pub(super) fn add_block(&mut self, block: Block<'b>) -> usize {
        match &mut self.content {
            Content::Blocks(blocks) => blocks.push(block),
            Content::Text(_) => self.content.absorb(Content::Blocks(vec![block])),
        }
        self.content.blocks().len() - 1
    }

    /// Whether it leaves a message behind: it has a block that can be sent.
    pub(super) fn says_something(&self) -> bool {
        can_be_sent(&self.content)
    }

    /// Answers the calls that wait with the results that stand before them, now that something follows. Gives the
    /// last place where one of these was changed, or 0.
    pub(super) fn take_early_answers(&mut self) -> u64 {
        let mut changed_at = 0;
        for call in self.calls.iter_mut().filter(|call| call.answer.is_none()) {
            call.answer = call.early.take().map(|early| early.answer);
            changed_at = changed_at.max(call.answer.as_ref().map_or(0, |answer| answer.changed_at));
        }
        changed_at
    }

    /// Whether nothing that comes can change it, once another message has begun.
    pub(super) fn is_settled(&self) -> bool {
        self.calls.iter().all(|call| call.answer.is_some())
    }

    /// Drops the thinking that nothing follows, and says which record held the last of it. A reply ends
    /// like that when its tokens ran out while the model was thinking.
    pub(super) fn drop_final_thinking(&mut self) -> Option<RecordName> {
        let source = self.thinking.take()?;
        let Content::Blocks(blocks) = &mut self.content else { return None };
        let kept = blocks.iter().rposition(can_be_last).map_or(0, |last| last + 1);
        let dropped = blocks.split_off(kept);
        dropped.iter().any(Block::is_thinking).then_some(source)
    }

    /// What is sent of it.
    pub(super) fn content(mut self) -> (Content<'b>, Option<Box<Meta>>) {
        if let Content::Blocks(blocks) = &mut self.content {
            blocks.retain(|block| !block.is_blank());
        }
        (self.content, self.meta)
    }
}

/// Returns whether anything in it can be sent. No provider takes blank text, or thinking that nothing follows.
pub(super) fn can_be_sent(content: &Content<'_>) -> bool {
    match content {
        Content::Text(raw) => !json::is_blank(raw),
        Content::Blocks(blocks) => blocks.iter().any(can_be_last),
    }
}

/// Returns whether a message may end with it.
fn can_be_last(block: &Block<'_>) -> bool {
    !block.is_blank() && !block.is_thinking()
}
