//! Parses a complete answer: returns the reply, or the reason why there is none.

use super::{MAX_MEMBERS, MAX_REFUSAL};
use crate::input::line::MAX_DEPTH;
use crate::json::{Object, elements, is_deeper, is_wider};
use crate::provider::Reply;
use crate::provider::extent::completed;
use crate::provider::protocol::Protocol;

/// The reason why no reply could be read from an answer.
pub(super) enum NoReply {
    /// The provider sent an error; holds its JSON.
    Refused(String),
    Broken(String),
    /// A limit was exceeded. A retry would exceed it again, so the failure is not retryable.
    TooLong(String),
}

/// Returns the message for an exceeded size limit. `most` is the limit in bytes; the message states it in MiB.
pub(super) fn over(what: &str, most: usize) -> String {
    format!("is too long: {what} has more than {} MiB", most >> 20)
}

/// Checks a JSON text before it is parsed. Returns a message if a list or an object has more than [`MAX_MEMBERS`]
/// members, or if the nesting alone reaches that number. The message names the nesting as the cause if it exceeds
/// [`MAX_DEPTH`], otherwise the number of members.
pub(super) fn too_wide(json: &str) -> Option<String> {
    let why = || match is_deeper(json, MAX_DEPTH) {
        true => format!("is nested more than {MAX_DEPTH} levels deep"),
        false => {
            format!("is too long: a list or an object in it has more than {MAX_MEMBERS} members")
        }
    };
    is_wider(json, MAX_MEMBERS).then(why)
}

/// Reads a complete answer, up to `end` if that is known.
pub(super) fn read(
    protocol: Protocol,
    body: Vec<u8>,
    end: Option<usize>,
    show: &mut dyn FnMut(&str),
) -> Result<Reply, NoReply> {
    let reply = read_body(protocol, &body[..end.unwrap_or(body.len())])?;
    // The body may be long; free it before the text is copied.
    drop(body);
    reply.texts().for_each(|text| show(&text));
    Ok(reply)
}

fn read_body(protocol: Protocol, body: &[u8]) -> Result<Reply, NoReply> {
    let broken = |why: &str| NoReply::Broken(why.to_owned());
    let text = std::str::from_utf8(body).map_err(|_| broken("is not UTF-8"))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    if let Some(why) = too_wide(text) {
        return Err(NoReply::TooLong(why));
    }
    let Ok(object) = Object::parse(text) else {
        let begun = if text.len() > MAX_REFUSAL { "" } else { text };
        let (whole, _) = completed(begun);
        return match Object::parse(&whole) {
            Ok(object) if is_error(&object) => Err(NoReply::Refused(whole)),
            _ => Err(broken("is not a JSON object")),
        };
    };
    if is_error(&object) {
        return Err(NoReply::Refused(error_of(&object)));
    }
    protocol.api().read(&object).map_err(NoReply::Broken)
}

/// Returns true if an object in a 2xx answer is an error. An empty `error` member is ignored, because some servers
/// send it with every answer.
pub(super) fn is_error(object: &Object<'_>) -> bool {
    object.get("error").is_some_and(|error| !is_empty(error))
        || object.string("type").as_deref() == Some("error")
        || object.string("object").as_deref() == Some("error")
        || choice_error(object).is_some()
        || failed_response(object).is_some()
}

/// Returns the object that describes the error.
pub(super) fn error_of(object: &Object<'_>) -> String {
    let inner = choice_error(object).or_else(|| failed_response(object));
    inner.unwrap_or(object.text()).to_owned()
}

/// Returns the response of the event that says that it failed, in a stream of the Responses API.
fn failed_response<'a>(object: &Object<'a>) -> Option<&'a str> {
    object.get("response").filter(|_| object.string("type").as_deref() == Some("response.failed"))
}

/// Returns the first choice of a chat completion, if it holds an error.
fn choice_error<'a>(object: &Object<'a>) -> Option<&'a str> {
    let choice = *elements(object.get("choices")?)?.first()?;
    Object::parse(choice).ok()?.get("error").filter(|error| !is_empty(error))?;
    Some(choice)
}

/// Returns true for null, false, 0, an empty string, list or object, and an object of only such values.
fn is_empty(value: &str) -> bool {
    let is_blank = |value: &str| matches!(value, "null" | "false" | "0" | "\"\"" | "[]" | "{}");
    is_blank(value)
        || Object::parse(value)
            .is_ok_and(|object| object.members().all(|member| is_blank(member.value)))
}
