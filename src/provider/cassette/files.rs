//! How an exchange is spelled in its three files, and how it is read from them.

use super::{Exchange, key};
use crate::exit::{Error, Exit};
use crate::json::write::Members;
use crate::json::{self, Object, quote};
use std::fs;
use std::io;
use std::path::Path;

/// The request's headers that are written. Those with keys are not among them.
pub const REQUEST_HEADERS: [&str; 3] = ["content-type", "anthropic-version", "anthropic-beta"];
/// The answer's headers that are written: those that decide how it is read. What names an exchange is
/// written as [`REQUEST_ID`] and the request's key.
pub const RESPONSE_HEADERS: [&str; 6] = [
    "content-type",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "request-id",
    "x-request-id",
];
/// How the provider's name for an exchange begins in every recording. A real one would lead back to an
/// account; one for all would have replies taken for the same.
pub const REQUEST_ID: &str = "req_recorded";

/// The file of the request.
pub(super) const REQUEST: &str = "request.json";
/// The file of status and headers.
pub(super) const RESPONSE: &str = "response.json";
/// The file of the answer's bytes.
pub(super) const BODY: &str = "body";

impl Exchange {
    /// What is written of it: the headers that may be, with names in lower case.
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

/// `request.json` of an exchange, with all its headers.
pub(super) fn request_json(exchange: &Exchange) -> String {
    let body = exchange.body.as_str();
    // A JSON string in a file is always the text of a body: so there is no doubt when it is read.
    let is_raw = json::is_value(body) && !body.trim_start().starts_with('"');
    let body = if is_raw { body.to_owned() } else { quote(body) };
    Members::new()
        .string("method", "POST")
        .string("path", &exchange.path)
        .object("headers", |it| add_headers(it, &exchange.request_headers))
        .raw("body", &body)
        .into_line()
}

/// `response.json` of an exchange, with all its headers.
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

/// Reads the exchange in a folder.
///
/// # Errors
/// 65 for a file that is missing or is not what it has to be; a read error's own status. All name the
/// file.
pub(super) fn read(folder: &Path) -> anyhow::Result<Exchange> {
    let mut exchange = Exchange::default();
    let file = folder.join(REQUEST);
    read_request(&read_text(&file)?, &mut exchange).map_err(|why| broken(&file, &why))?;
    exchange.answer = read_bytes(&folder.join(BODY))?;
    let file = folder.join(RESPONSE);
    read_response(&read_text(&file)?, &mut exchange).map_err(|why| broken(&file, &why))?;
    Ok(exchange)
}

fn broken(file: &Path, why: &str) -> anyhow::Error {
    let text = format!("cannot use the recording '{}': {why}", file.display());
    Error::new(Exit::Data, text).into()
}

fn read_bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(file).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => broken(file, "there is no such file; record it again"),
        _ => anyhow::Error::from(error)
            .context(format!("cannot read the recording '{}'", file.display())),
    })
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    String::from_utf8(read_bytes(file)?).map_err(|_| broken(file, "it is not UTF-8"))
}

fn read_request(text: &str, exchange: &mut Exchange) -> Result<(), String> {
    let object = Object::parse(text.trim()).map_err(|error| error.to_string())?;
    if object.get("method").is_some() && object.string("method").as_deref() != Some("POST") {
        return Err("the method is not 'POST', and nothing else is ever sent".to_owned());
    }
    let path = object.string("path").ok_or("there is no 'path', a string")?;
    exchange.path = path.into_owned();
    exchange.request_headers = read_headers(&object)?;
    let body = object.get("body").ok_or("there is no 'body'")?;
    exchange.body = json::string(body).map_or_else(|| body.to_owned(), |text| text.into_owned());
    Ok(())
}

/// Reads status, headers and pieces of an exchange whose answer is there already.
fn read_response(text: &str, exchange: &mut Exchange) -> Result<(), String> {
    let object = Object::parse(text.trim()).map_err(|error| error.to_string())?;
    exchange.status = match object.get("status").ok_or("there is no 'status'")? {
        "null" => None,
        raw => {
            let status = raw.parse().ok().filter(|status| (100..1000).contains(status));
            Some(status.ok_or("'status' is no number from 100 to 999")?)
        }
    };
    exchange.ended = match object.get("ended") {
        None | Some("null") => None,
        Some(raw) => Some(json::string(raw).ok_or("'ended' is no string")?.into_owned()),
    };
    if exchange.status.is_none() && exchange.ended.is_none() {
        return Err("there is no answer ('status' is null), and no 'ended' says why".to_owned());
    }
    exchange.headers = read_headers(&object)?;
    let length = exchange.answer.len();
    exchange.pieces = match object.get("pieces") {
        None if length == 0 => Vec::new(),
        None => vec![length],
        Some(raw) => read_pieces(raw).ok_or("'pieces' are no lengths in bytes")?,
    };
    are_pieces(&exchange.pieces, length)
}

fn read_headers(object: &Object<'_>) -> Result<Vec<(String, String)>, String> {
    let Some(raw) = object.get("headers") else { return Ok(Vec::new()) };
    let headers = Object::parse(raw).map_err(|_| "'headers' are no object")?;
    let header = |member: json::Member<'_>| {
        let value = json::string(member.value)?.into_owned();
        Some((member.name().to_ascii_lowercase(), value))
    };
    let headers: Option<Vec<_>> = headers.members().map(header).collect();
    Ok(headers.ok_or("a header is no string")?)
}

fn read_pieces(raw: &str) -> Option<Vec<usize>> {
    json::elements(raw)?.into_iter().map(|length| length.parse().ok()).collect()
}

/// Whether pieces of these lengths make an answer of `length` bytes.
///
/// # Errors
/// What is wrong with them.
pub(super) fn are_pieces(pieces: &[usize], length: usize) -> Result<(), String> {
    let sum = pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(*piece));
    if sum == Some(length) {
        return Ok(());
    }
    let sum = sum.map_or_else(|| "too many".to_owned(), |sum| sum.to_string());
    Err(format!("'pieces' are {sum} bytes together, and 'body' has {length}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn headers_that_are_not_listed_are_not_written() {
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

    /// What is wrong with a `response.json` beside a body of three bytes.
    fn wrong(text: &str) -> String {
        let mut exchange = Exchange { answer: b"abc".to_vec(), ..Exchange::default() };
        read_response(text, &mut exchange).unwrap_err()
    }

    #[test]
    fn a_broken_response_says_what_is_wrong() {
        assert_eq!(wrong("{}"), "there is no 'status'");
        for status in ["99", "1000", "70000", "\"200\"", "2e2", "-200"] {
            let text = format!("{{\"status\":{status}}}");
            assert_eq!(wrong(&text), "'status' is no number from 100 to 999", "{status}");
        }
        assert!(wrong("{\"status\":null}").contains("no 'ended' says why"));
        assert_eq!(wrong(r#"{"status":200,"ended":1}"#), "'ended' is no string");
        assert_eq!(wrong(r#"{"status":200,"headers":[]}"#), "'headers' are no object");
        assert_eq!(wrong(r#"{"status":200,"headers":{"a":1}}"#), "a header is no string");
        assert_eq!(wrong(r#"{"status":200,"pieces":[-3]}"#), "'pieces' are no lengths in bytes");
        let short = "'pieces' are 2 bytes together, and 'body' has 3";
        assert_eq!(wrong(r#"{"status":200,"pieces":[1,1]}"#), short);
        let most = format!(r#"{{"status":200,"pieces":[{},4]}}"#, usize::MAX);
        assert!(wrong(&most).starts_with("'pieces' are too many"));
        assert!(wrong("{").contains("EOF"));
    }

    #[test]
    fn a_broken_request_says_what_is_wrong() {
        let wrong = |text: &str| read_request(text, &mut Exchange::default()).unwrap_err();
        assert!(wrong(r#"{"method":"GET","path":"/","body":{}}"#).starts_with("the method"));
        assert_eq!(wrong(r#"{"path":1,"body":{}}"#), "there is no 'path', a string");
        assert_eq!(wrong(r#"{"path":"/"}"#), "there is no 'body'");
    }
}
