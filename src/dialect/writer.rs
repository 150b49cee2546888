//! Writes the records of a translation. A long value is not copied from the source; the text refers to its place there.

use crate::dialect::draft::Draft;
use crate::dialect::source::SourceLine;
use crate::dialect::time;
use crate::json;
use crate::usage::Counts;
use std::borrow::Cow;

/// The length in bytes from which a value in the source is not copied.
const LONG: usize = 64;

/// A record that is being written. It ends when the writer is dropped.
#[derive(Debug)]
pub struct RecordWriter<'o> {
    out: &'o mut Draft,
    /// The line that the record comes from.
    line: SourceLine<'o>,
    /// True if no member or element of the innermost object or list has been written yet.
    is_first: bool,
}

/// The content of a message or a result. All strings are JSON.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// A string, or a list of blocks in the form that records use.
    Json(Cow<'a, str>),
    /// Strings, which become one string with a line feed between them.
    Lines(Vec<&'a str>),
    /// Blocks.
    Blocks(Vec<Block<'a>>),
}

/// A block that is not a call. All strings are JSON.
#[derive(Clone, Debug)]
pub enum Block<'a> {
    /// A block in the form that records use.
    Json(&'a str),
    /// Text.
    Text(Cow<'a, str>),
    /// An image: its media type and its data in base64.
    Image(Cow<'a, str>, Cow<'a, str>),
    /// The URL of an image.
    ImageUrl(String),
    /// Thinking, and its signature.
    Thinking(&'a str, &'a str),
    /// The data of redacted thinking.
    RedactedThinking(&'a str),
}

/// The author of a message of the user, as the session of another program states it.
#[derive(Clone, Debug, Default)]
pub struct Author<'a> {
    /// The name of the text, if a program wrote it.
    pub injected: Option<Cow<'a, str>>,
    /// The words of the person in it, if the program put them into its own text.
    pub typed: Option<Cow<'a, str>>,
}

impl<'a> Author<'a> {
    /// Returns the author of text that a program wrote.
    #[must_use]
    pub fn program(name: impl Into<Cow<'a, str>>) -> Author<'a> {
        Author { injected: Some(name.into()), typed: None }
    }
}

/// A part of a reply.
#[derive(Clone, Debug)]
pub enum ReplyPart<'a> {
    /// A block that is not a call.
    Block(Block<'a>),
    /// A tool call. All members are JSON.
    Call {
        /// Its id.
        id: Cow<'a, str>,
        /// The name of the tool.
        name: &'a str,
        /// The input, an object.
        input: Cow<'a, str>,
    },
}

/// A reply: its parts in order, and the members of its first record.
#[derive(Clone, Debug, Default)]
pub struct Reply<'a> {
    /// Its parts.
    pub parts: Vec<ReplyPart<'a>>,
    /// The model, as JSON.
    pub model: Option<&'a str>,
    /// The provider, as JSON.
    pub provider: Option<&'a str>,
    /// The reason why it ended.
    pub stop_reason: Option<Cow<'a, str>>,
    /// The token counts.
    pub usage: Option<Usage<'a>>,
    /// An id that the call to the provider has in every copy of the transcript.
    pub call: Option<Cow<'a, str>>,
    /// Reasoning that is never sent.
    pub reasoning: Option<String>,
    /// True if it was interrupted. Then only its text is kept.
    pub is_interrupted: bool,
}

/// The token counts of a reply.
#[derive(Clone, Debug)]
pub enum Usage<'a> {
    /// An object with the member names of a provider.
    Json(&'a str),
    /// Counts, which are written under the names of the Anthropic API.
    Split(Counts),
    /// Counts under the names of chat completions: the whole prompt, the part of it that was in the cache, and output.
    Whole([u64; 3]),
}

impl<'a> Block<'a> {
    /// Returns an image block for a URL, which may contain the data.
    #[must_use]
    pub fn image(url: &str) -> Block<'a> {
        let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match data {
            Some((media_type, data)) => {
                Block::Image(json::quote(media_type).into(), json::quote(data).into())
            }
            None => Block::ImageUrl(json::quote(url)),
        }
    }
}

impl<'a> ReplyPart<'a> {
    /// Returns a text block with the JSON string `text`.
    #[must_use]
    pub fn text(text: &'a str) -> ReplyPart<'a> {
        ReplyPart::Block(Block::Text(text.into()))
    }
}

/// Splits off the blocks before the first call.
#[must_use]
pub fn split_blocks<'p, 'a>(
    parts: &'p [ReplyPart<'a>],
) -> (&'p [ReplyPart<'a>], &'p [ReplyPart<'a>]) {
    let end = parts.iter().position(|part| matches!(part, ReplyPart::Call { .. }));
    parts.split_at(end.unwrap_or(parts.len()))
}

impl<'o> RecordWriter<'o> {
    /// Begins a record that comes from `line`.
    #[must_use]
    pub fn new(out: &'o mut Draft, line: SourceLine<'o>) -> RecordWriter<'o> {
        out.written().push('{');
        RecordWriter { out, line, is_first: true }
    }

    /// Appends JSON text. A long part of the source line is not copied.
    fn put(&mut self, text: &str) {
        match self.line.range(text).filter(|_| text.len() >= LONG) {
            Some(range) => self.out.cite(range),
            None => self.out.written().push_str(text),
        }
    }

    /// Appends the comma before a member or element, unless it is the first.
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.written().push(',');
        }
    }

    /// Begins a member. Inlined, so that the length of `name` is known, and copying it takes no call.
    #[inline(always)]
    fn name(&mut self, name: &'static str) {
        self.separate();
        let out = self.out.written();
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
    }

    /// Begins an object or list.
    fn open(&mut self, bracket: char) {
        self.out.written().push(bracket);
        self.is_first = true;
    }

    fn close(&mut self, bracket: char) {
        self.out.written().push(bracket);
        self.is_first = false;
    }

    /// Adds a value that already is JSON.
    #[inline]
    pub fn raw(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.name(name);
        self.put(value);
        self
    }

    /// Adds a value that already is JSON, or nothing if there is none.
    #[inline]
    pub fn optional(&mut self, name: &'static str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.raw(name, value);
        }
        self
    }

    /// Adds a string, which is quoted.
    #[inline]
    pub fn string(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.name(name);
        json::push_quoted(self.out.written(), value);
        self
    }

    /// Adds the id of record `number` of the line, counted from 1. `first` is the id of the first record, if it is not
    /// the address of the line.
    pub fn id(&mut self, first: Option<&str>, number: usize) -> &mut Self {
        self.name("id");
        let out = self.out.written();
        match first {
            Some(id) => json::push_quoted(out, id),
            None => {
                out.push_str("\"@");
                out.push_str(itoa::Buffer::new().format(self.line.place.offset));
                out.push('"');
            }
        }
        if number > 1 {
            out.pop();
            out.push('.');
            out.push_str(itoa::Buffer::new().format(number));
            out.push('"');
        }
        self
    }

    /// Adds a list of strings.
    pub fn strings(&mut self, name: &'static str, values: &[String]) -> &mut Self {
        let quoted: Vec<String> = values.iter().map(|value| json::quote(value)).collect();
        self.list(name, quoted.iter().map(String::as_str))
    }

    /// Adds a time in microseconds since 1970 as seconds, or nothing if there is none.
    #[inline]
    pub fn time(&mut self, name: &'static str, micros: Option<i64>) -> &mut Self {
        if let Some(micros) = micros {
            self.name(name);
            time::push(self.out.written(), micros);
        }
        self
    }

    /// Adds a whole number.
    #[inline]
    pub fn number(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.raw(name, itoa::Buffer::new().format(value))
    }

    /// Adds `true` if `is_set`, and nothing otherwise.
    #[inline]
    pub fn flag(&mut self, name: &'static str, is_set: bool) -> &mut Self {
        self.optional(name, is_set.then_some("true"))
    }

    /// Adds a list of values that already are JSON.
    pub fn list<'v>(
        &mut self,
        name: &'static str,
        values: impl Iterator<Item = &'v str>,
    ) -> &mut Self {
        self.name(name);
        self.open('[');
        for value in values {
            self.separate();
            self.put(value);
        }
        self.close(']');
        self
    }

    /// Adds an object with the members that `add` adds.
    pub fn object(&mut self, name: &'static str, add: impl FnOnce(&mut Self)) -> &mut Self {
        self.name(name);
        self.open('{');
        add(self);
        self.close('}');
        self
    }

    /// Adds the author of a message of the user, unless it is the person.
    pub fn author(&mut self, author: &Author<'_>) -> &mut Self {
        let Author { injected, typed } = author;
        let members = [("injected", injected), ("typed", typed)];
        for (name, value) in members {
            if let Some(value) = value {
                self.string(name, value);
            }
        }
        self
    }

    /// Adds the content of a message or a result.
    #[inline]
    pub fn content(&mut self, name: &'static str, content: &Content<'_>) -> &mut Self {
        self.name(name);
        match content {
            Content::Json(raw) => self.put(raw),
            Content::Lines(strings) => self.joined(strings),
            Content::Blocks(blocks) => self.block_list(blocks.iter()),
        }
        self
    }

    /// Adds a list of the blocks in `parts`.
    #[inline]
    pub fn blocks(&mut self, name: &'static str, parts: &[ReplyPart<'_>]) -> &mut Self {
        self.name(name);
        self.block_list(parts.iter().filter_map(|part| match part {
            ReplyPart::Block(block) => Some(block),
            ReplyPart::Call { .. } => None,
        }));
        self
    }

    /// Appends strings as one string with line feeds between them.
    fn joined(&mut self, strings: &[&str]) {
        self.out.written().push('"');
        for (index, string) in strings.iter().enumerate() {
            if index > 0 {
                self.out.written().push_str("\\n");
            }
            self.put(string.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(""));
        }
        self.out.written().push('"');
    }

    fn block_list<'b, 'v: 'b>(&mut self, blocks: impl Iterator<Item = &'b Block<'v>>) {
        self.open('[');
        for block in blocks {
            self.separate();
            self.block(block);
        }
        self.close(']');
    }

    fn block(&mut self, block: &Block<'_>) {
        let kind = match block {
            Block::Json(raw) => return self.put(raw),
            Block::Text(_) => "text",
            Block::Image(..) | Block::ImageUrl(_) => "image",
            Block::Thinking(..) => "thinking",
            Block::RedactedThinking(_) => "redacted_thinking",
        };
        self.open('{');
        self.string("type", kind);
        match block {
            Block::Json(_) => self,
            Block::Text(text) => self.raw("text", text),
            Block::Image(media_type, data) => self.object("source", |it| {
                it.string("type", "base64").raw("media_type", media_type).raw("data", data);
            }),
            Block::ImageUrl(url) => self.object("source", |it| {
                it.string("type", "url").raw("url", url);
            }),
            Block::Thinking(text, signature) => {
                self.raw("thinking", text).raw("signature", signature)
            }
            Block::RedactedThinking(data) => self.raw("data", data),
        }
        .close('}');
    }

    /// Adds the members of the first record of a reply, except for its content.
    pub fn facts(&mut self, reply: &Reply<'_>) -> &mut Self {
        self.optional("model", reply.model).optional("provider", reply.provider);
        if let Some(stop_reason) = &reply.stop_reason {
            self.string("stop_reason", stop_reason);
        }
        if let Some(usage) = &reply.usage {
            self.usage(usage);
        }
        if let Some(call) = &reply.call {
            self.string("request_id", call);
        }
        if let Some(reasoning) = &reply.reasoning {
            self.string("reasoning", reasoning);
        }
        self.flag("interrupted", reply.is_interrupted)
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        match usage {
            Usage::Json(raw) => self.raw("usage", raw),
            Usage::Split(counts) => self.object("usage", |it| {
                it.number("input_tokens", counts.input)
                    .number("cache_read_input_tokens", counts.cache_read)
                    .number("cache_creation_input_tokens", counts.cache_write)
                    .number("output_tokens", counts.output);
                if counts.cache_write_1h > 0 {
                    it.object("cache_creation", |it| {
                        it.number("ephemeral_1h_input_tokens", counts.cache_write_1h);
                    });
                }
            }),
            Usage::Whole([prompt, cached, output]) => self.object("usage", |it| {
                it.number("prompt_tokens", *prompt).number("completion_tokens", *output).object(
                    "prompt_tokens_details",
                    |it| {
                        it.number("cached_tokens", *cached);
                    },
                );
            }),
        };
    }
}

impl Drop for RecordWriter<'_> {
    fn drop(&mut self) {
        self.out.written().push_str("}\n");
    }
}
