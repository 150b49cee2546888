//! Ollama's native `/api/chat`: builds request bodies and reads replies.
//!
//! It is used instead of Ollama's chat completions because only the native API lets a request set the context window
//! and forbid truncating the prompt. Old servers may truncate it anyway, so [`was_truncated`] checks the counts in the
//! answer.

use crate::json::write::Members;
use crate::json::{Object, elements};
use crate::provider::chat::draft::{CallDraft, Draft};
use crate::provider::chat::{self, ChatTurn, UserPart};
use crate::provider::collect::{Collect, Remaining, Unfinished, bounded};
use crate::provider::{ModelRequest, Reply, address};
use std::borrow::Cow;

/// The default base URL, which is also the server's default (`OLLAMA_HOST`).
pub const BASE_URL: &str = "http://127.0.0.1:11434";
/// The default window in tokens: the server's default on a machine with less than 24 GiB of video memory (see the
/// server's docs/context-length.mdx). It is sent with every request, because a different window makes the server
/// reload the model.
pub const WINDOW: u64 = 4096;
/// The number of tokens that the server keeps from the beginning when it truncates a prompt: its default for
/// `num_keep`, and one more for models with a start-of-sequence token (server/routes.go, llm/llama_server.go).
const KEPT: [u64; 2] = [4, 5];
/// The smallest estimate, in tokens, whose ratio to the server's count is checked. This value is a guess.
const MIN_ESTIMATE: u64 = 1000;
/// The ratio of estimate to count, 3/2, above which the prompt may have been truncated. This value is a guess.
const SUSPICIOUS_RATIO: (u64, u64) = (3, 2);
/// The ratio of estimate to count above which the prompt was certainly truncated: for the estimate to be this far off,
/// the tokenizer would have to average at least twelve characters per token, which none does on text.
const CERTAIN_RATIO: u64 = 3;

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

/// Returns the body of a request. The same request always gives the same bytes. `truncate` and `shift` are false, so
/// that the server refuses a prompt that does not fit, instead of truncating it or dropping older tokens while it
/// generates.
#[must_use]
pub fn body(request: &ModelRequest<'_, '_>) -> String {
    let tools = request.tools.and_then(chat::tools);
    Members::new()
        .string("model", request.model)
        .bool("stream", request.stream)
        .bool("truncate", false)
        .bool("shift", false)
        .object("options", |it| {
            it.number("num_ctx", request.window.unwrap_or(WINDOW))
                .number("num_predict", request.max_tokens)
        })
        .optional(Members::raw, "tools", tools.as_deref())
        .list("messages", chat::messages(request, message))
        .into_json()
}

/// Returns a turn as a message in Ollama's form.
pub(super) fn message(turn: &ChatTurn<'_>) -> String {
    match turn {
        ChatTurn::User(parts) => user(parts),
        ChatTurn::Assistant { thinking, text, calls } => {
            let calls = Some(calls.iter().map(call)).filter(|calls| calls.len() > 0);
            Members::new()
                .string("role", "assistant")
                .raw("content", text.as_deref().unwrap_or("\"\""))
                .optional(Members::raw, "thinking", thinking.as_deref())
                .optional(Members::list, "tool_calls", calls)
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
        }
    }
    Members::new().string("role", "user").raw("content", &chat::joined(&texts)).optional(
        Members::list,
        "images",
        Some(images).filter(|images| !images.is_empty()),
    )
}

fn call(call: &chat::ChatCall<'_>) -> String {
    Members::new()
        .string("id", &call.id)
        .object("function", |it| it.raw("name", call.name).raw("arguments", call.input))
        .into_json()
}

/// Reads a complete answer.
///
/// # Errors
/// Returns what is missing, or which tool call has an invalid input, phrased to follow "the answer".
pub fn read(answer: &Object<'_>) -> Result<Reply, String> {
    answer.get("message").ok_or("has no message")?;
    let mut stream = Box::<OllamaStream>::default();
    stream.take(answer, &mut |_| {})?;
    stream.finish().map_err(|unfinished| unfinished.why)
}

/// A streaming reply, one JSON object per line. Each line has a piece of the text and complete tool calls; the last
/// one has the stop reason and the counts. A complete answer is a stream of one line.
#[derive(Default)]
pub struct OllamaStream {
    draft: Draft,
    is_complete: bool,
}

impl Collect for OllamaStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        self.draft.model(data.string("model"));
        if let Some(Ok(message)) = data.get("message").map(Object::parse) {
            show(&self.draft.text.add(message.get("content")));
            self.draft.reasoning.add(message.get("thinking"));
            if message.get("images").and_then(elements).is_some_and(|images| !images.is_empty()) {
                self.draft.left_out = vec!["image".to_owned()];
            }
            let calls = message.get("tool_calls").and_then(elements).unwrap_or_default();
            self.draft.calls.extend(calls.into_iter().map(read_call));
            bounded(self.draft.calls.len())?;
        }
        if data.is_true("done") {
            self.is_complete = true;
            self.draft.stop_reason = data.string("done_reason").map(Cow::into_owned);
            self.draft.usage = usage(data);
        }
        Ok(())
    }

    fn remaining(&self) -> Remaining {
        if self.is_complete { Remaining::None } else { Remaining::Required }
    }

    fn shown(self: Box<Self>) -> Reply {
        self.draft.shown()
    }

    fn finish(self: Box<Self>) -> Result<Reply, Unfinished> {
        if !self.is_complete {
            return Err(Unfinished::cut(self.shown()));
        }
        self.draft.reply()
    }
}

fn read_call(raw: &str) -> CallDraft {
    let mut call = CallDraft::default();
    let Ok(object) = Object::parse(raw) else { return call };
    call.id = object.string("id").unwrap_or_default().into_owned();
    if let Some(Ok(function)) = object.get("function").map(Object::parse) {
        call.name = function.string("name").unwrap_or_default().into_owned();
        call.add_input(function.get("arguments"));
    }
    call
}

/// Returns the counts in the last line: tokens, and times in nanoseconds.
fn usage(data: &Object<'_>) -> Option<String> {
    let counts = |name: &str| {
        matches!(name, "prompt_eval_count" | "eval_count") || name.ends_with("_duration")
    };
    let members = data.members().filter(|member| counts(&member.name()));
    let usage = members.fold(Members::new(), Members::member);
    (!usage.is_empty()).then(|| usage.into_json())
}

/// The likelihood that the server silently truncated a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// There is no sign of truncation.
    No,
    /// The server's count is far below the estimate. Some tokenizers differ that much from the estimate.
    Perhaps,
    /// The count is exactly what the server keeps of a truncated prompt, or lower than any tokenizer could make it.
    Surely,
}

/// Compares `estimate` with the usage in the answer, to detect a truncated prompt. The estimate should be on the low
/// side, to avoid false alarms. `num_ctx` is the requested window in tokens. A count that is missing or 0 is ignored:
/// older servers omit it, or count only tokens that were not cached.
///
/// The server truncates in two ways (server/prompt.go, llm/llama_server.go). It drops whole messages from the front
/// until the rest fits; the count is then any number below the window. Or it cuts the tokens down to
/// `num_ctx - max((num_ctx - num_keep) / 2, 1)`.
#[must_use]
pub fn was_truncated(estimate: u64, usage: Option<&str>, num_ctx: u64) -> Cut {
    let count = usage.and_then(|usage| Object::parse(usage).ok()?.number("prompt_eval_count"));
    let Some(count) = count.filter(|count| *count > 0) else { return Cut::No };
    let left = |kept: u64| num_ctx.saturating_sub((num_ctx.saturating_sub(kept) / 2).max(1));
    if KEPT.into_iter().any(|kept| count == left(kept)) && estimate > count {
        return Cut::Surely;
    }
    let (most, of) = SUSPICIOUS_RATIO;
    match estimate {
        ..MIN_ESTIMATE => Cut::No,
        _ if estimate > count.saturating_mul(CERTAIN_RATIO) => Cut::Surely,
        _ if estimate.saturating_mul(of) > count.saturating_mul(most) => Cut::Perhaps,
        _ => Cut::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
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
            r#"{"type":"text","text":"日本 \ud83d\ude00"}"#,
            r#"{"type":"tool_use","id":"call_1","name":"f","input":{"x": 1e2,"y":"\u00e9"}}"#,
            r#"{"type":"tool_use","id":"b","name":"g","input":{}}"#,
        ];
        assert_eq!(expected.blocks, blocks);
        let usage = r#"{"total_duration":5e3,"prompt_eval_count":26,"eval_count":7}"#;
        assert_eq!(expected.usage.as_deref(), Some(usage));
        assert_eq!(expected.reasoning.as_deref(), Some(r#""hm \u00e9""#));
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

    #[test]
    fn a_silently_truncated_prompt_is_detected() {
        let counted = |count: u64| format!(r#"{{"prompt_eval_count":{count},"eval_count":1}}"#);
        for (estimate, count, num_ctx, expected) in [
            // Counts seen on real servers, also for models with a start-of-sequence token.
            (2100, 2050, 4096, Cut::Surely),
            (2100, 2051, 4096, Cut::Surely),
            (1100, 1026, 2048, Cut::Surely),
            (1100, 1027, 2048, Cut::Surely),
            // The prompt is no longer than what truncation leaves.
            (2050, 2050, 4096, Cut::No),
            // The count is not one that truncation leaves.
            (2100, 2049, 4096, Cut::No),
            // The server dropped messages.
            (6000, 3999, 4096, Cut::Perhaps),
            (6000, 2000, 4096, Cut::Perhaps),
            (6000, 1999, 4096, Cut::Surely),
            (6000, 4000, 4096, Cut::No),
            (1000, 600, 4096, Cut::Perhaps),
            // The prompt is too short, or the count is missing.
            (999, 10, 4096, Cut::No),
            (9000, 0, 4096, Cut::No),
        ] {
            let usage = counted(count);
            let outcome = was_truncated(estimate, Some(&usage), num_ctx);
            assert_eq!(outcome, expected, "{estimate} {count} {num_ctx}");
        }
        assert_eq!(was_truncated(9000, None, 4096), Cut::No);
        assert_eq!(was_truncated(9000, Some("{}"), 4096), Cut::No);
        assert_eq!(was_truncated(u64::MAX, Some(&counted(1)), 0), Cut::Surely);
    }
}
