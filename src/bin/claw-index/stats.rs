//! stats: print tokens, tools, sessions and errors, with bars.

use crate::database;
use clawutils::cli::Output;
use clawutils::exit::Exit;
use clawutils::printable::printable;
use rusqlite::Connection;
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
    limit: u32,
}

/// The lists: a title, and a query for labels and numbers.
const LISTS: [(&str, &str); 7] = [
    (
        "Tokens per day",
        "SELECT * FROM (SELECT day, sum(total) FROM tokens_by_day GROUP BY day ORDER BY day DESC LIMIT ?) \
        ORDER BY 1",
    ),
    ("Tokens per model", "SELECT model, total FROM tokens_by_model LIMIT ?"),
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
        let database = database::open_for_queries(path)?;
        let mut out = Output::open();
        let totals = "SELECT 'sessions: ' || count(*) || ', turns: ' || coalesce(sum(turn_count), 0) \
            || ', messages: ' || coalesce(sum(message_count), 0) FROM sessions";
        let totals: String = database.query_row(totals, [], |row| row.get(0))?;
        writeln!(out, "{totals}")?;
        for (title, query) in LISTS {
            list(&database, title, query, self.limit, &mut out)?;
        }
        out.finish()?;
        Ok(Exit::Done)
    }
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
        Ok((shown(&label.unwrap_or_else(|| "unknown".to_owned())), row.get::<_, i64>(1)?))
    })?;
    let rows: Vec<(String, i64)> = rows.collect::<rusqlite::Result<_>>()?;
    if rows.is_empty() {
        return Ok(());
    }
    let most = rows.iter().map(|row| row.1).max().unwrap_or(0).max(1);
    let width = rows.iter().map(|row| row.0.width()).max().unwrap_or(0);
    let digits = rows.iter().map(|row| row.1.to_string().len()).max().unwrap_or(0);
    writeln!(out, "\n{title}")?;
    for (label, number) in rows {
        let length = (number.max(0) as f64 / most as f64 * BAR as f64).round() as usize;
        let (space, bar) = (" ".repeat(width - label.width()), "█".repeat(length));
        writeln!(out, "{}", format!("  {label}{space}  {number:>digits$}  {bar}").trim_end())?;
    }
    Ok(())
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
