//! Shows the model's text as it arrives.

use anyhow::Context;
use clawutils::cli::{closed, progress};
use clawutils::printable::printable_lines;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The destination of the shown text.
pub(super) struct Show {
    out: Option<Box<dyn Write>>,
    /// True if the destination is a terminal. Control characters are then escaped.
    is_terminal: bool,
    /// True if the text so far does not end with a line feed.
    in_line: bool,
    /// True if the destination is standard output. A write error then makes the program fail.
    is_output: bool,
    failure: Option<io::Error>,
}

impl Show {
    /// Opens the destination that the option names: standard error, standard output or a file. Without the option, no
    /// text is shown.
    pub(super) fn new(option: Option<&Option<PathBuf>>) -> anyhow::Result<Show> {
        let (out, is_terminal): (Option<Box<dyn Write>>, bool) = match option {
            None => (None, false),
            Some(None) => (Some(Box::new(io::stderr())), io::stderr().is_terminal()),
            Some(Some(path)) if path.as_os_str() == "-" => {
                (Some(Box::new(io::stdout())), io::stdout().is_terminal())
            }
            Some(Some(path)) => {
                let file = open(path)?;
                let is_terminal = file.is_terminal();
                (Some(Box::new(file)), is_terminal)
            }
        };
        let is_output = option.is_some_and(|path| path.as_deref() == Some(Path::new("-")));
        Ok(Show { out, is_terminal, in_line: false, is_output, failure: None })
    }

    /// Shows a piece of text.
    pub(super) fn text(&mut self, text: &str) {
        let Some(out) = self.out.as_mut().filter(|_| !text.is_empty()) else { return };
        // The output may reach the terminal that shows the progress, directly or through a pipe.
        progress::stop();
        let shown = match self.is_terminal {
            true => printable_lines(text),
            false => Cow::Borrowed(text),
        };
        self.in_line = !shown.ends_with('\n');
        let open = if self.is_output { closed::check() } else { Ok(()) };
        let written = open.and_then(|()| out.write_all(shown.as_bytes()));
        // After a write error, the rest of the reply is still read.
        if let Err(error) = written.and_then(|()| out.flush()) {
            self.out = None;
            self.failure = Some(error);
        }
    }

    /// Ends the last line, and reports a write error.
    ///
    /// # Errors
    /// Fails if the text goes to standard output and could not be written completely.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.in_line {
            self.text("\n");
        }
        self.failure.filter(|_| self.is_output).map_or(Ok(()), Err)
    }
}

fn open(path: &PathBuf) -> anyhow::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.with_context(|| format!("cannot write '{}'", path.display()))
}
