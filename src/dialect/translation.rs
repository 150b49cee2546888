//! Writes the records into which a transcript in another dialect is translated. The result is read like any other
//! input.
//!
//! Every record names the line it comes from: its id is the id in that line or, if the line has none, `@` and the
//! line's byte offset. If a line becomes several records, the ids of the second and later ones end in `.2`, `.3` and so
//! on.
//!
//! Long values are not copied, so the text consists of parts of the source and of new text between them. Only the new
//! text is stored. The records made from a line form a [`Chunk`]. Chunks can be written in any order; they are put in
//! order afterwards.

use crate::dialect::Choice;
pub use crate::dialect::draft::Chunk;
use crate::dialect::draft::Draft;
use crate::dialect::source::{SourceLine, SourceReader};
use crate::dialect::time::Time;
use crate::dialect::writer::{RecordWriter, Reply, ReplyPart, split_blocks};
use crate::finding::rules::Rule;
use crate::finding::{Finding, Findings};
use crate::id;
use crate::input::Input;
use crate::input::line::read_line;
use crate::input::lines::{Lines, ValueLine};
use crate::input::origin::{Origin, Remark, SourceFile, SourcePlace};
use crate::json::outline::Outline;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The source of records: a line, and the id and the time that its records get.
#[derive(Clone, Debug)]
pub struct RecordSource<'a> {
    /// The line.
    pub line: SourceLine<'a>,
    /// The id of the first record. If there is none, it is the address of the line.
    pub id: Option<Cow<'a, str>>,
    /// The time.
    pub ts: Option<Time<'a>>,
}

impl RecordSource<'_> {
    /// Returns the id of the first record.
    #[must_use]
    pub fn first_id(&self) -> Cow<'_, str> {
        let address = || Cow::Owned(id::address(self.line.place.offset));
        self.id.as_deref().map_or_else(address, Cow::Borrowed)
    }
}

/// The type of records that only keep what another program wrote.
pub const IMPORTED: &str = "imported";

/// A translation that is being written.
#[derive(Debug)]
pub struct Translation<'i> {
    source: &'i Input,
    draft: Draft,
    /// The header of the session, which comes before the chunks.
    header: Option<(SourcePlace, Chunk)>,
    /// The chunks of the text, in order.
    chunks: Vec<(SourcePlace, Chunk)>,
    /// For each line, a record of type [`IMPORTED`] that is used if nothing else is made of the line; `None` if such
    /// lines are dropped.
    kept: Option<Vec<(SourcePlace, Chunk)>>,
    remarks: Findings<Remark>,
    notes: Findings<Remark>,
    /// The number of occurrences and the first place of each kind of unknown content, by its description.
    unknown: HashMap<String, (usize, SourcePlace)>,
    files: Vec<SourceFile>,
    /// True after a compaction, checkpoint or retraction.
    has_views: bool,
    /// The number of records written so far.
    records: usize,
}

impl<'i> Translation<'i> {
    /// Begins the translation of `source`.
    #[must_use]
    pub fn new(source: &'i Input, choice: &Choice) -> Translation<'i> {
        Translation {
            source,
            draft: Draft::new(&choice.directory),
            header: None,
            chunks: Vec::new(),
            kept: choice.keeps_all.then(Vec::new),
            remarks: Findings::default(),
            notes: Findings::default(),
            unknown: HashMap::new(),
            files: Vec::new(),
            has_views: false,
            records: 0,
        }
    }

    /// Sets the files that the source consists of, if there are several.
    pub fn set_files(&mut self, files: Vec<SourceFile>) {
        self.files = files;
    }

    /// Passes each line of the source that holds an object to `take`, and keeps the findings about the others.
    ///
    /// # Errors
    /// Fails if the source cannot be read.
    pub fn each_line(
        &mut self,
        take: &mut dyn FnMut(SourceLine<'_>, &mut Translation<'i>),
    ) -> anyhow::Result<()> {
        let mut outline = Outline::default();
        let mut lines = Lines::with_values(self.source);
        while let Some(mut batch) = lines.batch()? {
            while let Some((place, line)) = batch.next_value() {
                match line {
                    ValueLine::Object(value, lead) => {
                        take(SourceLine { value, place, at: place.offset + lead as u64 }, self);
                    }
                    ValueLine::Other(bytes) => {
                        for line in read_line(bytes, place.in_input(&self.source.name), 0) {
                            match line {
                                Ok(line) => {
                                    let own = SourcePlace::of(&line.place);
                                    let at = place.offset + line.object.offset_in(bytes);
                                    let text = line.object.text();
                                    let line = SourceLine::of(text, at, own, &mut outline);
                                    line.into_iter().for_each(|line| take(line, self));
                                }
                                Err(finding) => self.finding(finding),
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns a reader of lines of the source.
    #[must_use]
    pub fn reader(&self) -> SourceReader<'i> {
        SourceReader::new(self.source)
    }

    /// Returns the text that `write` writes as a chunk. [`Translation::add`] makes it a part of the translation.
    pub fn chunk(&mut self, write: impl FnOnce(&mut Translation<'i>)) -> Chunk {
        let begin = self.draft.begin_chunk();
        write(self);
        self.draft.end_chunk(begin)
    }

    /// Returns the number of records that were written so far, in all chunks.
    #[must_use]
    pub fn records(&self) -> usize {
        self.records
    }

    /// Appends the chunk of the line at `place`.
    pub fn add(&mut self, place: SourcePlace, chunk: Chunk) {
        if !chunk.is_empty() {
            self.chunks.push((place, chunk));
        }
    }

    /// Writes records of the line at `place` and appends them.
    pub fn append(&mut self, place: SourcePlace, write: impl FnOnce(&mut Translation<'i>)) {
        let chunk = self.chunk(write);
        self.add(place, chunk);
    }

    /// Writes the header of the session, which names the line at `place` as its source.
    pub fn header(&mut self, place: SourcePlace, write: impl FnOnce(&mut Translation<'i>)) {
        self.header = Some((place, self.chunk(write)));
    }

    /// If unused lines are kept, writes a record with this line, which is used if no chunk of the line is appended.
    pub fn keep(&mut self, source: &RecordSource<'_>) {
        if self.kept.is_some() {
            let chunk = self.chunk(|out| out.imported(source));
            self.kept.iter_mut().for_each(|kept| kept.push((source.line.place, chunk)));
        }
    }

    /// Begins a record of type `kind`, which ends when the writer is dropped. `number` is its number
    /// among the records that the line becomes, counted from 1.
    pub fn record<'o>(
        &'o mut self,
        source: &'o RecordSource<'_>,
        number: usize,
        kind: &str,
    ) -> RecordWriter<'o> {
        self.records += 1;
        self.has_views |= matches!(kind, "compaction" | "checkpoint" | "retract");
        let mut writer = RecordWriter::new(&mut self.draft, source.line);
        writer.string("type", kind).id(source.id.as_deref(), number);
        writer.time("ts", source.ts.and_then(Time::micros));
        writer
    }

    /// Writes a reply: a record with the blocks before its first call, one for each call, and one for each run of
    /// blocks after a call. The first one is record `number` of the line.
    pub fn reply(&mut self, source: &RecordSource<'_>, number: usize, reply: &Reply<'_>) {
        let (blocks, rest) = split_blocks(&reply.parts);
        self.record(source, number, "assistant").blocks("content", blocks).facts(reply);
        self.more_of_reply(source, number + 1, rest);
    }

    /// Writes further parts of a reply, from record `number` of the line on.
    pub fn more_of_reply(
        &mut self,
        source: &RecordSource<'_>,
        mut number: usize,
        mut parts: &[ReplyPart<'_>],
    ) {
        while let Some((first, rest)) = parts.split_first() {
            if let ReplyPart::Call { id, name, input } = first {
                let mut record = self.record(source, number, "tool_use");
                record.raw("tool_use_id", id).raw("name", name).raw("input", input);
                parts = rest;
            } else {
                let (blocks, rest) = split_blocks(parts);
                self.record(source, number, "assistant").blocks("content", blocks);
                parts = rest;
            }
            number += 1;
        }
    }

    /// Writes that a call to the provider failed, or that the user ended the turn. This is not sent. `status` is JSON.
    pub fn failure(
        &mut self,
        source: &RecordSource<'_>,
        class: &str,
        status: Option<&str>,
        message: &str,
    ) {
        let mut record = self.record(source, 1, "error");
        record.string("class", class).optional("status", status).string("message", message);
    }

    /// Keeps a line that has no equivalent in clawutils, in a record that readers ignore.
    pub fn imported(&mut self, source: &RecordSource<'_>) {
        self.record(source, 1, IMPORTED).raw("record", source.line.value.text());
    }

    /// Adds a remark, which every program that reads the input reports.
    pub fn remark(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }

    /// Puts the remarks in the order of their places.
    pub fn sort_remarks(&mut self) {
        self.remarks.listed_mut().sort_by_key(|remark| remark.place.offset);
    }

    /// Adds a note, which only claw-check reports.
    pub fn note(&mut self, remark: Remark) {
        self.notes.push(remark);
    }

    /// Adds the finding about a damaged line.
    fn finding(&mut self, finding: Finding) {
        let Finding { rule, place, id, message } = finding;
        let (place, id) = (SourcePlace::of(&place), id.map(|id| id.to_string()));
        self.remark(Remark { rule, place, id, message });
    }

    /// Counts a part of the source that is skipped because its type is unknown.
    pub fn unknown(&mut self, what: impl Into<String>, place: SourcePlace) {
        self.unknown.entry(what.into()).or_insert((0, place)).0 += 1;
    }

    /// Ends the translation and returns it as an input. Remarks about skipped parts of unknown types have the rule
    /// `rule`.
    ///
    /// # Errors
    /// Fails if the text could not be written.
    pub fn finish(mut self, rule: &'static Rule) -> anyhow::Result<Input> {
        let mut unknown: Vec<_> = std::mem::take(&mut self.unknown).into_iter().collect();
        unknown.sort_by_key(|(_, (_, place))| place.offset);
        for (what, (count, place)) in unknown {
            let message = match count {
                1 => format!("skipped {what}"),
                _ => format!("skipped {what}, here and {} more times", count - 1),
            };
            self.remark(Remark { rule, place, id: None, message });
        }
        let chunks = self.chunks();
        let mut offsets = Vec::with_capacity(chunks.len());
        let texts = chunks.iter().map(|(_, chunk)| *chunk);
        let input = self.draft.finish(self.source, texts, |offset| offsets.push(offset))?;
        let places = offsets.into_iter().zip(chunks.into_iter().map(|(place, _)| place)).collect();
        let Translation { remarks, notes, files, has_views, .. } = self;
        Ok(input.with_origin(Origin { places, has_views, files, remarks, notes }))
    }

    /// Returns the chunks of the text in order. If lines are kept, each line without a chunk comes before the first
    /// later line that has one.
    fn chunks(&mut self) -> Vec<(SourcePlace, Chunk)> {
        let chunks = std::mem::take(&mut self.chunks);
        let mut all: Vec<_> = self.header.take().into_iter().collect();
        let Some(kept) = self.kept.take() else {
            all.extend(chunks);
            return all;
        };
        let used: HashSet<u64> = chunks.iter().map(|(place, _)| place.offset).collect();
        let is_unused = |(place, _): &(SourcePlace, Chunk)| !used.contains(&place.offset);
        let mut kept = kept.into_iter().filter(is_unused).peekable();
        for (place, chunk) in chunks {
            while let Some(line) = kept.next_if(|(line, _)| line.offset < place.offset) {
                all.push(line);
            }
            all.push((place, chunk));
        }
        all.extend(kept);
        all
    }
}
