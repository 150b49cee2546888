//! Rows that a user adds to the table of texts: gateways have words of their own.

use super::texts::{Numbers, parse};
use super::{FailureClass, opening};
use regex::{Captures, Regex, RegexBuilder};

/// Rows of a user's, in the order of the file: the first that matches decides.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<FailureRow>,
}

/// One of them.
#[derive(Debug)]
struct FailureRow {
    class: FailureClass,
    text: Regex,
    /// File and line.
    name: String,
}

impl Rows {
    /// Reads rows from the text of file `name`. A line has the word of a [`FailureClass`], white space, and a
    /// regular expression, which is tried without regard to upper and lower case; its groups `actual`,
    /// `limit`, `output` and `cap` are numbers of tokens. Blank lines and lines that begin with `#` are
    /// passed over.
    ///
    /// # Errors
    /// Says which line is none, and why.
    pub fn read(name: &str, text: &str) -> Result<Rows, String> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let row = |(number, line)| {
            row(line, format!("{name}:{number}")).map_err(|why| format!("line {number}: {why}"))
        };
        Ok(Rows { rows: lines.map(row).collect::<Result<_, _>>()? })
    }

    /// The first row that `text` matches: its class, its name, its numbers, and whether it matches where the
    /// provider begins to speak. Anywhere else it may have matched a quotation.
    pub(super) fn find(&self, text: &str) -> Option<(FailureClass, &str, Numbers, bool)> {
        self.rows.iter().find_map(|row| {
            let found = row.text.captures(text)?;
            let matched = found.get(0).and_then(|all| text.get(all.start()..))?;
            let is_at_opening = opening::all(text).contains(&matched);
            Some((row.class, row.name.as_str(), numbers(&found), is_at_opening))
        })
    }
}

fn row(line: &str, name: String) -> Result<FailureRow, String> {
    let (class, pattern) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let known = FailureClass::ALL.into_iter().find(|known| known.name() == class);
    let class = known.ok_or_else(|| {
        let all: Vec<_> = FailureClass::ALL.iter().map(|class| class.name()).collect();
        format!("no class is called '{class}'; they are {}", all.join(", "))
    })?;
    if pattern.trim().is_empty() {
        return Err("there is no text after the class".to_owned());
    }
    let built = RegexBuilder::new(pattern.trim()).case_insensitive(true).build();
    let text = built.map_err(|error| {
        // The last line says what is wrong; those before it draw where.
        let why = error.to_string();
        format!("not a regular expression: {}", why.lines().last().unwrap_or_default())
    })?;
    Ok(FailureRow { class, text, name })
}

fn numbers(found: &Captures<'_>) -> Numbers {
    let number = |name: &str| found.name(name).and_then(|digits| parse(digits.as_str()));
    Numbers {
        input: number("actual"),
        limit: number("limit"),
        requested: number("output"),
        cap: number("cap"),
        ..Numbers::default()
    }
}
