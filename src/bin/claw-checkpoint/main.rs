//! claw-checkpoint: a structured summary of a conversation, made ahead of need.

mod checkpoint;

use crate::checkpoint::{CheckpointArgs, Run};
use clap::Parser;
use clawutils::cli::budget::{BudgetArgs, RequestArgs};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

/// Make a structured summary of a conversation, ahead of need
#[derive(Parser)]
#[command(
    name = "claw-checkpoint",
    version,
    mut_arg("percents", |arg| arg.visible_alias("percents")),
    mut_arg("turns", |arg| arg.visible_alias("turns")),
    mut_arg("min_tokens", |arg| arg.visible_alias("min-tokens"))
)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-checkpoint", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-checkpoint");
        let input = args.operands.read()?;
        let extras = args.request.read()?;
        let (checkpoint, model, budget) = (&args.checkpoint, &args.model, &args.budget);
        Run { args: checkpoint, model, budget }.run(&input, &extras, log)
    })
}
