//! Selects the part of the inputs to read: up to a record, up to a turn, or the last turns.

use crate::exit::{Exit, fail};
use crate::input::lines::Lines;
use crate::input::{self, Input};
use crate::record::{Body, Record};
use std::ops::Range;

/// Options for a rebuild.
#[derive(Clone, Debug, Default)]
pub struct RebuildOptions {
    /// Include the records that compactions cover instead of their summaries.
    pub ignore_compactions: bool,
    /// Read only up to and including the record with this id.
    pub at: Option<String>,
    /// Read only up to the end of this turn, counted from 1.
    pub to_turn: Option<u64>,
    /// Show only this many turns, counted from the end.
    pub limit_turns: Option<u64>,
    /// Also show replies that broke off.
    pub interrupted: bool,
}

/// Returns the part of the inputs that `options` select, as byte offsets in the concatenated inputs.
///
/// # Errors
/// When an input cannot be read; status 65 if there is no record `options.at`.
pub fn find(inputs: &[Input], options: &RebuildOptions) -> anyhow::Result<Range<u64>> {
    let mut range = 0..input::total(inputs);
    if let Some(at) = &options.at {
        let mut end = None;
        each_record(inputs, range.end, &mut |record| {
            if record.id == at.as_str() {
                end = Some(record.end);
            }
        })?;
        match end {
            Some(end) => range.end = end,
            None => return fail(Exit::Data, format!("cannot find record '{at}'")),
        }
    }
    if options.to_turn.is_none() && options.limit_turns.is_none() {
        return Ok(range);
    }
    let starts = turn_starts(inputs, range.end)?;
    let count = |turns: u64| usize::try_from(turns).unwrap_or(usize::MAX).min(starts.len());
    let mut last = starts.len();
    if let Some(turns) = options.to_turn {
        last = count(turns);
        range.end = starts.get(last).copied().unwrap_or(range.end);
    }
    if let Some(turns) = options.limit_turns {
        let first = last - count(turns).min(last);
        let is_all = first == 0 && last > 0;
        let start = starts.get(first).filter(|_| !is_all).copied();
        range.start = if is_all { 0 } else { start.unwrap_or(range.end).min(range.end) };
    }
    Ok(range)
}

/// Finds the beginnings of turns. A turn begins with a user record that a person wrote and that does not follow another
/// one. Text that a program injected before it belongs to the turn before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    user_before: bool,
}

impl Turns {
    /// Continues after a record; `in_prompt` is what [`Turns::in_prompt`] returned there.
    #[must_use]
    pub fn after(in_prompt: bool) -> Turns {
        Turns { user_before: in_prompt }
    }

    /// Returns true if a user record would continue the prompt instead of beginning a turn.
    #[must_use]
    pub fn in_prompt(self) -> bool {
        self.user_before
    }

    /// Reads the next record, and returns true if a turn begins with it.
    pub fn begins_with(&mut self, body: &Body<'_>) -> bool {
        match body {
            Body::User { .. } => body.is_typed() && !std::mem::replace(&mut self.user_before, true),
            Body::Assistant { .. } | Body::ToolUse { .. } | Body::ToolResult { .. } => {
                self.user_before = false;
                false
            }
            _ => false,
        }
    }
}

/// Returns the beginnings of the turns before `end`, as byte offsets in the concatenated inputs.
///
/// # Errors
/// When an input cannot be read.
pub fn turn_starts(inputs: &[Input], end: u64) -> anyhow::Result<Vec<u64>> {
    let (mut starts, mut turns) = (Vec::new(), Turns::default());
    each_record(inputs, end, &mut |record| {
        if turns.begins_with(&record.body) {
            starts.push(record.offset);
        }
    })?;
    Ok(starts)
}

/// Calls `each` with every record before `end`.
fn each_record(
    inputs: &[Input],
    end: u64,
    each: &mut dyn FnMut(&Record<'_>),
) -> anyhow::Result<()> {
    let mut lines = Lines::new(inputs, 0..end);
    while let Some(batch) = lines.batch()? {
        batch.flatten().filter_map(|line| Record::new(line).ok()).for_each(|record| each(&record));
    }
    Ok(())
}
