//! Asks the provider something other than a reply: a question whose answer is read as it arrives, with limits on its size
//! and on the time.

use clawutils::cli::now;
use clawutils::provider::Failure;
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::http::{self, AnswerPart, Request};
use clawutils::provider::question::Question;
use clawutils::provider::refusal::Rows;
use std::time::{Duration, Instant};

/// An endpoint to ask, and the time that is left for it.
pub(super) struct Asking<'e> {
    pub(super) endpoint: &'e Endpoint,
    /// The longest wait for the beginning of an answer, and for each piece of it.
    pub(super) timeout: Duration,
    /// The moment at which the time is up.
    pub(super) until: Option<Instant>,
    pub(super) rows: Rows,
}

/// The reason why there is no answer.
pub(super) enum NoAnswer {
    /// The time was up.
    Late,
    /// The answer is longer than this many bytes.
    TooLong(usize),
    /// The server was not reached, or the connection was lost.
    Failed(Box<Failure>),
}

/// An answer of the provider's server.
pub(super) struct TextAnswer {
    /// The HTTP status.
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The body.
    pub(super) text: String,
}

impl Asking<'_> {
    /// Returns the answer to a question. It must arrive before the time is up, and within the timeout if there is no end.
    pub(super) fn answer(&self, question: &Question, most: usize) -> Result<TextAnswer, NoAnswer> {
        // An answer may arrive in pieces for ever.
        let end = self.until.or_else(|| Instant::now().checked_add(self.timeout));
        let mut body = Vec::new();
        let head = self.stream(question, end, &mut |_, piece| {
            body.extend_from_slice(piece);
            body.len() <= most
        })?;
        if body.len() > most {
            return Err(NoAnswer::TooLong(most));
        }
        Ok(TextAnswer { text: String::from_utf8_lossy(&body).into_owned(), ..head })
    }

    /// Passes the body of the answer to `each` as it arrives, with its status, until `each` returns false. The returned answer
    /// has no body.
    pub(super) fn stream(
        &self,
        question: &Question,
        end: Option<Instant>,
        each: &mut dyn FnMut(u16, &[u8]) -> bool,
    ) -> Result<TextAnswer, NoAnswer> {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(NoAnswer::Late);
        }
        let request = Request {
            url: question.url.clone(),
            is_local: self.endpoint.is_local,
            headers: self.endpoint.headers(),
            body: question.body.clone(),
            timeout: left.into_iter().chain([self.timeout]).min().unwrap_or(self.timeout),
            certificates: self.endpoint.certificates().map(<[u8]>::to_vec),
        };
        let is_over = || end.is_some_and(|end| Instant::now() >= end);
        let mut head = TextAnswer { status: 0, headers: Vec::new(), text: String::new() };
        let sent = http::send(request, |part| {
            let wants_more = match part {
                AnswerPart::Head(status, headers) => {
                    (head.status, head.headers) = (status, headers);
                    true
                }
                AnswerPart::Body(piece) => each(head.status, &piece),
            };
            wants_more && !is_over()
        });
        match sent {
            _ if is_over() => Err(NoAnswer::Late),
            Err(failure) => Err(NoAnswer::Failed(Box::new(failure))),
            Ok(()) => Ok(head),
        }
    }
}

impl TextAnswer {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the failure that the answer is: a refusal, or a successful answer that `why` cannot be used.
    pub(super) fn failure(&self, rows: &Rows, why: &str) -> anyhow::Result<Failure> {
        if self.is_success() {
            return Ok(Failure::broken(self.status, why));
        }
        let header = |name: &str| {
            let found = self.headers.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.clone())
        };
        Ok(Failure::classify(self.status, &header, self.text.as_bytes(), now()?, rows))
    }
}
