//! Forks a transcript: copies its beginning into a new one.
//!
//! The copied records follow a new header. They get new ids, because an id depends on the preceding line. The
//! ids in view records and checkpoints are replaced accordingly.

use crate::dialect;
use crate::exit::{Exit, fail};
use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::{Object, quote};
use crate::messages::rebuild::{self, RebuildOptions};
use crate::record::{self, Body, Record};
use std::collections::HashMap;

/// The members of view records and checkpoints that hold the id of another record.
const LINKS: [&str; 5] = ["first_kept_entry_id", "record_id", "retry_of", "target", "covers_up_to"];

/// A new transcript with copied records.
#[derive(Debug, Default)]
pub struct Forked {
    /// The lines of the transcript.
    pub text: String,
    /// The number of copied records.
    pub records: usize,
    /// The number of damaged places that were left out.
    pub left_out: usize,
    /// The number of tool calls at the end of the copy that have no result yet.
    pub open: usize,
    /// The new id and byte offset of each copied record, by its old id.
    ids: HashMap<String, (String, usize)>,
}

/// Returns the id of the last record before byte `end` that is neither a header nor a label.
///
/// # Errors
/// If the transcript cannot be read.
pub fn last_id(input: &Input, end: u64) -> anyhow::Result<Option<String>> {
    let mut last = None;
    each(input, end, &mut |record, _| {
        if !matches!(record.body, Body::Session | Body::Label) {
            last = Some(record.id.clone().into_owned());
        }
        Ok(())
    })?;
    Ok(last)
}

/// Creates a transcript that begins with the record `header`, followed by copies of the records before byte
/// `end`, except headers and labels.
///
/// # Errors
/// 65 if another program wrote the transcript and its records form a tree; 74 or 77 if the transcript cannot be read.
pub fn fork(input: &Input, end: u64, header: &str, ts: &str) -> anyhow::Result<Forked> {
    let mut forked = Forked::default();
    let mut previous = match record::seal(header, b"", ts) {
        Ok(line) => line,
        Err(why) => return fail(Exit::Data, why),
    };
    forked.push(&previous);
    forked.left_out = each(input, end, &mut |record, object| {
        if let Some(dialect) = dialect::foreign_tree(object) {
            let name = &input.name;
            return fail(
                Exit::Data,
                format!(
                    "cannot fork '{name}': a transcript of {dialect}, whose records form a tree"
                ),
            );
        }
        // The new session has its own header and label.
        if matches!(record.body, Body::Session | Body::Label) {
            return Ok(());
        }
        let text = forked.relink(object, &record.body);
        match record::seal(&text, previous.as_bytes(), ts) {
            Ok(line) => previous = line,
            Err(why) => return fail(Exit::Data, why),
        }
        forked.note(&record.id, &previous);
        forked.push(&previous);
        Ok(())
    })?;
    let copy = Input::memory("fork", forked.text.clone().into_bytes());
    forked.open =
        rebuild::stream(&[copy], &RebuildOptions::default(), false, |_| Ok(()))?.open_calls.len();
    Ok(forked)
}

impl Forked {
    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn note(&mut self, old: &str, line: &str) {
        let new = Object::parse(line).ok().and_then(|object| object.string("id").map(Into::into));
        self.ids.insert(old.to_owned(), (new.unwrap_or_default(), self.text.len()));
        self.records += 1;
    }

    /// Returns the text of a record in which the ids of copied records are replaced by their new ids.
    fn relink(&self, object: &Object<'_>, body: &Body<'_>) -> String {
        let mut text = object.text().to_owned();
        if !body.is_view() && !matches!(body, Body::Checkpoint(_)) {
            return text;
        }
        for name in LINKS {
            let Some(old) = object.string(name) else { continue };
            let Some((new, at)) = self.ids.get(old.as_ref()) else { continue };
            text = with(&text, name, &quote(new));
            if name == "first_kept_entry_id" && object.get("first_kept_offset").is_some() {
                text = with(&text, "first_kept_offset", &at.to_string());
            }
        }
        text
    }
}

fn with(text: &str, name: &str, value: &str) -> String {
    Object::parse(text).map_or_else(|_| text.to_owned(), |object| object.with(name, value))
}

/// Calls `take` for each intact record before byte `end`, and returns the number of damaged places.
fn each(
    input: &Input,
    end: u64,
    take: &mut dyn FnMut(&Record<'_>, &Object<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<usize> {
    let mut lines = Lines::new(std::slice::from_ref(input), 0..end);
    let mut damaged = 0;
    while let Some(batch) = lines.batch()? {
        for line in batch {
            let record =
                line.ok().and_then(|line| Some((line.object.clone(), Record::new(line).ok()?)));
            match record {
                Some((object, record)) => take(&record, &object)?,
                None => damaged += 1,
            }
        }
    }
    Ok(damaged)
}
