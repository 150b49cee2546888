//! Identifiers, or names, that have to be copied exactly: ids, hashes, paths, addresses, numbers.
//!
//! A name in the messages that a compaction covers matters if the rest of the conversation uses it in text or in a tool
//! call: only the summary can then tell the model what it refers to. Names in tool results do not count, because the
//! result itself is context enough.

use crate::compact::CutPlan;
use crate::compact::request::whole;
use crate::json::unescaped;
use crate::messages::Message;
use crate::record::content::BlockKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The most names in one request to the model.
pub const MAX_IDENTIFIERS: usize = 12;
/// The longest quoted line, in characters.
const LINE: usize = 200;

/// Names in the covered messages that the kept messages use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    name: String,
    /// The last line of the covered messages that contains it.
    line: String,
}

impl Used {
    /// Finds the names in the covered messages that the kept messages use, the most recent first.
    #[must_use]
    pub fn find(covered: &[Message<'_>], kept: &[Message<'_>]) -> Used {
        let kept: Vec<String> = kept.iter().map(used).collect();
        let later: HashSet<&str> = kept.iter().flat_map(|text| names(text)).collect();
        let (mut known, mut found) = (BTreeSet::new(), Vec::new());
        if later.is_empty() {
            return Used::default();
        }
        for message in covered.iter().rev() {
            for line in whole(message).lines().rev() {
                for name in names(line).filter(|name| later.contains(name)) {
                    if known.insert(name.to_owned()) {
                        let line = line.trim().chars().take(LINE).collect();
                        found.push(Name { name: name.to_owned(), line });
                    }
                }
            }
        }
        Used { names: found }
    }

    /// Returns the names that a compaction with the summary `text` loses.
    #[must_use]
    pub fn lost(&self, planned: &CutPlan, text: &str) -> Used {
        let summary = planned.summary(text);
        let mut said = summary.render();
        for path in summary.details.read.iter().chain(&summary.details.modified) {
            said.push('\n');
            said.push_str(path);
        }
        let names = self.names.iter().filter(|name| !said.contains(&name.name)).cloned();
        Used { names: names.collect() }
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the names, at most [`MAX_IDENTIFIERS`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.names.iter().take(MAX_IDENTIFIERS).map(|name| name.name.clone()).collect()
    }

    /// Returns the lines that contain these names, oldest first, each once.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for name in self.names.iter().take(MAX_IDENTIFIERS).rev() {
            if !lines.contains(&name.line) {
                lines.push(name.line.clone());
            }
        }
        lines
    }
}

/// Returns the text and the tool calls of a message.
fn used(message: &Message<'_>) -> String {
    let mut text = message.content.text();
    for block in message.blocks().filter(|block| matches!(block.kind, BlockKind::ToolUse { .. })) {
        text.push('\n');
        text.push_str(&unescaped(block.member("input").unwrap_or_default()));
    }
    text
}

/// Returns the names in `text`, in order.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split('\\').enumerate();
    let plain = |(nth, piece)| if nth == 0 { piece } else { without_code_unit(piece) };
    pieces
        .map(plain)
        .flat_map(|piece| piece.split(is_separator))
        .map(trim)
        .filter(|word| is_name(word))
}

/// Returns the text after a backslash without the `uXXXX` of a JSON escape. Tool results may contain JSON.
fn without_code_unit(text: &str) -> &str {
    let is_unit = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = text.strip_prefix('u').and_then(|rest| rest.get(..4));
    if digits.filter(is_unit).is_some() { &text[5..] } else { text }
}

/// Returns the names in the messages. If a message has more than three names of the same shape, they are probably items
/// of a list, and are not counted there. Names that occur in the most messages come first (more than three count as
/// three), and among equals the newest.
#[must_use]
pub fn distinctive(messages: &[Message<'_>]) -> Vec<String> {
    let mut known: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (at, message) in messages.iter().filter(|message| !message.is_summary()).enumerate() {
        let text = whole(message);
        let found: BTreeSet<&str> = names(&text).collect();
        let mut shapes: BTreeMap<String, usize> = BTreeMap::new();
        found.iter().for_each(|name| *shapes.entry(shape(name)).or_default() += 1);
        for name in found.into_iter().filter(|name| shapes[&shape(name)] <= 3) {
            let (count, last) = known.entry(name.to_owned()).or_default();
            (*count, *last) = (*count + 1, at);
        }
    }
    let mut known: Vec<_> = known.into_iter().collect();
    known.sort_by_key(|(_, (count, last))| std::cmp::Reverse((*count.min(&3), *last)));
    known.into_iter().map(|(name, _)| name).collect()
}

/// Returns the name with each word replaced by `a`, each number by `9`, and a mix of both by `x`.
fn shape(name: &str) -> String {
    let run = |run: &str| {
        let (digits, letters) = (run.contains(char::is_numeric), run.contains(char::is_alphabetic));
        if digits && letters {
            'x'
        } else if digits {
            '9'
        } else {
            'a'
        }
    };
    let is_mark = |c: char| !c.is_alphanumeric();
    let pieces = name.split_inclusive(is_mark);
    pieces
        .flat_map(|piece| [run(piece)].into_iter().chain(piece.chars().filter(|c| is_mark(*c))))
        .collect()
}

/// Returns true if the character ends a name.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || !c.is_ascii() || "\"'`<>()[]{}|,;\\*!^".contains(c)
}

/// Removes the punctuation around a word.
fn trim(word: &str) -> &str {
    word.trim_end_matches(['.', ':', '?', '=', '&', '-', '/']).trim_start_matches(['=', ':', '-'])
}

fn is_name(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    if word.len() < 3 || word.len() > 300 || digits + letters < 3 {
        return false;
    }
    if word.contains("://") || is_path(word) || is_file(word) {
        return true;
    }
    if letters == 0 && is_date_or_time(word) {
        return false;
    }
    // A number, a version, a port; or an id, which mixes digits and letters. Shorter numbers are mostly counts.
    digits >= 4
        || (digits >= 3 && word.len() > digits)
        || (digits > 0 && letters > 0 && word.len() >= 6 && !word.contains('/'))
}

/// Returns true for a date or a time of day, which every line of a log may have.
fn is_date_or_time(word: &str) -> bool {
    let groups = |separator: char| word.split(separator).map(str::len).collect::<Vec<_>>();
    let is_day =
        |groups: &[usize]| matches!(groups, [4, 1 | 2, 1 | 2] | [1 | 2, 1 | 2, 4] | [4, 2]);
    let times = groups(':');
    is_day(&groups('-')) || is_day(&groups('/')) || times.len() > 1 && times.iter().all(|n| *n <= 2)
}

/// Returns true for a path with a directory, but not for `and/or`.
fn is_path(word: &str) -> bool {
    let (first, parts) = (word.starts_with(['/', '~', '.']), word.split('/').count());
    parts > 2 || (parts == 2 && (first || is_file(word)))
}

/// Returns true for a file name with an extension.
fn is_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    stem.len() >= 2
        && stem.chars().any(|c| c.is_ascii_alphabetic())
        && (1..=5).contains(&extension.len())
        && extension.chars().all(is_plain)
        && extension.chars().any(|c| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v56_names_are_distinguished_from_words() {
        let text = "See https://a.example/x?y=1, src/main.rs and /etc/hosts. Commit 3f9c2ab7d1e0 (or \
            6f1c0d3e-77aa-4b52-9c1d-0123456789ab) broke port 8443; ticket ABC-1234, version v2.10.1: \
            req_011CabD in `config.yaml`。番号は AB12-99 です。";
        let found: Vec<&str> = names(text).collect();
        let expected = [
            "https://a.example/x?y=1",
            "src/main.rs",
            "/etc/hosts",
            "3f9c2ab7d1e0",
            "6f1c0d3e-77aa-4b52-9c1d-0123456789ab",
            "8443",
            "ABC-1234",
            "v2.10.1",
            "req_011CabD",
            "config.yaml",
            "AB12-99",
        ];
        assert_eq!(found, expected);
        // A URL, a directory and a file, each recognised by itself.
        for name in ["ftp://host", "/usr/lib", "notes.txt"] {
            assert_eq!(names(name).collect::<Vec<_>>(), [name]);
        }
        for words in [
            "At 2026-01-06 09:05:31, in 2026/01",
            "This and/or that, e.g. so.",
            "It is 5 of 12 now",
            "Really? Yes!",
            "cd ../a",
            "日本語",
        ] {
            assert_eq!(names(words).collect::<Vec<_>>(), [""; 0], "{words}");
        }
        let path = "/usr".repeat(75);
        assert_eq!(names(&path).collect::<Vec<_>>(), [&path]);
        let too_long = path + "x";
        assert_eq!(names(&too_long).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn more_than_three_names_of_one_shape_are_not_distinctive() {
        for (text, expected) in [
            (
                "8443 PR-1234 src/main.rs v2.10.1",
                &["8443", "PR-1234", "src/main.rs", "v2.10.1"][..],
            ),
            ("8443 PR-1234 PR-1235 PR-1236", &["8443", "PR-1234", "PR-1235", "PR-1236"]),
            ("8443 PR-1234 PR-1235 PR-1236 PR-1237", &["8443"]),
        ] {
            let line = format!(r#"{{"role":"user","content":"{text}"}}"#);
            let messages = crate::messages::read("t", line.as_bytes()).unwrap();
            assert_eq!(distinctive(&messages), expected);
        }
    }

    #[test]
    fn audit_25_json_escapes_are_not_names() {
        for (text, expected) in [
            (r"\u65e5\u672c\u8a9e", &[][..]),
            (r"a \u001b[1m and \u65e5src/main.rs", &["src/main.rs"]),
            (r"C:\users\ubuntu22\all.txt", &["ubuntu22", "all.txt"]),
        ] {
            assert_eq!(names(text).collect::<Vec<_>>(), expected, "{text}");
        }
        let call = |id: &str, input: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"f","input":{input}}}]}}"#
            )
        };
        let input =
            r#"{"c":"\u65e5\u672c\u8a9e\ncat src/main.rs\nab12cd34\tno","d":"\u0063onfig.yaml"}"#;
        let lines = [call("a", input), call("b", input)].join("\n");
        let messages = crate::messages::read("t", lines.as_bytes()).unwrap();
        let used = Used::find(&messages[..1], &messages[1..]);
        let mut names = used.names();
        names.sort();
        assert_eq!(names, ["ab12cd34", "config.yaml", "src/main.rs"]);
        let mut names = distinctive(&messages);
        names.sort();
        assert_eq!(names, ["ab12cd34", "config.yaml", "src/main.rs"]);
    }
}
