//! Sentences that read like a decision or an open question.
//!
//! With these phrases, a summary without a model keeps 70 % of the decisions in the held-out sessions of docs/recall.md
//! instead of 30 %. Because decisions take up space, it keeps only 64 % of the identifiers instead of 93 %.

use crate::compact::reads_like::{PhraseTable, is_question, sentences};
use crate::messages::Message;
use crate::record::content::Role;

/// Phrases of decisions.
#[rustfmt::skip]
const DECISIONS: PhraseTable = PhraseTable {
    words: &[
        "decided", "decide", "decision", "we will use", "i will use", "we'll use", "i'll use", "we use", "i chose",
        "we chose", "going with", "go with", "we went with", "settled on", "we agreed", "we keep", "we take",
        "i set", "i propose", "instead of", "rather than", "stays", "we…because", "i…because", "keeps", "no…as our",
        "beschlossen", "entschieden", "décidé", "choisi", "decidido", "elegido", "решили",
    ],
    parts: &[
        "決定", "決め", "採用", "にします", "にしました", "方針", "ことにし", "を選び", "ではなく", "を勧め", "移します", "消さずに",
        "は渡しません", "付けます", "そのままにします",
        "决定", "采用", "选择", "选用", "改用", "改为", "换成", "定为", "设为", "保留", "推荐", "而不是", "先…再", "不再", "^选", "^不给",
    ],
    not: &["no decision"],
};

/// Phrases of reasons. A reason alone scores low.
#[rustfmt::skip]
const REASONS: PhraseTable = PhraseTable {
    words: &["because", "since", "so that", "therefore", "weil", "parce que", "porque", "потому что"],
    parts: &["ためです$", "からです$", "理由", "因为", "由于", "这样"],
    not: &["since then", "这样的"],
};

/// Phrases of open questions.
#[rustfmt::skip]
const OPEN: PhraseTable = PhraseTable {
    words: &[
        "open question", "still open", "^open", "unclear", "to be decided", "tbd", "todo", "not decided", "need to know",
        "not known", "whether", "offen", "à décider", "por decidir",
    ],
    parts: &[
        "未定", "要確認", "確認したいのは", "分からないこと", "かどうか", "決まっていない", "決まっていません",
        "待定", "待确认", "还没定", "还没有定", "不清楚", "不确定",
    ],
    not: &[],
};

/// Returns a score, 0 to 5, for how much a sentence reads like a decision.
#[must_use]
pub fn decides(sentence: &str) -> usize {
    if is_question(sentence) {
        return 0;
    }
    2 * DECISIONS.count(sentence).min(2) + REASONS.count(sentence).min(1)
}

/// Returns a score, 0 to 5, for how much a sentence reads like an open question.
#[must_use]
pub fn asks(sentence: &str) -> usize {
    let ends = is_question(sentence) || sentence.trim_end_matches('。').ends_with('か');
    2 * OPEN.count(sentence).min(2) + usize::from(ends)
}

/// Returns the decisions in the messages, oldest first.
#[must_use]
pub fn decisions(messages: &[Message<'_>]) -> Vec<String> {
    let said = messages.iter().filter(|message| !message.is_summary());
    said.flat_map(|message| decided(&message.content.text())).collect()
}

/// Returns the decisions in `text`. A sentence that is only a reason is joined to the sentence before it, unless it is
/// ASCII: in Japanese and Chinese, the reason often follows the decision in a sentence of its own.
fn decided(text: &str) -> Vec<String> {
    let (mut found, mut before): (Vec<String>, Option<(String, bool)>) = (Vec::new(), None);
    for sentence in sentences(text) {
        let own = decides(sentence);
        let is_reason = own == 1 && !sentence.is_ascii();
        match before.take() {
            Some((last, was_taken)) if is_reason => {
                if was_taken {
                    found.pop();
                }
                found.push(format!("{last}{sentence}"));
            }
            _ if own > 0 => found.push(sentence.to_owned()),
            _ => {}
        }
        before = Some((sentence.to_owned(), own > 0 && !is_reason));
    }
    found
}

/// Returns the open questions, oldest first: the questions of the assistant, and whatever either side calls open.
#[must_use]
pub fn questions(messages: &[Message<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for message in messages.iter().filter(|message| !message.is_summary()) {
        let least = if message.role == Role::Assistant { 1 } else { 2 };
        let text = message.content.text();
        let open = sentences(&text).filter(|sentence| asks(sentence) >= least);
        found.extend(open.map(str::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_joined_to_the_sentence_before_it_unless_it_is_ascii() {
        for (text, expected) in [
            (
                "We use SQLite. Because it is small.",
                &["We use SQLite.", "Because it is small."][..],
            ),
            ("We use SQLite. 速いためです。", &["We use SQLite.速いためです。"]),
            // The sentence before the reason is not a decision, so the decision before it is kept.
            (
                "We use SQLite. It rains. 速いためです。",
                &["We use SQLite.", "It rains.速いためです。"],
            ),
            ("It rains. 速いためです。", &["It rains.速いためです。"]),
            ("速いためです。", &["速いためです。"]),
            ("It rains.", &[]),
        ] {
            assert_eq!(decided(text), expected, "{text}");
        }
    }

    #[test]
    fn questions_are_those_of_the_assistant_and_what_either_side_calls_open() {
        let lines = r#"{"role":"user","content":"Which file is it? Still open: the port."}
{"role":"assistant","content":"I look. Which port? The name is still open."}"#;
        let messages = crate::messages::read("t", lines.as_bytes()).unwrap();
        let expected = ["Still open: the port.", "Which port?", "The name is still open."];
        assert_eq!(questions(&messages), expected);
    }
}
