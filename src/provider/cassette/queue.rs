//! Requests that wait in a cassette for their answers, which come from a batch.
//!
//! A queued request has a directory `.queued-KEY`, or `.queued-KEY.2` for the second exchange with the same request and so
//! on, with its `request.json` and an `estimate.json`. When it is sent, the directory becomes `.sent-KEY`, and when the answer
//! is in it, `KEY`: an ordinary recording. Each step is one rename, so a process can be killed at any time.

use super::recorder::write_file;
use super::{Exchange, Recorder, files};
use crate::exit::{Error, Exit};
use crate::json::Object;
use crate::json::write::Members;
use crate::usage::Counts;
use anyhow::Context;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The beginning of the name of a request that has not been sent.
const QUEUED: &str = ".queued-";
/// The beginning of the name of a request that was sent.
const SENT: &str = ".sent-";
/// The beginning of the name of a directory that is being removed.
const REMOVED: &str = ".removed-";
/// The name of the file with the estimate.
const ESTIMATE: &str = "estimate.json";

/// The requests of a cassette that have no answer yet.
#[derive(Debug)]
pub struct Queue {
    dir: PathBuf,
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// The name that its recording will have.
    pub name: String,
    /// True if it was sent.
    pub is_sent: bool,
}

impl Queue {
    /// Returns the queue of the cassette in the directory `dir`, which need not exist.
    #[must_use]
    pub fn of(dir: &Path) -> Queue {
        Queue { dir: dir.to_owned() }
    }

    /// Returns all requests without an answer, in the order of their names.
    ///
    /// # Errors
    /// The status of the read error.
    pub fn waiting(&self) -> anyhow::Result<Vec<Waiting>> {
        let cannot = || format!("cannot read '{}'", self.dir.display());
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(cannot)?,
        };
        let mut waiting = Vec::new();
        for entry in entries {
            let name = entry.with_context(cannot)?.file_name();
            let Some(name) = name.to_str() else { continue };
            let of = |begin, is_sent| {
                Some(Waiting { name: name.strip_prefix(begin)?.to_owned(), is_sent })
            };
            waiting.extend(of(QUEUED, false).or_else(|| of(SENT, true)));
        }
        waiting.sort();
        Ok(waiting)
    }

    /// Adds a request, unless it is in the queue already. `number` counts the exchanges with this request from 1. `estimate`
    /// has the model, the tokens of the prompt and the largest number of tokens in the answer.
    ///
    /// # Errors
    /// Status 65 if the request seems to contain a secret; otherwise the status of the write error.
    pub fn add(
        &self,
        recorder: &Recorder,
        request: &Exchange,
        number: usize,
        (model, counts): (&str, Counts),
    ) -> anyhow::Result<()> {
        let request = request.kept();
        let key = super::key(&request.path, &request.body);
        let name = if number == 1 { key } else { format!("{key}.{number}") };
        if self.place(&name, true).exists() {
            return Ok(());
        }
        let refuse = |why| format!("cannot record into '{}': {why}", self.dir.display());
        recorder.check_all(&request).map_err(|why| Error::new(Exit::Data, refuse(why)))?;
        let estimate = Members::new().string("model", model).object("usage", |usage| {
            usage.number("input_tokens", counts.input).number("output_tokens", counts.output)
        });
        let estimate = estimate.into_line();
        let write = || {
            crate::transcript::make_directory(&self.dir)?;
            let (hidden, _lock) = recorder.make_hidden()?;
            write_file(&hidden.join(files::REQUEST), files::request_json(&request).as_bytes())?;
            write_file(&hidden.join(ESTIMATE), estimate.as_bytes())?;
            let queued = self.place(&name, false);
            fs::rename(&hidden, &queued).or_else(|error| match queued.exists() {
                true => fs::remove_dir_all(&hidden),
                false => Err(error),
            })
        };
        write().with_context(|| format!("cannot record into '{}'", self.dir.display()))
    }

    /// Removes the requests that were not sent, and the failures if `failures` is true, so that they can be queued again.
    ///
    /// # Errors
    /// The status of the read or write error.
    pub fn clear(&self, failures: bool) -> anyhow::Result<()> {
        let cannot = || format!("cannot remove requests from '{}'", self.dir.display());
        self.remove_removed().with_context(cannot)?;
        for waiting in self.waiting()?.iter().filter(|it| !it.is_sent) {
            self.remove(&self.place(&waiting.name, false), &waiting.name).with_context(cannot)?;
        }
        if failures && self.dir.exists() {
            for name in super::replay::names(&self.dir)? {
                let recording = self.dir.join(&name);
                if files::read(&recording)?.is_failure() {
                    self.remove(&recording, &name).with_context(cannot)?;
                }
            }
        }
        Ok(())
    }

    /// Removes a directory. It has another name before it is incomplete.
    fn remove(&self, place: &Path, name: &str) -> io::Result<()> {
        let removed = self.dir.join([REMOVED, name].concat());
        fs::rename(place, &removed)?;
        fs::remove_dir_all(removed)
    }

    /// Removes the directories that a killed process has not removed completely.
    fn remove_removed(&self) -> io::Result<()> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(REMOVED.as_bytes()) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Marks a request as sent, or as queued.
    ///
    /// # Errors
    /// The status of the write error.
    pub fn mark(&self, name: &str, is_sent: bool) -> anyhow::Result<()> {
        match fs::rename(self.place(name, !is_sent), self.place(name, is_sent)) {
            // It is marked already, or it was answered.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done.with_context(|| format!("cannot rename '{}'", self.dir.display())),
        }
    }

    /// Returns the size of a queued request in bytes. It is about that of its body.
    ///
    /// # Errors
    /// The status of the read error.
    pub fn size(&self, name: &str) -> anyhow::Result<u64> {
        let file = self.place(name, false).join(files::REQUEST);
        let size = fs::metadata(&file).map(|meta| meta.len());
        size.with_context(|| format!("cannot read '{}'", file.display()))
    }

    /// Reads a request: an exchange without an answer.
    ///
    /// # Errors
    /// Status 65 if it is invalid; otherwise the status of the read error.
    pub fn read(&self, waiting: &Waiting) -> anyhow::Result<Exchange> {
        files::read_unanswered(&self.place(&waiting.name, waiting.is_sent))
    }

    /// Reads the estimate of a request: the model, and the most tokens that it may take. Returns `None` if it is missing.
    #[must_use]
    pub fn estimate(&self, waiting: &Waiting) -> Option<(String, Counts)> {
        let file = self.place(&waiting.name, waiting.is_sent).join(ESTIMATE);
        let text = fs::read_to_string(file).ok()?;
        let estimate = Object::parse(text.trim()).ok()?;
        Some((estimate.string("model")?.into_owned(), Counts::read(estimate.get("usage")?)?))
    }

    /// Stores the answer to a sent request, which thereby becomes a recording. An answer that seems to contain a secret is
    /// left out; the reason takes its place. Does nothing if the request has its answer.
    ///
    /// # Errors
    /// Status 65 if the request is invalid; otherwise the status of the read or write error.
    pub fn answer(
        &self,
        recorder: &Recorder,
        name: &str,
        answer: impl FnOnce(Exchange) -> Exchange,
    ) -> anyhow::Result<()> {
        let place = self.place(name, true);
        if !place.exists() {
            return Ok(());
        }
        let request = files::read_unanswered(&place)?;
        let mut exchange = answer(request.clone()).kept();
        if let Err(why) = recorder.check_all(&exchange) {
            exchange =
                Exchange { ended: Some(format!("the answer is not kept: {why}")), ..request };
        }
        let write = || {
            for (file, bytes) in [
                (files::RESPONSE, files::response_json(&exchange).as_bytes()),
                (files::BODY, &exchange.answer),
            ] {
                let file = place.join(file);
                // A process may have been killed here.
                remove(&file)?;
                write_file(&file, bytes)?;
            }
            remove(&place.join(ESTIMATE))?;
            fs::rename(&place, self.dir.join(name))
        };
        write().with_context(|| format!("cannot record into '{}'", self.dir.display()))
    }

    fn place(&self, name: &str, is_sent: bool) -> PathBuf {
        self.dir.join([if is_sent { SENT } else { QUEUED }, name].concat())
    }
}

/// Removes a file, if there is one.
fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::cassette::{Cassette, LookupError};

    fn request(body: &str) -> Exchange {
        Exchange { path: "/v1/messages".into(), body: body.into(), ..Exchange::default() }
    }

    fn answered(status: u16, text: &str) -> impl FnOnce(Exchange) -> Exchange {
        let answer = text.as_bytes().to_vec();
        move |request| Exchange {
            status: Some(status),
            pieces: vec![answer.len()],
            answer,
            ..request
        }
    }

    const ESTIMATED: (&str, Counts) =
        ("m", Counts { input: 3, cache_read: 0, cache_write: 0, cache_write_1h: 0, output: 4 });

    #[test]
    fn a_request_waits_until_its_answer_comes() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("cassette");
        let (queue, recorder) = (Queue::of(&dir), Recorder::new(&dir, vec![]));
        assert_eq!(queue.waiting().unwrap(), []);
        for _ in 0..2 {
            queue.add(&recorder, &request("{}"), 1, ESTIMATED).unwrap();
        }
        let [waiting] = &queue.waiting().unwrap()[..] else { panic!("one request") };
        assert_eq!(queue.read(waiting).unwrap(), request("{}"));
        assert_eq!(queue.estimate(waiting), Some(("m".to_owned(), ESTIMATED.1)));
        assert!(matches!(
            Cassette::open(&dir).unwrap().next("/v1/messages", "{}"),
            Err(LookupError::Miss(_))
        ));
        queue.mark(&waiting.name, true).unwrap();
        queue.mark(&waiting.name, true).unwrap();
        queue.add(&recorder, &request("{}"), 1, ESTIMATED).unwrap();
        queue.clear(true).unwrap();
        let sent = Waiting { is_sent: true, ..waiting.clone() };
        assert_eq!(queue.waiting().unwrap(), [sent]);
        // A process was killed while it stored the answer.
        write_file(&dir.join(format!("{SENT}{}", waiting.name)).join(files::BODY), b"x").unwrap();
        for text in ["yes", "no"] {
            queue.answer(&recorder, &waiting.name, answered(200, text)).unwrap();
        }
        let found = Cassette::open(&dir).unwrap().next("/v1/messages", "{}").unwrap();
        assert_eq!(found.answer, b"yes");
        assert_eq!(queue.waiting().unwrap(), []);
    }

    #[test]
    fn only_failures_are_queued_again() {
        let dir = tempfile::tempdir().unwrap();
        let (queue, recorder) = (Queue::of(dir.path()), Recorder::new(dir.path(), vec![]));
        for (body, status) in [("1", 200), ("2", 529), ("3", 400)] {
            queue.add(&recorder, &request(body), 1, ESTIMATED).unwrap();
            let name = queue.waiting().unwrap()[0].name.clone();
            queue.mark(&name, true).unwrap();
            queue.answer(&recorder, &name, answered(status, body)).unwrap();
        }
        queue.clear(false).unwrap();
        let mut cassette = Cassette::open(dir.path()).unwrap();
        assert_eq!(cassette.check().unwrap(), 3);
        let key = |body| super::super::key("/v1/messages", body);
        assert_eq!(cassette.failure(&key("1")), None);
        assert_eq!(cassette.failure(&key("2")).unwrap().status, Some(529));
        queue.clear(true).unwrap();
        let mut cassette = Cassette::open(dir.path()).unwrap();
        assert_eq!(cassette.check().unwrap(), 1);
        assert_eq!(cassette.next("/v1/messages", "1").unwrap().answer, b"1");
    }

    #[test]
    fn a_request_that_is_removed_is_complete_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (queue, recorder) = (Queue::of(dir.path()), Recorder::new(dir.path(), vec![]));
        let left = dir.path().join(".removed-x");
        fs::create_dir(&left).unwrap();
        write_file(&left.join(ESTIMATE), b"{}").unwrap();
        queue.add(&recorder, &request("{}"), 1, ESTIMATED).unwrap();
        let place = queue.place(&queue.waiting().unwrap()[0].name, false);
        for number in 0..2000 {
            write_file(&place.join(format!("file.{number}")), b"").unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| queue.clear(false).unwrap());
            while place.exists() {
                let is_whole = place.join("file.0").exists() && place.join("file.1999").exists();
                assert!(is_whole || !place.exists(), "a killed process would leave this");
            }
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_answer_with_a_secret_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let key = "the/very-key";
        let recorder = Recorder::new(dir.path(), vec![key.to_owned()]);
        let queue = Queue::of(dir.path());
        let secret = format!("[\"{key}\"]");
        assert!(queue.add(&recorder, &request(&secret), 1, ESTIMATED).is_err());
        assert_eq!(queue.waiting().unwrap(), []);
        queue.add(&recorder, &request("[]"), 1, ESTIMATED).unwrap();
        let name = queue.waiting().unwrap()[0].name.clone();
        queue.mark(&name, true).unwrap();
        queue.answer(&recorder, &name, answered(200, &secret)).unwrap();
        let found = Cassette::open(dir.path()).unwrap().next("/v1/messages", "[]").unwrap();
        let why = found.ended.unwrap();
        assert!(
            why.starts_with("the answer is not kept: the answer contains the key in use"),
            "{why}"
        );
        assert_eq!(found.answer, b"");
    }
}
