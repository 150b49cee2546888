//! The summary that replaces the records covered by a compaction, and its text in a request.

use crate::json::write::Members;
use crate::json::{Object, elements, string};
use crate::record::details::Details;
use std::borrow::Cow;

/// The first line of a rendered summary. It tells the model that the user did not write the text.
pub const HEADING: &str = "[Previous conversation summary]";
/// The line before the user's words that are kept verbatim.
const KEPT_HEADING: &str = "[Words of the user, kept as they were]";
/// The line before the pinned text.
const PINNED_HEADING: &str = "[Pinned, kept as it was]";

/// A summary, and the text that is kept verbatim along with it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// The summary itself.
    pub text: String,
    /// What the user wrote in the covered records, verbatim, oldest first.
    pub kept_user: Vec<String>,
    /// Pinned text from the covered records, oldest first.
    pub pinned: Vec<String>,
    /// The files that the covered tool calls read or changed.
    pub details: Details,
    /// True if this summary, or the earlier summary that it continues, is only a placeholder, and the real summary is
    /// still missing.
    pub needs_retry: bool,
    /// The number of turns that this compaction covers and that no checkpoint covers.
    pub turns: u64,
    /// The size of the request right after the compaction, in tokens, as the compaction record states it.
    pub tokens_after: Option<u64>,
    /// The provider's own summary, a JSON object: the API, the server and the model that made it, and its block.
    pub own: Option<Box<str>>,
}

impl Summary {
    /// Parses the members that [`Summary::add_to`] writes, from the JSON text of a compaction record or of `_meta`.
    ///
    /// # Errors
    /// Returns the reason if the summary is missing or a list contains something other than strings.
    pub fn parse(raw: &str) -> Result<Summary, String> {
        let object = Object::parse(raw).map_err(|_| "a compaction is not an object".to_owned())?;
        Summary::parse_object(&object)
    }

    /// Parses an object that has the members that [`Summary::add_to`] writes.
    ///
    /// # Errors
    /// The same as for [`Summary::parse`].
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
            own: object.get("provider_summary").filter(|it| it.starts_with('{')).map(Into::into),
        })
    }

    /// Adds the members `summary`, `kept_user`, `pinned`, `details`, `needs_summary_retry`, `turns_since_checkpoint`
    /// and, if known, `tokens_after` and `provider_summary`.
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
            .optional(Members::raw, "provider_summary", self.own.as_deref())
    }

    /// Returns the text of the user message that replaces the covered records.
    #[must_use]
    pub fn render(&self) -> String {
        let text = format!("{HEADING}\n{}", self.text.trim());
        text + &self.kept().map(|kept| format!("\n\n{kept}")).unwrap_or_default()
    }

    /// Returns the text that is kept verbatim, if there is any.
    #[must_use]
    pub fn kept(&self) -> Option<String> {
        let kept = [(KEPT_HEADING, &self.kept_user), (PINNED_HEADING, &self.pinned)];
        let kept = kept.into_iter().filter(|(_, texts)| !texts.is_empty());
        let parts: Vec<String> =
            kept.map(|(heading, texts)| format!("{heading}\n{}", texts.join("\n\n"))).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// Returns the strings of the list `name`; none if it is missing. `whose` names the record in the error.
///
/// # Errors
/// Returns the reason if it is not a list of strings.
pub(super) fn strings(object: &Object<'_>, name: &str, whose: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("'{name}' of {whose} is not a list of strings");
    let Some(raw) = object.get(name).filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    let elements = elements(raw).ok_or_else(wrong)?;
    elements.into_iter().map(|raw| string(raw).map(Cow::into_owned).ok_or_else(wrong)).collect()
}
