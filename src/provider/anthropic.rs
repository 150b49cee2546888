//! The Anthropic Messages API: requests to bytes, bytes to replies.

use crate::json::{Object, elements, is_deeper, quote};
use crate::provider::{Answer, Failure, Reply, Request};
use crate::record;

/// Where the API is when nobody says.
pub const BASE_URL: &str = "https://api.anthropic.com";
/// The version of the API that is spoken.
pub const VERSION: &str = "2023-06-01";

/// The address of the Messages endpoint under a base URL, with or without a slash or `/v1` at its end.
#[must_use]
pub fn url(base: &str) -> String {
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base);
    format!("{base}/v1/messages")
}

/// The body of a request: always the same bytes for the same request.
#[must_use]
pub fn body(request: &Request<'_, '_>) -> String {
    let mut body =
        format!(r#"{{"model":{},"max_tokens":{}"#, quote(request.model), request.max_tokens);
    if let Some(system) = request.system {
        body.push_str(&format!(r#","system":{}"#, quote(system)));
    }
    if let Some(tools) = request.tools {
        body.push_str(&format!(r#","tools":{tools}"#));
    }
    let messages: Vec<String> = request.messages.iter().map(|message| message.to_json()).collect();
    body.push_str(&format!(r#","messages":[{}]}}"#, messages.join(",")));
    body
}

/// Reads an answer.
///
/// # Errors
/// A [`Failure`]: what the provider refused, or that its answer is none. `now` is the time in Unix
/// seconds.
pub fn read(answer: &Answer, now: f64) -> Result<Reply, Failure> {
    let refused =
        || Failure::classify(answer.status, &|name| answer.header(name), &answer.body, now);
    if !(200..300).contains(&answer.status) {
        return Err(refused());
    }
    let broken = |why: &str| Failure::broken(answer.status, format!("the answer {why}"));
    let text = std::str::from_utf8(&answer.body).map_err(|_| broken("is not UTF-8"))?;
    let object = Object::parse(text.trim()).map_err(|_| broken("is no JSON object"))?;
    if object.get("error").is_some_and(|error| error != "null") {
        return Err(refused());
    }
    let content =
        object.get("content").and_then(elements).ok_or_else(|| broken("has no content"))?;
    let string = |name: &str| object.string(name).map(|text| text.into_owned());
    let reply = Reply {
        blocks: content.into_iter().map(str::to_owned).collect(),
        model: string("model"),
        stop_reason: string("stop_reason"),
        usage: object.get("usage").filter(|usage| usage.starts_with('{')).map(str::to_owned),
        request_id: answer.header("request-id").or_else(|| answer.header("x-request-id")),
    };
    // Such records could not be appended, and the reply would be lost there.
    let is_too_deep = |line: &String| is_deeper(line, record::MOST_DEPTH);
    if reply.to_records("").lines.iter().any(is_too_deep) {
        return Err(broken(&format!("is nested more than {} deep", record::MOST_DEPTH)));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_may_end_in_a_slash_or_the_version() {
        for base in ["http://x", "http://x/", "http://x/v1", "http://x/v1/"] {
            assert_eq!(url(base), "http://x/v1/messages");
        }
    }

    #[test]
    fn a_reply_keeps_its_bytes() {
        let body = br#"{"id":"m","content":[{"type":"text","text":"a","x":1e2}],"model":"m","stop_reason":"end_turn","usage":{"input_tokens":1,"more":{"a":2}}}"#;
        let answer = Answer {
            status: 200,
            headers: vec![("request-id".into(), "r".into())],
            body: body.to_vec(),
        };
        let reply = read(&answer, 0.0).unwrap();
        assert_eq!(reply.blocks, [r#"{"type":"text","text":"a","x":1e2}"#]);
        assert_eq!(reply.usage.as_deref(), Some(r#"{"input_tokens":1,"more":{"a":2}}"#));
        assert_eq!(reply.request_id.as_deref(), Some("r"));
    }

    #[test]
    fn an_answer_that_is_none_is_a_failure() {
        for body in [
            "",
            "<html>",
            "{}",
            r#"{"content":"x"}"#,
            r#"{"error":{"type":"overloaded_error","message":"x"}}"#,
        ] {
            let answer = Answer { status: 200, headers: vec![], body: body.into() };
            assert!(read(&answer, 0.0).is_err(), "{body}");
        }
    }
}
