//! The options for plain-text input and for standard output, and their implementation.

use anyhow::Context;
use clawutils::cli::{self, Output, attach};
use clawutils::exit::{self, Exit};
use clawutils::json::write::Members;
use clawutils::messages::original;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The options for input that is plain text instead of records.
#[derive(Clone, Debug, clap::Args)]
pub struct PlainArgs {
    /// Append the text on standard input as one user record
    #[arg(long, group = "plain")]
    pub user: bool,
    /// Append the text on standard input as one assistant record
    #[arg(long, group = "plain")]
    pub assistant: bool,
    /// Append the text on standard input as the result of tool call ID
    #[arg(long, group = "plain", value_name = "ID")]
    pub tool_result: Option<String>,
    /// Attach FILE (an image, a PDF document or a text file) before the text; may be repeated
    #[arg(long, value_name = "FILE", requires = "user")]
    pub attach: Vec<PathBuf>,
    /// Mark the result as that of a failed tool call
    #[arg(long, requires = "tool_result", conflicts_with_all = ["user", "assistant"])]
    pub is_error: bool,
}

impl PlainArgs {
    /// Returns true if the input is plain text.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.user || self.assistant || self.tool_result.is_some()
    }

    /// Returns the records in `input`. Plain text becomes one record; a line feed at the end of the text is dropped.
    ///
    /// # Errors
    /// Fails with 65 if plain text is not UTF-8, or is blank and not a tool result; fails with 65, 74 or 77 if a file
    /// cannot be attached.
    pub fn records<'a>(&self, input: &'a [u8]) -> anyhow::Result<Cow<'a, [u8]>> {
        if !self.is_text() {
            return Ok(Cow::Borrowed(input));
        }
        let text = cli::text(&cli::stdin_name(), input)?;
        if self.tool_result.is_none() && text.trim().is_empty() {
            return exit::fail(
                Exit::Data,
                "cannot append '<stdin>': the text is blank; give some text",
            );
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        let block = || Members::of_type("text").string("text", text).into_json();
        let record = match &self.tool_result {
            Some(id) => Members::of_type("tool_result")
                .string("tool_use_id", id)
                .string("content", text)
                .flag("is_error", self.is_error),
            None if !self.attach.is_empty() => {
                let blocks = self.attach.iter().map(|path| attach::block(path));
                let blocks = blocks.chain([Ok(block())]).collect::<anyhow::Result<Vec<_>>>()?;
                Members::of_type("user").list("content", blocks)
            }
            None if self.user => Members::of_type("user").string("content", text),
            None => Members::of_type("assistant").list("content", [block()]),
        };
        let record = record.into_json();
        Ok(Cow::Owned(record.into_bytes()))
    }
}

/// The options for what is written to standard output.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct EchoArgs {
    /// Also write the appended records, with their ids, to standard output
    #[arg(long, conflicts_with = "print")]
    pub tee: bool,
    /// Also write the text of replies to standard output
    #[arg(long)]
    pub print: bool,
}

/// Writes appended records, or the text of replies, to standard output. A write error does not stop appending.
#[derive(Debug)]
pub struct Echo {
    args: EchoArgs,
    out: Output,
    is_terminal: bool,
    failure: Option<io::Error>,
}

impl EchoArgs {
    /// Opens standard output.
    #[must_use]
    pub fn open(self) -> Echo {
        let is_terminal = io::stdout().is_terminal();
        Echo { args: self, out: Output::open(), is_terminal, failure: None }
    }
}

impl Echo {
    /// Writes and flushes the output for these lines. After an error, does nothing.
    pub fn write(&mut self, lines: &[String]) {
        if self.failure.is_none() {
            self.failure = self.try_write(lines).err();
        }
    }

    fn try_write(&mut self, lines: &[String]) -> io::Result<()> {
        for line in lines {
            if self.args.tee {
                writeln!(self.out, "{line}")?;
            } else if self.args.print {
                original::write_reply(line, self.is_terminal, &mut self.out)?;
            }
        }
        self.out.flush()
    }

    /// Checks that everything was written to standard output. The records are already in `file`, even after an error.
    ///
    /// # Errors
    /// Fails with 74 if standard output cannot be written, and with 141 if its reader has gone away.
    pub fn finish(self, file: &Path) -> anyhow::Result<()> {
        let failed = self.failure.map_or(Ok(()), Err);
        failed.with_context(|| {
            format!("cannot write '<stdout>' ('{}' has the records)", file.display())
        })
    }
}
