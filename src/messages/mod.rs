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
mod layout;
pub mod meta;
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
use crate::input::lines::{self, without_mark};
use crate::json::write::{Members, opening};
use crate::json::{self, Object};
use crate::record::content::{Block, BlockKind, Content, Role};
pub use meta::Meta;
use std::borrow::Cow;
use std::io::{self, IoSlice, Write};

/// How deep arrays and objects may be nested in a message: as deep as in a record, and the list and the
/// block that a call or a result stands in.
const MOST_DEPTH: usize = lines::MOST_DEPTH + 2;

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
            && let (Cow::Owned(mended), _) = json::replace_lone_surrogates(line)
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
        self.content.says_nothing()
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
        let Some(meta) = meta else { return String::new() };
        Members::with_capacity(254).object("_meta", |it| meta.add_to(it)).into_rest()
    }

    /// Gives the pieces of the message as JSON, with the member `meta`, to `each`.
    fn pieces<'s>(&'s self, meta: &'s str, each: &mut impl FnMut(&'s str)) {
        each(match self.role {
            Role::User => opening!("role": "user", "content"),
            Role::Assistant => opening!("role": "assistant", "content"),
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
        // Two slices for each block: its text and a comma.
        let mut slices = Vec::with_capacity(8 + 2 * self.content.blocks().len());
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
    for (index, line) in without_mark(bytes).split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message = std::str::from_utf8(line)
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

/// Writes messages, one a line.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(messages: &[Message<'_>], out: &mut impl Write) -> io::Result<()> {
    messages.iter().try_for_each(|message| message.write(true, ("", "\n"), out))
}
