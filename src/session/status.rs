//! Statistics of a transcript: records, turns, compactions and token usage.

use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::Object;
use crate::messages::range::Turns;
use crate::messages::{rebuild, view};
use crate::record::Body;
use crate::usage::Calls;

/// The statistics of a transcript.
#[derive(Clone, Debug, Default)]
pub struct SessionStatus {
    /// Records, without the header.
    pub records: u64,
    /// Turns, from a prompt up to the next one. Retracted turns are not counted.
    pub turns: u64,
    /// Tool calls that were not retracted.
    pub calls: u64,
    /// Tool results that were not retracted.
    pub results: u64,
    /// Compactions that were not retracted.
    pub compactions: u64,
    /// Truncations that were not retracted.
    pub truncations: u64,
    /// Omissions that were not retracted.
    pub omissions: u64,
    /// Checkpoints that were not retracted.
    pub checkpoints: u64,
    /// Failed calls to a provider.
    pub errors: u64,
    /// Lines that could not be read, or could be read only in part.
    pub findings: u64,
    /// The model of the newest reply, or an empty string.
    pub model: String,
    /// The token usage of all calls, including those for summaries.
    pub used: Calls,
}

impl SessionStatus {
    /// Reads a whole transcript.
    ///
    /// # Errors
    /// If it cannot be read; 65 if another program wrote it and its records form a tree.
    pub fn read(input: &Input) -> anyhow::Result<SessionStatus> {
        let view = view::whole(std::slice::from_ref(input))?;
        let (mut status, mut calls) = (SessionStatus::default(), Calls::default());
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
                    let is_live = !view.retracted.contains(record.id.as_ref());
                    status.take(&record.body, &object, is_live, &mut turns);
                }
            }
        }
        status.used = calls;
        Ok(status)
    }

    /// Counts a record; `is_live` is false if it was retracted.
    fn take(&mut self, body: &Body<'_>, object: &Object<'_>, is_live: bool, turns: &mut Turns) {
        self.records += u64::from(!matches!(body, Body::Session));
        self.turns += u64::from(is_live && turns.begins_with(body));
        let kind = match body {
            Body::Error => &mut self.errors,
            _ if !is_live => return,
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
            Body::Omission { .. } => &mut self.omissions,
            Body::Checkpoint(_) => &mut self.checkpoints,
            _ => return,
        };
        *kind += 1;
    }
}
