//! Reads the records of a transcript, and adds their rows to the index.

use crate::asides::SourceCalls;
use crate::insert::{Inserter, RecordPlace};
use crate::read_state::ReadState;
use crate::session::Session;
use clawutils::exit::{Exit, fail};
use clawutils::finding::Finding;
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
    /// The calls in a transcript of another program.
    calls: Option<SourceCalls>,
}

impl<'s, 'c> SessionReader<'s, 'c> {
    /// Begins a session, or continues it from `state`.
    pub fn begin(
        database: &Connection,
        inserter: &'s mut Inserter<'c>,
        key: &str,
        state: &ReadState,
        calls: Option<SourceCalls>,
    ) -> rusqlite::Result<SessionReader<'s, 'c>> {
        let session = Session::open(database, key, state.next_row)?;
        Ok(SessionReader { inserter, session, turns: Turns::after(state.in_prompt), calls })
    }

    /// Reads the part of a transcript that was not read before, and updates `state`.
    pub fn read(
        &mut self,
        input: &Input,
        state: &mut ReadState,
        redact: Option<&Patterns>,
    ) -> anyhow::Result<()> {
        let end = last_line_feed(input, state.read_to)?;
        if let Some(origin) = input.origin() {
            self.inserter.delete_findings(&mut self.session)?;
            for finding in lint::list(&origin.findings(&input.name), &input.name) {
                self.inserter.finding(&mut self.session, &finding)?;
            }
        }
        self.lines(input, state.read_to..end, redact, state)?;
        (state.read_to, state.in_prompt) = (end, self.turns.in_prompt());
        state.has_tail = end < input.length && self.tail(input, end, redact, state)?;
        state.next_row = self.session.next;
        Ok(())
    }

    fn lines(
        &mut self,
        input: &Input,
        range: std::ops::Range<u64>,
        redact: Option<&Patterns>,
        state: &mut ReadState,
    ) -> anyhow::Result<()> {
        let mut lines = Lines::new(slice::from_ref(input), range);
        while let Some(batch) = lines.batch()? {
            for line in batch {
                match read_record(line, &mut 0)? {
                    Ok(record) => {
                        state.last_id = Some(record.id.clone().into_owned());
                        self.record(input, &record, redact)?;
                    }
                    Err(finding) => self.finding(input, &finding)?,
                }
            }
        }
        Ok(())
    }

    /// Reads a last line without a line feed. Returns true if it is a record.
    fn tail(
        &mut self,
        input: &Input,
        from: u64,
        redact: Option<&Patterns>,
        state: &mut ReadState,
    ) -> anyhow::Result<bool> {
        let mut has_record = false;
        let mut lines = Lines::new(slice::from_ref(input), from..input.length);
        while let Some(batch) = lines.batch()? {
            for line in batch {
                if let Ok(record) = read_record(line, &mut 0)? {
                    state.last_id = Some(record.id.clone().into_owned());
                    self.record(input, &record, redact)?;
                    has_record = true;
                }
            }
        }
        Ok(has_record)
    }

    fn finding(&mut self, input: &Input, finding: &Finding) -> anyhow::Result<()> {
        // All findings about a translation are in its origin, from which `read` has already added them.
        if input.origin().is_none() {
            self.inserter.finding(&mut self.session, finding)?;
        }
        Ok(())
    }

    /// Adds the rows of a record, redacted.
    fn record(
        &mut self,
        input: &Input,
        record: &Record<'_>,
        redact: Option<&Patterns>,
    ) -> anyhow::Result<()> {
        if self.session.next > MOST - 64 {
            let text = format!(
                "cannot index '{}': its messages and other records need more than {MOST} rows",
                input.name
            );
            return fail(Exit::Data, text);
        }
        Patterns::redacted(redact, record, |record, _| self.rows(input, record))
    }

    fn rows(&mut self, input: &Input, record: &Record<'_>) -> anyhow::Result<()> {
        let rows = Rows::of(record);
        let place = input.original(&record.place);
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

    /// Writes the calls that are not part of the conversation, the current turn, and the row of the session.
    pub fn finish(mut self) -> rusqlite::Result<()> {
        if let Some(calls) = &self.calls {
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
