//! What is in a transcript: how much was said, what was cut, and what the calls took.

use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::Object;
use crate::messages::range::Turns;
use crate::messages::{rebuild, view};
use crate::record::Body;
use crate::usage::{Calls, Counts};

/// Counts of what is in a transcript.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Records, the header not counted.
    pub records: u64,
    /// Turns: what the user said, each with what came after it. What was taken back is not counted.
    pub turns: u64,
    /// Calls of tools.
    pub calls: u64,
    /// Results of such calls.
    pub results: u64,
    /// Compactions that were not taken back.
    pub compactions: u64,
    /// Truncations that were not taken back.
    pub truncations: u64,
    /// Checkpoints that were not taken back.
    pub checkpoints: u64,
    /// Calls to a provider that failed.
    pub errors: u64,
    /// Lines that could not be used, or not in whole.
    pub findings: u64,
    /// The model of the newest reply; empty where none is told.
    pub model: String,
    /// What all calls took, summaries included.
    pub used: Counts,
}

impl Status {
    /// Reads a transcript, whole.
    ///
    /// # Errors
    /// When it cannot be read; 65 when it is a tree transcript of another program.
    pub fn read(input: &Input) -> anyhow::Result<Status> {
        let view = view::whole(std::slice::from_ref(input))?;
        let (mut status, mut calls) = (Status::default(), Calls::default());
        let (mut turns, mut replaced) = (Turns::default(), 0);
        let mut lines = Lines::of(input);
        while let Some(batch) = lines.batch()? {
            for line in batch {
                let Ok(record) = rebuild::read_record(line, &mut replaced)? else {
                    status.findings += 1;
                    continue;
                };
                if let Ok(object) = Object::parse(&record.text) {
                    calls.take(&object, &record.place);
                    let counts = !view.retracted.contains(record.id.as_ref());
                    status.take(&record.body, &object, counts, &mut turns);
                }
            }
        }
        status.used = calls.total();
        Ok(status)
    }

    /// Takes in a record; `counts` says that it was not taken back.
    fn take(&mut self, body: &Body<'_>, object: &Object<'_>, counts: bool, turns: &mut Turns) {
        self.records += u64::from(!matches!(body, Body::Session));
        self.turns += u64::from(counts && turns.begins_with(body));
        let kind = match body {
            Body::Error => &mut self.errors,
            _ if !counts => return,
            Body::Assistant { .. } => {
                if let Some(model) = object.string("model") {
                    self.model = model.into_owned();
                }
                return;
            }
            Body::ToolUse { .. } => &mut self.calls,
            Body::ToolResult { .. } => &mut self.results,
            Body::Compaction { .. } => &mut self.compactions,
            Body::Truncation { .. } => &mut self.truncations,
            Body::Checkpoint(_) => &mut self.checkpoints,
            _ => return,
        };
        *kind += 1;
    }
}
