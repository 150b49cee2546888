//! Transcripts of other programs.
//!
//! The dialect is detected from the content, never from a file name. claw0's two formats ([`claw0`]) are read
//! record by record, like our own. Tree formats (pi, OpenClaw, GoClaw), whose records name their parents, are
//! only detected, and nothing may be appended to such a file.

pub mod claw0;
pub mod looks;

use crate::json::Object;

/// Returns the name of the tree format that a record belongs to, if any. pi, OpenClaw and GoClaw write
/// `message` records, and session headers with `timestamp` where ours and claw0's have `created`.
#[must_use]
pub fn foreign_tree(object: &Object<'_>) -> Option<&'static str> {
    let kind = object.string("type")?;
    let tree = match kind.as_ref() {
        "message" => object.get("message").is_some_and(|message| message.starts_with('{')),
        "session" => object.get("timestamp").is_some() && object.get("created").is_none(),
        _ => false,
    };
    tree.then_some("pi, OpenClaw or GoClaw")
}
