//! Turns pending messages into messages: results come right after their calls, and roles alternate. Each message is
//! passed to the output as soon as the next one begins.

use crate::finding::{Finding, Findings, rules};
use crate::id::Id;
use crate::json::write::Members;
use crate::json::{Object, quote};
use crate::messages::checkpoint::LatestCheckpoint;
use crate::messages::meta::{self, Meta};
use crate::messages::pending::{PendingMessage, PendingResult};
use crate::messages::target::Ids;
use crate::messages::view::EffectiveCompaction;
use crate::messages::{Message, summary};
use crate::record::content::{Block, BlockKind, Content, Role};
use crate::record::scale::Scale;
use crate::rules::names;
use std::io;

/// The text of the error result that is added for a tool call that was never answered.
pub const INTERRUPTED: &str = "(interrupted: this call was not finished and has no result)";
/// The user message before a conversation that begins with the assistant.
pub const BEGINNING: &str = "(the conversation begins with the assistant)";

/// The state of the layout.
pub(super) struct Layout<'b, F> {
    pub(super) out: F,
    /// The last message, which may still grow.
    pub(super) open: Option<Message<'b>>,
    pub(super) ids: Ids,
    /// The id of the compaction whose summary is the last message.
    pub(super) after_summary: Option<Id>,
    /// The newest checkpoint, until the first message takes it.
    pub(super) checkpoint: Option<Box<LatestCheckpoint>>,
    /// The scale, until the first message takes it.
    pub(super) scale: Option<Scale>,
    /// The records of the calls that may still be answered, with their ids on disk.
    pub(super) open_calls: Vec<String>,
}

impl<'b, F: FnMut(Message<'_>) -> io::Result<()>> Layout<'b, F> {
    /// Adds content to the last message if the role is the same, else begins a new one.
    fn push(
        &mut self,
        role: Role,
        content: Content<'b>,
        meta: Option<Box<Meta>>,
    ) -> io::Result<()> {
        if let Some(last) =
            self.open.as_mut().filter(|last| last.role == role && !last.is_summary())
        {
            let count = last.content.count();
            last.absorb(content);
            meta::join(&mut last.meta, meta, Some(count));
            return Ok(());
        }
        match self.open.take() {
            Some(last) => self.emit(last)?,
            None if role == Role::Assistant => {
                let mut first = Message::text(Role::User, BEGINNING);
                first.meta = Some(Box::default());
                self.emit(first)?;
            }
            None => {}
        }
        if let Some(id) = self.after_summary.take().filter(|_| role == Role::User) {
            // Roles must alternate.
            let mut reply = summary::acknowledgement();
            reply.meta = Some(Box::new(Meta { id, ..Meta::default() }));
            self.emit(reply)?;
        }
        self.open = Some(Message { role, content, meta });
        Ok(())
    }

    /// Returns the layout with owned data.
    pub(super) fn into_owned(self) -> Layout<'static, F> {
        let Layout { out, open, ids, after_summary, checkpoint, scale, open_calls } = self;
        let open = open.map(Message::into_owned);
        Layout { out, open, ids, after_summary, checkpoint, scale, open_calls }
    }

    pub(super) fn summary(&mut self, compaction: &EffectiveCompaction) {
        let mut message = summary::message(&compaction.summary);
        let id = Id::from(compaction.id.as_str());
        let summary = Some(Box::new(compaction.summary.clone()));
        message.meta = Some(Box::new(Meta { id: id.clone(), summary, ..Meta::default() }));
        self.open = Some(message);
        self.after_summary = Some(id);
    }

    /// Adds a pending message and the results of its calls.
    pub(super) fn message(
        &mut self,
        mut message: PendingMessage<'b>,
        at_end: bool,
        findings: &mut Findings,
    ) -> io::Result<()> {
        let calls = std::mem::take(&mut message.calls);
        let mut results = Vec::with_capacity(calls.len());
        let mut meta_of_results = message.meta.is_some().then(Box::default);
        for call in calls {
            let id = self.ids.assign(&call.id);
            if id != call.id {
                rename(&mut message.content.blocks_mut()[call.block], "id", &id);
            }
            match call.answer {
                Some(answer) => {
                    let (block, meta) = with_call_id(answer, &id);
                    results.push(block);
                    meta::join(&mut meta_of_results, meta, None);
                }
                // A call at the end may still be answered.
                None if at_end => {
                    let block = &message.content.blocks()[call.block];
                    self.open_calls.push(call_record(block, &call.id));
                }
                None => {
                    let message =
                        format!("call '{}' has no result; added an error result", call.id);
                    let rule = &rules::OPEN_CALL;
                    findings.push(Finding { rule, place: call.place, id: None, message });
                    results.push(interrupted_result(&id));
                }
            }
        }
        rename_tools(message.content.blocks_mut());
        let role = message.role;
        let (content, meta) = message.content();
        self.push(role, content, meta)?;
        if results.is_empty() {
            return Ok(());
        }
        self.push(Role::User, Content::Blocks(results), meta_of_results)
    }

    /// Passes the last message to the output, and returns the records of its open calls.
    pub(super) fn finish(mut self) -> io::Result<Vec<String>> {
        let last = self.open.take();
        last.map_or(Ok(()), |last| self.emit(last))?;
        Ok(self.open_calls)
    }

    /// Passes a message to the output. Adds the newest checkpoint and the scale to the first one.
    fn emit(&mut self, mut message: Message<'_>) -> io::Result<()> {
        if let Some(meta) = &mut message.meta {
            meta.checkpoint = meta.checkpoint.take().or(self.checkpoint.take());
            meta.scale = self.scale.take();
        }
        (self.out)(message)
    }
}

/// Returns the block and the `_meta` of a result, with the id that its call has in the request.
fn with_call_id<'b>(answer: PendingResult<'b>, id: &Id) -> (Block<'b>, Option<Box<Meta>>) {
    let PendingResult { id: own, raw, mut meta, .. } = answer;
    let is_renamed = own != *id;
    let mut block = Block { raw, kind: BlockKind::ToolResult { id: own } };
    if is_renamed {
        rename(&mut block, "tool_use_id", id);
        for result in meta.iter_mut().flat_map(|meta| &mut meta.results) {
            let original = std::mem::replace(&mut result.tool_use_id, id.clone());
            result.original_id = Some(original);
        }
    }
    (block, meta)
}

fn rename(block: &mut Block<'_>, member: &str, id: &Id) {
    if let Ok(object) = Object::parse(&block.raw) {
        let raw = object.with(member, &quote(id));
        block.raw = raw.into();
    }
    match &mut block.kind {
        BlockKind::ToolUse { id: own, .. } | BlockKind::ToolResult { id: own } => {
            own.clone_from(id);
        }
        _ => {}
    }
}

/// Replaces the names of tools that providers refuse.
fn rename_tools(blocks: &mut [Block<'_>]) {
    for block in blocks {
        let BlockKind::ToolUse { is_valid: is_valid @ false, .. } = &mut block.kind else {
            continue;
        };
        *is_valid = true;
        let Ok(object) = Object::parse(&block.raw) else { continue };
        let name = object.string("name").unwrap_or_default();
        let raw = object.with("name", &quote(&names::fit(&name)));
        block.raw = raw.into();
    }
}

/// Returns a tool call as a record.
fn call_record(block: &Block<'_>, id: &Id) -> String {
    let member = |name: &str| block.member(name).unwrap_or_default();
    let record = Members::of_type("tool_use").string("tool_use_id", id);
    record.raw("name", member("name")).raw("input", member("input")).into_json()
}

fn interrupted_result(id: &Id) -> Block<'static> {
    let raw = Members::of_type("tool_result").string("tool_use_id", id);
    let raw = raw.string("content", INTERRUPTED).bool("is_error", true);
    Block { raw: raw.into_json().into(), kind: BlockKind::ToolResult { id: id.clone() } }
}
