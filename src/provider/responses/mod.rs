//! OpenAI's Responses API, without state on the server: every request has the whole conversation.

mod reply;
mod request;
mod stream;

use crate::json::Object;
use crate::json::write::Members;
use crate::provider::address;
use crate::provider::api::{Api, Urls};
use crate::provider::batch::{BatchService, OpenaiBatches};
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply};
pub(super) use request::{items, origins};

/// Returns the URL of the endpoint. In Azure's addresses, the deployment gives way: the request names it as its model.
fn url(base: &str) -> String {
    let (path, query) = address::split_query(base);
    let path = path.split("/openai/deployments/").next().unwrap_or_default();
    let is_deployment = path.len() < address::split_query(base).0.len();
    let own = if is_deployment { "/openai" } else { "" };
    address::openai_url(&[path, own, query].concat(), address::RESPONSES)
}

/// The protocol.
pub struct Responses;

impl Api for Responses {
    fn urls(&self, base: &str, _: &str) -> Urls {
        let url = url(base);
        let count = address::with_ending(&url, "/input_tokens");
        Urls::same(url, Some(count), address::openai_models(base))
    }

    fn body(&self, request: &ModelRequest<'_, '_>) -> String {
        request::body(request)
    }

    /// Leaves out the members that the counting endpoint does not take (`resources/responses/input_tokens.py` of openai
    /// 3.57.0).
    fn count_body(&self, body: &Object<'_>, _: &str) -> String {
        let is_left_out =
            |name: &str| matches!(name, "max_output_tokens" | "include" | "store" | "stream");
        let members = body.members().filter(|member| !is_left_out(&member.name()));
        members.fold(Members::new(), Members::member).into_json()
    }

    /// The endpoint and its parameters are those of `types/responses/response_compact_params.py` in openai 3.57.0.
    fn summary_url(&self, urls: &Urls) -> Option<String> {
        Some(address::with_ending(&urls.reply, "/compact"))
    }

    fn summary_body(&self, body: &Object<'_>) -> Option<String> {
        let is_taken = |name: &str| matches!(name, "model" | "input" | "instructions");
        let members = body.members().filter(|member| is_taken(&member.name()));
        Some(members.fold(Members::new(), Members::member).into_json())
    }

    fn batches(&self, base: &str, _: &str) -> Option<Box<dyn BatchService>> {
        Some(Box::new(OpenaiBatches::under(base, address::RESPONSES)))
    }

    fn read(&self, answer: &Object<'_>) -> Result<Reply, String> {
        reply::read(answer)
    }

    fn collect(&self) -> Box<dyn Collect> {
        Box::<stream::ResponsesStream>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_and_a_summary_get_only_what_their_endpoints_take() {
        let body = r#"{"model":"m","input":[1],"instructions":"s","tools":[2],"max_output_tokens":3,"include":[],"store":false,"stream":true}"#;
        let body = Object::parse(body).unwrap();
        assert_eq!(
            Responses.count_body(&body, "m"),
            r#"{"model":"m","input":[1],"instructions":"s","tools":[2]}"#
        );
        let summary = r#"{"model":"m","input":[1],"instructions":"s"}"#;
        assert_eq!(Responses.summary_body(&body).as_deref(), Some(summary));
    }

    #[test]
    fn an_address_may_be_azures_or_the_endpoint_itself() {
        for (base, expected) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            ("https://x/v1/responses/", "https://x/v1/responses"),
            ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/responses"),
            ("https://x.openai.azure.com", "https://x.openai.azure.com/openai/v1/responses"),
            (
                "https://x.openai.azure.com/openai/v1/",
                "https://x.openai.azure.com/openai/v1/responses",
            ),
            (
                "https://x.openai.azure.com/openai/deployments/d?api-version=2",
                "https://x.openai.azure.com/openai/responses?api-version=2",
            ),
            (
                "https://x.openai.azure.com/openai/responses?api-version=2",
                "https://x.openai.azure.com/openai/responses?api-version=2",
            ),
        ] {
            assert_eq!(url(base), expected, "{base}");
        }
    }
}
