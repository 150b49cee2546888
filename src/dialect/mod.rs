//! What other programs wrote.
//!
//! The dialect is told from the content, never from a file's name. claw0's two formats
//! ([`claw0`]) are read record by record like our own. Tree formats (pi, OpenClaw, GoClaw: records
//! that name their parents) are another thing; nothing may be appended to such a file.

pub mod claw0;
pub mod looks;

use crate::json::Object;

/// The name of the tree dialect that a record belongs to, if it belongs to one: pi, OpenClaw and
/// GoClaw write `message` records, and headers with `timestamp` where ours (and claw0's) have `created`.
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
