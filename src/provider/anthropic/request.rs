//! Writes the body of a request.

use crate::json::quote;
use crate::json::write::Members;
use crate::provider::ModelRequest;
use crate::provider::address::Platform;
use crate::provider::cache::Marks;
use crate::provider::effort::Effort;
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
    let marks = Marks::of(request);
    let messages = request.messages.iter().map(|it| without_reasoning(it).to_json()).collect();
    let container = request.container.map(|id| Members::new().raw("id", id).into_json());
    let body = match request.wanted_cache() {
        Some(cache) if platform == Platform::Own => cache.ask_why(body),
        _ => body,
    };
    thinking(body, request)
        .optional(Members::decimal, "temperature", request.temperature)
        .optional(Members::raw, "container", container.as_deref())
        .optional(Members::raw, "system", request.system.map(|it| marks.system(it)).as_deref())
        .optional(Members::raw, "tools", request.tools.map(|it| marks.tools(it)).as_deref())
        .list("messages", marks.messages(messages, takes_mark))
        .into_json()
}

/// Returns true for the types of blocks that can have a mark for the cache: all but a few (the `_block_param.py` without
/// `cache_control` in anthropic 2.14.0).
fn takes_mark(kind: &str) -> bool {
    !matches!(kind, "thinking" | "redacted_thinking" | "fallback" | "mcp_tool_listing")
}

/// Adds how much the model thinks: `thinking`, with a budget, adaptive or disabled, and `output_config.effort`, whose lowest level
/// is low (`types/thinking_config_param.py` and `types/output_config_param.py` of anthropic 2.14.0). A model that refuses a budget
/// thinks only if it is asked to adapt.
fn thinking(body: Members, request: &ModelRequest<'_, '_>) -> Members {
    let effort = request.level(true);
    let kind = match (request.budget(), effort) {
        (Some(0), _) | (None, Some(Effort::None)) => Some("disabled"),
        (Some(_), _) => Some("enabled"),
        (None, Some(_)) if request.thinking_budget.is_some() => Some("adaptive"),
        (None, _) => None,
    };
    let budget = request.budget().filter(|tokens| *tokens > 0);
    let body = match kind {
        Some(kind) => body.object("thinking", |it| {
            it.string("type", kind).optional(Members::number, "budget_tokens", budget)
        }),
        None => body,
    };
    match effort.filter(|level| *level != Effort::None) {
        Some(level) => {
            body.object("output_config", |it| it.string("effort", level.max(Effort::Low).name()))
        }
        None => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::refusal::Feature;

    #[test]
    fn thinking_has_a_budget_and_an_effort() {
        for (effort, budget, expected) in [
            (None, None, "{}"),
            (Some(Effort::None), None, r#"{"thinking":{"type":"disabled"}}"#),
            (Some(Effort::Minimal), None, r#"{"output_config":{"effort":"low"}}"#),
            (Some(Effort::Medium), None, r#"{"output_config":{"effort":"medium"}}"#),
            (None, Some(0), r#"{"thinking":{"type":"disabled"}}"#),
            (None, Some(2000), r#"{"thinking":{"type":"enabled","budget_tokens":2000}}"#),
            (
                Some(Effort::Max),
                Some(2000),
                r#"{"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"max"}}"#,
            ),
            (
                Some(Effort::None),
                Some(2000),
                r#"{"thinking":{"type":"enabled","budget_tokens":2000}}"#,
            ),
        ] {
            let plain = ModelRequest::plain(&[], 9);
            let request = ModelRequest { effort, thinking_budget: budget, ..plain };
            assert_eq!(thinking(Members::new(), &request).into_json(), expected);
        }
    }

    #[test]
    fn what_the_model_refuses_is_left_out() {
        for (refused, expected) in [
            (
                Feature::ThinkingBudget,
                r#"{"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}}"#,
            ),
            (Feature::Thinking, "{}"),
        ] {
            let mut request =
                ModelRequest { thinking_budget: Some(2000), ..ModelRequest::plain(&[], 9) };
            request.without.add(refused);
            assert_eq!(thinking(Members::new(), &request).into_json(), expected);
        }
    }
}
