//! The origin of an input whose text was translated from another program's transcript.
//!
//! A translated input is read like any other. Findings about it name places in the file that the user gave, so the
//! origin maps each record to the line it was made from, and keeps the findings of the translation.

use crate::finding::rules::Rule;
use crate::finding::{Finding, Place};
use crate::id::Id;
use std::sync::Arc;

/// A line of the source, or the part of a damaged line that holds a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePlace {
    /// The line number, from 1, or 0 if it is unknown.
    pub line: u64,
    /// The byte offset.
    pub offset: u64,
    /// The length in bytes, without the line feed.
    pub length: u64,
}

impl SourcePlace {
    /// Converts the place of a line.
    #[must_use]
    pub fn of(place: &Place) -> SourcePlace {
        SourcePlace { line: place.line.unwrap_or(0), offset: place.offset, length: place.length }
    }

    fn in_input(self, input: &Arc<str>) -> Place {
        let line = (self.line > 0).then_some(self.line);
        Place { input: input.clone(), line, offset: self.offset, length: self.length }
    }
}

/// A finding from the translation. Unlike a [`Finding`], it can be shared by threads.
#[derive(Clone, Debug)]
pub struct Remark {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// The place in the source.
    pub place: SourcePlace,
    /// The id of the record, if it has one.
    pub id: Option<String>,
    /// The problem, and what was done about it.
    pub message: String,
}

/// The origin of a translated input.
#[derive(Debug, Default)]
pub struct Origin {
    /// For each record, in order: the offset at which its text begins, and its source.
    pub places: Vec<(u64, SourcePlace)>,
    /// The findings that every program reports.
    pub remarks: Vec<Remark>,
    /// The findings that only claw-check reports, for example that the source has other branches.
    pub notes: Vec<Remark>,
}

impl Origin {
    /// Returns the source of the record at or before byte `offset` of the translated text.
    #[must_use]
    pub fn source(&self, offset: u64) -> Option<SourcePlace> {
        let after = self.places.partition_point(|(begin, _)| *begin <= offset);
        after.checked_sub(1).map(|index| self.places[index].1)
    }

    /// Returns the place in the source for a place in the translated text.
    #[must_use]
    pub fn original(&self, place: &Place) -> Place {
        self.source(place.offset).map_or_else(|| place.clone(), |it| it.in_input(&place.input))
    }

    /// Returns the findings that every program reports. `input` is the name of the source.
    pub fn findings<'o>(&'o self, input: &'o Arc<str>) -> impl Iterator<Item = Finding> + 'o {
        self.remarks.iter().map(|remark| remark.finding(input))
    }

    /// Returns the findings that only claw-check reports.
    pub fn notes<'o>(&'o self, input: &'o Arc<str>) -> impl Iterator<Item = Finding> + 'o {
        self.notes.iter().map(|remark| remark.finding(input))
    }
}

impl Remark {
    fn finding(&self, input: &Arc<str>) -> Finding {
        Finding {
            rule: self.rule,
            place: self.place.in_input(input),
            id: self.id.as_deref().map(Id::from),
            message: self.message.clone(),
        }
    }
}
