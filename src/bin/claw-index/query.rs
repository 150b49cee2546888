//! query and schema: run SQL, and show the tables.

use crate::database;
use crate::output;
pub use crate::output::Format;
use clawutils::cli::{Output, read_stdin, text};
use clawutils::exit::{Error, Exit, fail};
use rusqlite::{Connection, ErrorCode};
use std::io::Write;
use std::path::Path;

/// Run an SQL query that reads the index
#[derive(Debug, clap::Args)]
pub struct Query {
    /// Query; `-` reads it from standard input
    #[arg(value_name = "SQL")]
    sql: String,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// Print the tables and views of the index as SQL
#[derive(Debug, clap::Args)]
pub struct Schema {}

impl Query {
    /// Runs the query.
    ///
    /// # Errors
    /// Fails with 2 if the query is invalid or would do more than read.
    pub fn run(self, path: &Path) -> anyhow::Result<Exit> {
        let sql = match self.sql.as_str() {
            "-" => text("<stdin>", &read_stdin()?)?.to_owned(),
            _ => self.sql,
        };
        let mut out = Output::open();
        write(&sql, self.format, &database::open_for_queries(path)?, &mut out)?;
        out.finish()?;
        Ok(Exit::Done)
    }
}

/// Writes the result of a query.
///
/// # Errors
/// Fails with 2 if the query is invalid or would do more than read.
pub fn write(
    sql: &str,
    format: Format,
    database: &Connection,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut select = database.prepare(sql).map_err(invalid)?;
    if select.column_count() == 0 || !select.readonly() {
        return fail(
            Exit::Usage,
            "cannot run the query: it does more than read; begin it with SELECT",
        );
    }
    let mut rows = select.query([]).map_err(invalid)?;
    let written = output::write(&mut rows, format, out);
    written.map_err(|error| match error.downcast::<rusqlite::Error>() {
        Ok(error) if is_invalid(&error) => invalid(error),
        Ok(error) => error.into(),
        Err(error) => error,
    })
}

/// Returns the error for an invalid query.
fn invalid(error: rusqlite::Error) -> anyhow::Error {
    let why = format!("cannot run the query: {error}; claw-index schema prints the tables");
    Error::new(Exit::Usage, why).into()
}

/// Returns true if an error that occurred during a query is about the query, not about the database.
fn is_invalid(error: &rusqlite::Error) -> bool {
    use ErrorCode::{AuthorizationForStatementDenied, TooBig, TypeMismatch, Unknown};
    let code = error.sqlite_error_code();
    matches!(code, None | Some(AuthorizationForStatementDenied | TooBig | TypeMismatch | Unknown))
}

impl Schema {
    /// Prints the schema.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn run(self, path: &Path) -> anyhow::Result<Exit> {
        let database = database::open_for_queries(path)?;
        let mut select = database.prepare(
            "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL \
            AND name NOT GLOB 'messages_fts_*' ORDER BY rowid",
        )?;
        let rows = select.query_map([], |row| row.get::<_, String>(0))?;
        Output::lines(rows.collect::<rusqlite::Result<Vec<_>>>()?)
    }
}
