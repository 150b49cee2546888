//! Replies as streams: an event, a chunk or a line per piece.

use serde_json::{Value, json};

use crate::common::shapes::Shape;

use super::answer::{CREATED_AT, Reply};

/// The maximum number of characters of text, or of the input of a call, in a piece.
const FRAGMENT: usize = 8;

/// Returns the pieces of the whole reply.
pub(super) fn pieces(reply: &Reply) -> Vec<Vec<u8>> {
    match reply.asked.shape {
        Shape::Anthropic => events(reply),
        Shape::OpenAi => chunks(reply),
        Shape::Ollama => lines(reply),
    }
}

/// Returns the first half of the pieces, which contains some of the text, followed by an error.
pub(super) fn broken(reply: &Reply, error: &Value) -> Vec<Vec<u8>> {
    let mut pieces = pieces(reply);
    pieces.truncate(pieces.len() / 2);
    pieces.push(match reply.asked.shape {
        Shape::Anthropic => event(error),
        Shape::OpenAi => data(error),
        Shape::Ollama => line(error),
    });
    pieces
}

fn fragments(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(FRAGMENT).map(|some| some.iter().collect()).collect()
}

// ---- Anthropic -----------------------------------------------------------------------------

fn event(value: &Value) -> Vec<u8> {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n").into()
}

fn events(reply: &Reply) -> Vec<Vec<u8>> {
    let mut events = vec![
        json!({"type": "message_start", "message": reply.message(Vec::new(), None)}),
        json!({"type": "ping"}),
    ];
    let text: Vec<Value> =
        fragments(&reply.text).iter().map(|f| json!({"type": "text_delta", "text": f})).collect();
    events.extend(block(0, json!({"type": "text", "text": ""}), text));
    for (n, (id, name, input)) in reply.calls.iter().enumerate() {
        // The first fragment is empty, as in the real API.
        let input = [String::new()].into_iter().chain(fragments(&input.to_string()));
        let deltas = input.map(|f| json!({"type": "input_json_delta", "partial_json": f}));
        let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        events.extend(block(n + 1, start, deltas.collect()));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": reply.stop(), "stop_sequence": null},
        "usage": {"output_tokens": reply.usage().1},
    }));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(event).collect()
}

fn block(index: usize, start: Value, deltas: Vec<Value>) -> Vec<Value> {
    let mut events =
        vec![json!({"type": "content_block_start", "index": index, "content_block": start})];
    for delta in deltas {
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

// ---- OpenAI --------------------------------------------------------------------------------

fn data(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into()
}

fn chunks(reply: &Reply) -> Vec<Vec<u8>> {
    let mut deltas = vec![json!({"role": "assistant", "content": null})];
    deltas.extend(fragments(&reply.text).iter().map(|f| json!({"content": f})));
    for (n, (id, name, input)) in reply.calls.iter().enumerate() {
        // Only the first piece of a call has its id and its name; the other pieces have its index.
        let function = json!({"name": name, "arguments": ""});
        let start = json!({"index": n, "id": id, "type": "function", "function": function});
        deltas.push(json!({"tool_calls": [start]}));
        for arguments in fragments(&input.to_string()) {
            let more = json!({"index": n, "function": {"arguments": arguments}});
            deltas.push(json!({"tool_calls": [more]}));
        }
    }
    let object = "chat.completion.chunk";
    let choice = |delta: Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        reply.chunk(object, json!([choice]))
    };
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| choice(delta, None)).collect();
    chunks.push(choice(json!({}), Some(reply.stop())));
    if reply.asked.body["stream_options"]["include_usage"] == true {
        let mut usage = reply.chunk(object, json!([]));
        usage["usage"] = reply.openai_usage();
        chunks.push(usage);
    }
    chunks.iter().map(data).chain([b"data: [DONE]\n\n".to_vec()]).collect()
}

// ---- Ollama --------------------------------------------------------------------------------

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into()
}

fn lines(reply: &Reply) -> Vec<Vec<u8>> {
    let assistant = |content: &str| json!({"role": "assistant", "content": content});
    let mut messages: Vec<Value> = fragments(&reply.text).iter().map(|f| assistant(f)).collect();
    if !reply.calls.is_empty() {
        let mut message = assistant("");
        message["tool_calls"] = reply.ollama_calls();
        messages.push(message);
    }
    let model = &reply.asked.body["model"];
    let open = messages.into_iter().map(|message| {
        json!({"model": model, "created_at": CREATED_AT, "message": message, "done": false})
    });
    open.chain([reply.last_line(assistant(""))]).map(|value| line(&value)).collect()
}
