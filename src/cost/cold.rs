//! Whether the provider's prompt cache still holds a conversation.

use crate::messages::Message;
use crate::record::content::Role;

/// The lifetimes of a prompt cache in seconds. Anthropic's is five minutes or, if asked for, an hour
/// (platform.claude.com/docs/en/build-with-claude/prompt-caching, November 2026); OpenAI's is at least five minutes
/// (platform.openai.com/docs/guides/prompt-caching, November 2026), so the shorter one is taken for all.
pub const LIFETIMES: [f64; 2] = [300.0, 3600.0];

/// Returns the time of a reply with `_meta`, in seconds since 1970.
#[must_use]
pub fn time_of(message: &Message<'_>) -> Option<f64> {
    message.meta.as_ref().filter(|_| message.role == Role::Assistant)?.time
}

/// Returns true if the newest reply is older than the lifetime of the cache; false if there is none, or its time is unknown.
#[must_use]
pub fn is_cold(messages: &[Message<'_>], lifetime: f64, now: f64) -> bool {
    let newest = messages.iter().rev().find_map(time_of);
    newest.is_some_and(|time| now - time > lifetime)
}
