//! The batch services of providers: requests that can wait, at half the price.
//!
//! A batch is sent, looked at until it has ended, and then its results are read. This module knows the requests and answers
//! of each service; it sends nothing. [`BatchService`] is what the services have in common, and [`LIMITS`] what a batch may
//! hold.
//!
//! Sources, read on 28 November 2026:
//! - Anthropic: `resources/messages/batches.py` and `types/messages/message_batch*.py` of anthropic 2.14.0; the limits are
//!   those of "Batch processing" (platform.claude.com). A batch has no name of its own, and the ids of its requests are shown
//!   only with its results. Results can be read for 29 days.
//! - OpenAI: `resources/batches.py`, `resources/files.py`, `types/batch.py` and `types/batch_create_params.py` of openai
//!   3.57.0, which state the limits; the lines of the files are those of "Batch API" (developers.openai.com)
//! - Gemini: `batches.py` and `types.py` of google-genai 3.6.1, and "Batch API" (ai.google.dev), which states the limit for
//!   requests that are part of the body. Users report that results may lack their keys; results are in the order of the
//!   requests.

mod anthropic;
mod gemini;
pub mod ledger;
mod openai;

use crate::json::{self, Object};
use crate::provider::address;
use crate::provider::question::Question;
pub use anthropic::MessageBatches;
pub use gemini::GeminiBatches;
pub use openai::OpenaiBatches;
use std::ops::Range;

/// What a batch may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of requests.
    pub requests: usize,
    /// The maximum size of what is sent, in bytes.
    pub bytes: u64,
}

/// The limits of each service, with the sources above. Gemini states no number of requests.
pub const LIMITS: [(&str, Limits); 3] = [
    ("anthropic", Limits { requests: 100_000, bytes: 256_000_000 }),
    ("openai", Limits { requests: 50_000, bytes: 200_000_000 }),
    ("gemini", Limits { requests: usize::MAX, bytes: 20_000_000 }),
];

/// The bytes of a batch that are not its requests, and of each request that are not its body; both are less.
const AROUND: u64 = 1024;

/// The largest number of pages of a list of batches that are read.
pub const MAX_PAGES: usize = 50;

/// A batch, as a service describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The id that the service gave it.
    pub id: String,
    /// The name that it was sent with, if the service keeps names.
    pub name: Option<String>,
    /// The time at which it was created, in Unix seconds.
    pub created: Option<f64>,
    /// The number of its requests.
    pub requests: Option<u64>,
    /// Its state.
    pub phase: Phase,
    /// The ids of the files with its results, if the service has files.
    pub files: Vec<String>,
}

/// The state of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Some of its requests have no result yet.
    Running,
    /// It has ended, and its results can be read. The text says why requests may have none.
    Ended(String),
}

/// The result of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer: its HTTP status and its body.
    Answer(u16, String),
    /// There is no answer, for this reason.
    None(String),
}

/// A batch service.
pub trait BatchService {
    /// Returns the name of the service in [`LIMITS`].
    fn name(&self) -> &'static str;

    /// Returns true if the list of batches has the names that they were sent with.
    fn has_names(&self) -> bool {
        true
    }

    /// Returns true if the list of batches is known to have the newest first.
    fn is_newest_first(&self) -> bool {
        false
    }

    /// Returns a request in the form that a batch has it.
    fn entry(&self, id: &str, body: &str) -> String;

    /// Returns the request that stores the requests of a batch in a file, if the service reads them from one.
    fn upload(&self, _name: &str, _entries: &[String]) -> Option<Question> {
        None
    }

    /// Returns the request that creates a batch. `file` is the id of the file with the requests, if there is one.
    fn create(&self, name: &str, entries: &[String], file: Option<&str>) -> Question;

    /// Returns the request for the state of a batch.
    fn state(&self, id: &str) -> Question;

    /// Returns the request for a page of the list of batches. `after` is what the page before names.
    fn list(&self, after: Option<&str>) -> Question;

    /// Reads the description of a batch.
    fn read(&self, batch: &Object<'_>) -> Option<Batch>;

    /// Returns the requests for the results of a batch that has ended.
    fn results(&self, batch: &Batch) -> Vec<Question>;

    /// Returns true if each line of an answer with results is one of them. Otherwise the answer is an object that
    /// [`BatchService::inline`] reads.
    fn has_lines(&self) -> bool {
        true
    }

    /// Returns the results in an answer that is one object.
    fn inline<'a>(&self, _answer: &Object<'a>) -> Vec<&'a str> {
        Vec::new()
    }

    /// Reads a result: the id of its request, if it names one, and what became of it.
    fn result(&self, result: &Object<'_>) -> Option<(Option<String>, Outcome)>;
}

/// Returns the limits of a service.
#[must_use]
pub fn limits(service: &dyn BatchService) -> Limits {
    let found = LIMITS.iter().find(|(name, _)| *name == service.name());
    found.map_or(Limits { requests: 0, bytes: 0 }, |(_, limits)| *limits)
}

/// Divides requests of these sizes, in bytes, among batches: as many in each as fit, in order. A request that fits no batch
/// is in none.
#[must_use]
pub fn divide(sizes: &[u64], limits: Limits) -> Vec<Range<usize>> {
    let (mut batches, mut begin, mut bytes) = (Vec::new(), 0, AROUND);
    for (at, size) in sizes.iter().enumerate() {
        let more = size.saturating_add(AROUND);
        let is_full = at - begin == limits.requests || bytes.saturating_add(more) > limits.bytes;
        if is_full && begin < at {
            batches.push(begin..at);
        }
        if is_full {
            (begin, bytes) = (at, AROUND);
        }
        match fits(*size, limits) {
            true => bytes += more,
            false => begin = at + 1,
        }
    }
    if begin < sizes.len() {
        batches.push(begin..sizes.len());
    }
    batches
}

/// Returns true if a request of this size fits a batch.
#[must_use]
pub fn fits(size: u64, limits: Limits) -> bool {
    limits.requests > 0 && size.saturating_add(2 * AROUND) <= limits.bytes
}

/// Reads a page of a list of batches. Returns the batches and what the request for the next page names, unless this is the
/// last one. Returns `None` if the answer is no list.
#[must_use]
pub fn read_page(service: &dyn BatchService, answer: &str) -> Option<(Vec<Batch>, Option<String>)> {
    let page = Object::parse(answer.trim()).ok()?;
    let list = ["data", "operations"].into_iter().find_map(|name| page.get(name));
    let batches = match list {
        Some(list) => json::elements(list)?,
        // An empty list may be left out.
        None if page.members().all(|member| member.name() == "nextPageToken") => Vec::new(),
        None => return None,
    };
    let read = |raw: &str| service.read(&Object::parse(raw).ok()?);
    let batches: Vec<_> = batches.into_iter().filter_map(read).collect();
    let has_more = page.is_true("has_more");
    let last = page.string("last_id").or(batches.last().map(|batch| batch.id.as_str().into()));
    let next = page.string("nextPageToken").or(last.filter(|_| has_more));
    let next = next.filter(|next| !next.is_empty()).map(|next| next.into_owned());
    Some((batches, next))
}

/// Returns a URL with the parameters of a page.
fn page(url: &str, parameters: &str, name: &str, after: Option<&str>) -> Question {
    let url = address::with_parameter(url, parameters);
    let after = after.map(|after| format!("{name}={}", address::segment(after)));
    Question::get(after.iter().fold(url, |url, after| address::with_parameter(&url, after)))
}

/// Returns the object in a member.
fn object<'a>(of: &Object<'a>, name: &str) -> Option<Object<'a>> {
    Object::parse(of.get(name)?).ok()
}

/// Returns a time in RFC 3339 as Unix seconds.
fn seconds(text: &str) -> Option<f64> {
    text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond() as f64 / 1e3)
}

#[cfg(test)]
mod tests;
