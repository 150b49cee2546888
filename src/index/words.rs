//! Prepares text and queries for the full-text search.
//!
//! SQLite's tokenizer splits at white space and punctuation, so it finds words only in languages that put spaces
//! between them. Chinese, Japanese, Thai and some other languages do not, and in Korean, particles follow a word
//! without a space. A run of characters of these languages is therefore indexed as all pairs of neighbouring
//! characters, and its last character: 日本語 becomes `日本 本語 語`. A phrase of pairs finds any part of a run that has two
//! characters or more, and a prefix finds a single character.
//!
//! The trigram tokenizer of SQLite finds nothing shorter than three characters, which is longer than most Chinese and
//! Japanese words, and it also splits English words. With it, a table of 61 MB of messages takes 217 MB and 12 seconds
//! of processor time; the whole index of claw-index takes 113 MB and 8 seconds for the same messages.

use std::borrow::Cow;

/// Returns true for a character of a language whose words cannot be found by splitting at spaces.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1100}'..='\u{11ff}' // Hangul letters
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{2e80}'..='\u{2fdf}' // radicals
        | '\u{3005}'..='\u{3007}'
        | '\u{3031}'..='\u{3035}'
        | '\u{303b}'
        | '\u{3041}'..='\u{3096}' // Hiragana
        | '\u{309d}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}' // Katakana
        | '\u{30fc}'..='\u{30ff}'
        | '\u{3105}'..='\u{318f}' // Bopomofo, Hangul letters
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' // Chinese characters
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}' // Hangul syllables
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}' // half-width Katakana and Hangul
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{323af}')
}

/// Returns the text to index: the same text, but with each run of unspaced characters as pairs and its last character.
#[must_use]
pub fn indexed(text: &str) -> Cow<'_, str> {
    // All these characters begin with a byte of 0xE0 or more.
    if !text.bytes().any(|byte| byte >= 0xe0) || !text.chars().any(is_unspaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(start) = rest.find(is_unspaced) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len());
        push_pairs(&mut out, &rest[..end], true);
        rest = &rest[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Adds the pairs of a run, each between spaces. Also adds its last character if `has_last` or if it is the only one.
fn push_pairs(out: &mut String, run: &str, has_last: bool) {
    out.push(' ');
    let mut chars = run.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if let Some((next, after)) = chars.peek() {
            out.push_str(&run[start..next + after.len_utf8()]);
            out.push(' ');
        } else if has_last || start == 0 {
            out.push(c);
            out.push(' ');
        }
    }
}

/// A word or phrase of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Its text, in lower case.
    pub text: String,
    /// True if it may be the beginning of a longer word.
    pub is_prefix: bool,
    /// True if results must not contain it.
    is_excluded: bool,
}

/// A query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    terms: Vec<Term>,
}

impl Query {
    /// Parses a query: words, phrases in double quotes, `word*` for all words that begin with `word`, and `-word` to
    /// exclude messages that contain it.
    ///
    /// # Errors
    /// Returns the reason if there is nothing to search for.
    pub fn parse(text: &str) -> Result<Query, &'static str> {
        let (mut terms, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() {
            let is_excluded = rest.starts_with('-');
            rest = rest.strip_prefix('-').unwrap_or(rest);
            let (word, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
                None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
            };
            let (is_prefix, after) = match (word.ends_with('*'), after.strip_prefix('*')) {
                (false, Some(after)) if rest.starts_with('"') => (true, after),
                (ends, _) => (ends, after),
            };
            if word.contains(char::is_alphanumeric) {
                let text = word.trim_end_matches('*').to_lowercase();
                terms.push(Term { text, is_prefix, is_excluded });
            }
            rest = after.trim_start();
        }
        match terms.iter().any(|term| !term.is_excluded) {
            true => Ok(Query { terms }),
            false if terms.is_empty() => Err("no word to search for"),
            false => Err("all words are excluded; add at least one that results must contain"),
        }
    }

    /// Returns the terms that results must contain.
    pub fn wanted(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().filter(|term| !term.is_excluded)
    }

    /// Returns the query in the language of SQLite's FTS5.
    #[must_use]
    pub fn to_fts(&self) -> String {
        let join = |is_excluded: bool, by: &str| {
            let terms = self.terms.iter().filter(|term| term.is_excluded == is_excluded);
            terms.map(Term::to_fts).collect::<Vec<_>>().join(by)
        };
        let (wanted, excluded) = (join(false, " AND "), join(true, " OR "));
        match excluded.is_empty() {
            true => wanted,
            false => format!("({wanted}) NOT ({excluded})"),
        }
    }
}

impl Term {
    /// Returns the term as a phrase of FTS5.
    fn to_fts(&self) -> String {
        let (mut phrase, mut rest, mut is_prefix) = (String::new(), &*self.text, self.is_prefix);
        while let Some(start) = rest.find(is_unspaced) {
            phrase.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len());
            // In the indexed text, the term's last run may continue. The term's last character is then only in a pair.
            let is_last = end == rest.len();
            push_pairs(&mut phrase, &rest[..end], !is_last);
            is_prefix |= is_last && rest.chars().count() == 1;
            rest = &rest[end..];
        }
        phrase.push_str(rest);
        let quoted = phrase.trim().replace('"', " ");
        let star = if is_prefix { "*" } else { "" };
        ["\"", &quoted, "\"", star].concat()
    }

    /// Returns the first place of the term in `text`.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<std::ops::Range<usize>> {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_unspaced(c));
        let first = self.text.chars().next();
        let mut before = None;
        for (start, c) in text.char_indices() {
            let is_start = !(is_word(before) && is_word(first));
            before = Some(c);
            let Some(length) =
                Some(c).filter(|_| is_start).and_then(|_| self.length_at(&text[start..]))
            else {
                continue;
            };
            let after = text[start + length..].chars().next();
            if self.is_prefix || !(is_word(after) && is_word(self.text.chars().next_back())) {
                return Some(start..start + length);
            }
        }
        None
    }

    /// Returns the length of the term at the beginning of `text`, if it is there.
    fn length_at(&self, text: &str) -> Option<usize> {
        let mut wanted = self.text.chars().peekable();
        for (at, c) in text.char_indices() {
            if wanted.peek().is_none() {
                return Some(at);
            }
            if !c.to_lowercase().all(|lower| wanted.next() == Some(lower)) {
                return None;
            }
        }
        wanted.peek().is_none().then_some(text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_spaces_are_indexed_as_pairs() {
        for (text, expected) in [
            ("plain text, naïve", "plain text, naïve"),
            ("日本語", " 日本 本語 語 "),
            ("GPT模型です", "GPT 模型 型で です す "),
            ("字", " 字 "),
            ("メール。テスト", " メー ール ル 。 テス スト ト "),
        ] {
            assert_eq!(indexed(text), expected);
        }
    }

    #[test]
    fn queries_become_phrases_of_fts5() {
        for (query, expected) in [
            ("window overflow", r#""window" AND "overflow""#),
            ("Over* -\"rate limit\"", r#"("over"*) NOT ("rate limit")"#),
            ("\"context win\"*", r#""context win"*"#),
            ("日本語", r#""日本 本語""#),
            ("語", r#""語"*"#),
            ("GPT模", r#""gpt 模"*"#),
            ("模型gpt", r#""模型 型 gpt""#),
            ("a\"b -> c", r#""a b" AND "c""#),
        ] {
            assert_eq!(Query::parse(query).unwrap().to_fts(), expected, "{query}");
        }
        for nothing in ["", " -> ", "-a", "\"\""] {
            assert!(Query::parse(nothing).is_err(), "{nothing}");
        }
    }

    #[test]
    fn a_term_is_found_as_a_word_or_as_a_part_of_a_run() {
        let place = |term: &str, text: &str| {
            Query::parse(term).unwrap().terms[0].find(text).map(|range| text[range].to_owned())
        };
        assert_eq!(place("over", "overflow Over").as_deref(), Some("Over"));
        assert_eq!(place("over*", "an Overflow").as_deref(), Some("Over"));
        assert_eq!(place("本語", "日本語です").as_deref(), Some("本語"));
        assert_eq!(place("straße", "Die STRAßE").as_deref(), Some("STRAßE"));
        assert_eq!(place("flow", "overflow"), None);
    }
}
