//! The client's side: starts a server, asks it, and ends it.

use crate::mcp::answer;
use anyhow::Context;
use clawutils::exit::{Error, Exit};
use clawutils::printable::printable;
use clawutils::process::CommandBeside;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, CustomResult,
    ErrorCode, Implementation, JsonObject, ListToolsRequest, PaginatedRequestParams,
    ProtocolVersion, ServerResult, Tool,
};
use rmcp::service::ClientInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, Peer, RoleClient, ServiceError, serve_client};
use serde::Deserialize;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{ChildStderr, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

/// The most that a server may write in all, in bytes.
const MAX_OUTPUT: u64 = 64 << 20;
/// The maximum number of tools that a server may offer.
const MAX_TOOLS: usize = 1000;
/// The maximum number of parts of a list of tools.
const MAX_PAGES: usize = 100;
/// The last bytes of a server's standard error that an error has.
const MAX_STDERR: usize = 1000;
/// The methods of the requests.
const LIST: &str = "tools/list";
const CALL: &str = "tools/call";
/// The time that a server has to end after its input has ended, before it gets a signal.
const GRACE: Duration = Duration::from_millis(500);

/// A running server.
pub struct Server {
    name: String,
    command: CommandBeside,
    /// The end of its standard error.
    stderr: Receiver<String>,
    runtime: Runtime,
    transport: AsyncRwTransport<RoleClient, tokio::io::Take<pipe::Receiver>, pipe::Sender>,
    start_timeout: Duration,
}

/// The reason why a server did not give an answer.
#[derive(Debug)]
enum Failure {
    Late,
    Start(Box<ClientInitializeError>),
    /// A request with this method failed.
    Request(&'static str, ServiceError),
    /// It answered something that this client does not accept.
    Answer(String),
}

impl Failure {
    /// Returns the reason as text. `status` is that of the server, if it ended by itself.
    fn text(self, status: Option<ExitStatus>, start_timeout: Duration) -> String {
        match self {
            Failure::Late => {
                let limit = start_timeout.as_secs_f64();
                format!("it did not answer in {limit} seconds; see --start-timeout")
            }
            Failure::Start(error) => match *error {
                ClientInitializeError::ConnectionClosed(_) => closed(status),
                ClientInitializeError::JsonRpcError(error) => refused("initialize", &error),
                error => format!("it is not a server of the Model Context Protocol: {error}"),
            },
            Failure::Request(method, error) => match error {
                ServiceError::TransportClosed => closed(status),
                ServiceError::McpError(error) => refused(method, &error),
                ServiceError::UnexpectedResponse => {
                    format!("its answer to {method} has another form than the protocol defines")
                }
                error => format!("{method} failed: {error}"),
            },
            Failure::Answer(why) => why,
        }
    }
}

impl Server {
    /// Starts a server, with this environment or that of this program.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(
        words: &[OsString],
        environment: Option<Vec<(OsString, OsString)>>,
        start_timeout: Duration,
    ) -> anyhow::Result<Self> {
        let (program, arguments) = words.split_first().context("the command is empty")?;
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(environment) = environment {
            command.env_clear().envs(environment);
        }
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let mut command = CommandBeside::start(&mut command, &name)?;
        let (stdin, stdout, stderr) = command.pipes()?;
        let within = runtime.enter();
        let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(stdin))?;
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?.take(MAX_OUTPUT);
        drop(within);
        let transport =
            AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
        Ok(Self { name, command, stderr: last_of(stderr), runtime, transport, start_timeout })
    }

    /// Returns the tools that the server offers, or the reason why one of them is not a tool.
    ///
    /// # Errors
    /// Status 69 if it does not list them as it should.
    pub fn tools(self) -> anyhow::Result<Vec<Result<Tool, String>>> {
        let limit = self.start_timeout;
        self.ask(async move |peer| timeout(limit, list(peer)).await.map_err(|_| Failure::Late)?)
    }

    /// Calls a tool. Returns the answer, and true if it is an error.
    ///
    /// # Errors
    /// Status 69 if it does not answer as it should.
    pub fn call(self, tool: String, input: JsonObject) -> anyhow::Result<(String, bool)> {
        self.ask(async move |peer| {
            let call = CallToolRequestParams::new(tool).with_arguments(input);
            let answer = peer.call_tool_once(call).await;
            match answer.map_err(|error| Failure::Request(CALL, error))? {
                CallToolResponse::Complete(result) => Ok(answer::text(result)),
                _ => Err(Failure::Answer("the tool wants to ask a person".to_owned())),
            }
        })
    }

    /// Begins a session, asks a question, and ends the server.
    fn ask<T>(
        self,
        question: impl AsyncFnOnce(&Peer<RoleClient>) -> Result<T, Failure>,
    ) -> anyhow::Result<T> {
        let Self { name, command, stderr, runtime, transport, start_timeout } = self;
        let client = ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("claw-tool", env!("CARGO_PKG_VERSION")),
        );
        // The newest version that begins with a handshake, which all servers understand.
        let client = client.with_protocol_version(ProtocolVersion::V_2025_11_25);
        let answer = runtime.block_on(async {
            let started = timeout(start_timeout, serve_client(client, transport)).await;
            let session =
                started.map_err(|_| Failure::Late)?.map_err(|it| Failure::Start(Box::new(it)))?;
            question(session.peer()).await
        });
        // This closes the pipes.
        drop(runtime);
        let status = command.end(GRACE);
        let failure = match answer {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure.text(status, start_timeout),
        };
        let said = stderr.recv_timeout(GRACE).unwrap_or_default();
        let said = if said.is_empty() { said } else { format!("; it wrote: {said}") };
        let why = format!("cannot use the server '{name}': {}{said}", answer::cut(&failure));
        Err(Error::new(Exit::Unavailable, why).into())
    }
}

/// Returns the reason for the end of a server's output, with its status if it ended by itself.
fn closed(status: Option<ExitStatus>) -> String {
    let status = status.map_or(String::new(), |status| format!(" ({status})"));
    format!("it ended too early{status}, or wrote more than 64 MiB")
}

/// Returns the reason for an error of the protocol.
fn refused(method: &str, error: &ErrorData) -> String {
    let is_changed = matches!(error.code, ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND);
    let advice = if is_changed { "; if the server was updated, write its tools again" } else { "" };
    format!("it refused {method}: {}{advice}", error.message)
}

/// Lists all tools, in as many requests as it takes.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Result<Tool, String>>, Failure> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    let failed = |error| Failure::Request(LIST, error);
    for _ in 0..MAX_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ListToolsRequest::with_param(page);
        // Not `list_tools`, which fails if one tool is malformed.
        match peer.send_request(request.into()).await.map_err(failed)? {
            ServerResult::ListToolsResult(page) => {
                tools.extend(page.tools.into_iter().map(Ok));
                cursor = page.next_cursor;
            }
            ServerResult::CustomResult(CustomResult(page)) => {
                let some = page["tools"].as_array();
                let some = some.ok_or_else(|| failed(ServiceError::UnexpectedResponse))?;
                tools.extend(some.iter().map(read_tool));
                cursor = page["nextCursor"].as_str().map(str::to_owned);
            }
            _ => return Err(failed(ServiceError::UnexpectedResponse)),
        }
        if tools.len() > MAX_TOOLS {
            break;
        }
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(Failure::Answer(format!(
        "it offers more than {MAX_TOOLS} tools, or in more than {MAX_PAGES} parts"
    )))
}

/// Reads a tool of a list. Returns its name and the reason if it is malformed.
fn read_tool(tool: &Value) -> Result<Tool, String> {
    Tool::deserialize(tool).map_err(|error| match tool["name"].as_str() {
        Some(name) => format!("'{name}': {error}"),
        None => format!("it has no name: {error}"),
    })
}

/// Reads the standard error of a server in a thread, and sends the end of it.
fn last_of(mut stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let (mut last, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = stderr.read(&mut buffer) {
            last.extend_from_slice(&buffer[..count]);
            last.drain(..last.len().saturating_sub(MAX_STDERR));
        }
        let text = String::from_utf8_lossy(&last);
        let _ = sender.send(printable(text.trim()).into_owned());
    });
    receiver
}
