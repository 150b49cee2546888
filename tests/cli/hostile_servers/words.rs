//! Answers, errors and response heads in each protocol.

use serde_json::{Value, json};

use super::server::{Act, head};
use crate::common::shapes::Shape;

pub fn event(shape: Shape, data: &Value) -> String {
    if shape == Shape::Ollama { format!("{data}\n") } else { format!("data: {data}\n\n") }
}

/// Returns the beginning of a stream with this text.
pub fn begin(shape: Shape, text: &str) -> String {
    let events = match shape {
        Shape::Anthropic => vec![
            json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        ],
        Shape::OpenAi => {
            vec![json!({"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]})]
        }
        Shape::Ollama => vec![json!({"model": "m", "message": {"content": text}, "done": false})],
    };
    events.iter().map(|data| event(shape, data)).collect()
}

/// Returns the end of a stream, including its end marker.
pub fn end(shape: Shape) -> String {
    match shape {
        Shape::Anthropic => {
            event(shape, &json!({"type": "content_block_stop", "index": 0}))
                + &event(
                    shape,
                    &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
                )
                + &event(shape, &json!({"type": "message_stop"}))
        }
        Shape::OpenAi => {
            event(shape, &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
                + &event(
                    shape,
                    &json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}),
                )
                + "data: [DONE]\n\n"
        }
        Shape::Ollama => event(
            shape,
            &json!({"message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 5}),
        ),
    }
}

/// Returns a complete answer that is not a stream.
pub fn whole(shape: Shape, text: &str) -> String {
    let answer = match shape {
        Shape::Anthropic => {
            json!({"content": [{"type": "text", "text": text}], "model": "m", "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 5}})
        }
        Shape::OpenAi => {
            json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "model": "m", "error": null})
        }
        Shape::Ollama => json!({"message": {"content": text}, "done": true, "done_reason": "stop"}),
    };
    answer.to_string()
}

pub const OVERFLOW: &str =
    "request (30000 tokens) exceeds the available context size (20000 tokens), try increasing it";

/// Returns an error of this type, to send as a body or as the data of an event.
pub fn error(shape: Shape, kind: &str, message: &str) -> String {
    match shape {
        Shape::Ollama => json!({"error": message}),
        _ => json!({"type": "error", "error": {"type": kind, "message": message}}),
    }
    .to_string()
}

pub fn overflow(shape: Shape) -> String {
    error(shape, "invalid_request_error", OVERFLOW)
}

/// Returns the head of a stream that ends when the connection is closed.
pub fn stream_head(shape: Shape) -> Vec<u8> {
    let kind = if shape == Shape::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    head(200, &[("content-type", kind), ("connection", "close")])
}

pub fn chunked(status: u16, kind: &str) -> Vec<u8> {
    head(status, &[("content-type", kind), ("transfer-encoding", "chunked")])
}

/// Returns a head that announces a longer body than the server sends.
pub fn short(status: u16, kind: &str) -> Vec<u8> {
    head(status, &[("content-type", kind), ("content-length", "99999")])
}

pub fn send(text: impl Into<Vec<u8>>) -> Act {
    Act::Send(text.into())
}
