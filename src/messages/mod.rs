//! Messages, and how they are rebuilt from records.
//!
//! A [`Message`] is one line of the pipe between the programs: a message of the Anthropic Messages API with `role` and
//! `content`, and with `_meta` if later programs need to refer to the records. Blocks keep their original JSON text
//! unless a program changes them.
//!
//! [`rebuild`] has four stages: [`view`] finds the view records and decides which records are shown, and how; [`fold`]
//! merges the records of a reply and pairs calls with results; the layout creates messages with alternating roles; and
//! [`target`] maps call ids to ids that the provider accepts.

pub mod checkpoint;
pub mod fold;
mod layout;
pub mod meta;
mod model;
pub mod original;
mod pending;
pub mod range;
pub mod rebuild;
pub mod reply;
pub mod summary;
pub mod target;
pub mod undo;
pub mod view;
mod waiting;

use crate::dialect::looks;
use crate::exit::{Error, Exit};
use crate::input::line::{self, without_mark};
use crate::json::write::{Members, opening};
use crate::json::{self, Object};
use crate::record::content::{Block, Content, Role};
use crate::rules::order::Said;
pub use meta::Meta;
pub use model::newest_model;
use std::borrow::Cow;
use std::io::{self, IoSlice, Write};

/// The maximum number of levels of nested arrays and objects in a message: as many as in a record, plus the list and
/// the block around a call or a result.
const MAX_DEPTH: usize = line::MAX_DEPTH + 2;

/// One message of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// The role of its author.
    pub role: Role,
    /// The text or blocks.
    pub content: Content<'a>,
    /// The records behind the message, if they were asked for.
    pub meta: Option<Box<Meta>>,
}

impl<'a> Message<'a> {
    /// Creates a message without `_meta`.
    #[must_use]
    pub fn new(role: Role, content: Content<'a>) -> Message<'a> {
        Message { role, content, meta: None }
    }

    /// Creates a message of plain text.
    #[must_use]
    pub fn text(role: Role, text: &str) -> Message<'static> {
        Message::new(role, Content::Text(Cow::Owned(json::quote(text))))
    }

    /// Parses one line of the pipe. Replaces lone surrogates with U+FFFD, because providers refuse them.
    ///
    /// # Errors
    /// Returns the reason if the line is not a message.
    pub fn parse(line: &'a str) -> Result<Message<'a>, String> {
        let object = Object::parse(line).map_err(|error| format!("not a message: {error}"))?;
        if object.may_have_surrogates()
            && let (Cow::Owned(repaired), _) = json::replace_lone_surrogates(line)
        {
            return Message::parse(&repaired).map(Message::into_owned);
        }
        if object.is_deeper(MAX_DEPTH) {
            return Err(format!("nested more than {MAX_DEPTH} levels deep"));
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

    /// Returns the message with owned data.
    #[must_use]
    pub fn into_owned(self) -> Message<'static> {
        Message { role: self.role, content: self.content.into_owned(), meta: self.meta }
    }

    /// Returns the message without its text: the role, the kinds of the blocks, and from `_meta` the id, the byte
    /// range, the usage, the model and the scale. Checking the outline against a provider's rules gives the same
    /// result as checking the message.
    #[must_use]
    pub fn into_outline(mut self) -> Message<'static> {
        if let Some(meta) = self.meta.as_deref_mut() {
            let Meta { id, usage, model, time, offset, end, scale, .. } = std::mem::take(meta);
            *meta = Meta { id, usage, model, time, offset, end, scale, ..Meta::default() };
        }
        Message { role: self.role, content: self.content.into_outline(), meta: self.meta }
    }

    /// Returns the blocks; none for a plain string.
    pub fn blocks(&self) -> impl Iterator<Item = &Block<'a>> {
        self.content.blocks().iter()
    }

    /// Returns the ids of the tool calls in the message, in order.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.content.calls()
    }

    /// Returns the call ids of the tool results in the message, in order.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.content.results()
    }

    /// Returns true if the message has no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// Returns true if the message is the summary of a compaction.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.summary.is_some())
    }

    /// Returns true for a prompt: a message of the user that does not consist of tool results alone.
    #[must_use]
    pub fn is_from_user(&self) -> bool {
        self.role == Role::User
            && match &self.content {
                Content::Text(_) => true,
                Content::Blocks(blocks) => blocks.iter().any(|block| !block.is_result()),
            }
    }

    /// Appends `other` to the content.
    pub fn absorb(&mut self, other: Content<'a>) {
        self.content.absorb(other);
    }

    /// Returns the message as JSON for a request, without `_meta`.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.to_text(false)
    }

    /// Returns the message as a line of the pipe, with its `_meta` and without a line feed.
    #[must_use]
    pub fn to_line(&self) -> String {
        self.to_text(true)
    }

    /// Returns the length of [`Message::to_json`] in bytes.
    #[must_use]
    pub fn json_length(&self) -> usize {
        let mut length = 0;
        self.pieces("", &mut |piece| length += piece.len());
        length
    }

    fn to_text(&self, meta: bool) -> String {
        let meta = self.meta_if(meta);
        let mut json = String::new();
        self.pieces(&meta, &mut |piece| json.push_str(piece));
        json
    }

    /// Returns the JSON of the member `_meta`; an empty string if there is none or it was not asked for.
    fn meta_if(&self, asked: bool) -> String {
        let meta = self.meta.as_ref().filter(|_| asked);
        let Some(meta) = meta else { return String::new() };
        Members::with_capacity(254).object("_meta", |it| meta.add_to(it)).into_rest()
    }

    /// Calls `each` with the consecutive pieces of the message's JSON text. `meta` is the JSON of the member `_meta`.
    fn pieces<'s>(&'s self, meta: &'s str, each: &mut impl FnMut(&'s str)) {
        each(match self.role {
            Role::User => opening!("role": "user", "content"),
            Role::Assistant => opening!("role": "assistant", "content"),
        });
        self.content.pieces(each);
        each(meta);
        each("}");
    }

    /// Writes the message as JSON between `before` and `after`: with `_meta` if `meta` is true, else in the form for a
    /// request. Long text is not copied if `out` supports vectored writes.
    ///
    /// # Errors
    /// When writing to `out` fails.
    pub fn write(
        &self,
        meta: bool,
        (before, after): (&str, &str),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let meta = self.meta_if(meta);
        let mut slices = Vec::new();
        let mut add = |piece| slices.push(IoSlice::new(str::as_bytes(piece)));
        add(before);
        self.pieces(&meta, &mut add);
        add(after);
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

impl Said for Message<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn content(&self) -> &Content<'_> {
        &self.content
    }
}

/// Parses messages, one per line. Blank lines are ignored.
///
/// # Errors
/// Status 65 at the first line that is not a message, with `input`, the line number and the reason.
pub fn read<'a>(input: &str, bytes: &'a [u8]) -> anyhow::Result<Vec<Message<'a>>> {
    let mut messages = Vec::new();
    let (bytes, mut begin) = (without_mark(bytes), 0);
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    for (index, end) in ends.enumerate() {
        let line = &bytes[begin..end];
        begin = end + 1;
        if line.trim_ascii_start().is_empty() {
            continue;
        }
        let message = simdutf8::compat::from_utf8(line)
            .map_err(|error| format!("not UTF-8: {error}"))
            .and_then(Message::parse);
        match message {
            Ok(message) => messages.push(message),
            Err(why) => {
                let advice = looks::advice(looks::advice_for_messages, bytes);
                let text = format!("cannot read '{input}' line {}: {why}{advice}", index + 1);
                return Err(Error::new(Exit::Data, text).into());
            }
        }
    }
    Ok(messages)
}

/// Writes messages with `_meta`, one per line.
///
/// # Errors
/// When writing to `out` fails.
pub fn write(messages: &[Message<'_>], out: &mut impl Write) -> io::Result<()> {
    messages.iter().try_for_each(|message| message.write(true, ("", "\n"), out))
}
