//! The size of a request in bytes, and the largest request that a provider accepts.

use crate::estimate::Request;

/// The part of a limit that is kept free: a twentieth, because bodies differ between protocols. A request that is made
/// smaller gets twice as much room, so that the next turn need not be.
const MARGIN: u64 = 20;

/// A limit that a provider documents.
struct Documented {
    /// The provider's name in `--provider`; empty for any.
    provider: &'static str,
    /// A part of the host's name; empty for any host.
    host: &'static str,
    /// The largest body in bytes.
    bytes: u64,
}

/// The documented limits; the first row that matches applies.
///
/// Sources, read on 2026-11-27:
///
/// - Anthropic: platform.claude.com/docs/en/vision, 32 MB for standard endpoints, lower on Bedrock and Vertex AI.
/// - Bedrock: docs.aws.amazon.com, "Request and Response" of Anthropic's Messages, 20 MB.
/// - Vertex AI: 30 MB in reports; the page above gives no number.
/// - Google: blog.google, "Increased file size limits" of 2026-01-12, 100 MB of base64 in one request.
/// - OpenAI: "Images and vision", 512 MB in one request; copies of the page from 2025 say 50 MB of images. A limit that is
///   too high costs one refused call, and one that is too low costs images.
///
/// Ollama and llama.cpp document none.
const DOCUMENTED: [Documented; 5] = [
    Documented { provider: "", host: "bedrock", bytes: 20_000_000 },
    Documented { provider: "", host: "aiplatform.googleapis.com", bytes: 30_000_000 },
    Documented { provider: "", host: "generativelanguage.googleapis.com", bytes: 100_000_000 },
    Documented { provider: "anthropic", host: "", bytes: 32_000_000 },
    Documented { provider: "openai", host: "", bytes: 512_000_000 },
];

/// Returns the documented limit of a provider at an address, in bytes.
#[must_use]
pub fn documented(provider: &str, address: &str) -> Option<u64> {
    let is_it = |row: &&Documented| {
        (row.provider.is_empty() || row.provider == provider) && address.contains(row.host)
    };
    DOCUMENTED.iter().find(is_it).map(|row| row.bytes)
}

/// Returns the size of a request in bytes: messages, system prompt and tools, without what a protocol adds.
#[must_use]
pub fn of(request: Request<'_, '_>) -> u64 {
    let messages = request.messages.iter().map(|message| message.json_length() as u64 + 1);
    let length = |text: Option<&str>| text.map_or(0, str::len) as u64;
    messages.sum::<u64>() + length(request.system) + length(request.tools)
}

/// A limit on the size of a request, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteLimit(pub u64);

impl ByteLimit {
    /// Returns the largest size that surely fits.
    #[must_use]
    pub fn most(self) -> u64 {
        self.0 - self.0 / MARGIN
    }

    /// Returns the size to which a request that does not fit is made smaller.
    #[must_use]
    pub fn target(self) -> u64 {
        self.0 - self.0 / MARGIN * 2
    }

    /// Returns true if a request of this size fits.
    #[must_use]
    pub fn fits(self, bytes: u64) -> bool {
        bytes <= self.most()
    }
}

/// A request that was refused because of its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusedBody {
    /// The size of the body that was sent.
    pub sent: Option<u64>,
    /// The limit that the refusal states.
    pub stated: Option<u64>,
    /// The limit that is documented, or was stated before.
    pub known: Option<u64>,
    /// The largest body that the endpoint accepted.
    pub accepted: Option<u64>,
}

impl RefusedBody {
    /// Returns the size to which to reduce a request of `now` bytes, in the same measure as `now`. It is just below the
    /// smallest limit that the body exceeds. If no limit explains the refusal, it is half of the body, or the largest accepted
    /// body if that is larger.
    #[must_use]
    pub fn target(self, now: u64) -> u64 {
        let sent = self.sent.unwrap_or(now).max(1);
        let limits = self.stated.into_iter().chain(self.known);
        let exceeded = limits.filter(|limit| *limit < sent).min();
        let accepted = self.accepted.filter(|accepted| *accepted < sent).unwrap_or(0);
        let half = || (sent / 2).max(accepted);
        let allowed = exceeded.map_or_else(half, |limit| ByteLimit(limit).target());
        u64::try_from(u128::from(now) * u128::from(allowed) / u128::from(sent)).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn the_host_decides_before_the_provider() {
        for (provider, address, limit) in [
            ("anthropic", "https://api.anthropic.com", Some(32_000_000)),
            ("anthropic", "http://127.0.0.1:8080", Some(32_000_000)),
            ("anthropic", "https://bedrock-runtime.us-east-1.amazonaws.com", Some(20_000_000)),
            (
                "openai",
                "https://generativelanguage.googleapis.com/v1beta/openai",
                Some(100_000_000),
            ),
            ("ollama", "http://127.0.0.1:11434", None),
            ("offline", "offline", None),
        ] {
            assert_eq!(documented(provider, address), limit, "{provider} {address}");
        }
    }

    #[test]
    fn the_size_is_that_of_the_json_text() {
        let text = r#"{"role":"user","content":"hi"}"#;
        let messages = messages::read("t", text.as_bytes()).unwrap();
        let request = Request { messages: &messages, system: Some("a\"b"), ..Request::default() };
        assert_eq!(of(request), text.len() as u64 + 1 + 3);
    }

    #[test]
    fn a_refused_request_is_reduced_to_its_limit_or_by_half() {
        let body = |sent, stated, known, accepted| RefusedBody { sent, stated, known, accepted };
        for (body, target) in [
            (body(None, None, None, None), 500),
            (body(Some(1000), Some(600), Some(800), None), 540),
            // The body is twice as large as our measure of it.
            (body(Some(2000), Some(1000), None, None), 450),
            // A limit that the body does not exceed is not the reason.
            (body(Some(1000), None, Some(5000), None), 500),
            (body(Some(1000), None, None, Some(900)), 900),
            (body(Some(1000), None, None, Some(2000)), 500),
        ] {
            assert_eq!(body.target(1000), target, "{body:?}");
        }
    }
}
