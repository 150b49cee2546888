//! The rules of the Anthropic Messages API, as pure functions over a request.
//!
//! [`parse`] checks the bytes (A10 size, A11 encoding), [`check`] the parsed body (A1 to A9 and the general shape).
//! The server checks A12, the window, with [`count_tokens`]. The checks have a fixed order, and the first violation
//! is reported: size, encoding, members, shape of each message, order of roles, pairing of calls and results, last
//! message.
//!
//! The rules follow the provider's documentation, not the programs under test. Where documents disagree, the
//! stricter reading applies, so that a request that passes here passes everywhere; a comment marks each such rule.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// The largest request body, in bytes (A10).
pub const MAX_BODY: usize = 32 * 1024 * 1024;

/// The reason for a refusal, with the status and the message of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// HTTP status.
    pub status: u16,
    /// `error.type`.
    pub kind: &'static str,
    /// `error.message`.
    pub message: String,
    /// The rule that was broken: `A1` to `A12`, or `shape`, `members`, `json`, `headers`, `key`; the rules for
    /// other APIs are named in the module `shapes`.
    pub rule: &'static str,
}

impl Violation {
    /// A 400 `invalid_request_error`, the answer to most violations.
    pub fn invalid(rule: &'static str, message: impl Into<String>) -> Violation {
        Violation { status: 400, kind: "invalid_request_error", message: message.into(), rule }
    }
}

/// `Ok` for a legal request.
pub type Verdict = Result<(), Violation>;

/// Returns a refusal with status 400.
pub(super) fn refuse(rule: &'static str, message: impl Into<String>) -> Verdict {
    Err(Violation::invalid(rule, message))
}

/// Parses the bytes of a request; refuses a body that is too large (A10) or not JSON in UTF-8 (A11).
pub fn parse(raw: &[u8]) -> Result<Value, Violation> {
    size(raw)?;
    if std::str::from_utf8(raw).is_err() {
        return Err(not_json("A11", "str is not valid UTF-8"));
    }
    serde_json::from_slice(raw).map_err(|error| {
        let error = error.to_string();
        // The parser mentions a surrogate or a hex escape only if a surrogate is unpaired.
        if error.contains("surrogate") || error.contains("hex escape") {
            not_json("A11", "no low surrogate in string")
        } else {
            not_json("json", &error)
        }
    })
}

fn not_json(rule: &'static str, why: &str) -> Violation {
    Violation::invalid(rule, format!("The request body is not valid JSON: {why}"))
}

fn size(raw: &[u8]) -> Verdict {
    if raw.len() <= MAX_BODY {
        return Ok(());
    }
    Err(Violation {
        status: 413,
        kind: "request_too_large",
        message: "Request exceeds the maximum size".into(),
        rule: "A10",
    })
}

/// Checks a request that asks for a message. `body` is the result of [`parse`] for `raw`.
pub fn check(body: &Value, raw: &[u8]) -> Verdict {
    size(raw)?;
    let request = object(body, "request body")?;
    only(request, MESSAGE_MEMBERS, "")?;
    max_tokens(request)?;
    if request.get("stream").is_some_and(|stream| !stream.is_boolean()) {
        return refuse("shape", "stream: Input should be a valid boolean");
    }
    conversation(&with_summary_as_text(request))
}

/// Returns a request with a text of the user in the place of a summary by the server, which may only be the first block. A request
/// for such a summary may end with a reply, so it gets a last message.
fn with_summary_as_text(request: &Map<String, Value>) -> Map<String, Value> {
    let mut request = request.clone();
    let is_asked = request.remove("compaction").is_some();
    let Some(Value::Array(messages)) = request.get_mut("messages") else { return request };
    if messages.first().is_some_and(|first| first["content"][0]["type"] == "compaction") {
        messages[0] = serde_json::json!({"role": "user", "content": "summary"});
    }
    if is_asked && messages.last().is_some_and(|last| last["role"] == "assistant") {
        messages.push(serde_json::json!({"role": "user", "content": "end"}));
    }
    request
}

/// Checks a request to count tokens, in which fewer members are allowed than in a request for a message.
pub fn check_count(body: &Value, raw: &[u8]) -> Verdict {
    size(raw)?;
    let request = object(body, "request body")?;
    only(request, COUNT_MEMBERS, "")?;
    conversation(request)
}

const MESSAGE_MEMBERS: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "container",
    "tools",
    "tool_choice",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "diagnostics",
    "metadata",
    "thinking",
    "output_config",
    "compaction",
];

const COUNT_MEMBERS: &[&str] =
    &["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"];

fn conversation(request: &Map<String, Value>) -> Verdict {
    string(request, "model", "")?;
    system(request.get("system"))?;
    container(request.get("container"))?;
    tools(request.get("tools"))?;
    let messages = match request.get("messages") {
        None => return refuse("shape", "messages: Field required"),
        Some(Value::Array(messages)) => messages,
        Some(_) => return refuse("shape", "messages: Input should be a valid list"),
    };
    if messages.is_empty() {
        return refuse("shape", "messages: at least one message is required");
    }
    for (n, message) in messages.iter().enumerate() {
        message_shape(message, n, n + 1 == messages.len())?;
    }
    roles(messages)?;
    unique_calls(messages)?;
    for n in 0..messages.len() {
        results_first(messages, n)?;
        results_answer(messages, n)?;
        calls_answered(messages, n)?;
    }
    last_is_user(messages)
}

// ---- members of the request ----------------------------------------------------------------

/// Checks the output limit. The API accepts 0, to fill the prompt cache, but the programs under test never send it,
/// so it is refused here.
fn max_tokens(request: &Map<String, Value>) -> Verdict {
    match request.get("max_tokens") {
        None => refuse("shape", "max_tokens: Field required"),
        Some(n) if n.as_u64().is_some_and(|n| n >= 1) => Ok(()),
        Some(n) if n.is_i64() || n.is_u64() => {
            refuse("shape", "max_tokens: Input should be greater than or equal to 1")
        }
        Some(_) => refuse("shape", "max_tokens: Input should be a valid integer"),
    }
}

/// Checks the container: its id, or an object with the id and skills (`container_params.py` in anthropic 2.14.0).
fn container(container: Option<&Value>) -> Verdict {
    match container {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(value) => {
            let members = object(value, "container")?;
            only(members, &["id", "skills"], "container")?;
            string(members, "id", "container").map(drop)
        }
    }
}

fn system(system: Option<&Value>) -> Verdict {
    let blocks = match system {
        None | Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return refuse("shape", "system: Input should be a valid list"),
    };
    for (n, block) in blocks.iter().enumerate() {
        let at = format!("system.{n}");
        let members = object(block, &at)?;
        if string(members, "type", &at)? != "text" {
            return refuse("shape", format!("{at}.type: Input should be 'text'"));
        }
        if string(members, "text", &at)?.is_empty() {
            return refuse("A5", "system: text content blocks must be non-empty");
        }
    }
    Ok(())
}

fn tools(tools: Option<&Value>) -> Verdict {
    let tools = match tools {
        None => return Ok(()),
        Some(Value::Array(tools)) => tools,
        Some(_) => return refuse("shape", "tools: Input should be a valid list"),
    };
    let mut names = HashSet::new();
    for (n, tool) in tools.iter().enumerate() {
        let at = format!("tools.{n}.custom");
        let members = object(tool, &at)?;
        let name = string(members, "name", &at)?;
        tool_name(name, &at)?;
        if !names.insert(name) {
            return refuse("shape", "tools: Tool names must be unique.");
        }
        // A server tool has a type, and the server knows its schema.
        if tool["type"].as_str().is_none_or(|kind| kind == "custom") {
            dictionary(members, "input_schema", &at)?;
        }
    }
    Ok(())
}

// ---- shape of one message ------------------------------------------------------------------

fn message_shape(message: &Value, n: usize, last: bool) -> Verdict {
    let at = format!("messages.{n}");
    let members = object(message, &at)?;
    only(members, &["role", "content"], &at)?;
    let role = string(members, "role", &at)?;
    if role != "user" && role != "assistant" {
        return refuse("A7", format!("{at}.role: Input should be 'user' or 'assistant'"));
    }
    match members.get("content") {
        None => refuse("A5", format!("{at}.content: Field required")),
        Some(content) if is_empty(content) => empty_content(role, &at, last),
        Some(Value::String(text)) => non_blank(text),
        Some(Value::Array(blocks)) => {
            for (m, block) in blocks.iter().enumerate() {
                block_shape(block, role, &format!("{at}.content.{m}"))?;
            }
            final_block(blocks, &at)
        }
        Some(_) => refuse("A5", format!("{at}.content: Input should be a valid list")),
    }
}

/// A8: a message must not end in thinking. Reports differ on whether the API accepts that in messages other than
/// the last one, so it is refused in all of them.
fn final_block(blocks: &[Value], at: &str) -> Verdict {
    match blocks.last().and_then(|block| block["type"].as_str()) {
        Some(kind @ ("thinking" | "redacted_thinking")) => {
            let why = format!("{at}: The final block in an assistant message cannot be `{kind}`.");
            refuse("A8", why)
        }
        _ => Ok(()),
    }
}

fn is_empty(content: &Value) -> bool {
    content.as_str().is_some_and(str::is_empty) || content.as_array().is_some_and(Vec::is_empty)
}

fn empty_content(role: &str, at: &str, last: bool) -> Verdict {
    if last && role == "assistant" {
        return Ok(());
    }
    let why = "all messages must have non-empty content except for the optional final assistant \
               message";
    refuse("A5", format!("{at}: {why}"))
}

fn non_empty(text: &str) -> Verdict {
    if text.is_empty() {
        return refuse("A5", "messages: text content blocks must be non-empty");
    }
    Ok(())
}

fn non_blank(text: &str) -> Verdict {
    non_empty(text)?;
    if text.trim().is_empty() {
        return refuse("A5", "messages: text content blocks must contain non-whitespace text");
    }
    Ok(())
}

/// A type of content block, with the roles that may send it and its members.
struct Kind {
    name: &'static str,
    roles: &'static [&'static str],
    members: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "text",
        roles: &["user", "assistant"],
        members: &["type", "text", "citations", "cache_control"],
    },
    Kind { name: "image", roles: &["user"], members: &["type", "source", "cache_control"] },
    Kind {
        name: "document",
        roles: &["user"],
        members: &["type", "source", "title", "context", "citations", "cache_control"],
    },
    Kind {
        name: "tool_use",
        roles: &["assistant"],
        members: &["type", "id", "name", "input", "caller", "cache_control"],
    },
    Kind {
        name: "tool_result",
        roles: &["user"],
        members: &["type", "tool_use_id", "content", "is_error", "cache_control"],
    },
    Kind { name: "thinking", roles: &["assistant"], members: &["type", "thinking", "signature"] },
    Kind { name: "redacted_thinking", roles: &["assistant"], members: &["type", "data"] },
    Kind {
        name: "server_tool_use",
        roles: &["assistant"],
        members: &["type", "id", "name", "input", "caller", "cache_control"],
    },
    Kind {
        name: "web_search_tool_result",
        roles: &["assistant"],
        members: &["type", "tool_use_id", "content", "caller", "cache_control"],
    },
    Kind {
        name: "code_execution_tool_result",
        roles: &["assistant"],
        members: &["type", "tool_use_id", "content", "cache_control"],
    },
];

fn kind<'a>(members: &Map<String, Value>, at: &str) -> Result<&'a Kind, Violation> {
    let name = string(members, "type", at)?;
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let known: Vec<String> = KINDS.iter().map(|kind| format!("'{}'", kind.name)).collect();
        let why = format!(
            "{at}: Input tag '{name}' found using 'type' does not match any of the expected \
             tags: {}",
            known.join(", ")
        );
        Violation::invalid("shape", why)
    })
}

fn block_shape(block: &Value, role: &str, at: &str) -> Verdict {
    let members = object(block, at)?;
    let kind = kind(members, at)?;
    if !kind.roles.contains(&role) {
        let other = if role == "user" { "assistant" } else { "user" };
        let why = format!("{at}: `{}` blocks can only be in `{other}` messages", kind.name);
        return refuse("shape", why);
    }
    let at = format!("{at}.{}", kind.name);
    only(members, kind.members, &at)?;
    match kind.name {
        "text" => non_blank(string(members, "text", &at)?),
        "image" | "document" => source(members, &at),
        "tool_use" | "server_tool_use" => call_shape(members, &at),
        "tool_result" => result_shape(members, &at),
        "thinking" => thinking_shape(members, &at),
        "redacted_thinking" => string(members, "data", &at).map(drop),
        _ => string(members, "tool_use_id", &at).map(drop),
    }
}

fn source(members: &Map<String, Value>, at: &str) -> Verdict {
    let source = dictionary(members, "source", at)?;
    string(source, "type", &format!("{at}.source")).map(drop)
}

fn call_shape(members: &Map<String, Value>, at: &str) -> Verdict {
    call_id(string(members, "id", at)?, &format!("{at}.id"))?;
    tool_name(string(members, "name", at)?, at)?;
    dictionary(members, "input", at).map(drop)
}

fn result_shape(members: &Map<String, Value>, at: &str) -> Verdict {
    call_id(string(members, "tool_use_id", at)?, &format!("{at}.tool_use_id"))?;
    if members.get("is_error").is_some_and(|flag| !flag.is_boolean()) {
        return refuse("shape", format!("{at}.is_error: Input should be a valid boolean"));
    }
    match members.get("content") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => blocks
            .iter()
            .enumerate()
            .try_for_each(|(k, block)| result_block(block, &format!("{at}.content.{k}"))),
        Some(_) => refuse("shape", format!("{at}.content: Input should be a valid list")),
    }
}

/// Checks a block inside a tool result. Unlike in a message, its text may be blank.
fn result_block(block: &Value, at: &str) -> Verdict {
    let members = object(block, at)?;
    let kind = kind(members, at)?;
    only(members, kind.members, &format!("{at}.{}", kind.name))?;
    match kind.name {
        "text" => non_empty(string(members, "text", at)?),
        "image" | "document" => source(members, at),
        name => refuse("shape", format!("{at}: `{name}` blocks are not permitted in a result")),
    }
}

/// Empty thinking is legal, since a model may withhold it; an empty signature is not (A8).
fn thinking_shape(members: &Map<String, Value>, at: &str) -> Verdict {
    string(members, "thinking", at)?;
    match members.get("signature") {
        None => refuse("A8", format!("{at}.signature: Field required")),
        Some(Value::String(signature)) if !signature.is_empty() => Ok(()),
        Some(_) => refuse("A8", format!("{at}: Invalid `signature` in `thinking` block")),
    }
}

fn call_id(id: &str, at: &str) -> Verdict {
    if !id.is_empty() && id.bytes().all(is_word) {
        return Ok(());
    }
    refuse("A4", format!("{at}: String should match pattern '^[a-zA-Z0-9_-]+$'"))
}

/// Checks the name of a tool. The API allows 128 characters today; 64 was the earlier limit, which every model accepts.
pub(super) fn tool_name(name: &str, at: &str) -> Verdict {
    if (1..=64).contains(&name.len()) && name.bytes().all(is_word) {
        return Ok(());
    }
    refuse("shape", format!("{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

// ---- between messages ----------------------------------------------------------------------

/// A7. Today's API merges consecutive messages of one role. This rule is stricter, because other providers and
/// older versions refuse them.
fn roles(messages: &[Value]) -> Verdict {
    if messages[0]["role"] != "user" {
        return refuse("A7", "messages: first message must use the \"user\" role");
    }
    for (n, pair) in messages.windows(2).enumerate() {
        if let [Value::String(before), Value::String(role)] = [&pair[0]["role"], &pair[1]["role"]]
            && before == role
        {
            let why = format!(
                "messages: roles must alternate between \"user\" and \"assistant\", but found \
                 multiple \"{role}\" roles in a row (messages.{n} and messages.{})",
                n + 1
            );
            return refuse("A7", why);
        }
    }
    Ok(())
}

/// A3: an id identifies one call in the whole request.
fn unique_calls(messages: &[Value]) -> Verdict {
    let mut seen = HashSet::new();
    for (n, message) in messages.iter().enumerate() {
        for (m, id) in ids(message, "tool_use", "id") {
            if !seen.insert(id) {
                let why = format!("messages.{n}.content.{m}: `tool_use` ids must be unique");
                return refuse("A3", why);
            }
        }
    }
    Ok(())
}

/// A9: in a message with results, the results come first.
fn results_first(messages: &[Value], n: usize) -> Verdict {
    let results = ids(&messages[n], "tool_result", "tool_use_id");
    for (place, (m, _)) in results.enumerate() {
        if m != place {
            let why = format!(
                "messages.{n}.content.{m}: `tool_result` blocks must come before other blocks in \
                 their message"
            );
            return refuse("A9", why);
        }
    }
    Ok(())
}

/// A2: a result answers a call of the message before it. A3: a call has only one result.
fn results_answer(messages: &[Value], n: usize) -> Verdict {
    let calls: HashSet<&str> = match n {
        0 => HashSet::new(),
        _ => ids(&messages[n - 1], "tool_use", "id").map(|(_, id)| id).collect(),
    };
    let mut seen = HashSet::new();
    for (m, id) in ids(&messages[n], "tool_result", "tool_use_id") {
        let at = format!("messages.{n}.content.{m}");
        if !calls.contains(id) {
            let why = format!(
                "{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous \
                 message."
            );
            return refuse("A2", why);
        }
        if !seen.insert(id) {
            let why = format!(
                "{at}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}"
            );
            return refuse("A3", why);
        }
    }
    Ok(())
}

/// A1: every call is answered in the next message.
fn calls_answered(messages: &[Value], n: usize) -> Verdict {
    let results: HashSet<&str> = messages
        .get(n + 1)
        .map(|next| ids(next, "tool_result", "tool_use_id").map(|(_, id)| id).collect())
        .unwrap_or_default();
    let open: Vec<&str> = ids(&messages[n], "tool_use", "id")
        .map(|(_, id)| id)
        .filter(|id| !results.contains(id))
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let why = format!(
        "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: \
         {}. Each `tool_use` block must have a corresponding `tool_result` block in the next \
         message.",
        open.join(", ")
    );
    refuse("A1", why)
}

/// A6. Older models accept a prefilled answer, current models do not, so it is refused.
fn last_is_user(messages: &[Value]) -> Verdict {
    // A paused turn is sent back as it is: it ends in what the server's own tools did.
    let is_paused = |last: &Value| ids(last, "server_tool_use", "id").next().is_some();
    if messages.last().is_none_or(|last| last["role"] == "user" || is_paused(last)) {
        return Ok(());
    }
    let why = "This model does not support assistant message prefill. The conversation must end \
               with a user message.";
    refuse("A6", why)
}

/// Returns the index and the id of each block of one type in a message.
fn ids<'a>(
    message: &'a Value,
    kind: &'a str,
    member: &'a str,
) -> impl Iterator<Item = (usize, &'a str)> {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks
        .iter()
        .enumerate()
        .filter(move |(_, block)| block["type"] == kind)
        .filter_map(move |(m, block)| Some((m, block[member].as_str()?)))
}

// ---- members of any object -----------------------------------------------------------------

fn path(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

/// Refuses members that are not in this list.
pub(super) fn only(members: &Map<String, Value>, allowed: &[&str], at: &str) -> Verdict {
    match members.keys().find(|name| !allowed.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            refuse("members", format!("{}: Extra inputs are not permitted", path(at, name)))
        }
    }
}

/// Returns the members of a value that must be an object.
pub(super) fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, Violation> {
    let why = || Violation::invalid("shape", format!("{at}: Input should be a valid dictionary"));
    value.as_object().ok_or_else(why)
}

/// Returns a required member.
pub(super) fn required<'a>(
    members: &'a Map<String, Value>,
    name: &str,
    at: &str,
) -> Result<&'a Value, Violation> {
    let why = || Violation::invalid("shape", format!("{}: Field required", path(at, name)));
    members.get(name).ok_or_else(why)
}

/// Returns the members of a required member that must be an object.
pub(super) fn dictionary<'a>(
    members: &'a Map<String, Value>,
    name: &str,
    at: &str,
) -> Result<&'a Map<String, Value>, Violation> {
    object(required(members, name, at)?, &path(at, name))
}

/// Returns a required member that must be a string.
pub(super) fn string<'a>(
    members: &'a Map<String, Value>,
    name: &str,
    at: &str,
) -> Result<&'a str, Violation> {
    let why = || {
        let why = format!("{}: Input should be a valid string", path(at, name));
        Violation::invalid("shape", why)
    };
    required(members, name, at)?.as_str().ok_or_else(why)
}

// ---- size of a prompt ----------------------------------------------------------------------

const BYTES_PER_TOKEN: u64 = 4;
const TOKENS_PER_MESSAGE: u64 = 8;
const TOKENS_PER_IMAGE: u64 = 1500;

/// Returns the number of tokens in a request's prompt: a quarter of the bytes of all text, rounded up, plus a fixed
/// number for each message and each image.
///
/// Text is the system prompt, the tools and the inputs of calls as compact JSON, thinking, and all text inside and
/// outside tool results. A document that is not plain text counts as an image. This count is deliberately different
/// from the estimates of the programs under test.
pub fn count_tokens(body: &Value) -> u64 {
    let mut tally = Tally::default();
    tally.content(&body["system"]);
    tally.json(&body["tools"]);
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for message in messages {
        tally.content(&message["content"]);
    }
    tally.bytes.div_ceil(BYTES_PER_TOKEN)
        + messages.len() as u64 * TOKENS_PER_MESSAGE
        + tally.images * TOKENS_PER_IMAGE
}

#[derive(Default)]
struct Tally {
    bytes: u64,
    images: u64,
}

impl Tally {
    fn content(&mut self, content: &Value) {
        match content {
            Value::String(text) => self.bytes += text.len() as u64,
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            _ => {}
        }
    }

    fn block(&mut self, block: &Value) {
        match block["type"].as_str() {
            Some("text") => self.content(&block["text"]),
            Some("thinking") => self.content(&block["thinking"]),
            Some("tool_use" | "server_tool_use") => self.json(&block["input"]),
            Some("tool_result" | "web_search_tool_result" | "code_execution_tool_result") => {
                self.content(&block["content"])
            }
            Some("document") if block["source"]["type"] == "text" => {
                self.content(&block["source"]["data"]);
            }
            Some("image" | "document") => self.images += 1,
            _ => {}
        }
    }

    fn json(&mut self, value: &Value) {
        if !value.is_null() {
            self.bytes += value.to_string().len() as u64;
        }
    }
}
