//! Messages, and the way from records to them (rebuild).
//!
//! A [`Message`] is one line of the pipe between the programs: `{"role","content"}` of the Anthropic
//! Messages API, with `_meta` when the next program has to find the records again. Blocks keep their
//! own bytes; only what a program changes is written anew.
//!
//! Rebuild ([`rebuild`]) goes records → [`view`] (which records count, and how) → [`fold`] (replies put
//! together, calls paired with their results) → layout (messages, roles alternating) → [`target`] (ids
//! that the provider takes).

pub mod checkpoint;
pub mod fold;
pub mod id;
mod layout;
pub mod media;
pub mod meta;
mod part;
pub mod range;
pub mod raw;
pub mod rebuild;
pub mod shorten;
pub mod summary;
pub mod target;
pub mod undo;
pub mod view;

use crate::exit::{Error, Exit};
use crate::json::{self, Object};
use crate::record;
use id::ById;
pub use id::Id;
pub use meta::Meta;
pub use raw::Raw;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, IoSlice, Write};

/// How deep arrays and objects may be nested in a message: as deep as in a record, and the list and the
/// block that a call or a result stands in.
const MOST_DEPTH: usize = record::MOST_DEPTH + 2;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user; results of calls come from here too.
    User,
    /// The model.
    Assistant,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        })
    }
}

/// What a block is, as far as a program has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Text of nothing but white space: no provider takes it.
    Blank,
    /// A call: `tool_use`.
    ToolUse {
        /// The call's id.
        id: Id,
    },
    /// The result of a call: `tool_result`.
    ToolResult {
        /// The id of the call that it answers.
        id: Id,
    },
    /// Thinking; `redacted_thinking` counts as [`BlockKind::Other`].
    Thinking {
        /// Whether it carries a signature that is not empty.
        signed: bool,
    },
    /// An image or a document.
    Media,
    /// Anything else; it passes through.
    Other,
}

/// A content block, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The block's JSON text.
    pub raw: Raw<'a>,
    /// What it is.
    pub kind: BlockKind,
}

impl<'a> Block<'a> {
    /// Reads one block.
    ///
    /// # Errors
    /// Says why when `raw` is no block: not an object, no `type`, or a known type that lacks what it
    /// must have.
    pub fn parse(raw: impl Into<Raw<'a>>) -> Result<Block<'a>, String> {
        let raw = raw.into();
        let kind = block_kind(&raw)?;
        Ok(Block { raw, kind })
    }

    /// The block with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Block<'static> {
        Block { raw: self.raw.into_owned(), kind: self.kind }
    }

    /// A text block that says `text`.
    #[must_use]
    pub fn text(text: &str) -> Block<'static> {
        Block::from_quoted(&json::quote(text))
    }

    /// A text block around a JSON string, whose bytes it keeps.
    fn from_quoted(quoted: &str) -> Block<'static> {
        let raw = format!(r#"{{"type":"text","text":{quoted}}}"#);
        let kind = if json::is_blank(quoted) { BlockKind::Blank } else { BlockKind::Text };
        Block { raw: Raw::from(raw), kind }
    }

    /// Whether it is a result.
    #[must_use]
    pub fn is_result(&self) -> bool {
        matches!(self.kind, BlockKind::ToolResult { .. })
    }

    /// Whether a provider takes it from `role`: calls and thinking are the assistant's, results and
    /// media the user's.
    #[must_use]
    pub fn fits(&self, role: Role) -> bool {
        match self.kind {
            BlockKind::ToolUse { .. } | BlockKind::Thinking { .. } => role == Role::Assistant,
            BlockKind::ToolResult { .. } | BlockKind::Media => role == Role::User,
            BlockKind::Text | BlockKind::Blank | BlockKind::Other => true,
        }
    }

    /// Whether it is a text block of nothing but white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.kind == BlockKind::Blank
    }

    /// The text of member `name` of the block.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&str> {
        Object::parse(&self.raw).ok().and_then(|object| object.get(name))
    }

    /// What a text block says; `None` for any other block.
    #[must_use]
    pub fn says(&self) -> Option<String> {
        match self.kind {
            BlockKind::Text | BlockKind::Blank => {
                self.member("text").and_then(json::string).map(Cow::into_owned)
            }
            _ => None,
        }
    }
}

fn block_kind(raw: &str) -> Result<BlockKind, String> {
    let object = Object::parse(raw).map_err(|_| "a content block is no object".to_owned())?;
    let Some(kind) = object.string("type") else {
        return Err("a content block has no 'type'".to_owned());
    };
    let id = |name: &str| match object.string(name) {
        Some(id) if !id.is_empty() => Ok(Id::from(id)),
        _ => Err(format!("a '{kind}' block has no '{name}'")),
    };
    match kind.as_ref() {
        "text" => match object.get("text").filter(|text| text.starts_with('"')) {
            None => Err("a 'text' block has no 'text'".into()),
            Some(text) if json::is_blank(text) => Ok(BlockKind::Blank),
            Some(_) => Ok(BlockKind::Text),
        },
        "tool_use" if !object.get("name").is_some_and(|name| name.starts_with('"')) => {
            Err("a 'tool_use' block has no 'name'".into())
        }
        "tool_use" if !object.get("input").is_some_and(|input| input.starts_with('{')) => {
            Err("a 'tool_use' block has no 'input' object".into())
        }
        "tool_use" => Ok(BlockKind::ToolUse { id: id("id")? }),
        "tool_result" => Ok(BlockKind::ToolResult { id: id("tool_use_id")? }),
        "thinking" => {
            let signature = object.get("signature").unwrap_or_default();
            Ok(BlockKind::Thinking { signed: signature.starts_with('"') && signature != "\"\"" })
        }
        "image" | "document" => Ok(BlockKind::Media),
        _ => Ok(BlockKind::Other),
    }
}

/// What a message says: a plain string, or blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A JSON string, with its bytes.
    Text(Cow<'a, str>),
    /// Blocks in order.
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    /// Reads a string or a list of blocks.
    ///
    /// # Errors
    /// Says why when `raw` is neither, or one of the blocks is none.
    pub fn parse(raw: &'a str) -> Result<Content<'a>, String> {
        if raw.starts_with('"') {
            return Ok(Content::Text(Cow::Borrowed(raw)));
        }
        let elements = json::elements(raw).ok_or("'content' is neither a string nor a list")?;
        elements.into_iter().map(Block::parse).collect::<Result<_, _>>().map(Content::Blocks)
    }

    /// No blocks.
    #[must_use]
    pub fn nothing() -> Content<'a> {
        Content::Blocks(Vec::new())
    }

    /// The content with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Content<'static> {
        match self {
            Content::Text(raw) => Content::Text(Cow::Owned(raw.into_owned())),
            Content::Blocks(blocks) => {
                Content::Blocks(blocks.into_iter().map(Block::into_owned).collect())
            }
        }
    }

    /// The same as blocks: a string becomes one text block.
    #[must_use]
    pub fn into_blocks(self) -> Vec<Block<'a>> {
        match self {
            Content::Text(raw) => vec![Block::from_quoted(&raw)],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// The blocks; none for a plain string.
    #[must_use]
    pub fn blocks(&self) -> &[Block<'a>] {
        match self {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> &mut [Block<'a>] {
        match self {
            Content::Text(_) => &mut [],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// Adds what `other` says to the end. A string with nothing before it stays one.
    pub fn absorb(&mut self, other: Content<'a>) {
        *self = match std::mem::replace(self, Content::nothing()) {
            Content::Blocks(own) if own.is_empty() => other,
            own => {
                let mut blocks = own.into_blocks();
                blocks.extend(other.into_blocks());
                Content::Blocks(blocks)
            }
        }
    }

    /// All text in it, the blocks' joined by line feeds; other blocks say nothing.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Content::Text(raw) => json::string(raw).unwrap_or_default().into_owned(),
            Content::Blocks(blocks) => {
                blocks.iter().filter_map(Block::says).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The content as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.pieces(&mut |piece| json.push_str(piece));
        json
    }

    /// Gives the pieces of the content as JSON to `each`.
    fn pieces<'s>(&'s self, each: &mut impl FnMut(&'s str)) {
        match self {
            Content::Text(raw) => each(raw),
            Content::Blocks(blocks) => {
                each("[");
                for (index, block) in blocks.iter().enumerate() {
                    if index > 0 {
                        each(",");
                    }
                    block.raw.pieces(each);
                }
                each("]");
            }
        }
    }
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content<'a>,
    /// Where it comes from, when that was asked for.
    pub meta: Option<Box<Meta>>,
}

impl<'a> Message<'a> {
    /// A message without `_meta`.
    #[must_use]
    pub fn new(role: Role, content: Content<'a>) -> Message<'a> {
        Message { role, content, meta: None }
    }

    /// A message that says `text`.
    #[must_use]
    pub fn say(role: Role, text: &str) -> Message<'static> {
        Message::new(role, Content::Text(Cow::Owned(json::quote(text))))
    }

    /// Reads one line of the pipe. Lone surrogates become U+FFFD: no provider takes them.
    ///
    /// # Errors
    /// Says why when the line is no message.
    pub fn parse(line: &'a str) -> Result<Message<'a>, String> {
        let object = Object::parse(line).map_err(|error| format!("not a message: {error}"))?;
        if object.may_have_surrogates()
            && let (Cow::Owned(mended), _) = json::mend_surrogates(line)
        {
            return Message::parse(&mended).map(Message::into_owned);
        }
        if object.is_deeper(MOST_DEPTH) {
            return Err(format!("nested more than {MOST_DEPTH} deep"));
        }
        let role = match object.string("role").as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some(other) => return Err(format!("role '{other}' is neither user nor assistant")),
            None => return Err("not a message: no 'role'".to_owned()),
        };
        let content = object.get("content").ok_or("not a message: no 'content'")?;
        let meta = object.get("_meta").map(Meta::parse).transpose()?.map(Box::new);
        Ok(Message { role, content: Content::parse(content)?, meta })
    }

    /// The message with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Message<'static> {
        Message { role: self.role, content: self.content.into_owned(), meta: self.meta }
    }

    /// The blocks; none for a plain string.
    pub fn blocks(&self) -> impl Iterator<Item = &Block<'a>> {
        self.content.blocks().iter()
    }

    /// The ids of the calls in it, in order.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks().filter_map(|block| match &block.kind {
            BlockKind::ToolUse { id } => Some(id.as_ref()),
            _ => None,
        })
    }

    /// The ids of the calls that it answers, in order.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks().filter_map(|block| match &block.kind {
            BlockKind::ToolResult { id } => Some(id.as_ref()),
            _ => None,
        })
    }

    /// Whether it says nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        crate::check::says_nothing(&self.content)
    }

    /// Whether it renders a compaction.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.summary.is_some())
    }

    /// Whether it holds words of the user's, not only results.
    #[must_use]
    pub fn is_said_by_user(&self) -> bool {
        self.role == Role::User
            && match &self.content {
                Content::Text(_) => true,
                Content::Blocks(blocks) => blocks.iter().any(|block| !block.is_result()),
            }
    }

    /// Adds what `other` says to the end of this message.
    pub fn absorb(&mut self, other: Content<'a>) {
        self.content.absorb(other);
    }

    /// The message as JSON, fit to be sent: there is no `_meta`.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.to_text(false)
    }

    /// The message as a line of the pipe, without the line feed: with `_meta` if it has one.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.to_text(true)
    }

    fn to_text(&self, meta: bool) -> String {
        let meta = self.meta_if(meta);
        let mut json = String::new();
        self.pieces(&meta, &mut |piece| json.push_str(piece));
        json
    }

    /// The member `_meta`, if it is asked for and there is one.
    fn meta_if(&self, asked: bool) -> String {
        let meta = self.meta.as_ref().filter(|_| asked);
        meta.map(|meta| format!(r#","_meta":{}"#, meta.to_json())).unwrap_or_default()
    }

    /// Gives the pieces of the message as JSON, with the member `meta`, to `each`.
    fn pieces<'s>(&'s self, meta: &'s str, each: &mut impl FnMut(&'s str)) {
        each(match self.role {
            Role::User => r#"{"role":"user","content":"#,
            Role::Assistant => r#"{"role":"assistant","content":"#,
        });
        self.content.pieces(each);
        each(meta);
        each("}");
    }

    /// Writes the message as JSON, fit to be sent, or with `meta` as a line of the pipe, between `before` and
    /// `after`. Long text is not copied for that, if `out` can do without.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(
        &self,
        meta: bool,
        (before, after): (&str, &str),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let meta = self.meta_if(meta);
        // A result comes in five pieces, with a comma.
        let mut slices = Vec::with_capacity(8 + 6 * self.content.blocks().len());
        slices.push(IoSlice::new(before.as_bytes()));
        self.pieces(&meta, &mut |piece| slices.push(IoSlice::new(piece.as_bytes())));
        slices.push(IoSlice::new(after.as_bytes()));
        let mut left = &mut slices[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match out.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads a pipe of messages, one a line; blank lines are passed over.
///
/// # Errors
/// 65 at the first line that is no message, naming `input` and the line.
pub fn read<'a>(input: &str, bytes: &'a [u8]) -> anyhow::Result<Vec<Message<'a>>> {
    let mut messages = Vec::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message = std::str::from_utf8(line)
            .map_err(|error| format!("not UTF-8: {error}"))
            .and_then(Message::parse);
        match message {
            Ok(message) => messages.push(message),
            Err(why) => {
                let text = format!("cannot read '{input}' line {}: {why}", index + 1);
                return Err(Error::new(Exit::Data, text).into());
            }
        }
    }
    Ok(messages)
}

/// Writes messages, one a line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(messages: &[Message<'_>], out: &mut impl Write) -> io::Result<()> {
    messages.iter().try_for_each(|message| message.write(true, ("", "\n"), out))
}
