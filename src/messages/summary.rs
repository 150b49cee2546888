//! The messages of a compaction: the summary, and the reply to it.

use crate::messages::Message;
use crate::record::compaction::Summary;
use crate::record::content::Role;

/// The assistant's reply to a summary.
const ACKNOWLEDGEMENT: &str = "Agreed. Let me build on this summary.";

/// Returns the message that replaces the records covered by a summary.
#[must_use]
pub fn message(summary: &Summary) -> Message<'static> {
    Message::text(Role::User, &summary.render())
}

/// Returns the assistant's reply to a summary. It is needed when the next message is the user's, because roles must
/// alternate.
#[must_use]
pub fn acknowledgement() -> Message<'static> {
    Message::text(Role::Assistant, ACKNOWLEDGEMENT)
}
