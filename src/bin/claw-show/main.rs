//! claw-show: a transcript for a person.

mod file;
mod show;

use crate::show::ShowArgs;
use clap::Parser;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

/// Show a transcript to a person, as text, Markdown or HTML
#[derive(Parser)]
#[command(name = "claw-show", version)]
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
