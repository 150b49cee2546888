//! guard: finds the turns at which context windows would overflow. At each of them it simulates, without calling a
//! model, the steps that `claw-turn` takes to make a request fit.

mod policies;
mod simulation;

use crate::report::{Case, Outcome, Report, counted};
use crate::run::{Mode, RunArgs};
use crate::transcript::Transcript;
use clawutils::cli::budget::{Extras, RequestArgs};
use clawutils::cli::prices;
use clawutils::cost::PriceList;
use clawutils::cost::policy::Policy;
use clawutils::estimate::{Budget, Model, Weight};
use clawutils::exit::{Error, Exit, fail};
use clawutils::json::write::Members;
use clawutils::messages::rebuild::{self, RebuildOptions};
use clawutils::settings::values::positive;
use clawutils::usage::Counts;
use policies::{Priced, Steps};
use simulation::{Events, Overflow, SimulatedCall, Simulation};
use std::path::PathBuf;

/// The maximum number of overflows that a report lists for each window.
const MAX_OVERFLOWS: usize = 100;

/// The options of `claw-replay guard`.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardArgs {
    /// Context window in tokens, for prompt and answer together; separate several with commas
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', required = true)]
    pub window: Vec<u64>,
    /// Maximum length of the answer in tokens (default: 8096, at most a quarter of the window)
    #[arg(long, value_name = "TOKENS", value_parser = positive)]
    pub max_tokens: Option<u64>,
    /// Tokens to keep free; a conversation that would use them is compacted first (default: 30000, at most 15 % of
    /// the window)
    #[arg(long, value_name = "TOKENS")]
    pub reserve: Option<u64>,
    /// File with the system prompt
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// File with a JSON array of tool definitions, or directory of tools
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// File of prices, one model per line; the cost of all calls is reported
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Model to estimate tokens for, and whose price applies (default: the one that the newest reply names)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Price these policies of cutting and shortening, and the least that was possible; separate several with commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub policy: Vec<Policy>,
    /// The options that check, guard and call share.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The mode of `claw-replay guard`.
pub struct Guard {
    budgets: Vec<Budget>,
    beside: Extras,
    prices: PriceList,
    model: Option<String>,
    policies: Vec<Policy>,
    options: String,
}

impl GuardArgs {
    /// Reads the files that the options name, and returns the mode.
    ///
    /// # Errors
    /// Fails with 74 or 77 if a file cannot be read, 65 if the system prompt or the tools are invalid, and 78 if the
    /// prices are invalid or a window has no room for the prompt.
    pub fn mode(&self) -> anyhow::Result<Guard> {
        let GuardArgs { max_tokens, reserve, .. } = *self;
        let budget = |window: &u64| {
            let budget = Budget::new(*window, max_tokens, reserve);
            budget.map_err(|why| Error::new(Exit::Config, why))
        };
        let mut budgets = self.window.iter().map(budget).collect::<Result<Vec<_>, _>>()?;
        budgets.sort_by_key(|budget| budget.window);
        budgets.dedup();
        if budgets.is_empty() {
            return fail(Exit::Usage, "no window given; give --window TOKENS");
        }
        let request = RequestArgs { system: self.system.clone(), tools: self.tools.clone() };
        let beside = request.read()?;
        let prices = prices(self.prices.as_deref(), None)?;
        let (model, policies) = (self.model.clone(), self.policy.clone());
        let options = format!("{budgets:?} {beside:?} {prices:?} {model:?} {policies:?}");
        Ok(Guard { budgets, beside, prices, model, policies, options })
    }
}

impl Mode for Guard {
    fn name(&self) -> &'static str {
        "guard"
    }

    fn options(&self) -> String {
        self.options.clone()
    }

    fn run(&self, transcript: &Transcript) -> anyhow::Result<Report> {
        let name = transcript.model(self.model.as_deref())?;
        let model = name.as_deref().map(Model::named);
        let mut windows: Vec<WindowRun<'_>> =
            self.budgets.iter().map(|budget| WindowRun::new(self, *budget, model)).collect();
        let (mut turn, mut count, mut tokens) = (0, 0, 0);
        let mut steps = Steps::default();
        let options = RebuildOptions { ignore_compactions: true, ..RebuildOptions::default() };
        let inputs = std::slice::from_ref(&transcript.input);
        rebuild::stream(inputs, &options, true, |message| {
            let mut message = message.into_owned();
            let weight = Weight::of(&message, model);
            if !self.policies.is_empty() {
                steps.take(&message, weight);
            }
            turn += u64::from(message.is_from_user());
            count += 1;
            tokens += weight.tokens();
            let replied = message.meta.as_ref().and_then(|meta| meta.model.clone());
            // The provider's counts are those of the recorded requests, not of the simulated ones.
            message.meta.iter_mut().for_each(|meta| meta.drop_count());
            for window in &mut windows {
                window.model = replied.clone().or(window.model.take());
                let events = window.simulation.take(message.clone(), weight, turn);
                window.note(&events);
            }
            Ok(())
        })?;
        if count == 0 {
            transcript.require_record()?;
        }
        for window in &mut windows {
            let events = window.simulation.finish(turn);
            window.note(&events);
            window.price(&steps, model);
        }
        let cases = windows.iter().map(WindowRun::case).collect();
        let numbers = Members::new().number("turns", turn).number("messages", count);
        let numbers = numbers.number("tokens", tokens);
        let numbers = numbers.objects("windows", &windows, |members, it| it.add_to(members));
        Ok(Report::new(self.name(), &transcript.name, cases, numbers))
    }
}

/// The simulation of a window, and its numbers.
struct WindowRun<'g> {
    guard: &'g Guard,
    simulation: Simulation<'g>,
    /// The model that replied last.
    model: Option<String>,
    /// The first overflows, at most [`MAX_OVERFLOWS`], and the total number of overflows.
    overflows: (Vec<Overflow>, u64),
    requests: u64,
    summary_calls: u64,
    input: u64,
    output: u64,
    /// The cost without and with a prompt cache.
    costs: [f64; 2],
    /// The number of calls whose model has no price.
    unpriced: u64,
    /// The policies, if some were asked for.
    priced: Option<Priced>,
}

impl<'g> WindowRun<'g> {
    fn new(guard: &'g Guard, budget: Budget, model: Option<Model<'g>>) -> WindowRun<'g> {
        WindowRun {
            guard,
            simulation: Simulation::new(budget, &guard.beside, model),
            model: None,
            overflows: (Vec::new(), 0),
            requests: 0,
            summary_calls: 0,
            input: 0,
            output: 0,
            costs: [0.0; 2],
            unpriced: 0,
            priced: None,
        }
    }

    /// Prices the policies at the prices of the model.
    fn price(&mut self, steps: &Steps, model: Option<Model<'_>>) {
        let Guard { policies, prices, .. } = self.guard;
        if !policies.is_empty() {
            let prices = model.and_then(|model| prices.of(model.name));
            let base = self.simulation.empty.tokens();
            self.priced = Some(Priced::new(policies, steps, base, prices, self.simulation.budget));
        }
    }

    fn note(&mut self, events: &Events) {
        if let Some(overflow) = events.overflow {
            let (first, all) = &mut self.overflows;
            *all += 1;
            first.extend((first.len() < MAX_OVERFLOWS).then_some(overflow));
        }
        for call in &events.calls {
            self.requests += u64::from(!call.is_summary);
            self.summary_calls += u64::from(call.is_summary);
            self.input += call.input;
            self.output += call.output;
            self.add_cost(call);
        }
    }

    fn add_cost(&mut self, call: &SimulatedCall) {
        let prices = &self.guard.prices;
        let model = self.guard.model.as_deref().or(self.model.as_deref()).unwrap_or_default();
        let SimulatedCall { input, output, .. } = *call;
        let plain = Counts { input, output, ..Counts::default() };
        let repeated = call.repeated.min(input);
        let cached = Counts {
            cache_read: repeated,
            cache_write: input - repeated,
            output,
            ..Counts::default()
        };
        match (prices.cost(model, &plain), prices.cost(model, &cached)) {
            (Some(plain), Some(cached)) => {
                self.costs[0] += plain;
                self.costs[1] += if call.is_summary { plain } else { cached };
            }
            _ => self.unpriced += 1,
        }
    }

    fn case(&self) -> Case {
        let Budget { window, .. } = self.simulation.budget;
        let name = format!("window {window}");
        let budget = self.simulation.budget.prompt();
        if let Some(Overflow { turn, tokens, after, .. }) = self.simulation.failed {
            let message = format!(
                "turn {turn} does not fit: {tokens} tokens, {after} after all steps, budget {budget}"
            );
            return Case::new(name, Outcome::Failed, message);
        }
        let Some(first) = self.overflows.0.first() else {
            let message = format!("never overflows: at most {} tokens", self.simulation.largest);
            return Case::new(name, Outcome::Passed, message);
        };
        let message = format!(
            "first overflow at turn {}: {}, {}",
            first.turn,
            counted(self.overflows.1, "overflow"),
            counted(self.summary_calls, "summary call")
        );
        Case::new(name, Outcome::Passed, message)
    }

    fn add_to(&self, members: Members) -> Members {
        let Simulation { budget, largest, failed, .. } = &self.simulation;
        let (first, all) = &self.overflows;
        let members = members
            .number("window", budget.window)
            .number("prompt_budget", budget.prompt())
            .number("requests", self.requests)
            .number("largest", *largest)
            .number("overflow_count", *all)
            .or_null(Members::number, "first_turn", first.first().map(|it| it.turn))
            .or_null(Members::number, "failed_turn", failed.map(|it| it.turn))
            .number("summary_calls", self.summary_calls)
            .number("input", self.input)
            .number("output", self.output);
        let members = self.add_costs(members);
        let members = match &self.priced {
            Some(priced) => priced.add_to(members),
            None => members,
        };
        members.objects("overflows", first, |members, it| {
            members
                .number("turn", it.turn)
                .number("tokens", it.tokens)
                .number("truncate", it.truncate)
                .number("compact", it.compact)
                .number("after", it.after)
        })
    }

    /// Adds the costs. They are null, not 0, if there are calls but none has a price.
    fn add_costs(&self, members: Members) -> Members {
        let is_known = self.unpriced < self.requests + self.summary_calls || self.unpriced == 0;
        // Round to millionths, to hide the rounding errors of binary fractions.
        let cost = |at: usize| is_known.then(|| (self.costs[at] * 1e6).round() / 1e6);
        members
            .or_null(Members::decimal, "cost", cost(0))
            .or_null(Members::decimal, "cost_with_cache", cost(1))
            .number("unpriced", self.unpriced)
    }
}
