//! The Anthropic Messages API.

mod reply;
mod request;
mod stream;

use crate::json::Object;
use crate::provider::api::Api;
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply, address};

/// The default base URL.
pub const BASE_URL: &str = "https://api.anthropic.com";
/// The API version, sent in the `anthropic-version` header.
pub const VERSION: &str = "2023-06-01";

/// Returns the URL of the Messages endpoint. The base URL may end in a slash or `/v1`, or be the endpoint itself,
/// which is returned unchanged. A query stays at the end.
#[must_use]
pub fn url(base: &str) -> String {
    let (path, query) = address::split_query(base);
    if path.ends_with("/messages") {
        return base.to_owned();
    }
    format!("{}/v1/messages{query}", path.strip_suffix("/v1").unwrap_or(path))
}

/// The protocol.
pub struct Anthropic;

impl Api for Anthropic {
    fn url(&self, base: &str) -> String {
        url(base)
    }

    fn count_url(&self, base: &str) -> Option<String> {
        Some(address::with_ending(&url(base), "/count_tokens"))
    }

    fn body(&self, request: &ModelRequest<'_, '_>) -> String {
        request::body(request)
    }

    fn read(&self, answer: &Object<'_>) -> Result<Reply, String> {
        reply::read(answer)
    }

    fn collect(&self) -> Box<dyn Collect> {
        Box::<stream::AnthropicStream>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_may_end_in_a_slash_or_the_version() {
        for base in ["http://x", "http://x/", "http://x/v1", "http://x/v1/"] {
            assert_eq!(url(base), "http://x/v1/messages");
        }
    }
}
