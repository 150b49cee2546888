//! Chat completions, as offered by OpenAI and many others: builds request bodies and reads replies.

mod stream;

use crate::json::write::{self, Members};
use crate::provider::ModelRequest;
use crate::provider::address::{self, Address};
use crate::provider::chat::{self, ChatCall, ChatTurn, UserPart};
use crate::record;
use std::borrow::Cow;
pub use stream::{ChatStream, read};

/// The default base URL.
pub const BASE_URL: &str = "https://api.openai.com/v1";
/// The maximum length of a tool call's id, in characters. Other providers generate longer ids, which OpenAI rejects.
const ID_LENGTH: usize = 40;
/// The length of a [`record::digest`], in characters.
const DIGEST_LENGTH: usize = 16;

/// The path of the endpoint.
const ENDPOINT: &str = "/chat/completions";

/// Returns the URL of the endpoint. The base URL may end in a slash or be the endpoint itself; a query stays at the
/// end. `/v1` is inserted unless the path or the query contains a version: `https://host`, `https://host/v1/`,
/// `https://host/api/v1` and `https://host/openai/deployments/x?api-version=1` all work.
#[must_use]
pub fn url(base: &str) -> String {
    let Address { path, query, .. } = Address::parse(base);
    if path.trim_end_matches('/').ends_with(ENDPOINT) {
        return base.to_owned();
    }
    let has_version = path.split('/').any(is_version) || query.contains("api-version=");
    address::with_ending(base, &format!("{}{ENDPOINT}", if has_version { "" } else { "/v1" }))
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

/// Returns true if a segment of a path is a version, such as `v1`, `v4` or `v1beta`.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns the body of a request. The same request always gives the same bytes. The name of the output limit depends
/// on the host and the model, so the request supplies it.
#[must_use]
pub fn body(request: &ModelRequest<'_, '_>) -> String {
    let body = Members::new()
        .string("model", request.model)
        .named(request.max_tokens_name, &request.max_tokens.to_string())
        .flag("stream", request.stream);
    let body = match request.stream {
        true => body.object("stream_options", |it| it.bool("include_usage", true)),
        false => body,
    };
    let tools = request.tools.and_then(chat::tools);
    body.optional(Members::raw, "tools", tools.as_deref())
        .list("messages", chat::messages(request, message))
        .into_json()
}

/// Returns a turn as a message of chat completions.
pub(super) fn message(turn: &ChatTurn<'_>) -> String {
    match turn {
        ChatTurn::User(parts) => {
            Members::new().string("role", "user").raw("content", &content(parts))
        }
        ChatTurn::Assistant { thinking, text, calls } => {
            let calls = Some(calls.iter().map(call)).filter(|calls| calls.len() > 0);
            Members::new()
                .string("role", "assistant")
                .or_null(Members::raw, "content", text.as_deref())
                .optional(Members::raw, "reasoning_content", thinking.as_deref())
                .optional(Members::list, "tool_calls", calls)
        }
        ChatTurn::Result { id, text, .. } => Members::new()
            .string("role", "tool")
            .string("tool_call_id", &short(id))
            .raw("content", text),
    }
    .into_json()
}

/// Returns the content of a user message: a string if there is only text, because not every host accepts a list.
fn content(parts: &[UserPart<'_>]) -> String {
    let texts = parts.iter().map(|part| match part {
        UserPart::Text(raw) => Some(*raw),
        UserPart::Image { .. } | UserPart::Link(_) => None,
    });
    let texts: Option<Vec<&str>> = texts.collect();
    if let Some(texts) = texts {
        return chat::joined(&texts);
    }
    let image = |url: &str| {
        Members::of_type("image_url").object("image_url", |it| it.raw("url", url)).into_json()
    };
    write::list(parts.iter().map(|part| match part {
        UserPart::Text(raw) => Members::of_type("text").raw("text", raw).into_json(),
        UserPart::Link(url) => image(url),
        UserPart::Image { media_type, data } => {
            let (media_type, data) = (chat::inner(media_type), chat::inner(data));
            image(&format!(r#""data:{media_type};base64,{data}""#))
        }
    }))
}

fn call(call: &ChatCall<'_>) -> String {
    Members::new()
        .string("id", &short(&call.id))
        .string("type", "function")
        .object("function", |it| it.raw("name", call.name).string("arguments", call.input))
        .into_json()
}

/// Shortens a tool call's id to [`ID_LENGTH`]. A long id keeps its beginning, followed by a digest of all of it, so
/// that ids stay distinct.
fn short(id: &str) -> Cow<'_, str> {
    if id.chars().count() <= ID_LENGTH {
        return Cow::Borrowed(id);
    }
    let begin: String = id.chars().take(ID_LENGTH - DIGEST_LENGTH).collect();
    Cow::Owned(begin + &record::digest(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Object, elements};
    use crate::messages::{self, Message};

    const LINES: &str = r#"{"role":"user","content":"look \u00e9"}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I \/look"},{"type":"tool_use","id":"a","name":"f","input":{"x": 1e2,"y":"\u00e9"}},{"type":"tool_use","id":"b","name":"g","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"found"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"no"}],"is_error":true},{"type":"text","text":"and?"}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}"#;

    fn request<'r, 'a>(messages: &'r [Message<'a>]) -> ModelRequest<'r, 'a> {
        ModelRequest::plain(messages, 9)
    }

    fn sent(lines: &str) -> String {
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        body(&request(&messages))
    }

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

    #[test]
    fn messages_are_converted_to_chat_messages() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let request = ModelRequest {
            system: Some("be \"brief\""),
            tools: Some(r#"[{"name":"f","input_schema":{}}]"#),
            stream: true,
            ..request(&messages)
        };
        let expected = concat!(
            r#"{"model":"m","max_tokens":9,"stream":true,"stream_options":{"include_usage":true},"#,
            r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"messages":["#,
            r#"{"role":"system","content":"be \"brief\""},{"role":"user","content":"look \u00e9"},"#,
            r#"{"role":"assistant","content":"I \/look","tool_calls":["#,
            r#"{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": 1e2,\"y\":\"\\u00e9\"}"}},"#,
            r#"{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"a","content":"found"},"#,
            r#"{"role":"tool","tool_call_id":"b","content":"ERROR: no"},"#,
            r#"{"role":"user","content":"and?"}]}"#
        );
        assert_eq!(body(&request), expected);
        assert_eq!(body(&request), body(&request));
    }

    #[test]
    fn sent_messages_read_back_as_the_same_blocks() {
        let body = sent(LINES);
        let body = Object::parse(&body).unwrap();
        let message = elements(body.get("messages").unwrap()).unwrap()[1];
        let answer =
            format!(r#"{{"choices":[{{"message":{message},"finish_reason":"tool_calls"}}]}}"#);
        let reply = read(&Object::parse(&answer).unwrap()).unwrap();
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let own: Vec<&str> = messages[1].blocks().skip(1).map(|block| block.raw.as_ref()).collect();
        assert_eq!(reply.blocks, own);
    }

    #[test]
    fn a_call_without_text_has_null_content_and_images_need_a_list() {
        let body = sent(
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image\/png","data":"eA=="}}]},{"type":"text","text":"see"},{"type":"image","source":{"type":"url","url":"http://x"}}]}"#,
        );
        for part in [
            r#"{"role":"assistant","content":null,"tool_calls":[{"#,
            r#"{"role":"tool","tool_call_id":"a","content":"[image]"},{"role":"user","content":["#,
            r#"[{"type":"image_url","image_url":{"url":"data:image\/png;base64,eA=="}},{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"http://x"}}]"#,
        ] {
            assert!(body.contains(part), "{body}");
        }
    }

    #[test]
    fn long_ids_are_shortened_consistently_and_stay_distinct() {
        let long = |last: &str| format!("{}{last}", "é".repeat(45));
        assert_eq!(short(&long("a")).chars().count(), ID_LENGTH);
        assert_ne!(short(&long("a")), short(&long("b")));
        let most = "i".repeat(ID_LENGTH);
        assert_eq!(short(&most), most);
        let id = long("a");
        let body = sent(&format!(
            r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}]}}
{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}"}}]}}"#
        ));
        assert_eq!(body.matches(short(&id).as_ref()).count(), 2);
        assert!(!body.contains(&id));
    }
}
