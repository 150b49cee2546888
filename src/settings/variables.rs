//! The variables of the environment, as whoever has it looks them up.

use std::ffi::OsString;

/// A lookup of variables by their names.
#[derive(Clone, Copy)]
pub struct Variables<'v>(pub &'v dyn Fn(&str) -> Option<OsString>);

impl Variables<'_> {
    /// Returns a variable as it is set, which may be empty.
    #[must_use]
    pub fn get(self, name: &str) -> Option<OsString> {
        (self.0)(name)
    }

    /// Returns the text of a variable; none if it is unset, empty or not UTF-8.
    #[must_use]
    pub fn text(self, name: &str) -> Option<String> {
        self.get(name)?.into_string().ok().filter(|text| !text.is_empty())
    }
}
