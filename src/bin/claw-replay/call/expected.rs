//! Expected replies that differ from the recorded ones, in a file beside the transcript. The transcript itself is never
//! changed.
//!
//! Each line has the id of a reply's first record, and the reply that is expected instead. A line whose id the
//! transcript does not have is ignored, so expectations do not apply to a transcript that was recorded again.

use crate::call::reply::Reply;
use anyhow::Context;
use clawutils::exit::{Exit, fail};
use clawutils::json::Object;
use clawutils::json::write::Members;
use clawutils::new_file::{NewFile, PRIVATE};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The expected replies of a transcript.
#[derive(Debug)]
pub struct Expected {
    path: PathBuf,
    /// The replies by the id of the record, each with the name of its case.
    replies: HashMap<String, (String, Reply)>,
    is_changed: bool,
}

/// Returns the path of the file for a transcript.
pub fn path_for(transcript: &Path) -> PathBuf {
    let mut path = transcript.as_os_str().to_owned();
    path.push(".expected");
    path.into()
}

impl Expected {
    /// Reads the file, if it exists.
    ///
    /// # Errors
    /// Fails with 1 if a line is invalid, and with 74 or 77 if the file cannot be read.
    pub fn read(transcript: &Path) -> anyhow::Result<Expected> {
        let path = path_for(transcript);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.with_context(|| format!("cannot read '{}'", path.display()))?,
        };
        let mut replies = HashMap::new();
        for (index, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            let Some((id, case, reply)) = parse(line) else {
                let (name, line) = (path.display(), index + 1);
                let text = format!("cannot use '{name}' line {line}: not an expected reply");
                return fail(Exit::Failed, text + "; delete the file and use --update");
            };
            replies.insert(id, (case, reply));
        }
        Ok(Expected { path, replies, is_changed: false })
    }

    /// Returns the reply that is expected in place of the one in the record `id`.
    pub fn get(&self, id: &str) -> Option<&Reply> {
        self.replies.get(id).map(|(_, reply)| reply)
    }

    /// Sets the reply to expect for the record `id`; `None` for the recorded one.
    pub fn set(&mut self, id: &str, case: &str, reply: Option<&Reply>) {
        self.is_changed = true;
        match reply {
            Some(reply) => {
                self.replies.insert(id.to_owned(), (case.to_owned(), reply.clone()));
            }
            None => drop(self.replies.remove(id)),
        }
    }

    /// Returns true if [`Expected::set`] was called.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Writes the replies for the records `ids`, in that order, if something was changed. Removes the file if there are
    /// none.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be written. The file is then unchanged.
    pub fn write<'i>(&self, ids: impl Iterator<Item = &'i str>) -> anyhow::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        let line = |id: &str| {
            let (case, reply) = self.replies.get(id)?;
            let members = Members::new().string("record", id).string("case", case);
            Some(reply.add_to(members).into_line())
        };
        let written = self.replace(&ids.filter_map(line).collect::<String>());
        written.with_context(|| format!("cannot write '{}'", self.path.display()))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
        }
        let mut file = NewFile::create(&self.path, PRIVATE)?;
        file.write_all(text.as_bytes())?;
        file.finish(true)
    }
}

fn parse(line: &str) -> Option<(String, String, Reply)> {
    let object = Object::parse(line).ok()?;
    let text = |name| Some(object.string(name)?.into_owned());
    Some((text("record")?, text("case")?, Reply::parse(&object)?))
}
