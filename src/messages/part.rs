//! Parts: replies and runs of user words, as records put them together.

use crate::check::Place;
use crate::json;
use crate::messages::meta::Meta;
use crate::messages::{Block, Content, Id, Role};

/// A result, ready to be placed.
#[derive(Clone, Debug)]
pub(super) struct Answer<'b> {
    pub(super) block: Block<'b>,
    /// With what is to be said of the result, if anything is.
    pub(super) meta: Option<Box<Meta>>,
}

impl Answer<'_> {
    /// The same with bytes of its own.
    pub(super) fn into_owned(self) -> Answer<'static> {
        Answer { block: self.block.into_owned(), meta: self.meta }
    }
}

/// A call in a reply.
#[derive(Debug)]
pub(super) struct Call<'b> {
    pub(super) id: Id,
    /// Index of the call's block in its reply.
    pub(super) block: usize,
    /// The call before it that has the same id: number of its part, index in that.
    pub(super) earlier: Option<(usize, usize)>,
    pub(super) answer: Option<Answer<'b>>,
    /// The answer stood before the call.
    pub(super) early: bool,
    pub(super) place: Place,
}

impl Call<'_> {
    fn into_owned(self) -> Call<'static> {
        let Call { id, block, earlier, answer, early, place } = self;
        Call { id, block, earlier, answer: answer.map(Answer::into_owned), early, place }
    }
}

/// A reply, or a run of user words, as it is being read.
#[derive(Debug)]
pub(super) struct Part<'b> {
    pub(super) role: Role,
    /// A plain string stays one if nothing more comes.
    pub(super) content: Content<'b>,
    /// The calls among the blocks of a reply.
    pub(super) calls: Vec<Call<'b>>,
    pub(super) meta: Option<Box<Meta>>,
    /// A result of the reply was read: what comes next is another reply.
    pub(super) closed: bool,
}

impl<'b> Part<'b> {
    pub(super) fn begin(role: Role) -> Part<'b> {
        let (content, calls, meta) = (Content::nothing(), Vec::new(), None);
        Part { role, content, calls, meta, closed: false }
    }

    /// The same with bytes of its own.
    pub(super) fn into_owned(self) -> Part<'static> {
        let Part { role, content, calls, meta, closed } = self;
        let calls = calls.into_iter().map(Call::into_owned).collect();
        Part { role, content: content.into_owned(), calls, meta, closed }
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
    pub(super) fn content(mut self) -> (Content<'b>, Option<Box<Meta>>) {
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
