//! claw-append: write records to the end of a transcript.

use anyhow::Context;
use clap::Parser;
use clawutils::cli::{self, LogArgs, Output};
use clawutils::exit::{self, Exit};
use clawutils::json::quote;
use clawutils::redact::Patterns;
use clawutils::transcript::{self, Batch};
use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Append records from standard input to a transcript
#[derive(Parser)]
#[command(name = "claw-append", version)]
struct Args {
    /// Transcript to append to; made if it is not there
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Take plain text as one user record
    #[arg(long, group = "plain")]
    user: bool,
    /// Take plain text as one assistant record
    #[arg(long, group = "plain")]
    assistant: bool,
    /// Take plain text as the result of call ID
    #[arg(long, group = "plain", value_name = "ID")]
    tool_result: Option<String>,
    /// Mark the result as that of a failed call
    #[arg(long, requires = "tool_result", conflicts_with_all = ["user", "assistant"])]
    is_error: bool,
    /// Write the records as they were written to standard output
    #[arg(long)]
    tee: bool,
    /// Take out of the records what matches a pattern in FILE
    #[arg(long, value_name = "FILE")]
    redact: Option<PathBuf>,
    /// Append only if the last record has this id
    #[arg(long, value_name = "ID")]
    expect_tail: Option<String>,
    /// Longest wait for another writer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = cli::seconds)]
    lock_timeout: Duration,
    /// Do not wait until the disk has the bytes
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    log: LogArgs,
}

impl Args {
    /// Standard input as records: plain text becomes one, its last line feed aside.
    fn records<'a>(&self, input: &'a [u8]) -> anyhow::Result<Cow<'a, [u8]>> {
        if !(self.user || self.assistant || self.tool_result.is_some()) {
            return Ok(Cow::Borrowed(input));
        }
        let text = cli::text(&cli::stdin_name(), input)?;
        if self.tool_result.is_none() && text.trim().is_empty() {
            return exit::fail(Exit::Data, "cannot append '<stdin>': the text is blank");
        }
        let text = quote(text.strip_suffix('\n').unwrap_or(text));
        let record = match &self.tool_result {
            Some(id) => {
                let error = if self.is_error { r#","is_error":true"# } else { "" };
                let id = quote(id);
                format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{text}{error}}}"#)
            }
            None if self.user => format!(r#"{{"type":"user","content":{text}}}"#),
            None => {
                format!(r#"{{"type":"assistant","content":[{{"type":"text","text":{text}}}]}}"#)
            }
        };
        Ok(Cow::Owned(record.into_bytes()))
    }

    /// What is to be taken out.
    fn patterns(&self) -> anyhow::Result<Option<Patterns>> {
        let read =
            |path: &PathBuf| Patterns::read(&path.display().to_string(), &cli::read_file(path)?);
        self.redact.as_ref().map(read).transpose()
    }
}

fn main() -> ExitCode {
    exit::run("claw-append", || {
        let args = Args::parse();
        args.log.open("claw-append");
        cli::survive_file_limits()?;
        let patterns = args.patterns()?;
        let input = cli::read_stdin()?;
        let records = args.records(&input)?;
        let mut batch = Batch::read(&cli::stdin_name(), &records)?;
        if let Some(patterns) = &patterns {
            batch.redact(patterns);
        }
        if batch.is_empty() {
            return Ok(Exit::Done);
        }
        let options = transcript::Options {
            expect_tail: args.expect_tail,
            lock_timeout: args.lock_timeout,
            sync: !args.no_sync,
            ts: cli::now()?.to_string(),
        };
        let lines = transcript::append(&args.file, &batch, &options)?;
        if args.tee {
            let mut out = Output::open();
            let written = out.write_all((lines.join("\n") + "\n").as_bytes());
            written.and_then(|()| out.flush()).with_context(|| {
                format!("cannot write '<stdout>' ('{}' has the records)", args.file.display())
            })?;
        }
        Ok(Exit::Done)
    })
}
