//! Writes the body of a request.

use crate::json::quote;
use crate::json::write::Members;
use crate::provider::ModelRequest;
use crate::provider::address::Platform;
use crate::provider::reasoning::without_reasoning;

/// The version of the API on Vertex AI (`lib/vertex/_client.py` of anthropic 2.14.0).
const ON_VERTEX: &str = "vertex-2023-10-16";
/// The version of the API on Bedrock (`lib/bedrock/_client.py` of anthropic 2.14.0).
const ON_BEDROCK: &str = "bedrock-2023-05-31";

/// Returns the body of a request. The same request always gives the same bytes. On Vertex AI and Bedrock, the model is in the
/// URL and the version of the API in the body; on Bedrock, so are streaming and the beta features.
pub(super) fn body(request: &ModelRequest<'_, '_>, platform: Platform) -> String {
    let limit = |it: Members| it.number("max_tokens", request.max_tokens);
    let body = match platform {
        Platform::Own => {
            limit(Members::new().string("model", request.model)).flag("stream", request.stream)
        }
        Platform::Vertex => limit(Members::new().string("anthropic_version", ON_VERTEX))
            .flag("stream", request.stream),
        Platform::Bedrock => {
            let betas = request.betas.split(',').filter(|id| !id.is_empty()).map(quote);
            let betas: Vec<String> = betas.collect();
            let body = limit(Members::new().string("anthropic_version", ON_BEDROCK));
            body.optional(Members::list, "anthropic_beta", Some(betas).filter(|it| !it.is_empty()))
        }
    };
    let body = match request.effort {
        Some(effort) => effort.for_anthropic(body),
        None => body,
    };
    body.optional(Members::decimal, "temperature", request.temperature)
        .optional(Members::string, "system", request.system)
        .optional(Members::raw, "tools", request.tools)
        .list("messages", request.messages.iter().map(|it| without_reasoning(it).to_json()))
        .into_json()
}
