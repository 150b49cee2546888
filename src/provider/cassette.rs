//! Cassettes: recorded exchanges with a provider, looked up by request.
//!
//! A cassette is a directory that holds one directory per exchange, with three files:
//!
//! - `request.json`: `method`, `path` (without the host), `headers`, and `body`, the request's JSON as it was
//!   sent. A body that is itself a JSON string, or is not JSON, is stored as a JSON string with its text.
//! - `response.json`: `status`, `headers`, `pieces` (the lengths, in bytes, of the pieces in which the answer
//!   arrived) and, if the answer was interrupted or missing, the reason as `ended`. `status` is null if there
//!   was no answer.
//! - `body`: the bytes of the answer.
//!
//! A replay delivers the same pieces, so a stream is split where the network split it. A recording written by
//! hand may omit `pieces`, and its directory may have any name.
//!
//! A request that is to be sent in a batch waits for its answer in a directory without one, whose name begins with
//! `.queued-`, or `.sent-` once it is sent.
//!
//! [`Recorder`] writes exchanges and refuses secrets; [`Cassette`] looks exchanges up. [`key`] decides which
//! requests are equal, `diff` finds the differences between two requests, `secrets` recognises secrets,
//! `queue` keeps requests until their answers come, and `files` reads and writes the three files.

mod diff;
mod files;
mod key;
mod queue;
mod recorder;
mod replay;
mod secrets;

use crate::provider::reading::Reading;
use crate::provider::{Answer, Failure};
pub use files::{REQUEST_HEADERS, REQUEST_ID, RESPONSE_HEADERS};
pub use key::{canonical_text, key};
pub use queue::{Queue, Waiting};
pub use recorder::Recorder;
pub use replay::{Cassette, LookupError, Miss};

/// One request and its answer. Header names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The URL's path, without the host: `/v1/messages`.
    pub path: String,
    /// The request's headers. Only [`REQUEST_HEADERS`] are recorded.
    pub request_headers: Vec<(String, String)>,
    /// The request's body, as it was sent.
    pub body: String,
    /// The HTTP status, or `None` if there was no answer.
    pub status: Option<u16>,
    /// The answer's headers. Only [`RESPONSE_HEADERS`] are recorded.
    pub headers: Vec<(String, String)>,
    /// The answer's body, or the part of it that arrived.
    pub answer: Vec<u8>,
    /// The lengths, in bytes, of the pieces in which the body arrived. They add up to the length of `answer`.
    pub pieces: Vec<usize>,
    /// The reason why the answer was interrupted or missing.
    pub ended: Option<String>,
}

impl Exchange {
    /// Builds an exchange from the result of [`Reading::so_far`]. A status of 0 means that there was no answer.
    /// `ended` is the reason why the answer was interrupted or missing.
    #[must_use]
    pub fn of(
        path: &str,
        request_headers: &[(String, String)],
        body: &str,
        so_far: (&Answer, &[usize]),
        ended: Option<String>,
    ) -> Exchange {
        let (answer, pieces) = so_far;
        Exchange {
            path: path.to_owned(),
            request_headers: request_headers.to_vec(),
            body: body.to_owned(),
            status: Some(answer.status).filter(|status| *status != 0),
            headers: answer.headers.clone(),
            answer: answer.body.clone(),
            pieces: pieces.to_vec(),
            ended,
        }
    }

    /// Returns true if there was no answer, or one whose status is not 2xx.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.ended.is_some() || !self.status.is_some_and(|status| (200..300).contains(&status))
    }

    /// Replays the answer into `reading`: status and headers, then the body in its original pieces.
    ///
    /// # Errors
    /// Returns the recorded [`Failure`] if the answer was interrupted or missing.
    pub fn play(&self, reading: &mut Reading<'_>) -> Result<(), Failure> {
        if let Some(status) = self.status {
            reading.head(status, self.headers.clone());
            let mut rest = self.answer.as_slice();
            for length in &self.pieces {
                let (piece, later) = rest.split_at((*length).min(rest.len()));
                reading.take(piece);
                rest = later;
            }
            if !rest.is_empty() {
                reading.take(rest);
            }
        }
        match (&self.ended, self.status) {
            (Some(why), _) => Err(Failure::unreachable(why)),
            (None, None) => Err(Failure::unreachable("no answer")),
            (None, Some(_)) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::protocol::Protocol;
    use crate::provider::refusal::Rows;

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    /// Replays an exchange. Returns the answer, its pieces and the outcome.
    fn played(exchange: &Exchange) -> (Answer, Vec<usize>, Result<(), Failure>) {
        let mut show = |_: &str| {};
        let rows = Rows::default();
        let mut reading = Reading::new(Protocol::Anthropic, &rows, &mut show);
        reading.keep_all();
        let outcome = exchange.play(&mut reading);
        let (answer, pieces) = reading.so_far();
        (answer.clone(), pieces.to_vec(), outcome)
    }

    #[test]
    fn a_replay_splits_the_answer_where_the_network_did() {
        let exchange = Exchange {
            status: Some(200),
            headers: vec![header("content-type", "text/event-stream")],
            answer: "data: é\n\n".into(),
            pieces: vec![7, 0, 3],
            ..Exchange::default()
        };
        let (answer, pieces, outcome) = played(&exchange);
        assert_eq!((answer.status, pieces, outcome.is_ok()), (200, vec![7, 0, 3], true));
        assert_eq!(Exchange::of("", &[], "", (&answer, &[7, 0, 3]), None), exchange);
    }

    #[test]
    fn an_interrupted_answer_is_replayed_as_interrupted() {
        let ended = Some("connection reset".to_owned());
        let cut = Exchange {
            status: Some(200),
            answer: b"{\"a".to_vec(),
            pieces: vec![3],
            ended: ended.clone(),
            ..Exchange::default()
        };
        let (answer, _, outcome) = played(&cut);
        assert_eq!(answer.body, b"{\"a");
        let failure = outcome.unwrap_err();
        assert_eq!((failure.message.as_str(), failure.retryable), ("connection reset", true));
        let none = Exchange { ended, ..Exchange::default() };
        let (answer, pieces, outcome) = played(&none);
        assert_eq!((answer.status, pieces.len(), outcome.is_err()), (0, 0, true));
        assert_eq!(Exchange::of("", &[], "", (&answer, &[]), none.ended.clone()), none);
    }
}
