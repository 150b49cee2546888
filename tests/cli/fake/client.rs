//! A minimal HTTP client, and requests for it to send.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::provider::{API_KEY, COMPLETIONS, FakeProvider, MESSAGES, MODEL, OLLAMA_CHAT};
use crate::common::shapes::Shape;

/// An answer as it was received.
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The status line and the headers, without the empty line after them.
    pub head: String,
    /// The chunks of a stream; any other body is one piece.
    pub pieces: Vec<Vec<u8>>,
    /// True if the whole body was received, including the last chunk of a stream.
    pub ended: bool,
}

impl Response {
    /// Returns the body, which must be UTF-8.
    pub fn body(&self) -> String {
        String::from_utf8(self.pieces.concat()).expect("text")
    }

    /// Returns the body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body()).expect("a JSON body")
    }

    /// Returns true if the head has exactly this line.
    pub fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

/// Returns the path to which requests of this shape are posted.
pub fn path(shape: Shape) -> &'static str {
    match shape {
        Shape::Anthropic => MESSAGES,
        Shape::OpenAi => COMPLETIONS,
        Shape::Ollama => OLLAMA_CHAT,
    }
}

/// Returns the headers of a legal request.
pub fn headers(shape: Shape) -> Vec<(&'static str, &'static str)> {
    let own: &[_] = match shape {
        Shape::Anthropic => &[("x-api-key", API_KEY), ("anthropic-version", "2023-06-01")],
        Shape::OpenAi => &[("Authorization", "Bearer test-key-1")],
        Shape::Ollama => &[],
    };
    [&[("content-type", "application/json")], own].concat()
}

/// Sends a request; returns `None` if the connection was closed without an answer.
pub fn send(
    provider: &FakeProvider,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Option<Response> {
    let url = provider.url();
    let address = url.strip_prefix("http://").expect("a plain address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let body = body.to_string();
    let mut request = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("a request sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an orderly end");
    if bytes.is_empty() {
        return None;
    }
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("the end of a head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("an ASCII head");
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    let body = &bytes[end + 4..];
    let (pieces, ended) = if head.contains("transfer-encoding: chunked") {
        chunks(body)
    } else {
        let whole = head.contains(&format!("content-length: {}\r\n", body.len()));
        (vec![body.to_vec()], whole)
    };
    Some(Response { status, head, pieces, ended })
}

/// Returns the chunks, the last of which may be incomplete, and true if the stream is complete.
fn chunks(mut rest: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut chunks = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("the size of a chunk");
        let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
        rest = &rest[end + 2..];
        if size == 0 {
            return (chunks, rest == b"\r\n");
        }
        chunks.push(rest[..size.min(rest.len())].to_vec());
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (chunks, false)
}

/// Sends a request to the path of its shape, with the headers that the shape requires.
#[track_caller]
pub fn post(provider: &FakeProvider, shape: Shape, body: &Value) -> Response {
    send(provider, path(shape), &headers(shape), body).expect("an answer")
}

// ---- requests ------------------------------------------------------------------------------

/// Returns a request with these messages.
pub fn request(shape: Shape, messages: Value) -> Value {
    let mut body = json!({"model": MODEL, "messages": messages, "stream": false});
    if shape == Shape::Ollama {
        body["truncate"] = json!(false);
        body["options"] = json!({"num_ctx": 4096, "num_predict": 100});
    } else {
        body["max_tokens"] = json!(100);
    }
    body
}

/// Returns a request with one short prompt.
pub fn hello(shape: Shape) -> Value {
    request(shape, json!([{"role": "user", "content": "hello"}]))
}

/// Changes a request to ask for a stream.
pub fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// Returns a request with a system prompt, tools, two calls with their results, and a new prompt.
pub fn conversation(shape: Shape) -> Value {
    let calls = ["a", "b"].map(|id| {
        let arguments = json!({"path": id, "cache_control": 1});
        match shape {
            Shape::Ollama => {
                json!({"id": id, "function": {"name": "read", "arguments": arguments}})
            }
            _ => json!({
                "id": id,
                "type": "function",
                "function": {"name": "read", "arguments": arguments.to_string()},
            }),
        }
    });
    let result = |id: &str| {
        let mut result = json!({"role": "tool", "tool_call_id": id, "content": ""});
        if shape == Shape::Ollama {
            result["tool_name"] = json!("read");
        }
        result
    };
    let nothing = if shape == Shape::Ollama { json!("") } else { Value::Null };
    let messages = json!([
        {"role": "system", "content": "be brief, and no tool_use"},
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": nothing, "tool_calls": calls},
        result("b"),
        result("a"),
        {"role": "user", "content": "and now?"},
    ]);
    let mut body = request(shape, messages);
    let parameters = json!({"type": "object", "properties": {"_meta": {"type": "string"}}});
    let function = json!({"name": "read", "description": "reads", "parameters": parameters});
    body["tools"] = json!([{"type": "function", "function": function}]);
    body
}

/// Sets the member or the element at a JSON pointer to a value, or removes it.
pub fn change(body: &mut Value, pointer: &str, value: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    match (body.pointer_mut(parent).expect(pointer), value) {
        (Value::Object(members), Some(value)) => drop(members.insert(name.to_owned(), value)),
        (Value::Object(members), None) => drop(members.remove(name)),
        (Value::Array(values), value) => {
            let n: usize = name.parse().expect(pointer);
            values.splice(n..values.len().min(n + 1), value);
        }
        _ => panic!("nothing to change at {pointer}"),
    }
}
