//! Tool calls in a fold: adds each to its reply, once, and gives it an input that is an object.

use super::Fold;
use crate::finding::rules;
use crate::id::Id;
use crate::json::{self, Object};
use crate::messages::Message;
use crate::messages::meta::Meta;
use crate::messages::pending::PendingCall;
use crate::record::Record;
use crate::record::content::{Block, BlockKind, Role};
use crate::rules::{inputs, names};
use std::io;

impl<'b, F: FnMut(Message<'_>) -> io::Result<()>> Fold<'_, 'b, F> {
    /// Adds a tool call to the last reply, or to a new one if the last has ended. If a result with its id came before
    /// the call, the call gets that result unless another one follows. A call that the reply already contains is
    /// skipped.
    pub(super) fn call(
        &mut self,
        block: Block<'b>,
        index: usize,
        meta: Option<Box<Meta>>,
        record: &Record<'_>,
    ) {
        let BlockKind::ToolUse { id, is_valid } = block.kind.clone() else { return };
        let block = if is_valid { block } else { self.with_valid_input(block, record) };
        if self.is_written_again(&id, &block, record) {
            self.open_message(Role::Assistant, true, meta);
            return;
        }
        let block = self.left_out_call(block, index, record);
        let early = self.early.take_first(&id);
        let message = self.open_message(Role::Assistant, self.takes_calls(), meta);
        message.reply.add_call(early.is_some());
        message.note_origin(&record.id, index, 0);
        let (block, call_index) = (message.add_block(block), message.calls.len());
        let place = record.place.clone();
        message.calls.push(PendingCall { id: id.clone(), block, answer: None, early, place });
        let message_number = self.first + self.pending.len() - 1;
        self.calls.insert(id, (message_number, call_index));
    }

    /// Returns true if the newest reply already contains a call with this id. Adds a finding if the two calls differ.
    /// The current version of claw0 writes every call twice: inside the assistant record and as a `tool_use` record.
    fn is_written_again(&mut self, id: &str, block: &Block<'_>, record: &Record<'_>) -> bool {
        let Some((number, index)) = self.calls.get(id).copied() else { return false };
        let reply = match self.pending.back() {
            Some(last) if number + 1 == self.first + self.pending.len() => last,
            _ => return false,
        };
        let Some(call) = reply.calls.get(index) else { return false };
        let same = |name| reply.content.blocks()[call.block].member(name) == block.member(name);
        if !(same("name") && same("input")) {
            let what = format!("a reply has two different calls '{id}'; the first one is kept");
            self.note(&rules::DUPLICATE_CALL, record, what);
        }
        true
    }

    /// Returns a call whose input is an object and whose name is a string. The layout replaces a name that providers
    /// refuse, because the tool is known by its own name.
    fn with_valid_input(&mut self, block: Block<'b>, record: &Record<'_>) -> Block<'b> {
        let Ok(object) = Object::parse(&block.raw) else { return block };
        let (input, name) = (object.get("input"), object.string("name"));
        let id = object.string("id").unwrap_or_default();
        let is_named = name.as_deref().is_some_and(names::fits);
        if !is_named {
            let name = name.as_deref().unwrap_or_default();
            let fitted = names::fit(name);
            let what = format!("the name '{name}' of call '{id}' is sent as '{fitted}'");
            self.note(&rules::CALL_NAME, record, what);
        }
        if !inputs::fits(input) {
            let what = format!("the input of call '{id}' is not an object; sent as one");
            self.note(&rules::CALL_INPUT, record, what);
        }
        let input = inputs::object(input);
        let named = object.with("name", &json::quote(name.as_deref().unwrap_or_default()));
        match Object::parse(&named) {
            Ok(named) => {
                let kind = BlockKind::ToolUse { id: Id::from(id.as_ref()), is_valid: is_named };
                Block { raw: named.with("input", &input).into(), kind }
            }
            Err(_) => block,
        }
    }
}
