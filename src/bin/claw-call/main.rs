//! claw-call: make one call to a model. This is the only program that uses the network.

mod args;
mod asking;
mod batch;
mod call;
mod classify;
mod listening;
mod models;
mod prefix;
mod prices;
mod refused_features;
mod reply;
mod show;
mod source;
mod spent;
mod transport;

use crate::args::CallArgs;
use crate::call::call;
use crate::classify::classify;
use clap::Parser;
use clawutils::cli::budget::RequestArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Send the conversation to a model, append its reply, and print the reply:
      claw-rebuild s.jsonl | claw-call | claw-append --print s.jsonl
  Show the request that would be sent, without sending it:
      claw-rebuild s.jsonl | claw-call --dry-run";

/// Send messages to a model and write its reply as records
#[derive(Parser)]
#[command(name = "claw-call", version, args_override_self = true, after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    call: CallArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-call", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-call");
        if args.call.models_offered {
            return models::list(&args.call, &args.model, log);
        }
        if args.call.ask_window {
            return models::ask(&args.call, &args.model, log);
        }
        let input = args.operands.read()?;
        if let Some(status) = args.call.classify {
            let body: Vec<u8> = input.into_iter().flat_map(|(_, bytes)| bytes).collect();
            return classify(status, &body, &args.call.rows, log);
        }
        if let Some(dir) = &args.call.batches.batch {
            return batch::batch(&args.call, dir, &args.model, &input, log);
        }
        let extras = args.request.read()?;
        call(&args.call, &args.model, &input, &extras, log)
    })
}
