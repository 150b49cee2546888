//! Reads the model's reply to a checkpoint request: one JSON object, or something close to it.

use crate::compact::refusal;
use crate::json::{Object, elements, string};

/// The maximum length, in characters, of a summary taken from a reply in which no JSON object has a summary.
const MAX_PLAIN: usize = 4000;
/// The maximum number of opening braces to try as the beginning of an object.
const MAX_TRIES: usize = 1000;

/// The content of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CheckpointReply {
    /// The summary; never blank.
    pub summary: String,
    /// The topics of the conversation.
    pub topics: Vec<String>,
    /// The decisions made.
    pub key_decisions: Vec<String>,
    /// The open questions.
    pub open_questions: Vec<String>,
}

/// The result of reading text that may be an object with a summary.
enum FoundSummary {
    Summary(CheckpointReply),
    /// The object has a summary, but it is blank.
    Blank,
    Nothing,
}

impl CheckpointReply {
    /// Reads the first JSON object that has a summary; the object may be the whole reply or a part of it. If there is
    /// none, the text of the reply is the summary, cut to 4000 characters. Returns `None` if the reply is blank, or if
    /// it has objects with summaries and all of these are blank, or if it refuses the request in words.
    #[must_use]
    pub fn read(reply: &str) -> Option<CheckpointReply> {
        let mut blank = false;
        for text in std::iter::once(reply.trim()).chain(objects(reply)) {
            match read_object(text) {
                FoundSummary::Summary(content) => return Some(content),
                FoundSummary::Blank => blank = true,
                FoundSummary::Nothing => {}
            }
        }
        let summary: String = reply.trim().chars().take(MAX_PLAIN).collect();
        (!blank && !summary.is_empty() && !refusal::is_refusal(&summary))
            .then(|| CheckpointReply { summary, ..CheckpointReply::default() })
    }
}

fn read_object(text: &str) -> FoundSummary {
    let Ok(object) = Object::parse(text) else { return FoundSummary::Nothing };
    let Some(summary) = object.get("summary").and_then(texts) else { return FoundSummary::Nothing };
    if summary.is_empty() {
        return FoundSummary::Blank;
    }
    let list = |name: &str| object.get(name).and_then(texts).unwrap_or_default();
    FoundSummary::Summary(CheckpointReply {
        summary: summary.join("\n\n"),
        topics: list("topics"),
        key_decisions: list("key_decisions"),
        open_questions: list("open_questions"),
    })
}

/// Returns the strings of a list, trimmed and without blank ones; other elements are dropped. A single string counts
/// as a list of one. Returns `None` for any other value.
fn texts(raw: &str) -> Option<Vec<String>> {
    let elements = if raw.starts_with('"') { vec![raw] } else { elements(raw)? };
    let texts = elements.into_iter().filter_map(string).map(|text| text.trim().to_owned());
    Some(texts.filter(|text| !text.is_empty()).collect())
}

/// Returns the parts of `text` from an opening brace to the matching closing one, in order and including nested ones.
fn objects(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices('{').take(MAX_TRIES);
    starts.filter_map(|(start, _)| balanced(&text[start..]))
}

/// Returns the text from the brace at its beginning to the matching one. Braces in strings do not count.
fn balanced(text: &str) -> Option<&str> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(..=at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"summary":"They {built} \"it\".","topics":["a","b"],"key_decisions":["c"],"open_questions":[]}"#;

    fn whole() -> Option<CheckpointReply> {
        Some(CheckpointReply {
            summary: r#"They {built} "it"."#.into(),
            topics: vec!["a".into(), "b".into()],
            key_decisions: vec!["c".into()],
            open_questions: vec![],
        })
    }

    fn plain(text: &str) -> Option<CheckpointReply> {
        Some(CheckpointReply { summary: text.into(), ..CheckpointReply::default() })
    }

    #[test]
    fn v75_an_object_is_found_anywhere_in_the_reply() {
        for reply in [
            WHOLE.to_owned(),
            format!("\n {WHOLE}\n\n"),
            format!("```json\n{WHOLE}\n```"),
            format!("Here it is: {WHOLE}. Is that {{good}}?"),
            format!("A set {{a, b}}, {{\"x\":1}} and then {WHOLE}"),
            format!("[{WHOLE}]"),
            format!(r#"{{"checkpoint":{WHOLE}}}"#),
            format!("{{\"summary\": oops}} {WHOLE}"),
        ] {
            assert_eq!(CheckpointReply::read(&reply), whole(), "{reply}");
        }
    }

    #[test]
    fn v75_any_other_text_becomes_the_summary() {
        for reply in [
            "They built it.",
            r#"{"summary":"They built"#,
            r#"{"summary":"a",}"#,
            r#"{"text":"no summary"}"#,
            r#"{"summary":5}"#,
            "{}",
            "}{",
            "\"a { in a string",
            "null",
        ] {
            assert_eq!(CheckpointReply::read(reply), plain(reply), "{reply}");
        }
        let long = "é".repeat(MAX_PLAIN + 1);
        assert_eq!(CheckpointReply::read(&long), plain(&"é".repeat(MAX_PLAIN)));
        assert_eq!(CheckpointReply::read(&"{".repeat(100_000)), plain(&"{".repeat(MAX_PLAIN)));
    }

    #[test]
    fn v75_wrong_types_are_dropped_or_wrapped() {
        let text = r#"{"summary":["One.","Two."],"topics":"one","key_decisions":[1,"d",["x"],null," "],"open_questions":{"a":1}}"#;
        let reply = CheckpointReply {
            summary: "One.\n\nTwo.".into(),
            topics: vec!["one".into()],
            key_decisions: vec!["d".into()],
            open_questions: vec![],
        };
        assert_eq!(CheckpointReply::read(text), Some(reply));
    }

    #[test]
    fn v75_a_blank_summary_is_rejected() {
        for reply in ["", " \n", r#"{"summary":" ","topics":["a"]}"#, r#"{"summary":[]}"#] {
            assert_eq!(CheckpointReply::read(reply), None, "{reply}");
        }
    }
}
