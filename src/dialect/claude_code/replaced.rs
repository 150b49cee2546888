//! Results that Claude Code sends in another form: `content-replacement` records, which follow the results that they
//! replace.
//!
//! If the results of a reply are long together, Claude Code stores some of them in files and sends their beginnings instead. It
//! records what it sent, and sends the same text again when it resumes the session. Version 2.1.332 was observed doing so: of
//! several replacements of a result, the last one applies, and results that hold an image or a document, or are the
//! beginning of a stored result already, are never replaced.
//!
//! The result itself stays in the translation and is retracted, so that readers can show it.

use crate::dialect::claude_code::record::Record;
use crate::dialect::source::SourceLine;
use crate::dialect::translation::{RecordSource, Translation};
use crate::input::origin::SourcePlace;
use crate::json::outline::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The type of the records.
pub const KIND: &str = "content-replacement";
/// The beginnings of results that are not replaced.
const STORED: [&str; 2] = ["<persisted-output>", "[Old tool result content cleared]"];

/// The replacements of a file.
#[derive(Debug, Default)]
pub struct Replacements {
    /// The record that replaces the result of a call, and the index of the replacement in it, by the id of the call.
    by_call: HashMap<Box<str>, (SourcePlace, usize)>,
}

impl Replacements {
    /// Reads a record with replacements.
    pub fn take(&mut self, line: SourceLine<'_>) {
        for (index, replacement) in line.value.list("replacements").enumerate() {
            if let Some(call) = call_of(replacement) {
                self.by_call.insert(call.into(), (line.place, index));
            }
        }
    }

    /// Appends the replacements of the results in the record at `place`, and retracts these results.
    ///
    /// # Errors
    /// Fails if the source cannot be read.
    pub fn write(&self, place: SourcePlace, out: &mut Translation<'_>) -> anyhow::Result<()> {
        if self.by_call.is_empty() {
            return Ok(());
        }
        let (mut lines, mut others) = (out.reader(), out.reader());
        let Some(record) = lines.line(place)?.map(Record::of) else { return Ok(()) };
        let source = record.source();
        for (index, result) in record.results().enumerate() {
            let call = result.string("tool_use_id").unwrap_or_default();
            let found = self.by_call.get(&*call).filter(|_| is_replaceable(result));
            let Some((place, own)) = found else { continue };
            let Some(line) = others.line(*place)? else { continue };
            let Some(replacement) = line.value.list("replacements").nth(*own) else { continue };
            let target = match index {
                0 => source.first_id().into_owned(),
                _ => format!("{}.{}", source.first_id(), index + 1),
            };
            let to = RecordSource { line, id: None, ts: source.ts };
            out.append(*place, |out| {
                out.record(&to, 2 * own + 1, "tool_result")
                    .raw("tool_use_id", result.quoted("tool_use_id").unwrap_or("\"\""))
                    .raw("content", replacement.quoted("replacement").unwrap_or("\"\""))
                    .flag("is_error", result.is_true("is_error"));
                out.record(&to, 2 * own + 2, "retract").string("target", &target);
            });
        }
        Ok(())
    }
}

/// Returns the id of the call whose result is replaced.
fn call_of(replacement: Value<'_>) -> Option<Cow<'_, str>> {
    let is_result = replacement.get("kind") == Some("\"tool-result\"");
    let has_text = replacement.quoted("replacement").is_some();
    replacement.string("toolUseId").filter(|_| is_result && has_text)
}

fn is_replaceable(result: Value<'_>) -> bool {
    let Some(content) = result.member("content") else { return false };
    let text = result.string("content");
    let is_stored = |text: &str| STORED.iter().any(|begin| text.trim_start().starts_with(begin));
    let is_media =
        |block: Value<'_>| matches!(block.string("type").as_deref(), Some("image" | "document"));
    !text.is_some_and(|text| text.is_empty() || is_stored(&text))
        && !content.elements().is_some_and(|mut blocks| blocks.any(is_media))
}
