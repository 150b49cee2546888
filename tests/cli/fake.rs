//! The fake provider: its answers in every API, whole and as a stream, and its errors.
//!
//! The rules of the Messages API are tested in `provider.rs`.

pub mod client;
mod refusals;
mod replies;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::provider::{
    API_KEY, COMPLETION_TOKENS, COMPLETIONS, FakeProvider, MODEL, OLLAMA_CHAT, SUMMARY, Step,
};
use crate::common::shapes::{self, Shape};

use client::{Response, change, conversation, headers, hello, path, post, request, send, streamed};
use replies::read;

// ---- answers -------------------------------------------------------------------------------

#[test]
fn a_reply_is_the_same_whole_and_as_a_stream() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let mut body = hello(shape);
        if shape == Shape::OpenAi {
            body["stream_options"] = json!({"include_usage": true});
        }
        let stream = post(&provider, shape, &streamed(body));
        let whole = post(&provider, shape, &hello(shape));
        let reply = read(shape, &whole);
        assert_eq!(reply.text, "Reply to 1 message: hello");
        assert_eq!(reply.stop, if shape == Shape::Anthropic { "end_turn" } else { "stop" });
        assert_eq!(reply.usage.0, shapes::count_tokens(shape, &hello(shape)));
        assert_eq!(read(shape, &stream), reply);
        assert!(whole.has("content-type: application/json"), "{}", whole.head);
        let kind =
            if shape == Shape::Ollama { "application/x-ndjson" } else { "text/event-stream" };
        assert!(stream.has(&format!("content-type: {kind}")), "{}", stream.head);
        assert!(stream.body().contains(r#""model":"test-model""#));
        provider.all_legal();
    }
}

#[test]
fn calls_are_the_same_whole_and_as_a_stream() {
    let calls = vec![
        ("call_1".to_owned(), "read".to_owned(), json!({"path": "é/ö.txt", "n": [1, 2]})),
        ("call_2".to_owned(), "list".to_owned(), json!({})),
    ];
    for (shape, stop) in Shape::ALL.into_iter().zip(["tool_use", "tool_calls", "stop"]) {
        for body in [hello(shape), streamed(hello(shape))] {
            let provider = FakeProvider::new();
            provider.script(Step::Calls(calls.clone()));
            let reply = read(shape, &post(&provider, shape, &body));
            assert_eq!((&reply.calls, reply.stop.as_str()), (&calls, stop));
            assert_eq!(reply.text, "Reply to 1 message: hello");
        }
    }
    // Older Ollama servers send calls without ids.
    let provider = FakeProvider::new();
    provider.script(Step::call("", "read", json!({"path": "x"})));
    let reply = post(&provider, Shape::Ollama, &hello(Shape::Ollama)).json();
    let function = json!({"index": 0, "name": "read", "arguments": {"path": "x"}});
    assert_eq!(reply["message"]["tool_calls"], json!([{"function": function}]));
}

#[test]
fn usage_ends_a_stream_of_chat_completions_only_if_requested() {
    let provider = FakeProvider::new();
    let stream = post(&provider, Shape::OpenAi, &streamed(hello(Shape::OpenAi)));
    assert_eq!(read(Shape::OpenAi, &stream).usage, (0, 0));
    assert!(!stream.body().contains("usage"));
}

#[test]
fn a_request_for_a_summary_is_recognised_in_every_shape() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let mut messages = vec![json!({"role": "user", "content": "Summarise this."})];
        if shape != Shape::Anthropic {
            messages.insert(0, json!({"role": "system", "content": "You are brief."}));
        }
        let mut body = request(shape, json!(messages));
        if shape == Shape::Anthropic {
            body["system"] = json!("You are brief.");
        }
        assert_eq!(read(shape, &post(&provider, shape, &body)).text, SUMMARY);
        assert_eq!(provider.single_request().system(), "You are brief.");
    }
}

#[test]
fn a_request_is_recorded_with_its_shape() {
    let provider = FakeProvider::new();
    post(&provider, Shape::OpenAi, &streamed(conversation(Shape::OpenAi)));
    post(&provider, Shape::Ollama, &conversation(Shape::Ollama));
    let [openai, ollama] = &provider.requests()[..] else { panic!("expected two requests") };
    assert_eq!((openai.shape, openai.path.as_str()), (Shape::OpenAi, COMPLETIONS));
    assert_eq!((ollama.shape, ollama.path.as_str()), (Shape::Ollama, OLLAMA_CHAT));
    assert_eq!((openai.streams(), ollama.streams()), (true, false));
    for request in [openai, ollama] {
        assert_eq!((request.messages().len(), request.last_user_text()), (6, "and now?"));
        assert_eq!(request.system(), "be brief, and no tool_use");
    }
}

#[test]
fn tokens_of_a_chat_completion_can_be_counted() {
    let provider = FakeProvider::new();
    provider.script(Step::text("for a message"));
    let mut body = hello(Shape::OpenAi);
    change(&mut body, "/max_tokens", None);
    let count = send(&provider, COMPLETION_TOKENS, &headers(Shape::OpenAi), &body);
    assert_eq!(count.expect("an answer").json(), json!({"input_tokens": 10}));
    assert_eq!(provider.pending(), 1);
    provider.all_legal();
}

#[test]
fn env_for_sets_the_variables_of_the_shape() {
    let provider = FakeProvider::new();
    let url = provider.url();
    let cases = [
        (Shape::Anthropic, "anthropic", "ANTHROPIC_BASE_URL", url.clone(), "ANTHROPIC_API_KEY"),
        (Shape::OpenAi, "openai", "OPENAI_BASE_URL", format!("{url}/v1"), "OPENAI_API_KEY"),
        (Shape::Ollama, "ollama", "OLLAMA_HOST", url, ""),
    ];
    for (shape, name, base, url, key) in cases {
        let env = provider.env_for(shape);
        let has = |name: &str, value: &str| env.contains(&(name.to_owned(), value.to_owned()));
        assert!(has("CLAW_PROVIDER", name) && has("CLAW_MODEL", MODEL) && has(base, &url));
        assert_eq!(has(key, API_KEY), shape != Shape::Ollama);
    }
    assert_eq!(provider.env(), provider.env_for(Shape::Anthropic));
}

// ---- errors --------------------------------------------------------------------------------

#[test]
fn each_api_has_its_own_format_for_errors() {
    let bodies = [
        json!({
            "type": "error",
            "error": {"type": "overloaded_error", "message": "busy"},
            "request_id": "req_1",
        }),
        json!({"error": {"message": "busy", "type": "overloaded_error", "param": null, "code": null}}),
        json!({"error": "busy"}),
    ];
    for (shape, body) in Shape::ALL.into_iter().zip(bodies) {
        let provider = FakeProvider::new();
        provider.script(Step::error(529, "overloaded_error", "busy"));
        let response = post(&provider, shape, &streamed(hello(shape)));
        assert_eq!((response.status, response.json()), (529, body));
        provider.all_legal();
    }
}

#[test]
fn each_api_has_its_own_message_for_an_overflow() {
    let llama = |prompt: u64, window: u64| {
        let message = format!(
            "request ({prompt} tokens) exceeds the available context size ({window} tokens), try \
             increasing it"
        );
        let kind = "exceed_context_size_error";
        json!({"error": {
            "code": 400, "message": message, "type": kind, "n_prompt_tokens": prompt, "n_ctx": window,
        }})
    };
    let check = |shape: Shape, response: &Response, prompt: u64, window: u64| {
        assert_eq!(response.status, 400);
        let body = response.json();
        match shape {
            Shape::Anthropic => {
                let why = format!("prompt is too long: {prompt} tokens > {window} maximum");
                assert_eq!(body["error"]["message"], why);
            }
            Shape::OpenAi => assert_eq!(body, llama(prompt, window)),
            Shape::Ollama => {
                let inside = body["error"].as_str().expect("a string");
                let inside: Value = serde_json::from_str(inside).expect("JSON in the string");
                assert_eq!(inside, llama(prompt, window));
            }
        }
    };
    for shape in Shape::ALL {
        let body = streamed(hello(shape));
        let scripted = FakeProvider::new().window(500);
        scripted.script(Step::Overflow);
        check(shape, &post(&scripted, shape, &body), 501, 500);
        scripted.all_legal();
        let small = FakeProvider::new().window(9);
        check(shape, &post(&small, shape, &body), 10, 9);
        assert_eq!(small.single_request().violation.expect("a violation").rule, "A12");
    }
    // In the other APIs, only the prompt and one token must fit.
    for shape in [Shape::OpenAi, Shape::Ollama] {
        let status =
            |window| post(&FakeProvider::new().window(window), shape, &hello(shape)).status;
        assert_eq!((status(10), status(11)), (400, 200));
    }
    // The smaller of the server's window and `num_ctx` applies.
    let mut body = hello(Shape::Ollama);
    body["options"]["num_ctx"] = json!(8);
    check(Shape::Ollama, &post(&FakeProvider::new(), Shape::Ollama, &body), 10, 8);
}

#[test]
fn an_error_in_a_stream_comes_after_some_text() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        (0..2).for_each(|_| provider.script(Step::stream_error("overloaded_error", "busy")));
        let stream = post(&provider, shape, &streamed(hello(shape)));
        assert!(stream.ended && stream.status == 200);
        let (before, last) = stream.pieces.split_at(stream.pieces.len() - 1);
        let before = String::from_utf8(before.concat()).expect("text");
        assert!(before.contains("Reply to") && !before.contains("hello"), "{before}");
        let last = String::from_utf8(last.concat()).expect("text");
        let start = match shape {
            Shape::Anthropic => "event: error\ndata: ",
            Shape::OpenAi => "data: ",
            Shape::Ollama => "",
        };
        let error: Value =
            serde_json::from_str(last.strip_prefix(start).expect("the prefix of an event"))
                .expect("a JSON error");
        // Without a stream, the error is the whole body.
        let mut whole = post(&provider, shape, &hello(shape)).json();
        if shape == Shape::Anthropic {
            whole["request_id"] = json!("req_1");
        }
        assert_eq!(whole, error);
        assert!(last.contains("busy"));
    }
}

// ---- broken streams ------------------------------------------------

#[test]
fn a_stream_can_have_any_bytes_in_any_pieces() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let whole = post(&provider, shape, &streamed(hello(shape)));
        provider.script(Step::stream(&whole.pieces.concat(), 1));
        let bytes = post(&provider, shape, &streamed(hello(shape)));
        assert!(bytes.ended && bytes.pieces.iter().all(|piece| piece.len() == 1));
        assert_eq!(read(shape, &bytes), read(shape, &whole));
        provider.script(Step::Stream(vec![b"\xff\n".to_vec(), b"data".to_vec()]));
        let odd = post(&provider, shape, &hello(shape));
        assert_eq!(odd.pieces, [b"\xff\n".to_vec(), b"data".to_vec()]);
    }
}

#[test]
fn a_cut_stream_has_the_given_number_of_bytes_and_no_end() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let whole = post(&provider, shape, &streamed(hello(shape))).pieces.concat();
        let first = post(&provider, shape, &streamed(hello(shape))).pieces[0].len();
        for bytes in [0, 1, first, first + 1, whole.len() - 1, whole.len(), usize::MAX] {
            provider.script(Step::Cut(bytes));
            let cut = post(&provider, shape, &streamed(hello(shape)));
            assert_eq!((cut.status, cut.ended), (200, false), "{shape:?} {bytes}");
            assert_eq!(cut.pieces.concat().len(), bytes.min(whole.len()), "{shape:?} {bytes}");
        }
        provider.script(Step::Cut(5));
        let cut = post(&provider, shape, &hello(shape));
        assert_eq!((cut.pieces[0].len(), cut.ended), (5, false));
        provider.script(Step::Drop);
        let none = send(&provider, path(shape), &headers(shape), &streamed(hello(shape)));
        assert!(none.is_none());
    }
}

#[test]
fn a_slow_stream_is_complete_and_late() {
    for shape in Shape::ALL {
        let provider = FakeProvider::new();
        let whole = post(&provider, shape, &streamed(hello(shape)));
        let pause = Duration::from_millis(60);
        provider.script(Step::Slow(whole.pieces.len() - 2, pause));
        let began = Instant::now();
        let slow = post(&provider, shape, &streamed(hello(shape)));
        assert!(began.elapsed() >= 2 * pause && slow.ended);
        assert_eq!(read(shape, &slow), read(shape, &whole));
    }
}
