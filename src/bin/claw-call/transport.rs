//! Sends requests and receives their answers: over the network, or from the offline provider or recordings instead.

use crate::listening::{AnswerEvent, Listening};
use crate::refused_features::{self, note_error};
use crate::source::AnswerSource;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{Log, now};
use clawutils::exit;
use clawutils::provider::address::path;
use clawutils::provider::call::{Ask, Transport};
use clawutils::provider::cassette::{Exchange, LookupError};
use clawutils::provider::collect::Remaining;
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::reading::Reading;
use clawutils::provider::refusal::{FailureClass, Feature};
use clawutils::provider::{Failure, ModelRequest, offline};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The longest wait for the optional parts of an answer: the rest of a refusal, or the usage that a stream reports
/// after its stop reason.
const LINGER: Duration = Duration::from_secs(5);
/// The capacity of the queue of received parts.
const QUEUE_LENGTH: usize = 8;

/// The transport of a call.
pub(super) struct Network<'n> {
    pub(super) source: &'n mut AnswerSource,
    pub(super) endpoint: &'n Endpoint,
    pub(super) model: &'n ModelArgs,
    pub(super) timeout: Duration,
    pub(super) log: Log,
    /// The size of the body that was sent last, in bytes.
    pub(super) sent_bytes: u64,
    /// The signal that interrupted the reading of an answer.
    pub(super) stopped: Option<i32>,
    /// The error, if a recording could not be read.
    pub(super) broken: Option<anyhow::Error>,
    /// The time limit of the call, and the moment at which it expires.
    pub(super) deadline: Option<(Duration, Instant)>,
}

impl Network<'_> {
    /// Returns true if a request was queued, to be sent in a batch.
    pub(super) fn is_queued(&self) -> bool {
        matches!(&self.source, AnswerSource::Queue(queued) if queued.is_waiting)
    }

    /// Returns true if the answers come from a provider's server.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.source, AnswerSource::Live(_)) && !self.endpoint.provider.is_offline()
    }
}

impl Transport for Network<'_> {
    fn send(
        &mut self,
        ask: Ask,
        request: &ModelRequest<'_, '_>,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        let endpoint = self.endpoint;
        self.sent_bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
        let url = &endpoint.url(ask, request.stream);
        if let Some(found) = self.source.recorded(endpoint, url, request, body) {
            let missed = |why| Failure::new(FailureClass::NotRecorded, "replay", why);
            return match found {
                Ok(found) => found.play(reading),
                Err(LookupError::Miss(miss)) => Err(missed(miss.to_string())),
                Err(LookupError::Broken(error)) => {
                    let failure = missed(exit::text(&error));
                    self.broken = Some(error);
                    Err(failure)
                }
            };
        }
        if matches!(self.source, AnswerSource::Live(Some(_))) {
            reading.keep_all();
        }
        let outcome = match endpoint.provider.is_offline() {
            true => {
                let answer =
                    offline::answer(ask, request, request.window.unwrap_or(offline::WINDOW));
                reading.head(answer.status, answer.headers);
                reading.take(&answer.body);
                Ok(())
            }
            false => {
                let _progress = self.log.wait_for(format!("waiting for {}", request.model));
                self.exchange(url, body, reading)
            }
        };
        if let AnswerSource::Live(Some(recorder)) = self.source
            && self.stopped.is_none()
        {
            let headers = endpoint.headers().into_iter();
            let headers: Vec<_> = headers.map(|(name, value)| (name.to_owned(), value)).collect();
            let ended = outcome.as_ref().err().map(|failure| failure.message.clone());
            let exchange = Exchange::of(path(url), &headers, body, reading.so_far(), ended);
            if let Err(error) = recorder.write(&exchange) {
                // This is not fatal: the answer has arrived and has been paid for.
                self.log.note(&exit::text(&error));
            }
        }
        outcome
    }

    fn left(&self) -> f64 {
        let left = |(_, end): (_, Instant)| end.saturating_duration_since(Instant::now());
        self.deadline.map_or(f64::INFINITY, |deadline| left(deadline).as_secs_f64())
    }

    fn wait(&mut self, seconds: f64) {
        // A replay does not wait.
        if matches!(self.source, AnswerSource::Live(_)) {
            let pause = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            let end = Instant::now() + pause;
            let left = move || end.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
            let _progress = self.log.progress(move || Some(format!("next try in {} s", left())));
            std::thread::sleep(pause);
        }
    }

    fn now(&self) -> f64 {
        now().unwrap_or_default()
    }

    fn random(&mut self) -> f64 {
        // The hasher's seed is random in each process, which is enough to spread retries.
        RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
    }

    fn learn(&mut self, feature: Feature, with: Option<Feature>) {
        if self.is_live() {
            note_error(refused_features::learn(feature, with, self.model), self.log);
        }
    }

    fn report(&mut self, text: &str) {
        self.log.note(&self.endpoint.without_key(text));
    }
}

/// Returns the failure for a call that was stopped and must not be retried.
fn stopped(why: &str) -> Failure {
    Failure { retryable: false, ..Failure::unreachable(why) }
}

impl Network<'_> {
    /// Sends a body, and reads the answer until it is complete, the connection is lost, the deadline passes, or a
    /// signal arrives.
    fn exchange(
        &mut self,
        url: &str,
        body: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), Failure> {
        use clawutils::provider::http::{self, AnswerPart, Request};
        use clawutils::provider::question::Content;
        let endpoint = self.endpoint;
        let request = Request {
            url: url.to_owned(),
            is_local: endpoint.is_local,
            headers: endpoint.headers(),
            body: Some(Content::json(body.to_owned())),
            timeout: self.timeout,
            certificates: endpoint.certificates().map(<[u8]>::to_vec),
        };
        let (sender, events) = mpsc::sync_channel(QUEUE_LENGTH);
        let _listening = Listening::new(sender.clone());
        std::thread::spawn(move || {
            let outcome = http::send(request, |part| sender.send(AnswerEvent::Part(part)).is_ok());
            // This fails only if the reader has stopped.
            let _ = sender.send(AnswerEvent::End(outcome.map_err(Box::new)));
        });
        // The moment to stop waiting for optional parts of the answer.
        let mut enough = None;
        loop {
            match reading.remaining() {
                Remaining::None => return Ok(()),
                Remaining::Optional => enough = enough.or(Some(Instant::now() + LINGER)),
                Remaining::Required => enough = None,
            }
            let end = self.deadline.map(|(_, end)| end);
            let until = enough.into_iter().chain(end).min();
            let wait = until.map_or(Duration::MAX, |until| until - Instant::now());
            match events.recv_timeout(wait) {
                Ok(AnswerEvent::Part(AnswerPart::Head(status, headers))) => {
                    reading.head(status, headers)
                }
                Ok(AnswerEvent::Part(AnswerPart::Body(piece))) => {
                    reading.take(&piece);
                }
                Ok(AnswerEvent::End(outcome)) => return outcome.map_err(|failure| *failure),
                Ok(AnswerEvent::Signal(signal)) => {
                    self.stopped = Some(signal);
                    return Err(stopped("interrupted by a signal"));
                }
                Err(RecvTimeoutError::Timeout) if enough == until => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    let most = self.deadline.map_or(0.0, |(most, _)| most.as_secs_f64());
                    return Err(stopped(&format!(
                        "no complete answer within {most} s (--deadline)"
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::unreachable("the thread of the connection ended"));
                }
            }
        }
    }
}
