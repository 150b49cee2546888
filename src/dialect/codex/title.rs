//! The names of sessions that Codex keeps outside them: `session_index.jsonl` in its home has a line for each name that a
//! session got, the newest last.

use crate::dialect::text_beside;
use crate::input::Input;
use crate::json::{self, Object};
use std::borrow::Cow;
use std::path::Path;

/// The directories with the sessions, in the home of Codex.
const DIRECTORIES: [&str; 2] = ["sessions", "archived_sessions"];
/// The directories of a year, a month and a day, and the one around them.
const DEPTH: usize = 4;
/// The most bytes of the file that are read.
const MOST: u64 = 16 * 1024 * 1024;

/// Returns the newest name of the session `id`, which is in the file `input`.
#[must_use]
pub fn of(input: &Input, id: &str) -> Option<String> {
    let is_own =
        |it: &&Path| it.file_name().is_some_and(|name| DIRECTORIES.iter().any(|own| name == *own));
    let sessions = Path::new(&*input.name).ancestors().skip(1).take(DEPTH).find(is_own)?;
    let text = text_beside(&sessions.parent()?.join("session_index.jsonl"), MOST)?;
    let quoted = json::quote(id);
    let name = |line: &str| {
        let line = Object::parse(line).ok().filter(|line| line.get("id") == Some(&quoted))?;
        line.string("thread_name").map(Cow::into_owned).filter(|name| !name.trim().is_empty())
    };
    text.lines().rev().filter(|line| line.contains(&quoted)).find_map(name)
}
