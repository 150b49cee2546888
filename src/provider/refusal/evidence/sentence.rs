//! Words and phrases of the vocabulary, found in a text of any language.

/// Returns `text` in lower case, without accents, and with typographic apostrophes and full-width digits as ASCII. The
/// words of a name such as `contextWindowExceeded` are joined by underscores instead.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut last = ' ';
    for c in text.chars() {
        if last.is_lowercase() && c.is_ascii_uppercase() {
            folded.push('_');
        }
        last = c;
        fold_char(c, &mut folded);
    }
    folded
}

fn fold_char(c: char, folded: &mut String) {
    for c in c.to_lowercase() {
        match c {
            'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => folded.push('a'),
            'ç' => folded.push('c'),
            'è' | 'é' | 'ê' | 'ë' => folded.push('e'),
            'ì' | 'í' | 'î' | 'ï' => folded.push('i'),
            'ñ' => folded.push('n'),
            'ò' | 'ó' | 'ô' | 'õ' | 'ö' => folded.push('o'),
            'ù' | 'ú' | 'û' | 'ü' => folded.push('u'),
            'ß' => folded.push_str("ss"),
            'œ' => folded.push_str("oe"),
            'ё' => folded.push('е'),
            '０'..='９' | '（' | '）' | '：' | '＞' | '＜' | '，' => {
                folded.extend(char::from_u32(c as u32 - 0xFEE0));
            }
            '’' | '‘' => folded.push('\''),
            '\u{a0}' | '\u{202f}' | '\u{2009}' => folded.push(' '),
            // Combining accents, from text that is not composed.
            '\u{300}'..='\u{36f}' => {}
            c => folded.push(c),
        }
    }
}

/// The words of a sentence.
pub(super) struct Words<'t> {
    text: &'t str,
    words: Vec<&'t str>,
}

impl<'t> Words<'t> {
    /// Splits `text`, which must be folded, at everything that is neither a letter nor a digit, and at the characters of
    /// scripts without spaces.
    pub(super) fn of(text: &'t str) -> Words<'t> {
        let is_between = |c: char| !c.is_alphanumeric() || is_unspaced(c);
        let words = text.split(is_between).filter(|word| !word.is_empty());
        Words { text, words: words.collect() }
    }

    /// Returns the first entry of `list` that the sentence has.
    pub(super) fn find(&self, list: &[&'static str]) -> Option<&'static str> {
        list.iter().copied().find(|entry| self.last(entry, self.text.len()).is_some())
    }

    /// Returns true if the sentence has one of the entries.
    pub(super) fn any(&self, list: &[&'static str]) -> bool {
        self.find(list).is_some()
    }

    /// Returns the position after the last entry of `list` that ends at or before the byte `end`.
    pub(super) fn last_before(&self, list: &[&'static str], end: usize) -> Option<usize> {
        list.iter().filter_map(|entry| self.last(entry, end)).map(|(_, to)| to).max()
    }

    /// Returns the position of the last entry of `list` in the sentence.
    pub(super) fn last_of(&self, list: &[&'static str]) -> Option<usize> {
        list.iter()
            .filter_map(|entry| self.last(entry, self.text.len()))
            .map(|(from, _)| from)
            .max()
    }

    /// Returns the length of the sentence in bytes.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the last place of `entry` that ends at or before the byte `end`.
    fn last(&self, entry: &str, end: usize) -> Option<(usize, usize)> {
        if entry.contains('_') || entry.chars().any(is_unspaced) {
            let from = self.text.get(..end)?.rfind(entry)?;
            return Some((from, from + entry.len()));
        }
        let parts: Vec<&str> = entry.split(' ').collect();
        let matches = |words: &&[&str]| {
            words.iter().zip(&parts).all(|(word, part)| match part.strip_suffix('*') {
                Some(stem) => word.starts_with(stem),
                None => word == part,
            })
        };
        let place = |words: &[&str]| {
            let (first, last) = (words.first()?, words.last()?);
            Some((self.offset(first), self.offset(last) + last.len()))
        };
        let mut found = self.words.windows(parts.len()).filter(matches).filter_map(place);
        found.rfind(|(_, to)| *to <= end)
    }

    fn offset(&self, word: &str) -> usize {
        word.as_ptr() as usize - self.text.as_ptr() as usize
    }
}

/// Returns true for the characters of scripts that write no spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

#[cfg(test)]
mod tests {
    use super::super::words::*;
    use super::*;

    #[test]
    fn words_are_found_whole_or_by_their_stem() {
        let folded = fold("Le contexte dépasse la Größe; n_ctx 入力が長すぎます");
        let words = Words::of(&folded);
        assert_eq!(words.find(&["contex", "depass*", "x"]), Some("depass*"));
        assert!(words.any(&["grosse"]) && words.any(&["n ctx"]) && words.any(&["長すぎ"]));
        assert!(!words.any(&["context", "ctx n", "text*"]));
    }

    #[test]
    fn every_entry_is_written_as_the_text_is_folded() {
        let lists = [
            PROMPT, REQUEST, SIZE, TOO_LONG, TOO_MUCH, SHORTEN, LIMIT, RATE, PARAMETER, CONTEXT,
            OTHER, TOO_LITTLE, BODY, SUSPECT, SOURCE, OUTPUT, UNRELATED, TOKENS, WHOLE, SPACE,
        ];
        for entry in lists.into_iter().flatten() {
            assert_eq!(fold(entry), *entry);
            let plain = entry.replace(['*', ' ', '_'], "");
            assert!(plain.chars().all(char::is_alphanumeric), "{entry}");
        }
    }
}
