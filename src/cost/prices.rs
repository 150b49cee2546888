//! The prices of models: those of a file of the user's, else those in the tables of models.

use crate::estimate::Model;
use crate::exit::{Exit, fail};
use crate::usage::Counts;
use crate::usage::prices::Prices;

/// The prices of all models. A model in neither source has no known price, which is different from a price of zero.
#[derive(Clone, Debug, Default)]
pub struct PriceList {
    own: Option<PriceTable>,
    /// The text of the user's table of models.
    models: Option<String>,
}

impl PriceList {
    /// Returns the prices in `own`, else in `models`, the text of a user's table of models, else in the table of models that
    /// is compiled in.
    ///
    /// # Errors
    /// If a line of `models` is malformed; the message has its number.
    pub fn new(own: Option<PriceTable>, models: Option<String>) -> Result<PriceList, String> {
        Model::find("", models.as_deref())?;
        Ok(PriceList { own, models })
    }

    /// Returns the prices of a model; `None` if they are unknown.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<Prices> {
        let own = self.own.as_ref().and_then(|table| table.find(model));
        let in_tables = || Model::find(model, self.models.as_deref()).ok()?.prices;
        own.or_else(in_tables)
    }

    /// Returns the prices of a model for a limit on the cost.
    ///
    /// # Errors
    /// Fails with 78 if they are unknown.
    pub fn require(&self, model: &str) -> anyhow::Result<Prices> {
        self.of(model).map_or_else(
            || {
                let help = "give one in a file with --prices";
                fail(
                    Exit::Config,
                    format!("cannot check --max-cost: no price for '{model}'; {help}"),
                )
            },
            Ok,
        )
    }

    /// Returns the cost of a call; `None` if the model has no known price.
    #[must_use]
    pub fn cost(&self, model: &str, counts: &Counts) -> Option<f64> {
        self.of(model)?.cost(counts)
    }

    /// Returns an amount as text. The tables of models have prices in US dollars; a file of the user's may have others.
    #[must_use]
    pub fn amount(&self, cost: f64) -> String {
        let sign = if self.own.is_some() { "" } else { "$" };
        match cost < 1.0 {
            true => format!("{sign}{cost:.4}"),
            false => format!("{sign}{cost:.2}"),
        }
    }
}

/// Prices of models, from a file of the user's.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    rows: Vec<PriceRow>,
}

#[derive(Clone, Debug)]
struct PriceRow {
    /// The model's name, or a prefix that ends in a star.
    model: String,
    prices: Prices,
}

impl PriceTable {
    /// Reads a table. Each line has a model's name (or a prefix and `*`) and four prices per million tokens:
    /// for input, tokens read from a cache, tokens written to a cache, and output, all in the same currency.
    /// Blank lines and lines that begin with `#` are skipped. The first matching row applies.
    ///
    /// # Errors
    /// If a line is invalid; the message has its number.
    pub fn read(text: &str) -> Result<PriceTable, String> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let row = |(number, line)| {
            row(line)
                .ok_or_else(|| format!("line {number} is not a model and four prices: '{line}'"))
        };
        Ok(PriceTable { rows: lines.map(row).collect::<Result<_, _>>()? })
    }

    /// Returns the prices of a model; `None` if the table does not have it.
    fn find(&self, model: &str) -> Option<Prices> {
        let fits = |row: &&PriceRow| match row.model.strip_suffix('*') {
            Some(begin) => model.starts_with(begin),
            None => model == row.model,
        };
        self.rows.iter().find(fits).map(|row| row.prices)
    }
}

fn row(line: &str) -> Option<PriceRow> {
    let mut words = line.split_whitespace();
    let model = words.next()?.to_owned();
    let prices: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let are_prices = prices.iter().all(|price| price.is_finite() && *price >= 0.0);
    let [input, cache_read, cache_write, output] = prices.try_into().ok()?;
    let prices = Prices {
        input: Some(input),
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
        output: Some(output),
        above: None,
    };
    are_prices.then_some(PriceRow { model, prices })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_a_model_without_a_price_is_not_free() {
        let table =
            PriceTable::read("# prices\nclaude-x  3 0.3 3.75 15\nlocal* 0 0 0 0\n").unwrap();
        let list = PriceList::new(Some(table), None).unwrap();
        let counts =
            Counts { input: 1_000_000, cache_read: 1_000_000, output: 1000, ..Counts::default() };
        assert_eq!(list.cost("claude-x", &counts), Some(3.315));
        assert_eq!(list.cost("local-7b", &counts), Some(0.0));
        assert_eq!(list.cost("claude-y", &counts), None);
        for bad in
            ["claude-x 3 0.3 3.75", "claude-x 3 x 3 4", "m 1 2 3 -4", "m 1 2 3 4 5", "m 1 2 3 inf"]
        {
            let problem = PriceTable::read(&format!("# prices\n{bad}")).unwrap_err();
            assert_eq!(problem, format!("line 2 is not a model and four prices: '{bad}'"));
        }
    }

    #[test]
    fn audit_40_a_file_of_prices_wins_over_the_tables_of_models() {
        let input = |list: &PriceList, model| list.of(model).and_then(|prices| prices.input);
        let built_in = PriceList::default();
        assert_eq!(input(&built_in, "anthropic/claude-opus-4.5"), Some(5.0));
        assert_eq!(input(&built_in, "my-model"), None);
        let own = PriceTable::read("claude-opus-4-5 4 0.4 5 20").unwrap();
        let models = "my-model - - input=2 output=3".to_owned();
        let list = PriceList::new(Some(own), Some(models)).unwrap();
        assert_eq!(input(&list, "claude-opus-4-5"), Some(4.0));
        assert_eq!(input(&list, "my-model"), Some(2.0));
        assert_eq!(input(&list, "claude-haiku-4-5"), Some(1.0));
        assert!(PriceList::new(None, Some("x y".into())).is_err());
    }

    #[test]
    fn an_amount_has_the_sign_of_its_currency_only_if_that_is_known() {
        let own = PriceList { own: Some(PriceTable::default()), models: None };
        for (cost, dollars, plain) in [
            (0.01234, "$0.0123", "0.0123"),
            (0.0, "$0.0000", "0.0000"),
            (1.0, "$1.00", "1.00"),
            (12.345, "$12.35", "12.35"),
        ] {
            assert_eq!(
                (PriceList::default().amount(cost), own.amount(cost)),
                (dollars.into(), plain.into())
            );
        }
    }
}
