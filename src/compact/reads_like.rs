//! Classifies sentences by the words and phrases of a [`PhraseTable`], without a model.
//!
//! In a phrase, `…` matches any text, a leading `^` the beginning of the sentence, and a trailing `$` its end.

/// Phrases that are typical of a kind of sentence, in lower case.
#[derive(Clone, Copy, Debug)]
pub struct PhraseTable {
    /// Phrases of languages that separate words by spaces. They match whole words.
    pub words: &'static [&'static str],
    /// Phrases of languages without spaces. They match anywhere.
    pub parts: &'static [&'static str],
    /// Phrases that contain one of the phrases above but mean something else. They are removed before `words` and
    /// `parts` are matched.
    pub not: &'static [&'static str],
}

impl PhraseTable {
    /// Returns the number of phrases that match the sentence.
    #[must_use]
    pub fn count(&self, sentence: &str) -> usize {
        let text = plain(sentence);
        let text = self.not.iter().fold(text, |text, phrase| text.replace(phrase, "~"));
        let words = self.words.iter().filter(|phrase| has(&text, phrase, true));
        words.count() + self.parts.iter().filter(|phrase| has(&text, phrase, false)).count()
    }

    /// Returns true if a phrase matches the sentence.
    #[must_use]
    pub fn is_like(&self, sentence: &str) -> bool {
        self.count(sentence) > 0
    }
}

/// Returns true if the sentence ends in a question mark.
#[must_use]
pub fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(['"', '\'', '”', '」', ')', '）']).ends_with(['?', '？'])
}

/// Returns the sentence in lower case, without a bullet or `please` before it and without punctuation after it.
fn plain(sentence: &str) -> String {
    let text = sentence.to_lowercase().replace('’', "'");
    let text = text.trim_start_matches(['-', '*', '•', '·', ' ']);
    let text = text.strip_prefix("please ").unwrap_or(text);
    text.trim_end_matches(['。', '.', '！', '!', ';', '；', ' ']).to_owned()
}

fn has(text: &str, phrase: &str, is_bounded: bool) -> bool {
    let (phrase, at_start) = phrase.strip_prefix('^').map_or((phrase, false), |rest| (rest, true));
    let (phrase, at_end) = phrase.strip_suffix('$').map_or((phrase, false), |rest| (rest, true));
    let mut from = 0;
    for (number, part) in phrase.split('…').enumerate() {
        let is_here = |at: &usize| {
            let is_place = !(at_start && number == 0) || *at == 0;
            is_place && (!is_bounded || is_by_itself(text, *at, part.len()))
        };
        let places = text[from..].match_indices(part).map(|(at, _)| from + at);
        match places.into_iter().find(is_here) {
            Some(at) => from = at + part.len(),
            None => return false,
        }
    }
    !at_end || text.ends_with(phrase.rsplit('…').next().unwrap_or_default())
}

/// Returns true if the `length` bytes of `text` from `at` on neither begin nor end within a word.
fn is_by_itself(text: &str, at: usize, length: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next();
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

/// Returns the sentences of `text`. A line feed also ends a sentence, so each list item is a sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let pieces = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (sentence, left) = rest.split_at(end_of_sentence(rest));
        rest = left;
        Some(sentence.trim())
    });
    pieces.filter(|sentence| !sentence.is_empty())
}

/// Returns the byte index at which the first sentence ends.
fn end_of_sentence(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let is_end = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
            // Not the full stop in `v1.2` or `file.txt`.
            '.' | '!' | '?' | ';' => chars.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if is_end {
            return end;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_may_have_anchors_and_gaps() {
        let words = &["^keep…under", "never"];
        let table = PhraseTable { words, parts: &["先…再", "こと$"], not: &["never mind"] };
        for like in ["Keep it under ten.", "- please keep it under 3", "先问我再删", "消すこと。"]
        {
            assert!(table.is_like(like), "{like}");
        }
        for other in
            ["I keep it under ten.", "under, keep", "再说先", "ことだ", "Never mind.", "Neverland"]
        {
            assert!(!table.is_like(other), "{other}");
        }
    }

    #[test]
    fn a_text_is_split_into_sentences() {
        let text = "Look at v1.2 in a.rs. Never push!\n- one\n- two; three\n決して消さない。次は？";
        let found: Vec<&str> = sentences(text).collect();
        let expected = [
            "Look at v1.2 in a.rs.",
            "Never push!",
            "- one",
            "- two;",
            "three",
            "決して消さない。",
            "次は？",
        ];
        assert_eq!(found, expected);
    }
}
