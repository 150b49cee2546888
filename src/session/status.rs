//! What is in a transcript: how much was said, what was cut, and what the calls took.

use crate::json::Object;
use crate::jsonl::{Line, Lines};
use crate::messages::view::{self, Options};
use crate::record::{Body, Record};
use crate::source::Input;
use crate::usage::{Calls, Counts};
use anyhow::Context;
use std::mem::take;

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
    /// When it cannot be read.
    pub fn read(input: &Input) -> anyhow::Result<Status> {
        // All of it is looked through for what was taken back.
        let whole = Options { ignore_compactions: true, ..Options::default() };
        let inputs = std::slice::from_ref(input);
        let view = view::find(inputs, &whole, false, &mut Vec::new())?;
        let mut status = Status::default();
        let mut calls = Calls::default();
        let mut user_before = false;
        let mut lines = Lines::new(input, 0, input.length);
        let mut each = |line: Line<'_>| match line {
            Line::Finding(_) => status.findings += 1,
            Line::Object { text, object, place } => {
                calls.take(&object, &place);
                match Record::new(text, &object, place, 0) {
                    Ok(record) => {
                        let counts = !view.retracted.contains(record.id.as_ref());
                        status.take(&record.body, &object, counts, &mut user_before);
                    }
                    Err(_) => status.findings += 1,
                }
            }
        };
        while lines.read(&mut each).with_context(|| format!("cannot read '{}'", input.name))? {}
        status.used = calls.total();
        Ok(status)
    }

    /// Takes in a record; `counts` says that it was not taken back.
    fn take(&mut self, body: &Body<'_>, object: &Object<'_>, counts: bool, user_before: &mut bool) {
        self.records += u64::from(!matches!(body, Body::Session));
        let kind = match body {
            Body::Error => &mut self.errors,
            _ if !counts => return,
            Body::User { .. } => {
                self.turns += u64::from(!*user_before);
                *user_before = true;
                return;
            }
            Body::Assistant { .. } => {
                *user_before = false;
                self.model =
                    object.string("model").map_or_else(|| take(&mut self.model), Into::into);
                return;
            }
            Body::ToolUse { .. } => {
                *user_before = false;
                &mut self.calls
            }
            Body::ToolResult { .. } => {
                *user_before = false;
                &mut self.results
            }
            Body::Compaction { .. } => &mut self.compactions,
            Body::Truncation { .. } => &mut self.truncations,
            Body::Checkpoint(_) => &mut self.checkpoints,
            _ => return,
        };
        *kind += 1;
    }
}
