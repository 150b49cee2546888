use super::*;
use crate::provider::anthropic::Anthropic;
use crate::provider::api::Api;
use crate::provider::protocol::Protocol;
use crate::provider::question::Content;

fn service(protocol: Protocol, base: &str) -> Box<dyn BatchService> {
    protocol.api().batches(base, "m").unwrap()
}

fn read(service: &dyn BatchService, text: &str) -> Batch {
    service.read(&Object::parse(text).unwrap()).unwrap()
}

fn result(service: &dyn BatchService, text: &str) -> (Option<String>, Outcome) {
    service.result(&Object::parse(text).unwrap()).unwrap()
}

#[test]
fn requests_are_divided_by_number_and_size() {
    let limits = |requests, bytes| Limits { requests, bytes };
    assert!(divide(&[], limits(2, 100_000)).is_empty());
    assert_eq!(divide(&[9; 5], limits(2, 100_000)), [0..2, 2..4, 4..5]);
    let full = 10_000 + AROUND;
    assert_eq!(divide(&[10_000; 5], limits(9, 2 * full + AROUND)), [0..2, 2..4, 4..5]);
    assert_eq!(divide(&[10_000; 3], limits(9, full + AROUND)), [0..1, 1..2, 2..3]);
    // A request that fits no batch is in none, and stops no other.
    let sizes = [1, 50_000, 1, 1, 50_000];
    assert_eq!(divide(&sizes, limits(9, 20_000)), [0..1, 2..4]);
    for (at, size) in sizes.iter().enumerate() {
        let is_in = divide(&sizes, limits(9, 20_000)).iter().any(|range| range.contains(&at));
        assert_eq!(is_in, fits(*size, limits(9, 20_000)), "{at}");
    }
}

#[test]
fn every_service_has_limits() {
    for protocol in [Protocol::Anthropic, Protocol::Chat, Protocol::Responses, Protocol::Gemini] {
        let service = service(protocol, "https://x");
        assert!(limits(&*service).requests > 0, "{}", service.name());
    }
    for protocol in [
        Protocol::Ollama,
        Protocol::AnthropicOnBedrock,
        Protocol::AnthropicOnVertex,
        Protocol::GeminiOnVertex,
    ] {
        assert!(protocol.api().batches("https://x", "m").is_none(), "{protocol:?}");
    }
}

#[test]
fn the_urls_are_beside_the_endpoint() {
    let urls = |protocol, base| {
        let service = service(protocol, base);
        let urls = [service.create("n", &[], Some("f")), service.state("a/b"), service.list(None)];
        urls.map(|question| question.url)
    };
    let messages = "https://x/v1/messages/batches";
    for base in ["https://x", "https://x/v1/", "https://x/v1/messages"] {
        let state = format!("{messages}/a%2Fb");
        let list = format!("{messages}?limit=100");
        assert_eq!(urls(Protocol::Anthropic, base), [messages, &state, &list]);
    }
    for base in ["https://x", "https://x/v1", "https://x/v1/chat/completions"] {
        let batches = "https://x/v1/batches";
        let list = format!("{batches}?limit=100");
        assert_eq!(urls(Protocol::Chat, base), [batches, &format!("{batches}/a%2Fb"), &list]);
    }
    let parent = "https://x/v1beta";
    let expected = [
        &format!("{parent}/models/m:batchGenerateContent"),
        &format!("{parent}/batches/b"),
        &format!("{parent}/batches?pageSize=100"),
    ];
    assert_eq!(urls(Protocol::Gemini, "https://x"), expected.map(String::as_str));
    let next = service(Protocol::Chat, "https://x").list(Some("batch 1"));
    assert_eq!(next.url, "https://x/v1/batches?limit=100&after=batch%201");
}

#[test]
fn an_upload_is_a_form_with_a_file_of_lines() {
    let service = service(Protocol::Responses, "https://x");
    let entry = service.entry("claw-0", r#"{"model":"m"}"#);
    let line =
        r#"{"custom_id":"claw-0","method":"POST","url":"/v1/responses","body":{"model":"m"}}"#;
    assert_eq!(entry, line);
    let upload = service.upload("claw", &[entry.clone(), entry]).unwrap();
    let Content { kind, text } = upload.body.unwrap();
    assert_eq!(kind, "multipart/form-data; boundary=claw-batch");
    let form = format!(
        "--claw-batch\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
         --claw-batch\r\ncontent-disposition: form-data; name=\"file\"; filename=\"claw.jsonl\"\r\n\
         content-type: application/jsonl\r\n\r\n{line}\n{line}\n\r\n--claw-batch--\r\n"
    );
    assert_eq!(text, form);
    assert_eq!(upload.url, "https://x/v1/files");
}

#[test]
fn the_states_of_all_services_are_known() {
    let anthropic = service(Protocol::Anthropic, "https://x");
    for (status, is_over) in [("in_progress", false), ("canceling", false), ("ended", true)] {
        let text = format!(
            r#"{{"id":"b","created_at":"2026-01-01T00:00:00Z","processing_status":"{status}","request_counts":{{"processing":1,"succeeded":2,"errored":3,"canceled":4,"expired":5}}}}"#
        );
        let batch = read(&*anthropic, &text);
        assert_eq!((batch.requests, batch.created), (Some(15), Some(1_767_225_600.0)));
        assert_eq!(batch.phase != Phase::Running, is_over, "{status}");
    }
    let openai = service(Protocol::Chat, "https://x");
    for (status, is_over) in [
        ("validating", false),
        ("in_progress", false),
        ("finalizing", false),
        ("cancelling", false),
        ("completed", true),
        ("expired", true),
        ("cancelled", true),
        ("failed", true),
    ] {
        let text = format!(r#"{{"id":"b","status":"{status}","metadata":{{"clawutils":"n"}}}}"#);
        let batch = read(&*openai, &text);
        assert_eq!(batch.name.as_deref(), Some("n"));
        assert_eq!(batch.phase != Phase::Running, is_over, "{status}");
    }
    let failed = r#"{"id":"b","status":"failed","metadata":null,"errors":{"data":[{"code":"token_limit_exceeded","message":"too many"}]}}"#;
    let why = "the batch was not run: token_limit_exceeded: too many";
    assert_eq!(read(&*openai, failed).phase, Phase::Ended(why.to_owned()));
    let gemini = service(Protocol::Gemini, "https://x");
    for (name, is_over) in [
        ("batch_state_pending", false),
        ("batch_state_running", false),
        ("batch_state_succeeded", true),
        ("batch_state_failed", true),
        ("batch_state_cancelled", true),
        ("batch_state_expired", true),
        ("job_state_partially_succeeded", true),
    ] {
        let state = name.to_uppercase();
        let text =
            format!(r#"{{"name":"batches/b","metadata":{{"state":"{state}","displayName":"n"}}}}"#);
        assert_eq!(read(&*gemini, &text).phase != Phase::Running, is_over, "{state}");
    }
}

#[test]
fn results_become_the_answers_that_single_requests_get() {
    let id = Some("claw-3".to_owned());
    let anthropic = service(Protocol::Anthropic, "https://x");
    let of = |result: &str| format!(r#"{{"custom_id":"claw-3","result":{result}}}"#);
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    for (text, outcome) in [
        (
            r#"{"type":"succeeded","message":{"id":"m"}}"#.to_owned(),
            Outcome::Answer(200, r#"{"id":"m"}"#.into()),
        ),
        (format!(r#"{{"type":"errored","error":{error}}}"#), Outcome::Answer(529, error.into())),
        (r#"{"type":"expired"}"#.to_owned(), Outcome::None("the request expired".into())),
        (r#"{"type":"canceled"}"#.to_owned(), Outcome::None("the request was canceled".into())),
    ] {
        assert_eq!(result(&*anthropic, &of(&text)), (id.clone(), outcome));
    }
    let openai = service(Protocol::Chat, "https://x");
    let answered =
        r#"{"custom_id":"claw-3","response":{"status_code":429,"body":{"error":{}}},"error":null}"#;
    let outcome = Outcome::Answer(429, r#"{"error":{}}"#.into());
    assert_eq!(result(&*openai, answered), (id.clone(), outcome));
    let expired = r#"{"custom_id":"claw-3","response":null,"error":{"code":"batch_expired","message":"late"}}"#;
    let outcome = Outcome::None("batch_expired: late".into());
    assert_eq!(result(&*openai, expired), (id.clone(), outcome));
    let gemini = service(Protocol::Gemini, "https://x");
    let answered = r#"{"response":{"candidates":[]},"metadata":{"key":"claw-3"}}"#;
    let outcome = Outcome::Answer(200, r#"{"candidates":[]}"#.into());
    assert_eq!(result(&*gemini, answered), (id, outcome));
    let failed = r#"{"error":{"code":8,"message":"quota"}}"#;
    let body = r#"{"error":{"code":429,"message":"quota","status":"NAME"}}"#;
    let body = body.replace("NAME", &"resource_exhausted".to_uppercase());
    assert_eq!(result(&*gemini, failed), (None, Outcome::Answer(429, body)));
}

#[test]
fn inline_results_are_found_in_both_places() {
    let gemini = service(Protocol::Gemini, "https://x");
    let results = r#"{"inlinedResponses":{"inlinedResponses":[{"a":1},{"b":2}]}}"#;
    for text in [
        format!(r#"{{"response":{results}}}"#),
        format!(r#"{{"metadata":{{"output":{results}}}}}"#),
    ] {
        let answer = Object::parse(&text).unwrap();
        assert_eq!(gemini.inline(&answer), [r#"{"a":1}"#, r#"{"b":2}"#]);
    }
}

#[test]
fn a_list_is_read_page_by_page() {
    let anthropic = Anthropic(crate::provider::address::Platform::Own);
    let anthropic = anthropic.batches("https://x", "m").unwrap();
    let entry = r#"{"id":"b","processing_status":"ended"}"#;
    let page = |text: &str| {
        let (batches, next) = read_page(&*anthropic, text)?;
        Some((batches.len(), next))
    };
    let next = |next: &str| Some(next.to_owned());
    assert_eq!(
        page(&format!(r#"{{"data":[{entry}],"has_more":true,"last_id":"l"}}"#)),
        Some((1, next("l")))
    );
    assert_eq!(page(&format!(r#"{{"data":[{entry}],"has_more":false}}"#)), Some((1, None)));
    assert_eq!(page(r#"{"operations":[],"nextPageToken":"t"}"#), Some((0, next("t"))));
    assert_eq!(page("{}"), Some((0, None)));
    assert_eq!(page(r#"{"error":{}}"#), None);
    assert_eq!(page("<html>"), None);
}
