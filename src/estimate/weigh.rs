//! The weights of messages and of their blocks, in the units of [`text::weigh`]: text by the model's tokenizer family,
//! images by size, and a fixed weight for what a provider adds around each message, call and result.

use super::images::{self, ImageRule};
use super::items::{Item, Part};
use super::{Family, Method, Model, Request, exact, text};
use crate::json::{self, Object, elements};
use crate::messages::Message;
use crate::record::content::{Block, BlockKind, Content, reasoning_text, sealed_length};
use crate::record::scale::Basis;
use std::borrow::Cow;

/// The overhead of a message in tokens: role and turn markers. OpenAI documents 3 to 4; the chat templates of open
/// models take 4 to 5.
const MESSAGE: u64 = 4;

/// The tokens that a provider adds to calls and tools.
struct Overheads {
    /// For a call: block markers, the id and the markers of its arguments.
    call: u64,
    /// For a result.
    result: u64,
    /// For the instructions of a request with tools.
    tools: u64,
}

/// Measured in a real session with claude-sonnet-4-5: 48 tokens per call in addition to its decoded input, 14 per
/// result. Anthropic documents 264 to 530 tokens for tools, depending on the model.
const OF_CLAUDE: Overheads = Overheads { call: 48, result: 14, tools: 530 };
/// From the chat templates of open models. OpenAI and Google do not document theirs.
const OF_OTHERS: Overheads = Overheads { call: 20, result: 10, tools: 100 };

/// The assumed number of base64 bytes per token of a document, whose pages are not counted.
const DOCUMENT_BYTES: u64 = 12;

/// The assumed number of bytes per token of reasoning that only its author can read. It is text, which has about four.
const SEALED_BYTES: u64 = 4;

/// Converts a weight to whole tokens, rounded up.
pub(super) fn tokens(weight: u64) -> u64 {
    weight.div_ceil(text::UNIT)
}

/// Weighs the parts of a request with a method, for a tokenizer family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weigher {
    method: Method,
    family: Family,
    images: ImageRule,
    /// The factor for text and overheads, in thousandths.
    factor: u64,
}

impl Weigher {
    /// Returns a weigher that uses the family of the request's model.
    pub fn new(request: Request<'_, '_>, method: Method) -> Weigher {
        let weigher = Weigher { method, ..Weigher::of(Family::Unknown) };
        request.model.map_or(weigher, |Model { family, images, factor, .. }| Weigher {
            family,
            images,
            factor,
            ..weigher
        })
    }

    /// Returns a weigher for the tokenizers of a family.
    pub fn of(family: Family) -> Weigher {
        let images = ImageRule::default();
        Weigher { method: Method::Script, family, images, factor: 1000 }
    }

    /// Returns the basis of its estimates.
    pub fn basis(self) -> Option<Basis> {
        super::basis(self.family, self.factor)
    }

    fn overheads(self) -> Overheads {
        match self.family {
            Family::Claude | Family::NewerClaude | Family::Unknown => OF_CLAUDE,
            _ => OF_OTHERS,
        }
    }

    /// Multiplies a weight by the factor.
    fn scaled(self, weight: u64) -> u64 {
        (weight * self.factor).div_ceil(1000)
    }

    /// Returns the weight of an overhead of `count` tokens.
    fn fixed(self, count: u64) -> u64 {
        self.scaled(count * text::UNIT)
    }

    /// Returns the weight of `text` in the units of [`text::weigh`].
    pub fn text(self, text: &str) -> u64 {
        match self.method {
            Method::Script => self.estimated(text),
            Method::Chars4 => text.chars().count() as u64 / 4 * text::UNIT,
            Method::Exact => exact::count(text, self.family)
                .map_or_else(|| self.estimated(text), |count| count * text::UNIT),
        }
    }

    /// Returns the weight of the text of a JSON string, as [`Weigher::text`] does; 0 for another value.
    fn string(self, raw: &str) -> u64 {
        match self.method {
            Method::Script => self.scaled(text::weigh_json(raw, self.family).unwrap_or(0)),
            _ => json::string(raw).map_or(0, |value| self.text(&value)),
        }
    }

    fn estimated(self, text: &str) -> u64 {
        self.scaled(text::weigh(text, self.family))
    }

    /// Returns the weight of a part that claw0's method does not count; 0 with that method.
    fn ours(self, weight: impl FnOnce() -> u64) -> u64 {
        match self.method {
            Method::Script | Method::Exact => weight(),
            Method::Chars4 => 0,
        }
    }

    /// Returns the weight of the system prompt and the tools of a request.
    pub fn system_and_tools(self, request: Request<'_, '_>) -> (u64, u64) {
        let system = request.system.map_or(0, |system| self.ours(|| self.text(system)));
        let tools = request.tools.map_or(0, |tools| self.ours(|| self.tools(tools)));
        (system, tools)
    }

    fn tools(self, tools: &str) -> u64 {
        match elements(tools) {
            Some(none) if none.is_empty() => 0, // is sent as a request without tools
            _ => self.fixed(self.overheads().tools) + self.text(tools),
        }
    }

    /// Returns the items of the message with this index. The first item includes the overhead of the message.
    pub fn message(self, index: usize, message: &Message<'_>) -> Vec<Item> {
        let role = Part::of(message.role);
        let item = |part, call, weight| Item { part, message: Some(index), call, weight };
        let mut items = Vec::new();
        match &message.content {
            Content::Text(raw) => {
                items.push(item(role, None, self.string(raw)));
            }
            Content::Blocks(blocks) => {
                for block in blocks {
                    let (part, call) = match &block.kind {
                        BlockKind::ToolResult { id } => (Part::Results, Some(id.clone())),
                        BlockKind::Media => (Part::Images, None),
                        _ => (role, None),
                    };
                    let (own, images) = self.with_images(block);
                    items.push(item(part, call.clone(), own));
                    items.extend((images > 0).then(|| item(Part::Images, call, images)));
                }
            }
        }
        if items.is_empty() {
            items.push(item(role, None, 0));
        }
        items[0].weight += self.ours(|| self.fixed(MESSAGE));
        items
    }

    /// Returns the weight of a message.
    pub fn whole(self, message: &Message<'_>) -> u64 {
        self.message(0, message).iter().map(|item| item.weight).sum()
    }

    /// Returns the weight of a block.
    pub fn block(self, block: &Block<'_>) -> u64 {
        let (own, images) = self.with_images(block);
        own + images
    }

    /// Returns the weight of a block without the images in a tool result, and the weight of those images.
    fn with_images(self, block: &Block<'_>) -> (u64, u64) {
        match (&block.kind, block.raw.value()) {
            (BlockKind::Text | BlockKind::Blank, Some(text)) => return (self.string(text), 0),
            (BlockKind::ToolResult { .. }, Some(content)) => return self.result(content),
            _ => {}
        }
        let Ok(object) = Object::parse(&block.raw) else { return (0, 0) };
        let string = |name: &str| object.get(name).map_or(0, |value| self.string(value));
        let own = match block.kind {
            BlockKind::Text | BlockKind::Blank => string("text"),
            BlockKind::ToolUse { .. } => {
                let input = object.get("input").map_or(0, |input| self.text(&self.input(input)));
                self.ours(|| self.fixed(self.overheads().call) + string("name")) + input
            }
            BlockKind::ToolResult { .. } => {
                return self.result(object.get("content").unwrap_or("[]"));
            }
            BlockKind::Thinking { .. } => self.ours(|| self.thinking(&object)),
            BlockKind::Media => self.ours(|| self.media(&object)),
            BlockKind::Other => self.ours(|| self.text(&block.raw)),
        };
        (own, 0)
    }

    /// Returns the weight of thinking. What only its author can read is base64: four characters are three bytes, and a token
    /// has about [`SEALED_BYTES`] of them.
    fn thinking(self, block: &Object<'_>) -> u64 {
        let sealed = sealed_length(block) as u64 / 4 * 3 / SEALED_BYTES;
        let text = block.get("thinking").map(Cow::Borrowed).or_else(|| reasoning_text(block));
        match text {
            Some(text) => self.string(&text).max(self.fixed(sealed)),
            None if sealed > 0 => self.fixed(sealed),
            None => self.text(block.text()),
        }
    }

    /// Returns the input of a call as a model reads it. For Claude, Anthropic counts the decoded members, not the JSON.
    fn input(self, json: &str) -> Cow<'_, str> {
        let is_decoded = matches!(self.family, Family::Claude | Family::NewerClaude);
        match Object::parse(json) {
            Ok(input) if is_decoded && self.method == Method::Script => decoded(&input).into(),
            _ => as_sent(json),
        }
    }

    /// Returns the weight of a result with this content without its images, and that of the images.
    fn result(self, raw: &str) -> (u64, u64) {
        let overhead = self.ours(|| self.fixed(self.overheads().result));
        if raw.starts_with('"') {
            return (overhead + self.string(raw), 0);
        }
        if self.method == Method::Chars4 {
            return (overhead, 0);
        }
        let (mut own, mut images) = (overhead, 0);
        for block in elements(raw).unwrap_or_default().into_iter().flat_map(Block::parse) {
            let weight = self.block(&block);
            *if block.kind == BlockKind::Media { &mut images } else { &mut own } += weight;
        }
        (own, images)
    }

    fn media(self, object: &Object<'_>) -> u64 {
        let source = object.get("source").and_then(|source| Object::parse(source).ok());
        let unknown = images::UNKNOWN * text::UNIT;
        let Some(source) = source else { return unknown };
        let data = source.string("data").unwrap_or_default();
        let is_document = object.string("type").as_deref() == Some("document");
        match source.string("type").as_deref() {
            Some("text") => self.text(&data),
            Some("base64") if is_document => {
                (data.len() as u64 / DOCUMENT_BYTES * text::UNIT).max(unknown)
            }
            Some("base64") => self.images.tokens(&data) * text::UNIT,
            _ => unknown,
        }
    }
}

/// Returns the members as lines of the form `NAME: VALUE`, with strings unquoted and unescaped.
fn decoded(input: &Object<'_>) -> String {
    let mut lines = String::with_capacity(input.text().len());
    for member in input.members() {
        let value = json::string(member.value).unwrap_or_else(|| as_sent(member.value));
        lines.extend([&*member.name(), ": ", &*value, "\n"]);
    }
    lines
}

/// Returns JSON with its `\u` escapes decoded, as a model reads it.
fn as_sent(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return json.into();
    }
    // Invalid JSON is weighed unchanged.
    serde_json::from_str::<serde_json::Value>(json)
        .map_or(json.into(), |value| value.to_string().into())
}
