//! How much of a shortened result is kept.

use crate::json::write::Members;
use crate::json::{self, Object, elements};

/// How a shortened result stands to the whole one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeptSpan {
    /// Bytes kept from the beginning.
    pub head: u64,
    /// Bytes kept from the end.
    pub tail: u64,
    /// Length of the whole text in bytes.
    pub bytes: u64,
    /// The first 16 hex digits of the whole text's SHA-256.
    pub sha256: String,
    /// The images and documents that are left out, by the names that `shorten::media` gives.
    pub media: Vec<String>,
}

impl KeptSpan {
    /// Adds its members, for a record and for `_meta`.
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

    /// The member `media` of such an object; none counts as an empty list.
    ///
    /// # Errors
    /// When it is no list of strings.
    pub fn media_of(object: &Object<'_>) -> Result<Vec<String>, String> {
        let Some(raw) = object.get("media") else { return Ok(Vec::new()) };
        let names = elements(raw).and_then(|list| {
            list.into_iter().map(|name| Some(json::string(name)?.into_owned())).collect()
        });
        names.ok_or_else(|| "'media' is no list of strings".to_owned())
    }
}
