//! claw-show: show a transcript as text, Markdown or HTML.

mod args;
mod bill;
mod diff;
mod file;
mod notes;
mod show;
mod site;

use crate::args::ShowArgs;
use clap::Parser;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Show the last turn:
      claw-show --limit-turns 1 s.jsonl
  Make an HTML page:
      claw-show --output s.html s.jsonl";

/// Show a transcript as text, Markdown or HTML
#[derive(Parser)]
#[command(name = "claw-show", version, after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-show", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-show");
        args.show.run(&args.operands, log)
    })
}
