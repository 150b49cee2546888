//! claw-session: create, import, export, carry, repair, list, find, fork and delete sessions.

mod carry;
mod commands;
mod database;
mod export;
mod find;
mod foreground;
mod gemini;
mod history;
mod import;
mod imported;
mod indexing;
mod list;
mod lock;
mod make;
mod paths;
mod place;
mod remove;
mod repair;
mod select;
mod status;

use crate::commands::Command;
use crate::place::Shared;
use clap::Parser;
use clawutils::cli::{self, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Make a session and send a prompt in it:
      claw-session new --label my-project
      claw-turn -m 'What is 2 + 2?' my-project
  Show a session by its label:
      claw-show \"$(claw-session path work)\"";

/// Create, import, export, carry, repair, list, find, fork and delete sessions
#[derive(Parser)]
#[command(name = "claw-session", version, after_help = EXAMPLES)]
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
