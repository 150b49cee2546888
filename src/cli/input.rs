//! Where input comes from and output goes to.

use crate::cli::progress;
use crate::dialect::looks;
use crate::exit::{Error, Exit};
use crate::input::Input;
use crate::messages::{self, Message};
use crate::usage::PriceTable;
use anyhow::Context;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{IoSlice, IsTerminal, Read, StdinLock, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens a transcript to be read from any place.
///
/// # Errors
/// 74 or 77 when it cannot be read; 65 when it is not empty and holds no record.
pub fn open_transcript(path: &Path) -> anyhow::Result<Input> {
    let input = open_file(path)?;
    looks::require_records(&input)?;
    Ok(input)
}

fn open_file(path: &Path) -> anyhow::Result<Input> {
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|file| Input::file(&name, file));
    opened.with_context(|| format!("cannot read '{name}'"))
}

/// The operands of a program that reads files.
#[derive(Clone, Debug, clap::Args)]
pub struct Operands {
    /// Files to read; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

impl Operands {
    /// Opens all of them as transcripts.
    ///
    /// # Errors
    /// 74 or 77 when one cannot be read; 65 when one is not empty and holds no record.
    pub fn transcripts(&self) -> anyhow::Result<Vec<Input>> {
        let inputs = self.open()?;
        inputs.iter().try_for_each(looks::require_records)?;
        Ok(inputs)
    }

    fn open(&self) -> anyhow::Result<Vec<Input>> {
        let stdin = || Ok(Input::memory(&stdin_name(), read_stdin()?));
        if self.files.is_empty() {
            return Ok(vec![stdin()?]);
        }
        let open = |path: &PathBuf| -> anyhow::Result<Input> {
            if path.as_os_str() == "-" {
                return stdin();
            }
            open_file(path)
        };
        self.files.iter().map(open).collect()
    }

    /// Opens all of them and reads them into memory.
    ///
    /// # Errors
    /// 74 or 77 when one cannot be read.
    pub fn read(&self) -> anyhow::Result<Vec<(Arc<str>, Vec<u8>)>> {
        let read = |input: Input| -> anyhow::Result<(Arc<str>, Vec<u8>)> {
            Ok((input.name.clone(), input.bytes()?.into_owned()))
        };
        self.open()?.into_iter().map(read).collect()
    }
}

/// The name of standard input in messages.
#[must_use]
pub fn stdin_name() -> String {
    "<stdin>".to_owned()
}

/// Reads a file whole.
///
/// # Errors
/// 74 or 77 when it cannot be read.
pub fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read '{}'", path.display()))
}

/// Reads a file of prices.
///
/// # Errors
/// 74 when it cannot be read, 78 when a line of it is none.
pub fn prices(path: &Path) -> anyhow::Result<PriceTable> {
    let table = PriceTable::read(&String::from_utf8_lossy(&read_file(path)?));
    let why = |why| {
        format!(
            "cannot use prices '{}': {why}; write a model and four prices a line",
            path.display()
        )
    };
    Ok(table.map_err(|error| Error::new(Exit::Config, why(error)))?)
}

/// Reads standard input whole.
///
/// # Errors
/// 74 when it cannot be read, or is closed.
pub fn read_stdin() -> anyhow::Result<Vec<u8>> {
    // Nearly always this is enough, and the library would begin with far less.
    let mut bytes = Vec::with_capacity(8 * 1024);
    open_stdin()?.read_to_end(&mut bytes).context("cannot read '<stdin>'")?;
    Ok(bytes)
}

/// Takes standard input, to read it piece by piece.
///
/// # Errors
/// 74 when it is closed.
pub fn open_stdin() -> anyhow::Result<StdinLock<'static>> {
    let stdin = std::io::stdin();
    if is_closed(&stdin) {
        let text = "cannot read '<stdin>': standard input is closed (or an idle /dev/null); give a file or a pipe";
        return Err(Error::new(Exit::Io, text).into());
    }
    Ok(stdin.lock())
}

/// Whether standard input was closed when the program began. The runtime puts /dev/null, opened for
/// reading and writing, in a closed descriptor's place. Some programs start others with just that as
/// their input; a program that was about to read it is told the same.
fn is_closed(stdin: &std::io::Stdin) -> bool {
    let writable = rustix::fs::fcntl_getfl(stdin).is_ok_and(|flags| flags.contains(OFlags::RDWR));
    let is_null = || {
        let (null, own) = (rustix::fs::stat("/dev/null"), rustix::fs::fstat(stdin));
        matches!((null, own), (Ok(null), Ok(own)) if null.st_rdev == own.st_rdev)
    };
    writable && is_null()
}

/// Input as text.
///
/// # Errors
/// 65 when it is not UTF-8, naming the input.
pub fn text<'a>(input: &str, bytes: &'a [u8]) -> anyhow::Result<&'a str> {
    let why = |error| Error::new(Exit::Data, format!("cannot read '{input}': not UTF-8: {error}"));
    Ok(std::str::from_utf8(bytes).map_err(why)?)
}

/// Reads messages from all inputs.
///
/// # Errors
/// 65 at the first line that is no message.
pub fn messages(inputs: &[(Arc<str>, Vec<u8>)]) -> anyhow::Result<Vec<Message<'_>>> {
    let mut all = Vec::new();
    for (name, bytes) in inputs {
        all.extend(messages::read(name, bytes)?);
    }
    Ok(all)
}

/// Whether messages say which records they come from.
///
/// # Errors
/// 65 at the first that does not: a view record could not name what it means.
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

/// Standard output, buffered. It has to be ended with [`Output::finish`].
///
/// The library's own looks for line feeds in all it is given, and copies it twice.
#[derive(Debug)]
pub struct Output {
    stdout: Stdout,
    is_terminal: bool,
    buffer: Vec<u8>,
}

/// How much is held before it is written.
const HELD: usize = 64 * 1024;
/// What is as long as this is written from where it lies.
const LONG: usize = 8 * 1024;
/// So many pieces are taken by the kernel at once.
const MOST_PIECES: usize = 1024;

impl Output {
    /// Opens standard output.
    #[must_use]
    pub fn open() -> Output {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        Output { stdout, is_terminal, buffer: Vec::with_capacity(HELD) }
    }

    /// Writes what is still buffered. Success is only after this.
    ///
    /// # Errors
    /// 74 when standard output cannot be written to, 141 when its reader went away.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.flush().context("cannot write '<stdout>'")
    }

    /// Writes what is held and then `more`.
    fn write_out(&mut self, more: &[IoSlice<'_>]) -> std::io::Result<()> {
        if self.is_terminal {
            progress::clear();
        }
        let mut pieces = Vec::with_capacity(1 + more.len());
        pieces.push(IoSlice::new(&self.buffer));
        pieces.extend_from_slice(more);
        let mut left = &mut pieces[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let most = left.len().min(MOST_PIECES);
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
            if self.buffer.len() + length > HELD {
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
