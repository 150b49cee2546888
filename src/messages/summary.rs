//! A compaction in a request: the message that stands for what it covers, and the answer to it.

use crate::messages::Message;
use crate::record::compaction::Summary;
use crate::record::content::Role;

/// The assistant's answer to a summary, when the user speaks next.
const ACKNOWLEDGEMENT: &str = "Understood. I go on from this summary.";

/// The message that stands for the records that a summary covers.
#[must_use]
pub fn message(summary: &Summary) -> Message<'static> {
    Message::say(Role::User, &summary.render())
}

/// What the assistant says to a summary when the next message is the user's, so that roles go on
/// alternating.
#[must_use]
pub fn acknowledgement() -> Message<'static> {
    Message::say(Role::Assistant, ACKNOWLEDGEMENT)
}
