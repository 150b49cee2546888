//! The user's additions to the table of error messages, for gateways whose errors are worded differently.

use super::text::{Numbers, is_shortened, parse};
use super::{FailureClass, opening};
use regex::{Captures, Regex, RegexBuilder};

/// The user's rows, in the order of the file. The first match decides.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<FailureRow>,
}

/// One row.
#[derive(Debug)]
struct FailureRow {
    class: FailureClass,
    text: Regex,
    /// The file and line, used as the name of the rule.
    name: String,
}

impl Rows {
    /// Reads rows from the text of the file `name`. A line has the name of a [`FailureClass`], white space, and a
    /// case-insensitive regular expression, whose named groups `actual`, `limit`, `output` and `cap`, all
    /// optional, match token counts. Blank lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// Returns the number of the first invalid line, and the reason.
    pub fn read(name: &str, text: &str) -> Result<Rows, String> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let row = |(number, line)| {
            row(line, format!("{name}:{number}")).map_err(|why| format!("line {number}: {why}"))
        };
        Ok(Rows { rows: lines.map(row).collect::<Result<_, _>>()? })
    }

    /// Returns the first row that matches `text`: its class, its name, its numbers, and true if the match is where
    /// the provider's own words begin. Anywhere else it may be a quotation.
    pub(super) fn find(&self, text: &str) -> Option<(FailureClass, &str, Numbers, bool)> {
        self.rows.iter().find_map(|row| {
            let found = row.text.captures(text)?;
            let matched = found.get(0).and_then(|all| text.get(all.start()..))?;
            let is_at_opening = opening::all(text).contains(&matched);
            let numbers =
                if is_shortened(&found, text) { Numbers::default() } else { numbers(&found) };
            Some((row.class, row.name.as_str(), numbers, is_at_opening))
        })
    }
}

fn row(line: &str, name: String) -> Result<FailureRow, String> {
    let (class, pattern) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let known = FailureClass::ALL.into_iter().find(|known| known.name() == class);
    let class = known.ok_or_else(|| {
        let all: Vec<_> = FailureClass::ALL.iter().map(|class| class.name()).collect();
        format!("unknown class '{class}'; use one of {}", all.join(", "))
    })?;
    if pattern.trim().is_empty() {
        return Err("no pattern after the class".to_owned());
    }
    let built = RegexBuilder::new(pattern.trim()).case_insensitive(true).build();
    let text = built.map_err(|error| {
        // The last line states the error; the lines before it draw its position.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::refusal::Failure;

    #[test]
    fn a_row_matches_the_title_of_a_page_and_plain_text() {
        let rows = Rows::read("rows", "overflow Proxy limit (?<limit>[0-9]+)").unwrap();
        let page = "<html><head><title>Proxy limit 8000</title></head></html>";
        for body in [page, "Proxy limit 8000", r#"{"error":{"message":"Proxy limit 8000"}}"#] {
            for status in [400, 413, 502] {
                let failure = Failure::classify(status, &|_| None, body.as_bytes(), 0.0, &rows);
                let found = (failure.class, &*failure.rule, failure.limit);
                assert_eq!(
                    found,
                    (FailureClass::Overflow, "rows:1", Some(8000)),
                    "{status} {body}"
                );
            }
        }
    }
}
