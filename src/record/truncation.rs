//! The part of a shortened tool result that is kept.

use crate::json::write::Members;
use crate::json::{self, Object, elements};

/// The part of a tool result that is kept, and a description of the complete result.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeptSpan {
    /// The number of bytes kept from the beginning.
    pub head: u64,
    /// The number of bytes kept from the end.
    pub tail: u64,
    /// The length of the complete text in bytes.
    pub bytes: u64,
    /// The first 16 hex digits of the SHA-256 of the complete text.
    pub sha256: String,
    /// The images and documents that are left out, by the names that `shorten::media::name` returns.
    pub media: Vec<String>,
}

impl KeptSpan {
    /// Adds the members of this description to a record or to `_meta`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        let media = Some(&self.media).filter(|media| !media.is_empty());
        members
            .number("head", self.head)
            .number("tail", self.tail)
            .number("bytes", self.bytes)
            .string("sha256", &self.sha256)
            .optional(Members::strings, "media", media)
    }

    /// Parses the member `media` of an object that [`KeptSpan::add_to`] wrote. If it is missing, the list is empty.
    ///
    /// # Errors
    /// Returns the reason if it is not a list of strings.
    pub fn media_of(object: &Object<'_>) -> Result<Vec<String>, String> {
        let Some(raw) = object.get("media") else { return Ok(Vec::new()) };
        let names = elements(raw).and_then(|list| {
            list.into_iter().map(|name| Some(json::string(name)?.into_owned())).collect()
        });
        names.ok_or_else(|| "'media' is not a list of strings".to_owned())
    }
}
