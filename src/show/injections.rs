//! Text that programs put into the messages of the user, collected so that neighbouring texts are one fold.

use super::words::plural;

/// The length in bytes above which the texts are shown before more are collected.
const FULL: usize = 256 * 1024;

/// Text of programs that is not shown yet.
#[derive(Debug, Default)]
pub struct Injections {
    names: Vec<String>,
    texts: Vec<String>,
    bytes: usize,
    lines: u64,
}

impl Injections {
    /// Adds a text. Returns true if the texts must be shown before more are added.
    pub fn push(&mut self, name: &str, text: &str) -> bool {
        if !self.names.iter().any(|own| own == name) {
            self.names.push(name.to_owned());
        }
        let text = text.trim_matches('\n');
        self.bytes += text.len();
        self.lines += text.lines().count() as u64;
        self.texts.push(text.to_owned());
        self.bytes > FULL
    }

    /// Returns the texts so far, if there are any, and forgets them.
    pub fn take(&mut self) -> Option<Injections> {
        let own = std::mem::take(self);
        (!own.texts.is_empty()).then_some(own)
    }

    /// Returns the line that stands for the texts: their names, and the number of lines.
    pub fn line(&self) -> String {
        format!("added by the program: {} · {}", self.names.join(", "), plural(self.lines, "line"))
    }

    /// Returns all texts.
    pub fn text(&self) -> String {
        self.texts.join("\n\n")
    }
}
