//! claw-tool: the built-in tools, which read the workspace or the clock.

mod tool;

use crate::tool::Tool;
use clap::Parser;
use clawutils::cli::arguments;
use clawutils::cli::{self, LogArgs};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  List a directory:
      echo '{\"directory\": \"docs\"}' | claw-tool list_directory
  Read a file:
      echo '{\"file_path\": \"docs/a.txt\"}' | claw-tool read_file";

/// Read files in the workspace, as a tool: input on standard input, result on standard output
#[derive(Parser)]
#[command(name = "claw-tool", version, after_help = EXAMPLES)]
struct Args {
    /// Tool to run
    #[arg(value_name = "TOOL")]
    tool: Tool,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-tool", || {
        let args = arguments::parse::<Args>()?;
        args.log.open("claw-tool");
        args.tool.run()
    })
}
