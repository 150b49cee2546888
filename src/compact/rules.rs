//! Which sentences read like a rule: what the user wants to hold from now on.
//!
//! Told by words, in the languages of the table; nobody is asked. A sentence that is taken for a rule and is
//! none costs some room, a rule that is not seen is kept as long as any other words of the user's.

/// Words and phrases of languages that part words by spaces, in small letters.
const WORDS: &[&str] = &[
    // English
    "never",
    "always",
    "must",
    "mustn't",
    "do not",
    "don't",
    "dont",
    "cannot",
    "can't",
    "should not",
    "shouldn't",
    "may not",
    "not allowed",
    "forbidden",
    "only",
    "at all times",
    "from now on",
    "make sure",
    "ensure",
    "avoid",
    "require",
    "required",
    "rule",
    "rules",
    "under no circumstances",
    "no matter what",
    "unless",
    "without asking",
    "please use",
    "instead of",
    "remember",
    // German
    "nie",
    "niemals",
    "immer",
    "muss",
    "müssen",
    "darf",
    "dürfen",
    "nur",
    "auf keinen fall",
    "regel",
    "verboten",
    "ab jetzt",
    // French
    "jamais",
    "toujours",
    "doit",
    "dois",
    "ne pas",
    "interdit",
    "uniquement",
    "seulement",
    "règle",
    "désormais",
    // Spanish and Portuguese
    "nunca",
    "siempre",
    "debe",
    "debes",
    "prohibido",
    "solo",
    "sólo",
    "sempre",
    "deve",
    "proibido",
    "regla",
    "regra",
    // Italian
    "mai",
    "devi",
    "vietato",
    // Russian
    "никогда",
    "всегда",
    "нельзя",
    "только",
    "должен",
    "запрещено",
];

/// Words of languages that do not.
const PARTS: &[&str] = &[
    // Japanese
    "必ず",
    "絶対",
    "常に",
    "いつも",
    "決して",
    "しないで",
    "ないでください",
    "ないこと",
    "するな",
    "いけない",
    "いけません",
    "なりません",
    "ならない",
    "のみ",
    "だけに",
    "だけを",
    "以外",
    "ルール",
    "今後",
    "これから",
    "厳守",
    "毎回",
    "すべて",
    "使ってください",
    "以内",
    "超えない",
    "に従って",
    // Chinese
    "必须",
    "必須",
    "务必",
    "一定",
    "总是",
    "總是",
    "始终",
    "永远",
    "绝不",
    "绝对",
    "決不",
    "禁止",
    "严禁",
    "不要",
    "不得",
    "不能",
    "不许",
    "不准",
    "不可",
    "切勿",
    "请勿",
    "只能",
    "只用",
    "只许",
    "仅限",
    "规则",
    "以后",
    "从现在",
    "请用",
    "所有",
    "一律",
    "不超过",
    "只",
    // Korean
    "항상",
    "절대",
    "반드시",
];

/// Phrases that hold one of these words and say something else.
const NO_RULES: &[&str] = &["只是", "只有", "只好", "只剩", "能不能", "不一定"];

/// Whether the sentence reads like a rule.
#[must_use]
pub fn is_rule(sentence: &str) -> bool {
    let text = sentence.to_lowercase().replace('’', "'");
    if text.ends_with(['?', '？']) {
        return false;
    }
    // Japanese orders end like this.
    let is_order = text.trim_end_matches(['。', '.', '！', '!']).ends_with("こと");
    let text = NO_RULES.iter().fold(text, |text, phrase| text.replace(phrase, " "));
    is_order
        || PARTS.iter().any(|part| text.contains(part))
        || WORDS.iter().any(|word| has_word(&text, word))
}

/// Whether `word` stands in `text` by itself, and not in the middle of another one.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
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
    fn rules_in_several_languages() {
        for rule in [
            "Never push to main.",
            "Please don’t touch the tests",
            "You MUST answer in French",
            "必ず日本語で答えてください",
            "テストは変更しないでください",
            "不要修改 config.yaml",
            "所有注释必须用中文",
            "Bitte niemals löschen",
            "절대 삭제하지 마세요",
        ] {
            assert!(is_rule(rule), "{rule}");
        }
        for other in ["What is next?", "The mustard is nearby.", "続けて", "继续", "It works now"]
        {
            assert!(!is_rule(other), "{other}");
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
