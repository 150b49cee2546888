//! The content of a message: a plain string, or blocks that keep their original JSON text.

use crate::hosted;
use crate::id::Id;
use crate::injected;
use crate::json::scan::Scan;
use crate::json::{self, Object};
use crate::record::block_text::BlockText;
use std::borrow::Cow;
use std::fmt;

/// The role of a message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user. Tool results also have this role.
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
    /// Returns the role's name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// The kind of a block, with the members that programs need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A `text` block.
    Text,
    /// A `text` block that is empty or only white space. Providers refuse it.
    Blank,
    /// A tool call: `tool_use`.
    ToolUse {
        /// The id of the call.
        id: Id,
        /// True if its name has no other characters than ASCII letters, digits, `_` and `-`, at most 64, and its input is
        /// an object. Providers refuse any other call.
        is_valid: bool,
    },
    /// A tool result: `tool_result`.
    ToolResult {
        /// The id of the call.
        id: Id,
    },
    /// Thinking: `thinking` or `redacted_thinking`, or `reasoning`, which only the model that wrote it gets back.
    Thinking {
        /// True if it is complete: text with a signature, the data of redacted thinking, or reasoning.
        signed: bool,
    },
    /// An image or a document.
    Media,
    /// Any other block. Programs pass it through unchanged.
    Other,
}

/// A content block with its original JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The block's JSON text.
    pub raw: BlockText<'a>,
    /// The kind of the block.
    pub kind: BlockKind,
}

impl<'a> Block<'a> {
    /// Parses one block.
    ///
    /// # Errors
    /// Returns the reason if `raw` is not an object, has no `type`, or is of a known type and lacks a required member.
    pub fn parse(raw: impl Into<Cow<'a, str>>) -> Result<Block<'a>, String> {
        let raw = raw.into();
        let object = Object::parse(&raw).map_err(|_| "a content block is not an object")?;
        let kind = block_kind(&object)?;
        Ok(Block { raw: raw.into(), kind })
    }

    /// Returns the block with owned data.
    #[must_use]
    pub fn into_owned(self) -> Block<'static> {
        Block { raw: self.raw.into_owned(), kind: self.kind }
    }

    /// Creates a text block.
    #[must_use]
    pub fn from_text(text: &str) -> Block<'static> {
        Block::from_quoted(&json::quote(text))
    }

    /// Creates a text block from a JSON string, whose bytes it keeps.
    fn from_quoted(quoted: &str) -> Block<'static> {
        let kind = if json::is_blank(quoted) { BlockKind::Blank } else { BlockKind::Text };
        Block { raw: BlockText::of_text([BlockText::TEXT_OPENING, quoted, "}"].concat()), kind }
    }

    /// Returns true for a tool result.
    #[must_use]
    pub fn is_result(&self) -> bool {
        matches!(self.kind, BlockKind::ToolResult { .. })
    }

    /// Returns true for thinking, redacted or not.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, BlockKind::Thinking { .. })
    }

    /// Returns the readable text of thinking; `None` for any other block, or if only its author can read it.
    #[must_use]
    pub fn thinking(&self) -> Option<String> {
        let object = Object::parse(&self.raw).ok().filter(|_| self.is_thinking())?;
        let text = object.get("thinking").map(Cow::Borrowed).or_else(|| reasoning_text(&object))?;
        json::string(&text).map(Cow::into_owned)
    }

    /// Returns true for a block of the type `reasoning`, which only its author gets back: reasoning, or what a provider's own
    /// tools did.
    #[must_use]
    pub fn is_of_author(&self) -> bool {
        let may_be = matches!(self.kind, BlockKind::Thinking { .. } | BlockKind::Other);
        may_be && self.member("type").and_then(json::string).is_some_and(|it| it == "reasoning")
    }

    /// Returns true if a message of `role` can contain the block. Only the assistant's messages can contain calls and
    /// thinking, only the user's can contain results and media.
    #[must_use]
    pub fn fits(&self, role: Role) -> bool {
        match self.kind {
            BlockKind::ToolUse { .. } | BlockKind::Thinking { .. } => role == Role::Assistant,
            BlockKind::ToolResult { .. } | BlockKind::Media => role == Role::User,
            BlockKind::Text | BlockKind::Blank | BlockKind::Other => true,
        }
    }

    /// Returns true for a text block that is empty or only white space.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.kind == BlockKind::Blank
    }

    /// Returns the JSON text of the member `name`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&str> {
        Object::parse(&self.raw).ok().and_then(|object| object.get(name))
    }

    /// Returns the content of a tool result; nothing if it has none that can be read.
    #[must_use]
    pub fn result_content(&self) -> Content<'_> {
        let content = self.member("content").and_then(|raw| Content::parse(raw).ok());
        content.unwrap_or(Content::nothing())
    }

    /// Returns the text of a text block; `None` for any other block.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self.kind {
            BlockKind::Text | BlockKind::Blank => {
                self.member("text").and_then(json::string).map(Cow::into_owned)
            }
            _ => None,
        }
    }
}

fn block_kind(object: &Object<'_>) -> Result<BlockKind, String> {
    let Some(kind) = object.string("type") else {
        return Err("a content block has no 'type'".to_owned());
    };
    let id = |name: &str| {
        object.string(name).map(Id::from).ok_or_else(|| format!("a '{kind}' block has no '{name}'"))
    };
    let has_text = |name: &str| object.string(name).is_some_and(|text| !text.is_empty());
    match kind.as_ref() {
        "text" => match object.get("text").filter(|text| text.starts_with('"')) {
            None => Err("a 'text' block has no 'text'".into()),
            Some(text) if json::is_blank(text) => Ok(BlockKind::Blank),
            Some(_) => Ok(BlockKind::Text),
        },
        "tool_use" => {
            let is_valid = is_valid_call(object.get("name"), object.get("input"));
            Ok(BlockKind::ToolUse { id: id("id")?, is_valid })
        }
        "tool_result" => Ok(BlockKind::ToolResult { id: id("tool_use_id")? }),
        "thinking" => {
            let has_thinking = object.get("thinking").is_some_and(|text| text.starts_with('"'));
            Ok(BlockKind::Thinking { signed: has_thinking && has_text("signature") })
        }
        "reasoning" if hosted::is_kept(object) => Ok(BlockKind::Other),
        "reasoning" => Ok(BlockKind::Thinking { signed: true }),
        "redacted_thinking" => Ok(BlockKind::Thinking { signed: has_text("data") }),
        "image" | "document" => Ok(BlockKind::Media),
        _ => Ok(BlockKind::Other),
    }
}

/// The members with reasoning in messages of chat completions and of Ollama.
pub const REASONING: [&str; 5] =
    ["reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking"];

/// Returns the readable text of a block of reasoning, as a JSON string: that of a member, of a thought of Gemini, or of an
/// item of the Responses API.
#[must_use]
pub fn reasoning_text<'a>(block: &Object<'a>) -> Option<Cow<'a, str>> {
    let is_text = |value: &&str| value.starts_with('"');
    let own = REASONING.iter().find_map(|name| block.get(name).filter(is_text));
    let object = |name: &str| block.get(name).and_then(|raw| Object::parse(raw).ok());
    let thought = || object("part")?.get("text").filter(is_text);
    own.or_else(thought).map(Cow::Borrowed).or_else(|| item_text(&object("item")?))
}

/// Returns the text of the summary and of the content of an item, as a JSON string.
fn item_text<'a>(item: &Object<'_>) -> Option<Cow<'a, str>> {
    let lists = ["summary", "content"].into_iter().filter_map(|name| item.get(name));
    let parts = lists.flat_map(|list| json::elements(list).unwrap_or_default());
    let texts = parts.filter_map(|part| Object::parse(part).ok()?.get("text"));
    let texts: Vec<&str> =
        texts.filter_map(|raw| raw.strip_prefix('"')?.strip_suffix('"')).collect();
    (!texts.is_empty()).then(|| Cow::Owned(format!("\"{}\"", texts.join("\\n"))))
}

/// Returns the length in bytes of the part of reasoning that only its author can read.
#[must_use]
pub fn sealed_length(block: &Object<'_>) -> usize {
    let item = block.get("item").and_then(|raw| Object::parse(raw).ok());
    let item = item.as_ref().and_then(|item| item.get("encrypted_content"));
    item.or_else(|| block.get("thoughtSignature")).map_or(0, str::len)
}

/// The longest name of a tool that every provider accepts, in characters.
///
/// OpenAI: "Must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64"
/// (`types/shared/function_definition.py` of openai 3.57.0). Anthropic: `tools.0.custom.name: String should match pattern
/// '^[a-zA-Z0-9_-]{1,128}$'`, and 64 in older reports. Gemini: "Must start with a letter or an underscore" (`FunctionDeclaration`
/// in `types.py` of google-genai 3.6.1).
pub const LONGEST_NAME: usize = 64;

/// Returns true if providers accept a call with this name and this input, which are JSON.
#[must_use]
pub fn is_valid_call(name: Option<&str>, input: Option<&str>) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name = name.and_then(|name| name.strip_prefix('"')?.strip_suffix('"'));
    name.is_some_and(|name| {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && name.len() <= LONGEST_NAME && name.as_bytes().iter().all(fits)
    }) && input.is_some_and(|input| input.starts_with('{'))
}

/// Returns the blocks of a list, or `None` if the fast path cannot read it or a block is invalid. This takes one scan, where
/// [`json::elements`] and [`Block::parse`] take two.
fn fast_blocks(raw: &str) -> Option<Vec<Block<'_>>> {
    json::fast_list(raw, |rest| usual_text_block(rest).or_else(|| first_block(rest)))
}

/// Returns the block at the start of `text` and its length, if it is a text block in the usual form.
fn usual_text_block(text: &str) -> Option<(Block<'_>, usize)> {
    if !text.starts_with(BlockText::TEXT_OPENING) {
        return None;
    }
    let begin = BlockText::TEXT_OPENING.len();
    let end =
        Scan::new(text).string(begin).filter(|end| text.as_bytes().get(*end) == Some(&b'}'))?;
    let kind = if json::is_blank(&text[begin..end]) { BlockKind::Blank } else { BlockKind::Text };
    Some((Block { raw: BlockText::of_text(&text[..=end]), kind }, end + 1))
}

/// Returns the block at the start of `text` and its length.
fn first_block(text: &str) -> Option<(Block<'_>, usize)> {
    let (object, length) = Object::first(text)?;
    let kind = block_kind(&object).ok()?;
    Some((Block { raw: BlockText::from(object.text()), kind }, length))
}

/// The content of a message: a plain string, or blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The original text of a JSON string, with its quotes.
    Text(Cow<'a, str>),
    /// Blocks in order.
    Blocks(Vec<Block<'a>>),
}

impl<'a> Content<'a> {
    /// Parses a string or a list of blocks.
    ///
    /// # Errors
    /// Returns the reason if `raw` is neither, or a block is invalid.
    pub fn parse(raw: &'a str) -> Result<Content<'a>, String> {
        if raw.starts_with('"') {
            return Ok(Content::Text(Cow::Borrowed(raw)));
        }
        if let Some(blocks) = fast_blocks(raw) {
            return Ok(Content::Blocks(blocks));
        }
        let elements = json::elements(raw).ok_or("'content' is neither a string nor a list")?;
        elements.into_iter().map(Block::parse).collect::<Result<_, _>>().map(Content::Blocks)
    }

    /// Creates content without blocks.
    #[must_use]
    pub fn nothing() -> Content<'a> {
        Content::Blocks(Vec::new())
    }

    /// Returns the content with owned data.
    #[must_use]
    pub fn into_owned(self) -> Content<'static> {
        match self {
            Content::Text(raw) => Content::Text(Cow::Owned(raw.into_owned())),
            Content::Blocks(blocks) => {
                Content::Blocks(blocks.into_iter().map(Block::into_owned).collect())
            }
        }
    }

    /// Returns the content as blocks. A string becomes one text block.
    #[must_use]
    pub fn into_blocks(self) -> Vec<Block<'a>> {
        match self {
            Content::Text(raw) => vec![Block::from_quoted(&raw)],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// Returns the blocks; none for a plain string.
    #[must_use]
    pub fn blocks(&self) -> &[Block<'a>] {
        match self {
            Content::Text(_) => &[],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// Returns the ids of the tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.blocks().iter().filter_map(|block| match &block.kind {
            BlockKind::ToolUse { id, .. } => Some(id.as_ref()),
            _ => None,
        })
    }

    /// Returns the call ids of the tool results, in order.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.blocks().iter().filter_map(|block| match &block.kind {
            BlockKind::ToolResult { id } => Some(id.as_ref()),
            _ => None,
        })
    }

    /// Returns the number of blocks. A string counts as one.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Content::Text(_) => 1,
            Content::Blocks(blocks) => blocks.len(),
        }
    }

    /// Returns the blocks as a mutable slice, which is empty for a plain string.
    pub fn blocks_mut(&mut self) -> &mut [Block<'a>] {
        match self {
            Content::Text(_) => &mut [],
            Content::Blocks(blocks) => blocks,
        }
    }

    /// Appends `other`. If `self` is an empty list of blocks, it becomes `other` unchanged, even if that is a string.
    /// Otherwise, it becomes a list of blocks.
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

    /// Returns the content without its text: a blank string stays blank, and blocks keep their kinds.
    #[must_use]
    pub fn into_outline(self) -> Content<'static> {
        match self {
            Content::Text(raw) if json::is_blank(&raw) => Content::Text(Cow::Borrowed("\"\"")),
            Content::Text(_) => Content::Text(Cow::Borrowed("\"text\"")),
            Content::Blocks(blocks) => {
                let outline = |block: Block<'_>| Block { raw: "{}".into(), kind: block.kind };
                let mut blocks: Vec<_> = blocks.into_iter().map(outline).collect();
                // It would keep the room that the list with the texts had.
                blocks.shrink_to_fit();
                Content::Blocks(blocks)
            }
        }
    }

    /// Returns true for a blank string, or if there are no blocks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Content::Text(raw) => json::is_blank(raw),
            Content::Blocks(blocks) => blocks.is_empty(),
        }
    }

    /// Returns the text: the string, or the text blocks joined by line feeds. Other blocks are ignored.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Content::Text(raw) => json::string(raw).unwrap_or_default().into_owned(),
            Content::Blocks(blocks) => {
                blocks.iter().filter_map(Block::text).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Returns true unless a program wrote all text in the content, and there are no images or documents.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        let is_all = |raw: &str| {
            injected::may_be_all(raw) && json::string(raw).is_some_and(|it| injected::is_all(&it))
        };
        let blocks = match self {
            Content::Text(raw) => return !is_all(raw),
            Content::Blocks(blocks) => blocks,
        };
        let mut texts = blocks.iter().filter(|block| block.kind == BlockKind::Text).peekable();
        texts.peek().is_none()
            || blocks.iter().any(|block| block.kind == BlockKind::Media)
            || !texts.all(|block| block.member("text").is_some_and(is_all))
    }

    /// Returns the content as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.pieces(&mut |piece| json.push_str(piece));
        json
    }

    /// Calls `each` with the consecutive pieces of the content's JSON text.
    pub(crate) fn pieces<'s>(&'s self, each: &mut impl FnMut(&'s str)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_reads_the_same_blocks() {
        let block = |text: &str| format!(r#"{{"type":"text","text":{text}}}"#);
        let plain = block(r#""a\"b \ud83d""#);
        for (raw, is_read) in [
            (format!("[{plain}]"), true),
            (format!("[{plain},{},{}]", block("\" \\n\""), block("\"\"")), true),
            ("[]".to_owned(), true),
            (format!("[ {plain} , {plain} ]"), true),
            (format!("[{plain},{{\"type\":\"x\"}},{{\"type\": \"image\"}}]"), true),
            (format!("[{{\"type\":\"x\"}},{plain}]"), true),
            (format!("[{plain},{{}}]"), false),
            (format!("[{plain},7]"), false),
            (format!("[\n{plain}]"), false),
            (format!("[{plain},{}]", block("5")), false),
            (format!("[{plain}"), false),
            (format!("[{plain},"), false),
            (format!("[{plain},]"), false),
            (format!("{plain}]"), false),
            (format!("[{plain}]]"), false),
            (format!("[{plain}{plain}]"), false),
            (r#"[{"type":"text","text":"a","text":"b"}]"#.to_owned(), true),
            (r#"[{"type":"text","text":"a\q"}]"#.to_owned(), false),
        ] {
            let blocks = json::elements(&raw).ok_or_else(String::new).and_then(|elements| {
                elements.into_iter().map(Block::parse).collect::<Result<Vec<_>, _>>()
            });
            let found = fast_blocks(&raw);
            assert_eq!(found.is_some(), is_read, "{raw}");
            assert!(found.is_none_or(|found| blocks == Ok(found)), "{raw}");
        }
    }
}
