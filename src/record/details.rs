//! Lists of the files that the tool calls covered by a compaction read or changed.

use crate::json::write::Members;
use crate::json::{Object, elements, string};
use std::collections::BTreeSet;

/// Files that were read or changed. A changed file is not listed as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Files that were only read.
    pub read: BTreeSet<String>,
    /// Files that were changed.
    pub modified: BTreeSet<String>,
}

impl Details {
    /// Parses the `details` of a compaction record. Missing lists are empty.
    #[must_use]
    pub fn parse(raw: &str) -> Details {
        let Ok(object) = Object::parse(raw) else { return Details::default() };
        let list = |name: &str| {
            let elements = object.get(name).and_then(elements).unwrap_or_default();
            elements.into_iter().filter_map(string).map(|path| path.into_owned()).collect()
        };
        Details { read: list("read_files"), modified: list("modified_files") }
    }

    /// Adds the lists to a record or to `_meta`.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members.strings("read_files", &self.read).strings("modified_files", &self.modified)
    }
}
