//! The directories whose requests are sent: which requests wait, and where their answers go.

use clawutils::exit::{Exit, fail};
use clawutils::provider::cassette::{Exchange, Queue, Recorder, Waiting};
use clawutils::provider::question::JSON;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A request: the name of its directory, and its place in it.
pub(super) type Place = (String, Waiting);

/// The directories of answers.
pub(super) struct Store {
    /// The directory that they are in.
    pub(super) dir: PathBuf,
    /// The names of those whose requests are wanted.
    pub(super) dirs: BTreeSet<String>,
    pub(super) recorder: Recorder,
}

impl Store {
    /// Returns the queue of a directory.
    pub(super) fn of(&self, name: &str) -> Queue {
        Queue::of(&self.dir.join(name))
    }

    /// Returns the wanted requests that were sent, or those that were not.
    pub(super) fn waiting(&self, is_sent: bool) -> anyhow::Result<Vec<Place>> {
        let mut places = Vec::new();
        for dir in &self.dirs {
            let waiting = self.of(dir).waiting()?.into_iter();
            let waiting = waiting.filter(|waiting| waiting.is_sent == is_sent);
            places.extend(waiting.map(|waiting| (dir.clone(), waiting)));
        }
        Ok(places)
    }

    /// Marks a request of the ledger as sent, or as queued.
    pub(super) fn mark(&self, request: &str, is_sent: bool) -> anyhow::Result<()> {
        let (dir, name) = request.split_once('/').unwrap_or_default();
        self.of(dir).mark(name, is_sent)
    }

    /// Stores the answer to a request of the ledger, unless it has one.
    pub(super) fn answer(
        &self,
        request: &str,
        answer: impl FnOnce(Exchange) -> Exchange,
    ) -> anyhow::Result<()> {
        let (dir, name) = request.split_once('/').unwrap_or_default();
        self.of(dir).answer(&self.recorder, name, answer)
    }
}

/// Reads the names of directories in `dir`, one per line.
///
/// # Errors
/// Status 65 if a line is not the name of a directory there: a mistyped name would pass for one without requests.
pub(super) fn directories(
    dir: &Path,
    input: &[(Arc<str>, Vec<u8>)],
) -> anyhow::Result<BTreeSet<String>> {
    let mut dirs = BTreeSet::new();
    for (name, bytes) in input {
        for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.is_empty()) {
            // A name from outside is never a path.
            let why = if line.starts_with('.') || line.contains(['/', '\0']) {
                "is not the name of a directory".to_owned()
            } else if !dir.join(line).is_dir() {
                format!("is not a directory in '{}'", dir.display())
            } else {
                dirs.insert(line.to_owned());
                continue;
            };
            let advice = "give the names that --queue was used with, one per line";
            return fail(Exit::Data, format!("cannot use '{name}': '{line}' {why}; {advice}"));
        }
    }
    Ok(dirs)
}

/// Returns what adds an answer to a request.
pub(super) fn answered(status: u16, body: String) -> impl FnOnce(Exchange) -> Exchange {
    move |request| Exchange {
        status: Some(status),
        headers: vec![("content-type".to_owned(), JSON.to_owned())],
        pieces: vec![body.len()],
        answer: body.into_bytes(),
        ..request
    }
}

/// Returns what adds to a request the reason why it has no answer.
pub(super) fn none(why: String) -> impl FnOnce(Exchange) -> Exchange {
    move |request| Exchange { ended: Some(format!("no answer from the batch: {why}")), ..request }
}
