//! Which files the covered calls of a compaction read and changed.

use crate::json::write::Members;
use crate::json::{Object, elements, string};
use std::collections::BTreeSet;

/// Files by what was done to them; a file that was changed is not listed as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Files that were read and not changed.
    pub read: BTreeSet<String>,
    /// Files that were changed.
    pub modified: BTreeSet<String>,
}

impl Details {
    /// Reads the `details` of a compaction record; what is missing is empty.
    #[must_use]
    pub fn parse(raw: &str) -> Details {
        let Ok(object) = Object::parse(raw) else { return Details::default() };
        let list = |name: &str| {
            let elements = object.get(name).and_then(elements).unwrap_or_default();
            elements.into_iter().filter_map(string).map(|path| path.into_owned()).collect()
        };
        Details { read: list("read_files"), modified: list("modified_files") }
    }

    /// Adds its members, for a record and for `_meta`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members.strings("read_files", &self.read).strings("modified_files", &self.modified)
    }
}
