//! Turns a session into spans of OpenTelemetry, for a tracing backend: a trace for each turn, with a span for the turn, for
//! each request to the model, and for each tool call.
//!
//! The ids depend only on the session and its records, so a session that is exported again gives the same spans. A request
//! lasts from the record before it to its last record, and a call from its record to its result. A record without a time has
//! that of the one before it, and the first ones that of the first with a time.

mod conventions;
mod messages;
mod otlp;
mod turn;

use crate::input::Input;
use crate::show::walk::Reading;
use crate::show::{Item, ShowNotes, ShowOptions, ShownEntry, ShownPart};
use anyhow::Context;
use otlp::Span;
use std::io::{self, Write};
use turn::{Facts, Turn};

/// The result of writing the spans of a session.
#[derive(Debug)]
pub struct Written {
    /// The notes about the session.
    pub notes: ShowNotes,
    /// The number of turns that were written.
    pub turns: usize,
    /// The number of turns that were left out, because no record of the session has a time. OTLP requires times.
    pub untimed: usize,
}

/// Writes the spans of a session as JSON lines of OTLP, a line for each turn. With `has_content`, they have the text of the
/// conversation.
///
/// # Errors
/// If an input cannot be read or `out` cannot be written to.
pub fn write(
    inputs: &[Input],
    has_content: bool,
    options: &ShowOptions,
    out: &mut dyn Write,
) -> anyhow::Result<Written> {
    let program = "clawutils".to_owned();
    let file = inputs.first().map(|input| input.name.to_string()).unwrap_or_default();
    let facts = Facts { has_content, program, file, ..Facts::default() };
    let mut session =
        Session { facts, first: None, now: 0, turn: None, waiting: Vec::new(), turns: 0 };
    let reading = Reading::new(inputs, options, ShownPart::default())?;
    let notes = reading.read(&mut |entry| session.take(entry, out))?;
    session.end_turn(out).context("cannot write '<stdout>'")?;
    Ok(Written { notes, turns: session.turns, untimed: session.waiting.len() })
}

/// The session that is being read.
struct Session {
    facts: Facts,
    /// The time of the first entry that has one.
    first: Option<i64>,
    /// The time of the newest entry; 0 if it is unknown.
    now: i64,
    turn: Option<Turn>,
    /// The spans of turns that ended before a time was known.
    waiting: Vec<Vec<Span>>,
    /// The number of turns that were written.
    turns: usize,
}

impl Session {
    fn take(&mut self, entry: &ShownEntry, out: &mut dyn Write) -> io::Result<()> {
        self.now = entry.time.unwrap_or(self.now).max(self.now);
        self.first = self.first.or(Some(self.now).filter(|time| *time > 0));
        match &entry.item {
            Item::Session(session) => {
                // A header without an id is named by its place.
                let id =
                    Some(session.id.clone()).filter(|id| !id.is_empty() && !id.starts_with('@'));
                self.facts.conversation = id;
                let dialect = session.dialect.clone();
                self.facts.program = dialect.unwrap_or_else(|| self.facts.program.clone());
            }
            Item::Turn(number) => {
                self.end_turn(out)?;
                self.turn = Some(Turn::begin(self.facts.clone(), *number, &entry.id, self.now));
            }
            Item::Compaction(_) => self.facts.is_compacted = true,
            _ => {}
        }
        self.turn.iter_mut().for_each(|turn| turn.take(entry));
        Ok(())
    }

    /// Ends the current turn. Writes it, and those before it, once a time is known.
    fn end_turn(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.waiting.extend(self.turn.take().map(Turn::end));
        let Some(first) = self.first else { return Ok(()) };
        for mut spans in self.waiting.drain(..) {
            spans.iter_mut().for_each(|span| span.begin_at_least(first));
            out.write_all(otlp::line(&self.facts.program, &spans).as_bytes())?;
            self.turns += 1;
        }
        Ok(())
    }
}
