//! list and reindex: list sessions, and rebuild the indexes.

use crate::place::{SessionPlace, short};
use clawutils::cli::Output;
use clawutils::exit::Exit;
use clawutils::json::write::Members;
use clawutils::printable::{printable, printable_json};
use clawutils::session::{SessionEntry, time};

/// List sessions.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct List {
    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Write only names: the ids and then the labels, one per line
    #[arg(long, conflicts_with = "json")]
    pub names: bool,
}

/// Rebuild the indexes.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Reindex {}

impl List {
    pub(super) fn run(self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        if self.names {
            return names(&entries);
        }
        let current = place.current(&entries);
        let agents = entries.iter().map(|entry| entry.agent.chars().count()).max().unwrap_or(0);
        Output::lines(entries.iter().map(|entry| {
            match (self.json, current.contains(&entry.path)) {
                (true, is_current) => {
                    printable_json(&members(entry, is_current).into_json()).into_owned()
                }
                (false, true) => format!("* {}", printable(&row(entry, agents))),
                (false, false) => format!("  {}", printable(&row(entry, agents))),
            }
        }))
    }
}

impl Reindex {
    pub(super) fn run(self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.list(place.agent.as_deref(), true)?;
        let text = format!("{} sessions", entries.len());
        place.log.outcome(&text, &Members::new().number("sessions", entries.len()));
        Ok(Exit::Done)
    }
}

/// Writes the ids and then the labels.
fn names(entries: &[SessionEntry]) -> anyhow::Result<Exit> {
    let ids = entries.iter().map(|entry| &entry.id);
    let labels = entries.iter().map(|entry| &entry.label).filter(|label| !label.is_empty());
    Output::lines(ids.chain(labels).map(|name| printable(name)))
}

fn row(entry: &SessionEntry, agents: usize) -> String {
    let SessionEntry { id, agent, key, records, active, .. } = entry;
    let title = if entry.title().is_empty() { "" } else { &format!(" ({})", entry.title()) };
    format!("{id:12}  {agent:agents$}  {}  {records:5}  {key}{title}", short(*active))
        .trim_end()
        .to_owned()
}

/// Returns an entry as the members of an object.
pub(super) fn members(entry: &SessionEntry, is_current: bool) -> Members {
    Members::new()
        .string("id", &entry.id)
        .string("agent", &entry.agent)
        .string("key", &entry.key)
        .string("label", &entry.label)
        .string("title", entry.title())
        .string("created_at", &time::to_text(entry.created))
        .string("last_active", &time::to_text(entry.active))
        .number("message_count", entry.records)
        .bool("current", is_current)
        .string("path", &entry.path.to_string_lossy())
}
