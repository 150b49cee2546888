//! delete and expire: remove transcripts, and print the path of each. No other command removes any.

use crate::paths::print_line;
use crate::place::{SessionPlace, clock};
use anyhow::Context;
use clawutils::cli::Output;
use clawutils::exit::{self, Exit, fail};
use clawutils::session::SessionEntry;
use clawutils::session::expire::{Keep, choose, duration};
use clawutils::session::turn::{HeldTurn, Purpose, tidy_orphans};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Delete a session.
#[derive(Clone, Debug, clap::Args)]
pub struct Delete {
    /// Id, key or label of the session, or the beginning of one
    pub name: String,
    /// Print the paths without deleting anything
    #[arg(long)]
    pub dry_run: bool,
}

/// Delete sessions beyond a limit of age or number.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Expire {
    /// Delete sessions whose last record is older than this: a number and s, m, h, d or w, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "max")]
    pub older_than: Option<i64>,
    /// Keep only the N most recently active sessions of each agent
    #[arg(long, value_name = "N")]
    pub max: Option<usize>,
    /// Print the paths without deleting anything
    #[arg(long)]
    pub dry_run: bool,
}

impl Delete {
    pub(super) fn run(&self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let entries = place.entries()?;
        let entry = place.find(&entries, &self.name)?;
        let turn = HeldTurn::take(&entry.path, Purpose::Turn, Duration::ZERO)?;
        let mut out = Output::open();
        remove(entry, turn, self.dry_run, &mut out)?;
        tidy(std::slice::from_ref(entry), self.dry_run);
        // Another process may have chosen another session in the meantime.
        if !self.dry_run && is_chosen(place, entry) {
            let path = place.store.current_path(&entry.agent);
            std::fs::remove_file(&path)
                .with_context(|| format!("cannot remove '{}'", path.display()))?;
        }
        out.finish()?;
        Ok(Exit::Done)
    }
}

/// Returns true if a session was chosen as the current one.
fn is_chosen(place: &SessionPlace, entry: &SessionEntry) -> bool {
    std::fs::read_to_string(place.store.current_path(&entry.agent))
        .is_ok_and(|id| id.trim() == entry.id)
}

impl Expire {
    pub(super) fn run(self, place: &SessionPlace) -> anyhow::Result<Exit> {
        let (now, _) = clock()?;
        let keep = match (self.older_than, self.max) {
            (Some(age), _) => Keep::Since(now.saturating_sub(age)),
            (None, Some(most)) => Keep::Newest(most),
            (None, None) => {
                return fail(Exit::Usage, "a limit is required; give --older-than or --max");
            }
        };
        let entries = place.entries()?;
        let current = place.current(&entries);
        let mut out = Output::open();
        for entry in choose(&entries, keep, |entry| current.contains(&entry.path)) {
            match HeldTurn::take(&entry.path, Purpose::Turn, Duration::ZERO) {
                Ok(_) if entry.has_changed() => {
                    let path = entry.path.display();
                    place.log.note(&format!("kept '{path}': it was written to in the meantime"));
                }
                Ok(turn) => remove(entry, turn, self.dry_run, &mut out)?,
                Err(error) if exit::status(&error) == Exit::TryLater => {
                    place
                        .log
                        .note(&format!("kept '{}': a turn is running in it", entry.path.display()));
                }
                Err(error) => return Err(error),
            }
        }
        tidy(&entries, self.dry_run);
        out.finish()?;
        Ok(Exit::Done)
    }
}

/// Removes lock files without transcripts from the directories of sessions, unless `is_dry` is true.
fn tidy(entries: &[SessionEntry], is_dry: bool) {
    let directories: BTreeSet<&Path> =
        entries.iter().filter_map(|entry| entry.path.parent()).collect();
    directories.into_iter().filter(|_| !is_dry).for_each(tidy_orphans);
}

/// Prints the path of a transcript, whose turn lock is held, and removes it unless `is_dry` is true. If printing fails,
/// the transcript is kept.
fn remove(
    entry: &SessionEntry,
    turn: HeldTurn,
    is_dry: bool,
    out: &mut Output,
) -> anyhow::Result<()> {
    let path = entry.path.display().to_string();
    print_line(out, entry.path.as_os_str(), "")?;
    if !is_dry {
        std::fs::remove_file(&entry.path).with_context(|| format!("cannot remove '{path}'"))?;
    }
    turn.remove();
    Ok(())
}
