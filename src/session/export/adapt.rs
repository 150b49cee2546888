//! Adapts messages to the program that is to go on with them: calls, thinking, media, and what the other program added.
//!
//! A call of a tool that the program has, too, becomes a call of that tool. Any other call becomes text in a message of the
//! user, together with its result: a model that read it as its own words would write such text instead of calls.

use super::tools::{self, Converted};
use super::{ExportedMessage, RecordFacts};
use crate::dialect::claude_code::record::is_reminder;
use crate::dialect::codex::item::is_context;
use crate::dialect::program::Program;
use crate::injected::{self, Part};
use crate::json::write::{self, Members};
use crate::json::{self, Object};
use crate::messages::Message;
use crate::provider::reasoning::without_reasoning;
use crate::record::content::{Block, BlockKind, Content, Role};
use std::collections::HashMap;

/// The parts of a session that are not carried, each with the number of its occurrences, in the order of the first ones.
#[derive(Clone, Debug, Default)]
pub struct Losses(Vec<(String, usize)>);

impl Losses {
    /// Counts an occurrence.
    pub fn add(&mut self, what: impl Into<String>) {
        let what = what.into();
        match self.0.iter_mut().find(|(own, _)| *own == what) {
            Some((_, count)) => *count += 1,
            None => self.0.push((what, 1)),
        }
    }

    /// Returns a line for each kind.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |(what, count): &(String, usize)| match count {
            1 => what.clone(),
            _ => format!("{what} ({count} times)"),
        };
        self.0.iter().map(line).collect()
    }
}

/// A call that becomes text: its id, and the text before its result.
type TextCall = (String, String);

/// A conversion of messages.
pub struct Adapter<'l> {
    /// The program that wrote the session.
    pub from: Program,
    /// The program that is to go on with it.
    pub to: Program,
    /// What is not carried.
    pub losses: &'l mut Losses,
}

impl Adapter<'_> {
    /// Adapts the messages of a session. A message that loses all its content is left out.
    pub fn messages(&mut self, messages: Vec<ExportedMessage>) -> Vec<ExportedMessage> {
        let mut adapted: Vec<ExportedMessage> = Vec::with_capacity(messages.len());
        // The calls of the newest reply that become text.
        let mut calls: Vec<TextCall> = Vec::new();
        for own in messages {
            let ExportedMessage { message, facts, .. } = own;
            let message = without_reasoning(&message).into_owned();
            if facts.has_reasoning {
                self.lose_thinking();
            }
            let blocks = message.content.into_blocks();
            let (hidden, shown) = match message.role {
                Role::User => self.user(blocks, &mut calls),
                Role::Assistant => {
                    // The calls of a reply before this one have no result.
                    let hidden = calls.drain(..).map(without_result).collect();
                    push(&mut adapted, Role::User, hidden, &facts, true);
                    (Vec::new(), self.reply(blocks, &mut calls))
                }
            };
            push(&mut adapted, message.role, hidden, &facts, true);
            push(&mut adapted, message.role, shown, &facts, false);
        }
        let facts = adapted.last().map(|last| last.facts.clone()).unwrap_or_default();
        let hidden = calls.drain(..).map(without_result).collect();
        push(&mut adapted, Role::User, hidden, &facts, true);
        adapted
    }

    fn lose_thinking(&mut self) {
        self.losses.add("left out: thinking, which only the model that wrote it can use");
    }

    fn reply(
        &mut self,
        blocks: Vec<Block<'static>>,
        calls: &mut Vec<TextCall>,
    ) -> Vec<Block<'static>> {
        // These can send messages to Anthropic's API, which takes thinking back.
        let takes_thinking =
            matches!(self.to, Program::ClaudeCode | Program::Opencode | Program::Pi);
        let mut kept = Vec::with_capacity(blocks.len());
        for block in blocks {
            match &block.kind {
                BlockKind::ToolUse { id, .. } => match self.call(&block, id) {
                    Ok(block) => kept.extend(block),
                    Err(text) => calls.push((id.to_string(), text)),
                },
                BlockKind::Thinking { signed: true } if takes_thinking => kept.push(block),
                BlockKind::Thinking { .. } => self.lose_thinking(),
                _ => kept.push(block),
            }
        }
        // A reply of thinking alone says nothing.
        if kept.iter().all(Block::is_thinking) {
            kept.clear();
        }
        kept
    }

    /// Returns a call of the other program's tool, or the text that begins the description of the call.
    fn call(&mut self, block: &Block<'_>, id: &str) -> Result<Option<Block<'static>>, String> {
        let name = block.member("name").and_then(json::string).unwrap_or_default().into_owned();
        let input = block.member("input").unwrap_or("{}");
        let (from, to) = (self.from, self.to);
        let Some(Converted { name: own, input, dropped }) = tools::convert(from, to, &name, input)
        else {
            self.losses.add(format!("as text: a call of '{name}', because {to} has no such tool"));
            return Err(format!(
                "[{from} called its tool '{name}', which {to} does not have, with {input}]"
            ));
        };
        for member in dropped {
            self.losses.add(format!("left out: '{member}' in a call of '{name}'"));
        }
        let call =
            Members::of_type("tool_use").string("id", id).string("name", own).raw("input", &input);
        Ok(Block::parse(call.into_json()).ok())
    }

    /// Returns the results, and after them the calls that become text with their results; and the other blocks.
    fn user(
        &mut self,
        blocks: Vec<Block<'static>>,
        calls: &mut Vec<TextCall>,
    ) -> (Vec<Block<'static>>, Vec<Block<'static>>) {
        let (mut results, mut texts, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            if let BlockKind::ToolResult { id } = &block.kind {
                let content = block.member("content").unwrap_or("\"\"");
                let content = self.content(Content::parse(content).unwrap_or(Content::nothing()));
                match calls.iter().position(|(call, _)| **call == **id) {
                    Some(at) => texts.extend(with_result(&calls.remove(at), content)),
                    None => results.extend(with_content(&block, &content)),
                }
            } else {
                let text = block.text();
                let Some(typed) = text.as_deref().and_then(|text| self.without_context(text))
                else {
                    rest.push(self.media(block));
                    continue;
                };
                self.losses.add(format!("left out: context that {} had added", self.from));
                rest.extend((!typed.is_empty()).then(|| Block::from_text(&typed)));
            }
        }
        texts.extend(calls.drain(..).map(without_result));
        results.extend(texts);
        (results, rest)
    }

    /// Returns a text of a prompt without what the program that wrote the session added, because the other one adds its own;
    /// `None` if it added nothing.
    fn without_context(&self, text: &str) -> Option<String> {
        match self.from {
            Program::ClaudeCode => is_reminder(text).then(String::new),
            Program::Codex => is_context(text).then(String::new),
            Program::Copilot => {
                let parts = injected::parts(text);
                let has_added = parts.iter().any(|part| matches!(part, Part::Program { .. }));
                has_added.then(|| injected::typed(text).trim().to_owned())
            }
            _ => None,
        }
    }

    fn content(&mut self, content: Content<'_>) -> Vec<Block<'static>> {
        let blocks = content.into_owned().into_blocks();
        blocks.into_iter().map(|block| self.media(block)).collect()
    }

    /// Returns an image or a document as the other program can read it, and any other block unchanged.
    fn media(&mut self, block: Block<'static>) -> Block<'static> {
        if block.kind != BlockKind::Media || self.to == Program::ClaudeCode {
            return block;
        }
        let object = Object::parse(&block.raw).ok();
        let source = object.as_ref().and_then(|object| object.object("source"));
        let get = |name: &str| source.as_ref().and_then(|source| source.string(name));
        let is_image = object.as_ref().and_then(|object| object.get("type")) == Some("\"image\"");
        let is_plain = get("type").as_deref() == Some("text");
        let takes_files = matches!(self.to, Program::GeminiCli | Program::Opencode);
        match (is_image, get("data"), get("url")) {
            (false, Some(text), _) if is_plain => Block::from_text(&text),
            (is_image, Some(_), _) if is_image || takes_files => block,
            (true, None, Some(_)) if self.to == Program::Codex => block,
            (_, _, Some(url)) => Block::from_text(&format!("[a file: {url}]")),
            _ => {
                self.losses.add(format!("left out: a file that {} cannot read", self.to));
                Block::from_text("[a file that was left out]")
            }
        }
    }
}

fn with_content(result: &Block<'_>, content: &[Block<'_>]) -> Option<Block<'static>> {
    let content = write::list(content.iter().map(|block| &*block.raw));
    let object = Object::parse(&result.raw).ok()?;
    Block::parse(object.with("content", &content)).ok()
}

/// Adds a message, unless it has no content.
fn push(
    messages: &mut Vec<ExportedMessage>,
    role: Role,
    blocks: Vec<Block<'static>>,
    facts: &RecordFacts,
    is_hidden: bool,
) {
    let message = Message::new(role, Content::Blocks(blocks));
    if !message.is_empty() {
        messages.push(ExportedMessage {
            message,
            facts: facts.clone(),
            is_hidden,
            tools: HashMap::new(),
        });
    }
}

/// Returns the text of a call, and its result.
fn with_result((_, text): &TextCall, content: Vec<Block<'static>>) -> Vec<Block<'static>> {
    let head = Block::from_text(&format!("{text}\n[its result]"));
    std::iter::once(head).chain(content.into_iter().filter(|block| !block.is_blank())).collect()
}

fn without_result((_, text): TextCall) -> Block<'static> {
    Block::from_text(&format!("{text}\n[without a result]"))
}
