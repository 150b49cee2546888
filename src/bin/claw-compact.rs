//! claw-compact: put a summary in the place of a conversation's old part.

use clap::Parser;
use clawutils::cli::budget::{BudgetArgs, RefusedArgs, RequestArgs};
use clawutils::cli::compact::{self, CompactArgs};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{LogArgs, Operands};
use clawutils::exit;
use std::process::ExitCode;

/// Summarise the old part of a conversation
#[derive(Parser)]
#[command(name = "claw-compact", version)]
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
    exit::run("claw-compact", || {
        let args = Args::parse();
        let log = args.log.open("claw-compact");
        let input = args.operands.read()?;
        let extras = args.request.read()?;
        let refused = args.refused.read()?;
        let budget = args.budget.budget(&args.model, refused.as_ref())?;
        let session = compact::Session { args: &args.compact, model: &args.model, budget, refused };
        session.run(&input, &extras, log)
    })
}
