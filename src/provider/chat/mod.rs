//! Chat completions, as offered by OpenAI and many others.

mod details;
mod reply;
mod request;
mod stream;

use crate::json::Object;
use crate::provider::address;
use crate::provider::api::{Api, Urls};
use crate::provider::batch::{BatchService, OpenaiBatches};
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply};
pub(super) use request::message;

/// The default base URL.
pub const BASE_URL: &str = "https://api.openai.com/v1";

/// Returns the URL of the endpoint.
#[must_use]
pub fn url(base: &str) -> String {
    address::openai_url(base, address::CHAT)
}

/// Returns the name of the output limit for `model`, judging only by the model's name and not by the host. From `o1`
/// and `gpt-5` on, OpenAI's models reject `max_tokens`; other servers may not know the newer name.
#[must_use]
pub fn output_limit_name(model: &str) -> &'static str {
    let name = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.trim_start_matches("ft:");
    let version = |family: &str| -> Option<u32> {
        let rest = name.strip_prefix(family)?;
        rest[..rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()]
            .parse()
            .ok()
    };
    // Azure writes 'gpt-35-turbo' for 3.5.
    let is_newer = version("o").is_some() || version("gpt-").is_some_and(|n| (5..30).contains(&n));
    if is_newer { NEWER_LIMIT_NAME } else { LIMIT_NAME }
}

/// The older name of the output limit, which most servers know.
pub const LIMIT_NAME: &str = "max_tokens";
/// The newer name of the output limit.
pub const NEWER_LIMIT_NAME: &str = "max_completion_tokens";

/// The protocol.
pub struct Chat;

impl Api for Chat {
    fn urls(&self, base: &str, _: &str) -> Urls {
        let url = url(base);
        let count = address::with_ending(&url, "/input_tokens");
        Urls::same(url, Some(count), address::openai_models(base))
    }

    fn body(&self, request: &ModelRequest<'_, '_>) -> String {
        request::body(request)
    }

    fn batches(&self, base: &str, _: &str) -> Option<Box<dyn BatchService>> {
        Some(Box::new(OpenaiBatches::under(base, address::CHAT)))
    }

    fn read(&self, answer: &Object<'_>) -> Result<Reply, String> {
        reply::read(answer)
    }

    fn collect(&self) -> Box<dyn Collect> {
        Box::<stream::ChatStream>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_version_is_inserted() {
        for (base, expected) in [
            ("https://api.openai.com", "https://api.openai.com/v1"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1"),
            ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
            ("https://x/api/paas/v4", "https://x/api/paas/v4"),
            ("https://x/v1beta/openai/", "https://x/v1beta/openai"),
            ("http://v1.example", "http://v1.example/v1"),
            ("http://x/version", "http://x/version/v1"),
            ("localhost:8080", "localhost:8080/v1"),
        ] {
            assert_eq!(url(base), format!("{expected}/chat/completions"));
        }
    }

    #[test]
    fn audit_17_a_query_is_kept_and_an_endpoint_url_is_used_unchanged() {
        for (base, expected) in [
            ("https://x/v1?api-version=1", "https://x/v1/chat/completions?api-version=1"),
            (
                "https://x/openai/deployments/gpt-5/?api-version=1",
                "https://x/openai/deployments/gpt-5/chat/completions?api-version=1",
            ),
            ("https://x?key=1", "https://x/v1/chat/completions?key=1"),
            ("https://x/?a=/v1", "https://x/v1/chat/completions?a=/v1"),
        ] {
            assert_eq!(url(base), expected);
        }
        for whole in [
            "https://api.perplexity.ai/chat/completions",
            "https://models.github.ai/inference/chat/completions",
            "https://x/openai/deployments/gpt-5/chat/completions?api-version=1",
            "https://x/chat/completions/",
        ] {
            assert_eq!(url(whole), whole);
        }
    }

    #[test]
    fn audit_16_the_name_of_the_output_limit_depends_on_the_model() {
        for model in ["gpt-5", "openai/gpt-5.4-mini", "o1", "O3-mini", "ft:o4-mini:acme", "gpt-6"] {
            assert_eq!(output_limit_name(model), NEWER_LIMIT_NAME, "{model}");
        }
        for model in
            ["gpt-4o", "gpt-oss-120b", "gpt-35-turbo", "gpt-3.5-turbo", "olmo-2", "m", "", "gpt-"]
        {
            assert_eq!(output_limit_name(model), LIMIT_NAME, "{model}");
        }
    }
}
