//! What a sentence reads like, told by words and phrases in a [`PhraseTable`]; nobody is asked.
//!
//! In a phrase `…` stands for any words. `^` at its beginning is that of the sentence, `$` at its end that of
//! the sentence.

/// Phrases that tell what a sentence is, all in small letters.
#[derive(Clone, Copy, Debug)]
pub struct PhraseTable {
    /// Of languages that part words by spaces: they have to stand by themselves.
    pub words: &'static [&'static str],
    /// Of languages that do not.
    pub parts: &'static [&'static str],
    /// What holds one of these and says something else.
    pub not: &'static [&'static str],
}

impl PhraseTable {
    /// How many of its phrases the sentence has.
    #[must_use]
    pub fn count(&self, sentence: &str) -> usize {
        let text = plain(sentence);
        let text = self.not.iter().fold(text, |text, phrase| text.replace(phrase, "~"));
        let words = self.words.iter().filter(|phrase| has(&text, phrase, true));
        words.count() + self.parts.iter().filter(|phrase| has(&text, phrase, false)).count()
    }

    /// Whether the sentence has one of its phrases.
    #[must_use]
    pub fn is_like(&self, sentence: &str) -> bool {
        self.count(sentence) > 0
    }
}

/// Whether the sentence ends as a question does.
#[must_use]
pub fn is_question(sentence: &str) -> bool {
    sentence.trim_end_matches(['"', '\'', '”', '」', ')', '）']).ends_with(['?', '？'])
}

/// In small letters, without the mark of an item before it and the stop after it.
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

/// Whether the word at `at` is not in the middle of another one.
fn is_by_itself(text: &str, at: usize, length: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next();
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

/// The sentences of a text. A line feed ends one, too, so that a list has a sentence an item.
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

/// Where the first sentence ends (a byte index).
fn end_of_sentence(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let is_end = match c {
            '\n' | '。' | '！' | '？' | '；' => true,
            // Not the one in `v1.2` or `file.txt`.
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
    fn phrases_have_places_and_gaps() {
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
    fn a_text_is_its_sentences() {
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
