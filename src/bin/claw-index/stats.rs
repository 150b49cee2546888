//! stats: print tokens, tools, sessions and errors, with bars.

use crate::database;
use clawutils::cli::Output;
use clawutils::exit::Exit;
use clawutils::printable::printable;
use clawutils::usage::Counts;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::io::Write;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// The width of the longest bar, in columns.
const BAR: usize = 30;
/// The maximum number of characters in a label.
const LABEL: usize = 40;

/// Print tokens, tools, sessions and errors, with bars
#[derive(Debug, clap::Args)]
pub struct Stats {
    /// Maximum number of lines of each list
    #[arg(long, value_name = "N", default_value = "10")]
    pub limit: u32,
}

/// The lists: a title, and a query for labels and numbers.
const LISTS: [(&str, &str); 9] = [
    (
        "Tokens per day",
        "SELECT * FROM (SELECT day, sum(total) FROM tokens_by_day GROUP BY day ORDER BY day DESC LIMIT ?) \
        ORDER BY 1",
    ),
    ("Tokens per model", "SELECT model, total FROM tokens_by_model LIMIT ?"),
    (
        "Cost per day",
        "SELECT * FROM (SELECT day, sum(cost) FROM tokens_by_day GROUP BY day HAVING sum(cost) > 0 \
        ORDER BY day DESC LIMIT ?) ORDER BY 1",
    ),
    (
        "Cost per model",
        "SELECT model, cost FROM tokens_by_model WHERE cost > 0 ORDER BY cost DESC LIMIT ?",
    ),
    ("Longest sessions, in messages", "SELECT session_key, messages FROM longest_sessions LIMIT ?"),
    ("Most compacted sessions", "SELECT session_key, compactions FROM compacted_sessions LIMIT ?"),
    ("Tools, in calls", "SELECT name, calls FROM tools LIMIT ?"),
    (
        "Tools, in failed calls",
        "SELECT name, failed FROM tools WHERE failed > 0 ORDER BY failed DESC LIMIT ?",
    ),
    (
        "Errors by class",
        "SELECT class, sum(errors) FROM errors_by_class GROUP BY class ORDER BY 2 DESC LIMIT ?",
    ),
];

impl Stats {
    /// Prints the lists that are not empty.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn run(self, path: &Path) -> anyhow::Result<Exit> {
        let mut out = Output::open();
        self.write(&database::open_for_queries(path)?, &mut out)?;
        out.finish()?;
        Ok(Exit::Done)
    }

    /// Writes the lists that are not empty.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn write(&self, database: &Connection, out: &mut dyn Write) -> anyhow::Result<()> {
        let totals = "SELECT 'sessions: ' || count(*) || ', turns: ' || coalesce(sum(turn_count), 0) \
            || ', messages: ' || coalesce(sum(message_count), 0) FROM sessions";
        let totals: String = database.query_row(totals, [], |row| row.get(0))?;
        writeln!(out, "{totals}")?;
        write_bill(database, out)?;
        LISTS.iter().try_for_each(|(title, query)| list(database, title, query, self.limit, out))
    }
}

/// Writes the tokens of all calls, their cost, and the number of those whose price is unknown.
fn write_bill(database: &Connection, out: &mut dyn Write) -> anyhow::Result<()> {
    let sums = "SELECT count(*), count(cost), coalesce(sum(input), 0), coalesce(sum(cache_read), 0), \
        coalesce(sum(cache_write), 0), coalesce(sum(output), 0), coalesce(sum(cost), 0), \
        coalesce(sum(cost_without_cache), 0) FROM calls";
    let (calls, priced, counts, [cost, uncached]) = database.query_row(sums, [], |row| {
        let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let counts = Counts {
            input: number(2)?,
            cache_read: number(3)?,
            cache_write: number(4)?,
            output: number(5)?,
            ..Counts::default()
        };
        Ok((number(0)?, number(1)?, counts, [row.get::<_, f64>(6)?, row.get(7)?]))
    })?;
    if calls == 0 {
        return Ok(());
    }
    let mut line = format!("calls: {calls}, {counts}");
    if priced > 0 {
        line.push_str(&format!("; cost {cost:.2}, without a cache {uncached:.2}"));
    }
    if priced < calls {
        line.push_str(&format!("; no price is known for {} of them", calls - priced));
    }
    writeln!(out, "{line}")?;
    Ok(())
}

fn list(
    database: &Connection,
    title: &str,
    query: &str,
    limit: u32,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut select = database.prepare(query)?;
    let rows = select.query_map([limit], |row| {
        let label: Option<String> = row.get(0)?;
        Ok((shown(&label.unwrap_or_else(|| "unknown".to_owned())), row.get::<_, Value>(1)?))
    })?;
    let rows: Vec<(String, Value)> = rows.collect::<rusqlite::Result<_>>()?;
    if rows.is_empty() {
        return Ok(());
    }
    let amounts: Vec<(f64, String)> = rows.iter().map(|(_, value)| amount(value)).collect();
    let most = amounts.iter().map(|(amount, _)| *amount).fold(0.0, f64::max);
    let width = rows.iter().map(|row| row.0.width()).max().unwrap_or(0);
    let digits = amounts.iter().map(|(_, text)| text.len()).max().unwrap_or(0);
    writeln!(out, "\n{title}")?;
    for ((label, _), (amount, text)) in rows.iter().zip(&amounts) {
        let length = if most > 0.0 { (amount / most * BAR as f64).round() as usize } else { 0 };
        let (space, bar) = (" ".repeat(width - label.width()), "█".repeat(length));
        writeln!(out, "{}", format!("  {label}{space}  {text:>digits$}  {bar}").trim_end())?;
    }
    Ok(())
}

/// Returns a number as it is and as text: a count, or an amount of money.
fn amount(value: &Value) -> (f64, String) {
    match value {
        Value::Integer(count) => ((*count).max(0) as f64, count.to_string()),
        Value::Real(money) => (*money, format!("{money:.4}")),
        _ => (0.0, String::new()),
    }
}

/// Returns a label that is safe for a terminal. A long one is cut at the beginning, because paths differ at the end.
fn shown(label: &str) -> String {
    let count = label.chars().count();
    match count > LABEL {
        true => {
            let end: String = label.chars().skip(count + 1 - LABEL).collect();
            printable(&format!("…{end}")).into_owned()
        }
        false => printable(label).into_owned(),
    }
}
