//! claw-append: write records to the end of a transcript.

use anyhow::Context;
use clap::Parser;
use clawutils::cli::append::{PlainArgs, RedactArgs, appending};
use clawutils::cli::{self, LogArgs, Output, arguments};
use clawutils::exit::{self, Exit};
use clawutils::transcript::{self, Batch};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Append records from standard input to a transcript
#[derive(Parser)]
#[command(name = "claw-append", version)]
struct Args {
    /// Transcript to append to; made if it is not there
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    plain: PlainArgs,
    /// Write the records as they were written to standard output
    #[arg(long)]
    tee: bool,
    #[command(flatten)]
    redact: RedactArgs,
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

fn main() -> ExitCode {
    exit::run("claw-append", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-append");
        cli::survive_file_limits()?;
        let patterns = args.redact.patterns()?;
        let input = cli::read_stdin()?;
        let _progress = log.wait_for("checking the records");
        let records = args.plain.records(&input)?;
        let mut batch = Batch::read(&cli::stdin_name(), &records)?;
        if let Some(patterns) = &patterns {
            batch.redact(patterns);
        }
        let options = transcript::Options {
            expect_tail: args.expect_tail,
            lock_timeout: args.lock_timeout,
            is_waiting: Arc::default(),
            sync: !args.no_sync,
            ts: cli::now()?.to_string(),
        };
        let progress = log.progress(appending(&args.file, &options));
        let lines = transcript::append(&args.file, &batch, &options)?;
        drop(progress);
        if args.tee {
            let mut out = Output::open();
            let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
            written.and_then(|()| out.flush()).with_context(|| {
                format!("cannot write '<stdout>' ('{}' has the records)", args.file.display())
            })?;
        }
        Ok(Exit::Done)
    })
}
