//! Lookup of environment variables.

use std::ffi::OsString;

/// The function that the caller supplies to look up a variable by its name.
#[derive(Clone, Copy)]
pub struct Variables<'v>(pub &'v dyn Fn(&str) -> Option<OsString>);

impl Variables<'_> {
    /// Returns the value of a variable, which may be empty.
    #[must_use]
    pub fn get(self, name: &str) -> Option<OsString> {
        (self.0)(name)
    }

    /// Returns the text of a variable. `None` if it is unset, empty or not UTF-8.
    #[must_use]
    pub fn text(self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok().filter(|text| !text.is_empty())
    }
}
