//! The origin of an input whose text was translated from another program's transcript.
//!
//! A translated input is read like any other. Findings about it name places in the file that the user gave, so the
//! origin maps each record to the line it was made from, and keeps the findings of the translation.

use crate::finding::rules::Rule;
use crate::finding::{Finding, Findings, OfRule, Place};
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

    /// Returns the place in the input named `input`.
    #[must_use]
    pub fn in_input(self, input: &Arc<str>) -> Place {
        let SourcePlace { line, offset, length } = self;
        Place { input: input.clone(), line: (line > 0).then_some(line), offset, length }
    }
}

/// A file that is a part of the source, if the source consists of several.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The offset in the source at which it begins.
    pub begin: u64,
    /// The number of lines of the source before it.
    pub lines: u64,
    /// Its name.
    pub name: Arc<str>,
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

impl OfRule for Remark {
    fn rule(&self) -> &'static Rule {
        self.rule
    }
}

/// The origin of a translated input.
#[derive(Debug, Default)]
pub struct Origin {
    /// For each record, in order: the offset at which its text begins, and its source.
    pub places: Vec<(u64, SourcePlace)>,
    /// True if the translation has compactions or checkpoints.
    pub has_views: bool,
    /// The files that the source consists of, in order; none if it is one file.
    pub files: Vec<SourceFile>,
    /// The findings that every program reports.
    pub remarks: Findings<Remark>,
    /// The findings that only claw-check reports, for example that the source has other branches.
    pub notes: Findings<Remark>,
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
        let source = self.source(place.offset);
        source.map_or_else(|| place.clone(), |source| self.in_file(source, &place.input))
    }

    /// Converts a place in the source to a place in the file that contains it. `input` is the name of the source.
    fn in_file(&self, place: SourcePlace, input: &Arc<str>) -> Place {
        let SourcePlace { line, offset, length } = place;
        let file = self.files.partition_point(|file| file.begin <= offset).checked_sub(1);
        let file = file.map(|file| &self.files[file]);
        let (begin, lines) = file.map_or((0, 0), |file| (file.begin, file.lines));
        Place {
            input: file.map_or(input, |file| &file.name).clone(),
            line: line.checked_sub(lines).filter(|line| *line > 0),
            offset: offset - begin,
            length,
        }
    }

    /// Returns the findings that every program reports. `input` is the name of the source.
    pub fn findings(&self, input: &Arc<str>) -> Findings {
        self.remarks.map(|remark| self.finding(remark, input))
    }

    /// Returns the findings that only claw-check reports.
    pub fn notes(&self, input: &Arc<str>) -> Findings {
        self.notes.map(|remark| self.finding(remark, input))
    }

    fn finding(&self, remark: &Remark, input: &Arc<str>) -> Finding {
        Finding {
            rule: remark.rule,
            place: self.in_file(remark.place, input),
            id: remark.id.as_deref().map(Id::from),
            message: remark.message.clone(),
        }
    }
}
