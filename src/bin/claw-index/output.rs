//! Writes the results of queries as text.

use clap::ValueEnum;
use clawutils::json;
use clawutils::json::write::Members;
use clawutils::printable::{printable, printable_json};
use rusqlite::Rows;
use rusqlite::types::ValueRef;
use std::borrow::Cow;
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// The number of characters after which a value in a table is cut off.
const WIDTH: usize = 60;

/// The format of the result of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns, for reading; long values are cut off
    Table,
    /// Comma-separated values with a header, as in RFC 4180
    Csv,
    /// One JSON object per line
    Json,
}

/// Writes all rows.
///
/// # Errors
/// If a row cannot be read or written.
pub fn write(rows: &mut Rows<'_>, format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
    let names: Vec<String> = rows
        .as_ref()
        .map(|select| select.column_names().map(str::to_owned).collect())
        .unwrap_or_default();
    match format {
        Format::Table => table(rows, names, out),
        Format::Csv => csv(rows, &names, out),
        Format::Json => json(rows, &distinct(names), out),
    }
}

/// Adds a number to names that occur again, because the members of a JSON object need different names.
fn distinct(mut names: Vec<String>) -> Vec<String> {
    for index in 1..names.len() {
        let (own, mut number) = (names[index].clone(), 1);
        while names[..index].contains(&names[index]) {
            number += 1;
            names[index] = format!("{own}_{number}");
        }
    }
    names
}

fn csv(rows: &mut Rows<'_>, names: &[String], out: &mut dyn Write) -> anyhow::Result<()> {
    let quoted = |text: &str| match text.contains(['"', ',', '\n', '\r']) {
        true => ["\"", &text.replace('"', "\"\""), "\""].concat(),
        false => text.to_owned(),
    };
    let line = |fields: Vec<String>| fields.join(",") + "\r\n";
    out.write_all(line(names.iter().map(|name| quoted(name)).collect()).as_bytes())?;
    while let Some(row) = rows.next()? {
        let fields = (0..names.len()).map(|index| Ok(quoted(&text(row.get_ref(index)?))));
        out.write_all(line(fields.collect::<rusqlite::Result<_>>()?).as_bytes())?;
    }
    Ok(())
}

fn json(rows: &mut Rows<'_>, names: &[String], out: &mut dyn Write) -> anyhow::Result<()> {
    while let Some(row) = rows.next()? {
        let mut members = Members::new();
        for (index, name) in names.iter().enumerate() {
            let value = match row.get_ref(index)? {
                ValueRef::Null => "null".to_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Real(number) if number.is_finite() => number.to_string(),
                value => json::quote(&text(value)),
            };
            members = members.named(name, &value);
        }
        writeln!(out, "{}", printable_json(&members.into_json()))?;
    }
    Ok(())
}

/// Writes a table. Reads all rows first, because the width of a column is that of its longest value.
fn table(rows: &mut Rows<'_>, names: Vec<String>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut is_number = vec![true; names.len()];
    let mut lines = vec![names];
    while let Some(row) = rows.next()? {
        let mut line = Vec::with_capacity(is_number.len());
        for (index, is_number) in is_number.iter_mut().enumerate() {
            let value = row.get_ref(index)?;
            *is_number &=
                matches!(value, ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Null);
            line.push(cut(&text(value)));
        }
        lines.push(line);
    }
    let columns = 0..is_number.len();
    let width = |column: usize| lines.iter().map(|line| line[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.map(width).collect();
    for line in &lines {
        let mut text = String::new();
        for ((value, width), is_number) in line.iter().zip(&widths).zip(&is_number) {
            let space = " ".repeat(width - value.width());
            let parts = if *is_number { [space.as_str(), value] } else { [value.as_str(), &space] };
            parts.iter().for_each(|part| text.push_str(part));
            text.push_str("  ");
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// Returns a value for a table: safe for a terminal, on one line, and not too long.
fn cut(text: &str) -> String {
    let short: String = text.chars().take(WIDTH).collect();
    let is_cut = short.len() < text.len();
    let mut shown = printable(&short.replace(['\n', '\t'], " ")).into_owned();
    if is_cut {
        shown.push('…');
    }
    shown
}

/// Returns a value as text. NULL is empty, a blob is hexadecimal.
fn text(value: ValueRef<'_>) -> Cow<'_, str> {
    match value {
        ValueRef::Null => Cow::Borrowed(""),
        ValueRef::Integer(number) => Cow::Owned(number.to_string()),
        ValueRef::Real(number) => Cow::Owned(number.to_string()),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes),
        ValueRef::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
