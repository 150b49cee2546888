//! claw-tool: tools that read, confined to the working folder.

mod tool;

use crate::tool::Tool;
use clap::Parser;
use clawutils::cli::arguments;
use clawutils::cli::{self, LogArgs};
use std::process::ExitCode;

/// Be a tool: read the input of a call and write its result
#[derive(Parser)]
#[command(name = "claw-tool", version)]
struct Args {
    /// The tool to be
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
