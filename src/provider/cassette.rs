//! Recorded exchanges with a provider, kept in a folder and found again by the request.
//!
//! A cassette is a folder with a folder for each exchange, and that has three files:
//!
//! - `request.json`: `method`, `path` (without the host), `headers`, and `body`, which is the request's
//!   own JSON as it was sent. A body that is no JSON, or is a JSON string, is kept as a JSON string of
//!   its text.
//! - `response.json`: `status`, `headers`, `pieces` (how long the pieces were in which the answer came,
//!   in bytes) and, if the answer broke off, why: `ended`. Without any answer `status` is null.
//! - `body`: the answer's bytes.
//!
//! A replay gives the pieces as they came, so a stream is cut where the network cut it. Recordings that
//! were written by hand may leave out `pieces`, and their folders may have any name.
//!
//! [`Recorder`] writes exchanges and lets no secret through, [`Cassette`] finds them again. Which
//! requests are the same says [`key`], in what two differ `diff`, what a secret looks like `secrets`,
//! and how the three files are spelled `files`.

mod diff;
mod files;
mod key;
mod recorder;
mod replay;
mod secrets;

use crate::provider::reading::Reading;
use crate::provider::{Answer, Failure};
pub use files::{REQUEST_HEADERS, REQUEST_ID, RESPONSE_HEADERS};
pub use key::key;
pub use recorder::Recorder;
pub use replay::{Cassette, Miss};

/// One request and what came of it. Names of headers are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The path of the address, without the host: `/v1/messages`.
    pub path: String,
    /// The request's headers. Only [`REQUEST_HEADERS`] are written.
    pub request_headers: Vec<(String, String)>,
    /// The request's body, as it was sent.
    pub body: String,
    /// The HTTP status; none when there was no answer.
    pub status: Option<u16>,
    /// The answer's headers. Only [`RESPONSE_HEADERS`] are written.
    pub headers: Vec<(String, String)>,
    /// The answer's body; what came of it, if it broke off.
    pub answer: Vec<u8>,
    /// How long the pieces were in which the answer's body came, in bytes. Together they are as long as
    /// `answer`.
    pub pieces: Vec<usize>,
    /// Why the answer broke off, or why there was none.
    pub ended: Option<String>,
}

impl Exchange {
    /// An exchange as [`Reading::so_far`] tells it. An answer with the status 0 is none; `ended` says why
    /// it broke off, or why there was none.
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

    /// Gives the answer to `reading`: status and headers, then the body in the pieces in which it came.
    ///
    /// # Errors
    /// The [`Failure`] that it was: why the answer broke off, or that there was none.
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
    use crate::provider::failure::Rows;
    use crate::provider::protocol::Protocol;

    fn header(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    /// What a reading has after the exchange was played to it, and how that ended.
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
    fn a_replay_cuts_the_answer_where_the_network_did() {
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
    fn an_answer_that_broke_off_breaks_off_again() {
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
