//! The built-in tools. Each reads the call's input from standard input and writes the result for the model.

use anyhow::Context;
use clawutils::cli::{Output, now, read_stdin, stdin_name, text};
use clawutils::exec::confined;
use clawutils::exit::{Error, Exit};
use clawutils::json::Object;
use rustix::fs::CWD;
use std::io::Write;

/// A tool, by the name that the model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Subcommand)]
#[command(rename_all = "snake_case")]
pub enum Tool {
    /// Write the whole content of the file that file_path names
    ReadFile,
    /// Write the names in a directory, one per line and sorted
    ListDirectory,
    /// Write the current date and time in UTC
    GetCurrentTime,
}

impl Tool {
    /// Runs the tool in the working directory, with its input from standard input.
    ///
    /// # Errors
    /// Status 65 if the input is invalid; otherwise the status of the read error.
    pub fn run(self) -> anyhow::Result<Exit> {
        let input = read_stdin()?;
        let input = text(&stdin_name(), &input)?;
        let bad = || Error::new(Exit::Data, "cannot read the input: not a JSON object");
        let input = Object::parse(input).map_err(|_| bad())?;
        let mut out = Output::open();
        match self {
            Tool::ReadFile => {
                let path = input.string("file_path");
                let path = path.ok_or_else(|| {
                    Error::new(
                        Exit::Data,
                        "the input has no 'file_path'; give {\"file_path\": PATH}",
                    )
                })?;
                confined::read(CWD, &path, &mut out)?;
            }
            Tool::ListDirectory => {
                let path = input.string("directory").filter(|path| !path.is_empty());
                let list = confined::list(CWD, path.as_deref().unwrap_or("."))?;
                out.write_all(list.as_bytes()).context("cannot write '<stdout>'")?;
            }
            Tool::GetCurrentTime => {
                let now = jiff::Timestamp::from_second(now()?.floor() as i64)?;
                writeln!(out, "{}", now.strftime("%Y-%m-%d %H:%M:%S UTC"))
                    .context("cannot write '<stdout>'")?;
            }
        }
        out.finish()?;
        Ok(Exit::Done)
    }
}
