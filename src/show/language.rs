//! Detects the language of text, as an HTML language code, if it is certain.
//!
//! Browsers use the code to choose between Chinese, Japanese and Korean forms of characters, to hyphenate, and to
//! read text aloud. Some languages are recognised by their script, others by their most common words. A library
//! for seventy languages is not an option: its tables would take an eighth of the program's size limit.

use super::wording::Language;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// The number of characters that are examined.
const EXAMINED: usize = 4096;
/// The minimum number of words that must be on the language's list.
const MIN_HITS: usize = 3;
/// The maximum number of words for each word that is on the language's list.
const MAX_WORDS_PER_HIT: usize = 16;

/// Common words of each language. Some are in several lists, so `by_words` accepts only a clear winner.
const WORDS: [(&str, &str); 14] = [
    ("cs", "je se není že jsem jako ale který jsou při také nebo"),
    ("da", "og er ikke jeg af til det på som også hvad denne"),
    ("de", "und der das ist nicht ein eine ich mit auf zu den dem sie wird bitte"),
    ("en", "the and is of to that it this you with not are have for please"),
    ("es", "el los las que y es una por con para está pero del más"),
    ("fr", "le les des et est une que dans pour pas vous ce avec sur qui"),
    ("it", "il che di è per non gli della sono una con questo anche"),
    ("nl", "het een van dat niet ik zijn voor met ook wordt deze naar"),
    ("pl", "nie się jest że na do to jak ale czy przez oraz jego"),
    ("pt", "o os não uma que e em você com para mais isso está do"),
    ("ru", "и в не на что это как я он по но вы для"),
    ("sv", "och är inte jag att det som på av för också vad denna"),
    ("tr", "ve bir bu için ile değil olarak ne çok daha var gibi"),
    ("uk", "і в не на що це як та він або ви для є"),
];

/// The indices in [`WORDS`] of the languages that have a word. To search the lists instead would take half of the time of a page.
static BY_WORD: LazyLock<HashMap<&str, Vec<usize>, RandomState>> = LazyLock::new(|| {
    let mut by_word: HashMap<&str, Vec<usize>, RandomState> = HashMap::default();
    for (language, (_, words)) in WORDS.iter().enumerate() {
        words.split(' ').for_each(|word| by_word.entry(word).or_default().push(language));
    }
    by_word
});

/// Returns the language of `text`; `None` if it is uncertain.
pub fn of(text: &str) -> Option<&'static str> {
    let end = text.char_indices().nth(EXAMINED).map_or(text.len(), |(at, _)| at);
    let text = &text[..end];
    by_script(text).or_else(|| by_words(text))
}

/// Detects a language by its script. The script must make up more than half of the letters; for CJK, more than a
/// quarter.
fn by_script(text: &str) -> Option<&'static str> {
    let (mut kana, mut han, mut hangul, mut greek, mut hebrew, mut thai) = (0, 0, 0, 0, 0, 0);
    let mut letters = 0;
    for c in text.chars() {
        match c {
            '\u{3041}'..='\u{30ff}' => kana += 1,
            '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => han += 1,
            '\u{ac00}'..='\u{d7a3}' | '\u{1100}'..='\u{11ff}' => hangul += 1,
            '\u{370}'..='\u{3ff}' => greek += 1,
            '\u{590}'..='\u{5ff}' => hebrew += 1,
            '\u{e00}'..='\u{e7f}' => thai += 1,
            _ => {}
        }
        letters += usize::from(c.is_alphabetic());
    }
    // A CJK character carries as much text as about three letters.
    let cjk = kana + han + hangul;
    if cjk * 4 > letters {
        let is_korean = hangul > kana;
        return Some(if is_korean {
            "ko"
        } else if kana > 0 {
            "ja"
        } else {
            "zh"
        });
    }
    let others = [(greek, "el"), (hebrew, "he"), (thai, "th")];
    others.into_iter().find(|(count, _)| count * 2 > letters).map(|(_, language)| language)
}

fn by_words(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let (mut hits, mut count) = ([0; WORDS.len()], 0);
    for word in words {
        count += 1;
        for language in BY_WORD.get(word).into_iter().flatten() {
            hits[*language] += 1;
        }
    }
    let (best, most) = (0..).zip(hits).max_by_key(|(_, hits)| *hits)?;
    let is_only = (0..).zip(hits).all(|(index, hits)| index == best || hits * 3 < most * 2);
    let is_certain = is_only && most >= MIN_HITS && most * MAX_WORDS_PER_HIT >= count;
    WORDS.get(best).filter(|_| is_certain).map(|(language, _)| *language)
}

/// The amount of text in each language of a conversation.
#[derive(Debug, Default)]
pub struct Languages(BTreeMap<&'static str, usize>);

impl Languages {
    /// Adds the text of a message.
    pub fn take(&mut self, text: &str) {
        if let Some(language) = of(text) {
            *self.0.entry(language).or_default() += text.len();
        }
    }

    /// Returns the language of a page whose own words are in `own`. They are few: in English, the page is in the language of
    /// the conversation.
    pub fn of_page(&self, own: Language) -> &'static str {
        if own == Language::En { self.main() } else { own.code() }
    }

    /// Returns the language with the most text; English if no language is certain.
    fn main(&self) -> &'static str {
        self.0.iter().max_by_key(|(_, length)| **length).map_or("en", |(language, _)| *language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_30_the_language_of_a_text_is_detected_if_certain() {
        for (text, language) in [
            ("これは「永久」です", Some("ja")),
            ("`src/main.rs` を修正しました", Some("ja")),
            ("请修改这个文件", Some("zh")),
            ("이 파일을 고쳐 주세요", Some("ko")),
            ("Διάβασε το αρχείο `a.txt`", Some("el")),
            ("Please read the file and tell me what is wrong with it.", Some("en")),
            ("Bitte lies die Datei und sage mir, was daran nicht gut ist.", Some("de")),
            ("Lis le fichier et dis-moi ce qui ne va pas dans les tests.", Some("fr")),
            ("Lee el archivo y dime lo que está mal con los tests.", Some("es")),
            ("Leggi il file e dimmi che cosa non va, per favore.", Some("it")),
            ("Leia o arquivo e diga o que está errado com os testes, não mais.", Some("pt")),
            ("Lees het bestand en zeg wat er niet goed is met een van deze tests.", Some("nl")),
            ("Прочитай файл и скажи, что в нём не так и как это исправить.", Some("ru")),
            ("Прочитай файл і скажи, що в ньому не так і як це виправити.", Some("uk")),
            ("ls -la | grep the", None),
            ("ls", None),
            ("", None),
        ] {
            assert_eq!(of(text), language, "{text}");
        }
    }
}
