//! How much of a shortened result is kept.

use crate::json::{self, Object, elements, quote};

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
    /// The members that say so, for a record and for `_meta`.
    #[must_use]
    pub fn members(&self) -> String {
        let KeptSpan { head, tail, bytes, .. } = self;
        let sha256 = quote(&self.sha256);
        let media: Vec<_> = self.media.iter().map(|name| quote(name)).collect();
        let media = match media.is_empty() {
            true => String::new(),
            false => format!(r#","media":[{}]"#, media.join(",")),
        };
        format!(r#""head":{head},"tail":{tail},"bytes":{bytes},"sha256":{sha256}{media}"#)
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
