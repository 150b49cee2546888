//! Cuts the part around the words of a query out of the text of a message.

use super::words::Query;
use std::ops::Range;

/// The maximum number of characters before the first word.
const BEFORE: usize = 40;
/// The maximum number of characters of the text that a snippet shows.
const LENGTH: usize = 160;

/// Part of the text of a message, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text, with an ellipsis where something was left out.
    pub text: String,
    /// The places of the words in it, in order.
    pub matches: Vec<Range<usize>>,
}

impl Snippet {
    /// Returns the part of `text` around the first word of the query in it, or its beginning if it has none of them.
    #[must_use]
    pub fn of(text: &str, query: &Query) -> Snippet {
        let first =
            query.wanted().filter_map(|term| term.find(text)).map(|range| range.start).min();
        let first = first.unwrap_or(0);
        let start = text[..first].char_indices().rev().take(BEFORE).last().map_or(first, |it| it.0);
        let mut part = String::from(if start > 0 { "…" } else { "" });
        let mut is_blank = true;
        let mut chars = text[start..].chars();
        for c in chars.by_ref().take(LENGTH) {
            if !(c.is_whitespace() && is_blank) {
                part.push(if c.is_whitespace() { ' ' } else { c });
            }
            is_blank = c.is_whitespace();
        }
        part.truncate(part.trim_end().len());
        if !chars.as_str().trim().is_empty() {
            part.push('…');
        }
        let matches = matches(&part, query);
        Snippet { text: part, matches }
    }
}

/// Returns the places of all words of a query in a short text. Places do not overlap.
fn matches(text: &str, query: &Query) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        let places = query.wanted().filter_map(|term| term.find(&text[at..]));
        let Some(next) = places.min_by_key(|range| range.start) else { return found };
        found.push(at + next.start..at + next.end);
        at += next.end.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_begins_before_the_first_word_and_is_one_line() {
        let query = Query::parse("needle").unwrap();
        let text = format!("{}\n\n  the Needle\tand a needle {}", "x ".repeat(50), "y".repeat(300));
        let snippet = Snippet::of(&text, &query);
        assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'), "{snippet:?}");
        assert!(snippet.text.contains("x the Needle and a needle y"), "{snippet:?}");
        let words: Vec<&str> = snippet.matches.iter().map(|at| &snippet.text[at.clone()]).collect();
        assert_eq!(words, ["Needle", "needle"]);
        let other = Snippet::of("no such word", &query);
        assert_eq!((other.text.as_str(), other.matches.len()), ("no such word", 0));
    }
}
