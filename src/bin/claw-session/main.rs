//! claw-session: sessions by name.

mod commands;
mod find;
mod foreground;
mod history;
mod list;
mod lock;
mod make;
mod remove;
mod status;

use crate::commands::{Command, Shared};
use clap::Parser;
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
