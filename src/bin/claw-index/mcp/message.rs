//! Messages of JSON-RPC 2.0, one on each line, as the Model Context Protocol has them on standard input and output.

use clawutils::json::write::Members;
use clawutils::json::{self, Object};
use clawutils::printable::printable_json;
use std::io::{self, BufRead, Read};

/// The longest message that is read, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;
/// The code of an error: the message is not JSON.
pub const NOT_JSON: i32 = -32700;
/// The code of an error: the message is not a request.
pub const INVALID: i32 = -32600;
/// The code of an error: there is no such method.
pub const NO_METHOD: i32 = -32601;
/// The code of an error: the parameters are wrong.
pub const BAD_PARAMETERS: i32 = -32602;
/// The code of an error: the server failed.
pub const FAILED: i32 = -32603;

/// A message from the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A request. The id and the parameters are JSON.
    Request {
        /// The id.
        id: String,
        /// The method.
        method: String,
        /// The parameters; an empty object if there are none.
        params: String,
    },
    /// A notification, or an answer, which this server does not expect.
    Notification {
        /// The method; empty for an answer.
        method: String,
        /// The parameters; an empty object if there are none.
        params: String,
    },
    /// Something else: the error that answers it.
    Invalid(String),
    /// The end of the input.
    End,
}

/// Reads the next message. Blank lines are skipped.
///
/// # Errors
/// If the input cannot be read.
pub fn read(input: &mut impl BufRead) -> io::Result<Incoming> {
    loop {
        let mut line = Vec::new();
        input.by_ref().take(MAX_MESSAGE as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(Incoming::End);
        }
        if line.len() > MAX_MESSAGE && !line.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            let why = format!("the message is longer than {MAX_MESSAGE} bytes");
            return Ok(Incoming::Invalid(error("null", INVALID, &why)));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(parse(&String::from_utf8_lossy(&line)));
        }
    }
}

/// Parses a message.
fn parse(line: &str) -> Incoming {
    let line = line.trim();
    let message = match Object::parse(line) {
        Ok(message) if !message.is_deeper(100) => message,
        _ if json::is_value(line) => {
            return Incoming::Invalid(error("null", INVALID, "not a single request"));
        }
        _ => return Incoming::Invalid(error("null", NOT_JSON, "not JSON")),
    };
    let is_id = |raw: &&str| raw.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
    let (id, method) = (message.get("id").filter(is_id), message.string("method"));
    let params = message.get("params").unwrap_or("{}");
    let answers = ["result", "error"].into_iter().any(|name| message.get(name).is_some());
    match (id, method) {
        (Some(id), Some(method)) if params.starts_with('{') => Incoming::Request {
            id: id.to_owned(),
            method: method.into_owned(),
            params: params.to_owned(),
        },
        (None, Some(method)) if message.get("id").is_none() => {
            Incoming::Notification { method: method.into_owned(), params: params.to_owned() }
        }
        (_, None) if answers => {
            Incoming::Notification { method: String::new(), params: String::new() }
        }
        (id, _) => {
            Incoming::Invalid(error(id.unwrap_or("null"), INVALID, "not a request of JSON-RPC 2.0"))
        }
    }
}

/// Returns the answer to a request.
pub fn result(id: &str, result: Members) -> String {
    line(answer(id).raw("result", &result.into_json()))
}

/// Returns the answer to a request that failed.
pub fn error(id: &str, code: i32, why: &str) -> String {
    let error = |error: Members| error.number("code", code).string("message", why);
    line(answer(id).object("error", error))
}

fn answer(id: &str) -> Members {
    Members::new().string("jsonrpc", "2.0").raw("id", id)
}

/// Returns a message as a line. Control characters are escaped, because the client may show it.
fn line(message: Members) -> String {
    let mut line = printable_json(&message.into_json()).into_owned();
    line.push('\n');
    line
}
