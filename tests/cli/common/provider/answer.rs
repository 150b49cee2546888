//! The answers of the fake provider in the form of each API.

use serde_json::{Value, json};

use crate::common::shapes::{self, Shape};
use crate::common::{reply_to, rules};

use super::SUMMARY;
use super::cache::Cached;
use super::http::{Answer, Body};
use super::stream;

/// The time of every reply, in the two forms that the APIs use.
pub(super) const CREATED: u64 = 1_767_225_600;
pub(super) const CREATED_AT: &str = "2026-01-01T00:00:00Z";

/// The content of a reply, independent of its shape.
pub(super) struct Reply<'a> {
    /// The request that it answers.
    pub(super) asked: Asked<'a>,
    /// The text of the reply.
    pub(super) text: String,
    /// The id, name and input of each call.
    pub(super) calls: Vec<(String, String, Value)>,
}

/// A legal request.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) shape: Shape,
    pub(super) body: &'a Value,
    /// The number of the request.
    pub(super) id: usize,
    /// What the prompt reads from the cache and writes to it, if the server has one.
    pub(super) cached: Option<Cached>,
}

impl<'a> Asked<'a> {
    /// Returns true if the request asks for a stream.
    pub(super) fn streams(self) -> bool {
        self.body["stream"] == true
    }

    /// Returns a reply with this text.
    pub(super) fn text(self, text: String) -> Reply<'a> {
        Reply { asked: self, text, calls: Vec::new() }
    }

    /// Returns the reply to a request for which the test has scripted none.
    pub(super) fn default_reply(self) -> Reply<'a> {
        self.text(default_text(self.body))
    }

    /// Returns the default reply with these calls.
    pub(super) fn calls(self, calls: Vec<(String, String, Value)>) -> Reply<'a> {
        Reply { calls, ..self.default_reply() }
    }

    /// Returns an answer with exactly this body.
    pub(super) fn json(self, status: u16, body: &Value) -> Answer {
        Answer::json(status, request_id(self.shape, self.id), body)
    }

    /// Returns an answer that streams these pieces.
    pub(super) fn pieces(self, pieces: Vec<Vec<u8>>) -> Answer {
        let headers = request_id(self.shape, self.id);
        let kind = match self.shape {
            Shape::Ollama => "application/x-ndjson",
            Shape::Anthropic | Shape::OpenAi => "text/event-stream",
        };
        Answer { status: 200, headers, body: Body::Pieces(pieces) }.with("content-type", kind)
    }
}

impl Reply<'_> {
    /// Returns the answer, as a stream if the request asks for one.
    pub(super) fn answer(&self) -> Answer {
        if self.asked.streams() {
            return self.asked.pieces(stream::pieces(self));
        }
        self.asked.json(200, &self.whole())
    }

    /// Returns an answer that breaks off with an error halfway through the stream. If the request does not ask for a
    /// stream, the answer is only the error, with status 200, as some gateways send it.
    pub(super) fn broken(&self, kind: &str, message: &str) -> Answer {
        let error = error_body(self.asked.shape, self.asked.id, kind, message);
        if self.asked.streams() {
            return self.asked.pieces(stream::broken(self, &error));
        }
        self.asked.json(200, &error)
    }

    /// Returns the numbers of tokens in the prompt and in this reply.
    pub(super) fn usage(&self) -> (u64, u64) {
        let reply = json!({"messages": [{"role": "assistant", "content": self.blocks()}]});
        (shapes::count_tokens(self.asked.shape, self.asked.body), rules::count_tokens(&reply))
    }

    /// Returns the stop reason. Ollama has no separate stop reason for calls.
    pub(super) fn stop(&self) -> &'static str {
        match (self.asked.shape, self.calls.is_empty()) {
            (Shape::Anthropic, true) => "end_turn",
            (Shape::Anthropic, false) => "tool_use",
            (Shape::OpenAi, false) => "tool_calls",
            (Shape::OpenAi, true) | (Shape::Ollama, _) => "stop",
        }
    }

    fn blocks(&self) -> Vec<Value> {
        let calls = self.calls.iter().map(
            |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}),
        );
        [json!({"type": "text", "text": self.text})].into_iter().chain(calls).collect()
    }

    fn whole(&self) -> Value {
        match self.asked.shape {
            Shape::Anthropic => self.message(self.blocks(), Some(self.stop())),
            Shape::OpenAi => self.completion(),
            Shape::Ollama => self.last_line(self.ollama_message()),
        }
    }

    /// Returns a message of the Messages API. Without a stop reason, it is the one that begins a stream.
    pub(super) fn message(&self, content: Vec<Value>, stop_reason: Option<&str>) -> Value {
        let (input, output) = self.usage();
        let plain = Cached { prompt: input, ..Cached::default() };
        let Cached { prompt, read, written, hour, miss } = self.asked.cached.unwrap_or(plain);
        let miss = miss.map(|(why, tokens)| match tokens {
            0 => json!({"type": why}),
            _ => json!({"type": why, "cache_missed_input_tokens": tokens}),
        });
        json!({
            "id": format!("msg_{}", self.asked.id),
            "type": "message",
            "role": "assistant",
            "model": self.asked.body["model"],
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "diagnostics": miss.map(|miss| json!({"cache_miss_reason": miss})),
            "usage": {
                "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
                "input_tokens": prompt - read - written,
                "cache_creation_input_tokens": written,
                "cache_read_input_tokens": read,
                "output_tokens": if stop_reason.is_some() { output } else { 1 },
            },
        })
    }

    fn completion(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(|(id, name, input)| {
                let function = json!({"name": name, "arguments": input.to_string()});
                json!({"id": id, "type": "function", "function": function})
            });
            message["tool_calls"] = calls.collect();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.stop()});
        let mut body = self.chunk("chat.completion", json!([choice]));
        body["usage"] = self.openai_usage();
        body
    }

    /// Returns an object with the members that all objects of chat completions share.
    pub(super) fn chunk(&self, object: &str, choices: Value) -> Value {
        json!({
            "id": format!("chatcmpl-{}", self.asked.id),
            "object": object,
            "created": CREATED,
            "model": self.asked.body["model"],
            "choices": choices,
        })
    }

    pub(super) fn openai_usage(&self) -> Value {
        let (input, output) = self.usage();
        let plain = Cached { prompt: input, ..Cached::default() };
        let Cached { prompt, read, .. } = self.asked.cached.unwrap_or(plain);
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": read},
        })
    }

    fn ollama_message(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            message["tool_calls"] = self.ollama_calls();
        }
        message
    }

    /// Returns the calls as Ollama writes them. A call whose id is empty has no `id` member, as in older servers.
    pub(super) fn ollama_calls(&self) -> Value {
        let call = |(n, (id, name, input)): (usize, &(String, String, Value))| {
            let mut call = json!({"function": {"index": n, "name": name, "arguments": input}});
            if !id.is_empty() {
                call["id"] = json!(id);
            }
            call
        };
        self.calls.iter().enumerate().map(call).collect()
    }

    /// Returns the last object of an answer of Ollama.
    pub(super) fn last_line(&self, message: Value) -> Value {
        let (input, output) = self.usage();
        json!({
            "model": self.asked.body["model"],
            "created_at": CREATED_AT,
            "message": message,
            "done": true,
            "done_reason": self.stop(),
            "total_duration": 4_000_000,
            "load_duration": 1_000_000,
            "prompt_eval_count": input,
            "prompt_eval_duration": 1_000_000,
            "eval_count": output,
            "eval_duration": 2_000_000,
        })
    }
}

// ---- errors --------------------------------------------------------------------------------

/// Returns an error body in the format of an API. Ollama's errors have no type.
pub(super) fn error_body(shape: Shape, id: usize, kind: &str, message: &str) -> Value {
    match shape {
        Shape::Anthropic => json!({
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": format!("req_{id}"),
        }),
        Shape::OpenAi => {
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
        Shape::Ollama => json!({"error": message}),
    }
}

/// Returns the refusal of a prompt that is longer than the window.
///
/// In chat completions, it has the text of llama.cpp's server. Ollama runs that server and passes its body on as a
/// string.
pub(super) fn too_long_body(shape: Shape, id: usize, prompt: u64, window: u64) -> Value {
    let message = too_long(shape, prompt, window);
    let llama = || {
        json!({"error": {
            "code": 400,
            "message": message,
            "type": "exceed_context_size_error",
            "n_prompt_tokens": prompt,
            "n_ctx": window,
        }})
    };
    match shape {
        Shape::Anthropic => error_body(shape, id, "invalid_request_error", &message),
        Shape::OpenAi => llama(),
        Shape::Ollama => json!({"error": llama().to_string()}),
    }
}

/// Returns the message about a prompt that is longer than the window.
pub(super) fn too_long(shape: Shape, prompt: u64, window: u64) -> String {
    match shape {
        Shape::Anthropic => format!("prompt is too long: {prompt} tokens > {window} maximum"),
        Shape::OpenAi | Shape::Ollama => format!(
            "request ({prompt} tokens) exceeds the available context size ({window} tokens), try \
             increasing it"
        ),
    }
}

/// Returns the header with the id of the request; Ollama has none.
pub(super) fn request_id(shape: Shape, id: usize) -> Vec<(String, String)> {
    let name = match shape {
        Shape::Anthropic => "request-id",
        Shape::OpenAi => "x-request-id",
        Shape::Ollama => return Vec::new(),
    };
    vec![(name.to_owned(), format!("req_{id}"))]
}

// ---- the default text ----------------------------------------------------------------------

/// Returns the text of the default reply: [`SUMMARY`] if the only message asks for a summary, otherwise the number of
/// messages and the start of the last user text. System messages are not counted.
fn default_text(body: &Value) -> String {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let count = messages.iter().filter(|message| !shapes::is_system(message)).count();
    let asked = last_user_text(body);
    if count == 1 && asked.to_lowercase().contains("summar") {
        return SUMMARY.to_owned();
    }
    let start: String = asked.chars().take(100).collect();
    reply_to(count, &start)
}

/// Returns the last text of a user message, outside tool results.
pub(super) fn last_user_text(body: &Value) -> &str {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let asked = messages.iter().rev().filter(|message| message["role"] == "user");
    asked.filter_map(|message| last_text(&message["content"])).next().unwrap_or_default()
}

fn last_text(content: &Value) -> Option<&str> {
    match content {
        // Ollama's messages that have only images have an empty text.
        Value::String(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
        Value::Array(blocks) => {
            let mut texts = blocks.iter().rev().filter(|block| block["type"] == "text");
            texts.find_map(|block| block["text"].as_str())
        }
        _ => None,
    }
}
