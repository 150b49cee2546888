//! The original content of a record, as text.

use crate::exit::{Error, Exit};
use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::{Object, string};
use crate::printable::printable_lines;
use crate::record::Record;
use crate::record::content::{Block, BlockKind, Content};
use crate::shorten;
use anyhow::Context;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes the complete original content of a record: the text of a string or of text blocks; the JSON of a list with
/// images, documents, results or thinking; the line of a record without content. If several records have the id, writes the last
/// one. If `printable` is true, escapes control characters except line feeds and tabs.
///
/// # Errors
/// Fails with status 65 if no record has this id, and with another status if an input cannot be read or `out` cannot
/// be written.
pub fn write_record(
    inputs: &[Input],
    id: &str,
    printable: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut found = None;
    let mut lines = Lines::new(inputs, 0..u64::MAX);
    while let Some(batch) = lines.batch()? {
        for record in batch.flatten().filter_map(|line| Record::new(line).ok()) {
            if record.id == id {
                found = Some(original(&record.text, has_more_than_text));
            }
        }
    }
    let text = found.ok_or_else(|| Error::new(Exit::Data, format!("cannot find record '{id}'")))?;
    write_text(text, printable, out).context("cannot write '<stdout>'")
}

/// Writes the text of a record if it is a reply.
///
/// # Errors
/// When writing to `out` fails.
pub fn write_reply(record: &str, printable: bool, out: &mut impl Write) -> io::Result<()> {
    let is_reply = Object::parse(record)
        .is_ok_and(|object| object.string("type").as_deref() == Some("assistant"));
    if is_reply { write_text(original(record, |_| false), printable, out) } else { Ok(()) }
}

/// Writes `text`, and a line feed if it is not empty and does not end with one.
fn write_text(text: String, printable: bool, out: &mut impl Write) -> io::Result<()> {
    let text = if printable { printable_lines(&text) } else { Cow::Borrowed(&*text) };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{text}{end}")
}

/// Returns true if a block is an image, a document, a tool result or thinking.
fn has_more_than_text(block: &Block<'_>) -> bool {
    matches!(block.kind, BlockKind::Media | BlockKind::ToolResult { .. }) || block.is_thinking()
}

/// Returns the text of a record's content, or the record itself if it has none. Returns the JSON of the content if one of its
/// blocks `needs_json`.
fn original(record: &str, needs_json: fn(&Block<'_>) -> bool) -> String {
    let text = Object::parse(record).ok().and_then(|object| {
        let content = object.get("content").or_else(|| object.get("output"))?;
        match string(content) {
            Some(text) => Some(text.into_owned()),
            None => Content::parse(content).ok().map(|parsed| {
                match parsed.blocks().iter().any(needs_json) {
                    true => content.to_owned(),
                    false => shorten::text_of(&parsed),
                }
            }),
        }
    });
    text.unwrap_or_else(|| record.to_owned())
}
