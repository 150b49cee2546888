//! new, fork and label: create sessions and change labels.

use crate::place::{SessionPlace, clock};
use clawutils::cli::progress::appending;
use clawutils::cli::{Output, open_transcript, variable};
use clawutils::exit::{Error, Exit, fail};
use clawutils::json::write::Members;
use clawutils::messages::range::{self, RebuildOptions};
use clawutils::printable::printable;
use clawutils::session::store::{self, Header};
use clawutils::session::{SessionEntry, fork, name};
use clawutils::transcript::{self, Batch};
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Make a session.
#[derive(Clone, Debug, clap::Args)]
pub struct New {
    /// Label of the new session
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Key of the new session (default: the first unused of AGENT:cli:user, AGENT:cli:user-2, ...)
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// Change the label of a session, or print it.
#[derive(Clone, Debug, clap::Args)]
pub struct Label {
    /// Id, key or label of the session, or the beginning of one
    pub name: String,
    /// New label; an empty one removes the label (default: print the label)
    pub text: Option<String>,
}

/// Copy a session or its beginning.
#[derive(Clone, Debug, clap::Args)]
pub struct Fork {
    /// Id, key or label of the session, or the beginning of one
    pub name: String,
    /// Copy only up to and including this record
    #[arg(long, value_name = "RECORD", conflicts_with = "to_turn")]
    pub at: Option<String>,
    /// Copy only up to the end of turn N, counted from 1
    #[arg(long, value_name = "N")]
    pub to_turn: Option<u64>,
    /// Label of the new session
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Key of the new session (default: AGENT:fork:ID, with a number from the second fork on)
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// The properties of a session to create.
pub(super) struct SessionPlan {
    /// The agent.
    pub agent: String,
    /// The key; without one, the session gets an unused key.
    pub key: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// A time in microseconds since 1970. A session with the same label (or, without a label, the same key) that was
    /// created then or later is used instead of a new one.
    pub reuse: Option<i64>,
}

/// Makes a session, or returns an existing one that [`SessionPlan::reuse`] allows.
pub(super) fn make(place: &SessionPlace, plan: SessionPlan) -> anyhow::Result<SessionEntry> {
    let (now, ts) = clock()?;
    let default_key = format!("{}:cli:user", plan.agent);
    let has_key = plan.key.is_some();
    let mut new = checked(plan.agent, plan.key.unwrap_or(default_key), plan.label)?;
    // Invalid names fail before a directory is created.
    place.store.header(&new, now)?;
    let _lock = place.lock(&new.agent)?;
    let entries = place.list(Some(&new.agent), false)?;
    let is_wanted = |entry: &&SessionEntry| match &new.label {
        Some(label) => entry.label == *label,
        None => entry.key == new.key,
    };
    let is_new = |entry: &&SessionEntry| plan.reuse.is_some_and(|since| entry.created >= since);
    let mut same = entries.iter().filter(is_wanted).filter(is_new);
    if let Some(entry) = same.next() {
        return Ok(entry.clone());
    }
    if !has_key {
        new.key = unused(&entries, &new.key);
    }
    // The new session must be the newest with its key, even if the clock was set back.
    let same = entries.iter().filter(|entry| entry.key == new.key);
    let created = same.map(|entry| entry.created + 1).max().unwrap_or(now).max(now);
    let header = place.store.header(&new, created)?;
    place.store.write(&header.path, &header.line, &ts, true)?;
    Ok(entry_of(new, header, created))
}

/// Returns a key that no session has; see [`first_unused`].
fn unused(entries: &[SessionEntry], key: &str) -> String {
    let keys: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    first_unused(key, &mut 1, |key| keys.contains(key))
}

/// Returns a key that is not taken: `key`, or the first unused one of `key-2`, `key-3` and so on. `number` is the last
/// number that was tried, and becomes that of the key.
pub(super) fn first_unused(
    key: &str,
    number: &mut usize,
    is_taken: impl Fn(&str) -> bool,
) -> String {
    let mut own = key.to_owned();
    while is_taken(&own) {
        *number += 1;
        own = format!("{key}-{number}");
    }
    own
}

/// Appends records to the transcript of a session.
pub(super) fn append(place: &SessionPlace, path: &Path, records: &str) -> anyhow::Result<()> {
    let options = transcript::AppendOptions {
        expect_tail: None,
        lock_timeout: Duration::from_secs(30),
        is_waiting: Arc::default(),
        sync: true,
        ts: clock()?.1,
    };
    let _progress = place.log.progress(appending(path, &options));
    let batch = Batch::read(&path.display().to_string(), records.as_bytes())?;
    transcript::append(path, &batch, &options)?;
    Ok(())
}

/// Checks the key and the label, and returns the session to create.
pub(super) fn checked(
    agent: String,
    key: String,
    label: Option<String>,
) -> anyhow::Result<store::NewSession> {
    let refuse = |what: &str, text: &str, why: String| {
        Error::new(Exit::Usage, format!("invalid {what} '{text}': {why}"))
    };
    name::key(&key).map_err(|why| refuse("key", &key, why))?;
    let label = label.filter(|label| !label.is_empty());
    if let Some(label) = &label {
        name::label(label).map_err(|why| refuse("label", label, why))?;
    }
    Ok(store::NewSession { agent, key, label, parent: None, source: None, seed: seed() })
}

/// Returns a seed for ids. It is fixed if `SOURCE_DATE_EPOCH` is set, so that the same input gives the same ids.
fn seed() -> u64 {
    match variable("SOURCE_DATE_EPOCH") {
        Some(_) => 0,
        None => RandomState::new().build_hasher().finish(),
    }
}

/// Returns the entry of a session that was just made.
pub(super) fn entry_of(new: store::NewSession, header: Header, created: i64) -> SessionEntry {
    SessionEntry {
        id: header.id,
        path: header.path,
        agent: new.agent,
        key: new.key,
        label: new.label.unwrap_or_default(),
        created,
        active: created,
        ..SessionEntry::default()
    }
}

impl New {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let agent = place.agent_for(self.key.as_deref())?;
        let (key, label) = (self.key.clone(), self.label.clone());
        let entry = make(place, SessionPlan { agent, key, label, reuse: None })?;
        place.store.choose(&entry.agent, &entry.id)?;
        Output::lines([&entry.id])
    }
}

impl Label {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let entry = place.find(&entries, &self.name)?;
        let Some(text) = &self.text else {
            if entry.label.is_empty() {
                place
                    .log
                    .note(&format!("session '{}' has no label; give TEXT to set one", entry.id));
            }
            return Output::lines([printable(&entry.label)]);
        };
        if let Err(why) = name::label(text) {
            return fail(Exit::Usage, format!("invalid label '{text}': {why}"));
        }
        let record = Members::of_type("label").string("label", text).into_json();
        append(place, &entry.path, &record)?;
        Ok(Exit::Done)
    }
}

impl Fork {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let entry = place.find(&entries, &self.name)?;
        let (now, ts) = clock()?;
        let path = entry.path.display().to_string();
        let inputs = [open_transcript(&entry.path)?];
        let options = RebuildOptions {
            at: self.at.clone(),
            to_turn: self.to_turn,
            ..RebuildOptions::default()
        };
        let end = range::find(&inputs, &options)?.end;
        let agent = place.agent.clone().unwrap_or_else(|| entry.agent.clone());
        let key = self.key.clone().unwrap_or_else(|| format!("{agent}:fork:{}", entry.id));
        let mut new = checked(agent, key, self.label.clone())?;
        let last = fork::last_id(&inputs[0], end)?;
        let parent = Members::new().string("session", &entry.id);
        let parent = parent.or_null(Members::string, "record", last.as_deref());
        new.parent = Some(parent.into_json());
        place.store.header(&new, now)?;
        let _lock = place.lock(&new.agent)?;
        if self.key.is_none() {
            new.key = unused(&place.list(Some(&new.agent), false)?, &new.key);
        }
        let header = place.store.header(&new, now)?;
        let forked = fork::fork(&inputs[0], end, &header.line, &ts)?;
        place.store.write(&header.path, &forked.text, &ts, true)?;
        self.report(place, &path, &forked);
        Output::lines([&header.id])
    }

    fn report(&self, place: &SessionPlace, path: &str, forked: &fork::Forked) {
        let fork::Forked { records, left_out, open, .. } = forked;
        let members = Members::new()
            .number("records", *records)
            .number("left_out", *left_out)
            .number("open", *open);
        if *left_out > 0 {
            let text =
                format!("left out {left_out} damaged places in '{path}'; claw-check lists them");
            place.log.outcome(&text, &members);
        }
        if *open > 0 {
            let text = format!("tool calls that have no result where the copy ends: {open}");
            place.log.outcome(&text, &members);
        }
    }
}
