//! Inputs: named bytes that can be read from any offset, forwards and backwards.
//!
//! A regular file is read in place, up to the length that it had when it was opened. Anything else (a pipe, a
//! terminal) is read into memory. Several inputs are read as if they were concatenated, except that a last line
//! without a line feed ends with its input.

pub mod backward;
pub mod block;
pub mod line;
pub mod lines;
pub mod origin;
pub mod rope;
pub mod spool;

use crate::finding::{Findings, Place};
use anyhow::Context;
use origin::Origin;
use rope::Rope;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of the parts in which a whole input is read, in bytes.
const PART: u64 = 1024 * 1024;

/// An input. Clones share the bytes and the position.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name for diagnostics: a path, or `<stdin>`.
    pub name: Arc<str>,
    /// Its length in bytes.
    pub length: u64,
    store: Arc<InputStore>,
    position: Arc<AtomicU64>,
    /// The origin of its text, if it was translated from another program's transcript.
    origin: Option<Arc<Origin>>,
}

#[derive(Debug)]
enum InputStore {
    File(File),
    Memory(Vec<u8>),
    Rope(Rope),
}

impl Input {
    /// Reads all of it, and returns its name and its bytes.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn named_bytes(&self) -> anyhow::Result<(Arc<str>, Vec<u8>)> {
        Ok((self.name.clone(), self.bytes()?.into_owned()))
    }

    /// Creates an input from bytes in memory.
    #[must_use]
    pub fn memory(name: &str, bytes: Vec<u8>) -> Input {
        Input {
            name: name.into(),
            length: bytes.len() as u64,
            store: Arc::new(InputStore::Memory(bytes)),
            position: Arc::default(),
            origin: None,
        }
    }

    /// Creates an input from a file. A file that is not a regular file is read into memory first.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn file(name: &str, mut file: File) -> io::Result<Input> {
        let meta = file.metadata()?;
        if meta.is_file() {
            let store = Arc::new(InputStore::File(file));
            let (name, position) = (name.into(), Arc::default());
            return Ok(Input { name, length: meta.len(), store, position, origin: None });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Input::memory(name, bytes))
    }

    /// Opens a file, whatever it contains.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be read.
    pub fn open(path: &Path) -> anyhow::Result<Input> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Input::file(&name, file));
        opened.with_context(|| format!("cannot read '{name}'"))
    }

    /// Creates an input that consists of parts of other inputs.
    #[must_use]
    pub fn rope(name: &str, rope: Rope) -> Input {
        let (name, length, position) = (name.into(), rope.length(), Arc::default());
        Input { name, length, store: Arc::new(InputStore::Rope(rope)), position, origin: None }
    }

    /// Returns its bytes if they are in memory.
    #[must_use]
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &*self.store {
            InputStore::Memory(bytes) => {
                Some(&bytes[..usize::try_from(self.length).unwrap_or(usize::MAX).min(bytes.len())])
            }
            InputStore::File(_) | InputStore::Rope(_) => None,
        }
    }

    /// Returns the first `length` bytes as an input of the same name.
    #[must_use]
    pub fn prefix(&self, length: u64) -> Input {
        Input { length: self.length.min(length), ..self.clone() }
    }

    /// Sets the origin of the input's text.
    #[must_use]
    pub fn with_origin(self, origin: Origin) -> Input {
        Input { origin: Some(Arc::new(origin)), ..self }
    }

    /// Returns the origin of its text, if it was translated.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// Maps a place in this input to the place in the file it was translated from, which is the one to show to the
    /// user.
    #[must_use]
    pub fn original(&self, place: &Place) -> Place {
        self.origin().map_or_else(|| place.clone(), |origin| origin.original(place))
    }

    /// Returns all its bytes.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn bytes(&self) -> anyhow::Result<Cow<'_, [u8]>> {
        self.part(0, self.length)
    }

    /// Returns the end of the last line feed from offset `from` to `to`, which is searched backwards, a part at a time.
    ///
    /// # Errors
    /// Fails if the input cannot be read.
    pub fn last_line_end(&self, from: u64, mut to: u64) -> anyhow::Result<Option<u64>> {
        const PART: u64 = 64 * 1024;
        while to > from {
            let begin = to.saturating_sub(PART).max(from);
            if let Some(feed) = memchr::memrchr(b'\n', &self.part(begin, to)?) {
                return Ok(Some(begin + feed as u64 + 1));
            }
            to = begin;
        }
        Ok(None)
    }

    /// Returns the bytes from offset `from` to `to`; fewer if the input ends before `to`. If they are in memory, they
    /// are not copied.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn part(&self, from: u64, to: u64) -> anyhow::Result<Cow<'_, [u8]>> {
        if let Some(all) = self.in_memory() {
            let at = |offset: u64| usize::try_from(offset).unwrap_or(all.len()).min(all.len());
            return Ok(Cow::Borrowed(&all[at(from).min(at(to))..at(to)]));
        }
        let read = || {
            let length = usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?;
            let mut bytes = vec![0; length];
            let read = self.read_at(from, &mut bytes)?;
            bytes.truncate(read);
            Ok(Cow::Owned(bytes))
        };
        self.named(read())
    }

    /// Yields all its bytes in parts of a mebibyte.
    pub fn parts(&self) -> impl Iterator<Item = anyhow::Result<Cow<'_, [u8]>>> {
        (0..self.length)
            .step_by(PART as usize)
            .map(|from| self.part(from, (from + PART).min(self.length)))
    }

    /// Adds the input's name to the error of `result`.
    fn named<T>(&self, result: io::Result<T>) -> anyhow::Result<T> {
        result.with_context(|| format!("cannot read '{}'", self.name))
    }

    /// Returns the offset up to which the lines of this input or a clone have been read, for progress messages.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Records that the lines have been read up to byte `offset`.
    pub fn set_position(&self, offset: u64) {
        self.position.store(offset, Ordering::Relaxed);
    }

    /// Fills `buffer` with the bytes from `offset`, and returns their number, which is smaller than the buffer only
    /// at the end of the input.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let buffer = &mut buffer[..most];
        let file = match &*self.store {
            InputStore::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = buffer.len().min(bytes.len() - from);
                buffer[..count].copy_from_slice(&bytes[from..from + count]);
                return Ok(count);
            }
            InputStore::Rope(rope) => return rope.read(offset, buffer).map(|()| buffer.len()),
            InputStore::File(file) => file,
        };
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// Returns the findings from translating `inputs`, followed by `findings`, with their places mapped back to the
/// original files.
#[must_use]
pub fn with_origins(inputs: &[Input], mut findings: Findings) -> Findings {
    let mut all = Findings::default();
    for input in inputs {
        let Some(origin) = input.origin() else { continue };
        all.append(origin.findings(&input.name));
        let own = findings.listed_mut().iter_mut();
        for finding in own.filter(|it| Arc::ptr_eq(&it.place.input, &input.name)) {
            finding.place = origin.original(&finding.place);
        }
    }
    all.append(findings);
    all
}

/// Returns the input that contains byte `offset`, counted over all inputs, and the offset of its beginning.
#[must_use]
pub fn input_at(inputs: &[Input], offset: u64) -> Option<(&Input, u64)> {
    let mut base = 0;
    inputs.iter().find_map(|input| {
        let begin = base;
        base += input.length;
        (offset < base).then_some((input, begin))
    })
}

/// Returns the length of all inputs together, in bytes.
#[must_use]
pub fn total(inputs: &[Input]) -> u64 {
    inputs.iter().map(|input| input.length).sum()
}
