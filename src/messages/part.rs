//! Parts: replies and runs of user words, as records put them together.

use crate::check::Place;
use crate::json;
use crate::messages::meta::{Meta, ResultMeta};
use crate::messages::{Block, Content, Id, Role};

/// A result, ready to be placed.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) block: Block<'static>,
    pub(super) meta: Meta,
    pub(super) result: ResultMeta,
}

/// A call in a reply.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Id,
    /// Index of the call's block in its reply.
    pub(super) block: usize,
    pub(super) answer: Option<Answer>,
    /// The answer stood before the call.
    pub(super) early: bool,
    pub(super) place: Place,
}

/// A reply, or a run of user words, as it is being read.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) role: Role,
    /// A plain string stays one if nothing more comes.
    pub(super) content: Content<'static>,
    /// The calls among the blocks of a reply.
    pub(super) calls: Vec<Call>,
    pub(super) meta: Meta,
    /// A result of the reply was read: what comes next is another reply.
    pub(super) closed: bool,
}

impl Part {
    pub(super) fn begin(role: Role) -> Part {
        let (content, calls, meta) = (Content::nothing(), Vec::new(), Meta::default());
        Part { role, content, calls, meta, closed: false }
    }

    /// Adds a block, and says which it is.
    pub(super) fn add_block(&mut self, block: Block<'static>) -> usize {
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

    /// Whether an assistant record that follows belongs to the same reply. A reply ends with its first
    /// result, wherever that stands: claw0's first program wrote results before their calls, and what
    /// it wrote after such calls is the model's next reply.
    pub(super) fn goes_on(&self) -> bool {
        let answered_early = !self.calls.is_empty() && self.calls.iter().all(|call| call.early);
        !self.closed && !answered_early
    }

    /// Whether nothing that comes can change it, once another part has begun.
    pub(super) fn is_settled(&self) -> bool {
        self.calls.iter().all(|call| call.answer.is_some())
    }

    /// What is sent of it.
    pub(super) fn content(mut self) -> (Content<'static>, Meta) {
        if let Content::Blocks(blocks) = &mut self.content {
            blocks.retain(|block| !block.is_blank());
        }
        (self.content, self.meta)
    }
}

/// Whether anything in it can be sent. No provider takes blank text.
pub(super) fn can_be_sent(content: &Content<'_>) -> bool {
    match content {
        Content::Text(raw) => !json::is_blank(raw),
        Content::Blocks(blocks) => blocks.iter().any(|block| !block.is_blank()),
    }
}
