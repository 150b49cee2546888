//! Writes the body of a request, and messages in the form of chat completions.

use crate::json::write::{self, Members};
use crate::provider::ModelRequest;
use crate::provider::cache::Marks;
use crate::provider::effort::Effort;
use crate::provider::protocol::Protocol;
use crate::provider::turns::{self, ChatCall, ChatTurn, UserPart};
use std::borrow::Cow;

/// The maximum length of a tool call's id, in characters. Other providers generate longer ids, which OpenAI rejects.
const ID_LENGTH: usize = 40;

/// Returns the body of a request. The same request always gives the same bytes. The name of the output limit depends
/// on the host and the model, so the request supplies it.
pub(super) fn body(request: &ModelRequest<'_, '_>) -> String {
    let body = Members::new()
        .string("model", request.model)
        .named(request.max_tokens_name, &request.max_tokens.to_string())
        .flag("stream", request.stream);
    let body = match request.stream {
        true => body.object("stream_options", |it| it.bool("include_usage", true)),
        false => body,
    };
    let body = match request.wanted_cache() {
        Some(cache) => cache.add_to(body, request.model, Protocol::Chat),
        None => body,
    };
    let tools = request.tools.and_then(turns::tools);
    body.optional(Members::decimal, "temperature", request.temperature)
        .optional(Members::string, "reasoning_effort", request.level(false).map(Effort::name))
        .optional(Members::raw, "tools", tools.as_deref())
        .list("messages", marked(request, turns::messages(request, message)))
        .into_json()
}

/// Marks the system prompt and the messages for the cache, if the request asks for it. Only text can have a mark.
fn marked(request: &ModelRequest<'_, '_>, messages: Vec<String>) -> Vec<String> {
    let marks = Marks::of(request);
    let takes = |kind: &str| kind == "text";
    let mut messages = messages.into_iter();
    let system = messages.by_ref().take(usize::from(request.system.is_some())).collect();
    let mut all = marks.messages(system, takes);
    all.extend(marks.messages(messages.collect(), takes));
    all
}

/// Returns a turn as a message of chat completions.
pub(in crate::provider) fn message(turn: &ChatTurn<'_>) -> String {
    match turn {
        ChatTurn::User(parts) => {
            Members::new().string("role", "user").raw("content", &content(parts))
        }
        ChatTurn::Assistant { thinking, own, text, calls } => {
            let calls = Some(calls.iter().map(call)).filter(|calls| calls.len() > 0);
            let message = Members::new()
                .string("role", "assistant")
                .or_null(Members::raw, "content", text.as_deref())
                .optional(Members::raw, "reasoning_content", thinking.as_deref());
            own.iter().fold(message, |message, (name, value)| message.named(name, value)).optional(
                Members::list,
                "tool_calls",
                calls,
            )
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
        _ => None,
    });
    let texts: Option<Vec<&str>> = texts.collect();
    if let Some(texts) = texts {
        return turns::joined(&texts);
    }
    let image = |url: &str| {
        Members::of_type("image_url").object("image_url", |it| it.raw("url", url)).into_json()
    };
    write::list(parts.iter().filter_map(|part| match part {
        UserPart::Text(raw) => Some(Members::of_type("text").raw("text", raw).into_json()),
        UserPart::Link(url) => Some(image(url)),
        UserPart::Image { media_type, data } => Some(image(&turns::data_url(media_type, data))),
        UserPart::File { .. } | UserPart::FileLink(_) => None,
    }))
}

fn call(call: &ChatCall<'_>) -> String {
    Members::new()
        .string("id", &short(&call.id))
        .string("type", "function")
        .object("function", |it| it.raw("name", call.name).string("arguments", call.input))
        .optional(Members::raw, "extra_content", call.extra)
        .into_json()
}

fn short(id: &str) -> Cow<'_, str> {
    turns::short_id(id, ID_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Object, elements};
    use crate::messages::{self, Message};
    use crate::provider::chat::reply;
    use crate::provider::reasoning::Author;

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
        let reply = reply::read(&Object::parse(&answer).unwrap()).unwrap();
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

    #[test]
    fn what_a_server_sent_with_calls_goes_back_to_it_unchanged() {
        let message = r#"{"role":"assistant","content":null,"reasoning":"hm \u00e9","reasoning_details":[{"type":"reasoning.text","text":"hm \u00e9","index":0}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#;
        let answer =
            format!(r#"{{"choices":[{{"message":{message},"finish_reason":"tool_calls"}}]}}"#);
        let mut reply = reply::read(&Object::parse(&answer).unwrap()).unwrap();
        let author = Author::new("chat", "https://x", "m");
        let blocks: Vec<String> = reply.blocks.drain(..).map(|it| author.sign(it)).collect();
        let line = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let sent = |author| body(&ModelRequest { author, ..request(&messages) });
        assert!(sent(Some(&author)).ends_with(&format!("{message}]}}")), "{}", sent(Some(&author)));
        let other = Author::new("chat", "https://y", "m");
        for body in [sent(Some(&other)), sent(None)] {
            assert!(!body.contains("hm") && !body.contains("google"), "{body}");
            assert_eq!(body.matches(r#""type":"function""#).count(), 2);
        }
    }

    #[test]
    fn what_a_text_cites_is_kept_and_is_text_for_others() {
        let message = r#"{"content":"So.","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example","title":"A","start_index":0,"end_index":2}}]}"#;
        let answer = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        let reply = reply::read(&Object::parse(&answer).unwrap()).unwrap();
        let author = Author::new("chat", "https://x", "m");
        let blocks: Vec<String> = reply.blocks.into_iter().map(|it| author.sign(it)).collect();
        assert!(blocks[1].contains(r#""annotations":[{"type":"url_citation""#), "{blocks:?}");
        let line = format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(","));
        let messages = messages::read("t", line.as_bytes()).unwrap();
        let sent = |author| body(&ModelRequest { author, ..request(&messages) });
        assert!(sent(Some(&author)).contains(r#""content":"So."}"#), "{}", sent(Some(&author)));
        let text = r#""content":"So.\n[sources]\n1. A <https://a.example>"}"#;
        assert!(sent(None).contains(text), "{}", sent(None));
    }

    #[test]
    fn thinking_in_parts_of_the_content_is_recorded_and_not_sent() {
        let answer = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}],"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
        let reply = reply::read(&Object::parse(answer).unwrap()).unwrap();
        assert_eq!((reply.reasoning.as_deref(), reply.blocks.len()), (Some("\"hm\""), 1));
    }
}
