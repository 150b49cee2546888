//! Writes the body of a request, and messages in Ollama's form.

use super::WINDOW;
use crate::json::write::Members;
use crate::provider::ModelRequest;
use crate::provider::turns::{self, ChatTurn, UserPart};

/// Returns the body of a request. The same request always gives the same bytes. `truncate` and `shift` are false, so
/// that the server refuses a prompt that does not fit, instead of truncating it or dropping older tokens while it
/// generates.
pub(super) fn body(request: &ModelRequest<'_, '_>) -> String {
    let tools = request.tools.and_then(turns::tools);
    let body = Members::new()
        .string("model", request.model)
        .bool("stream", request.stream)
        .bool("truncate", false)
        .bool("shift", false);
    let body = match request.level(false) {
        Some(effort) => effort.for_ollama(body),
        None => body,
    };
    body.object("options", |it| {
        it.number("num_ctx", request.window.unwrap_or(WINDOW))
            .number("num_predict", request.max_tokens)
            .optional(Members::decimal, "temperature", request.temperature)
    })
    .optional(Members::raw, "tools", tools.as_deref())
    .list("messages", turns::messages(request, message))
    .into_json()
}

/// Returns a turn as a message in Ollama's form.
pub(in crate::provider) fn message(turn: &ChatTurn<'_>) -> String {
    match turn {
        ChatTurn::User(parts) => user(parts),
        ChatTurn::Assistant { thinking, own, text, calls } => {
            let calls = Some(calls.iter().map(call)).filter(|calls| calls.len() > 0);
            let message = Members::new()
                .string("role", "assistant")
                .raw("content", text.as_deref().unwrap_or("\"\""))
                .optional(Members::raw, "thinking", thinking.as_deref());
            own.iter().fold(message, |message, (name, value)| message.named(name, value)).optional(
                Members::list,
                "tool_calls",
                calls,
            )
        }
        ChatTurn::Result { id, name, text } => Members::new()
            .string("role", "tool")
            .optional(Members::raw, "tool_name", *name)
            .string("tool_call_id", id)
            .raw("content", text),
    }
    .into_json()
}

/// Returns a user message: its text, and a separate list of images. An image given by URL cannot be sent, so its URL is
/// added to the text.
fn user(parts: &[UserPart<'_>]) -> Members {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            UserPart::Text(raw) | UserPart::Link(raw) => texts.push(*raw),
            UserPart::Image { data, .. } => images.push(*data),
            UserPart::File { .. } | UserPart::FileLink(_) => {}
        }
    }
    Members::new().string("role", "user").raw("content", &turns::joined(&texts)).optional(
        Members::list,
        "images",
        Some(images).filter(|images| !images.is_empty()),
    )
}

fn call(call: &turns::ChatCall<'_>) -> String {
    Members::new()
        .string("id", &call.id)
        .object("function", |it| it.raw("name", call.name).raw("arguments", call.input))
        .into_json()
}
