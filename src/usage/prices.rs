//! The prices of a model, and the cost of a call.

use super::Counts;

/// The price of writing to a cache for an hour, in prices of input (platform.claude.com/docs/en/build-with-claude/prompt-caching,
/// November 2026; the same in litellm's table of prices, 1.110.2).
const HOUR_WRITE: f64 = 2.0;

/// Returns the price of input that is written to a cache for an hour, from that of input and that of the usual lifetime. Where
/// the latter costs no more than input, neither does the former.
#[must_use]
pub fn hour_write(input: f64, write: f64) -> f64 {
    if write > input { write.max(input * HOUR_WRITE) } else { write }
}

/// The prices of a model, per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// The price of input.
    pub input: Option<f64>,
    /// The price of input that is read from a cache; by default that of input.
    pub cache_read: Option<f64>,
    /// The price of input that is written to a cache; by default that of input.
    pub cache_write: Option<f64>,
    /// The price of output.
    pub output: Option<f64>,
    /// The prices of a call with a long prompt, if they are others.
    pub above: Option<LongPrices>,
}

/// The prices of a call whose prompt is longer than a limit, per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongPrices {
    /// The limit, in tokens, cached ones included.
    pub limit: u64,
    /// The prices of input, input read from a cache, input written to one, and output.
    pub prices: [f64; 4],
}

impl LongPrices {
    /// Parses `LIMIT:INPUT:CACHE-READ:CACHE-WRITE:OUTPUT`.
    #[must_use]
    pub fn parse(text: &str) -> Option<LongPrices> {
        let (limit, prices) = text.split_once(':')?;
        let prices: Vec<f64> =
            prices.split(':').map(|price| price.parse().ok()).collect::<Option<_>>()?;
        let are_prices = prices.iter().all(|price| price.is_finite() && *price >= 0.0);
        let limit = limit.parse().ok().filter(|limit| *limit > 0 && are_prices)?;
        Some(LongPrices { limit, prices: prices.try_into().ok()? })
    }
}

impl Prices {
    /// Returns the cost of a call, rounded to a millionth; `None` if the price of input or of output is unknown.
    #[must_use]
    pub fn cost(&self, counts: &Counts) -> Option<f64> {
        let prices = self.rates(counts.prompt())?;
        let [input, _, write, _] = prices;
        let brief = counts.cache_write.saturating_sub(counts.cache_write_1h);
        let tokens = [counts.input, counts.cache_read, brief, counts.output];
        let sum: f64 = tokens.iter().zip(prices).map(|(n, price)| *n as f64 * price).sum();
        let hour = counts.cache_write_1h as f64 * hour_write(input, write);
        Some((sum + hour).round() / 1e6)
    }

    /// Returns the prices of input, input read from a cache, input written to one, and output; `None` if that of input or of
    /// output is unknown. Those of the cache are by default that of input.
    #[must_use]
    pub fn all(&self) -> Option<[f64; 4]> {
        let (input, output) = (self.input?, self.output?);
        Some([input, self.cache_read.unwrap_or(input), self.cache_write.unwrap_or(input), output])
    }

    /// Returns the same for a prompt of this many tokens, cached ones included.
    #[must_use]
    pub fn rates(&self, prompt: u64) -> Option<[f64; 4]> {
        let long = self.above.filter(|above| prompt > above.limit);
        Some(long.map_or(self.all()?, |above| above.prices))
    }

    /// Returns the prices, or `None` if none is given.
    ///
    /// # Errors
    /// If some prices are given, but not both that of input and that of output.
    pub fn known(self) -> Result<Option<Prices>, &'static str> {
        match (self.input, self.output) {
            (Some(_), Some(_)) => Ok(Some(self)),
            _ if self == Prices::default() => Ok(None),
            _ => Err("prices, but not for both input and output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_prompt_has_prices_of_its_own() {
        let above = LongPrices::parse("1000:6:0.6:7.5:22.5");
        let prices = Prices { input: Some(3.0), output: Some(15.0), above, ..Prices::default() };
        let of = |input, cache_read| Counts { input, cache_read, output: 100, ..Counts::default() };
        assert_eq!(prices.cost(&of(500, 500)), Some(0.0045));
        assert_eq!(prices.cost(&of(500, 600)), Some(0.00561));
        assert_eq!(Prices { input: Some(3.0), ..Prices::default() }.cost(&of(1, 1)), None);
        for bad in ["1000", "0:1:2:3:4", "1000:1:2:3", "1000:1:2:3:-4", "x:1:2:3:4", "1:1:2:3:4:5"]
        {
            assert_eq!(LongPrices::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn audit_40_writing_to_the_cache_for_an_hour_costs_twice_the_price_of_input() {
        let usage = r#"{"input_tokens":10,"cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":800},"output_tokens":0}"#;
        let counts = Counts::read(usage).unwrap();
        assert_eq!((counts.cache_write, counts.cache_write_1h), (1000, 800));
        let prices = Prices {
            input: Some(3.0),
            cache_write: Some(3.75),
            output: Some(15.0),
            ..Prices::default()
        };
        assert_eq!(prices.cost(&counts), Some((30.0 + 200.0 * 3.75 + 800.0 * 6.0) / 1e6));
        let free = Prices { cache_write: Some(0.0), ..prices };
        assert_eq!(free.cost(&counts), Some(30.0 / 1e6));
    }
}
