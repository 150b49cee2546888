//! claw-estimate: estimates the tokens of a request.

mod count;
mod rent;
mod source;

use crate::count::CountArgs;
use crate::rent::Rent;
use crate::source::Source;
use clap::Parser;
use clawutils::cli::budget::{BudgetArgs, RequestArgs};
use clawutils::cli::model::ModelArgs;
use clawutils::cli::{self, DialectArgs, Log, LogArgs, Operands, Output, arguments};
use clawutils::cost::{CompactWhen, PriceList};
use clawutils::estimate::calibrate::{MIN_GROWTH, calibrate};
use clawutils::estimate::{Budget, Estimate, Method, Request, exact, report};
use clawutils::exit::{self, Exit};
use clawutils::messages::Message;
use clawutils::provider::cache::CacheChoice;
use clawutils::usage::Counts;
use clawutils::usage::prices::Prices;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Show how full the context window is, and what fills it:
      claw-estimate --bar --parts s.jsonl
  Estimate the tokens of a shorter conversation:
      claw-rebuild --meta --limit-turns 5 s.jsonl | claw-estimate";

/// Estimate the tokens of a request
#[derive(Parser)]
#[command(name = "claw-estimate", version, after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    dialect: DialectArgs,
    #[command(flatten)]
    request: RequestArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Write a breakdown as one JSON object
    #[arg(long, conflicts_with = "bar")]
    json: bool,
    /// Write a bar that shows how full the context window is
    #[arg(long)]
    bar: bool,
    /// Also list tokens by part, one per line, then the largest records
    #[arg(long, conflicts_with = "json")]
    parts: bool,
    /// File of prices, one model per line, which wins over the table of models
    #[arg(long, value_name = "FILE", env = "CLAW_PRICES")]
    prices: Option<PathBuf>,
    /// Exit with 3 if the estimate reaches the window less the reserve, with 4 if the request has too many bytes, and with 5 if
    /// a cut pays
    #[arg(long)]
    check: bool,
    /// When a conversation is compacted ahead of an overflow
    #[arg(long, value_name = "WHEN", env = "CLAW_COMPACT_WHEN", default_value = "window")]
    compact_when: CompactWhen,
    /// Use of the provider's prompt cache
    #[arg(long, value_name = "WHEN", env = "CLAW_CACHE", default_value = "auto")]
    cache: CacheChoice,
    /// Write a table of models with a factor for each model that has counts in a transcript
    #[arg(long, conflicts_with_all = ["json", "bar", "parts", "check", "count"])]
    calibrate: bool,
    /// Method of estimating text
    #[arg(long, value_name = "METHOD", default_value = "script")]
    method: Method,
    #[command(flatten)]
    count: CountArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-estimate", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-estimate");
        let source = Source::open(&args.operands, &args.dialect)?;
        let _progress = log.wait_for("estimating");
        let messages = source.messages(log)?;
        if args.calibrate {
            return write_factors(&messages);
        }
        let extras = args.request.read()?;
        let (system, tools) = (extras.system.as_deref(), extras.tools.as_deref());
        let name = args.model.model();
        let model = name.as_deref().map(|name| args.model.known(name)).transpose()?;
        if let Some(why) = exact::why_not(args.method, model) {
            return exit::fail(Exit::Config, why);
        }
        let request = Request { messages: &messages, system, tools, model };
        let mut estimate = Estimate::of(request, args.method);
        let own = estimate.unmeasured;
        let counted = args.count.count(&messages, &args.request, &args.model, own, log)?;
        if let Some(counted) = counted {
            estimate.measure_all(counted);
        }
        let limit = args.model.byte_limit()?;
        let heavy = limit.filter(|limit| args.check && !limit.fits(estimate.bytes));
        let budget = match args.check && limit.is_none() {
            true => Some(args.budget.known_budget(&args.model, None)?),
            false => args.budget.budget(&args.model, None)?,
        };
        // Where only the bytes are checked, the count does not matter.
        if budget.is_some() || !args.check {
            log.unused_count(estimate.unused);
        }
        let origin = args.model.window(args.budget.window.window)?.map(|window| window.origin);
        let origin = origin.filter(|_| budget.is_some());
        let prices = cli::prices(args.prices.as_deref(), args.model.models.as_deref())?;
        let costs = model.and_then(|model| prompt_costs(&estimate, prices.of(model.name)?));
        let line = match (args.json, args.bar, budget) {
            (true, _, budget) => {
                report::json(&estimate, &messages, (model, costs), budget, origin, limit)
            }
            (_, true, Some(budget)) => report::bar(&estimate, budget),
            (_, true, None) => report::without_window(&estimate),
            _ => estimate.tokens.to_string(),
        };
        let parts = match args.parts {
            true => report::parts(&estimate, &messages, budget, origin),
            false => Vec::new(),
        };
        let price = costs.filter(|_| args.parts).map(|(cached, uncached)| {
            let [cached, uncached] = [cached, uncached].map(|cost| prices.amount(cost));
            format!("{cached:>11}  price of the prompt if the last one is cached, else {uncached}")
        });
        Output::lines([line].iter().chain(&parts).chain(&price))?;
        if let Some(limit) = heavy {
            return exit::fail(Exit::TooLarge, report::too_many_bytes(&estimate, limit));
        }
        let Some(budget) = budget.filter(|_| args.check) else { return Ok(Exit::Done) };
        if estimate.tokens >= budget.trigger() {
            return exit::fail(Exit::Overflow, report::too_large(&estimate, budget));
        }
        args.check_cost(request, budget, &prices, log)
    })
}

impl Args {
    /// Checks, with `--compact-when cost`, whether a cut pays. Without a price, only the window counts.
    fn check_cost(
        &self,
        request: Request<'_, '_>,
        budget: Budget,
        prices: &PriceList,
        log: Log,
    ) -> anyhow::Result<Exit> {
        if self.compact_when == CompactWhen::Window {
            return Ok(Exit::Done);
        }
        let name = request.model.map_or("", |model| model.name);
        if prices.of(name).is_none() {
            log.note(&format!("--compact-when cost has no effect: no price for '{name}'; give one in a file with --prices"));
            return Ok(Exit::Done);
        }
        let rent = Rent::of(request, budget, prices, self.cache)?.filter(|it| it.is_due());
        let Some(Rent { paid, cut }) = rent else { return Ok(Exit::Done) };
        let [paid, cut] = [paid, cut].map(|cost| prices.amount(cost));
        let text = format!(
            "a cut pays: reading the old part has cost {paid}, a cut costs {cut} and reading that part once"
        );
        exit::fail(Exit::NoGain, text)
    }
}

/// Returns the price of the prompt if what the provider has counted is read from its cache and the rest written to it, and
/// that without a cache. `None` without prices.
fn prompt_costs(estimate: &Estimate, prices: Prices) -> Option<(f64, f64)> {
    let (cache_read, all) = (estimate.measured, estimate.tokens);
    let cached = Counts { cache_read, cache_write: all - cache_read, ..Counts::default() };
    Some((prices.cost(&cached)?, prices.cost(&cached.without_cache())?))
}

/// Writes a table of models, with a factor for each model that has enough counts in the messages.
fn write_factors(messages: &[Message<'_>]) -> anyhow::Result<Exit> {
    let rows = calibrate(messages);
    if rows.is_empty() {
        let text = format!(
            "cannot calibrate: no model has counts for prompts that grow by {MIN_GROWTH} tokens; give a longer transcript"
        );
        return exit::fail(Exit::NoGain, text);
    }
    Output::lines(rows)
}
