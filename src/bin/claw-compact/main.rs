//! claw-compact: summarise the old part of a conversation.

mod compact;
mod ladder;
mod retry;
mod run;
mod server;
mod show;
mod sources;

use crate::run::{CompactArgs, CompactRun};
use clap::Parser;
use clawutils::cli::budget::{BudgetArgs, RefusedArgs, RequestArgs};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Compact a transcript:
      claw-rebuild --meta s.jsonl | claw-compact --record | claw-append s.jsonl
  Show what would be covered and kept, without calling a model:
      claw-rebuild --meta s.jsonl | claw-compact --show";

/// Summarise the old part of a conversation
#[derive(Parser)]
#[command(name = "claw-compact", version, after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    refused: RefusedArgs,
    #[command(flatten)]
    compact: CompactArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-compact", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-compact");
        let extras = args.request.read()?;
        let refused = args.refused.read()?;
        let budget = args.budget.budget(&args.model, refused.as_ref())?;
        let name = args.model.model();
        let known_model = name.as_deref().map(|name| args.model.known(name)).transpose()?;
        let (operands, model, request) = (&args.operands, &args.model, &args.request);
        let args = &args.compact;
        let run = CompactRun { args, model, budget, refused, request, extras, known_model };
        if args.retry {
            return run.retry(&operands.transcripts()?, log);
        }
        run.run(&operands.read()?, log)
    })
}
