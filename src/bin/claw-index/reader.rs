//! Reads the records of a transcript, and adds their rows to the index.

use crate::asides::SourceCalls;
use crate::insert::{Inserter, RecordPlace};
use crate::read_state::ReadState;
use crate::session::Session;
use clawutils::exit::{Exit, fail};
use clawutils::index::rows::{OtherRow, Rows};
use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::lint;
use clawutils::messages::range::Turns;
use clawutils::messages::rebuild::read_record;
use clawutils::record::Record;
use clawutils::redact::Patterns;
use rusqlite::Connection;
use std::slice;

/// The largest number of rows of a session.
const MOST: i64 = (1 << 23) - 1;

/// The rows of a transcript that is being read.
pub struct SessionReader<'s, 'c> {
    inserter: &'s mut Inserter<'c>,
    session: Session,
    turns: Turns,
    input: &'s Input,
    redact: Option<&'s Patterns>,
}

impl<'s, 'c> SessionReader<'s, 'c> {
    /// Begins the session of `input`, or continues it from `state`.
    pub fn begin(
        database: &Connection,
        inserter: &'s mut Inserter<'c>,
        key: &str,
        state: &ReadState,
        (input, redact): (&'s Input, Option<&'s Patterns>),
    ) -> rusqlite::Result<SessionReader<'s, 'c>> {
        let session = Session::open(database, key, state.next_row)?;
        let turns = Turns::after(state.in_prompt);
        Ok(SessionReader { inserter, session, turns, input, redact })
    }

    /// Reads the part of a transcript that was not read before, and updates `state`.
    pub fn read(&mut self, state: &mut ReadState) -> anyhow::Result<()> {
        let input = self.input;
        let end = last_line_feed(input, state.read_to)?;
        if let Some(origin) = input.origin() {
            self.inserter.delete_findings(&mut self.session)?;
            for finding in lint::list(&origin.findings(&input.name), &input.name) {
                self.inserter.finding(&mut self.session, &finding)?;
            }
        }
        // All findings about a translation are in its origin.
        self.lines(state.read_to..end, input.origin().is_none(), state)?;
        (state.read_to, state.in_prompt) = (end, self.turns.in_prompt());
        // A last line without a line feed may be incomplete, so there is no finding about it.
        state.has_tail = self.lines(end..input.length, false, state)?;
        state.next_row = self.session.next;
        Ok(())
    }

    /// Adds the rows of the records in some lines and, if `has_findings`, the findings about the others. Returns true if
    /// there are records.
    fn lines(
        &mut self,
        range: std::ops::Range<u64>,
        has_findings: bool,
        state: &mut ReadState,
    ) -> anyhow::Result<bool> {
        let mut has_records = false;
        let mut lines = Lines::new(slice::from_ref(self.input), range);
        while let Some(batch) = lines.batch()? {
            for line in batch {
                match read_record(line, &mut 0)? {
                    Ok(record) => {
                        state.last_id = Some(record.id.clone().into_owned());
                        self.record(&record)?;
                        has_records = true;
                    }
                    Err(finding) if has_findings => {
                        self.inserter.finding(&mut self.session, &finding)?;
                    }
                    Err(_) => {}
                }
            }
        }
        Ok(has_records)
    }

    /// Adds the rows of a record, redacted.
    fn record(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        if self.session.next > MOST - 64 {
            let text = format!(
                "cannot index '{}': its messages and other records need more than {MOST} rows",
                self.input.name
            );
            return fail(Exit::Data, text);
        }
        Patterns::redacted(self.redact, record, |record, _| self.rows(record))
    }

    fn rows(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let rows = Rows::of(record);
        let place = self.input.original(&record.place);
        let place = RecordPlace {
            id: &record.id,
            offset: place.offset.cast_signed(),
            length: place.length.cast_signed(),
            timestamp: rows.timestamp,
        };
        if self.turns.begins_with(&record.body) {
            self.inserter.begin_turn(&mut self.session, &place)?;
        }
        self.session.see(rows.timestamp);
        let own = self.session.next;
        for message in &rows.messages {
            let counts = rows.usage.as_ref().map(|usage| usage.counts);
            let counts = counts.filter(|_| self.session.next == own);
            self.inserter.message(&mut self.session, &place, message, counts)?;
        }
        if let Some(other) = rows.other {
            self.other(&place, other)?;
        }
        if let Some(usage) = rows.usage {
            self.inserter.usage(&mut self.session, own, &place, &usage)?;
        }
        Ok(())
    }

    fn other(&mut self, place: &RecordPlace<'_>, other: OtherRow) -> anyhow::Result<()> {
        let (inserter, session) = (&mut self.inserter, &mut self.session);
        match other {
            OtherRow::Session(header) => session.header(header),
            OtherRow::Label(label) => session.label = Some(label),
            OtherRow::Row(row) => inserter.row(session, place, row)?,
            OtherRow::Retraction(target) => inserter.retraction(session, place, target)?,
        }
        Ok(())
    }

    /// Writes those of the calls in the transcript of another program that are not part of the conversation, the current
    /// turn, and the row of the session.
    pub fn finish(mut self, calls: Option<&SourceCalls>) -> rusqlite::Result<()> {
        if let Some(calls) = calls {
            self.inserter.asides(&self.session, calls)?;
        }
        self.inserter.finish(&mut self.session)
    }
}

/// Returns the offset just past the last line feed after `from`, or `from` if there is none.
fn last_line_feed(input: &Input, from: u64) -> anyhow::Result<u64> {
    let mut end = input.length;
    let mut buffer = vec![0; 64 * 1024];
    while end > from {
        let start = end.saturating_sub(buffer.len() as u64).max(from);
        let count = input.read_at(start, &mut buffer[..usize::try_from(end - start)?])?;
        if let Some(at) = memchr::memrchr(b'\n', &buffer[..count]) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(from)
}
