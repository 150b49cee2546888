//! How a turn or a session ended.

use super::{Item, ShownEntry};

/// How a turn ended, or a session, whose last turn decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Without a reply to the last prompt or result.
    #[default]
    NoReply,
    /// With a complete reply.
    Completed,
    /// With a reply that reached a limit, or was to be continued.
    CutOff,
    /// With an interrupted reply.
    Interrupted,
    /// With a failed request, or a reply that the provider withheld.
    Failed,
    /// With a tool call that has no result, or is missing.
    OpenCall,
}

impl Outcome {
    /// Updates it with the next entry.
    pub fn take(&mut self, entry: &ShownEntry) {
        *self = match &entry.item {
            Item::Turn(_) | Item::Result(_) => Outcome::NoReply,
            Item::Reply(reply) => match reply.stop_reason.as_deref() {
                _ if reply.interrupted => Outcome::Interrupted,
                Some("max_tokens" | "length" | "model_context_window_exceeded" | "pause_turn") => {
                    Outcome::CutOff
                }
                // The calls follow.
                Some("tool_use" | "tool_calls") => Outcome::OpenCall,
                Some("refusal" | "content_filter") => Outcome::Failed,
                _ => Outcome::Completed,
            },
            Item::Call { .. } => Outcome::OpenCall,
            Item::Error(_) => Outcome::Failed,
            Item::Injected { name, .. } if name == "interruption" => Outcome::Interrupted,
            _ => return,
        };
    }
}
