//! Finds the compactions of a transcript that still need a summary.

use crate::input::Input;
use crate::input::lines::Lines;
use crate::record::compaction::Summary;
use crate::record::{self, Body};
use std::collections::{HashMap, HashSet};

/// A compaction that needs a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The id of its record.
    pub id: String,
    /// The id of the record before it, the last one that the compaction could have covered.
    pub before: Option<String>,
    /// The id of the first record that it keeps.
    pub first_kept: String,
    /// True if its summary is only a placeholder. Otherwise it has a real summary that continues an earlier
    /// placeholder.
    pub is_stub: bool,
}

/// All compactions of a transcript that are not retracted, with the latest summary of each.
#[derive(Clone, Debug, Default)]
pub struct Summaries {
    /// In file order, without those that replace another one.
    compactions: Vec<Compaction>,
    /// The latest summary of each compaction, by the id of the compaction.
    latest: HashMap<String, Summary>,
    /// The ids of the compactions that have only a placeholder.
    stubs: HashSet<String>,
    /// The id of the replaced compaction, by the id of the compaction that replaces it.
    places: HashMap<String, String>,
}

#[derive(Clone, Debug)]
struct Compaction {
    id: String,
    before: Option<String>,
    first_kept: String,
}

/// The parts of a record that this module needs.
struct Seen {
    id: String,
    before: Option<String>,
    kind: PendingKind,
}

enum PendingKind {
    Compaction { summary: Summary, first_kept: String, retry_of: Option<String>, is_stub: bool },
    Retract { target: String },
}

impl Summaries {
    /// Reads all inputs as one transcript.
    ///
    /// # Errors
    /// Fails if an input cannot be read.
    pub fn read(inputs: &[Input]) -> anyhow::Result<Summaries> {
        let seen = read_records(inputs)?;
        let mut retracted = HashSet::new();
        for one in seen.iter().rev() {
            if let PendingKind::Retract { target } = &one.kind
                && !retracted.contains(&one.id)
            {
                retracted.insert(target.clone());
            }
        }
        let mut summaries = Summaries::default();
        for one in seen.into_iter().filter(|one| !retracted.contains(&one.id)) {
            let PendingKind::Compaction { summary, first_kept, retry_of, is_stub } = one.kind
            else {
                continue;
            };
            let place = retry_of.clone().unwrap_or_else(|| one.id.clone());
            summaries.replace(&place, summary);
            if is_stub {
                summaries.stubs.insert(place.clone());
            }
            match retry_of {
                Some(_) => {
                    summaries.places.insert(one.id, place);
                }
                None => {
                    let Seen { id, before, .. } = one;
                    summaries.compactions.push(Compaction { id, before, first_kept });
                }
            }
        }
        Ok(summaries)
    }

    /// Returns the compactions that need a summary, oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        let is_pending =
            |one: &&Compaction| self.latest.get(&one.id).is_some_and(|latest| latest.needs_retry);
        let pending = |one: &Compaction| Pending {
            id: one.id.clone(),
            before: one.before.clone(),
            first_kept: one.first_kept.clone(),
            is_stub: self.stubs.contains(&one.id),
        };
        self.compactions.iter().filter(is_pending).map(pending).collect()
    }

    /// Returns the latest summary of a compaction, given the id of its record or of a record that replaces it.
    #[must_use]
    pub fn better(&self, id: &str) -> Option<&Summary> {
        self.latest.get(self.places.get(id).map_or(id, String::as_str))
    }

    /// Sets the latest summary of a compaction, which then no longer counts as one that has only a placeholder.
    pub fn replace(&mut self, id: &str, summary: Summary) {
        self.latest.insert(id.to_owned(), summary);
        self.stubs.remove(id);
    }
}

fn read_records(inputs: &[Input]) -> anyhow::Result<Vec<Seen>> {
    let (mut seen, mut before) = (Vec::new(), None);
    let mut lines = Lines::new(inputs, 0..u64::MAX);
    while let Some(batch) = lines.batch()? {
        for line in batch.flatten() {
            let (id, object) = (line.id().into_owned(), &line.object);
            let kind = match record::parse(object) {
                Ok(Body::Compaction { summary, first_kept, retry_of, .. }) => {
                    let is_stub = object.string("strategy").as_deref() == Some("stub");
                    Some(PendingKind::Compaction {
                        summary: *summary,
                        first_kept,
                        retry_of,
                        is_stub,
                    })
                }
                Ok(Body::Retract { target }) => Some(PendingKind::Retract { target }),
                _ => None,
            };
            let before = before.replace(id.clone());
            seen.extend(kind.map(|kind| Seen { id, before, kind }));
        }
    }
    Ok(seen)
}
