//! Ollama's native `/api/chat`.
//!
//! It is used instead of Ollama's chat completions because only the native API lets a request set the context window
//! and forbid truncating the prompt. Old servers may truncate it anyway, so [`truncated`] checks the counts in the
//! answer.

mod reply;
mod request;
mod stream;
pub mod truncated;

use crate::json::Object;
use crate::provider::api::{Api, Urls};
use crate::provider::collect::Collect;
use crate::provider::{ModelRequest, Reply, address};
pub(super) use request::message;

/// The default window in tokens: the server's default on a machine with less than 24 GiB of video memory (see the
/// server's docs/context-length.mdx). It is sent with every request, because a different window makes the server
/// reload the model.
pub const WINDOW: u64 = 4096;
/// Returns the URL of the endpoint. The base URL may end in a slash, `/api` or `/v1`, or be the endpoint itself,
/// which is returned unchanged. A query stays at the end.
#[must_use]
pub fn url(base: &str) -> String {
    let (path, query) = address::split_query(base);
    if path.ends_with("/api/chat") {
        return base.to_owned();
    }
    let bare = path.strip_suffix("/api").or_else(|| path.strip_suffix("/v1"));
    format!("{}/api/chat{query}", bare.unwrap_or(path))
}

/// The protocol.
pub struct Ollama;

impl Api for Ollama {
    fn urls(&self, base: &str, _: &str) -> Urls {
        let url = url(base);
        let models = url.replacen("/api/chat", "/api/tags", 1);
        Urls::same(url, None, models)
    }

    fn body(&self, request: &ModelRequest<'_, '_>) -> String {
        request::body(request)
    }

    fn default_window(&self) -> Option<u64> {
        Some(WINDOW)
    }

    fn read(&self, answer: &Object<'_>) -> Result<Reply, String> {
        reply::read(answer)
    }

    fn begins_stream(&self, value: &Object<'_>) -> bool {
        value.get("done").is_some_and(|done| done == "false")
    }

    fn collect(&self) -> Box<dyn Collect> {
        Box::<stream::OllamaStream>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::reply::read;
    use super::request::body;
    use super::*;
    use crate::exit::Exit;
    use crate::json::elements;
    use crate::messages::{self, Message};
    use crate::provider::Failure;
    use crate::provider::protocol::Protocol;
    use crate::provider::recorded;

    const LINES: &str = r#"{"role":"user","content":[{"type":"text","text":"look \u00e9"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}},{"type":"image","source":{"type":"url","url":"http://x"}}]}
{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{"x": 1e2}},{"type":"tool_use","id":"b","name":"g","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"found"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eQ=="}}],"is_error":true},{"type":"text","text":"and?"}]}
{"role":"assistant","content":"so"}"#;

    fn request<'r, 'a>(messages: &'r [Message<'a>]) -> ModelRequest<'r, 'a> {
        ModelRequest::plain(messages, 9)
    }

    #[test]
    fn a_base_url_may_end_in_a_slash_or_an_api_path() {
        for base in ["http://x", "http://x/", "http://x/api", "http://x/api/", "http://x/v1/"] {
            assert_eq!(url(base), "http://x/api/chat");
        }
    }

    #[test]
    fn messages_are_converted_to_chat_messages() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let request = ModelRequest {
            system: Some("be brief"),
            tools: Some(r#"[{"name":"f","input_schema":{}}]"#),
            ..request(&messages)
        };
        let expected = concat!(
            r#"{"model":"m","stream":false,"truncate":false,"shift":false,"#,
            r#""options":{"num_ctx":4096,"num_predict":9},"#,
            r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"messages":["#,
            r#"{"role":"system","content":"be brief"},"#,
            r#"{"role":"user","content":"look \u00e9\nhttp://x","images":["eA=="]},"#,
            r#"{"role":"assistant","content":"","tool_calls":["#,
            r#"{"id":"a","function":{"name":"f","arguments":{"x": 1e2}}},"#,
            r#"{"id":"b","function":{"name":"g","arguments":{}}}]},"#,
            r#"{"role":"tool","tool_name":"f","tool_call_id":"a","content":"found"},"#,
            r#"{"role":"tool","tool_name":"g","tool_call_id":"b","content":"ERROR: no\n[image]"},"#,
            r#"{"role":"user","content":"and?","images":["eQ=="]},"#,
            r#"{"role":"assistant","content":"so"}]}"#
        );
        assert_eq!(body(&request), expected);
        let wide = body(&ModelRequest { window: Some(8192), stream: true, ..request });
        assert!(wide.contains(r#""stream":true"#) && wide.contains(r#""num_ctx":8192"#), "{wide}");
    }

    #[test]
    fn sent_messages_read_back_as_the_same_blocks() {
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let body = body(&request(&messages));
        let body = Object::parse(&body).unwrap();
        let sent = elements(body.get("messages").unwrap()).unwrap()[1];
        let answer = format!(r#"{{"message":{sent},"done":true,"done_reason":"stop"}}"#);
        let reply = read(&Object::parse(&answer).unwrap()).unwrap();
        let own: Vec<&str> = messages[1].blocks().skip(1).map(|block| block.raw.as_ref()).collect();
        assert_eq!(reply.blocks, own);
        assert_eq!(reply.stop_reason.as_deref(), Some("tool_use"));
    }

    const WHOLE: &str = r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":"日本 \ud83d\ude00","thinking":"hm \u00e9","tool_calls":[{"function":{"name":"f","arguments":{"x": 1e2,"y":"\u00e9"}}},{"id":"b","function":{"name":"g","arguments":{}}}]},"done":true,"done_reason":"stop","total_duration":5e3,"prompt_eval_count":26,"eval_count":7}"#;
    const STREAM: &str = r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m","message":{"role":"assistant","content":"","thinking":" \u00e9"},"done":false}
{"model":"m","message":{"role":"assistant","content":"日本 \ud83d"},"done":false}
{"model":"m","message":{"role":"assistant","content":"\ude00","tool_calls":[{"function":{"name":"f","arguments":{"x": 1e2,"y":"\u00e9"}}}]},"done":false}
{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"b","function":{"name":"g","arguments":{}}}]},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":5e3,"prompt_eval_count":26,"eval_count":7}
"#;

    fn streamed(text: &str, size: usize) -> (Result<Reply, Failure>, String) {
        recorded::read(Protocol::Ollama, "application/x-ndjson", text.as_bytes(), size)
    }

    #[test]
    fn a_stream_split_anywhere_gives_the_same_reply_as_a_complete_answer() {
        let expected = read(&Object::parse(WHOLE).unwrap()).unwrap();
        let blocks = [
            r#"{"type":"reasoning","thinking":"hm \u00e9"}"#,
            r#"{"type":"text","text":"日本 \ud83d\ude00"}"#,
            r#"{"type":"tool_use","id":"call_1","name":"f","input":{"x": 1e2,"y":"\u00e9"}}"#,
            r#"{"type":"tool_use","id":"b","name":"g","input":{}}"#,
        ];
        assert_eq!(expected.blocks, blocks);
        let usage = r#"{"total_duration":5e3,"prompt_eval_count":26,"eval_count":7}"#;
        assert_eq!(expected.usage.as_deref(), Some(usage));
        assert_eq!(expected.reasoning, None);
        for size in 1..=STREAM.len() {
            let (reply, shown) = streamed(STREAM, size);
            assert_eq!(reply.unwrap(), expected, "{size}");
            assert!(shown.starts_with("日本 "), "{shown}");
        }
        // A complete answer is a stream of one line.
        assert_eq!(streamed(WHOLE, 9).0.unwrap(), expected);
    }

    #[test]
    fn a_stream_without_its_end_is_a_retryable_failure() {
        for at in (0..STREAM.len() - 1).filter(|at| STREAM.is_char_boundary(*at)) {
            let failure = streamed(&STREAM[..at], 7).0.unwrap_err();
            assert_eq!((failure.exit(), failure.retryable), (Exit::Unavailable, true), "{at}");
        }
        let error =
            "{\"error\":\"server busy, please try again.  maximum pending requests exceeded\"}\n";
        let begin = &STREAM[..STREAM.find('\n').unwrap() + 1];
        let failure = streamed(&format!("{begin}{error}"), 7).0.unwrap_err();
        assert!(failure.retryable && failure.message.contains("server busy"), "{failure}");
    }

    #[test]
    fn stop_reasons_are_translated() {
        let reply = |calls: &str, end: &str| {
            let body = format!(
                r#"{{"message":{{"content":"","tool_calls":[{calls}]}},"done":true{end}}}"#
            );
            read(&Object::parse(&body).unwrap())
        };
        let call = r#"{"function":{"name":"f","arguments":{}}}"#;
        for (calls, end, reason) in [
            ("", r#","done_reason":"stop""#, Some("end_turn")),
            (call, r#","done_reason":"stop""#, Some("tool_use")),
            (call, r#","done_reason":"length""#, Some("max_tokens")),
            ("", r#","done_reason":"load""#, Some("load")),
            ("", "", None),
        ] {
            let reply = reply(calls, end).unwrap();
            assert_eq!(reply.stop_reason.as_deref(), reason, "{calls} {end}");
            assert_eq!((reply.blocks.len(), reply.usage), (usize::from(!calls.is_empty()), None));
        }
        let half = r#"{"function":{"name":"f","arguments":"{\"x\":"}}"#;
        let cut = reply(half, r#","done_reason":"length""#).unwrap().to_records("p");
        assert_eq!((cut.lines.len(), cut.cut_call.as_deref()), (1, Some("f")));
        assert!(reply(half, r#","done_reason":"stop""#).unwrap_err().contains("not a JSON object"));
    }

    #[test]
    fn an_unusable_answer_is_an_error() {
        for body in ["{}", r#"{"done":true}"#, r#"{"message":{"content":"a"},"done":false}"#] {
            assert!(read(&Object::parse(body).unwrap()).is_err(), "{body}");
        }
    }
}
