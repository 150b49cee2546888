//! claw-replay: examine many transcripts, with a report on each.

mod call;
mod check;
mod diff;
mod guard;
mod line_file;
mod merge;
mod paths;
mod reader;
mod report;
mod run;
mod sinks;
mod state;
mod transcript;

use crate::call::CallArgs;
use crate::check::CheckArgs;
use crate::diff::DiffArgs;
use crate::guard::GuardArgs;
use crate::merge::MergeArgs;
use clap::{Parser, Subcommand};
use clawutils::cli::{self, LogArgs, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Check all transcripts in a directory:
      claw-replay check .
  Check that their messages fit a window of 32000 tokens, and keep the reports:
      claw-replay check --window 32000 --state replay.state . >reports.jsonl";

/// Examine many transcripts, with a report on each
#[derive(Parser)]
#[command(name = "claw-replay", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    mode: ModeArgs,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Subcommand)]
enum ModeArgs {
    /// Check that transcripts are sound, can be sent and fit the window
    Check(CheckArgs),
    /// Report at which turns context windows would overflow, and what the guard would do
    Guard(GuardArgs),
    /// Request the replies of transcripts again and compare them with the recorded ones
    Call(Box<CallArgs>),
    /// Compare two directories of transcripts, or the reports of two runs
    Diff(DiffArgs),
    /// Merge the reports of several runs, and write their results
    Merge(MergeArgs),
}

fn main() -> ExitCode {
    cli::run("claw-replay", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-replay");
        match args.mode {
            ModeArgs::Check(check) => run::run(check.mode()?, check.run, log),
            ModeArgs::Guard(guard) => run::run(guard.mode()?, guard.run, log),
            ModeArgs::Call(call) => {
                run::run(call.mode(&arguments::decided::<Args>()?)?, call.run, log)
            }
            ModeArgs::Diff(diff) => diff.run(log),
            ModeArgs::Merge(merge) => merge.run(log),
        }
    })
}
