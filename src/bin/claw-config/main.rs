//! claw-config: settings, their values and where these come from.

mod scripts;
mod shell;

use clap::{Parser, Subcommand};
use clawutils::cli::{LogArgs, arguments};
use clawutils::exit::{self, Exit};
use std::process::ExitCode;

/// Show and change settings, and read the options of scripts
#[derive(Parser)]
#[command(name = "claw-config", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Subcommand)]
enum Command {
    Shell(shell::Shell),
    /// Write a diagnostic to standard error, in the form that --log selects
    Say {
        /// Name of the program that it is from
        program: String,
        /// The text
        text: String,
    },
}

fn main() -> ExitCode {
    exit::run("claw-config", || {
        let args = arguments::parse::<Args>()?;
        args.log.open("claw-config");
        match args.command {
            Command::Shell(shell) => shell.run(),
            Command::Say { program, text } => {
                exit::say(&program, &text);
                Ok(Exit::Done)
            }
        }
    })
}
