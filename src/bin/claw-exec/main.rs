//! claw-exec: run calls as executables.

mod exec;

use crate::exec::ExecArgs;
use clap::Parser;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

/// Run the calls among records and write a result for each
#[derive(Parser)]
#[command(
    name = "claw-exec",
    version,
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
