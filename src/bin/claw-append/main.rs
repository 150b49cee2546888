//! claw-append: append records to a transcript.

mod append;

use crate::append::{Echo, EchoArgs, PlainArgs};
use anyhow::Context;
use clap::Parser;
use clawutils::cli::options::RedactArgs;
use clawutils::cli::progress::appending;
use clawutils::cli::{self, Log, LogArgs, arguments};
use clawutils::exit::Exit;
use clawutils::redact::Patterns;
use clawutils::settings::values::seconds;
use clawutils::transcript::{self, Batch};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  Append a prompt:
      echo 'What is 2 + 2?' | claw-append --user s.jsonl
  Send the conversation to a model, append its reply, and print the reply:
      claw-rebuild s.jsonl | claw-call | claw-append --print s.jsonl";

/// Append records from standard input to a transcript
#[derive(Parser)]
#[command(name = "claw-append", version, after_help = EXAMPLES)]
struct Args {
    /// Transcript to append to; created if missing
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    plain: PlainArgs,
    /// Append each record as soon as its line arrives, and ignore signals until the input ends
    #[arg(long, conflicts_with_all = ["plain", "expect_tail"])]
    each: bool,
    #[command(flatten)]
    echo: EchoArgs,
    #[command(flatten)]
    redact: RedactArgs,
    /// Append only if the id of the last record is ID
    #[arg(long, value_name = "ID")]
    expect_tail: Option<String>,
    /// Longest wait for another writer, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    lock_timeout: Duration,
    /// Do not wait until the records are on disk
    #[arg(long)]
    no_sync: bool,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-append", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-append");
        cli::survive_file_limits()?;
        let mut echo = args.echo.open();
        let patterns = args.redact.patterns()?;
        if args.each {
            args.append_each(patterns.as_ref(), &mut echo, log)?;
        } else {
            if args.plain.is_text() && std::io::stdin().is_terminal() {
                log.note("reading the text from the terminal; end it with Ctrl-D");
            }
            let input = cli::read_stdin()?;
            let _progress = log.wait_for("checking the records");
            let records = args.plain.records(&input)?;
            let batch = Batch::read(&cli::stdin_name(), &records)?;
            args.append(batch, patterns.as_ref(), &mut echo, log)?;
        }
        echo.finish(&args.file)?;
        Ok(Exit::Done)
    })
}

impl Args {
    /// Appends each line of standard input as soon as it arrives.
    fn append_each(
        &self,
        patterns: Option<&Patterns>,
        echo: &mut Echo,
        log: Log,
    ) -> anyhow::Result<()> {
        cli::survive_signals()?;
        let mut input = cli::open_stdin()?;
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if input.read_until(b'\n', &mut line).context("cannot read '<stdin>'")? == 0 {
                break;
            }
            let batch = Batch::read_from(&cli::stdin_name(), number, &line)?;
            self.append(batch, patterns, echo, log)?;
        }
        Ok(())
    }

    fn append(
        &self,
        mut batch: Batch<'_>,
        patterns: Option<&Patterns>,
        echo: &mut Echo,
        log: Log,
    ) -> anyhow::Result<()> {
        if let Some(patterns) = patterns {
            batch.redact(patterns);
        }
        let options = transcript::AppendOptions {
            expect_tail: self.expect_tail.clone(),
            lock_timeout: self.lock_timeout,
            is_waiting: Arc::default(),
            sync: !self.no_sync,
            ts: cli::now()?.to_string(),
        };
        let progress = log.progress(appending(&self.file, &options));
        let lines = transcript::append(&self.file, &batch, &options)?;
        drop(progress);
        echo.write(&lines);
        Ok(())
    }
}
