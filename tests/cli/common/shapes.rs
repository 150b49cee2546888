//! The shapes of requests, one for each API, and the rules of chat completions and Ollama's chat.
//!
//! As in [`rules`](super::rules), the rules follow the documentation and the error messages of real servers, not the
//! programs under test. Where sources differ, the stricter reading applies, so that a request that passes here
//! passes everywhere. The rules have names:
//!
//! | rule | what it asks for |
//! | --- | --- |
//! | `leftovers` | no names of the Messages API, except in strings and in the data of tools |
//! | `members` | only members of the shape |
//! | `shape` | the required members, with their types |
//! | `max_tokens` | exactly one output limit (chat completions) |
//! | `stream` | given (Ollama); options only with a stream (chat completions) |
//! | `options` | `num_ctx` and `num_predict` given as numbers (Ollama) |
//! | `truncate` | false, because otherwise the server silently drops messages (Ollama) |
//! | `tools` | function tools with unique names |
//! | `content` | a kind that the role allows |
//! | `blank` | no blank text, except in tool results |
//! | `images` | base64, not a data URL (Ollama) |
//! | `arguments` | the text of a JSON object (chat completions); an object (Ollama) |
//! | `roles` | a system message first, then user and assistant in turn |
//! | `unique` | an id identifies one call of its message and has one result |
//! | `results` | a result answers a call of the preceding assistant message |
//! | `answered` | every call is answered before any other message |
//! | `last` | the last message is not from the assistant |

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::rules::{self, Verdict, dictionary, object, only, refuse, required, string, tool_name};

/// The API of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The Anthropic Messages API.
    Anthropic,
    /// Chat completions, as in OpenAI and llama.cpp's server.
    OpenAi,
    /// Ollama's native chat.
    Ollama,
}

impl Shape {
    /// All shapes. They are those of the fake provider; `protocols.rs` tests the others.
    pub const ALL: [Shape; 3] = [Shape::Anthropic, Shape::OpenAi, Shape::Ollama];

    /// Returns the shape of a path. Unknown paths are treated as the Messages API.
    pub fn of(path: &str) -> Shape {
        if path.starts_with("/api/") {
            Shape::Ollama
        } else if path.starts_with("/v1/chat/") {
            Shape::OpenAi
        } else {
            Shape::Anthropic
        }
    }
}

/// Checks a request that asks for a message. `body` is the result of [`rules::parse`] for `raw`.
pub fn check(shape: Shape, body: &Value, raw: &[u8]) -> Verdict {
    match shape {
        Shape::Anthropic => rules::check(body, raw),
        Shape::OpenAi => {
            openai(body)?;
            output_limit(object(body, "request body")?)
        }
        Shape::Ollama => ollama(body),
    }
}

/// Checks a request to count tokens. In chat completions it is the same request, with an optional output limit;
/// Ollama cannot count.
pub fn check_count(shape: Shape, body: &Value, raw: &[u8]) -> Verdict {
    match shape {
        Shape::Anthropic => rules::check_count(body, raw),
        Shape::OpenAi => openai(body),
        Shape::Ollama => refuse("shape", "nothing is counted"),
    }
}

/// Returns true for a system message.
pub fn is_system(message: &Value) -> bool {
    message["role"] == "system" || message["role"] == "developer"
}

// ---- requests ------------------------------------------------------------------------------

const OPENAI_MEMBERS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "response_format",
    "reasoning_effort",
    "metadata",
    "prompt_cache_key",
    "user",
];

const OLLAMA_MEMBERS: &[&str] = &[
    "model",
    "messages",
    "tools",
    "stream",
    "think",
    "format",
    "options",
    "keep_alive",
    "think",
    "truncate",
    "shift",
];

fn openai(body: &Value) -> Verdict {
    let request = object(body, "request body")?;
    leftovers(body, "")?;
    only(request, OPENAI_MEMBERS, "")?;
    non_blank(string(request, "model", "")?, "model")?;
    let streams = match request.get("stream") {
        None => false,
        Some(Value::Bool(streams)) => *streams,
        Some(_) => return refuse("stream", "stream: Input should be a valid boolean"),
    };
    if let Some(options) = request.get("stream_options") {
        if !streams {
            let why = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return refuse("stream", why);
        }
        only(object(options, "stream_options")?, &["include_usage"], "stream_options")?;
    }
    tools(request.get("tools"))?;
    conversation(request, Shape::OpenAi)
}

fn output_limit(request: &Map<String, Value>) -> Verdict {
    match (request.get("max_tokens"), request.get("max_completion_tokens")) {
        (Some(n), None) | (None, Some(n)) if n.as_u64().is_some_and(|n| n >= 1) => Ok(()),
        (None, None) => refuse("max_tokens", "max_tokens or max_completion_tokens: Field required"),
        (Some(_), Some(_)) => {
            let why = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not \
                       supported.";
            refuse("max_tokens", why)
        }
        _ => refuse("max_tokens", "max_tokens: Input should be an integer of 1 or more"),
    }
}

fn ollama(body: &Value) -> Verdict {
    let request = object(body, "request body")?;
    leftovers(body, "")?;
    only(request, OLLAMA_MEMBERS, "")?;
    non_blank(string(request, "model", "")?, "model")?;
    if !request.get("stream").is_some_and(Value::is_boolean) {
        return refuse("stream", "stream: must be true or false; the default is true");
    }
    if request.get("truncate") != Some(&Value::Bool(false)) {
        return refuse("truncate", "truncate: must be false; the default drops messages");
    }
    let options = request.get("options").and_then(Value::as_object);
    for name in ["num_ctx", "num_predict"] {
        let value = options.and_then(|options| options.get(name));
        if value.and_then(Value::as_u64).is_none_or(|n| n < 1) {
            return refuse("options", format!("options.{name}: must be a number of 1 or more"));
        }
    }
    tools(request.get("tools"))?;
    conversation(request, Shape::Ollama)
}

/// Names that only the Messages API has, as members or as values of `type`.
const LEFTOVERS: &[&str] = &[
    "tool_use",
    "tool_result",
    "tool_use_id",
    "input_schema",
    "is_error",
    "cache_control",
    "_meta",
];

/// Members whose value may have any form, because the tool or the caller defines it.
const FREE_FORM: &[&str] = &["arguments", "parameters", "format", "response_format"];

fn leftovers(value: &Value, at: &str) -> Verdict {
    match value {
        Value::Array(values) => values
            .iter()
            .enumerate()
            .try_for_each(|(n, value)| leftovers(value, &format!("{at}.{n}"))),
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            let kind = if name == "type" { value.as_str() } else { None };
            for name in [Some(name.as_str()), kind].into_iter().flatten() {
                if LEFTOVERS.contains(&name) {
                    return refuse("leftovers", format!("{at}: '{name}' belongs to another API"));
                }
            }
            if FREE_FORM.contains(&name.as_str()) {
                return Ok(());
            }
            leftovers(value, &format!("{at}.{name}"))
        }),
        _ => Ok(()),
    }
}

fn tools(tools: Option<&Value>) -> Verdict {
    let tools = match tools {
        None => return Ok(()),
        Some(Value::Array(tools)) => tools,
        Some(_) => return refuse("tools", "tools: must be a list"),
    };
    let mut names = HashSet::new();
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("tools.{n}");
        if tool["type"] != "function" {
            return refuse("tools", format!("{at}.type: must be 'function'"));
        }
        only(object(tool, &at)?, &["type", "function"], &at)?;
        let function = dictionary(object(tool, &at)?, "function", &at)?;
        let at = format!("{at}.function");
        only(function, &["name", "description", "parameters", "strict"], &at)?;
        let name = string(function, "name", &at)?;
        tool_name(name, &at)?;
        if !names.insert(name) {
            return refuse("tools", format!("{at}.name: '{name}' is used twice"));
        }
        if function.contains_key("parameters") {
            dictionary(function, "parameters", &at)?;
            if function["parameters"]["type"] != "object" {
                return refuse("tools", format!("{at}.parameters: the type must be 'object'"));
            }
            input_schema(&function["parameters"], &format!("{at}.parameters"))?;
        }
    }
    Ok(())
}

/// Refuses an object without properties and an array without items anywhere in a schema, as OpenAI does.
fn input_schema(schema: &Value, at: &str) -> Verdict {
    for (kind, member) in [("object", "properties"), ("array", "items")] {
        if schema["type"] == kind && schema[member].is_null() {
            return refuse("tools", format!("{at}: {kind} schema missing {member}"));
        }
    }
    match schema {
        Value::Object(members) => members
            .iter()
            .try_for_each(|(name, value)| input_schema(value, &format!("{at}.{name}"))),
        Value::Array(values) => values.iter().try_for_each(|value| input_schema(value, at)),
        _ => Ok(()),
    }
}

// ---- shape of one message ------------------------------------------------------------------

fn conversation(request: &Map<String, Value>, shape: Shape) -> Verdict {
    let Value::Array(messages) = required(request, "messages", "")? else {
        return refuse("shape", "messages: must be a list");
    };
    for (n, message) in messages.iter().enumerate() {
        message_shape(message, &format!("messages.{n}"), shape)?;
    }
    roles(messages)?;
    pairs(messages)?;
    match messages.last() {
        Some(last) if last["role"] == "assistant" => {
            refuse("last", "messages: the last message must not be from the assistant")
        }
        _ => Ok(()),
    }
}

fn message_shape(message: &Value, at: &str, shape: Shape) -> Verdict {
    let members = object(message, at)?;
    let role = string(members, "role", at)?;
    let known: &[&str] = match (shape, role) {
        (Shape::OpenAi, "system" | "developer" | "user") => &["content", "name"],
        (Shape::OpenAi, "assistant") => &["content", "name", "tool_calls", "reasoning_content"],
        (Shape::OpenAi, "tool") => &["content", "name", "tool_call_id"],
        (Shape::Ollama, "system") => &["content"],
        (Shape::Ollama, "user") => &["content", "images"],
        (Shape::Ollama, "assistant") => &["content", "thinking", "tool_calls"],
        (Shape::Ollama, "tool") => &["content", "images", "tool_call_id", "tool_name"],
        _ => return refuse("roles", format!("{at}.role: unknown role '{role}'")),
    };
    if let Some(name) = members.keys().find(|name| *name != "role" && !known.contains(&&***name)) {
        return refuse("members", format!("{at}.{name}: a {role} message has no such member"));
    }
    match shape {
        Shape::Ollama => ollama_content(members, role, at)?,
        Shape::Anthropic | Shape::OpenAi => openai_content(members, role, at)?,
    }
    if role == "tool" {
        let name = if shape == Shape::Ollama { "tool_name" } else { "tool_call_id" };
        non_blank(string(members, name, at)?, &format!("{at}.{name}"))?;
    }
    match members.get("tool_calls") {
        None => Ok(()),
        Some(Value::Array(calls)) if !calls.is_empty() => calls
            .iter()
            .enumerate()
            .try_for_each(|(m, call)| call_shape(call, &format!("{at}.tool_calls.{m}"), shape)),
        Some(_) => refuse("shape", format!("{at}.tool_calls: must be a list that is not empty")),
    }
}

fn openai_content(members: &Map<String, Value>, role: &str, at: &str) -> Verdict {
    match (members.get("content"), role) {
        (None | Some(Value::Null), "assistant") if members.contains_key("tool_calls") => Ok(()),
        (None | Some(Value::Null), "assistant") => {
            refuse("content", format!("{at}: an assistant message must have content or tool_calls"))
        }
        (Some(Value::String(_)), "tool") => Ok(()),
        (Some(Value::String(text)), _) => non_blank(text, &format!("{at}.content")),
        // Not every server accepts a list of parts from the assistant.
        (Some(Value::Array(parts)), "user" | "system" | "developer" | "tool") => {
            if parts.is_empty() {
                return refuse("blank", format!("{at}.content: must not be empty"));
            }
            parts
                .iter()
                .enumerate()
                .try_for_each(|(m, part)| content_part(part, role, &format!("{at}.content.{m}")))
        }
        _ => refuse("content", format!("{at}.content: must be a string")),
    }
}

/// Checks a part of a message's content. Only the user may send images.
fn content_part(part: &Value, role: &str, at: &str) -> Verdict {
    let members = object(part, at)?;
    match (string(members, "type", at)?, role) {
        ("text", _) => {
            only(members, &["type", "text"], at)?;
            let text = string(members, "text", at)?;
            if role == "tool" { Ok(()) } else { non_blank(text, &format!("{at}.text")) }
        }
        ("image_url", "user") => {
            only(members, &["type", "image_url"], at)?;
            let image = dictionary(members, "image_url", at)?;
            only(image, &["url", "detail"], &format!("{at}.image_url"))?;
            non_blank(string(image, "url", at)?, &format!("{at}.image_url.url"))
        }
        ("file", "user") => dictionary(members, "file", at).map(drop),
        (kind, _) => {
            refuse("content", format!("{at}: a {role} message cannot have a '{kind}' part"))
        }
    }
}

fn ollama_content(members: &Map<String, Value>, role: &str, at: &str) -> Verdict {
    let Some(Value::String(text)) = members.get("content") else {
        return refuse("content", format!("{at}.content: must be a string"));
    };
    // A message with images or calls may have an empty text, but not a blank one.
    let has_other_content = members.contains_key("tool_calls") || members.contains_key("images");
    if role != "tool" && !(has_other_content && text.is_empty()) {
        non_blank(text, &format!("{at}.content"))?;
    }
    let Some(images) = members.get("images") else { return Ok(()) };
    match images.as_array() {
        Some(images) if !images.is_empty() && images.iter().all(is_base64) => Ok(()),
        _ => refuse("images", format!("{at}.images: must be base64, without a data: prefix")),
    }
}

fn is_base64(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let digits = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn call_shape(call: &Value, at: &str, shape: Shape) -> Verdict {
    let members = object(call, at)?;
    only(members, &["id", "type", "function"], at)?;
    let function = dictionary(members, "function", at)?;
    if members.get("id").is_some() || shape == Shape::OpenAi {
        non_blank(string(members, "id", at)?, &format!("{at}.id"))?;
    }
    if members.get("type").map_or(shape == Shape::OpenAi, |kind| kind != "function") {
        return refuse("shape", format!("{at}.type: must be 'function'"));
    }
    let at = format!("{at}.function");
    let known: &[&str] = if shape == Shape::Ollama { &["index"] } else { &[] };
    only(function, &[&["name", "arguments"], known].concat(), &at)?;
    tool_name(string(function, "name", &at)?, &at)?;
    match (function.get("arguments"), shape) {
        (Some(Value::Object(_)), Shape::Ollama) => Ok(()),
        (Some(Value::String(text)), Shape::OpenAi)
            if serde_json::from_str(text).is_ok_and(|value: Value| value.is_object()) =>
        {
            Ok(())
        }
        (_, Shape::Ollama) => refuse("arguments", format!("{at}.arguments: must be an object")),
        _ => {
            let why = format!("{at}.arguments: must be a string that holds a JSON object");
            refuse("arguments", why)
        }
    }
}

fn non_blank(text: &str, at: &str) -> Verdict {
    if text.trim().is_empty() {
        return refuse("blank", format!("{at}: must not be blank"));
    }
    Ok(())
}

// ---- between messages ----------------------------------------------------------------------

/// Checks that the roles are in the order that the models' chat templates require: an optional system message, then user
/// and assistant in turn. Tool results are left to [`pairs`].
fn roles(messages: &[Value]) -> Verdict {
    let turns = &messages[messages.first().is_some_and(is_system).into()..];
    match turns.first() {
        None => return refuse("roles", "messages: a user message is required"),
        Some(first) if first["role"] == "tool" => {}
        Some(first) if first["role"] != "user" => {
            return refuse("roles", "messages: a user message must come first");
        }
        Some(_) => {}
    }
    if turns.iter().any(is_system) {
        return refuse("roles", "messages: a system message must be at the beginning");
    }
    for pair in turns.windows(2) {
        if pair[0]["role"] == pair[1]["role"] && pair[0]["role"] != "tool" {
            let why = format!("messages: two {} messages in a row", pair[0]["role"]);
            return refuse("roles", why);
        }
    }
    Ok(())
}

/// Checks that calls and results match.
fn pairs(messages: &[Value]) -> Verdict {
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        // The results directly after a message belong to it; only an assistant message may have results.
        let count = after.iter().take_while(|next| next["role"] == "tool").count();
        let (results, next) = after.split_at(count);
        match message["role"].as_str() {
            Some("assistant") => answers(message, results)?,
            Some("tool") => return refuse("results", ORPHAN),
            _ if !results.is_empty() => return refuse("results", ORPHAN),
            _ => {}
        }
        rest = next;
    }
    Ok(())
}

const ORPHAN: &str =
    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'";

/// Matches each result with the call that it names. A result without an id, which Ollama allows, matches the first
/// open call with its tool name.
fn answers(message: &Value, results: &[Value]) -> Verdict {
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut ids = HashSet::new();
    for id in calls.iter().filter_map(|call| call["id"].as_str()) {
        if !ids.insert(id) {
            return refuse("unique", format!("tool_calls: the id '{id}' is used twice"));
        }
    }
    let mut open: Vec<&Value> = calls.iter().collect();
    for result in results {
        let (id, name) = (&result["tool_call_id"], &result["tool_name"]);
        let is_answered = |call: &&Value| {
            (id.is_null() || call["id"] == *id)
                && (name.is_null() || call["function"]["name"] == *name)
        };
        match open.iter().position(is_answered) {
            Some(n) => open.remove(n),
            None if calls.iter().any(|call| is_answered(&call)) => {
                return refuse("unique", format!("a call has more than one result: {result}"));
            }
            None => return refuse("results", ORPHAN),
        };
    }
    if open.is_empty() {
        return Ok(());
    }
    let open: Vec<String> = open.iter().map(|call| call["id"].to_string()).collect();
    let why = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    refuse("answered", why)
}

// ---- size of a prompt ----------------------------------------------------------------------

/// Returns the number of tokens in a request's prompt, with the costs of [`rules::count_tokens`]. A system message
/// costs as much as any other message.
pub fn count_tokens(shape: Shape, body: &Value) -> u64 {
    if shape == Shape::Anthropic {
        return rules::count_tokens(body);
    }
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let messages: Vec<Value> = messages.iter().map(priced).collect();
    rules::count_tokens(&json!({"tools": body["tools"], "messages": messages}))
}

/// Converts a message to blocks that [`rules::count_tokens`] can count.
fn priced(message: &Value) -> Value {
    let mut blocks = Vec::new();
    match &message["content"] {
        Value::String(text) => blocks.push(json!({"type": "text", "text": text})),
        Value::Array(parts) => blocks.extend(parts.iter().map(|part| match &part["text"] {
            Value::String(text) => json!({"type": "text", "text": text}),
            _ => json!({"type": "image"}),
        })),
        _ => {}
    }
    for name in ["thinking", "reasoning_content"] {
        blocks.push(json!({"type": "thinking", "thinking": message[name]}));
    }
    for image in message["images"].as_array().into_iter().flatten() {
        blocks.push(json!({"type": "image", "source": image}));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        blocks.push(match &call["function"]["arguments"] {
            Value::String(text) => json!({"type": "text", "text": text}),
            arguments => json!({"type": "tool_use", "input": arguments}),
        });
    }
    json!({"role": message["role"], "content": blocks})
}
