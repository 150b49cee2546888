//! Reading an answer while it comes: a whole one, or a stream of events, to a reply or a failure.

use crate::json::{Object, is_deeper};
use crate::provider::failure::Rows;
use crate::provider::protocol::{Collect, Protocol};
use crate::provider::stream::{Event, Events, Framing};
use crate::provider::{Answer, Failure, Reply};
use crate::record;

/// An answer as it is being read.
pub struct Reading<'s> {
    protocol: Protocol,
    rows: &'s Rows,
    /// What has come so far.
    answer: Answer,
    /// How long the pieces were in which the body came, in bytes.
    pieces: Vec<usize>,
    stream: Option<Stream>,
    /// Takes the text that the model says, as it comes.
    show: &'s mut dyn FnMut(&str),
}

/// A stream that is being read.
struct Stream {
    events: Events,
    collect: Box<dyn Collect>,
    state: State,
}

/// What the events said.
enum State {
    /// Nothing yet.
    Silent,
    Going,
    /// The data of an event that is an error.
    Refused(String),
    /// Why an event cannot be used.
    Broken(String),
}

impl<'s> Reading<'s> {
    /// An answer in that protocol, of which nothing has come yet. A refusal is held against `rows`, too.
    pub fn new(protocol: Protocol, rows: &'s Rows, show: &'s mut dyn FnMut(&str)) -> Reading<'s> {
        let (answer, pieces) = (Answer::default(), Vec::new());
        Reading { protocol, rows, answer, pieces, stream: None, show }
    }

    /// Takes status and headers.
    pub fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        self.answer = Answer { status, headers, body: Vec::new() };
        let kind = self.answer.header("content-type").unwrap_or_default();
        // A refusal comes whole, whatever it says that it is.
        if let Some(framing) = Framing::of(&kind).filter(|_| self.answer.is_success()) {
            self.stream = Some(Stream::new(framing, self.protocol));
        }
    }

    /// Takes the next piece of the body.
    pub fn take(&mut self, piece: &[u8]) {
        self.answer.body.extend_from_slice(piece);
        self.pieces.push(piece.len());
        if let Some(stream) = &mut self.stream {
            stream.take(piece, self.show);
        }
    }

    /// What has come, whole or not, and how long its pieces were, in bytes.
    #[must_use]
    pub fn so_far(&self) -> (&Answer, &[usize]) {
        (&self.answer, &self.pieces)
    }

    /// What was shown of a stream so far, as a reply that broke off; none if nothing was.
    #[must_use]
    pub fn shown(&self) -> Option<Reply> {
        let shown = self.stream.as_ref()?.collect.shown();
        let request_id = self.request_id();
        (!shown.blocks.is_empty()).then_some(Reply { request_id, interrupted: true, ..shown })
    }

    fn request_id(&self) -> Option<String> {
        self.answer.header("request-id").or_else(|| self.answer.header("x-request-id"))
    }

    /// Ends the reading. `now` is the time in Unix seconds.
    ///
    /// # Errors
    /// A [`Failure`]: what the provider refused, or that its answer is none.
    pub fn finish(mut self, now: f64) -> Result<Reply, Failure> {
        let request_id = self.request_id();
        let answer = &self.answer;
        let broken = |why: &str| Failure::broken(answer.status, format!("the answer {why}"));
        if !answer.is_success() {
            return Err(answer.refusal(&answer.body, now, self.rows));
        }
        let reply = match self.stream.take().filter(|stream| !stream.is_none_of(answer)) {
            Some(stream) => stream.finish(self.show),
            // Some proxies leave out what kind of answer it is.
            None if is_stream(answer) => {
                let mut stream = Stream::new(Framing::Events, self.protocol);
                stream.take(&answer.body, self.show);
                stream.finish(self.show)
            }
            None => read(self.protocol, answer, self.show),
        };
        let reply = reply.map_err(|ended| match ended {
            Ended::Refused(data) => answer.refusal(data.as_bytes(), now, self.rows),
            Ended::Broken(why) => broken(&why),
        })?;
        // Such records could not be appended, and the reply would be lost there.
        let is_too_deep = |line: &String| is_deeper(line, record::MOST_DEPTH);
        if reply.to_records("").lines.iter().any(is_too_deep) {
            return Err(broken(&format!("is nested more than {} deep", record::MOST_DEPTH)));
        }
        Ok(Reply { request_id, ..reply })
    }
}

/// How an answer ended that is no reply.
enum Ended {
    /// It says itself what is wrong.
    Refused(String),
    Broken(String),
}

impl Stream {
    fn new(framing: Framing, protocol: Protocol) -> Stream {
        let (events, collect) = (Events::new(framing), protocol.collect());
        Stream { events, collect, state: State::Silent }
    }

    fn take(&mut self, piece: &[u8], show: &mut dyn FnMut(&str)) {
        let Stream { events, collect, state } = self;
        events.take(piece, |event| heed(event, collect.as_mut(), state, show));
    }

    /// Whether the answer was announced as a stream and is one object: some proxies gather streams.
    fn is_none_of(&self, answer: &Answer) -> bool {
        let is_silent = matches!(self.state, State::Silent);
        is_silent && Object::parse(&String::from_utf8_lossy(answer.body.trim_ascii())).is_ok()
    }

    fn finish(self, show: &mut dyn FnMut(&str)) -> Result<Reply, Ended> {
        let Stream { events, mut collect, mut state } = self;
        events.finish(|event| heed(event, collect.as_mut(), &mut state, show));
        match state {
            State::Refused(data) => Err(Ended::Refused(data)),
            State::Broken(why) => Err(Ended::Broken(why)),
            State::Silent => Err(Ended::Broken("is an empty stream".to_owned())),
            State::Going => collect.finish().map_err(Ended::Broken),
        }
    }
}

/// Takes one event. After one that is an error, or is none, nothing counts any more.
fn heed(event: &Event, collect: &mut dyn Collect, state: &mut State, show: &mut dyn FnMut(&str)) {
    let data = event.data.trim();
    let has_ended = matches!(state, State::Refused(_) | State::Broken(_));
    if has_ended || data.is_empty() || data == "[DONE]" {
        return;
    }
    *state = match Object::parse(data) {
        Ok(object) if is_error(&object) => State::Refused(data.to_owned()),
        // What an error says may be anything.
        _ if event.name == "error" => State::Refused(data.to_owned()),
        Err(_) => State::Broken("has an event that is no JSON object".to_owned()),
        Ok(object) => match collect.take(&object, show) {
            Ok(()) => State::Going,
            Err(why) => State::Broken(why),
        },
    };
}

/// Reads an answer that came whole.
fn read(protocol: Protocol, answer: &Answer, show: &mut dyn FnMut(&str)) -> Result<Reply, Ended> {
    let broken = |why: &str| Ended::Broken(why.to_owned());
    let text = std::str::from_utf8(&answer.body).map_err(|_| broken("is not UTF-8"))?;
    let object = Object::parse(text.trim()).map_err(|_| broken("is no JSON object"))?;
    if is_error(&object) {
        return Err(Ended::Refused(text.to_owned()));
    }
    let reply = protocol.read(&object).map_err(Ended::Broken)?;
    reply.said().for_each(|text| show(&text));
    Ok(reply)
}

/// Whether an answer that was not announced as a stream is one.
fn is_stream(answer: &Answer) -> bool {
    let body = answer.body.trim_ascii_start();
    [&b"data:"[..], b"event:"].iter().any(|begin| body.starts_with(begin))
}

/// Whether an object of a successful answer is an error all the same.
fn is_error(object: &Object<'_>) -> bool {
    object.get("error").is_some_and(|error| error != "null")
        || object.string("type").as_deref() == Some("error")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::provider::failure::Class;

    /// Reads an answer of this kind in these pieces; gives the text that was shown, too.
    fn read(kind: &str, pieces: &[&[u8]]) -> (Result<Reply, Failure>, String) {
        let mut shown = String::new();
        let mut show = |text: &str| shown.push_str(text);
        let rows = Rows::default();
        let mut reading = Reading::new(Protocol::Anthropic, &rows, &mut show);
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        reading.head(200, vec![header("content-type", kind), header("request-id", "r")]);
        pieces.iter().for_each(|piece| reading.take(piece));
        let outcome = reading.finish(0.0);
        (outcome, shown)
    }

    fn whole(body: &str) -> Result<Reply, Failure> {
        read("application/json", &[body.as_bytes()]).0
    }

    fn stream(text: &str) -> Result<Reply, Failure> {
        read("text/event-stream", &[text.as_bytes()]).0
    }

    #[test]
    fn a_reply_keeps_its_bytes() {
        let body = r#"{"id":"m","content":[{"type":"text","text":"a","x":1e2}],"model":"m","stop_reason":"end_turn","usage":{"input_tokens":1,"more":{"a":2}}}"#;
        let reply = whole(body).unwrap();
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
            assert!(whole(body).is_err(), "{body}");
        }
    }

    const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m","model":"m","content":[],"usage":{"input_tokens":9,"output_tokens":1,"cache":null}}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm \u00e9"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s=="}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","x":1e2}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"日本 \ud83d"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"\ude00"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"e2}"}}

data: {"type":"content_block_stop","index":2}

event: new_event
data: {"type":"new_event"}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

"#;

    #[test]
    fn a_stream_gives_what_a_whole_answer_gives_wherever_it_is_cut() {
        let expected = [
            r#"{"type":"thinking","thinking":"hm \u00e9","signature":"s=="}"#,
            r#"{"type":"text","text":"日本 \ud83d\ude00","x":1e2}"#,
            r#"{"type":"tool_use","id":"t","name":"f","input":{"a": 1e2}}"#,
        ];
        let bytes = STREAM.as_bytes();
        for at in 0..=bytes.len() {
            let pieces = [&bytes[..at], &bytes[at..]];
            let (reply, shown) = read("text/event-stream; charset=utf-8", &pieces);
            let reply = reply.unwrap();
            assert_eq!(reply.blocks, expected, "{at}");
            assert_eq!(reply.model.as_deref(), Some("m"));
            assert_eq!(reply.stop_reason.as_deref(), Some("tool_use"));
            // Counts are not added up.
            let usage = r#"{"input_tokens":9,"output_tokens":7}"#;
            assert_eq!(reply.usage.as_deref(), Some(usage));
            assert!(shown.starts_with("日本 "), "{shown}");
        }
        // Some proxies do not say that it is a stream, others make one answer of it.
        assert_eq!(read("text/plain", &[bytes]).0.unwrap().blocks, expected);
        let body = r#"{"content":[{"type":"text","text":"a"}]}"#;
        assert_eq!(stream(body).unwrap().blocks.len(), 1);
    }

    #[test]
    fn a_stream_that_is_cut_anywhere_is_a_failure_that_may_pass() {
        let end = STREAM.rfind("data: {\"type\":\"message_stop\"}").unwrap() + 28;
        for at in (0..=end).filter(|at| STREAM.is_char_boundary(*at)) {
            let failure = stream(&STREAM[..at]).unwrap_err();
            assert_eq!((failure.exit(), failure.retryable), (Exit::Unavailable, true), "{at}");
        }
    }

    #[test]
    fn an_error_in_a_stream_is_what_it_says() {
        let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let begin = &STREAM[..STREAM.find("data: {\"type\":\"content_block_stop\"").unwrap()];
        for text in [error.to_owned(), format!("{begin}{error}"), format!("{error}{begin}")] {
            assert_eq!(stream(&text).unwrap_err().class, Class::Overloaded, "{text}");
        }
        assert!(stream("event: error\ndata: oh no\n\n").unwrap_err().retryable);
        let overflow = "data: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 tokens > 5 maximum\"}}\n\n";
        assert_eq!(stream(overflow).unwrap_err().limit, Some(5));
    }

    #[test]
    fn v66_half_a_call_of_a_stream_is_no_call() {
        let half = STREAM.find(r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"e2}"#);
        let (begin, end) = STREAM.split_at(half.unwrap());
        let end = &end[end.find("event: new_event").unwrap()..];
        let cut = end.replace("\"tool_use\"", "\"max_tokens\"");
        let reply = stream(&format!("{begin}{cut}")).unwrap();
        let records = reply.to_records("p");
        assert_eq!((records.lines.len(), records.cut_call.as_deref()), (1, Some("f")));
        let failure = stream(&format!("{begin}{end}")).unwrap_err();
        assert!(failure.message.contains("no JSON object"), "{failure}");
    }
}
