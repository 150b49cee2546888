//! Reads all calls to the provider in a project file of Claude Code. Those on abandoned branches and those of subagents
//! are not part of the conversation, but they also cost tokens.
//!
//! A reply can have several lines, which share `message.id` and `requestId`. Its last line has the final counts.

use clawutils::dialect::time::of_text;
use clawutils::index::rows::UsageRow;
use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::json::Object;
use clawutils::usage::Counts;
use std::collections::HashMap;

/// A call to the provider.
#[derive(Debug)]
pub struct SourceCall {
    /// Its time in Unix seconds.
    pub timestamp: Option<f64>,
    /// Its tokens.
    pub usage: UsageRow,
}

/// The calls of a file.
#[derive(Debug, Default)]
pub struct SourceCalls {
    /// For each line of a reply, by its offset: the index in `calls` of the call that it belongs to.
    by_offset: HashMap<u64, usize>,
    /// The calls, in the order of their first lines.
    calls: Vec<SourceCall>,
}

impl SourceCalls {
    /// Reads the calls of `source`. Returns `None` if the header of its translation does not name Claude Code as the
    /// program that wrote it.
    pub fn read(source: &Input, translation: &Input) -> anyhow::Result<Option<SourceCalls>> {
        if !is_claude_code(translation)? {
            return Ok(None);
        }
        let (mut found, mut by_id) = (SourceCalls::default(), HashMap::new());
        let mut lines = Lines::of(source);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                let Some((id, call)) = call(&line.object) else { continue };
                let next = found.calls.len();
                let index = *by_id.entry(id).or_insert(next);
                found.by_offset.insert(line.place.offset, index);
                match found.calls.get_mut(index) {
                    Some(known) => {
                        *known =
                            SourceCall { timestamp: known.timestamp.or(call.timestamp), ..call };
                    }
                    None => found.calls.push(call),
                }
            }
        }
        Ok(Some(found))
    }

    /// Returns the id of the call whose reply has a line at `offset`.
    pub fn id_at(&self, offset: u64) -> Option<&str> {
        self.calls.get(*self.by_offset.get(&offset)?)?.usage.call.as_deref()
    }

    /// Returns all calls.
    pub fn all(&self) -> impl Iterator<Item = &SourceCall> {
        self.calls.iter()
    }
}

fn is_claude_code(translation: &Input) -> anyhow::Result<bool> {
    let mut lines = Lines::of(translation);
    let Some(batch) = lines.batch()? else { return Ok(false) };
    let header = batch.flatten().next();
    let source = header.as_ref().and_then(|line| line.object.get("source"));
    let source = source.and_then(|raw| Object::parse(raw).ok());
    Ok(source.and_then(|it| it.string("dialect")).as_deref() == Some("claude-code"))
}

/// Returns the id of a call and the call, if the line belongs to a reply with token counts.
fn call(line: &Object<'_>) -> Option<(String, SourceCall)> {
    let message = Object::parse(line.get("message")?).ok()?;
    let counts = message.get("usage").and_then(Counts::read)?;
    let own = message.string("id")?.into_owned();
    let id = match line.string("requestId") {
        Some(request) => [&own, ":", &request].concat(),
        None => own,
    };
    let usage = UsageRow {
        kind: "aside",
        call: Some(id.clone()),
        model: message.string("model").map(|model| model.into_owned()),
        provider: Some("anthropic".to_owned()),
        counts,
    };
    let timestamp = line.get("timestamp").and_then(of_text).map(|micros| micros as f64 / 1e6);
    Some((id, SourceCall { timestamp, usage }))
}
