//! Inputs: bytes by name that can be read from any place, forwards and backwards.
//!
//! A regular file is read where it lies, as long as it was when it was opened; anything else (a pipe, a
//! terminal) is held in memory. Several inputs are one text, as if they had been concatenated, except
//! that a last line without line feed ends with its input.

pub mod backward;
pub mod block;
pub mod lines;

use anyhow::Context;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An input. A clone reads the same bytes.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name for diagnostics: a path, or `<stdin>`.
    pub name: Arc<str>,
    /// Its length in bytes.
    pub length: u64,
    store: Arc<InputStore>,
    position: Arc<AtomicU64>,
}

#[derive(Debug)]
enum InputStore {
    File(File),
    Memory(Vec<u8>),
}

impl Input {
    /// An input of bytes that are there already.
    #[must_use]
    pub fn memory(name: &str, bytes: Vec<u8>) -> Input {
        Input {
            name: name.into(),
            length: bytes.len() as u64,
            store: Arc::new(InputStore::Memory(bytes)),
            position: Arc::default(),
        }
    }

    /// An input from a file; one that is not regular is read to its end at once.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn file(name: &str, mut file: File) -> io::Result<Input> {
        let meta = file.metadata()?;
        if meta.is_file() {
            let store = Arc::new(InputStore::File(file));
            let (name, position) = (name.into(), Arc::default());
            return Ok(Input { name, length: meta.len(), store, position });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Input::memory(name, bytes))
    }

    /// Returns all its bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes(&self) -> anyhow::Result<Cow<'_, [u8]>> {
        match &*self.store {
            InputStore::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            InputStore::File(_) => self.part(0, self.length).map(Cow::Owned),
        }
    }

    /// Returns the bytes from `from` to `to`; fewer if the file got shorter.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn part(&self, from: u64, to: u64) -> anyhow::Result<Vec<u8>> {
        let read = || {
            let length = usize::try_from(to.saturating_sub(from)).map_err(io::Error::other)?;
            let mut bytes = vec![0; length];
            let read = self.read_at(from, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        self.named(read())
    }

    /// Names the input in the error of `result`.
    fn named<T>(&self, result: io::Result<T>) -> anyhow::Result<T> {
        result.with_context(|| format!("cannot read '{}'", self.name))
    }

    /// Where the last walk over its lines is, of this or a clone; 0 before the first one.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// Notes that a walk has come to byte `offset`.
    pub fn reach(&self, offset: u64) {
        self.position.store(offset, Ordering::Relaxed);
    }

    /// Fills `buffer` from byte `offset` on, and says how much of it; less only at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match &*self.store {
            InputStore::Memory(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let count = buffer.len().min(bytes.len() - from);
                buffer[..count].copy_from_slice(&bytes[from..from + count]);
                return Ok(count);
            }
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

/// Returns the input that byte `offset` of all inputs lies in, and where that input begins.
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
