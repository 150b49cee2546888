//! The sources of answers: a provider, recordings, or the answers that came in batches.

use anyhow::Context;
use clawutils::cli::options::CassetteArgs;
use clawutils::exit::{Exit, fail};
use clawutils::provider::address::path;
use clawutils::provider::cassette::{Cassette, Exchange, LookupError, Miss, Queue, Recorder};
use clawutils::provider::endpoint::Endpoint;
use clawutils::provider::{ModelRequest, estimated};
use clawutils::transcript;
use std::path::{Path, PathBuf};

/// The options for the source of the answers.
#[derive(Clone, Debug, clap::Args)]
pub struct SourceArgs {
    /// The directories of recordings to write or to replay.
    #[command(flatten)]
    pub cassette: CassetteArgs,
    /// Answer from the recordings in directory DIR, and queue a request that has no answer there for --batch
    #[arg(long, value_name = "DIR", conflicts_with_all = ["record", "replay", "stream", "recording", "count", "compact"])]
    pub queue: Option<PathBuf>,
}

impl SourceArgs {
    /// Returns true if the provider answers, and nothing is recorded.
    pub(super) fn is_live(&self) -> bool {
        let CassetteArgs { record, replay, .. } = &self.cassette;
        record.is_none() && replay.is_none() && self.queue.is_none()
    }
}

/// The source of the answers: a provider (including the offline one), or recordings.
pub(super) enum AnswerSource {
    /// The provider, and a recorder if the exchanges are recorded.
    Live(Option<Recorder>),
    /// Recordings.
    Replay(Cassette),
    /// The answers that came in batches, and the queue of the requests without one.
    Queue(Queued),
}

/// A cassette whose missing answers come in batches.
pub(super) struct Queued {
    cassette: Cassette,
    queue: Queue,
    recorder: Recorder,
    /// True if a request was queued.
    pub(super) is_waiting: bool,
}

impl AnswerSource {
    /// Opens the source that the options name. If a request was recorded several times, a replay begins with
    /// recording number `recording`. Only a live call needs the endpoint's key and address, so only then are they read.
    ///
    /// # Errors
    /// See [`Endpoint::open`] and [`Cassette::open`].
    pub(super) fn open(
        args: &SourceArgs,
        recording: u64,
        endpoint: &mut Endpoint,
    ) -> anyhow::Result<AnswerSource> {
        if let Some(dir) = &args.queue {
            return Queued::open(dir).map(AnswerSource::Queue);
        }
        let CassetteArgs { record, replay } = &args.cassette;
        if let Some(dir) = replay {
            return Ok(AnswerSource::Replay(
                Cassette::open(dir)?.skip(recording.saturating_sub(1)),
            ));
        }
        endpoint.open()?;
        let keys = || endpoint.secret().map(str::to_owned).into_iter().collect();
        Ok(AnswerSource::Live(record.as_ref().map(|dir| Recorder::new(dir, keys()))))
    }

    /// Checks that a request may be sent: a request that will be recorded must not contain a secret.
    ///
    /// # Errors
    /// Status 65 if the request seems to contain a secret.
    pub(super) fn check(&self, body: &str) -> anyhow::Result<()> {
        let recorder = match self {
            AnswerSource::Live(recorder) => recorder.as_ref(),
            AnswerSource::Replay(_) => None,
            AnswerSource::Queue(queued) => Some(&queued.recorder),
        };
        match recorder.map(|recorder| recorder.check(body)) {
            Some(Err(why)) => fail(Exit::Data, format!("cannot record, so nothing is sent: {why}")),
            _ => Ok(()),
        }
    }

    /// Returns the recorded answer to a request. `None` if the answer comes from a provider.
    pub(super) fn recorded(
        &mut self,
        endpoint: &Endpoint,
        url: &str,
        request: &ModelRequest<'_, '_>,
        body: &str,
    ) -> Option<Result<Exchange, LookupError>> {
        match self {
            AnswerSource::Live(_) => None,
            AnswerSource::Replay(cassette) => {
                // What is asked of a prompt cache does not change the answer, so a recording that asks for none fits, too.
                let plain = ModelRequest { cache: None, ..*request };
                Some(match cassette.next(path(url), body) {
                    Err(LookupError::Miss(_)) if request.cache.is_some() => {
                        cassette.next(path(url), &endpoint.protocol.body(&plain))
                    }
                    found => found,
                })
            }
            AnswerSource::Queue(queued) => Some(match queued.cassette.next(path(url), body) {
                Err(LookupError::Miss(miss)) => queued.miss(endpoint, url, request, body, miss),
                found => found,
            }),
        }
    }
}

impl Queued {
    fn open(dir: &Path) -> anyhow::Result<Queued> {
        let made = transcript::make_directory(dir);
        made.with_context(|| format!("cannot create '{}'", dir.display()))?;
        let (queue, recorder) = (Queue::of(dir), Recorder::new(dir, Vec::new()));
        // What an earlier call has queued is not asked for now.
        queue.clear(false)?;
        Ok(Queued { cassette: Cassette::open(dir)?, queue, recorder, is_waiting: false })
    }

    /// Queues a request that has no answer, unless it failed before.
    fn miss(
        &mut self,
        endpoint: &Endpoint,
        url: &str,
        request: &ModelRequest<'_, '_>,
        body: &str,
        miss: Miss,
    ) -> Result<Exchange, LookupError> {
        if let Some(failure) = self.cassette.failure(&miss.key) {
            return Ok(failure);
        }
        let headers = endpoint.headers().into_iter();
        let exchange = Exchange {
            path: path(url).to_owned(),
            request_headers: headers.map(|(name, value)| (name.to_owned(), value)).collect(),
            body: body.to_owned(),
            ..Exchange::default()
        };
        let most = (request.model, estimated::most(request));
        let added = self.queue.add(&self.recorder, &exchange, miss.given + 1, most);
        added.map_err(LookupError::Broken)?;
        self.is_waiting = true;
        Err(LookupError::Miss(miss))
    }
}
