//! Imports transcripts of other programs as sessions.
//!
//! The imported text depends only on the source and on the header of the session. So if a source has only grown,
//! importing it again yields the previous text followed by new lines, which are appended to the session. A session
//! that was continued stays as it is while its source is unchanged. After any other change, in the source or in the
//! session, the source is imported again as another session.

use super::fork::{self, Forked};
use crate::input::Input;
use crate::input::lines::Lines;
use crate::json::Object;
use crate::json::write::Members;
use std::borrow::Cow;
use std::path::Path;

/// The change to make for a source that was imported before.
#[derive(Debug)]
pub enum Update {
    /// Nothing: the session has all of the source.
    None,
    /// Append this text to the session.
    Append(String),
    /// Import the source as another session.
    Another,
}

/// The label and the origin of a session, read from the source it is imported from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFacts {
    /// The newest label.
    pub label: Option<String>,
    /// The member `source` of the header, as JSON.
    pub source: Option<String>,
}

impl SourceFacts {
    /// Reads the facts of an opened source. `file` is its full path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(input: &Input, file: &Path) -> anyhow::Result<SourceFacts> {
        let mut facts = SourceFacts::default();
        let mut source = Members::new();
        let mut lines = Lines::of(input);
        while let Some(batch) = lines.batch()? {
            for line in batch.flatten() {
                match line.object.get("type") {
                    Some("\"session\"") => {
                        if let Some(inner) = line.object.get("source") {
                            source = Members::new().spread(inner);
                        }
                        source = source.optional(Members::raw, "session", line.object.get("id"));
                        facts.label = line.object.string("label").map(Cow::into_owned);
                    }
                    Some("\"label\"") => {
                        facts.label = line.object.string("label").map(Cow::into_owned);
                    }
                    _ => {}
                }
            }
        }
        facts.source = Some(source.string("file", &file.to_string_lossy()).into_json());
        Ok(facts)
    }
}

/// Returns the file that the header of a session names as its source, and the session in the file, if it names one.
#[must_use]
pub fn source_of(header: &str) -> Option<(String, Option<String>)> {
    let source = Object::parse(header).ok()?.object("source")?;
    let text = |name: &str| source.string(name).map(Cow::into_owned);
    Some((text("file")?, text("session")))
}

/// Converts a source to the text of a session with this header.
///
/// # Errors
/// When the source cannot be read.
pub fn import(input: &Input, header: &str, ts: &str) -> anyhow::Result<Forked> {
    // Records without a time get the time of the first import, which is in the header, so that importing again gives
    // the same text.
    let first = Object::parse(header).ok().and_then(|it| it.get("ts").map(str::to_owned));
    fork::fork(input, input.length, header, first.as_deref().unwrap_or(ts))
}

/// Compares a source with `session`, the text of the session that it was imported as.
///
/// # Errors
/// When the source cannot be read.
pub fn update(input: &Input, session: &str) -> anyhow::Result<Update> {
    let header = session.lines().next().unwrap_or_default();
    let text = import(input, header, "0")?.text;
    Ok(match text.strip_prefix(session) {
        // The session may have been continued.
        _ if session.starts_with(&text) => Update::None,
        Some(more) if session.ends_with('\n') => Update::Append(more.to_owned()),
        _ => Update::Another,
    })
}
