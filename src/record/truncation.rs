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

    /// Parses the members that [`KeptSpan::add_to`] wrote. If `media` is missing, the list is empty.
    ///
    /// # Errors
    /// Returns the reason if a member is missing or invalid.
    pub fn parse(object: &Object<'_>) -> Result<KeptSpan, String> {
        let number = |name: &str| object.number(name).ok_or(format!("no number '{name}'"));
        let names = object.get("media").map_or(Some(Vec::new()), elements).and_then(|list| {
            list.into_iter().map(|name| Some(json::string(name)?.into_owned())).collect()
        });
        let sha256 = object.string("sha256").filter(|hash| !hash.is_empty());
        Ok(KeptSpan {
            head: number("head")?,
            tail: number("tail")?,
            bytes: number("bytes")?,
            sha256: sha256.ok_or("no 'sha256'")?.into_owned(),
            media: names.ok_or("'media' is not a list of strings")?,
        })
    }
}
