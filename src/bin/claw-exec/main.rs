//! claw-exec: run tool calls and write their results.

mod exec;

use crate::exec::ExecArgs;
use clap::Parser;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Run the open tool calls of a transcript and append their results:
      claw-rebuild --open s.jsonl |
        claw-exec --tools tools | claw-append --each s.jsonl
  Ask before each call, except for one tool:
      claw-rebuild --open s.jsonl |
        claw-exec --tools tools --ask --allow read_file";

/// Run tool calls and write their results
#[derive(Parser)]
#[command(
    name = "claw-exec",
    version,
    after_help = EXAMPLES,
    mut_arg("exec_timeout", |arg| arg.visible_alias("timeout"))
)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    exec: ExecArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-exec", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-exec");
        args.exec.run(&args.operands, log)
    })
}
