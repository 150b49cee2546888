//! Usage: what a provider counted, under whatever names, and what that costs.
//!
//! The counts of a reply stay in its record as they were sent; here they are only read. Prices come from a
//! table that the user has, and a model without a row there has no price, which is not the price zero.

use crate::json::Object;
use std::fmt;

/// The tokens of one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of the prompt, what no cache held.
    pub input: u64,
    /// Of the prompt, what was read from a cache.
    pub cache_read: u64,
    /// Of the prompt, what was written into a cache.
    pub cache_write: u64,
    /// Of the answer.
    pub output: u64,
}

impl Counts {
    /// Reads a usage object of Anthropic's (`input_tokens` is what no cache held), OpenAI's
    /// (`prompt_tokens` holds what a cache held, too) or Ollama's.
    #[must_use]
    pub fn read(usage: &str) -> Option<Counts> {
        let usage = Object::parse(usage).ok()?;
        let number = |name: &str| usage.number(name);
        let many = |name: &str| number(name).unwrap_or(0);
        if let Some(input) = number("input_tokens") {
            let (cache_read, cache_write) =
                (many("cache_read_input_tokens"), many("cache_creation_input_tokens"));
            return Some(Counts { input, cache_read, cache_write, output: many("output_tokens") });
        }
        if let Some(prompt) = number("prompt_tokens") {
            let details =
                usage.get("prompt_tokens_details").and_then(|raw| Object::parse(raw).ok());
            let cached = details.and_then(|details| details.number("cached_tokens")).unwrap_or(0);
            let (cache_read, input) = (cached.min(prompt), prompt.saturating_sub(cached));
            return Some(Counts {
                input,
                cache_read,
                output: many("completion_tokens"),
                cache_write: 0,
            });
        }
        let output = number("eval_count")?;
        Some(Counts { input: many("prompt_eval_count"), output, ..Counts::default() })
    }

    /// All tokens of the prompt.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// The counts as members of a JSON object.
    #[must_use]
    pub fn members(&self) -> String {
        format!(
            r#""input":{},"cache_read":{},"cache_write":{},"output":{}"#,
            self.input, self.cache_read, self.cache_write, self.output
        )
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { input, cache_read, cache_write, output } = self;
        write!(
            f,
            "{input} tokens in, {cache_read} from cache, {cache_write} to cache, {output} out"
        )
    }
}

/// Prices by model.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    /// The model's name, or the beginning of it and a star.
    model: String,
    /// For a million tokens: of input, from cache, to cache, of output.
    prices: [f64; 4],
}

impl Table {
    /// Reads a table. A line has the model's name (or the beginning of names and `*`) and four prices for
    /// a million tokens, of input, read from cache, written to cache and of output, all in one currency.
    /// Blank lines and lines that begin with `#` are passed over; of several rows the first that fits counts.
    ///
    /// # Errors
    /// Says which line is none.
    pub fn read(text: &str) -> Result<Table, String> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let row = |(number, line)| {
            row(line).ok_or_else(|| format!("line {number} is no model and four prices: '{line}'"))
        };
        Ok(Table { rows: lines.map(row).collect::<Result<_, _>>()? })
    }

    /// What these tokens cost; `None` when there is no price for the model.
    #[must_use]
    pub fn cost(&self, model: &str, counts: &Counts) -> Option<f64> {
        let fits = |row: &&Row| match row.model.strip_suffix('*') {
            Some(begin) => model.starts_with(begin),
            None => model == row.model,
        };
        let row = self.rows.iter().find(fits)?;
        let tokens = [counts.input, counts.cache_read, counts.cache_write, counts.output];
        let sum: f64 = tokens.iter().zip(row.prices).map(|(n, price)| *n as f64 * price).sum();
        // To the millionth, so that it can be read.
        Some((sum / 1e6 * 1e6).round() / 1e6)
    }
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let model = words.next()?.to_owned();
    let prices: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let are_prices = prices.iter().all(|price| price.is_finite() && *price >= 0.0);
    Some(Row { model, prices: prices.try_into().ok()? }).filter(|_| are_prices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_counts_are_read_under_every_name() {
        let anthropic = r#"{"input_tokens":10,"cache_read_input_tokens":150,"cache_creation_input_tokens":20,"output_tokens":5}"#;
        let all = Counts { input: 10, cache_read: 150, cache_write: 20, output: 5 };
        assert_eq!(Counts::read(anthropic), Some(all));
        assert_eq!(all.prompt(), 180);
        let openai = r#"{"prompt_tokens":34,"completion_tokens":32,"prompt_tokens_details":{"cached_tokens":24}}"#;
        let all = Counts { input: 10, cache_read: 24, cache_write: 0, output: 32 };
        assert_eq!(Counts::read(openai), Some(all));
        let ollama = r#"{"prompt_eval_count":7,"eval_count":3}"#;
        assert_eq!(
            Counts::read(ollama).map(|counts| (counts.prompt(), counts.output)),
            Some((7, 3))
        );
        assert_eq!(Counts::read("{}"), None);
    }

    #[test]
    fn r3_what_has_no_price_is_not_free() {
        let table = Table::read("# prices\nclaude-x  3 0.3 3.75 15\nlocal* 0 0 0 0\n").unwrap();
        let counts =
            Counts { input: 1_000_000, cache_read: 1_000_000, cache_write: 0, output: 1000 };
        assert_eq!(table.cost("claude-x", &counts), Some(3.315));
        assert_eq!(table.cost("local-7b", &counts), Some(0.0));
        assert_eq!(table.cost("claude-y", &counts), None);
        for bad in
            ["claude-x 3 0.3 3.75", "claude-x 3 x 3 4", "m 1 2 3 -4", "m 1 2 3 4 5", "m 1 2 3 inf"]
        {
            assert!(Table::read(bad).is_err(), "{bad}");
        }
    }
}
