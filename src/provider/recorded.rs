//! Tests with recorded answers of real servers, and helpers that the tests of the protocols share.

use crate::json::Object;
use crate::provider::protocol::Protocol;
use crate::provider::reading::Reading;
use crate::provider::refusal::{Failure, FailureClass, Rows};
use crate::provider::{Answer, Reply};
use std::fs;

/// Reads an answer with this content type in pieces of `size` bytes. Also returns the text that was shown.
pub(super) fn read(
    protocol: Protocol,
    kind: &str,
    body: &[u8],
    size: usize,
) -> (Result<Reply, Failure>, String) {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    let answer = Answer { status: 200, headers, body: body.to_vec() };
    read_answer(protocol, &answer, size)
}

fn read_answer(
    protocol: Protocol,
    answer: &Answer,
    size: usize,
) -> (Result<Reply, Failure>, String) {
    let mut shown = String::new();
    let mut show = |text: &str| shown.push_str(text);
    let rows = Rows::default();
    let mut reading = Reading::new(protocol, &rows, &mut show);
    reading.head(answer.status, answer.headers.clone());
    for piece in answer.body.chunks(size) {
        reading.take(piece);
    }
    let outcome = reading.finish(0.0, Ok(())).map_err(|failed| failed.failure);
    (outcome, shown)
}

/// Checks that server-sent events that are cut off anywhere are a failure that may be retried, up to the end of the line with
/// the byte `last`, and an answer from the end of its event on. The text that is shown must begin that of the whole stream.
pub(super) fn check_cuts(protocol: Protocol, stream: &[u8], last: usize) {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let line_end = last + stream[last..].iter().position(is_end).unwrap();
    let ends = stream[line_end..].iter().take_while(|byte| is_end(byte)).count();
    let read = |stream: &[u8]| read(protocol, "text/event-stream", stream, 500);
    let whole = read(stream).1;
    for at in 0..=stream.len() {
        let (outcome, shown) = read(&stream[..at]);
        assert!(whole.starts_with(&shown), "{at}: {shown}");
        match outcome {
            Ok(_) => assert!(at > line_end, "{at}"),
            Err(failure) => assert!(at < line_end + ends && failure.retryable, "{at}: {failure}"),
        }
    }
}

/// Returns the protocol and the answer of a recorded exchange.
fn recorded(name: &str) -> (Protocol, Answer) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/http");
    let file = |part: &str| fs::read(format!("{directory}/{name}/{part}")).unwrap();
    let text = |part: &str| String::from_utf8(file(part)).unwrap();
    let (request, response) = (text("request.json"), text("response.json"));
    let protocol = match Object::parse(&request).unwrap().string("path").unwrap().as_ref() {
        "/v1/messages" => Protocol::Anthropic,
        "/v1/chat/completions" => Protocol::Chat,
        "/v1/responses" => Protocol::Responses,
        other => panic!("{other}"),
    };
    let response = Object::parse(&response).unwrap();
    let headers = Object::parse(response.get("headers").unwrap()).unwrap();
    let header = |name: &str| (name.to_owned(), headers.string(name).unwrap().into_owned());
    let status = response.number("status").unwrap() as u16;
    (protocol, Answer { status, headers: vec![header("content-type")], body: file("body") })
}

/// Reads a recorded answer, and checks that the outcome is the same for pieces of any size.
fn outcome(name: &str) -> Result<Reply, Failure> {
    let (protocol, answer) = recorded(name);
    let (whole, shown) = read_answer(protocol, &answer, answer.body.len());
    for size in [1, 2, 3, 5, 64, 1000] {
        let (outcome, also_shown) = read_answer(protocol, &answer, size);
        assert_eq!(also_shown, shown, "{name} {size}");
        match (&outcome, &whole) {
            (Ok(reply), Ok(whole)) => assert_eq!(reply, whole, "{name} {size}"),
            (Err(failure), Err(whole)) => assert_eq!(failure.class, whole.class, "{name} {size}"),
            _ => panic!("{name} {size}: {outcome:?}"),
        }
    }
    if let Ok(reply) = &whole {
        assert_eq!(shown, reply.texts().collect::<String>(), "{name}");
    }
    whole
}

#[test]
fn every_recorded_answer_is_read() {
    let cut = "1. Red: This is the most obvious colour, but it's also the most complex";
    for (name, begin, reason, output) in [
        ("llama-bad-json-shape", "A recent study in the US", "end_turn", 145),
        ("llama-chat", cut, "max_tokens", 32),
        ("llama-chat-stream", cut, "max_tokens", 32),
        ("llama-messages", cut, "max_tokens", 64),
        ("llama-messages-assistant-last", "Hello there! How can I help?", "end_turn", 8),
        ("llama-messages-max-tokens", "I'm here to help", "max_tokens", 5),
        ("llama-messages-stream", "はくは", "max_tokens", 48),
        ("llama-messages-tool-result", "The answer is 42.", "end_turn", 8),
        ("llama-responses", "p\u{7}o\t\u{1}j", "end_turn", 9),
        ("llama-responses-stream", "", "end_turn", 40),
        ("llama-responses-tools", "&\u{8}v x", "end_turn", 6),
        ("llama-summary", "The Rust tool is ready", "end_turn", 14),
    ] {
        let reply = outcome(name).unwrap();
        assert_eq!((reply.blocks.len(), reply.stop_reason.as_deref()), (1, Some(reason)), "{name}");
        assert!(reply.texts().next().unwrap().starts_with(begin), "{name}");
        // In this recording, the Messages stream of llama-server does not name the model.
        let model = reply.model.as_deref();
        assert_eq!(model.is_some(), name != "llama-messages-stream", "{name}");
        let usage = reply.usage.unwrap();
        let usage = Object::parse(&usage).unwrap();
        let count = usage.number("output_tokens").or_else(|| usage.number("completion_tokens"));
        assert_eq!(count, Some(output), "{name}");
    }
}

#[test]
fn a_recorded_stream_gives_the_same_reply_as_the_complete_answer() {
    let (whole, stream) = (outcome("llama-chat").unwrap(), outcome("llama-chat-stream").unwrap());
    assert_eq!(whole.blocks, stream.blocks);
    assert_eq!((whole.stop_reason, whole.model), (stream.stop_reason, stream.model));
}

#[test]
fn a_recorded_overflow_has_its_numbers() {
    for (name, limit, actual) in [
        ("llama-chat-overflow", 2048, 5031),
        ("llama-messages-overflow", 2048, 5031),
        ("llama-messages-overflow-stream", 2048, 5031),
        ("llama-responses-overflow", 16_384, 25_019),
    ] {
        let failure = outcome(name).unwrap_err();
        assert_eq!(failure.class, FailureClass::Overflow, "{name}");
        assert_eq!((failure.limit, failure.actual), (Some(limit), Some(actual)), "{name}");
    }
}
