//! claw-checkpoint: summarise a conversation ahead of compaction.

mod checkpoint;

use crate::checkpoint::{CheckpointArgs, CheckpointRun};
use clap::Parser;
use clawutils::cli::budget::{BudgetArgs, RequestArgs};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Make a checkpoint:
      claw-rebuild --meta s.jsonl | claw-checkpoint | claw-append s.jsonl
  Make a checkpoint only if one is due:
      claw-rebuild --meta s.jsonl |
        claw-checkpoint --if-due | claw-append s.jsonl";

/// Summarise a conversation ahead of compaction
#[derive(Parser)]
#[command(
    name = "claw-checkpoint",
    version,
    after_help = EXAMPLES,
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
        CheckpointRun { args: checkpoint, model, budget }.run(&input, &extras, log)
    })
}
