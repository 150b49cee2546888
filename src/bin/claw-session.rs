//! claw-session: sessions by name.

use clap::Parser;
use clawutils::cli::session::{Command, Shared};
use clawutils::cli::{self, arguments};
use std::process::ExitCode;

/// Make, list, find, fork and delete sessions by name
#[derive(Parser)]
#[command(name = "claw-session", version)]
struct Args {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    cli::run("claw-session", || {
        let args = arguments::parse::<Args>()?;
        args.command.run(&args.shared.open()?)
    })
}
