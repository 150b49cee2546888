//! path, current and switch: find a session by name, or the current one.

use crate::make::{SessionPlan, make};
use crate::place::{SessionPlace, clock, default_agent};
use clawutils::cli::options::ResetArgs;
use clawutils::cli::{Output, open_transcript};
use clawutils::exit::{Error, Exit, fail};
use clawutils::session::reset::{self, Reset};
use clawutils::session::turn::{HeldTurn, Purpose, lock_path};
use clawutils::session::{SessionEntry, name};
use jiff::tz::TimeZone;
use std::time::Duration;

/// Print the path of a session's transcript.
#[derive(Clone, Debug, clap::Args)]
pub struct Path {
    /// Id, key or label of the session, or the beginning of one
    pub name: String,
    /// Make the session if there is none; NAME is its key if it contains a colon, else its label
    #[arg(long)]
    pub create: bool,
    #[command(flatten)]
    resets: ResetArgs,
}

/// Print the id of the current session.
#[derive(Clone, Debug, clap::Args)]
pub struct Current {
    /// Make a session with this label if there is none
    #[arg(long, value_name = "LABEL")]
    create: Option<String>,
    #[command(flatten)]
    resets: ResetArgs,
}

/// Make a session the current one.
#[derive(Clone, Debug, clap::Args)]
pub struct Switch {
    /// Id, key or label of the session, or the beginning of one
    pub name: String,
    #[command(flatten)]
    resets: ResetArgs,
}

impl Path {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let path = match place.look_up(&entries, &self.name, self.create)? {
            Some(entry) => follow(self.resets, place, &entries, entry)?.path,
            None if self.create => self.make_named(place)?.path,
            None => return place.not_found(&self.name),
        };
        let Some(path) = path.to_str() else {
            return fail(Exit::Failed, format!("the path '{}' is not UTF-8", path.display()));
        };
        Output::lines([path])
    }

    /// Creates a session with the name as its key if it looks like a key, or else as its label.
    fn make_named(&self, place: &SessionPlace) -> anyhow::Result<SessionEntry> {
        let is_key = self.name.contains(':');
        let name = Some(self.name.clone());
        let (key, label) = if is_key { (name, None) } else { (None, name) };
        let agent = place.agent_for(key.as_deref())?;
        make(place, SessionPlan { agent, key, label, reuse: Some(i64::MIN) })
    }
}

impl Current {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let agent = place.agent.clone().unwrap_or_else(|| default_agent(&entries));
        let Some(entry) = place.store.current(&agent, &entries) else {
            if let Some(label) = self.create.clone().filter(|_| entries.is_empty()) {
                let (label, reuse) = (Some(label), Some(i64::MIN));
                let made = make(place, SessionPlan { agent, key: None, label, reuse })?;
                place.store.choose(&made.agent, &made.id)?;
                return Output::lines([&made.id]);
            }
            let what_to_do = if entries.is_empty() {
                "create one with claw-session new"
            } else {
                "several agents have sessions; select one with --agent"
            };
            let workspace = place.workspace.display();
            let text = format!("no session of agent '{agent}' in '{workspace}'; {what_to_do}");
            return fail(Exit::Failed, text);
        };
        let next = follow(self.resets, place, &entries, entry)?;
        if next.id != entry.id {
            place.store.choose(&next.agent, &next.id)?;
        }
        Output::lines([&next.id])
    }
}

impl Switch {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let entry = place.find(&entries, &self.name)?;
        if let Err(why) = name::component(&entry.agent) {
            let text = format!("invalid agent name '{}': {why}", entry.agent);
            return fail(Exit::Failed, text);
        }
        let next = follow(self.resets, place, &entries, entry)?;
        place.store.choose(&next.agent, &next.id)?;
        Output::lines([&next.id])
    }
}

/// Returns the session to use for `entry`: itself; if it has expired, the newest session with its key; and if that has
/// also expired, a new one. A session without a key never expires.
pub fn follow(
    resets: ResetArgs,
    place: &SessionPlace,
    entries: &[SessionEntry],
    entry: &SessionEntry,
) -> anyhow::Result<SessionEntry> {
    if !is_over(resets, entry)? {
        return Ok(entry.clone());
    }
    let has_key = |other: &&SessionEntry| (&other.agent, &other.key) == (&entry.agent, &entry.key);
    let newest = entries.iter().filter(has_key).max_by_key(|other| (other.created, &other.id));
    let newest = newest.unwrap_or(entry);
    let next = if newest.id != entry.id && !is_over(resets, newest)? {
        newest.clone()
    } else {
        let (agent, key) = (entry.agent.clone(), Some(entry.key.clone()));
        let reuse = Some(newest.created + 1);
        make(place, SessionPlan { agent, key, label: None, reuse })?
    };
    let text = format!(
        "session '{}' has expired; session '{}' continues with the same key",
        entry.id, next.id
    );
    place.log.note(&text);
    Ok(next)
}

/// Returns true if a session has expired. It does not expire while a turn runs in it.
fn is_over(resets: ResetArgs, entry: &SessionEntry) -> anyhow::Result<bool> {
    let reset = Reset { daily: resets.reset, idle: resets.idle };
    if reset == Reset::default() || entry.key.is_empty() {
        return Ok(false);
    }
    let (now, _) = clock()?;
    let input = open_transcript(&entry.path)?;
    let last = reset::last_prompt_time(&input)?.unwrap_or(entry.created);
    Ok(reset.is_over(last, now, &zone(resets.reset.is_some())?) && !is_held(entry)?)
}

/// Returns the local time zone; UTC if it cannot be found and is not needed.
fn zone(is_needed: bool) -> anyhow::Result<TimeZone> {
    match TimeZone::try_system() {
        Ok(zone) => Ok(zone),
        Err(_) if !is_needed => Ok(TimeZone::UTC),
        Err(error) => {
            let text = format!("cannot find the local time zone: {error}; set TZ");
            Err(Error::new(Exit::Config, text).into())
        }
    }
}

/// Returns true if a turn is running in a session.
fn is_held(entry: &SessionEntry) -> anyhow::Result<bool> {
    if lock_path(&entry.path, Purpose::Turn).symlink_metadata().is_err() {
        return Ok(false);
    }
    match HeldTurn::take(&entry.path, Purpose::Turn, Duration::ZERO) {
        Ok(_) => Ok(false),
        Err(error) if clawutils::exit::status(&error) == Exit::TryLater => Ok(true),
        Err(error) => Err(error),
    }
}
