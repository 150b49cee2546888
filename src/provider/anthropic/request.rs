//! Writes the body of a request.

use crate::json::write::Members;
use crate::provider::ModelRequest;
use crate::provider::reasoning::without_reasoning;

/// Returns the body of a request. The same request always gives the same bytes.
pub fn body(request: &ModelRequest<'_, '_>) -> String {
    let body = Members::new()
        .string("model", request.model)
        .number("max_tokens", request.max_tokens)
        .flag("stream", request.stream);
    let body = match request.effort {
        Some(effort) => effort.for_anthropic(body),
        None => body,
    };
    body.optional(Members::string, "system", request.system)
        .optional(Members::raw, "tools", request.tools)
        .list("messages", request.messages.iter().map(|it| without_reasoning(it).to_json()))
        .into_json()
}
