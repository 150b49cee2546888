//! Tests of the fake provider: it refuses a body that breaks a rule, with the API's message, and accepts a similar
//! legal body; each scripted step answers as documented; every request is recorded.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::provider::{API_KEY, COUNT_TOKENS, FakeProvider, MESSAGES, SUMMARY, Step};
use crate::common::rules::{self, MAX_BODY};

// ---- a minimal client ----------------------------------------------------------------------

const HEADERS: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("anthropic-version", "2023-06-01"),
    ("x-api-key", API_KEY),
];

struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    fn text(&self) -> String {
        self.json()["content"][0]["text"].as_str().expect("a text block").to_owned()
    }

    #[track_caller]
    fn assert_error(&self, status: u16, kind: &str, message: &str) {
        let body = self.json();
        assert_eq!(self.status, status, "{body:#}");
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], kind);
        assert_eq!(body["error"]["message"], message);
        assert!(body["request_id"].as_str().is_some_and(|id| id.starts_with("req_")));
    }
}

/// Sends a request. Returns `None` if the connection was closed without an answer.
fn send(
    provider: &FakeProvider,
    line: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<Response> {
    let url = provider.url();
    let address = url.strip_prefix("http://").expect("a plain address");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let mut request = format!("{line} HTTP/1.1\r\nhost: {address}\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(request.as_bytes()).expect("a head sent");
    stream.write_all(body).expect("a body sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an orderly end");
    if bytes.is_empty() {
        return None;
    }
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("the end of a head");
    let head = String::from_utf8(bytes[..end].to_vec()).expect("an ASCII head");
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    Some(Response { status, head, body: bytes[end + 4..].to_vec() })
}

fn post_raw(provider: &FakeProvider, body: &[u8]) -> Response {
    send(provider, &format!("POST {MESSAGES}"), HEADERS, body).expect("an answer")
}

fn post(provider: &FakeProvider, body: &Value) -> Response {
    post_raw(provider, body.to_string().as_bytes())
}

// ---- bodies --------------------------------------------------------------------------------

fn request(messages: Value) -> Value {
    json!({"model": "test-model", "max_tokens": 100, "messages": messages})
}

fn hello() -> Value {
    request(json!([{"role": "user", "content": "hello"}]))
}

/// Returns [`hello`] with one member added or replaced.
fn hello_with(name: &str, value: Value) -> Value {
    let mut body = hello();
    body[name] = value;
    body
}

/// Returns a request with one user message that has these blocks.
fn user_blocks(blocks: Value) -> Value {
    request(json!([{"role": "user", "content": blocks}]))
}

/// Returns a request with a question, an answer with these blocks, and a last user message.
fn answer_blocks(blocks: Value) -> Value {
    request(json!([
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": "thanks"},
    ]))
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "x"}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "done"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a request with a question, an answer with these calls, and a message with these results.
fn loop_of(calls: Value, results: Value) -> Value {
    request(json!([
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]))
}

/// Returns the messages of a body, to be changed in place.
fn messages(body: &mut Value) -> &mut Vec<Value> {
    body["messages"].as_array_mut().expect("messages")
}

/// Returns the body without its last message.
fn without_last(mut body: Value) -> Value {
    messages(&mut body).pop();
    body
}

// ---- verdicts ------------------------------------------------------------------------------

/// Checks that the body is refused with status 400, for breaking this rule, with this message, and that a scripted step
/// stays queued.
#[track_caller]
fn refused(body: &Value, rule: &str, message: &str) {
    refused_raw(body.to_string().as_bytes(), rule, message);
}

#[track_caller]
fn refused_raw(body: &[u8], rule: &str, message: &str) {
    let provider = FakeProvider::new();
    provider.script(Step::text("must stay queued"));
    post_raw(&provider, body).assert_error(400, "invalid_request_error", message);
    let recorded = provider.single_request();
    assert_eq!(recorded.violation.expect("a violation").rule, rule);
    assert_eq!((recorded.status, provider.pending()), (400, 1));
}

#[track_caller]
fn passes(body: &Value) {
    let provider = FakeProvider::new();
    let response = post(&provider, body);
    assert_eq!(response.status, 200, "{:#}", response.json());
    provider.all_legal();
}

// ---- the rules -----------------------------------------------------------------------------

#[test]
fn a1_a_call_needs_its_result_in_the_next_message() {
    let why = |ids: &str| {
        format!(
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately \
             after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in \
             the next message."
        )
    };
    let calls = json!([call("a"), call("b"), call("c")]);
    refused(&loop_of(calls.clone(), json!("never mind")), "A1", &why("a, b, c"));
    refused(&loop_of(calls.clone(), json!([result("b")])), "A1", &why("a, c"));
    let mut late = loop_of(calls.clone(), json!("wait"));
    messages(&mut late).push(json!({"role": "assistant", "content": "yes?"}));
    let results = json!([result("a"), result("b"), result("c")]);
    messages(&mut late).push(json!({"role": "user", "content": results}));
    refused(&late, "A1", &why("a, b, c"));
    let never = without_last(loop_of(calls.clone(), json!("gone")));
    refused(&never, "A1", &why("a, b, c"));

    passes(&loop_of(calls, json!([result("c"), result("a"), result("b")])));
}

#[test]
fn a2_a_result_needs_its_call_in_the_message_before() {
    let why = |at: &str, id: &str| {
        format!(
            "{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
             `tool_result` block must have a corresponding `tool_use` block in the previous \
             message."
        )
    };
    refused(&user_blocks(json!([result("a")])), "A2", &why("messages.0.content.0", "a"));
    let stray = loop_of(json!([call("a")]), json!([result("a"), result("z")]));
    refused(&stray, "A2", &why("messages.2.content.1", "z"));
    let answered_long_ago = request(json!([
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": [call("a")]},
        {"role": "user", "content": [result("a")]},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": [result("a")]},
    ]));
    refused(&answered_long_ago, "A2", &why("messages.4.content.0", "a"));

    passes(&loop_of(json!([call("a")]), json!([result("a")])));
}

#[test]
fn a3_call_ids_are_unique_and_have_one_result_each() {
    let unique = |at: &str| format!("{at}: `tool_use` ids must be unique");
    let twice = loop_of(json!([call("a"), call("a")]), json!([result("a")]));
    refused(&twice, "A3", &unique("messages.1.content.1"));
    let rounds = |second: &str| {
        request(json!([
            {"role": "user", "content": "do it"},
            {"role": "assistant", "content": [call("a")]},
            {"role": "user", "content": [result("a")]},
            {"role": "assistant", "content": [text("once more"), call(second)]},
            {"role": "user", "content": [result(second)]},
        ]))
    };
    refused(&rounds("a"), "A3", &unique("messages.3.content.1"));
    let two_results = loop_of(json!([call("a")]), json!([result("a"), result("a")]));
    let why = "messages.2.content.1: each tool_use must have a single result. Found multiple \
               `tool_result` blocks with id: a";
    refused(&two_results, "A3", why);

    passes(&rounds("b"));
}

#[test]
fn a4_ids_consist_of_ascii_letters_digits_underscores_and_hyphens() {
    for id in ["", "a b", "a.b", "é", "call|1"] {
        let why = "messages.1.content.0.tool_use.id: String should match pattern \
                   '^[a-zA-Z0-9_-]+$'";
        refused(&loop_of(json!([call(id)]), json!([result(id)])), "A4", why);
    }
    let why = "messages.2.content.0.tool_result.tool_use_id: String should match pattern \
               '^[a-zA-Z0-9_-]+$'";
    refused(&loop_of(json!([call("a")]), json!([result("a:1")])), "A4", why);

    for id in ["toolu_01A-b_C", "0", "-", &"x".repeat(200)] {
        passes(&loop_of(json!([call(id)]), json!([result(id)])));
    }
}

#[test]
fn a5_text_is_not_empty() {
    let empty = "messages: text content blocks must be non-empty";
    let blank = "messages: text content blocks must contain non-whitespace text";
    refused(&user_blocks(json!([text("hi"), text("")])), "A5", empty);
    refused(&user_blocks(json!([text(" \n\t\u{a0}")])), "A5", blank);
    refused(&user_blocks(json!("\n")), "A5", blank);
    refused(&answer_blocks(json!([text(" ")])), "A5", blank);
    let in_result = json!([{"type": "tool_result", "tool_use_id": "a", "content": [text("")]}]);
    refused(&loop_of(json!([call("a")]), in_result), "A5", empty);
    let system = "system: text content blocks must be non-empty";
    refused(&hello_with("system", json!([text("")])), "A5", system);

    passes(&user_blocks(json!(" x ")));
    let in_result = json!([{"type": "tool_result", "tool_use_id": "a", "content": [text("\n")]}]);
    passes(&loop_of(json!([call("a")]), in_result));
    let nothing = json!([{"type": "tool_result", "tool_use_id": "a"}]);
    passes(&loop_of(json!([call("a")]), nothing));
}

#[test]
fn a5_content_is_not_empty() {
    let why = |n: usize| {
        format!(
            "messages.{n}: all messages must have non-empty content except for the optional final \
             assistant message"
        )
    };
    for empty in [json!(""), json!([])] {
        refused(&user_blocks(empty.clone()), "A5", &why(0));
        refused(&answer_blocks(empty.clone()), "A5", &why(1));
        // The last message may be an empty answer, but then rule A6 applies.
        refused(&without_last(answer_blocks(empty)), "A6", PREFILL);
    }
    refused(&request(json!([{"role": "user"}])), "A5", "messages.0.content: Field required");
    let why = "messages.0.content: Input should be a valid list";
    refused(&user_blocks(Value::Null), "A5", why);
}

const PREFILL: &str = "This model does not support assistant message prefill. The conversation \
                       must end with a user message.";

#[test]
fn a6_the_last_message_is_from_the_user() {
    let body = answer_blocks(json!("so be it"));
    passes(&body);
    refused(&without_last(body), "A6", PREFILL);
}

#[test]
fn a7_roles_alternate_and_the_user_begins() {
    let roles = |roles: &[&str]| {
        request(roles.iter().map(|role| json!({"role": role, "content": "x"})).collect())
    };
    let first = "messages: first message must use the \"user\" role";
    refused(&roles(&["assistant", "user"]), "A7", first);
    let again = |role: &str, n: usize| {
        format!(
            "messages: roles must alternate between \"user\" and \"assistant\", but found \
             multiple \"{role}\" roles in a row (messages.{n} and messages.{})",
            n + 1
        )
    };
    refused(&roles(&["user", "user"]), "A7", &again("user", 0));
    let two_answers = roles(&["user", "assistant", "assistant", "user"]);
    refused(&two_answers, "A7", &again("assistant", 1));
    let why = "messages.0.role: Input should be 'user' or 'assistant'";
    refused(&roles(&["system", "user"]), "A7", why);

    passes(&roles(&["user", "assistant", "user"]));
}

#[test]
fn a8_thinking_is_signed() {
    let thinking = |signature: Value| {
        let block = json!({"type": "thinking", "thinking": "hm", "signature": signature});
        answer_blocks(json!([block, text("so be it")]))
    };
    let why = "messages.1.content.0.thinking: Invalid `signature` in `thinking` block";
    refused(&thinking(json!("")), "A8", why);
    refused(&thinking(Value::Null), "A8", why);
    let unsigned = json!([{"type": "thinking", "thinking": "hm"}, text("so be it")]);
    let why = "messages.1.content.0.thinking.signature: Field required";
    refused(&answer_blocks(unsigned), "A8", why);

    passes(&thinking(json!("c2ln")));
    let withheld = json!([
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eHg="},
        text("so be it"),
    ]);
    passes(&answer_blocks(withheld));
}

/// The rule applies to every assistant message, not only to the last one.
#[test]
fn a8_thinking_is_never_the_last_block() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    let redacted = json!({"type": "redacted_thinking", "data": "eHg="});
    let why = |kind: &str| {
        format!("messages.1: The final block in an assistant message cannot be `{kind}`.")
    };
    refused(&answer_blocks(json!([thinking])), "A8", &why("thinking"));
    refused(&answer_blocks(json!([text("so"), thinking])), "A8", &why("thinking"));
    refused(&answer_blocks(json!([text("so"), redacted])), "A8", &why("redacted_thinking"));
    let redacted_before_call = json!([redacted, thinking, call("a")]);
    passes(&loop_of(redacted_before_call, json!([result("a")])));
}

#[test]
fn a9_results_come_first() {
    let why = "messages.2.content.1: `tool_result` blocks must come before other blocks in their \
               message";
    refused(&loop_of(json!([call("a")]), json!([text("here"), result("a")])), "A9", why);

    passes(&loop_of(json!([call("a")]), json!([result("a"), text("here")])));
}

#[test]
fn a10_a_body_is_at_most_32_mib() {
    let mut body = hello().to_string().into_bytes();
    body.resize(MAX_BODY, b' ');
    let provider = FakeProvider::new();
    assert_eq!(post_raw(&provider, &body).status, 200);

    body.push(b' ');
    let too_large = post_raw(&provider, &body);
    too_large.assert_error(413, "request_too_large", "Request exceeds the maximum size");
}

#[test]
fn a11_text_is_unicode() {
    let with = |content: &[u8]| {
        let (head, tail) =
            (br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":""#, br#""}]}"#);
        [head.as_slice(), content, tail].concat()
    };
    let half = "The request body is not valid JSON: no low surrogate in string";
    for content in [r"\ud83d", r"\ud83d end", r"\ude00", r"\ud83d\u0041", r"\ud83d\ud83d"] {
        refused_raw(&with(content.as_bytes()), "A11", half);
    }
    let utf8 = "The request body is not valid JSON: str is not valid UTF-8";
    refused_raw(&with(b"caf\xe9"), "A11", utf8);

    for content in [r"\ud83d\ude00", "\u{1f600}", r"\\ud83d"] {
        assert_eq!(post_raw(&FakeProvider::new(), &with(content.as_bytes())).status, 200);
    }
}

#[test]
fn a12_the_window_holds_the_prompt_and_the_reply() {
    let body = hello();
    let prompt = rules::count_tokens(&body);
    let within = |window| post(&FakeProvider::new().window(window), &body);

    assert_eq!(within(prompt + 100).status, 200);
    let both = format!(
        "input length and `max_tokens` exceed context limit: {prompt} + 100 > {}, decrease input \
         length or `max_tokens` and try again",
        prompt + 99
    );
    within(prompt + 99).assert_error(400, "invalid_request_error", &both);
    assert!(
        within(prompt).json()["error"]["message"].as_str().is_some_and(|m| m.starts_with("input"))
    );
    let alone = format!("prompt is too long: {prompt} tokens > {} maximum", prompt - 1);
    within(prompt - 1).assert_error(400, "invalid_request_error", &alone);
}

#[test]
fn a_body_is_json() {
    let why = "The request body is not valid JSON: EOF while parsing a value at line 1 column 0";
    refused_raw(b"", "json", why);
    let why = "The request body is not valid JSON: trailing characters at line 1 column 3";
    refused_raw(b"{}{}", "json", why);
    refused_raw(b"[]", "shape", "request body: Input should be a valid dictionary");
}

#[test]
fn unknown_members_are_refused() {
    refused(&hello_with("_meta", json!(1)), "members", "_meta: Extra inputs are not permitted");
    let mut body = hello();
    body["messages"][0]["_meta"] = json!({"id": 1});
    refused(&body, "members", "messages.0._meta: Extra inputs are not permitted");
    let mut block = call("a");
    block["index"] = json!(0);
    let why = "messages.1.content.0.tool_use.index: Extra inputs are not permitted";
    refused(&loop_of(json!([block]), json!([result("a")])), "members", why);

    let mut all = json!({
        "system": [text("be brief")],
        "tools": [{"name": "read", "description": "reads", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "stream": false,
        "temperature": 0.5,
        "top_p": 1,
        "top_k": 5,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u"},
        "thinking": {"type": "disabled"},
    });
    for (name, value) in hello().as_object().expect("an object") {
        all[name] = value.clone();
    }
    passes(&all);
}

#[test]
fn required_members_are_checked_with_their_types() {
    for name in ["model", "max_tokens", "messages"] {
        let mut body = hello();
        body.as_object_mut().expect("an object").remove(name);
        refused(&body, "shape", &format!("{name}: Field required"));
    }
    let cases = [
        ("model", json!(1), "model: Input should be a valid string"),
        ("max_tokens", json!("1"), "max_tokens: Input should be a valid integer"),
        ("max_tokens", json!(1.5), "max_tokens: Input should be a valid integer"),
        ("max_tokens", json!(0), "max_tokens: Input should be greater than or equal to 1"),
        ("max_tokens", json!(-1), "max_tokens: Input should be greater than or equal to 1"),
        ("messages", json!([]), "messages: at least one message is required"),
        ("messages", json!({}), "messages: Input should be a valid list"),
        ("messages", json!(["hi"]), "messages.0: Input should be a valid dictionary"),
        ("system", json!({}), "system: Input should be a valid list"),
        ("tools", json!([{"name": "x"}]), "tools.0.custom.input_schema: Field required"),
        ("stream", json!("yes"), "stream: Input should be a valid boolean"),
    ];
    for (name, value, why) in cases {
        refused(&hello_with(name, value), "shape", why);
    }
    passes(&hello_with("max_tokens", json!(1)));
}

#[test]
fn blocks_have_known_types_and_fit_the_role() {
    let odd = user_blocks(json!([{"type": "odd"}]));
    let why = "messages.0.content.0: Input tag 'odd' found using 'type' does not match any \
               of the expected tags: 'text', 'image', 'document', 'tool_use', 'tool_result', \
               'thinking', 'redacted_thinking', 'server_tool_use', 'web_search_tool_result', \
               'code_execution_tool_result'";
    refused(&odd, "shape", why);
    let why = "messages.0.content.0.type: Field required";
    refused(&user_blocks(json!([{"text": "hi"}])), "shape", why);
    let why = "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages";
    refused(&user_blocks(json!([call("a")])), "shape", why);
    let why = "messages.1.content.0: `tool_result` blocks can only be in `user` messages";
    refused(&answer_blocks(json!([result("a")])), "shape", why);

    let image = json!({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}});
    let document = json!({"type": "document", "source": {"type": "text", "data": "x"}});
    passes(&user_blocks(json!([image, document, text("look")])));
    let search = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        text("found nothing"),
    ]);
    passes(&answer_blocks(search));
}

#[test]
fn calls_have_a_valid_name_and_an_object_as_input() {
    let named = |name: &str| {
        let block = json!({"type": "tool_use", "id": "a", "name": name, "input": {}});
        loop_of(json!([block]), json!([result("a")]))
    };
    let why = "messages.1.content.0.tool_use.name: String should match pattern \
               '^[a-zA-Z0-9_-]{1,64}$'";
    for name in ["", "a.b", &"x".repeat(65)] {
        refused(&named(name), "shape", why);
    }
    passes(&named(&"x".repeat(64)));

    for input in [json!("{}"), Value::Null, json!([])] {
        let block = json!({"type": "tool_use", "id": "a", "name": "read", "input": input});
        let why = "messages.1.content.0.tool_use.input: Input should be a valid dictionary";
        refused(&loop_of(json!([block]), json!([result("a")])), "shape", why);
    }
}

#[test]
fn results_hold_text_images_and_documents() {
    let holding = |content: Value| {
        let block = json!({"type": "tool_result", "tool_use_id": "a", "content": content});
        loop_of(json!([call("a")]), json!([block]))
    };
    let why = "messages.2.content.0.tool_result.content: Input should be a valid list";
    refused(&holding(json!({"ok": true})), "shape", why);
    let why = "messages.2.content.0.tool_result.content.0: `tool_use` blocks are not permitted in \
               a result";
    refused(&holding(json!([call("b")])), "shape", why);
    let mut flagged = holding(json!("no"));
    flagged["messages"][2]["content"][0]["is_error"] = json!("yes");
    let why = "messages.2.content.0.tool_result.is_error: Input should be a valid boolean";
    refused(&flagged, "shape", why);

    flagged["messages"][2]["content"][0]["is_error"] = json!(true);
    passes(&flagged);
    let image = json!({"type": "image", "source": {"type": "base64", "data": "eA=="}});
    for content in [json!(""), json!([]), json!([text("a"), image])] {
        passes(&holding(content));
    }
}

// ---- headers -------------------------------------------------------------------------------

#[test]
fn headers_are_checked() {
    let answer = |headers: &[(&str, &str)]| {
        let body = hello().to_string();
        send(&FakeProvider::new(), &format!("POST {MESSAGES}"), headers, body.as_bytes())
            .expect("an answer")
    };
    let [kind, version, key] = [HEADERS[0], HEADERS[1], HEADERS[2]];
    let bearer = ("Authorization", "Bearer test-token");

    assert_eq!(answer(&[kind, version, key]).status, 200);
    assert_eq!(answer(&[kind, version, bearer]).status, 200);
    assert_eq!(
        answer(&[("Content-Type", "application/json; charset=utf-8"), version, key]).status,
        200
    );
    let no_key = "x-api-key header is required";
    for headers in [
        &[kind, version][..],
        &[kind, version, ("x-api-key", "")],
        &[kind, version, ("authorization", "Basic dGVzdA==")],
        &[kind, version, key, bearer],
    ] {
        answer(headers).assert_error(401, "authentication_error", no_key);
    }
    let why = "anthropic-version: header is required";
    answer(&[kind, key]).assert_error(400, "invalid_request_error", why);
    let why = "content-type: must be application/json";
    answer(&[version, key]).assert_error(400, "invalid_request_error", why);
    answer(&[("content-type", "text/plain"), version, key]).assert_error(
        400,
        "invalid_request_error",
        why,
    );
}

#[test]
fn a_body_that_contains_the_api_key_is_refused() {
    let leak = user_blocks(json!(format!("my key is {API_KEY}!")));
    refused(&leak, "key", "the API key must not appear in the body");
    passes(&user_blocks(json!("my key is test-kex!")));
}

#[test]
fn other_paths_and_methods_are_refused() {
    let provider = FakeProvider::new();
    let status = |line: &str| send(&provider, line, HEADERS, b"").expect("an answer").status;
    assert_eq!(status("GET /v1/messages"), 405);
    assert_eq!(status("POST /v1/complete"), 404);
    assert_eq!(provider.requests().len(), 2);
}

// ---- answers -------------------------------------------------------------------------------

#[test]
fn the_default_reply_repeats_the_question() {
    let provider = FakeProvider::new();
    let mut body = loop_of(json!([call("a")]), json!([result("a")]));
    let response = post(&provider, &body);
    let reply = response.json();
    assert_eq!(response.text(), "Reply to 3 messages: do it");
    assert_eq!(reply["id"], "msg_1");
    assert_eq!(reply["model"], "test-model");
    assert_eq!(reply["stop_reason"], "end_turn");
    assert_eq!(reply["usage"]["input_tokens"], rules::count_tokens(&body));
    assert!(response.head.contains("request-id: req_1"), "{}", response.head);
    assert!(response.head.contains("connection: close"), "{}", response.head);

    let long = "é".repeat(101);
    body["messages"][2]["content"] = json!([result("a"), text("first"), text(&long)]);
    assert_eq!(post(&provider, &body).text(), format!("Reply to 3 messages: {}", "é".repeat(100)));
}

#[test]
fn only_a_request_whose_single_message_asks_for_a_summary_gets_a_summary() {
    let provider = FakeProvider::new();
    let ask = "Please Summarize this.";
    assert_eq!(post(&provider, &user_blocks(json!(ask))).text(), SUMMARY);
    let reply = post(
        &provider,
        &request(json!([
            {"role": "user", "content": ask},
            {"role": "assistant", "content": "why?"},
            {"role": "user", "content": "summary please"},
        ])),
    );
    assert_eq!(reply.text(), "Reply to 3 messages: summary please");
}

#[test]
fn scripted_steps_are_used_in_order_and_then_the_default_reply() {
    let provider = FakeProvider::new();
    provider.script(Step::text("one"));
    provider.script(Step::Reply(json!({"any": "thing"})));
    assert_eq!(provider.pending(), 2);
    assert_eq!(post(&provider, &hello()).text(), "one");
    assert_eq!(post(&provider, &hello()).json(), json!({"any": "thing"}));
    assert_eq!(post(&provider, &hello()).text(), "Reply to 1 message: hello");
    assert_eq!(provider.pending(), 0);
}

#[test]
fn step_calls_asks_for_tools() {
    let provider = FakeProvider::new();
    provider.script(Step::call("toolu_1", "read", json!({"path": "x"})));
    let reply = post(&provider, &hello()).json();
    assert_eq!(reply["stop_reason"], "tool_use");
    assert_eq!(reply["content"][0]["type"], "text");
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "x"}});
    assert_eq!(reply["content"][1], call);
}

#[test]
fn step_error_has_the_form_of_the_api() {
    let provider = FakeProvider::new();
    let headers = vec![("retry-after".to_owned(), "7".to_owned())];
    let (kind, message) = ("rate_limit_error".to_owned(), "slow down".to_owned());
    provider.script(Step::Error { status: 429, kind, message, headers });
    let response = post(&provider, &hello());
    response.assert_error(429, "rate_limit_error", "slow down");
    assert!(response.head.contains("retry-after: 7"), "{}", response.head);
    assert_eq!(provider.single_request().status, 429);
    provider.all_legal();
}

#[test]
fn step_raw_is_sent_unchanged() {
    let provider = FakeProvider::new();
    let headers = vec![("x-odd".to_owned(), "1".to_owned())];
    provider.script(Step::Raw { status: 502, headers, body: b"<html>".to_vec() });
    let response = post(&provider, &hello());
    assert_eq!((response.status, response.body.as_slice()), (502, b"<html>".as_slice()));
    assert_eq!(
        response.head,
        "HTTP/1.1 502 Error\r\nx-odd: 1\r\ncontent-length: 6\r\nconnection: close"
    );
}

#[test]
fn step_drop_closes_without_an_answer() {
    let provider = FakeProvider::new();
    provider.script(Step::Drop);
    let body = hello().to_string();
    let answer = send(&provider, &format!("POST {MESSAGES}"), HEADERS, body.as_bytes());
    assert!(answer.is_none());
    assert_eq!(provider.single_request().status, 0);
}

#[test]
fn step_cut_closes_in_the_middle_of_the_body() {
    let provider = FakeProvider::new();
    provider.script(Step::Cut(20));
    let cut = post(&provider, &hello());
    let whole = post(&provider, &hello());
    assert_eq!((cut.status, cut.body.len()), (200, 20));
    assert!(cut.head.contains(&format!("content-length: {}", whole.body.len())), "{}", cut.head);
}

#[test]
fn step_hang_waits_without_blocking_other_requests() {
    let provider = FakeProvider::new();
    provider.script(Step::Hang(Duration::from_millis(400)));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let started = Instant::now();
            (post(&provider, &hello()).text(), started.elapsed())
        });
        while provider.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(post(&provider, &hello()).status, 200);
        assert!(!slow.is_finished());
        let (text, took) = slow.join().expect("an answer");
        assert_eq!(text, "Reply to 1 message: hello");
        assert!(took >= Duration::from_millis(400));
    });
}

#[test]
fn step_overflow_refuses_a_prompt_of_any_length() {
    let body = hello();
    let prompt = rules::count_tokens(&body);
    let cases = [
        (FakeProvider::new(), format!("{prompt} tokens > {} maximum", prompt - 1)),
        (FakeProvider::new().window(5000), "5001 tokens > 5000 maximum".to_owned()),
    ];
    for (provider, numbers) in cases {
        provider.script(Step::Overflow);
        let why = format!("prompt is too long: {numbers}");
        post(&provider, &body).assert_error(400, "invalid_request_error", &why);
        assert_eq!(post(&provider, &body).status, 200);
        provider.all_legal();
    }
}

#[test]
fn tokens_are_counted_on_request() {
    let provider = FakeProvider::new();
    let count = |body: &Value| {
        let body = body.to_string();
        send(&provider, &format!("POST {COUNT_TOKENS}"), HEADERS, body.as_bytes())
            .expect("an answer")
    };
    let mut body = hello();
    let why = "max_tokens: Extra inputs are not permitted";
    count(&body).assert_error(400, "invalid_request_error", why);
    body.as_object_mut().expect("an object").remove("max_tokens");
    provider.script(Step::text("for a message"));
    assert_eq!(count(&body).json(), json!({"input_tokens": 10}));
    assert_eq!(provider.pending(), 1);
}

#[test]
fn tokens_are_a_quarter_of_the_bytes_plus_a_charge_per_message_and_image() {
    assert_eq!(rules::count_tokens(&json!({})), 0);
    // 5 bytes: 2 tokens; a message: 8.
    assert_eq!(rules::count_tokens(&hello()), 10);
    // é has 2 bytes: 2 + 5 bytes are 2 tokens.
    assert_eq!(rules::count_tokens(&hello_with("system", json!("é"))), 10);
    // {"path":"x"} and "done" are 16 bytes and "do it" 5: 6 tokens; three messages: 24.
    let tools = loop_of(json!([call("a")]), json!([result("a")]));
    assert_eq!(rules::count_tokens(&tools), 30);
    let image = json!({"type": "image", "source": {"type": "base64", "data": "x".repeat(9999)}});
    assert_eq!(rules::count_tokens(&user_blocks(json!([image]))), 1508);
}

// ---- the record ----------------------------------------------------------------------------

#[test]
fn every_request_is_recorded_unchanged() {
    let provider = FakeProvider::new();
    post_raw(&provider, b"{oops");
    post(&provider, &hello());
    let [bad, good] = &provider.requests()[..] else { panic!("expected two requests") };
    assert_eq!((bad.status, bad.body.as_slice(), &bad.json), (400, b"{oops".as_slice(), &None));
    assert_eq!((good.method.as_str(), good.path.as_str()), ("POST", MESSAGES));
    assert_eq!(good.header("x-api-key"), Some(API_KEY));
    assert_eq!(good.body, hello().to_string().as_bytes());
    assert_eq!(good.messages().len(), 1);
    assert_eq!(good.last_user_text(), "hello");
}

#[test]
#[should_panic(expected = "rule: \"A6\"")]
fn a_broken_rule_is_reported_even_if_a_later_request_is_legal() {
    let provider = FakeProvider::new();
    post(&provider, &without_last(answer_blocks(json!("so be it"))));
    post(&provider, &hello());
    provider.all_legal();
}

#[test]
fn the_server_stops_when_it_is_dropped() {
    let provider = FakeProvider::new();
    let address = provider.url().replace("http://", "");
    provider.script(Step::Hang(Duration::from_secs(600)));
    let mut stream = TcpStream::connect(&address).expect("a connection");
    let body = hello().to_string();
    let head = format!(
        "POST {MESSAGES} HTTP/1.1\r\ncontent-type: application/json\r\nx-api-key: k\r\n\
         anthropic-version: 1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("a request sent");
    while provider.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(provider);
    // Another process may have taken the port by now, so a second connection would prove nothing. Check that this one
    // is closed.
    stream.read_to_end(&mut Vec::new()).expect("the end of the request");
}

#[test]
fn the_environment_points_at_the_server() {
    let provider = FakeProvider::new();
    let env = provider.env();
    assert!(env.contains(&("ANTHROPIC_BASE_URL".to_owned(), provider.url())));
    assert!(env.contains(&("ANTHROPIC_API_KEY".to_owned(), API_KEY.to_owned())));
    assert!(provider.url().starts_with("http://127.0.0.1:"));
}
