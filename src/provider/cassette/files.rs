//! Reads and writes the three files of an exchange.

use super::{Exchange, key};
use crate::exit::{Error, Exit};
use crate::json::write::Members;
use crate::json::{self, Object, quote};
use std::fs;
use std::io;
use std::path::Path;

/// The request headers that are recorded. Headers that carry keys are not among them.
pub const REQUEST_HEADERS: [&str; 3] = ["content-type", "anthropic-version", "anthropic-beta"];
/// The answer's headers that are recorded: those that affect how it is read, and request ids, which are replaced
/// by [`REQUEST_ID`] and the request's key.
pub const RESPONSE_HEADERS: [&str; 6] = [
    "content-type",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "request-id",
    "x-request-id",
];
/// The prefix of the request id in every recording. A real id could be traced to an account, and a single id for
/// all would make different replies look like the same one.
pub const REQUEST_ID: &str = "req_recorded";

/// The name of the file with the request.
pub(super) const REQUEST: &str = "request.json";
/// The name of the file with the answer's status, headers and pieces.
pub(super) const RESPONSE: &str = "response.json";
/// The name of the file with the answer's bytes.
pub(super) const BODY: &str = "body";

impl Exchange {
    /// Returns the exchange as it is recorded: with the permitted headers only, their names in lower case, and
    /// with request ids replaced.
    pub(super) fn kept(&self) -> Exchange {
        let headers = kept(&self.headers, &RESPONSE_HEADERS);
        let id = || format!("{REQUEST_ID}_{}", key(&self.path, &self.body));
        let fixed = headers.into_iter().map(|(name, value)| {
            let value = if name.ends_with("request-id") { id() } else { value };
            (name, value)
        });
        Exchange {
            request_headers: kept(&self.request_headers, &REQUEST_HEADERS),
            headers: fixed.collect(),
            ..self.clone()
        }
    }
}

fn kept(headers: &[(String, String)], allowed: &[&str]) -> Vec<(String, String)> {
    let lower = headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    lower.filter(|(name, _)| allowed.contains(&name.as_str())).collect()
}

/// Returns the `request.json` of an exchange, with all its headers.
pub(super) fn request_json(exchange: &Exchange) -> String {
    let body = exchange.body.as_str();
    // A JSON string in the file always means quoted text, so a body that is a JSON string is quoted again.
    let is_raw = json::is_value(body) && !body.trim_start().starts_with('"');
    let body = if is_raw { body.to_owned() } else { quote(body) };
    Members::new()
        .string("method", "POST")
        .string("path", &exchange.path)
        .object("headers", |it| add_headers(it, &exchange.request_headers))
        .raw("body", &body)
        .into_line()
}

/// Returns the `response.json` of an exchange, with all its headers.
pub(super) fn response_json(exchange: &Exchange) -> String {
    Members::new()
        .or_null(Members::number, "status", exchange.status)
        .object("headers", |it| add_headers(it, &exchange.headers))
        .list("pieces", exchange.pieces.iter().map(ToString::to_string))
        .optional(Members::string, "ended", exchange.ended.as_deref())
        .into_line()
}

fn add_headers(members: Members, headers: &[(String, String)]) -> Members {
    headers.iter().fold(members, |it, (name, value)| it.named(name, &quote(value)))
}

/// Reads the exchange in a directory.
///
/// # Errors
/// Status 65 if a file is missing or invalid; otherwise the status of the read error. The message names the file.
pub(super) fn read(directory: &Path) -> anyhow::Result<Exchange> {
    let mut exchange = read_unanswered(directory)?;
    exchange.answer = read_bytes(&directory.join(BODY))?;
    let file = directory.join(RESPONSE);
    read_response(&read_text(&file)?, &mut exchange).map_err(|why| broken(&file, &why))?;
    Ok(exchange)
}

/// Reads an exchange that has only a request.
///
/// # Errors
/// As [`read`].
pub(super) fn read_unanswered(directory: &Path) -> anyhow::Result<Exchange> {
    let mut exchange = Exchange::default();
    let file = directory.join(REQUEST);
    read_request(&read_text(&file)?, &mut exchange).map_err(|why| broken(&file, &why))?;
    Ok(exchange)
}

fn broken(file: &Path, why: &str) -> anyhow::Error {
    let text = format!("cannot use the recording '{}': {why}", file.display());
    Error::new(Exit::Data, text).into()
}

fn read_bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => broken(file, "no such file; record it again"),
        _ => anyhow::Error::from(error)
            .context(format!("cannot read the recording '{}'", file.display())),
    })
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    String::from_utf8(read_bytes(file)?).map_err(|_| broken(file, "not UTF-8"))
}

fn read_request(text: &str, exchange: &mut Exchange) -> Result<(), String> {
    let object = Object::parse(text.trim()).map_err(|error| error.to_string())?;
    if object.get("method").is_some() && object.string("method").as_deref() != Some("POST") {
        return Err("'method' must be 'POST'".to_owned());
    }
    let path = object.string("path").ok_or("'path' must be a string")?;
    exchange.path = path.into_owned();
    exchange.request_headers = read_headers(&object)?;
    let body = object.get("body").ok_or("'body' is missing")?;
    exchange.body = json::string(body).map_or_else(|| body.to_owned(), |text| text.into_owned());
    Ok(())
}

/// Reads the status, headers and pieces of an exchange whose body has been read.
fn read_response(text: &str, exchange: &mut Exchange) -> Result<(), String> {
    let object = Object::parse(text.trim()).map_err(|error| error.to_string())?;
    exchange.status = match object.get("status").ok_or("'status' is missing")? {
        "null" => None,
        raw => {
            let status = raw.parse().ok().filter(|status| (100..1000).contains(status));
            Some(status.ok_or("'status' must be a number from 100 to 999 or null")?)
        }
    };
    exchange.ended = match object.get("ended") {
        None | Some("null") => None,
        Some(raw) => Some(json::string(raw).ok_or("'ended' must be a string")?.into_owned()),
    };
    if exchange.status.is_none() && exchange.ended.is_none() {
        return Err("'ended' is missing: it is required if 'status' is null".to_owned());
    }
    exchange.headers = read_headers(&object)?;
    let length = exchange.answer.len();
    exchange.pieces = match object.get("pieces") {
        None if length == 0 => Vec::new(),
        None => vec![length],
        Some(raw) => read_pieces(raw).ok_or("'pieces' must be a list of lengths in bytes")?,
    };
    check_pieces(&exchange.pieces, length)
}

fn read_headers(object: &Object<'_>) -> Result<Vec<(String, String)>, String> {
    let Some(raw) = object.get("headers") else { return Ok(Vec::new()) };
    let headers = Object::parse(raw).map_err(|_| "'headers' must be an object")?;
    let header = |member: json::Member<'_>| {
        let value = json::string(member.value)?.into_owned();
        Some((member.name().to_ascii_lowercase(), value))
    };
    let headers: Option<Vec<_>> = headers.members().map(header).collect();
    Ok(headers.ok_or("each header must be a string")?)
}

fn read_pieces(raw: &str) -> Option<Vec<usize>> {
    json::elements(raw)?.into_iter().map(|length| length.parse().ok()).collect()
}

/// Checks that the lengths of the pieces add up to `length` bytes.
///
/// # Errors
/// Returns a message with both numbers if they do not.
pub(super) fn check_pieces(pieces: &[usize], length: usize) -> Result<(), String> {
    let sum = pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(*piece));
    if sum == Some(length) {
        return Ok(());
    }
    let sum = sum.map_or_else(|| "too many".to_owned(), |sum| sum.to_string());
    Err(format!("'pieces' add up to {sum} bytes, but 'body' has {length}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn only_listed_headers_are_written() {
        let exchange = Exchange {
            request_headers: vec![header("Content-Type", "a"), header("x-api-key", "b")],
            headers: vec![
                header("set-cookie", "c"),
                header("Request-Id", "req_1"),
                header("x-request-id", "req_2"),
                header("retry-after", "7"),
            ],
            status: Some(429),
            ..Exchange::default()
        };
        let kept = exchange.kept();
        let id = format!("{REQUEST_ID}_{}", key("", ""));
        assert_eq!(
            request_json(&kept),
            "{\"method\":\"POST\",\"path\":\"\",\"headers\":{\"content-type\":\"a\"},\"body\":\"\"}\n"
        );
        assert_eq!(
            response_json(&kept),
            format!(
                "{{\"status\":429,\"headers\":{{\"request-id\":\"{id}\",\"x-request-id\":\"{id}\",\"retry-after\":\"7\"}},\"pieces\":[]}}\n"
            )
        );
    }

    #[test]
    fn a_body_keeps_its_bytes() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for body in [
            "{\"a\":1e2,\n \"a\" : \"\\ud800\"}",
            "no json \"\n",
            "",
            "null",
            "\"a string\"",
            " \"\" ",
            &deep,
        ] {
            let sent = Exchange { body: body.to_owned(), ..Exchange::default() };
            let mut read = Exchange::default();
            read_request(&request_json(&sent), &mut read).unwrap();
            assert_eq!(read.body, body);
        }
    }

    /// Returns the error for a `response.json` next to a body of three bytes.
    fn wrong(text: &str) -> String {
        let mut exchange = Exchange { answer: b"abc".to_vec(), ..Exchange::default() };
        read_response(text, &mut exchange).unwrap_err()
    }

    #[test]
    fn an_invalid_response_file_is_rejected_with_a_reason() {
        assert_eq!(wrong("{}"), "'status' is missing");
        for status in ["99", "1000", "70000", "\"200\"", "2e2", "-200"] {
            let text = format!("{{\"status\":{status}}}");
            let expected = "'status' must be a number from 100 to 999 or null";
            assert_eq!(wrong(&text), expected, "{status}");
        }
        assert!(wrong("{\"status\":null}").starts_with("'ended' is missing"));
        assert_eq!(wrong(r#"{"status":200,"ended":1}"#), "'ended' must be a string");
        assert_eq!(wrong(r#"{"status":200,"headers":[]}"#), "'headers' must be an object");
        assert_eq!(wrong(r#"{"status":200,"headers":{"a":1}}"#), "each header must be a string");
        let lengths = "'pieces' must be a list of lengths in bytes";
        assert_eq!(wrong(r#"{"status":200,"pieces":[-3]}"#), lengths);
        let short = "'pieces' add up to 2 bytes, but 'body' has 3";
        assert_eq!(wrong(r#"{"status":200,"pieces":[1,1]}"#), short);
        let most = format!(r#"{{"status":200,"pieces":[{},4]}}"#, usize::MAX);
        assert!(wrong(&most).starts_with("'pieces' add up to too many bytes"));
        assert!(wrong("{").contains("EOF"));
    }

    #[test]
    fn an_invalid_request_file_is_rejected_with_a_reason() {
        let wrong = |text: &str| read_request(text, &mut Exchange::default()).unwrap_err();
        assert!(wrong(r#"{"method":"GET","path":"/","body":{}}"#).starts_with("'method'"));
        assert_eq!(wrong(r#"{"path":1,"body":{}}"#), "'path' must be a string");
        assert_eq!(wrong(r#"{"path":"/"}"#), "'body' is missing");
    }
}
