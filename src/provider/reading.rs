//! Reads an answer as it arrives, complete or streaming, and turns it into a reply or a failure.
//!
//! Reading stops where the protocol says that the answer ends, or once an error has arrived; what happens to the
//! connection after that does not matter. Sizes are limited: a stream to [`MAX_ANSWER`], a complete answer to
//! [`MAX_BODY`], a single event to [`MAX_EVENT`], and a refusal is read up to [`MAX_REFUSAL`]. Lists and objects
//! are limited to [`MAX_MEMBERS`], because a parsed member takes more memory than its JSON text.

mod events;
mod whole;

use crate::json::Object;
use crate::provider::collect::Remaining;
use crate::provider::extent::{Extent, completed};
use crate::provider::protocol::Protocol;
use crate::provider::refusal::Rows;
use crate::provider::stream::{Framing, MAX_EVENT};
use crate::provider::{Answer, FailedCall, Failure, Reply};
use events::StreamReading;
use whole::{NoReply, is_error, over, read};

/// The size limit of a stream: 64 MiB.
pub const MAX_ANSWER: usize = 64 << 20;
/// The size limit of a complete answer: 48 MiB. For a moment it is in memory twice, as raw bytes and as a reply.
pub const MAX_BODY: usize = 48 << 20;
/// The size limit of a refusal: 1 MiB. The rest is not read.
pub const MAX_REFUSAL: usize = 1 << 20;
/// The maximum number of members in a list or an object of an answer: 262,144.
pub const MAX_MEMBERS: usize = 1 << 18;
/// The amount of leading white space, in bytes, after which the form of the answer is decided anyway.
const MAX_BLANK: usize = 4096;
/// The number of bytes that is enough to tell an unannounced stream from a complete answer.
const DETECTION_BYTES: usize = 16;

/// An answer that is being read.
pub struct Reading<'s> {
    protocol: Protocol,
    rows: &'s Rows,
    /// The status, the headers, and the body. The body of a stream is kept only if `keeps_all` is true.
    answer: Answer,
    keeps_all: bool,
    /// The number of body bytes received.
    received: usize,
    /// True if they are all white space.
    is_bare: bool,
    /// The lengths in bytes of the pieces in which the body arrived, if `keeps_all` is true.
    pieces: Vec<usize>,
    form: AnswerForm,
    /// Receives the model's text as it arrives.
    show: &'s mut dyn FnMut(&str),
}

/// The form of an answer.
enum AnswerForm {
    /// Not enough bytes have arrived to decide. Holds the framing that the content type announced.
    Unknown(Option<Framing>),
    /// A single JSON value.
    Whole(Extent),
    /// A stream of events.
    Stream(StreamReading),
}

impl<'s> Reading<'s> {
    /// Prepares to read an answer in `protocol`. `rows` are the user's additions to the failure table.
    pub fn new(protocol: Protocol, rows: &'s Rows, show: &'s mut dyn FnMut(&str)) -> Reading<'s> {
        Reading {
            protocol,
            rows,
            answer: Answer::default(),
            keeps_all: false,
            received: 0,
            is_bare: true,
            pieces: Vec::new(),
            form: AnswerForm::Unknown(None),
            show,
        }
    }

    /// Also keeps the body of a stream and the lengths of its pieces, for [`Reading::so_far`].
    pub fn keep_all(&mut self) {
        self.keeps_all = true;
    }

    /// Takes the status and the headers.
    pub fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        self.answer = Answer { status, headers, body: Vec::new() };
        let kind = self.answer.header("content-type").unwrap_or_default();
        self.form = match self.answer.is_success() {
            true => AnswerForm::Unknown(Framing::of(&kind)),
            // A refusal is not streamed, whatever its content type says.
            false => AnswerForm::Whole(Extent::default()),
        };
    }

    /// Takes the next piece of the body and returns how much is still to come.
    pub fn take(&mut self, piece: &[u8]) -> Remaining {
        self.received += piece.len();
        self.is_bare = self.is_bare && piece.trim_ascii().is_empty();
        let is_stream = matches!(self.form, AnswerForm::Stream(_));
        if self.keeps_all {
            self.pieces.push(piece.len());
        }
        if self.keeps_all || !is_stream {
            keep(&mut self.answer.body, piece);
        }
        match &mut self.form {
            AnswerForm::Unknown(_) => self.detect_form(false),
            AnswerForm::Whole(extent) => {
                if let Some(end) = extent.take(piece) {
                    self.end_whole(end);
                }
            }
            AnswerForm::Stream(stream) => stream.take(piece, self.show),
        }
        self.remaining()
    }

    /// Returns how much of the answer is still to come.
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        let is_success = self.answer.is_success();
        let most = match &self.form {
            AnswerForm::Stream(_) => MAX_ANSWER,
            _ if is_success => MAX_BODY,
            _ => MAX_REFUSAL,
        };
        if self.received > most {
            return Remaining::None;
        }
        match &self.form {
            AnswerForm::Whole(extent) if extent.end().is_some() => Remaining::None,
            AnswerForm::Stream(stream) => stream.remaining(),
            _ if self.answer.status != 0 && !is_success => Remaining::Optional,
            AnswerForm::Unknown(_) | AnswerForm::Whole(_) => Remaining::Required,
        }
    }

    /// Decides by the first bytes whether the answer is a stream. The content type is not enough: some proxies
    /// collect a stream into one answer, others do not announce a stream.
    fn detect_form(&mut self, is_all: bool) {
        let AnswerForm::Unknown(announced) = self.form else { return };
        let body = &self.answer.body;
        let begin = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body).trim_ascii_start();
        let is_field = |name: &str| begin.starts_with(name.as_bytes());
        let framing = match begin.first() {
            None if body.len() < MAX_BLANK && !is_all => return,
            Some(b'{' | b'[') => announced.filter(|framing| *framing == Framing::Lines),
            _ if announced.is_some() => announced,
            _ if [":", "data:", "event:", "id:", "retry:"].into_iter().any(is_field) => {
                Some(Framing::Events)
            }
            _ if begin.len() < DETECTION_BYTES && !is_all => return,
            _ => None,
        };
        match framing {
            Some(framing) => self.begin_stream(framing),
            None => {
                let mut extent = Extent::default();
                let end = extent.take(&self.answer.body);
                self.form = AnswerForm::Whole(extent);
                if let Some(end) = end {
                    self.end_whole(end);
                }
            }
        }
    }

    /// Treats the answer as a stream, beginning with the bytes that have already arrived.
    fn begin_stream(&mut self, framing: Framing) {
        let mut stream = StreamReading::new(framing, self.protocol);
        stream.take(&self.answer.body, self.show);
        self.form = AnswerForm::Stream(stream);
        if !self.keeps_all {
            self.answer.body = Vec::new();
        }
    }

    /// Checks a JSON value that has arrived completely: it may be the first line of an unannounced stream.
    fn end_whole(&mut self, end: usize) {
        if !self.answer.is_success() || end > MAX_EVENT {
            return;
        }
        let api = self.protocol.api();
        let text = String::from_utf8_lossy(&self.answer.body[..end]);
        let is_line = Object::parse(text.trim())
            .is_ok_and(|object| api.begins_stream(&object) && !is_error(&object));
        if is_line {
            self.begin_stream(Framing::Lines);
        }
    }

    /// Returns the part of the answer kept so far, and the lengths of its pieces in bytes.
    #[must_use]
    pub fn so_far(&self) -> (&Answer, &[usize]) {
        (&self.answer, &self.pieces)
    }

    /// Returns true if nothing but white space has arrived after the headers.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.is_bare
    }

    fn request_id(&self) -> Option<String> {
        self.answer.header("request-id").or_else(|| self.answer.header("x-request-id"))
    }

    /// Finishes reading and returns the reply. `now` is the time in Unix seconds. `sent` is the outcome of the
    /// transfer; it matters only if the answer is incomplete.
    ///
    /// # Errors
    /// Returns the [`Failure`] (a refusal, an unreadable answer, or a lost connection) and the part of the reply
    /// that was already shown.
    pub fn finish(mut self, now: f64, sent: Result<(), Failure>) -> Result<Reply, FailedCall> {
        if self.answer.status == 0 {
            let failure = sent.err().unwrap_or_else(|| Failure::unreachable("no answer"));
            return Err(failure.into());
        }
        self.detect_form(true);
        let (request_id, status) = (self.request_id(), self.answer.status);
        if !self.answer.is_success() {
            return Err(self.refusal(now, sent.is_err()).into());
        }
        let is_complete = self.remaining() != Remaining::Required;
        let (received, is_stream) = (self.received, matches!(self.form, AnswerForm::Stream(_)));
        let Reading { protocol, rows, mut answer, form, show, .. } = self;
        let body = std::mem::take(&mut answer.body);
        let (outcome, shown) = match form {
            AnswerForm::Stream(mut stream) => {
                stream.limit(received);
                stream.finish(show)
            }
            _ if received > MAX_BODY => (Err(NoReply::TooLong(over("it", MAX_BODY))), None),
            AnswerForm::Whole(extent) => (read(protocol, body, extent.end(), show), None),
            AnswerForm::Unknown(_) => (read(protocol, body, None, show), None),
        };
        let broken = |why: &str| Failure::broken(status, format!("the answer {why}"));
        let malformed = |why: &str| Failure::malformed(status, format!("the answer {why}"));
        let failure = match (outcome, sent) {
            (Ok(reply), _) => match reply.flaw() {
                None => return Ok(Reply { request_id, ..reply }),
                Some(why) => {
                    let failure = malformed(&why);
                    return Err(FailedCall { failure, shown: Vec::new() });
                }
            },
            (Err(NoReply::Refused(data)), _) => answer.refusal(data.as_bytes(), now, rows),
            // The answer is incomplete because the connection was lost.
            (Err(NoReply::Broken(_)), Err(failure)) => failure,
            (Err(NoReply::Broken(why)), Ok(())) if is_complete => malformed(&why),
            (Err(NoReply::Broken(why)), Ok(())) => broken(&why),
            (Err(NoReply::TooLong(why)), _) => Failure { retryable: false, ..broken(&why) },
        };
        let shown = shown.filter(|shown| is_stream && !shown.blocks.is_empty());
        let shown = shown.map(|shown| Reply { request_id, interrupted: true, ..shown });
        Err(FailedCall { failure, shown: shown.into_iter().collect() })
    }

    /// Classifies the refusal in the body. If the body was cut off inside a string or a number, the failure has no token
    /// counts, because the last one may be incomplete.
    fn refusal(&self, now: f64, is_cut: bool) -> Failure {
        let body = &self.answer.body;
        let end = match &self.form {
            AnswerForm::Whole(extent) => extent.end(),
            _ => None,
        };
        let body = &body[..end.unwrap_or(body.len()).min(MAX_REFUSAL)];
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}');
        let is_part = is_cut || self.received > MAX_REFUSAL || Object::parse(text.trim()).is_err();
        if !is_part || !text.trim_start().starts_with('{') {
            return self.answer.refusal(text.as_bytes(), now, self.rows);
        }
        let (whole, is_value_cut) = completed(text.trim());
        let failure = self.answer.refusal(whole.as_bytes(), now, self.rows);
        if is_value_cut { failure.without_numbers() } else { failure }
    }
}

/// Appends a piece to a body. A full buffer grows by at least a quarter.
fn keep(body: &mut Vec<u8>, piece: &[u8]) {
    if body.capacity() - body.len() < piece.len() {
        body.reserve_exact(piece.len().max(body.len() / 4));
    }
    body.extend_from_slice(piece);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::provider::refusal::FailureClass;

    /// Reads an answer of this content type in these pieces. Also returns the text that was shown.
    fn read(kind: &str, pieces: &[&[u8]]) -> (Result<Reply, Failure>, String) {
        let (outcome, shown) = read_as(Protocol::Anthropic, kind, pieces);
        (outcome.map_err(|failed| failed.failure), shown)
    }

    /// Reads an answer in any protocol. A failure includes the part of the reply that was shown.
    fn read_as(
        protocol: Protocol,
        kind: &str,
        pieces: &[&[u8]],
    ) -> (Result<Reply, FailedCall>, String) {
        let mut shown = String::new();
        let mut show = |text: &str| shown.push_str(text);
        let rows = Rows::default();
        let mut reading = Reading::new(protocol, &rows, &mut show);
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        reading.head(200, vec![header("content-type", kind), header("request-id", "r")]);
        for piece in pieces {
            reading.take(piece);
        }
        (reading.finish(0.0, Ok(())), shown)
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
    fn an_unusable_answer_is_a_failure() {
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
    fn a_stream_split_anywhere_gives_the_same_reply_as_a_complete_answer() {
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
        // Some proxies do not announce a stream, others collect it into one answer.
        assert_eq!(read("text/plain", &[bytes]).0.unwrap().blocks, expected);
        let body = r#"{"content":[{"type":"text","text":"a"}]}"#;
        assert_eq!(stream(body).unwrap().blocks.len(), 1);
    }

    #[test]
    fn a_stream_cut_anywhere_is_a_retryable_failure() {
        let end = STREAM.rfind("data: {\"type\":\"message_stop\"}").unwrap() + 28;
        for at in (0..=end).filter(|at| STREAM.is_char_boundary(*at)) {
            let failure = stream(&STREAM[..at]).unwrap_err();
            assert_eq!((failure.exit(), failure.retryable), (Exit::Unavailable, true), "{at}");
        }
    }

    #[test]
    fn audit_09_a_refusal_cut_anywhere_has_no_incomplete_number() {
        let openai = r#"{"error":{"message":"This model's maximum context length is 131072 tokens. However, you requested 140019 tokens (139995 in the messages, 24 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
        let llama = r#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":5031,"n_ctx":4096,"code":400}}"#;
        let rows = Rows::default();
        let numbers = |body: &str| {
            let mut show = |_: &str| {};
            let mut reading = Reading::new(Protocol::Anthropic, &rows, &mut show);
            reading.head(400, vec![("content-type".to_owned(), "application/json".to_owned())]);
            reading.take(body.as_bytes());
            let failure = reading.finish(0.0, Ok(())).unwrap_err().failure;
            [failure.actual, failure.limit, failure.stated_window, failure.requested_output]
        };
        for whole in [openai, llama] {
            let expected = numbers(whole);
            assert!(expected[2].is_some(), "{whole}");
            for at in 0..whole.len() {
                for (number, expected) in numbers(&whole[..at]).into_iter().zip(expected) {
                    assert!(number.is_none() || number == expected, "{}", &whole[..at]);
                }
            }
        }
    }

    /// The smallest complete streams with text, by protocol and content type.
    const SMALL: [(Protocol, &str, &str); 3] = [
        (
            Protocol::Anthropic,
            "text/event-stream",
            concat!(
                "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\u{e9}\"}}\n\n",
                "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
                "data: {\"type\":\"message_stop\"}\n\n",
            ),
        ),
        (
            Protocol::Chat,
            "text/event-stream",
            concat!(
                "data: {\"choices\":[{\"delta\":{\"content\":\"\u{e9}\"}}]}\n\n",
                "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
            ),
        ),
        (
            Protocol::Ollama,
            "application/x-ndjson",
            concat!(
                "{\"message\":{\"content\":\"\u{e9}\"}}\n",
                "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
            ),
        ),
    ];

    #[test]
    fn a_stream_that_ends_early_is_broken_and_gives_no_reply() {
        for (protocol, kind, stream) in SMALL {
            let read = |at: usize| read_as(protocol, kind, &[&stream.as_bytes()[..at]]);
            let (reply, shown) = read(stream.len());
            assert_eq!((reply.unwrap().interrupted, shown.as_str()), (false, "\u{e9}"));
            // Ollama's last line needs no line feed.
            let whole = stream.len() - usize::from(protocol == Protocol::Ollama);
            for at in 0..whole {
                let failed = read(at).0.unwrap_err();
                let class = failed.failure.class;
                assert_eq!(class, FailureClass::Broken, "{protocol:?} {at}: {:?}", failed.failure);
                assert!(failed.shown.iter().all(|part| part.interrupted), "{protocol:?} {at}");
            }
        }
    }

    #[test]
    fn an_error_in_a_stream_is_classified() {
        let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let begin = &STREAM[..STREAM.find("data: {\"type\":\"content_block_stop\"").unwrap()];
        for text in [error.to_owned(), format!("{begin}{error}"), format!("{error}{begin}")] {
            assert_eq!(stream(&text).unwrap_err().class, FailureClass::Overloaded, "{text}");
        }
        assert!(stream("event: error\ndata: oh no\n\n").unwrap_err().retryable);
        let overflow = "data: {\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 tokens > 5 maximum\"}}\n\n";
        assert_eq!(stream(overflow).unwrap_err().limit, Some(5));
    }

    #[test]
    fn v66_an_incomplete_call_of_a_stream_is_dropped() {
        let half = STREAM.find(r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"e2}"#);
        let (begin, end) = STREAM.split_at(half.unwrap());
        let end = &end[end.find("event: new_event").unwrap()..];
        let cut = end.replace("\"tool_use\"", "\"max_tokens\"");
        let reply = stream(&format!("{begin}{cut}")).unwrap();
        let records = reply.to_records("p");
        assert_eq!((records.lines.len(), records.cut_call.as_deref()), (1, Some("f")));
        let failure = stream(&format!("{begin}{end}")).unwrap_err();
        assert!(failure.message.contains("not a JSON object"), "{failure}");
    }
}
