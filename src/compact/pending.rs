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
    /// In file order, without those that replace another one, and as they were made.
    compactions: Vec<Pending>,
    /// The latest summary of each compaction, by the id of the compaction, and true if it is only a placeholder.
    latest: HashMap<String, (Summary, bool)>,
    /// The id of the replaced compaction, by the id of the compaction that replaces it.
    places: HashMap<String, String>,
}

impl Summaries {
    /// Reads all inputs as one transcript.
    ///
    /// # Errors
    /// Fails if an input cannot be read.
    pub fn read(inputs: &[Input]) -> anyhow::Result<Summaries> {
        let (mut made, mut retractions, mut last) = (Vec::new(), Vec::new(), None);
        let mut lines = Lines::new(inputs, 0..u64::MAX);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                let (id, object) = (line.id().into_owned(), &line.object);
                let before = last.replace(id.clone());
                match record::parse(object) {
                    Ok(Body::Compaction { summary, first_kept, retry_of, .. }) => {
                        let is_stub = object.string("strategy").as_deref() == Some("stub");
                        let own = Pending { id, before, first_kept, is_stub };
                        made.push((own, *summary, retry_of));
                    }
                    Ok(Body::Retract { target }) => retractions.push((id, target)),
                    _ => {}
                }
            }
        }
        let mut retracted = HashSet::new();
        for (id, target) in retractions.into_iter().rev() {
            if !retracted.contains(&id) {
                retracted.insert(target);
            }
        }
        let mut summaries = Summaries::default();
        made.retain(|(own, ..)| !retracted.contains(&own.id));
        for (own, summary, retry_of) in made {
            let place = retry_of.as_ref().unwrap_or(&own.id).clone();
            summaries.latest.insert(place, (summary, own.is_stub));
            match retry_of {
                Some(place) => drop(summaries.places.insert(own.id, place)),
                None => summaries.compactions.push(own),
            }
        }
        Ok(summaries)
    }

    /// Returns the compactions that need a summary, oldest first.
    #[must_use]
    pub fn pending(&self) -> Vec<Pending> {
        let pending = |one: &Pending| {
            let (latest, is_stub) = self.latest.get(&one.id)?;
            latest.needs_retry.then(|| Pending { is_stub: *is_stub, ..one.clone() })
        };
        self.compactions.iter().filter_map(pending).collect()
    }

    /// Returns the latest summary of a compaction, given the id of its record or of a record that replaces it.
    #[must_use]
    pub fn better(&self, id: &str) -> Option<&Summary> {
        Some(&self.latest.get(self.places.get(id).map_or(id, String::as_str))?.0)
    }

    /// Sets the latest summary of a compaction, which then no longer counts as one that has only a placeholder.
    pub fn replace(&mut self, id: &str, summary: Summary) {
        self.latest.insert(id.to_owned(), (summary, false));
    }
}
