//! Rows of a table of models. `models.txt` describes the format.

use super::images::ImageRule;
use super::{Family, names};
use crate::usage::prices::{LongPrices, Prices};

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The beginning of the names that it matches, as a bare name.
    pub prefix: String,
    /// True if the name ended with `*`, so that the row also matches other versions.
    pub is_open: bool,
    pub columns: Columns,
}

/// The columns of a row, except for the name. A column that is missing is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Columns {
    pub window: Option<u64>,
    pub max_output: Option<u64>,
    pub family: Option<Family>,
    pub images: Option<ImageRule>,
    pub needs_responses: Option<bool>,
    pub factor: Option<u64>,
    pub prices: Option<Prices>,
}

impl Columns {
    /// Takes the missing columns from another row.
    pub fn or(self, other: Columns) -> Columns {
        Columns {
            window: self.window.or(other.window),
            max_output: self.max_output.or(other.max_output),
            family: self.family.or(other.family),
            images: self.images.or(other.images),
            needs_responses: self.needs_responses.or(other.needs_responses),
            factor: self.factor.or(other.factor),
            prices: self.prices.or(other.prices),
        }
    }
}

impl Row {
    /// Reads a table.
    ///
    /// # Errors
    /// Fails if a line is malformed, with the number of the line and the reason.
    pub fn read_all(table: &str) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        for (index, line) in table.lines().enumerate() {
            rows.extend(Row::read(line).map_err(|why| format!("line {}: {why}", index + 1))?);
        }
        Ok(rows)
    }

    /// Reads a line. Returns `None` if it has only a comment or is blank.
    fn read(line: &str) -> Result<Option<Row>, String> {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(name) = words.next() else { return Ok(None) };
        let prefix = name.strip_suffix('*').unwrap_or(name);
        let window = words.next().ok_or_else(|| format!("'{name}' has no window"))?;
        let window = tokens("window", window)?;
        let mut columns = Columns { window, ..Columns::default() };
        let mut prices = Prices::default();
        for (index, word) in words.enumerate() {
            match word.split_once('=') {
                None if index == 0 => columns.max_output = tokens("max output", word)?,
                None => return Err(format!("'{word}' is one column too many")),
                Some((column, value)) => columns.set(column, value, &mut prices)?,
            }
        }
        let is_larger = |most: u64| columns.window.is_some_and(|window| most > window);
        if columns.max_output.is_some_and(is_larger) {
            return Err(format!("the max output of '{name}' is larger than its window"));
        }
        columns.prices = prices.known().map_err(|why| format!("'{name}' has {why}"))?;
        let is_open = name.ends_with('*');
        Ok(Some(Row { prefix: names::bare(prefix), is_open, columns }))
    }
}

impl Columns {
    /// Sets the column with this name; a price goes into `prices`.
    fn set(&mut self, column: &str, value: &str, prices: &mut Prices) -> Result<(), String> {
        let wrong = || format!("'{column}={value}' is not valid");
        let price = || {
            let price: f64 = value.parse().ok()?;
            (price.is_finite() && price >= 0.0).then_some(Some(price))
        };
        match column {
            "family" => self.family = Some(Family::parse(value).ok_or_else(wrong)?),
            "images" => self.images = Some(ImageRule::parse(value).ok_or_else(wrong)?),
            "api" if matches!(value, "chat" | "responses") => {
                self.needs_responses = Some(value == "responses");
            }
            "api" => return Err(wrong()),
            "factor" => self.factor = Some(factor(value).ok_or_else(wrong)?),
            "input" => prices.input = price().ok_or_else(wrong)?,
            "output" => prices.output = price().ok_or_else(wrong)?,
            "cache-read" => prices.cache_read = price().ok_or_else(wrong)?,
            "above" => prices.above = Some(LongPrices::parse(value).ok_or_else(wrong)?),
            "cache-write" => prices.cache_write = price().ok_or_else(wrong)?,
            _ => return Err(format!("there is no column '{column}'")),
        }
        Ok(())
    }
}

/// The smallest and the largest factor, in thousandths.
pub(super) const FACTORS: (u64, u64) = (500, 2000);

/// Parses a factor into thousandths.
fn factor(text: &str) -> Option<u64> {
    let factor = text.parse::<f64>().ok().filter(|factor| (0.0..=10.0).contains(factor))?;
    let factor = (factor * 1000.0).round() as u64;
    (FACTORS.0..=FACTORS.1).contains(&factor).then_some(factor)
}

fn tokens(column: &str, text: &str) -> Result<Option<u64>, String> {
    match text.parse() {
        _ if text == "-" => Ok(None),
        Ok(0) => Err(format!("the {column} is 0")),
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(format!("the {column} '{text}' is not a number of tokens")),
    }
}
