//! The parts of a program's format that a repair needs: which records are sent, their blocks, and how a record is written.

use super::sheet::Sheet;
use crate::json;
use crate::json::write::Members;
use crate::record::content::Role;
use crate::record::digest;
use std::borrow::Cow;

/// The names of the members that link the records of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// The member with the id of a record.
    pub(super) id: &'static str,
    /// The member with the id of its parent.
    pub(super) parent: &'static str,
}

/// A record that the program sends, as far as repairs look at it.
#[derive(Clone, Debug)]
pub(super) struct Said<'a> {
    pub(super) role: Role,
    /// The reply that the record is part of, if a reply can have several records.
    pub(super) reply: Option<Cow<'a, str>>,
    /// The model that wrote it.
    pub(super) model: Option<Cow<'a, str>>,
    /// Its blocks, in order.
    pub(super) parts: Vec<Part<'a>>,
}

/// A block of a record, as JSON, or the record itself where it is one block.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    pub(super) raw: &'a str,
    pub(super) kind: PartKind<'a>,
}

/// The kind of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartKind<'a> {
    /// A call with its id.
    Call(Cow<'a, str>),
    /// The result of the call with this id.
    Result(Cow<'a, str>),
    /// Thinking that is sent as such.
    Thinking,
    /// Anything else.
    Other,
}

/// The opinion about a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mended {
    /// It can be sent as it is.
    Fine,
    /// It must be replaced by this block, for this reason.
    By(String, String),
    /// It must be left out, for this reason.
    Without(String),
}

/// What a block is judged by, besides itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// The role of the record.
    pub(super) role: Role,
    /// The model that wrote the record.
    pub(super) model: Option<&'a str>,
    /// The model that the session goes on with.
    pub(super) now: Option<&'a str>,
    /// True if thinking is left out, also if nothing is wrong with it.
    pub(super) drops_thinking: bool,
}

/// A format.
pub(super) trait Program {
    /// True if the session is never changed, because the id of each record covers the line before it.
    fn is_own(&self) -> bool {
        false
    }

    /// Returns the links of the records, or `None` if the order of the lines is that of the conversation.
    fn links(&self) -> Option<Links> {
        None
    }

    /// True if a result must come before the next message of another kind.
    fn needs_results_next(&self) -> bool {
        true
    }

    /// Makes sure that the file begins as the program expects. `name` is the name of the file.
    ///
    /// # Errors
    /// Returns the reason and the remedy if there is nothing to make it from.
    fn begin(&self, _sheet: &mut Sheet<'_>, _name: &str) -> Result<(), String> {
        Ok(())
    }

    /// Returns the lines of the records that can be sent, in the order of the conversation. `path` has the lines from the
    /// root to the leaf, if the records form a tree.
    fn sent(&self, sheet: &Sheet<'_>, path: &[usize]) -> Vec<usize>;

    /// Returns true if a record can be the leaf of the tree. `is_aside` is true if only records of side conversations are
    /// left to choose from.
    fn is_leaf(&self, _record: &json::Object<'_>, _is_aside: bool) -> bool {
        true
    }

    /// Reads a record, or returns `None` if the program sends nothing for it.
    fn said<'a>(&self, text: &'a str) -> Option<Said<'a>>;

    /// Judges a block.
    fn judge(&self, part: &Part<'_>, context: Context<'_>) -> Mended;

    /// Returns the record with other blocks; there is at least one.
    fn with_parts(&self, text: &str, parts: &[String]) -> String;

    /// Returns the record in a form that the program does not send, or `None` if it can be left out.
    fn silent(&self, text: &str) -> Option<String>;

    /// Returns a call or a result with another id.
    fn with_call_id(&self, part: &Part<'_>, id: &str) -> String;

    /// Returns an error result for a call.
    fn no_result(&self, call: &Part<'_>, id: &str) -> String;

    /// Returns a record with a result. `near` is the record of its call; `id` is the id of the new record, and `parent`
    /// its parent as JSON.
    fn record_of(&self, near: &str, result: &str, id: &str, parent: &str) -> String;

    /// Returns an id for a new record, which depends only on `seed`.
    fn new_id(&self, seed: &str) -> String {
        digest(seed)
    }
}

/// The text of the result of a call that was never answered.
pub(super) const NO_RESULT: &str =
    "[the session has no result of this call; it is not known whether it ran]";

/// Returns a text block with the reason why a block was left out.
pub(super) fn text_block(kind: &str, what: &str) -> String {
    Members::of_type(kind).string("text", what).into_json()
}

/// Returns `object` with the member at `path` set to `value`; unchanged if that is not possible.
pub(super) fn with(object: &str, path: &[&str], value: &str) -> String {
    json::edit::with(object, path, value, 0).unwrap_or_else(|_| object.to_owned())
}

/// Returns `object` without the members `names`.
pub(super) fn without(object: &str, names: &[&str]) -> String {
    names
        .iter()
        .fold(object.to_owned(), |text, name| json::edit::without(&text, &[name]).unwrap_or(text))
}
