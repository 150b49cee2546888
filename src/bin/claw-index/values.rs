//! Reads values of another program's database. SQLite lets a column hold a value of any type, so text may be stored as a BLOB or
//! a number; what cannot be read as text or a number is an error that names the column.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Type, ValueRef};
use rusqlite::{Error, Row, RowIndex};
use std::str::from_utf8;

/// A text, or another value as its text.
struct Text(String);

impl FromSql for Text {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Text> {
        match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => from_utf8(bytes)
                .map(|text| Text(text.to_owned()))
                .map_err(|_| FromSqlError::InvalidType),
            ValueRef::Integer(number) => Ok(Text(number.to_string())),
            ValueRef::Real(number) => Ok(Text(number.to_string())),
            ValueRef::Null => Err(FromSqlError::InvalidType),
        }
    }
}

/// Returns the text in a column.
///
/// # Errors
/// Fails if it holds none.
pub fn text(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<String> {
    row.get(column).map(|Text(text)| text)
}

/// Returns the text in a column, or `None` if it is null.
///
/// # Errors
/// Fails if it holds something else.
pub fn text_or_null(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<String>> {
    row.get(column).map(|text: Option<Text>| text.map(|Text(text)| text))
}

/// Returns the value of a column that not every version of the other program has.
///
/// # Errors
/// Fails as `value` does, unless there is no such column.
pub fn if_there<T>(value: rusqlite::Result<Option<T>>) -> rusqlite::Result<Option<T>> {
    match value {
        Err(Error::InvalidColumnName(_)) => Ok(None),
        value => value,
    }
}

/// Returns an error for a column that holds an unusable value.
#[must_use]
pub fn unusable(index: usize, column: &str, value: ValueRef<'_>) -> Error {
    Error::InvalidColumnType(index, column.to_owned(), value.data_type())
}

/// Returns what is wrong with the value that an error is about, or `None` if it is about something else.
#[must_use]
pub fn problem(error: &anyhow::Error) -> Option<String> {
    let (column, kind) = match error.downcast_ref::<Error>()? {
        Error::InvalidColumnType(_, name, kind) => (format!("column '{name}'"), *kind),
        Error::FromSqlConversionFailure(index, kind, _) => (format!("column {}", index + 1), *kind),
        Error::IntegralValueOutOfRange(index, _) => {
            (format!("column {}", index + 1), Type::Integer)
        }
        _ => return None,
    };
    let what = match kind {
        Type::Null => "nothing (NULL)",
        Type::Integer | Type::Real => "a number that it cannot have",
        Type::Text => "text that is not UTF-8, or is no number",
        Type::Blob => "bytes (a BLOB) that are no text",
    };
    Some(format!("{column} holds {what}"))
}
