//! What a message says: blocks, each with its own bytes, or a plain string.

use crate::id::Id;
use crate::json::write::Members;
use crate::json::{self, Object};
use std::borrow::Cow;
use std::fmt;

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
        f.write_str(self.name())
    }
}

impl Role {
    /// Its word in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
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
    /// Thinking: `thinking` or `redacted_thinking`.
    Thinking {
        /// True if it is complete: a text with a signature, or the data of a redacted one.
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
    pub raw: Cow<'a, str>,
    /// What it is.
    pub kind: BlockKind,
}

impl<'a> Block<'a> {
    /// Reads one block.
    ///
    /// # Errors
    /// Says why when `raw` is no block: not an object, no `type`, or a known type that lacks what it
    /// must have.
    pub fn parse(raw: impl Into<Cow<'a, str>>) -> Result<Block<'a>, String> {
        let raw = raw.into();
        let kind = block_kind(&raw)?;
        Ok(Block { raw, kind })
    }

    /// The block with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Block<'static> {
        Block { raw: Cow::Owned(self.raw.into_owned()), kind: self.kind }
    }

    /// A text block that says `text`.
    #[must_use]
    pub fn text(text: &str) -> Block<'static> {
        Block::from_quoted(&json::quote(text))
    }

    /// A text block around a JSON string, whose bytes it keeps.
    fn from_quoted(quoted: &str) -> Block<'static> {
        let raw = Members::with_capacity(quoted.len() + 21).string("type", "text");
        let raw = raw.raw("text", quoted).into_json();
        let kind = if json::is_blank(quoted) { BlockKind::Blank } else { BlockKind::Text };
        Block { raw: Cow::Owned(raw), kind }
    }

    /// Whether it is a result.
    #[must_use]
    pub fn is_result(&self) -> bool {
        matches!(self.kind, BlockKind::ToolResult { .. })
    }

    /// Returns whether it is thinking, redacted or not.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, BlockKind::Thinking { .. })
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
    let says = |name: &str| object.string(name).is_some_and(|text| !text.is_empty());
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
            let has_text = object.get("thinking").is_some_and(|text| text.starts_with('"'));
            Ok(BlockKind::Thinking { signed: has_text && says("signature") })
        }
        "redacted_thinking" => Ok(BlockKind::Thinking { signed: says("data") }),
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

    /// Returns whether it says nothing: a blank string, or no block.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        match self {
            Content::Text(raw) => json::is_blank(raw),
            Content::Blocks(blocks) => blocks.is_empty(),
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
    pub(crate) fn pieces<'s>(&'s self, each: &mut impl FnMut(&'s str)) {
        match self {
            Content::Text(raw) => each(raw),
            Content::Blocks(blocks) => {
                each("[");
                for (index, block) in blocks.iter().enumerate() {
                    if index > 0 {
                        each(",");
                    }
                    each(&block.raw);
                }
                each("]");
            }
        }
    }
}
