//! A strict substitute on loopback for three APIs: the Anthropic Messages API, chat completions, and Ollama's chat.
//!
//! [`FakeProvider`] listens on its own port until it is dropped. It checks the headers of every request, its body
//! (against [`rules`](super::rules) or [`shapes`](super::shapes)), and that it fits the window. It records the request,
//! and answers in the format of the API that the path belongs to, either whole or as a stream. A request that breaks a
//! rule gets the refusal that the API would give, whatever the test has scripted. A legal request takes the next
//! scripted [`Step`], or gets a default reply. [`FakeProvider::all_legal`] fails if any request broke a rule.

mod answer;
pub mod batch;
pub mod cache;
mod http;
mod stream;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::{self, AddressFamily, SocketType};
use serde_json::{Value, json};

use super::rules::{self, Violation};
use super::shapes::{self, Shape};

use answer::Asked;
use http::{Answer, Body, Request};

/// The path of a request for a message.
pub const MESSAGES: &str = "/v1/messages";

/// The path of a request to count tokens.
pub const COUNT_TOKENS: &str = "/v1/messages/count_tokens";

/// The path of a chat completion.
pub const COMPLETIONS: &str = "/v1/chat/completions";

/// The path of a request to count the tokens of a chat completion.
pub const COMPLETION_TOKENS: &str = "/v1/chat/completions/input_tokens";

/// The path of Ollama's chat.
pub const OLLAMA_CHAT: &str = "/api/chat";

/// The key in [`FakeProvider::env`].
pub const API_KEY: &str = "test-key-1";

/// The model in [`FakeProvider::env`].
pub const MODEL: &str = "test-model";

/// The default reply to a request for a summary.
pub const SUMMARY: &str = "SUMMARY: The user asked, the assistant answered, nothing is left open.";

/// The longest wait for the next bytes of a request.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// The answer to the next legal request. Unless a variant says otherwise, it has the form of the request's API, and is
/// a stream if the request asks for one.
#[derive(Clone, Debug)]
pub enum Step {
    /// A normal reply with this text.
    Text(String),
    /// This body with status 200, and never as a stream.
    Reply(Value),
    /// A normal reply that calls tools: id, name and input of each. Ollama's chat omits an empty id.
    Calls(Vec<(String, String, Value)>),
    /// An error in the form of the API.
    Error {
        /// HTTP status.
        status: u16,
        /// `error.type`, which Ollama does not have.
        kind: String,
        /// `error.message`.
        message: String,
        /// Additional headers.
        headers: Vec<(String, String)>,
    },
    /// This response. Only `content-length` and `connection` are added if they are missing.
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
    /// The default reply, cut after this many bytes of its body. A stream with fewer bytes lacks only the empty chunk
    /// that ends it.
    Cut(usize),
    /// A stream of these pieces, each in one chunk.
    Stream(Vec<Vec<u8>>),
    /// A stream with an error after half of the default reply. If the request does not ask for a stream, only the
    /// error, with status 200.
    StreamError {
        /// `error.type`, which Ollama does not have.
        kind: String,
        /// `error.message`.
        message: String,
    },
    /// The default reply, after a pause of this length.
    Hang(Duration),
    /// The default reply as a stream: this many pieces at once, then each further piece after this pause.
    Slow(usize, Duration),
    /// The error for a prompt that is too long, even if the prompt fits.
    Overflow,
}

impl Step {
    /// [`Step::Text`].
    pub fn text(text: impl Into<String>) -> Step {
        Step::Text(text.into())
    }

    /// [`Step::Error`] without additional headers.
    pub fn error(status: u16, kind: &str, message: &str) -> Step {
        Step::Error { status, kind: kind.into(), message: message.into(), headers: Vec::new() }
    }

    /// A rate limit that asks for a very short wait.
    pub fn busy() -> Step {
        let headers = vec![("retry-after-ms".into(), "5".into())];
        let (kind, message) = ("rate_limit_error".into(), "Too many tokens per minute".into());
        Step::Error { status: 429, kind, message, headers }
    }

    /// [`Step::StreamError`].
    pub fn stream_error(kind: &str, message: &str) -> Step {
        Step::StreamError { kind: kind.into(), message: message.into() }
    }

    /// [`Step::Stream`] of these bytes, with `size` bytes in each piece.
    pub fn stream(bytes: &[u8], size: usize) -> Step {
        Step::Stream(bytes.chunks(size).map(<[u8]>::to_vec).collect())
    }

    /// [`Step::Calls`] with one call.
    pub fn call(id: &str, name: &str, input: Value) -> Step {
        Step::Calls(vec![(id.into(), name.into(), input)])
    }
}

/// A request and the status of its answer.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The API that the path belongs to.
    pub shape: Shape,
    /// The method, such as `POST`.
    pub method: String,
    /// The path, including the query.
    pub path: String,
    /// The headers in order, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Vec<u8>,
    /// The body, if it parses.
    pub json: Option<Value>,
    /// The status of the answer; 0 if the connection was closed without one.
    pub status: u16,
    /// The rule that the request broke, if any.
    pub violation: Option<Violation>,
}

impl Recorded {
    /// Returns the first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::first(&self.headers, name)
    }

    /// Returns the messages of the body, including a system message; empty if the body has none.
    pub fn messages(&self) -> &[Value] {
        let messages = self.json.as_ref().and_then(|body| body["messages"].as_array());
        messages.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the last text of a user message, outside tool results.
    pub fn last_user_text(&self) -> &str {
        self.json.as_ref().map(answer::last_user_text).unwrap_or_default()
    }

    /// Returns the system prompt; null if there is none.
    pub fn system(&self) -> &Value {
        match self.messages().first() {
            Some(first) if shapes::is_system(first) => &first["content"],
            _ => self.json.as_ref().map_or(&Value::Null, |body| &body["system"]),
        }
    }

    /// Returns true if the request asks for a stream.
    pub fn streams(&self) -> bool {
        self.json.as_ref().is_some_and(|body| body["stream"] == true)
    }
}

/// A server that stops when it is dropped.
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    /// The port of a server that does not run.
    _kept: Option<OwnedFd>,
}

impl FakeProvider {
    /// Returns a server that refuses connections. No other server gets its port until it is dropped.
    pub fn stopped() -> FakeProvider {
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None);
        let socket = socket.expect("a socket");
        net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = net::getsockname(&socket).expect("the port");
        let address = address.try_into().expect("an address");
        FakeProvider { address, shared: Arc::default(), accepting: None, _kept: Some(socket) }
    }

    /// Starts a server that answers every legal request and does not limit the context window.
    pub fn new() -> FakeProvider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the port");
        let shared = Arc::new(Shared::default());
        let accepting = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        FakeProvider { address, shared, accepting: Some(accepting), _kept: None }
    }

    /// Sets the context window of the server (rule A12). In Ollama's chat, a smaller `num_ctx` of the request
    /// applies.
    pub fn window(self, tokens: u64) -> FakeProvider {
        self.shared.state().window = Some(tokens);
        self
    }

    /// Gives the server a prompt cache: Anthropic's for the Messages API, OpenAI's for chat completions.
    pub fn caching(self) -> FakeProvider {
        self.shared.state().cache = Some(cache::Cache::default());
        self
    }

    /// Moves the clock of the cache forward by this many seconds.
    pub fn later(&self, seconds: u64) {
        if let Some(cache) = &mut self.shared.state().cache {
            cache.now += seconds;
        }
    }

    /// Returns what all requests read from the cache and wrote to it.
    pub fn cache_totals(&self) -> cache::Totals {
        self.shared.state().cache.as_ref().map(|cache| cache.totals).unwrap_or_default()
    }

    /// Refuses each legal request for which `why` returns a step, with that step.
    pub fn refusing(self, why: fn(&Value) -> Option<Step>) -> FakeProvider {
        self.shared.state().refuses = Some(why);
        self
    }

    /// Gives the server batch services. A batch ends after this many looks at it; `fate` says what becomes of a request, by its
    /// number, the first time that it is in a batch.
    pub fn batching(self, looks: usize, fate: fn(usize) -> batch::Fate) -> FakeProvider {
        self.shared.state().batches = Some(batch::Services::new(looks, fate));
        self
    }

    /// Loses the answer to the next request that creates a batch. If `is_shared`, the list has batches of others, too.
    pub fn lose_batch(&self, is_shared: bool) {
        let mut state = self.shared.state();
        let services = state.batches.as_mut().expect("batch services");
        (services.loses_answer, services.is_shared) = (true, is_shared);
    }

    /// Cuts off the next answer with results.
    pub fn cut_results(&self) {
        self.shared.state().batches.as_mut().expect("batch services").cuts_results = true;
    }

    /// Lets all batches end at the next look.
    pub fn end_batches(&self) {
        self.shared.state().batches.as_mut().expect("batch services").looks = 0;
    }

    /// Returns the ids and bodies of the requests of each batch so far.
    pub fn batches(&self) -> Vec<Vec<(String, Value)>> {
        let state = self.shared.state();
        let batches = state.batches.as_ref().expect("batch services").batches.iter();
        batches.map(|batch| batch.requests.clone()).collect()
    }

    /// Answers questions about models at this path, which has no query, with this JSON. Others are answered with 404.
    pub fn stating(self, path: &str, answer: Value) -> FakeProvider {
        self.shared.state().stated.push((path.to_owned(), answer));
        self
    }

    /// Returns the questions about models so far, as methods and paths, in order. They are not among the requests.
    pub fn questions(&self) -> Vec<String> {
        self.shared.state().questions.clone()
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the environment that configures a program for this server and the Messages API.
    pub fn env(&self) -> Vec<(String, String)> {
        self.env_for(Shape::Anthropic)
    }

    /// Returns the environment that configures a program for this server and this shape. Requests ask for no cache, so that
    /// tests of other things need not know its marks; the tests of the cache remove `CLAW_CACHE`.
    pub fn env_for(&self, shape: Shape) -> Vec<(String, String)> {
        let url = self.url();
        let vars = match shape {
            Shape::Anthropic => vec![
                ("ANTHROPIC_BASE_URL", url),
                ("ANTHROPIC_API_KEY", API_KEY.to_owned()),
                ("CLAW_PROVIDER", "anthropic".to_owned()),
                ("CLAW_CACHE", "off".to_owned()),
            ],
            Shape::OpenAi => vec![
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_API_KEY", API_KEY.to_owned()),
                ("CLAW_PROVIDER", "openai".to_owned()),
            ],
            Shape::Ollama => {
                vec![("OLLAMA_HOST", url), ("CLAW_PROVIDER", "ollama".to_owned())]
            }
        };
        let model = ("CLAW_MODEL", MODEL.to_owned());
        vars.into_iter().chain([model]).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Queues a step. Only a legal request for a message takes a step from the queue.
    pub fn script(&self, step: Step) {
        self.shared.state().steps.push_back(step);
    }

    /// Ends the pauses of all current and later answers.
    pub fn release(&self) {
        self.shared.is_released.store(true, Ordering::SeqCst);
    }

    /// Returns the number of scripted steps that no request has taken.
    pub fn pending(&self) -> usize {
        self.shared.state().steps.len()
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.state().requests.clone()
    }

    /// Returns the only request; panics unless there was exactly one.
    #[track_caller]
    pub fn single_request(&self) -> Recorded {
        match self.requests().as_slice() {
            [one] => one.clone(),
            all => panic!("expected one request, got {}: {all:#?}", all.len()),
        }
    }

    /// Checks that no request broke a rule.
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
        // A connection wakes the server in accept(), so that it checks the flag.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take()
            && woken
        {
            let _ = accepting.join();
        }
    }
}

// ---- shared state ----------------------------------------------------------------

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    stop: AtomicBool,
    is_released: AtomicBool,
}

#[derive(Default)]
struct State {
    window: Option<u64>,
    refuses: Option<fn(&Value) -> Option<Step>>,
    cache: Option<cache::Cache>,
    steps: VecDeque<Step>,
    requests: Vec<Recorded>,
    stated: Vec<(String, Value)>,
    questions: Vec<String>,
    batches: Option<batch::Services>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // If a thread panicked while it held the lock, the test has failed anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, time: Duration) {
        let until = Instant::now() + time;
        let is_over = || [&self.stop, &self.is_released].iter().any(|on| on.load(Ordering::SeqCst));
        while Instant::now() < until && !is_over() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Records a question about models, and selects its answer.
    fn state_facts(&self, request: &Request) -> Act {
        let mut state = self.state();
        state.questions.push(format!("{} {}", request.method, request.path));
        let stated = state.stated.iter().find(|(path, _)| path == request.bare_path());
        let (status, body) = match stated {
            Some((_, body)) => (200, body.clone()),
            None => (404, json!({"error": {"message": "Not found"}})),
        };
        Act::Send(Answer::json(status, Vec::new(), &body))
    }

    /// Answers a request of a batch as if it had come alone.
    fn alone(&self, request: Request) -> Option<(u16, Value)> {
        match self.decide(request) {
            Act::Send(Answer { status, body: Body::Whole(body), .. }) => {
                Some((status, serde_json::from_slice(&body).expect("JSON")))
            }
            _ => panic!("a step that a batch cannot have"),
        }
    }

    /// Records a request that is not checked.
    fn note(&self, request: &Request, status: u16) {
        self.state().requests.push(Recorded {
            json: serde_json::from_slice(&request.body).ok(),
            shape: Shape::of(&request.path),
            method: request.method.clone(),
            path: request.path.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
            status,
            violation: None,
        });
    }

    /// Checks and records a request, and selects its answer.
    fn decide(&self, request: Request) -> Act {
        if let Some(answer) = batch::answer(self, &request) {
            return answer.map_or(Act::Drop, Act::Send);
        }
        if is_question(&request) {
            return self.state_facts(&request);
        }
        let window = self.state().window;
        let shape = Shape::of(&request.path);
        let verdict = judge(&request, shape);
        let mut state = self.state();
        let id = state.requests.len() + 1;
        let scripted = is_only_scripted(&request.path).then(|| state.steps.pop_front()).flatten();
        let (act, violation) = match verdict {
            _ if scripted.is_some() => {
                let body = serde_json::from_slice(&request.body).unwrap_or_default();
                let asked = Asked { shape, body: &body, id, cached: None };
                (scripted.map_or(Act::Drop, |step| act(step, asked, None)), None)
            }
            Ok(task) => {
                let cached = match task.counts {
                    true => None,
                    false => {
                        let name = format!("msg_{id}");
                        state.cache.as_mut().map(|it| it.take(shape, &task.body, name))
                    }
                };
                let asked = Asked { shape, body: &task.body, id, cached };
                let window = window_for(asked, window);
                if task.counts {
                    let count = json!({"input_tokens": shapes::count_tokens(shape, asked.body)});
                    (Act::Send(asked.json(200, &count)), None)
                } else if let Some((violation, body)) = overflow(asked, window) {
                    (Act::Send(asked.json(violation.status, &body)), Some(violation))
                } else {
                    let refused = state.refuses.and_then(|why| why(asked.body));
                    let step = refused.or_else(|| state.steps.pop_front());
                    (step.map_or_else(|| Act::default(asked), |s| act(s, asked, window)), None)
                }
            }
            Err(violation) => {
                let body = answer::error_body(shape, id, violation.kind, &violation.message);
                let headers = answer::request_id(shape, id);
                (Act::Send(Answer::json(violation.status, headers, &body)), Some(violation))
            }
        };
        state.requests.push(Recorded {
            json: serde_json::from_slice(&request.body).ok(),
            shape,
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

/// Returns true for the paths of Responses and Gemini, whose requests get the next step of the script unchecked: the strict
/// provider of the property tests checks them.
fn is_only_scripted(path: &str) -> bool {
    path.ends_with("/responses") || path.ends_with("/compact") || path.contains(":generateContent")
}

/// Returns true for a request about models. Those to `/api/show` are the only ones that are no GETs.
fn is_question(request: &Request) -> bool {
    request.bare_path() == "/api/show"
        || request.method == "GET" && !request.bare_path().ends_with("/messages")
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // Each connection has a thread, so that a pending request does not delay the next one. Errors are ignored,
        // because in some tests the client closes the connection.
        thread::spawn(move || {
            let _ = serve(&stream, &shared);
        });
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let Some(request) = Request::read(stream)? else { return Ok(()) };
    match shared.decide(request) {
        Act::Send(answer) => answer.write(stream, None),
        Act::Cut(answer, bytes) => answer.write(stream, Some(bytes)),
        Act::Hang(answer, time) => {
            shared.sleep(time);
            answer.write(stream, None)
        }
        Act::Slow(answer, at_once, time) => answer.write_slowly(stream, |piece| {
            if piece >= at_once {
                shared.sleep(time);
            }
        }),
        Act::Drop => Ok(()),
    }
}

// ---- checks of a request -----------------------------------------------------------------------------

/// A legal request, for a message or for a token count.
struct Task {
    body: Value,
    counts: bool,
}

fn judge(request: &Request, shape: Shape) -> Result<Task, Violation> {
    let path = request.bare_path();
    let counts = [COUNT_TOKENS, COMPLETION_TOKENS].contains(&path);
    if !counts && ![MESSAGES, COMPLETIONS, OLLAMA_CHAT].contains(&path) {
        return Err(refusal(404, "not_found_error", "headers", "Not found"));
    }
    if request.method != "POST" {
        return Err(refusal(405, "invalid_request_error", "headers", "Method Not Allowed"));
    }
    let key = check_headers(request, shape)?;
    let body = rules::parse(&request.body)?;
    if key.is_some_and(|key| String::from_utf8_lossy(&request.body).contains(key)) {
        return Err(Violation::invalid("key", "the API key must not appear in the body"));
    }
    if counts {
        shapes::check_count(shape, &body, &request.body)?;
    } else {
        shapes::check(shape, &body, &request.body)?;
        if shape == Shape::Anthropic {
            cache::check(&body)?;
        }
    }
    Ok(Task { body, counts })
}

fn refusal(status: u16, kind: &'static str, rule: &'static str, message: &str) -> Violation {
    Violation { status, kind, message: message.to_owned(), rule }
}

/// Checks the headers of a request, and returns the key.
fn check_headers(request: &Request, shape: Shape) -> Result<Option<&str>, Violation> {
    let key = check_key(request, shape)?;
    if shape == Shape::Anthropic {
        if request.header("anthropic-version").is_none_or(str::is_empty) {
            return Err(Violation::invalid("headers", "anthropic-version: header is required"));
        }
    } else if let Some((name, _)) = request.headers.iter().find(|(n, _)| is_anthropic(n)) {
        // A header of another API may carry a key for another provider.
        return Err(Violation::invalid(
            "headers",
            format!("{name}: header belongs to another API"),
        ));
    }
    let kind = request.header("content-type").unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        let why = "content-type: must be application/json";
        return Err(Violation::invalid("headers", why));
    }
    Ok(key)
}

fn is_anthropic(header: &str) -> bool {
    header == "x-api-key" || header.starts_with("anthropic-")
}

/// Returns the key. The Messages API accepts it in `x-api-key` or in `authorization`, but not in both. Chat completions
/// accept it only in `authorization`. Ollama needs no key.
fn check_key(request: &Request, shape: Shape) -> Result<Option<&str>, Violation> {
    let (keys, why) = match shape {
        Shape::Anthropic => {
            ((request.header("x-api-key"), request.bearer()), "x-api-key header is required")
        }
        Shape::OpenAi => ((None, request.bearer()), "Authorization: a Bearer token is required"),
        Shape::Ollama => return Ok(request.bearer()),
    };
    match keys {
        (Some(key), None) | (None, Some(key)) if !key.is_empty() => Ok(Some(key)),
        _ => Err(refusal(401, "authentication_error", "headers", why)),
    }
}

/// Returns the window that applies: the server's, or a smaller one that the request sets.
fn window_for(asked: Asked, window: Option<u64>) -> Option<u64> {
    let wanted = match asked.shape {
        Shape::Ollama => asked.body["options"]["num_ctx"].as_u64(),
        Shape::Anthropic | Shape::OpenAi => None,
    };
    window.into_iter().chain(wanted).min()
}

/// Checks the window (A12). In the Messages API, the prompt and `max_tokens` together must fit. The other APIs require
/// only that one token still fits after the prompt, and stop the reply when the window is full.
fn overflow(asked: Asked, window: Option<u64>) -> Option<(Violation, Value)> {
    let window = window?;
    let (shape, id) = (asked.shape, asked.id);
    let prompt = shapes::count_tokens(shape, asked.body);
    let limit = if shape == Shape::Anthropic { window } else { window.saturating_sub(1) };
    if prompt > limit {
        let violation = Violation::invalid("A12", answer::too_long(shape, prompt, window));
        return Some((violation, answer::too_long_body(shape, id, prompt, window)));
    }
    let reply = asked.body["max_tokens"].as_u64().unwrap_or_default();
    if shape == Shape::Anthropic && prompt + reply > window {
        let why = format!(
            "input length and `max_tokens` exceed context limit: {prompt} + {reply} > {window}, \
             decrease input length or `max_tokens` and try again"
        );
        let violation = Violation::invalid("A12", why);
        let body = answer::error_body(shape, id, violation.kind, &violation.message);
        return Some((violation, body));
    }
    None
}

// ---- steps ---------------------------------------------------------------------------------

/// The server's response on a connection.
enum Act {
    Send(Answer),
    Cut(Answer, usize),
    Hang(Answer, Duration),
    Slow(Answer, usize, Duration),
    Drop,
}

impl Act {
    fn default(asked: Asked) -> Act {
        Act::Send(asked.default_reply().answer())
    }

    fn status(&self) -> u16 {
        match self {
            Act::Send(answer) | Act::Cut(answer, _) => answer.status,
            Act::Hang(answer, _) | Act::Slow(answer, _, _) => answer.status,
            Act::Drop => 0,
        }
    }
}

fn act(step: Step, asked: Asked, window: Option<u64>) -> Act {
    let default = asked.default_reply();
    Act::Send(match step {
        Step::Text(text) => asked.text(text).answer(),
        Step::Reply(reply) => asked.json(200, &reply),
        Step::Calls(calls) => asked.calls(calls).answer(),
        Step::Error { status, kind, message, headers } => {
            let body = answer::error_body(asked.shape, asked.id, &kind, &message);
            let mut answer = asked.json(status, &body);
            answer.headers.extend(headers);
            answer
        }
        Step::Raw { status, headers, body } => Answer { status, headers, body: Body::Whole(body) },
        Step::Overflow => {
            // The request fits the window, so the message names one token more than the window, as a server with a
            // different count would.
            let counted = shapes::count_tokens(asked.shape, asked.body).max(1);
            let (prompt, window) = window.map_or((counted, counted - 1), |w| (w + 1, w));
            asked.json(400, &answer::too_long_body(asked.shape, asked.id, prompt, window))
        }
        Step::Stream(pieces) => asked.pieces(pieces),
        Step::StreamError { kind, message } => default.broken(&kind, &message),
        Step::Cut(bytes) => return Act::Cut(default.answer(), bytes),
        Step::Hang(time) => return Act::Hang(default.answer(), time),
        Step::Slow(at_once, time) => return Act::Slow(default.answer(), at_once, time),
        Step::Drop => return Act::Drop,
    })
}
