//! Recognises replies that do not summarise: the model refuses in words, or only thinks.
//!
//! A refusal is short and begins with an apology or with what the model cannot do. An apology alone is not enough, because
//! a summary could begin with one.

/// The most characters of a refusal. A longer text is more than that.
const LONGEST: usize = 500;

/// The words of refusals in one language, in lower case and with straight apostrophes.
struct Language {
    /// Words that begin a refusal by themselves.
    refuses: &'static [&'static str],
    /// Words that begin a refusal if it also says what is not possible.
    regrets: &'static [&'static str],
    /// Words for what is not possible.
    cannot: &'static [&'static str],
}

const LANGUAGES: [Language; 9] = [
    // English
    Language {
        refuses: &[
            "i can't",
            "i cannot",
            "i can not",
            "i'm unable",
            "i am unable",
            "i'm not able",
            "i am not able",
            "i won't",
            "i will not",
            "i must decline",
            "i have to decline",
            "i'm not comfortable",
        ],
        regrets: &[
            "i'm sorry",
            "i am sorry",
            "sorry",
            "i apologize",
            "i apologise",
            "apologies",
            "my apologies",
            "unfortunately",
            "i'm afraid",
            "i am afraid",
            "as an ai",
            "i understand",
            "thank you",
        ],
        cannot: &[
            "can't", "cannot", "can not", "unable", "not able", "won't", "will not", "decline",
            "couldn't",
        ],
    },
    // Chinese
    Language {
        refuses: &["我无法", "我不能", "我無法", "无法协助", "無法協助", "我没办法", "我沒辦法"],
        regrets: &[
            "抱歉",
            "对不起",
            "對不起",
            "很抱歉",
            "非常抱歉",
            "很遗憾",
            "很遺憾",
            "不好意思",
            "作为一个",
            "作為一個",
        ],
        cannot: &["无法", "無法", "不能", "没办法", "沒辦法", "不可以"],
    },
    // Japanese
    Language {
        refuses: &["お手伝いできません", "お答えできません", "対応できません"],
        regrets: &["申し訳", "すみません", "ごめんなさい", "恐れ入り", "恐縮", "残念ながら"],
        cannot: &["できません", "できかね", "いたしかね", "応じられ", "お断り"],
    },
    // Korean
    Language {
        refuses: &["도와드릴 수 없", "도와 드릴 수 없"],
        regrets: &["죄송", "미안", "유감", "안타깝"],
        cannot: &["수 없", "못합니다", "어렵습니다", "불가능"],
    },
    // French
    Language {
        refuses: &[
            "je ne peux pas",
            "je ne peux malheureusement pas",
            "je ne suis pas en mesure",
            "je refuse",
        ],
        regrets: &[
            "je suis désolé",
            "désolé",
            "je m'excuse",
            "je regrette",
            "malheureusement",
            "navré",
            "je suis navré",
        ],
        cannot: &["peux pas", "pas en mesure", "impossible", "ne puis", "pas pouvoir"],
    },
    // German
    Language {
        refuses: &[
            "ich kann nicht",
            "ich kann dabei nicht",
            "ich kann diese",
            "ich bin nicht in der lage",
            "das kann ich nicht",
        ],
        regrets: &[
            "es tut mir leid",
            "tut mir leid",
            "entschuldigung",
            "ich entschuldige",
            "leider",
            "ich bedaure",
        ],
        cannot: &["nicht", "unmöglich"],
    },
    // Spanish
    Language {
        refuses: &["no puedo", "no me es posible", "no soy capaz"],
        regrets: &[
            "lo siento",
            "lo lamento",
            "disculpa",
            "perdón",
            "perdona",
            "lamentablemente",
            "desafortunadamente",
            "me disculpo",
        ],
        cannot: &["no puedo", "no es posible", "no me es posible", "no podré", "incapaz"],
    },
    // Portuguese
    Language {
        refuses: &["não posso", "não consigo", "eu não posso", "eu não consigo"],
        regrets: &[
            "desculpe",
            "desculpa",
            "sinto muito",
            "lamento",
            "infelizmente",
            "peço desculpa",
            "me desculpe",
        ],
        cannot: &["não posso", "não consigo", "não é possível", "não poderei", "incapaz"],
    },
    // Russian
    Language {
        refuses: &["я не могу", "не могу помочь", "я не в состоянии"],
        regrets: &[
            "извините",
            "извини",
            "простите",
            "прошу прощения",
            "к сожалению",
            "мне жаль",
            "приношу извинения",
        ],
        cannot: &["не могу", "не смогу", "невозможно", "не в состоянии"],
    },
];

/// Returns true if a reply refuses the request in words.
#[must_use]
pub fn is_refusal(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric()).trim();
    if text.chars().count() > LONGEST {
        return false;
    }
    let text = text.to_lowercase().replace('\u{2019}', "'");
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    LANGUAGES.iter().any(|language| {
        let cannot = || language.cannot.iter().any(|word| text.contains(word));
        begins(language.refuses) || begins(language.regrets) && cannot()
    })
}

/// Returns the text after the thinking at its beginning, which some local models write as text between tags. Thinking
/// that does not end is all of the text.
#[must_use]
pub fn without_thinking(text: &str) -> &str {
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        if let Some(rest) = text.trim_start().strip_prefix(open) {
            return rest.split_once(close).map_or("", |(_, after)| after.trim_start());
        }
    }
    text
}

/// Returns the number of words in a text. Two characters count as a word in a script without spaces.
#[must_use]
pub fn words(text: &str) -> usize {
    let is_wide =
        |c: &char| matches!(u32::from(*c), 0x2E80..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF);
    let wide = text.chars().filter(is_wide).count();
    text.split_whitespace().count().max(wide / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_recognised_in_nine_languages() {
        for text in [
            "I'm sorry, I can't assist with that request.",
            "I\u{2019}m sorry, but I can\u{2019}t help with that.",
            "I cannot summarize this conversation.",
            "Unfortunately, I am unable to process this content.",
            "抱歉，我无法协助处理该请求。",
            "對不起，我無法提供摘要。",
            "申し訳ありませんが、そのご要望にはお応えできません。",
            "죄송하지만 해당 요청은 도와드릴 수 없습니다.",
            "Je suis désolé, mais je ne peux pas répondre à cette demande.",
            "Es tut mir leid, aber dabei kann ich nicht helfen.",
            "Lo siento, pero no puedo ayudar con esa solicitud.",
            "Desculpe, não posso ajudar com isso.",
            "Извините, я не могу помочь с этим запросом.",
            "**I'm sorry**, I won't do that.",
        ] {
            assert!(is_refusal(text), "{text}");
        }
    }

    #[test]
    fn summaries_are_not_refusals() {
        for text in [
            "The user asked for a fix. The assistant said: I'm sorry, I can't reach the server.",
            "Goal: find out why the service cannot start. Unable to connect to port 80.",
            "Unfortunately, the build is broken: zlib.h is missing. Next: install it.",
            "抱歉信已写好，下一步是发送。",
            "Leider ist der Bau kaputt: zlib.h fehlt.",
        ] {
            assert!(!is_refusal(text), "{text}");
        }
        let long = format!("I cannot stress this enough. {}", "The user wants tests. ".repeat(40));
        assert!(!is_refusal(&long));
    }

    #[test]
    fn thinking_is_not_part_of_a_summary() {
        assert_eq!(without_thinking("<think>hm\n</think>\n\nGoal: x"), "Goal: x");
        assert_eq!(without_thinking("<think>hm, the user"), "");
        assert_eq!(without_thinking("Goal: <think>"), "Goal: <think>");
    }

    #[test]
    fn words_are_counted_in_scripts_without_spaces_too() {
        assert_eq!((words("a few words"), words("目标是修复构建"), words("")), (3, 3, 0));
    }
}
