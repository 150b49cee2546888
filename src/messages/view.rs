//! The view of a transcript: which records are shown, and how, after compactions, truncations and retractions.
//!
//! View records only change what rebuild shows. Only one compaction takes effect: the newest one that is not retracted
//! and whose first kept record exists. A compaction with `retry_of` replaces the summary of another one, and takes
//! effect if the replaced compaction would. A retraction can itself be retracted. A view record that cannot be applied
//! is reported as a finding, and changes nothing.
//!
//! View records are searched from the end backwards, down to the first record that the compaction in effect keeps.
//! Earlier records are read only if the first kept record of a newer compaction is not found.

use crate::finding::rules::{self, Rule};
use crate::finding::{Finding, Findings};
use crate::id::Id;
use crate::input::backward::{Backward, Needles, line_at};
use crate::input::line::LineObject;
use crate::input::lines::Lines;
use crate::input::{self, Input};
use crate::messages::checkpoint::LatestCheckpoint;
use crate::messages::range::{self, RebuildOptions};
use crate::record::compaction::Summary;
use crate::record::omission::Omission;
use crate::record::scale::Scale;
use crate::record::truncation::KeptSpan;
use crate::record::{self, Body, Record};
use memchr::memmem;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// The compaction in effect.
#[derive(Clone, Debug)]
pub struct EffectiveCompaction {
    /// The id of its record.
    pub id: String,
    /// The byte offset of its record in the concatenated inputs.
    pub at: u64,
    /// The summary.
    pub summary: Summary,
    /// The ratio of the provider's counts before the compaction to our estimates.
    pub scale: Option<Scale>,
}

impl EffectiveCompaction {
    /// Creates the compaction in effect from its record and the content of that record.
    #[must_use]
    pub fn new(
        record: &Record<'_>,
        summary: &Summary,
        scale: Option<Scale>,
    ) -> EffectiveCompaction {
        let (id, summary) = (record.id.clone().into_owned(), summary.clone());
        EffectiveCompaction { id, at: record.offset, summary, scale }
    }
}

/// The part of the inputs that is shown, and how.
#[derive(Debug, Default)]
pub struct View {
    /// The compaction whose summary comes before the first record, if there is one.
    pub compaction: Option<EffectiveCompaction>,
    /// True if replies that broke off are shown.
    pub interrupted: bool,
    /// The byte offset of the first record that is shown, in the concatenated inputs.
    pub start: u64,
    /// The byte offset at which the last record ends, in the concatenated inputs.
    pub end: u64,
    /// The parts of shortened results that are shown, by the ids of record and call.
    pub truncations: HashMap<(String, String), KeptSpan>,
    /// The blocks that are left out, by the id of their record, the newest first.
    pub omissions: HashMap<String, Vec<Omission>>,
    /// The ids of retracted records.
    pub retracted: HashSet<String>,
    /// For each target of a retraction in effect, the finding to report if the target does not exist.
    pub unseen_targets: HashMap<String, Finding>,
    /// By record id: the offset of the newest view record that changes or retracts the record. Provider counts between
    /// the record and the view record are invalid.
    pub changed_at: HashMap<String, u64>,
    /// All provider counts before this offset are invalid.
    pub counts_from: u64,
    /// True if compactions are ignored. Provider counts after a compaction are then invalid.
    pub is_whole: bool,
    /// The scale of the newest view record that has one: the ratio between the provider's counts, which that record
    /// makes invalid, and our estimates.
    pub scale: Option<Scale>,
    /// The newest checkpoint, if it was asked for.
    pub checkpoint: Option<Box<LatestCheckpoint>>,
}

/// Finds the view of `inputs`. Also searches for checkpoints if `with_checkpoint` is true.
///
/// # Errors
/// When an input cannot be read; status 65 if `options` name a record that does not exist.
pub fn find(
    inputs: &[Input],
    options: &RebuildOptions,
    with_checkpoint: bool,
    findings: &mut Findings,
) -> anyhow::Result<View> {
    let range = range::find(inputs, options)?;
    let mut search = Search {
        inputs,
        ignore: options.ignore_compactions,
        findings,
        kept: None,
        replacements: HashMap::new(),
        missing: HashMap::new(),
        has_missed: false,
        places: None,
        view: View::default(),
    };
    let needles = if with_checkpoint { &NEEDLES[..] } else { &NEEDLES[..VIEWS] };
    search.run(range.end, &Needles::quoted(needles))?;
    search.end();
    let Search { kept, mut view, .. } = search;
    view.start = range.start.max(kept.unwrap_or(0));
    if range.start > kept.unwrap_or(0) {
        // Counts include turns that are left out.
        (view.counts_from, view.scale) = (u64::MAX, None);
    }
    view.is_whole = options.ignore_compactions;
    view.end = range.end;
    view.interrupted = options.interrupted;
    Ok(view)
}

/// Finds the view of all records, including those that compactions cover.
///
/// # Errors
/// When an input cannot be read.
pub fn whole(inputs: &[Input]) -> anyhow::Result<View> {
    let options = RebuildOptions { ignore_compactions: true, ..RebuildOptions::default() };
    find(inputs, &options, false, &mut Findings::default())
}

/// The types of view records, followed by the checkpoint type, each as it is written in a line.
const NEEDLES: [&str; 5] =
    ["\"compaction\"", "\"truncation\"", "\"omission\"", "\"retract\"", "\"checkpoint\""];
/// The number of view record types at the beginning of `NEEDLES`.
const VIEWS: usize = 4;

struct Search<'s> {
    inputs: &'s [Input],
    ignore: bool,
    findings: &'s mut Findings,
    /// The offset of the first record that the compaction in effect keeps.
    kept: Option<u64>,
    /// The newest replacement of a summary, by the id of the compaction that it replaces.
    replacements: HashMap<String, EffectiveCompaction>,
    /// For each id of a replaced compaction that was not read yet, the findings to report if that compaction does not
    /// exist.
    missing: HashMap<String, Vec<Finding>>,
    /// True if a first kept record was not found.
    has_missed: bool,
    /// The offsets of all records by id. The index is built when the search for a first kept record has failed twice,
    /// because each further search would read all inputs again.
    places: Option<HashMap<String, Places>>,
    view: View,
}

/// The offsets of the records with one id, in order.
#[derive(Default)]
struct Places {
    /// Records whose line contains the id without escapes. Only these can be found by a search.
    plain: Vec<u64>,
    /// Records whose line contains the id with JSON escapes. They are found only at an offset given as a hint.
    escaped: Vec<u64>,
}

impl Places {
    /// Returns the first of `hints` that is one of the places, else the last plain one before `end`.
    fn locate(&self, mut hints: impl Iterator<Item = u64>, end: u64) -> Option<u64> {
        let is_here = |hint: &u64| {
            self.plain.binary_search(hint).is_ok() || self.escaped.binary_search(hint).is_ok()
        };
        let before = self.plain.partition_point(|place| *place < end);
        hints.find(is_here).or(self.plain[..before].last().copied())
    }
}

/// The id and the offset of a record.
struct RecordAddress {
    id: String,
    offset: u64,
    /// True if the line spells the id without escapes.
    is_plain: bool,
}

impl RecordAddress {
    fn of(line: &LineObject<'_>) -> RecordAddress {
        let (id, text) = (line.id().into_owned(), line.object.text().as_bytes());
        let is_plain = memmem::find(text, id.as_bytes()).is_some();
        RecordAddress { id, offset: line.offset, is_plain }
    }
}

impl Search<'_> {
    fn run(&mut self, end: u64, needles: &Needles) -> anyhow::Result<()> {
        let has_none = |input: &Input| input.origin().is_some_and(|origin| !origin.has_views);
        if self.inputs.iter().all(has_none) {
            return Ok(());
        }
        let mut lines = Backward::new(self.inputs, end, needles);
        while let Some(line) = lines.next_line()? {
            for record in record::in_line(&line).iter().rev() {
                if self.kept.is_none_or(|kept| record.offset >= kept) {
                    self.apply(record)?;
                }
            }
            lines.stop_at(self.kept.unwrap_or(0));
        }
        Ok(())
    }

    /// Adds the findings for replaced compactions that do not exist, if the search has read all inputs.
    fn end(&mut self) {
        if self.kept.is_none() {
            let mut missing: Vec<Finding> = self.missing.drain().flat_map(|(_, all)| all).collect();
            missing.sort_by_key(|finding| Reverse(finding.place.offset));
            missing.into_iter().for_each(|finding| self.findings.push(finding));
        }
    }

    /// Applies a view record, or stores the newest usable checkpoint. The records come newest first, so an older one
    /// does not change what a newer one has set.
    fn apply(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        if let Body::Compaction { retry_of: None, .. } = &record.body {
            // The compaction exists, even if it was retracted.
            self.missing.remove(record.id.as_ref());
        }
        if self.view.retracted.contains(record.id.as_ref()) {
            return Ok(());
        }
        match &record.body {
            Body::Retract { target } => self.retract(record, target),
            Body::Truncation { tool_use_id, record_id, shown, scale } => {
                self.scale(*scale, record.offset);
                self.view.changed_at.entry(record_id.clone()).or_insert(record.offset);
                let key = (record_id.clone(), tool_use_id.clone());
                self.view.truncations.entry(key).or_insert_with(|| (**shown).clone());
            }
            Body::Omission { omission, scale } => {
                self.scale(*scale, record.offset);
                self.view.changed_at.entry(omission.record_id.clone()).or_insert(record.offset);
                let known = self.view.omissions.entry(omission.record_id.clone()).or_default();
                known.push((**omission).clone());
            }
            Body::Compaction { summary, retry_of: Some(target), scale, .. } => {
                self.replace(record, target, EffectiveCompaction::new(record, summary, *scale));
            }
            Body::Compaction { summary, first_kept, hint, retry_of: None, scale }
                if self.kept.is_none() && !self.ignore =>
            {
                let own = EffectiveCompaction::new(record, summary, *scale);
                self.compact(record, own, first_kept, *hint)?;
            }
            Body::Checkpoint(checkpoint)
                if self.view.checkpoint.is_none() && checkpoint.is_usable() =>
            {
                let id = record.id.clone().into_owned();
                let (is_current, checkpoint) = (self.kept.is_none(), (**checkpoint).clone());
                self.view.checkpoint =
                    Some(Box::new(LatestCheckpoint { id, is_current, checkpoint }));
            }
            _ => {}
        }
        Ok(())
    }

    /// Retracts the record `target`.
    fn retract(&mut self, record: &Record<'_>, target: &str) {
        self.view.retracted.insert(target.to_owned());
        self.view.changed_at.entry(target.to_owned()).or_insert(record.offset);
        let what = format!("nothing retracted: no record '{target}'");
        let finding = found(&rules::UNKNOWN_TARGET, record, what);
        self.view.unseen_targets.insert(target.to_owned(), finding);
    }

    /// Stores a replacement for the summary of the compaction `target`.
    fn replace(&mut self, record: &Record<'_>, target: &str, own: EffectiveCompaction) {
        let what = format!("compaction not applied: no compaction '{target}' before it");
        let finding = found(&rules::UNKNOWN_TARGET, record, what);
        self.missing.entry(target.to_owned()).or_default().push(finding);
        self.replacements.entry(target.to_owned()).or_insert(own);
    }

    /// Puts a compaction into effect if its first kept record exists. Uses the replacement of its summary if there
    /// is one.
    fn compact(
        &mut self,
        record: &Record<'_>,
        own: EffectiveCompaction,
        first_kept: &str,
        hint: Option<u64>,
    ) -> anyhow::Result<()> {
        let Some(kept) = self.locate(first_kept, hint, record.offset)? else {
            let what = format!("compaction not applied: no record '{first_kept}' before it");
            self.findings.push(found(&rules::UNKNOWN_FIRST_KEPT, record, what));
            return Ok(());
        };
        self.kept = Some(kept);
        let compaction = self.replacements.remove(record.id.as_ref()).unwrap_or(own);
        self.scale(compaction.scale, compaction.at);
        self.view.counts_from = self.view.counts_from.max(compaction.at);
        self.view.compaction = Some(compaction);
        Ok(())
    }

    /// Stores the scale of a view record and marks the provider counts before the record as invalid. Does nothing if
    /// the record has no scale, or if a newer record had one.
    fn scale(&mut self, scale: Option<Scale>, at: u64) {
        if self.view.scale.is_none() && scale.is_some() {
            self.view.scale = scale;
            self.view.counts_from = self.view.counts_from.max(at);
        }
    }

    /// Returns the offset of the record `id` before `end`: the hint if it is right, else the last such record before
    /// `end`.
    fn locate(&mut self, id: &str, hint: Option<u64>, end: u64) -> anyhow::Result<Option<u64>> {
        let address = id.strip_prefix('@').and_then(|offset| offset.parse().ok());
        let hints = address.into_iter().chain(hint).filter(|offset| *offset < end);
        if let Some(places) = &self.places {
            return Ok(places.get(id).and_then(|places| places.locate(hints, end)));
        }
        for offset in hints {
            if self.is_at(id, offset)? {
                return Ok(Some(offset));
            }
        }
        let found = self.search_for(id, end)?;
        if found.is_none() && std::mem::replace(&mut self.has_missed, true) {
            self.places = Some(places_of(self.inputs)?);
        }
        Ok(found)
    }

    /// Returns the offset of the last record before `end` whose id is `id` and is written without escapes.
    fn search_for(&self, id: &str, end: u64) -> anyhow::Result<Option<u64>> {
        let needle = Needles::one(id);
        let mut lines = Backward::new(self.inputs, end, &needle);
        while let Some(line) = lines.next_line()? {
            let records = line.read().into_iter().flatten().map(|line| RecordAddress::of(&line));
            let matching = records.filter(|record| record.is_plain && record.id == id);
            if let Some(last) = matching.last() {
                return Ok(Some(last.offset));
            }
        }
        Ok(None)
    }

    /// Returns true if the record `id` begins at `offset`. Most wrong hints are rejected without reading the line.
    fn is_at(&self, id: &str, offset: u64) -> anyhow::Result<bool> {
        let Some((input, base)) = input::input_at(self.inputs, offset) else { return Ok(false) };
        let own = offset - base;
        let around = input.part(own.saturating_sub(1), own + 1)?;
        if own > 0 && around.first() != Some(&b'\n') && around.last() != Some(&b'{') {
            return Ok(false);
        }
        let Some(line) = line_at(self.inputs, offset)? else { return Ok(false) };
        let is_it = |line: LineObject<'_>| line.offset == offset && line.id() == id;
        Ok(line.read().into_iter().flatten().any(is_it))
    }
}

fn found(rule: &'static Rule, record: &Record<'_>, message: String) -> Finding {
    let (place, id) = (record.place.clone(), Some(Id::from(record.id.as_ref())));
    Finding { rule, place, id, message }
}

/// Indexes the records of `inputs` by id.
fn places_of(inputs: &[Input]) -> anyhow::Result<HashMap<String, Places>> {
    let mut places: HashMap<String, Places> = HashMap::new();
    let mut lines = Lines::new(inputs, 0..u64::MAX);
    while let Some(batch) = lines.batch()? {
        for RecordAddress { id, offset, is_plain } in
            batch.flatten().map(|line| RecordAddress::of(&line))
        {
            let places = places.entry(id).or_default();
            if is_plain { places.plain.push(offset) } else { places.escaped.push(offset) }
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_located_by_a_hint_or_before_the_end() {
        let places = Places { plain: vec![3, 7], escaped: vec![5] };
        let locate = |hints: &[u64], end| places.locate(hints.iter().copied(), end);
        assert_eq!(locate(&[4, 5], 9), Some(5));
        assert_eq!(locate(&[4], 8), Some(7));
        // A compaction cannot keep itself.
        assert_eq!(locate(&[], 7), Some(3));
        assert_eq!(locate(&[], 3), None);
    }
}
