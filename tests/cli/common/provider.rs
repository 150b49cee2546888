//! A strict stand-in for the Anthropic Messages API, on loopback.
//!
//! [`FakeProvider`] listens on a port of its own until dropped, checks *every* request against
//! [`rules`](super::rules), its headers and its window, records it, and answers it. A request that
//! breaks a rule gets the refusal the API would give, whatever the test has scripted; a legal one
//! takes the next scripted [`Step`], or else a default reply. So a test that only looks at its
//! own request still fails when another one was illegal.
//!
//! It speaks HTTP/1.1, one request to a connection, with bodies sized by `content-length`.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rules::{self, Violation};

/// The path of a request for a message.
pub const MESSAGES: &str = "/v1/messages";

/// The path of a request to count tokens.
pub const COUNT_TOKENS: &str = "/v1/messages/count_tokens";

/// The key that [`FakeProvider::env`] hands out.
pub const API_KEY: &str = "test-key";

/// The model that [`FakeProvider::env`] names.
pub const MODEL: &str = "test-model";

/// The default reply to a request for a summary.
pub const SUMMARY: &str = "SUMMARY: The user asked, the assistant answered, nothing is left open.";

/// How long a client may take to send its request.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// How the next legal request is answered.
#[derive(Clone, Debug)]
pub enum Step {
    /// A normal reply with this text.
    Text(String),
    /// This body, with status 200.
    Reply(Value),
    /// A normal reply that calls tools: id, name and input of each.
    Calls(Vec<(String, String, Value)>),
    /// An error in the form of the API.
    Error {
        /// HTTP status.
        status: u16,
        /// `error.type`.
        kind: String,
        /// `error.message`.
        message: String,
        /// Headers besides the usual ones.
        headers: Vec<(String, String)>,
    },
    /// Exactly this. Only the headers that end the message are added, if they are missing.
    Raw {
        /// HTTP status.
        status: u16,
        /// Every header.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// No answer: the connection is closed once the request is read.
    Drop,
    /// The default reply, closed after this many bytes of its body.
    Cut(usize),
    /// The default reply, after this long.
    Hang(Duration),
    /// The refusal of a prompt that is too long, however long it is.
    Overflow,
}

impl Step {
    /// [`Step::Text`].
    pub fn text(text: impl Into<String>) -> Step {
        Step::Text(text.into())
    }

    /// [`Step::Error`] without headers of its own.
    pub fn error(status: u16, kind: &str, message: &str) -> Step {
        Step::Error { status, kind: kind.into(), message: message.into(), headers: Vec::new() }
    }

    /// [`Step::Calls`] with one call.
    pub fn call(id: &str, name: &str, input: Value) -> Step {
        Step::Calls(vec![(id.into(), name.into(), input)])
    }
}

/// A request as it came in, and the answer it got.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// `POST` and the like.
    pub method: String,
    /// The path, with its query if it had one.
    pub path: String,
    /// The headers in order, with lower-cased names.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// The body, if it parses.
    pub json: Option<Value>,
    /// The status answered; 0 when the connection was closed without an answer.
    pub status: u16,
    /// The rule the request broke, if it broke one.
    pub violation: Option<Violation>,
}

impl Recorded {
    /// The first header of that name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }

    /// The messages of the body; none if it has none.
    pub fn messages(&self) -> &[Value] {
        let messages = self.json.as_ref().and_then(|body| body["messages"].as_array());
        messages.map(Vec::as_slice).unwrap_or_default()
    }

    /// The last text a user message of the body holds, outside tool results.
    pub fn last_user_text(&self) -> &str {
        self.json.as_ref().map(last_user_text).unwrap_or_default()
    }
}

/// The server. It stops when dropped.
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl FakeProvider {
    /// Starts a server that has no window and answers every legal request.
    pub fn new() -> FakeProvider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the port");
        let shared = Arc::new(Shared::default());
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        FakeProvider { address, shared, accepting: Some(accepting) }
    }

    /// Gives the server a window, for rule A12.
    pub fn window(self, tokens: u64) -> FakeProvider {
        self.shared.state().window = Some(tokens);
        self
    }

    /// The base address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The environment that points a program at this server.
    pub fn env(&self) -> Vec<(String, String)> {
        let url = self.url();
        let vars = [
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("ANTHROPIC_API_KEY", API_KEY),
            ("CLAW_PROVIDER", "anthropic"),
            ("CLAW_MODEL", MODEL),
        ];
        vars.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    /// Queues an answer. Only a legal request for a message takes one.
    pub fn script(&self, step: Step) {
        self.shared.state().steps.push_back(step);
    }

    /// How many scripted answers nobody has taken yet.
    pub fn pending(&self) -> usize {
        self.shared.state().steps.len()
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().requests.clone()
    }

    /// The one request there was.
    #[track_caller]
    pub fn single_request(&self) -> Recorded {
        match self.requests().as_slice() {
            [one] => one.clone(),
            all => panic!("expected one request, got {}: {all:#?}", all.len()),
        }
    }

    /// No request broke a rule, not even one that a later one made up for.
    #[track_caller]
    pub fn all_legal(&self) {
        let requests = self.requests();
        for (n, request) in requests.iter().enumerate() {
            if let Some(violation) = &request.violation {
                let body = String::from_utf8_lossy(&request.body);
                panic!("request {} of {}: {violation:#?}\n{body}", n + 1, requests.len());
            }
        }
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // The server waits in accept(); a connection is what wakes it up to see the flag.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take()
            && woken
        {
            let _ = accepting.join();
        }
    }
}

// ---- what the threads share ----------------------------------------------------------------

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    window: Option<u64>,
    steps: VecDeque<Step>,
    requests: Vec<Recorded>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked while it held the lock has failed already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.stop.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Judges and records a request, and decides its answer.
    fn decide(&self, request: Request) -> Act {
        let window = self.state().window;
        let verdict = judge(&request, window);
        let mut state = self.state();
        let id = state.requests.len() + 1;
        let (act, violation) = match verdict {
            Ok(Task::Count(body)) => {
                let body = json!({"input_tokens": rules::count_tokens(&body)});
                (Act::Send(Answer::json(200, id, &body)), None)
            }
            Ok(Task::Message(body)) => match state.steps.pop_front() {
                None => (Act::Send(default_reply(&body, id)), None),
                Some(step) => (act(step, &body, id, window), None),
            },
            Err(violation) => (Act::Send(Answer::refusal(&violation, id)), Some(violation)),
        };
        state.requests.push(Recorded {
            json: serde_json::from_slice(&request.body).ok(),
            method: request.method,
            path: request.path,
            headers: request.headers,
            body: request.body,
            status: act.status(),
            violation,
        });
        act
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // A thread each, so that a request that hangs does not hold up the one after it. A
        // client that goes away in the middle is no concern of the server's.
        thread::spawn(move || {
            let _ = serve(&stream, &shared);
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let Some(request) = read_request(stream)? else { return Ok(()) };
    match shared.decide(request) {
        Act::Send(answer) => answer.write(stream, usize::MAX),
        Act::Cut(answer, bytes) => answer.write(stream, bytes),
        Act::Hang(answer, time) => {
            shared.sleep(time);
            answer.write(stream, usize::MAX)
        }
        Act::Drop => Ok(()),
    }
}

// ---- requests ------------------------------------------------------------------------------

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        first(&self.headers, name)
    }

    fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }
}

/// The first header of that name, given in lower case.
fn first<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// Reads one request; none if the client closed the connection without sending any.
fn read_request(mut stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let first = read_line(&mut reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(path), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Ok(None);
    };
    let mut request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: read_headers(&mut reader)?,
        body: Vec::new(),
    };
    if request.header("expect") == Some("100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let length = request.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok(headers);
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

// ---- judgement -----------------------------------------------------------------------------

/// What a legal request asks for.
enum Task {
    Message(Value),
    Count(Value),
}

fn judge(request: &Request, window: Option<u64>) -> Result<Task, Violation> {
    let path = request.path.split('?').next().unwrap_or_default();
    if ![MESSAGES, COUNT_TOKENS].contains(&path) {
        return Err(refusal(404, "not_found_error", "headers", "Not found"));
    }
    if request.method != "POST" {
        return Err(refusal(405, "invalid_request_error", "headers", "Method Not Allowed"));
    }
    let key = check_headers(request)?;
    let body = rules::parse(&request.body)?;
    if String::from_utf8_lossy(&request.body).contains(key) {
        return Err(Violation::invalid("key", "the API key must not appear in the body"));
    }
    if path == COUNT_TOKENS {
        rules::check_count(&body, &request.body)?;
        return Ok(Task::Count(body));
    }
    rules::check(&body, &request.body)?;
    if body["stream"] == true {
        let why = "streaming is not supported by this fake";
        return Err(Violation::invalid("shape", why));
    }
    check_window(&body, window)?;
    Ok(Task::Message(body))
}

fn refusal(status: u16, kind: &'static str, rule: &'static str, message: &str) -> Violation {
    Violation { status, kind, message: message.to_owned(), rule }
}

/// Checks the headers that every request needs; returns the key.
fn check_headers(request: &Request) -> Result<&str, Violation> {
    let key = match (request.header("x-api-key"), request.bearer()) {
        (Some(key), None) | (None, Some(key)) if !key.is_empty() => key,
        _ => {
            let why = "x-api-key header is required";
            return Err(refusal(401, "authentication_error", "headers", why));
        }
    };
    if request.header("anthropic-version").is_none_or(str::is_empty) {
        return Err(Violation::invalid("headers", "anthropic-version: header is required"));
    }
    let kind = request.header("content-type").unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let why = "content-type: must be application/json";
        return Err(Violation::invalid("headers", why));
    }
    Ok(key)
}

/// A12.
fn check_window(body: &Value, window: Option<u64>) -> Result<(), Violation> {
    let Some(window) = window else { return Ok(()) };
    let prompt = rules::count_tokens(body);
    let reply = body["max_tokens"].as_u64().unwrap_or_default();
    if prompt > window {
        return Err(Violation::invalid("A12", too_long(prompt, window)));
    }
    if prompt + reply > window {
        let why = format!(
            "input length and `max_tokens` exceed context limit: {prompt} + {reply} > {window}, \
             decrease input length or `max_tokens` and try again"
        );
        return Err(Violation::invalid("A12", why));
    }
    Ok(())
}

fn too_long(prompt: u64, window: u64) -> String {
    format!("prompt is too long: {prompt} tokens > {window} maximum")
}

// ---- answers -------------------------------------------------------------------------------

/// What is done with the connection.
enum Act {
    Send(Answer),
    Cut(Answer, usize),
    Hang(Answer, Duration),
    Drop,
}

impl Act {
    fn status(&self) -> u16 {
        match self {
            Act::Send(answer) | Act::Cut(answer, _) | Act::Hang(answer, _) => answer.status,
            Act::Drop => 0,
        }
    }
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn json(status: u16, id: usize, body: &Value) -> Answer {
        let headers = [("content-type", "application/json"), ("request-id", &request_id(id))]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Answer { status, headers: headers.into(), body: body.to_string().into() }
    }

    fn error(status: u16, id: usize, kind: &str, message: &str) -> Answer {
        let body = json!({
            "type": "error",
            "error": {"type": kind, "message": message},
            "request_id": request_id(id),
        });
        Answer::json(status, id, &body)
    }

    fn refusal(violation: &Violation, id: usize) -> Answer {
        Answer::error(violation.status, id, violation.kind, &violation.message)
    }

    /// Writes the head and no more than `limit` bytes of the body.
    fn write(mut self, mut stream: &TcpStream, limit: usize) -> io::Result<()> {
        self.add_header("content-length", self.body.len().to_string());
        self.add_header("connection", "close".to_owned());
        let reason = if self.status < 400 { "OK" } else { "Error" };
        let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body[..limit.min(self.body.len())]);
        stream.write_all(&bytes)
    }

    fn add_header(&mut self, name: &str, value: String) {
        if !self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)) {
            self.headers.push((name.to_owned(), value));
        }
    }
}

fn request_id(id: usize) -> String {
    format!("req_{id}")
}

fn act(step: Step, body: &Value, id: usize, window: Option<u64>) -> Act {
    Act::Send(match step {
        Step::Text(text) => reply(body, id, &[text_block(&text)], "end_turn"),
        Step::Reply(reply) => Answer::json(200, id, &reply),
        Step::Calls(calls) => reply(body, id, &call_blocks(body, calls), "tool_use"),
        Step::Error { status, kind, message, headers } => {
            let mut answer = Answer::error(status, id, &kind, &message);
            answer.headers.extend(headers);
            answer
        }
        Step::Raw { status, headers, body } => Answer { status, headers, body },
        Step::Overflow => {
            // The request is within the window, or it would not have come to a step, so one
            // more than the window is what a server that counts differently might have found.
            let counted = rules::count_tokens(body).max(1);
            let (prompt, window) = window.map_or((counted, counted - 1), |w| (w + 1, w));
            Answer::error(400, id, "invalid_request_error", &too_long(prompt, window))
        }
        Step::Cut(bytes) => return Act::Cut(default_reply(body, id), bytes),
        Step::Hang(time) => return Act::Hang(default_reply(body, id), time),
        Step::Drop => return Act::Drop,
    })
}

fn default_reply(body: &Value, id: usize) -> Answer {
    reply(body, id, &[text_block(&default_text(body))], "end_turn")
}

fn reply(request: &Value, id: usize, content: &[Value], stop_reason: &str) -> Answer {
    let said = json!({"messages": [{"role": "assistant", "content": content}]});
    let body = json!({
        "id": format!("msg_{id}"),
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": {
            "input_tokens": rules::count_tokens(request),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": rules::count_tokens(&said),
        },
    });
    Answer::json(200, id, &body)
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call_blocks(body: &Value, calls: Vec<(String, String, Value)>) -> Vec<Value> {
    let calls = calls.into_iter().map(
        |(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}),
    );
    [text_block(&default_text(body))].into_iter().chain(calls).collect()
}

fn default_text(body: &Value) -> String {
    let count = body["messages"].as_array().map_or(0, Vec::len);
    let asked = last_user_text(body);
    if count == 1 && asked.to_lowercase().contains("summar") {
        return SUMMARY.to_owned();
    }
    let start: String = asked.chars().take(100).collect();
    format!("Reply to {count} messages: {start}")
}

fn last_user_text(body: &Value) -> &str {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let asked = messages.iter().rev().filter(|message| message["role"] == "user");
    asked.filter_map(|message| last_text(&message["content"])).next().unwrap_or_default()
}

fn last_text(content: &Value) -> Option<&str> {
    match content {
        Value::String(text) => Some(text),
        Value::Array(blocks) => {
            let mut texts = blocks.iter().rev().filter(|block| block["type"] == "text");
            texts.find_map(|block| block["text"].as_str())
        }
        _ => None,
    }
}
