//! search: find messages by their words.

use crate::database;
use clawutils::cli::{Output, variable};
use clawutils::exit::{Error, Exit, fail};
use clawutils::index::snippet::Snippet;
use clawutils::index::words;
use clawutils::json::write::Members;
use clawutils::printable::{printable, printable_json};
use clawutils::session::time;
use rusqlite::{Connection, OptionalExtension, ToSql};
use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

/// The maximum number of messages that a search without `--role` and `--since` ranks. If more match, it ranks those
/// with the lowest row numbers: the words are then so frequent that a rank means little.
const RANKED: i64 = 5000;

/// Search messages, tool inputs and tool results
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Words that results contain: "a phrase", a beginning*, -excluded
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,
    /// Search only this session: its path, id, key or label
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Search only messages with this role
    #[arg(long, value_name = "ROLE", value_parser = ["user", "assistant", "tool_use", "tool_result"])]
    pub role: Option<String>,
    /// Search only messages since this day or time, in UTC: 2026-11-23, 2026-11-23T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<f64>,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value = "20")]
    pub limit: u32,
    /// Write one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// Reads a day or a time.
///
/// # Errors
/// Fails if it is none.
pub fn since(text: &str) -> Result<f64, String> {
    let day = || time::of_text(&format!("{text}T00:00:00Z"));
    let micros = time::of_text(text).or_else(day);
    micros
        .map(|micros| micros as f64 / 1e6)
        .ok_or_else(|| "write 2026-11-23 or 2026-11-23T08:00:00Z".to_owned())
}

/// Returns a time to the second, in RFC 3339.
pub fn to_second(seconds: f64) -> Option<String> {
    let text = time::to_text(time::of_seconds(seconds));
    // The rest is a fraction and the zone, which is always UTC.
    text.get(..19).map(|text| [text, "Z"].concat())
}

/// A message that was found.
struct Hit {
    session: String,
    turn: i64,
    role: String,
    id: String,
    timestamp: Option<f64>,
    text: String,
}

const SELECT: &str = "\
    SELECT session_key, turn, role, messages.id, timestamp, content, thinking, tool_name, tool_input, tool_result \
    FROM (SELECT rowid AS found, bm25(messages_fts) AS score FROM messages_fts \
      WHERE messages_fts MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4) \
    JOIN messages ON messages.row = found \
    WHERE (?5 IS NULL OR role = ?5) AND (?6 IS NULL OR timestamp >= ?6) \
    ORDER BY score, found LIMIT ?7";

impl Search {
    /// Searches the index at `path`. The status is 1 if nothing is found.
    ///
    /// # Errors
    /// Fails with 2 if there is no word to search for, and with 1 if no session or several have the given name.
    pub fn run(self, path: &Path) -> anyhow::Result<Exit> {
        let mut out = Output::open();
        let count = self.write(&database::open_for_queries(path)?, &mut out)?;
        out.finish()?;
        Ok(if count == 0 { Exit::Failed } else { Exit::Done })
    }

    /// Writes the messages that are found, and returns their number.
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn write(&self, database: &Connection, out: &mut dyn Write) -> anyhow::Result<usize> {
        let words = self.words.join(" ");
        let query = words::Query::parse(&words).map_err(|why| {
            Error::new(Exit::Usage, format!("cannot search for '{words}': {why}"))
        })?;
        let hits = self.hits(database, &query)?;
        let is_bright = stdout().is_terminal() && variable("NO_COLOR").is_none();
        for hit in &hits {
            let snippet = Snippet::of(&hit.text, &query);
            match self.json {
                true => writeln!(out, "{}", printable_json(&hit.members(&snippet).into_json()))?,
                false => hit.write(&snippet, is_bright, out)?,
            }
        }
        Ok(hits.len())
    }

    fn hits(&self, database: &Connection, query: &words::Query) -> anyhow::Result<Vec<Hit>> {
        let [first, last] = match &self.session {
            Some(name) => crate::session::rows_of(session(database, name)?),
            None => [0, i64::MAX],
        };
        // A filter is applied after the ranking and may leave few messages, so with a filter, all matches are ranked.
        let is_filtered = self.role.is_some() || self.since.is_some();
        let ranked = if is_filtered { i64::MAX } else { RANKED };
        let fts = query.to_fts();
        let values: [&dyn ToSql; 7] =
            [&fts, &first, &last, &ranked, &self.role, &self.since, &self.limit];
        let mut select = database.prepare(SELECT)?;
        let hits = select.query_map(values, |row| {
            let column = |index: usize| row.get::<_, Option<String>>(index);
            let parts = [column(5)?, column(6)?, column(7)?, column(8)?, column(9)?];
            let parts = parts.into_iter().flatten().filter(|text| !text.is_empty());
            Ok(Hit {
                session: row.get(0)?,
                turn: row.get(1)?,
                role: row.get(2)?,
                id: row.get(3)?,
                timestamp: row.get(4)?,
                text: parts.collect::<Vec<_>>().join("\n"),
            })
        })?;
        Ok(hits.collect::<rusqlite::Result<_>>()?)
    }
}

/// Returns the number of the session with this path, id, key or label.
///
/// # Errors
/// Fails with 1 if no session or several have this name.
pub fn session(database: &Connection, name: &str) -> anyhow::Result<i64> {
    let path = Path::new(name).canonicalize().unwrap_or_else(|_| name.into());
    let by_path = database
        .query_row("SELECT number FROM sessions WHERE key = ?", [path.to_string_lossy()], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(number) = by_path {
        return Ok(number);
    }
    let mut select = database
        .prepare("SELECT number FROM sessions WHERE ?1 IN (id, header_key, label) ORDER BY key")?;
    let numbers = select.query_map([name], |row| row.get(0))?;
    match numbers.collect::<rusqlite::Result<Vec<_>>>()?[..] {
        [number] => Ok(number),
        [] => {
            fail(Exit::Failed, format!("no session '{name}' in the index; run claw-index update"))
        }
        _ => fail(Exit::Failed, format!("several sessions have the name '{name}'; give a path")),
    }
}

impl Hit {
    fn members(&self, snippet: &Snippet) -> Members {
        Members::new()
            .string("session", &self.session)
            .number("turn", self.turn)
            .string("role", &self.role)
            .string("id", &self.id)
            .optional(Members::decimal, "timestamp", self.timestamp)
            .string("snippet", &snippet.text)
    }

    fn write(&self, snippet: &Snippet, is_bright: bool, out: &mut dyn Write) -> anyhow::Result<()> {
        let Hit { session, turn, role, .. } = self;
        let time = self.timestamp.and_then(to_second).unwrap_or_else(|| "-".to_owned());
        let line = format!("{session} turn {turn}, {role}, {time}");
        writeln!(out, "{}", printable(&line))?;
        let mut text = String::from("    ");
        let mut at = 0;
        for range in &snippet.matches {
            text.push_str(&printable(&snippet.text[at..range.start]));
            let word = printable(&snippet.text[range.clone()]);
            match is_bright {
                true => ["\x1b[1m", &word, "\x1b[0m"].iter().for_each(|part| text.push_str(part)),
                false => text.push_str(&word),
            }
            at = range.end;
        }
        text.push_str(&printable(&snippet.text[at..]));
        writeln!(out, "{text}")?;
        Ok(())
    }
}
