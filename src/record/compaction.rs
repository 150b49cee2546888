//! What stands for the records that a compaction covers, and how it reads in a request.

use crate::json::write::Members;
use crate::json::{Object, elements, string};
use crate::record::details::Details;
use std::borrow::Cow;

/// The first line of a rendered summary. It says whose words these are not.
pub const HEADING: &str = "[Previous conversation summary]";
/// The line before the user's own words.
const KEPT_HEADING: &str = "[Words of the user, kept as they were]";
/// The line before what was pinned.
const PINNED_HEADING: &str = "[Pinned, kept as it was]";

/// A compaction's text and what it keeps word for word.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// The summary itself.
    pub text: String,
    /// Texts of the user's in the covered range, oldest first, word for word.
    pub kept_user: Vec<String>,
    /// Texts that were pinned in the covered range, oldest first.
    pub pinned: Vec<String>,
    /// Files that the covered calls touched.
    pub details: Details,
    /// Whether it, or one that it goes on from, only stands in for a summary that is still to be made.
    pub needs_retry: bool,
    /// So many turns were covered that no checkpoint had covered.
    pub turns: u64,
    /// The request's tokens right after, where it is known of a record that is there.
    pub tokens_after: Option<u64>,
}

impl Summary {
    /// Reads what [`Summary::add_to`] writes from a compaction record (or from `_meta`).
    ///
    /// # Errors
    /// Says why when the summary is missing or a list holds something that is no string.
    pub fn parse(raw: &str) -> Result<Summary, String> {
        let object = Object::parse(raw).map_err(|_| "a compaction is no object".to_owned())?;
        Summary::parse_object(&object)
    }

    /// The same for an object that was read already.
    ///
    /// # Errors
    /// As [`Summary::parse`].
    pub fn parse_object(object: &Object<'_>) -> Result<Summary, String> {
        let text = object.string("summary").ok_or("no 'summary'")?;
        Ok(Summary {
            text: text.into_owned(),
            kept_user: strings(object, "kept_user", "a compaction")?,
            pinned: strings(object, "pinned", "a compaction")?,
            details: object.get("details").map(Details::parse).unwrap_or_default(),
            needs_retry: object.is_true("needs_summary_retry"),
            turns: object.number("turns_since_checkpoint").unwrap_or(0),
            tokens_after: object.number("tokens_after"),
        })
    }

    /// Adds the members `summary`, `kept_user`, `pinned`, `details`, `needs_summary_retry`,
    /// `turns_since_checkpoint` and, where it is known, `tokens_after`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members
            .string("summary", &self.text)
            .strings("kept_user", &self.kept_user)
            .strings("pinned", &self.pinned)
            .object("details", |it| self.details.add_to(it))
            .bool("needs_summary_retry", self.needs_retry)
            .number("turns_since_checkpoint", self.turns)
            .optional(Members::number, "tokens_after", self.tokens_after)
    }

    /// The text of the user message that stands for the covered records.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = format!("{HEADING}\n{}", self.text.trim());
        for (heading, kept) in [(KEPT_HEADING, &self.kept_user), (PINNED_HEADING, &self.pinned)] {
            if !kept.is_empty() {
                text.push_str(&format!("\n\n{heading}\n{}", kept.join("\n\n")));
            }
        }
        text
    }
}

/// The texts in list `name`; `whose` is what it belongs to.
///
/// # Errors
/// Says so when it is no list of strings.
pub(super) fn strings(object: &Object<'_>, name: &str, whose: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("'{name}' of {whose} is no list of strings");
    let Some(raw) = object.get(name).filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    let elements = elements(raw).ok_or_else(wrong)?;
    elements.into_iter().map(|raw| string(raw).map(Cow::into_owned).ok_or_else(wrong)).collect()
}
