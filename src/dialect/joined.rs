//! Joins the files of a conversation into one text, if a file continues another one.

use crate::input::Input;
use crate::input::origin::SourceFile;
use crate::input::rope::Rope;

/// The text of one or several files.
#[derive(Debug)]
pub struct Joined {
    /// The text. Each file ends with a line feed.
    pub source: Input,
    /// The files; none if there is only one.
    pub files: Vec<SourceFile>,
}

impl Joined {
    /// Joins `parts`, the first one first, into a text with the name `name`.
    ///
    /// # Errors
    /// Fails if a part cannot be read.
    pub fn of(name: &str, parts: Vec<Input>) -> anyhow::Result<Joined> {
        if let [source] = parts.as_slice() {
            return Ok(Joined { source: source.clone(), files: Vec::new() });
        }
        let (mut files, mut lines) = (Vec::new(), 0);
        let feed = Input::memory("", b"\n".to_vec());
        let mut rope = Rope::new(parts.iter().cloned().chain([feed]).collect());
        for (index, part) in parts.iter().enumerate() {
            files.push(SourceFile { begin: rope.length(), lines, name: part.name.clone() });
            rope.push(index, 0, part.length);
            let (feeds, ends_in_feed) = feeds(part)?;
            lines += feeds;
            if !ends_in_feed && index + 1 < parts.len() {
                rope.push(parts.len(), 0, 1);
                lines += 1;
            }
        }
        Ok(Joined { source: Input::rope(name, rope), files })
    }
}

/// Returns the number of line feeds in an input, and true if it ends with one.
fn feeds(input: &Input) -> anyhow::Result<(u64, bool)> {
    let (mut count, mut last) = (0, None);
    for part in input.parts() {
        let part = part?;
        count += memchr::memchr_iter(b'\n', &part).count() as u64;
        last = part.last().copied();
    }
    Ok((count, last == Some(b'\n')))
}
