//! The calls to the provider in a rollout file.
//!
//! `token_usage_record` has the counts of one call. Versions without it have only `token_count` events, which can repeat
//! the counts of the last call, so that a call is known by the total that it changed. Newer versions write both, and
//! then only the first is used.
//!
//! A fork can begin with a copy of its parent's records, which is written with new times. The copy includes the parent's
//! `session_meta`, after that of the fork. A call is therefore named after the thread that began the conversation, and
//! after its response or the total, which are the same in every copy.

use crate::json::outline::Value;

/// The calls seen so far.
#[derive(Debug, Default)]
pub struct Calls {
    /// The thread that began the conversation.
    thread: String,
    /// True after the first item, when the header and those that it copies are complete.
    has_items: bool,
    /// True after a `token_usage_record`.
    has_records: bool,
    /// The total usage in the newest `token_count` event, as JSON.
    total: String,
}

/// A call to the provider.
#[derive(Clone, Debug)]
pub struct Call {
    /// An id that the call has in every copy of the conversation.
    pub id: String,
    /// The tokens of the prompt, the part of them that was in the cache, and the tokens of the output.
    pub counts: [u64; 3],
}

impl Calls {
    /// Takes a record, given its type and payload. Returns the call that the record counts.
    pub fn take(&mut self, kind: &str, payload: Value<'_>) -> Option<Call> {
        match kind {
            "session_meta" if !self.has_items => {
                let parent = payload.string("forked_from_id");
                let thread = parent.or_else(|| payload.string("id"));
                self.thread = thread.unwrap_or_default().into_owned();
                None
            }
            "response_item" => {
                self.has_items = true;
                None
            }
            "token_usage_record" => {
                self.has_records = true;
                let thread = payload.string("thread_id");
                let response = payload.get("response_id").filter(|id| *id != "null");
                let own = response.or_else(|| payload.get("thread_token_usage"));
                self.call(thread.as_deref(), own.unwrap_or_default(), payload.object("usage"))
            }
            "event_msg" if payload.get("type") == Some("\"token_count\"") => {
                let info = payload.object("info")?;
                let total = info.get("total_token_usage").filter(|total| *total != self.total)?;
                total.clone_into(&mut self.total);
                let last = info.object("last_token_usage").filter(|_| !self.has_records);
                self.call(None, total, last)
            }
            _ => None,
        }
    }

    fn call(&self, thread: Option<&str>, own: &str, usage: Option<Value<'_>>) -> Option<Call> {
        let usage = usage?;
        let number = |name| usage.number(name).unwrap_or(0);
        let counts = ["input_tokens", "cached_input_tokens", "output_tokens"].map(number);
        let thread = thread.unwrap_or(&self.thread);
        Some(Call { id: [thread, ":", own.trim_matches('"')].concat(), counts })
    }
}
