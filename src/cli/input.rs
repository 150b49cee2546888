//! Input from files and standard input, and buffered standard output.

use crate::cli::{closed, progress};
use crate::cost::{PriceList, PriceTable};
use crate::dialect::{self, Choice, Dialect};
use crate::exit::{Error, Exit};
use crate::input::Input;
use crate::messages::{self, Message};
use anyhow::Context;
use rustix::fs::OFlags;
use std::io::{IoSlice, IsTerminal, Read, StdinLock, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens a transcript for reading at any offset.
///
/// # Errors
/// Fails with 74 or 77 if it cannot be read, and with 65 if it is not empty but contains no record.
pub fn open_transcript(path: &Path) -> anyhow::Result<Input> {
    DialectArgs::default().open_file(path)
}

/// The options for transcripts of other programs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DialectArgs {
    /// Read transcripts of another program as DIALECT (default: from their content)
    #[arg(long, value_name = "DIALECT")]
    pub from: Option<Dialect>,
    /// In a transcript of another program that has branches, read the branch that ends with record ID
    #[arg(long, value_name = "ID")]
    pub leaf: Option<String>,
}

impl DialectArgs {
    /// Opens a transcript as these options say.
    ///
    /// # Errors
    /// As [`open_transcript`], and with 65 if the leaf does not exist.
    pub fn open_file(&self, path: &Path) -> anyhow::Result<Input> {
        self.open(Input::open(path)?)
    }

    /// Returns the input, or its translation if another program wrote it.
    ///
    /// # Errors
    /// Fails with 65 if the input is not empty but contains no record, and with 74 if it cannot be read.
    pub fn open(&self, input: Input) -> anyhow::Result<Input> {
        dialect::open(input, &self.choice())
    }

    /// Returns how to read an input.
    #[must_use]
    pub fn choice(&self) -> Choice {
        let DialectArgs { from, leaf } = self.clone();
        Choice { from, leaf, keeps_all: false, directory: std::env::temp_dir() }
    }
}

/// The operands of a program that reads files.
#[derive(Clone, Debug, clap::Args)]
pub struct Operands {
    /// Files to read; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

impl Operands {
    /// Opens all operands as transcripts.
    ///
    /// # Errors
    /// Fails with 74 or 77 if one cannot be read, and with 65 if one is not empty but contains no record.
    pub fn transcripts(&self) -> anyhow::Result<Vec<Input>> {
        self.transcripts_of(&DialectArgs::default())
    }

    /// Opens all operands as transcripts, and translates those of other programs.
    ///
    /// # Errors
    /// As [`Operands::transcripts`], and with 65 if a leaf does not exist.
    pub fn transcripts_of(&self, dialect: &DialectArgs) -> anyhow::Result<Vec<Input>> {
        self.open()?.into_iter().map(|input| dialect.open(input)).collect()
    }

    /// Opens all operands, whatever they contain.
    ///
    /// # Errors
    /// Fails with 74 or 77 if one cannot be read.
    pub fn open(&self) -> anyhow::Result<Vec<Input>> {
        let stdin = || Ok(Input::memory(&stdin_name(), read_stdin()?));
        if self.files.is_empty() {
            return Ok(vec![stdin()?]);
        }
        let open = |path: &PathBuf| -> anyhow::Result<Input> {
            if path.as_os_str() == "-" {
                return stdin();
            }
            Input::open(path)
        };
        self.files.iter().map(open).collect()
    }

    /// Reads all operands into memory.
    ///
    /// # Errors
    /// Fails with 74 or 77 if one cannot be read.
    pub fn read(&self) -> anyhow::Result<Vec<(Arc<str>, Vec<u8>)>> {
        self.open()?.iter().map(Input::named_bytes).collect()
    }
}

/// Returns the name of standard input in diagnostics.
#[must_use]
pub fn stdin_name() -> String {
    "<stdin>".to_owned()
}

/// Reads a file as text.
pub(super) fn text_of(path: &Path) -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&read_file(path)?).into_owned())
}

/// Reads a whole file.
///
/// # Errors
/// Fails with 74 or 77 if it cannot be read.
pub fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read '{}'", path.display()))
}

/// Returns the prices in a file of prices, else in a table of models, else in the built-in one.
///
/// # Errors
/// Fails with 74 or 77 if a file cannot be read, and with 78 if a line is malformed.
pub fn prices(own: Option<&Path>, models: Option<&Path>) -> anyhow::Result<PriceList> {
    let table = own.map(|path| {
        let help = "write a model and four prices per line";
        PriceTable::read(&text_of(path)?).map_err(|why| unusable("prices", Some(path), &why, help))
    });
    let list = PriceList::new(table.transpose()?, models.map(text_of).transpose()?);
    list.map_err(|why| unusable("models", models, &why, "see claw(7) for the format"))
}

/// Returns the error for a file whose content is invalid.
pub(super) fn unusable(kind: &str, path: Option<&Path>, why: &str, help: &str) -> anyhow::Error {
    let path = path.unwrap_or(Path::new("")).display();
    Error::new(Exit::Config, format!("cannot use {kind} '{path}': {why}; {help}")).into()
}

/// Reads all of standard input.
///
/// # Errors
/// Fails with 74 if it cannot be read, or is closed.
pub fn read_stdin() -> anyhow::Result<Vec<u8>> {
    // Most inputs fit. The standard library would start with a much smaller buffer.
    let mut bytes = Vec::with_capacity(8 * 1024);
    open_stdin()?.read_to_end(&mut bytes).context("cannot read '<stdin>'")?;
    Ok(bytes)
}

/// Locks standard input for reading in parts.
///
/// # Errors
/// Fails with 74 if it is closed.
pub fn open_stdin() -> anyhow::Result<StdinLock<'static>> {
    let stdin = std::io::stdin();
    if is_closed(&stdin) {
        let text = "cannot read '<stdin>': standard input is closed (or is /dev/null, opened for writing); give a file or a pipe";
        return Err(Error::new(Exit::Io, text).into());
    }
    Ok(stdin.lock())
}

/// Returns true if standard input was closed when the program started. The Rust runtime replaces a closed descriptor
/// with /dev/null, opened for reading and writing. A few programs start others with /dev/null opened in the same way;
/// this function mistakes that for a closed standard input.
fn is_closed(stdin: &std::io::Stdin) -> bool {
    let writable = rustix::fs::fcntl_getfl(stdin).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    let is_null = || {
        let (null, own) = (rustix::fs::stat("/dev/null"), rustix::fs::fstat(stdin));
        matches!((null, own), (Ok(null), Ok(own)) if null.st_rdev == own.st_rdev)
    };
    writable && is_null()
}

/// Returns the bytes of an input as text.
///
/// # Errors
/// Fails with 65 if they are not UTF-8. The error names the input.
pub fn text<'a>(input: &str, bytes: &'a [u8]) -> anyhow::Result<&'a str> {
    let why = |error| Error::new(Exit::Data, format!("cannot read '{input}': not UTF-8: {error}"));
    Ok(std::str::from_utf8(bytes).map_err(why)?)
}

/// Reads messages from all inputs.
///
/// # Errors
/// Fails with 65 at the first line that is not a message.
pub fn messages(inputs: &[(Arc<str>, Vec<u8>)]) -> anyhow::Result<Vec<Message<'_>>> {
    let mut all = Vec::new();
    for (name, bytes) in inputs {
        all.extend(messages::read(name, bytes)?);
    }
    Ok(all)
}

/// Checks that all messages have a `_meta` member, which names the records behind a message. Programs that write
/// records about messages need the ids of those records.
///
/// # Errors
/// Fails with 65 at the first message that has none.
pub fn require_meta(messages: &[Message<'_>]) -> anyhow::Result<()> {
    match messages.iter().position(|message| message.meta.is_none()) {
        None => Ok(()),
        Some(index) => {
            let text = format!(
                "cannot write records: message {} has no _meta; give the output of claw-rebuild --meta",
                index + 1
            );
            Err(Error::new(Exit::Data, text).into())
        }
    }
}

/// Buffered standard output. The caller must end it with [`Output::finish`].
///
/// The standard library's [`Stdout`] would be slower: it searches all output for line feeds, and copies it twice.
#[derive(Debug)]
pub struct Output {
    stdout: Stdout,
    is_terminal: bool,
    buffer: Vec<u8>,
}

/// The size of the buffer in bytes.
const BUFFER: usize = 64 * 1024;
/// Output of at least this length, in bytes, is written directly, without copying it to the buffer.
const LONG: usize = 8 * 1024;
/// The maximum number of slices in one call to writev(2): IOV_MAX on Linux.
const MAX_SLICES: usize = 1024;

impl Output {
    /// Opens standard output.
    #[must_use]
    pub fn open() -> Output {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        Output { stdout, is_terminal, buffer: Vec::with_capacity(BUFFER) }
    }

    /// Writes lines as the whole of standard output.
    ///
    /// # Errors
    /// As [`Output::finish`].
    pub fn lines(lines: impl IntoIterator<Item: std::fmt::Display>) -> anyhow::Result<Exit> {
        let mut out = Output::open();
        let written = lines.into_iter().try_for_each(|line| writeln!(out, "{line}"));
        written.context("cannot write '<stdout>'")?;
        out.finish().map(|()| Exit::Done)
    }

    /// Writes the rest of the buffer. The output is complete only if this succeeds.
    ///
    /// # Errors
    /// Fails with 74 if standard output cannot be written, and with 141 if its reader has gone away.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.flush().context("cannot write '<stdout>'")
    }

    /// Writes the buffer and then `more`.
    fn write_out(&mut self, more: &[IoSlice<'_>]) -> std::io::Result<()> {
        if self.is_terminal {
            progress::clear();
        }
        let mut pieces = Vec::with_capacity(1 + more.len());
        pieces.push(IoSlice::new(&self.buffer));
        pieces.extend_from_slice(more);
        let mut left = &mut pieces[..];
        IoSlice::advance_slices(&mut left, 0);
        if !left.is_empty() {
            closed::check()?;
        }
        while !left.is_empty() {
            let most = left.len().min(MAX_SLICES);
            match rustix::io::writev(&self.stdout, &left[..most]) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.buffer.clear();
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> std::io::Result<usize> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if length >= LONG {
            self.write_out(pieces)?;
        } else {
            if self.buffer.len() + length > BUFFER {
                self.write_out(&[])?;
            }
            pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
        }
        Ok(length)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.write_out(&[])
    }
}

/// Returns the error for an entry of `directory` that cannot be read.
#[must_use]
pub fn walk_error(error: walkdir::Error, directory: &Path) -> anyhow::Error {
    let why = format!("cannot read '{}'", error.path().unwrap_or(directory).display());
    // The text of walkdir's error repeats the path; the text of the inner error does not.
    let cause =
        error.into_io_error().unwrap_or_else(|| std::io::Error::other("it contains itself"));
    anyhow::Error::from(cause).context(why)
}
