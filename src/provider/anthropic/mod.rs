//! The Anthropic Messages API.

mod reply;
mod request;
mod stream;

use crate::json::Object;
use crate::json::write::Members;
use crate::provider::address::{self, Platform};
use crate::provider::api::{Api, Urls};
use crate::provider::batch::{BatchService, MessageBatches};
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply};

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

/// The protocol on a platform.
pub struct Anthropic(pub Platform);

impl Api for Anthropic {
    /// The URLs on Vertex AI and Bedrock are those of `lib/vertex/_client.py` and `lib/bedrock/_client.py` in anthropic 2.14.0.
    fn urls(&self, base: &str, model: &str) -> Urls {
        let name = address::segment(model);
        match self.0 {
            Platform::Own => {
                let url = url(base);
                let count = address::with_ending(&url, "/count_tokens");
                let models = url.replacen("/messages", "/models", 1);
                Urls::same(url, Some(count), address::with_parameter(&models, "limit=1000"))
            }
            Platform::Vertex => {
                let (models, query) = address::vertex_parent(base, "anthropic");
                Urls {
                    reply: format!("{models}/{name}:rawPredict{query}"),
                    stream: format!("{models}/{name}:streamRawPredict{query}"),
                    count: Some(format!("{models}/count-tokens:rawPredict{query}")),
                    models: None,
                }
            }
            Platform::Bedrock => {
                let (path, query) = address::split_query(base);
                let path = path.find("/model/").map_or(path, |at| &path[..at]);
                Urls {
                    reply: format!("{path}/model/{name}/invoke{query}"),
                    stream: format!("{path}/model/{name}/invoke-with-response-stream{query}"),
                    count: None,
                    models: None,
                }
            }
        }
    }

    fn body(&self, request: &ModelRequest<'_, '_>) -> String {
        request::body(request, self.0)
    }

    /// Vertex AI and Bedrock take the version in the body, and Bedrock the features too.
    fn headers(&self, betas: &str) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", VERSION.to_owned());
        let betas = Some(("anthropic-beta", betas.to_owned())).filter(|(_, it)| !it.is_empty());
        match self.0 {
            Platform::Own => [version].into_iter().chain(betas).collect(),
            Platform::Vertex => betas.into_iter().collect(),
            Platform::Bedrock => Vec::new(),
        }
    }

    /// The number is that of `types/thinking_config_enabled_param.py` in anthropic 2.14.0.
    fn least_budget(&self) -> Option<u64> {
        Some(1024)
    }

    /// Vertex AI takes the model in the body of a counting request, because it is not in the URL.
    fn count_body(&self, body: &Object<'_>, model: &str) -> String {
        let is_left_out = |name: &str| matches!(name, "max_tokens" | "model");
        let members = body.members().filter(|member| !is_left_out(&member.name()));
        members.fold(Members::new().string("model", model), Members::member).into_json()
    }

    fn summary_url(&self, urls: &Urls) -> Option<String> {
        (self.0 == Platform::Own).then(|| urls.reply.clone())
    }

    /// The member is that of `types/beta/beta_compaction_config_param.py` in anthropic 2.14.0.
    fn summary_body(&self, body: &Object<'_>) -> Option<String> {
        let summarise = Members::of_type("summarize").into_json();
        (self.0 == Platform::Own).then(|| body.with("compaction", &summarise))
    }

    /// The name is that of `types/anthropic_beta_param.py` in anthropic 2.14.0.
    fn summary_beta(&self) -> Option<&'static str> {
        (self.0 == Platform::Own).then_some("compact-2026-09-04")
    }

    fn batches(&self, base: &str, _: &str) -> Option<Box<dyn BatchService>> {
        (self.0 == Platform::Own).then(|| Box::new(MessageBatches::beside(&url(base))) as _)
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
