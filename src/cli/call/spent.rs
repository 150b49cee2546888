//! A limit on what a session may spend: looked at before anything is sent.

use crate::cli::call::outcome::Prices;
use crate::exit::{Error, Exit, fail};
use crate::json::Object;
use crate::jsonl::{Line, Lines, read_line};
use crate::provider::{Request, estimated};
use crate::source::Input;
use crate::usage::Counts;
use anyhow::Context;
use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

/// The option group for limits.
#[derive(Clone, Debug, clap::Args)]
pub struct SpentArgs {
    /// Transcript whose calls count for the limits; may be given again
    #[arg(long, value_name = "FILE")]
    pub spent: Vec<PathBuf>,
    /// Do not call when the tokens of all calls and of this prompt would be more
    #[arg(long, value_name = "TOKENS")]
    pub max_total: Option<u64>,
    /// Do not call when the cost of all calls and of this prompt would be more
    #[arg(long, value_name = "AMOUNT", requires = "prices", value_parser = amount)]
    pub max_cost: Option<f64>,
}

fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "not an amount".to_owned())
}

impl SpentArgs {
    /// Whether one more call is within the limits.
    ///
    /// # Errors
    /// 5 when it is not; 74 when a transcript cannot be read; 78 when a model has no price.
    pub(super) fn check(
        &self,
        request: &Request<'_, '_>,
        prices: Option<&Prices>,
    ) -> anyhow::Result<()> {
        if self.max_total.is_none() && self.max_cost.is_none() {
            return Ok(());
        }
        let prompt = Counts { input: estimated::prompt(request), ..Counts::default() };
        let mut calls = self.calls()?;
        calls.push((request.model.to_owned(), prompt));
        if let Some(most) = self.max_total {
            let total = calls.iter().fold(0u64, |sum, (_, it)| sum.saturating_add(it.all()));
            if total > most {
                let text = format!(
                    "not called: {total} tokens with this prompt are more than --max-total {most}"
                );
                return fail(Exit::NoGain, text);
            }
        }
        let (Some(most), Some(prices)) = (self.max_cost, prices) else { return Ok(()) };
        let mut total = 0.0;
        for (model, counts) in &calls {
            total += prices.cost(model, counts).ok_or_else(|| {
                let text = format!("cannot hold to --max-cost: no price of '{model}'");
                Error::new(Exit::Config, text)
            })?;
        }
        if total > most {
            let text =
                format!("not called: {total:.6} with this prompt is more than --max-cost {most}");
            return fail(Exit::NoGain, text);
        }
        Ok(())
    }

    /// The calls that the transcripts tell of, each once: the model and the counts.
    fn calls(&self) -> anyhow::Result<Vec<(String, Counts)>> {
        let mut calls: HashMap<String, (String, Counts)> = HashMap::new();
        for path in &self.spent {
            let name = path.display().to_string();
            let what = || format!("cannot read '{name}'");
            let input = File::open(path).and_then(|file| Input::file(&name, file));
            let input = input.with_context(what)?;
            let mut lines = Lines::new(&input, 0, input.length);
            let mut each = |line: Line<'_>| {
                if let Line::Object { object, place, .. } = line
                    && let Some((model, counts)) = call(&object)
                {
                    let id = object.string("request_id").map(|id| id.into_owned());
                    let id = id.unwrap_or_else(|| format!("{}@{}", place.input, place.offset));
                    calls.insert(id, (model, counts));
                }
            };
            while lines.next(|line, place| read_line(line, place, &mut each)).with_context(what)? {}
        }
        Ok(calls.into_values().collect())
    }
}

/// What a record tells of a call.
fn call(record: &Object<'_>) -> Option<(String, Counts)> {
    let kind = record.string("type")?;
    if !matches!(&*kind, "assistant" | "compaction" | "checkpoint") {
        return None;
    }
    let counts = Counts::read(record.get("usage")?)?;
    Some((record.string("model").unwrap_or_default().into_owned(), counts))
}
