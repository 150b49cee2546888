//! The parts of a request in the order in which providers cache them, to tell how much of the last request a new one repeats.
//!
//! Only lengths and hashes are kept, so that they can be stored.

use crate::json::{Object, elements};
use crate::provider::ModelRequest;
use crate::provider::protocol::Protocol;
use crate::record::digest;

/// The members of bodies that come before the messages, and the lists of messages, by the names that APIs have for them.
const BEFORE: [&str; 4] = ["tools", "system", "systemInstruction", "instructions"];
const MESSAGES: [&str; 3] = ["messages", "input", "contents"];

/// The parts of a request: tools, system prompt and messages; of each, its length in bytes and a hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestParts(Vec<(u64, String)>);

impl RequestParts {
    /// Returns the parts of a request, without the marks of a cache.
    #[must_use]
    pub fn of(request: &ModelRequest<'_, '_>, protocol: Protocol) -> RequestParts {
        let body = protocol.body(&ModelRequest { cache: None, ..*request });
        let Ok(object) = Object::parse(&body) else { return RequestParts::default() };
        let before = BEFORE.iter().filter_map(|name| object.get(name));
        let lists = MESSAGES.iter().filter_map(|name| elements(object.get(name)?));
        let parts = before.chain(lists.flatten());
        RequestParts(parts.map(|part| (part.len() as u64, digest(part))).collect())
    }

    /// Returns the length in bytes of the parts that both begin with.
    #[must_use]
    pub fn common(&self, earlier: &RequestParts) -> u64 {
        let pairs = self.0.iter().zip(&earlier.0).take_while(|(own, other)| own == other);
        pairs.map(|((bytes, _), _)| bytes).sum()
    }

    /// Returns the length of all parts in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(bytes, _)| bytes).sum()
    }

    /// Returns the parts as text, one per line.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(bytes, digest)| format!("{bytes} {digest}\n")).collect()
    }

    /// Reads what [`RequestParts::to_text`] wrote. Reading ends at a line that is something else.
    #[must_use]
    pub fn read(text: &str) -> RequestParts {
        let part = |line: &str| {
            let (bytes, digest) = line.split_once(' ')?;
            Some((bytes.parse().ok()?, digest.to_owned()))
        };
        RequestParts(text.lines().map_while(part).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use clap::ValueEnum;

    #[test]
    fn audit_40_a_request_that_grows_repeats_all_of_the_last_one() {
        let lines = r#"{"role":"user","content":"one"}
{"role":"assistant","content":"two"}
{"role":"user","content":"three"}"#;
        for protocol in Protocol::value_variants() {
            let parts = |text: &str, system| {
                let messages = messages::read("t", text.as_bytes()).unwrap();
                let request =
                    ModelRequest { system: Some(system), ..ModelRequest::plain(&messages, 9) };
                RequestParts::of(&request, *protocol)
            };
            let (first, all) = (parts(lines.lines().next().unwrap(), "s"), parts(lines, "s"));
            assert_eq!(all.common(&first), first.bytes());
            assert!(first.bytes() > 0 && first.bytes() < all.bytes());
            assert_eq!(all.common(&parts(lines, "other")), 0);
            assert_eq!(RequestParts::read(&all.to_text()), all);
        }
    }
}
