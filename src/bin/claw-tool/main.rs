//! claw-tool: the built-in tools, which read the workspace or the clock, and the tools of other servers.

#[cfg(feature = "mcp")]
mod mcp;
mod tool;

use crate::tool::Tool;
use clap::{Parser, Subcommand};
use clawutils::cli::arguments;
use clawutils::cli::{self, LogArgs};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  List a directory:
      echo '{\"directory\": \"docs\"}' | claw-tool list_directory
  Read a file:
      echo '{\"file_path\": \"docs/a.txt\"}' | claw-tool read_file";

/// Run a tool: input on standard input, result on standard output
#[derive(Parser)]
#[command(name = "claw-tool", version, after_help = EXAMPLES)]
struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Tool(Tool),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Mcp),
}

fn main() -> ExitCode {
    cli::run("claw-tool", || {
        let Args { command, log } = arguments::parse()?;
        match command {
            Command::Tool(tool) => {
                log.open("claw-tool");
                tool.run()
            }
            #[cfg(feature = "mcp")]
            Command::Mcp(mcp) => mcp.run(log.open("claw-tool")),
        }
    })
}
