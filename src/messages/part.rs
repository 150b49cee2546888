//! Parts: replies and runs of user words, as records put them together.

use crate::check::Place;
use crate::messages::meta::Meta;
use crate::messages::{Block, Content, Role};
use std::borrow::Cow;

/// A result, ready to be placed.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) block: Block<'static>,
    pub(super) meta: Meta,
}

/// A call in a reply.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
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
    pub(super) blocks: Vec<Block<'static>>,
    /// The calls among the blocks of a reply.
    pub(super) calls: Vec<Call>,
    pub(super) meta: Meta,
    /// It is one plain string so far, and stays one if nothing more comes.
    pub(super) plain: bool,
    /// A result of the reply was read: what comes next is another reply.
    pub(super) closed: bool,
}

impl Part {
    pub(super) fn begin(role: Role) -> Part {
        let (blocks, calls, meta) = (Vec::new(), Vec::new(), Meta::default());
        Part { role, blocks, calls, meta, plain: false, closed: false }
    }

    pub(super) fn add(&mut self, blocks: Vec<Block<'static>>, plain: bool) {
        self.plain = plain && self.blocks.is_empty();
        self.blocks.extend(blocks);
    }

    /// Whether it leaves a message behind: it has a block that can be sent.
    pub(super) fn says_something(&self) -> bool {
        self.blocks.iter().any(can_be_sent)
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
        self.blocks.retain(can_be_sent);
        let plain = self.plain.then(|| self.blocks.first().and_then(|block| block.member("text")));
        let content = match plain.flatten() {
            Some(text) => Content::Text(Cow::Owned(text.to_owned())),
            None => Content::Blocks(self.blocks),
        };
        (content, self.meta)
    }
}

/// No provider takes blank text.
pub(super) fn can_be_sent(block: &Block<'_>) -> bool {
    !block.is_blank()
}
