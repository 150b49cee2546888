use super::*;
use crate::provider::Answer;

/// A transport that plays a list of answers.
struct Scripted {
    answers: Vec<Result<Answer, Failure>>,
    asked: Vec<u64>,
    waits: Vec<f64>,
}

impl Transport for Scripted {
    fn send(
        &mut self,
        _: Ask,
        request: &ModelRequest<'_, '_>,
        _: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        self.asked.push(request.max_tokens);
        let answer = self.answers.remove(0)?;
        reading.head(answer.status, answer.headers);
        reading.take(&answer.body);
        Ok(())
    }
    fn left(&self) -> f64 {
        f64::INFINITY
    }
    fn wait(&mut self, seconds: f64) {
        self.waits.push(seconds);
    }
    fn now(&self) -> f64 {
        0.0
    }
    fn random(&mut self) -> f64 {
        0.0
    }
    fn report(&mut self, _: &str) {}
    fn learn(&mut self, _: Feature, _: Option<Feature>) {}
}

fn refusal(status: u16, message: &str, retry_after: Option<&str>) -> Result<Answer, Failure> {
    let body = format!(r#"{{"error":{{"type":"invalid_request_error","message":"{message}"}}}}"#);
    let headers = retry_after.map(|wait| ("retry-after".to_owned(), wait.to_owned()));
    Ok(Answer { status, headers: headers.into_iter().collect(), body: body.into() })
}

const GOOD: &str = r#"{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;

fn good() -> Result<Answer, Failure> {
    Ok(Answer { status: 200, headers: vec![], body: GOOD.into() })
}

fn run(answers: Vec<Result<Answer, Failure>>) -> (bool, Vec<u64>, Vec<f64>) {
    let messages = [Message::text(Role::User, "hi")];
    let request = ModelRequest::plain(&messages, 4000);
    let mut transport = Scripted { answers, asked: vec![], waits: vec![] };
    let patience = Patience { retries: 2, max_wait: 60.0 };
    let (protocol, rows) = (Protocol::Anthropic, &Rows::default());
    let outcome = call(
        ModelCall {
            ask: Ask::Reply,
            protocol,
            request,
            patience,
            rows,
            sizes: Sizes::default(),
            detect_truncation: false,
        },
        &mut transport,
        &mut |_| {},
    );
    (outcome.is_ok(), transport.asked, transport.waits)
}

const ROOM: &str = "input length and `max_tokens` exceed context limit: 7000 + 4000 > 10000, x";

#[test]
fn v65_the_same_limit_lowers_max_tokens_only_once() {
    assert_eq!(run(vec![refusal(400, ROOM, None), good()]), (true, vec![4000, 2936], vec![]));
    let twice = vec![refusal(400, ROOM, None), refusal(400, ROOM, None)];
    assert_eq!(run(twice), (false, vec![4000, 2936], vec![]));
    let full = "input length and `max_tokens` exceed context limit: 9990 + 4000 > 10000, x";
    assert_eq!(run(vec![refusal(400, full, None)]).1, [4000]);
}

#[test]
fn a_byte_order_mark_may_precede_a_token_count() {
    let messages = [Message::text(Role::User, "hi")];
    for text in ["{\"input_tokens\":7}", "\u{feff}{\"input_tokens\":7}\r\n"] {
        let answer = Answer { status: 200, headers: vec![], body: text.into() };
        let mut transport = Scripted { answers: vec![Ok(answer)], asked: vec![], waits: vec![] };
        let call = ModelCall {
            ask: Ask::Count,
            protocol: Protocol::Anthropic,
            request: ModelRequest::plain(&messages, 4000),
            patience: Patience { retries: 0, max_wait: 60.0 },
            rows: &Rows::default(),
            sizes: Sizes::default(),
            detect_truncation: false,
        };
        assert_eq!(count(&call, &mut transport).unwrap(), 7, "{text:?}");
    }
}

#[test]
fn v61_only_retryable_failures_are_retried() {
    let busy = || refusal(529, "Overloaded", None);
    assert_eq!(run(vec![busy(), busy(), good()]), (true, vec![4000; 3], vec![0.5, 1.0]));
    assert_eq!(run(vec![busy(), busy(), busy()]), (false, vec![4000; 3], vec![0.5, 1.0]));
    let limited = refusal(429, "slow down", Some("7"));
    assert_eq!(run(vec![limited, good()]), (true, vec![4000; 2], vec![7.0]));
    let long = refusal(429, "slow down", Some("61"));
    assert_eq!(
        run(vec![long]),
        (false, vec![4000], vec![]),
        "a wait above the limit ends the call"
    );
    let dead = Err(Failure::unreachable("reset"));
    assert_eq!(run(vec![dead, good()]).1.len(), 2);
    for status in [400, 401, 402, 403, 404, 413, 422] {
        assert_eq!(run(vec![refusal(status, "no", None)]).1.len(), 1, "{status}");
    }
    let overflow = "prompt is too long: 20000 tokens > 10000 maximum";
    assert_eq!(run(vec![refusal(400, overflow, None)]).1.len(), 1);
}
