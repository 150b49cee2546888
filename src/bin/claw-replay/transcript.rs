//! A transcript that is open for reading.

use anyhow::Context;
use clawutils::cli::DialectArgs;
use clawutils::exit::{Exit, fail};
use clawutils::input::Input;
use clawutils::input::lines::Lines;
use clawutils::messages::newest_model;
use clawutils::record::Record;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::retry_on_intr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The maximum length of a line in bytes. Processing a line takes several times its length in memory, and a process
/// that runs out of memory cannot report on the other transcripts.
const MAX_LINE: u64 = 64 * 1024 * 1024;
/// The length from which a file is read in parts. A smaller one is read as a whole, because it is needed several times:
/// to find out what it is, to search it for view records, and to read it.
const LARGE: u64 = 4 * 1024 * 1024;

/// A file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    name: String,
    /// Its size, times and mode.
    pub meta: Metadata,
    path: PathBuf,
    file: File,
}

impl OpenFile {
    /// Opens a file. Does not wait for the writer of a named pipe.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be opened, and with 65 if it is not a regular file.
    pub fn open(path: &Path) -> anyhow::Result<OpenFile> {
        let name = path.display().to_string();
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let (meta, file) = match opened.and_then(|file| Ok((file.metadata()?, file))) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let Some(advice) = advice(path) else {
                    return Err(error).with_context(|| format!("cannot read '{name}'"));
                };
                return fail(Exit::Io, format!("cannot read '{name}': no such file; {advice}"));
            }
            opened => opened.with_context(|| format!("cannot read '{name}'"))?,
        };
        if !meta.is_file() {
            let advice = "give a file, or check other input with claw-check";
            return fail(Exit::Data, format!("cannot read '{name}': not a regular file; {advice}"));
        }
        Ok(OpenFile { name, meta, path: path.to_owned(), file })
    }

    /// Returns the file as a transcript.
    ///
    /// # Errors
    /// Fails with 74 if it cannot be read, with 65 if it is not empty and contains no record, and with 1 if a line is
    /// too long.
    pub fn into_transcript(self) -> anyhow::Result<Transcript> {
        let OpenFile { name, meta, path, file } = self;
        let cannot = || format!("cannot read '{name}'");
        let input = if meta.len() < LARGE {
            Input::memory(&name, beginning(&file, meta.len() as usize).with_context(cannot)?)
        } else {
            Input::file(&name, file).with_context(cannot)?
        };
        if let Some(offset) = long_line(&input)? {
            let (why, most) = ("is longer than", MAX_LINE >> 20);
            let advice = "claw-check can read it if there is enough memory";
            let text =
                format!("{}: the line at byte {offset} {why} {most} MiB; {advice}", cannot());
            return fail(Exit::Failed, text);
        }
        Ok(Transcript { input: DialectArgs::default().open(input)?, name, path })
    }
}

/// Returns the first `length` bytes of a file; fewer if it has shrunk. This usually makes one system call, where
/// `read_to_end` makes two or three.
fn beginning(file: &File, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let read = retry_on_intr(|| rustix::io::read(file, spare_capacity(&mut bytes)))?;
        if read == 0 {
            break;
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Returns what to do about a path that does not exist, if it shows what is wrong with it.
fn advice(path: &Path) -> Option<&'static str> {
    match path.as_os_str().as_bytes() {
        b"-" => Some("claw-check reads a transcript from standard input, --files-from - a list"),
        // The list has Windows line endings.
        [.., b'\r'] => {
            Some("the path ends in a carriage return, so convert the list with tr -d '\\r'")
        }
        _ => None,
    }
}

/// Returns the offset of the first line that is longer than [`MAX_LINE`]. Searches backwards for a line feed from where
/// the longest allowed line would end, so that most of the input is not read.
fn long_line(input: &Input) -> anyhow::Result<Option<u64>> {
    let mut begin = 0;
    while input.length - begin > MAX_LINE {
        match input.last_line_end(begin, begin + MAX_LINE + 1)? {
            Some(end) => begin = end,
            None => return Ok(Some(begin)),
        }
    }
    Ok(None)
}

/// A transcript that is open for reading.
#[derive(Debug)]
pub struct Transcript {
    /// Its path as text.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// Its records.
    pub input: Input,
}

impl Transcript {
    /// Returns the name of the model to estimate tokens for: the `given` one, else the one that the newest reply names.
    ///
    /// # Errors
    /// Fails with 74 if the transcript cannot be read.
    pub fn model(&self, given: Option<&str>) -> anyhow::Result<Option<String>> {
        match given {
            Some(name) => Ok(Some(name.to_owned())),
            None => newest_model(std::slice::from_ref(&self.input)),
        }
    }

    /// Checks that a transcript in which the command found nothing to do is blank or has at least one intact record.
    ///
    /// # Errors
    /// Fails with 1 if all of its records are damaged, and with 74 if it cannot be read.
    pub fn require_record(&self) -> anyhow::Result<()> {
        let (mut lines, mut damage) = (Lines::of(&self.input), None);
        while let Some(batch) = lines.batch()? {
            for line in batch {
                match line.map(Record::new) {
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(why)) => drop(damage.get_or_insert(why)),
                    Err(finding) => drop(damage.get_or_insert(finding.message)),
                }
            }
        }
        let Some(why) = damage else { return Ok(()) };
        let text = format!("cannot use '{}': it has no intact record ({why})", self.name);
        fail(Exit::Failed, text + "; claw-replay check lists the damage")
    }
}
