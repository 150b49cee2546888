//! The answers that come in batches: each attempt has a directory of recordings beside the state file. `claw-call --queue`
//! answers from it or queues a request, and `claw-call --batch` sends what is queued.

use crate::call::client::Client;
use crate::run::lock;
use crate::state::answers_beside;
use anyhow::Context;
use clawutils::exit::{Exit, fail};
use clawutils::provider::cassette::Queue;
use clawutils::record::digest;
use clawutils::transcript;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The options for batches.
#[derive(Clone, Debug, clap::Args)]
pub struct BatchArgs {
    /// Send the requests through the provider's batch service, at half the price, and wait for hours; the answers are kept
    /// beside the file of --state
    #[arg(long, requires = "state", conflicts_with_all = ["record", "replay"])]
    pub batch: bool,
    /// Send again what has failed or expired in a batch
    #[arg(long, requires = "batch")]
    pub resend: bool,
    /// Pause before looking again whether the batches have ended, in seconds (default: 60)
    #[arg(long, value_name = "SECONDS", requires = "batch", value_parser = clawutils::settings::values::seconds)]
    pub poll: Option<Duration>,
}

/// The directories of answers, and how a run uses them.
#[derive(Debug)]
pub struct Batch {
    dir: PathBuf,
    /// The options for `claw-call --batch`.
    options: Vec<String>,
    /// True until what has failed is queued again.
    resends: AtomicBool,
    /// True until all answers are there.
    asks: AtomicBool,
    asked: Mutex<Asked>,
}

/// What one pass over the transcripts has asked for.
#[derive(Debug, Default)]
struct Asked {
    /// The directories of all attempts.
    all: BTreeSet<String>,
    /// True if one has no answer yet.
    is_missing: bool,
}

impl Batch {
    /// Returns the batches whose answers are beside the state file.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the directory cannot be made.
    pub fn beside(
        state: &Path,
        args: &BatchArgs,
        deadline: Option<Duration>,
    ) -> anyhow::Result<Batch> {
        let dir = answers_beside(state);
        let made = transcript::make_directory(&dir);
        made.with_context(|| format!("cannot create '{}'", dir.display()))?;
        let option = |name: &str, time: Duration| format!("--{name}={}", time.as_secs_f64());
        let times = [("poll", args.poll), ("deadline", deadline)];
        let times = times.into_iter().filter_map(|(name, time)| Some(option(name, time?)));
        Ok(Batch {
            options: times.collect(),
            dir,
            resends: AtomicBool::new(args.resend),
            asks: AtomicBool::new(true),
            asked: Mutex::default(),
        })
    }

    /// Returns the directory of the answers to an attempt: one of several at the reply `id` of the transcript at `path`.
    ///
    /// # Errors
    /// Fails with 74 or 77 if a failure cannot be removed.
    pub fn answers(&self, path: &Path, id: &str, attempt: u64) -> anyhow::Result<PathBuf> {
        let name = digest(&format!("{}\0{id}\0{attempt}", path.display()));
        let dir = self.dir.join(&name);
        if self.resends.load(Ordering::Relaxed) {
            Queue::of(&dir).clear(true)?;
        }
        lock(&self.asked).all.insert(name);
        Ok(dir)
    }

    /// Notes that an attempt has no answer yet.
    pub fn miss(&self) {
        lock(&self.asked).is_missing = true;
    }

    /// Returns true until all answers are there.
    pub fn asks(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    /// Sends what is queued, and waits for the answers. They may lead to further requests, so another pass asks for them.
    ///
    /// # Errors
    /// Fails with the status of `claw-call`.
    pub fn get(&self, client: &Client) -> anyhow::Result<()> {
        self.resends.store(false, Ordering::Relaxed);
        let Asked { all, is_missing } = std::mem::take(&mut *lock(&self.asked));
        self.asks.store(is_missing, Ordering::Relaxed);
        if !is_missing {
            return Ok(());
        }
        // A call that failed before it was queued made no directory.
        let queued = all.iter().filter(|name| self.dir.join(name).is_dir());
        let names: String = queued.flat_map(|name| [name, "\n"]).collect();
        match client.batch(&self.dir, &self.options, names)? {
            Exit::Done => Ok(()),
            exit => fail(
                exit,
                "no reports, because answers are missing; see the message of claw-call above",
            ),
        }
    }
}
