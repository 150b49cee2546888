//! claw-truncate: shorten tool results until a request fits the context window, and leave out what a provider refuses.

mod output;
mod steps;

use clap::Parser;
use clawutils::cli::budget::{BudgetArgs, RefusedArgs, RequestArgs};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{self, LogArgs, Operands, arguments};
use clawutils::estimate::{Refused, Request};
use clawutils::exit::Exit;
use clawutils::provider::cache::CacheChoice;
use clawutils::settings::values::share;
use clawutils::shorten::HEAD_RATIO;
use clawutils::truncate::MAX_FRACTION;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Shorten long results in a transcript:
      claw-rebuild --meta s.jsonl |
        claw-truncate --window 8000 --record | claw-append s.jsonl
  Do nothing unless it saves at least 2000 tokens:
      claw-rebuild s.jsonl | claw-truncate --window 8000 --min-gain 2000";

/// Shorten tool results until a request fits the context window
#[derive(Parser)]
#[command(name = "claw-truncate", version, after_help = EXAMPLES)]
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
    limits: LimitArgs,
    /// Do nothing unless the prompt cache has expired since the last reply, and then shorten the results of older ones
    #[arg(long, conflicts_with_all = ["max_fraction", "head_ratio", "floor", "min_gain"])]
    if_cold: bool,
    /// Use of the provider's prompt cache
    #[arg(long, value_name = "WHEN", env = "CLAW_CACHE", default_value = "auto")]
    cache: CacheChoice,
    /// Write truncation and omission records for claw-append instead of messages
    #[arg(long)]
    record: bool,
    #[command(flatten)]
    log: LogArgs,
}

/// The limits on single results.
#[derive(Clone, Debug, clap::Args)]
struct LimitArgs {
    /// Share of the window that one result may take, from 0 to 1, at 4 characters per token
    #[arg(long, value_name = "SHARE", default_value_t = MAX_FRACTION, value_parser = share)]
    max_fraction: f64,
    /// Share of the kept text that comes from the beginning, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = HEAD_RATIO, value_parser = share)]
    head_ratio: f64,
    /// Shorten no result below about this many characters to fit the budget (default: a tenth of the limit for one
    /// result, at least 200 and at most 2000)
    #[arg(long, value_name = "CHARACTERS")]
    floor: Option<usize>,
    /// Do nothing unless it saves at least this many tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 0)]
    min_gain: u64,
}

fn main() -> ExitCode {
    cli::run("claw-truncate", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-truncate");
        let input = args.operands.read()?;
        let progress = log.wait_for("looking for results to shorten");
        let mut messages = cli::messages(&input)?;
        if args.record {
            cli::require_meta(&messages)?;
        }
        let extras = args.request.read()?;
        let (system, tools) = (extras.system.as_deref(), extras.tools.as_deref());
        let refused = args.refused.read()?;
        let name = args.model.model();
        let model = name.as_deref().map(|name| args.model.known(name)).transpose()?;
        let beside = Request { messages: &[], system, tools, model };
        let request = Request { messages: &messages, ..beside };
        let gauge = Refused::gauge(refused.as_ref(), request);
        let steps = steps::Steps { args: &args, refused: refused.as_ref(), beside, gauge };
        let (outcome, aim) = steps.run(&mut messages, log)?;
        drop(progress);
        output::write_truncated(&messages, &outcome, args.record)?;
        let must_gain = !args.if_cold && (args.record || refused.is_some());
        if args.if_cold && outcome.is_unchanged() {
            return Ok(Exit::Done);
        }
        output::report_truncated(log, &outcome, aim, must_gain)
    })
}
