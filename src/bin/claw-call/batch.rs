//! `--batch`: sends queued requests as batches, waits for them, and stores the answers as recordings.
//!
//! Each batch is noted in the ledger before it is sent. A batch whose id is not known, because the process was killed or
//! the answer was lost, is looked for in the service's list, and sent again only if it has been missing
//! there for a while.

mod limits;
mod results;
mod service;
mod store;

use crate::args::{CallArgs, named};
use crate::asking::{Asking, TextAnswer};
use crate::batch::results::Results;
use crate::batch::service::Service;
use crate::batch::store::{Place, Store, directories, none};
use crate::prices::Prices;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{Log, now};
use clawutils::exit::{Exit, fail};
use clawutils::json::{Object, on_one_line};
use clawutils::provider::Failure;
use clawutils::provider::address::{self, path};
use clawutils::provider::batch::ledger::{Entry, Ledger};
use clawutils::provider::batch::{self, Batch, MAX_PAGES, Phase};
use clawutils::provider::cassette::{Exchange, Recorder};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait without `--deadline`. The services give up a batch after one or two days.
const LONGEST: Duration = Duration::from_secs(72 * 3600);
/// The difference of two clocks, in seconds, that is allowed for when a batch is looked for by its time.
const SKEW: f64 = 3600.0;
/// The time for which a batch must be missing in the list before it is sent again, unless `--timeout` is less. The service may
/// still be busy with a request whose answer was lost.
const SETTLED: Duration = Duration::from_secs(60);

/// Sends the queued requests in the directories that the input names, waits, and stores the answers.
///
/// # Errors
/// Status 78 if the provider has no batch service, 5 if a limit on tokens or cost does not allow the batches, 69 or 76 if the
/// provider fails or refuses, 75 if the ledger is in use, 65 if the input names something else than directories of
/// `dir`, 74 if `dir` does not exist or the answers cannot be stored.
pub fn batch(
    args: &CallArgs,
    dir: &Path,
    model: &ModelArgs,
    input: &[(Arc<str>, Vec<u8>)],
    log: Log,
) -> anyhow::Result<Exit> {
    let name = named(model)?;
    let mut endpoint = args.connection.endpoint(model)?;
    let service = endpoint.batches(&name)?;
    let dirs = directories(dir, input)?;
    endpoint.open()?;
    let keys = endpoint.secret().map(str::to_owned).into_iter().collect();
    let store = Store { dir: dir.to_owned(), dirs, recorder: Recorder::new(dir, keys) };
    // A batch has one header for all of its requests.
    for (name, waiting) in store.waiting(false)? {
        let headers = store.of(&name).read(&waiting)?.request_headers.into_iter();
        let betas = headers.filter(|(name, _)| name == "anthropic-beta");
        betas.for_each(|(_, ids)| ids.split(',').for_each(|id| endpoint.request_beta(id)));
    }
    let end = Instant::now().checked_add(args.deadline.unwrap_or(LONGEST));
    let rows = args.rows.failures.read()?;
    let asking = Asking { endpoint: &endpoint, timeout: args.patience.timeout, until: end, rows };
    let mut batches = Batches {
        args,
        service: Service { asking, batches: &*service },
        store,
        place: format!("{} {}", service.name(), address::place(&endpoint.base)),
        ledger: Ledger::open(dir, || {
            let _progress =
                log.wait_for("waiting for another process that waits for these batches");
            sleep(args.batches.poll, end)
        })?,
        missing: HashMap::new(),
        failures: 0,
        prices: Prices::read(&args.spent.limits, model)?,
        log,
    };
    batches.restore()?;
    batches.run(end)
}

/// The batches of a ledger at one service.
struct Batches<'b> {
    args: &'b CallArgs,
    service: Service<'b>,
    store: Store,
    /// The service and its address.
    place: String,
    ledger: Ledger,
    /// Since when a batch is missing in the service's list, by name.
    missing: HashMap<String, Instant>,
    /// The number of consecutive failures to send.
    failures: u32,
    prices: Prices,
    log: Log,
}

impl Batches<'_> {
    /// Marks the requests of all batches as sent, in case that a process was killed before it did so.
    fn restore(&self) -> anyhow::Result<()> {
        for request in self.ledger.pending(&self.place).iter().flat_map(|entry| &entry.requests) {
            self.store.mark(request, true)?;
        }
        Ok(())
    }

    fn run(&mut self, end: Option<Instant>) -> anyhow::Result<Exit> {
        loop {
            self.send()?;
            self.look()?;
            let pending = self.ledger.pending(&self.place);
            let requests: usize = pending.iter().map(|entry| entry.requests.len()).sum();
            if requests == 0 && self.store.waiting(false)?.is_empty() {
                return self.finish();
            }
            let progress = self.log.wait_for(format!("waiting for {requests} requests in a batch"));
            if !sleep(self.args.batches.poll, end) {
                drop(progress);
                self.log.note(&format!(
                    "no answer yet to {requests} requests in a batch; run the same command again later"
                ));
                return Ok(Exit::TryLater);
            }
        }
    }

    /// Checks that all wanted requests have answers. Those of a batch at another address have none.
    fn finish(&self) -> anyhow::Result<Exit> {
        match self.store.waiting(true)?.first() {
            None => Ok(Exit::Done),
            Some((dir, _)) => {
                let text = format!(
                    "a request in '{}' is in a batch at another address; use the settings that it was sent with, or remove the directory",
                    self.store.dir.join(dir).display()
                );
                fail(Exit::Config, text)
            }
        }
    }

    /// Sends the wanted requests that were not sent.
    fn send(&mut self) -> anyhow::Result<()> {
        let waiting = self.store.waiting(false)?;
        if waiting.is_empty() {
            return Ok(());
        }
        limits::check(
            (&self.args.spent.limits, &self.prices),
            &self.store,
            self.service.asking.endpoint,
            &waiting,
        )?;
        let most = batch::limits(self.service.batches);
        let mut sizes = Vec::with_capacity(waiting.len());
        for (dir, request) in &waiting {
            let queue = self.store.of(dir);
            let size = queue.size(&request.name)?;
            if !batch::fits(size, most) {
                queue.mark(&request.name, true)?;
                let why = format!(
                    "the request has {size} bytes, and a batch of {} takes at most {}",
                    self.service.batches.name(),
                    most.bytes
                );
                queue.answer(&self.store.recorder, &request.name, none(why))?;
            }
            sizes.push(size);
        }
        for range in batch::divide(&sizes, most) {
            self.send_batch(&waiting[range])?;
        }
        Ok(())
    }

    /// Sends one batch.
    fn send_batch(&mut self, requests: &[Place]) -> anyhow::Result<()> {
        let name = format!("claw-{:016x}", RandomState::new().build_hasher().finish());
        let entry = Entry {
            name: name.clone(),
            time: now()?,
            place: self.place.clone(),
            requests: requests.iter().map(|(dir, it)| format!("{dir}/{}", it.name)).collect(),
            ..Entry::default()
        };
        let mut entries = Vec::with_capacity(requests.len());
        for (number, (dir, request)) in requests.iter().enumerate() {
            let exchange = self.store.of(dir).read(request)?;
            self.check_path(dir, &exchange)?;
            entries.push(
                self.service
                    .batches
                    .entry(&format!("{name}-{number}"), &on_one_line(&exchange.body)),
            );
        }
        self.ledger.begin(&entry)?;
        entry.requests.iter().try_for_each(|request| self.store.mark(request, true))?;
        let _progress =
            self.log.wait_for(format!("sending a batch of {} requests", requests.len()));
        let file = match self
            .service
            .batches
            .upload(&name, &entries)
            .map(|question| self.service.text(&question))
        {
            None => None,
            Some(Ok(answer)) => match id(&answer) {
                Some(id) => Some(id),
                None => return self.refused(&entry, &self.service.unusable(&answer)?, true),
            },
            // A file that is not used costs nothing.
            Some(Err(failure)) => return self.refused(&entry, &failure, true),
        };
        let question = self.service.batches.create(&name, &entries, file.as_deref());
        drop(entries);
        match self.service.text(&question) {
            Ok(answer) => match self.service.described(&answer) {
                Some(batch) => {
                    self.failures = 0;
                    self.ledger.sent(&name, &batch.id)
                }
                None => self.refused(&entry, &self.service.unusable(&answer)?, false),
            },
            Err(failure) => {
                let is_certain =
                    failure.status.is_some_and(|it| (400..500).contains(&it) && it != 408);
                self.refused(&entry, &failure, is_certain)
            }
        }
    }

    /// Checks that a request was queued for the endpoint of this call.
    fn check_path(&self, dir: &str, request: &Exchange) -> anyhow::Result<()> {
        let own = path(&self.service.asking.endpoint.urls.reply);
        if request.path == own {
            return Ok(());
        }
        let text = format!(
            "a request in '{}' was queued for '{}', not for '{own}'; use the same provider and model",
            self.store.dir.join(dir).display(),
            request.path
        );
        fail(Exit::Config, text)
    }

    /// Reports a batch that was not accepted. If that is certain, its requests are queued again, and the failure ends the run
    /// unless it may pass. If it is not certain, the batch is looked for in the service's list.
    fn refused(
        &mut self,
        entry: &Entry,
        failure: &Failure,
        is_certain: bool,
    ) -> anyhow::Result<()> {
        if is_certain {
            self.abandon(entry)?;
        }
        self.failures += 1;
        if self.failures > self.args.patience.max_retries || is_certain && !failure.retryable {
            return self.fail(failure, "cannot send a batch");
        }
        self.report(&format!("cannot send a batch: {failure}; trying again"));
        Ok(())
    }

    /// Queues the requests of a batch again that the service does not have.
    fn abandon(&mut self, entry: &Entry) -> anyhow::Result<()> {
        entry.requests.iter().try_for_each(|request| self.store.mark(request, false))?;
        self.ledger.over(&entry.name)
    }

    /// Looks at all batches that have no answers yet.
    fn look(&mut self) -> anyhow::Result<()> {
        for entry in self.ledger.pending(&self.place) {
            match &entry.id {
                None => self.find(&entry)?,
                Some(id) => self.look_at(&entry, id)?,
            }
        }
        Ok(())
    }

    /// Looks for a batch in the service's list. One that is missing there is sent again.
    fn find(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let mut after = None;
        for _ in 0..MAX_PAGES {
            let answer = match self.service.text(&self.service.batches.list(after.as_deref())) {
                Ok(answer) => answer,
                Err(failure) => return self.pause(&failure, "cannot list the batches"),
            };
            let Some((batches, next)) = batch::read_page(self.service.batches, &answer.text) else {
                return self.pause(&self.service.unusable(&answer)?, "cannot list the batches");
            };
            if let Some(batch) = batches.iter().find(|batch| self.may_be(entry, batch)) {
                return self.ledger.found(&entry.name, &batch.id);
            }
            let is_before = |batch: &Batch| batch.created.is_some_and(|it| it < entry.time - SKEW);
            let is_enough =
                self.service.batches.is_newest_first() && batches.last().is_some_and(is_before);
            if next.is_none() || is_enough {
                return self.miss(entry);
            }
            after = next;
        }
        let text = format!(
            "cannot find out whether the batch '{}' was sent: the list of batches is too long; look for it at the provider",
            entry.name
        );
        fail(Exit::Unavailable, text)
    }

    /// Notes that a batch is missing in the service's list. If it has been missing for long enough, it is sent again.
    fn miss(&mut self, entry: &Entry) -> anyhow::Result<()> {
        let now = Instant::now();
        let first = *self.missing.entry(entry.name.clone()).or_insert(now);
        match first < now && first.elapsed() >= SETTLED.min(self.args.patience.timeout) {
            true => self.abandon(entry),
            false => Ok(()),
        }
    }

    /// Returns true if a batch of the list may be the one that was sent. Without a name, one of the same size is a candidate; the
    /// ids in its results will tell.
    fn may_be(&self, entry: &Entry, batch: &Batch) -> bool {
        if self.service.batches.has_names() {
            return batch.name.as_ref() == Some(&entry.name);
        }
        batch.requests == u64::try_from(entry.requests.len()).ok()
            && batch.created.is_none_or(|created| created >= entry.time - SKEW)
            && !self.ledger.knows(&batch.id)
    }

    /// Looks at a batch, and stores its answers if it has ended.
    fn look_at(&mut self, entry: &Entry, id: &str) -> anyhow::Result<()> {
        let answer = match self.service.text(&self.service.batches.state(id)) {
            Ok(answer) => answer,
            Err(failure) => return self.pause(&failure, "cannot look at a batch"),
        };
        let Some(batch) = self.service.described(&answer) else {
            return self.pause(&self.service.unusable(&answer)?, "cannot look at a batch");
        };
        match &batch.phase {
            Phase::Running => Ok(()),
            Phase::Ended(why) => self.store(entry, &batch, why),
        }
    }

    /// Stores the answers of a batch that has ended.
    fn store(&mut self, entry: &Entry, batch: &Batch, why: &str) -> anyhow::Result<()> {
        let (service, store) = (&self.service, &self.store);
        let mut results =
            Results { service, store, entry, is_other: false, is_unreadable: false, error: None };
        for question in service.batches.results(batch) {
            let _progress = self.log.wait_for("reading the results of a batch");
            let outcome = results.read(&question);
            if let Some(error) = results.error.take() {
                return Err(error);
            }
            if let Err(failure) = outcome {
                return self.pause(&failure, "cannot read the results of a batch");
            }
        }
        if results.is_other {
            return self.ledger.other(&entry.name, &batch.id);
        }
        for request in &entry.requests {
            self.store.answer(request, none(why.to_owned()))?;
        }
        self.ledger.over(&entry.name)
    }

    /// Reports a failure that may pass while batches are waited for. Any other ends the run.
    fn pause(&self, failure: &Failure, what: &str) -> anyhow::Result<()> {
        match failure.retryable {
            true => self.report(&format!("{what}: {failure}; trying again")),
            false => return self.fail(failure, what),
        }
        Ok(())
    }

    fn fail<T>(&self, failure: &Failure, what: &str) -> anyhow::Result<T> {
        let text = format!("{what}: {}", failure.final_message());
        fail(failure.exit(), self.service.asking.endpoint.without_key(&text))
    }

    fn report(&self, text: &str) {
        self.log.note(&self.service.asking.endpoint.without_key(text));
    }
}

/// Sleeps for a while, but no longer than until `end`. Returns false if that has passed.
fn sleep(time: Duration, end: Option<Instant>) -> bool {
    let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
    std::thread::sleep(time.min(left));
    !left.is_zero()
}

fn id(answer: &TextAnswer) -> Option<String> {
    Some(Object::parse(answer.text.trim()).ok()?.string("id")?.into_owned())
}
