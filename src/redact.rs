//! Redaction: replaces text that matches a pattern, before a record is written.
//!
//! Each line of a pattern file has a kind and a regular expression. Every match in a string becomes
//! `[REDACTED:kind]`, and the record's `redacted` member lists the kinds. Strings without a match keep their
//! bytes, and so does everything between strings.
//!
//! Of member names, only those in the input of a call are searched, because a model writes them. All others, and the
//! members that `RedactWalk::object` skips, are needed unchanged by programs and providers. The signature of a thinking
//! block no longer matches if the text was redacted, so rebuild drops the block.

use crate::exit::{Error, Exit};
use crate::json::write::strings;
use crate::json::{self, Object, quote};
use crate::record::{self, Record};
use regex_lite::Regex;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The start of the text that replaces a match.
pub const MARK: &str = "[REDACTED:";

/// Members of records and blocks that hold references, hashes, or words that programs depend on.
const KEPT: [&str; 20] = [
    "covers_up_to",
    "created",
    "encrypted_content",
    "encrypted_index",
    "file_id",
    "first_kept_entry_id",
    "id",
    "media_type",
    "model",
    "parent",
    "provider",
    "record_id",
    "redacted",
    "request_id",
    "sha256",
    "signature",
    "stop_reason",
    "target",
    "tool_use_id",
    "type",
];

/// The patterns to redact.
#[derive(Clone, Debug)]
pub struct Patterns(Vec<Pattern>);

#[derive(Clone, Debug)]
struct Pattern {
    kind: String,
    regex: Regex,
}

impl Patterns {
    /// Reads a pattern file. Blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Status 78 at the first invalid line, with `file` and the line number, and for a file without patterns,
    /// because the user expects redaction.
    pub fn read(file: &str, bytes: &[u8]) -> anyhow::Result<Patterns> {
        let mut patterns = Vec::new();
        for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            patterns.push(Pattern::read(line).map_err(|why| {
                let text = format!("cannot use patterns '{file}' line {}: {why}", index + 1);
                Error::new(Exit::Config, text)
            })?);
        }
        if patterns.is_empty() {
            let text = format!(
                "cannot use patterns '{file}': it has no patterns; write lines of the form 'KIND REGEX'"
            );
            return Err(Error::new(Exit::Config, text).into());
        }
        Ok(Patterns(patterns))
    }

    /// Returns the record, a JSON object, with all matches replaced.
    #[must_use]
    pub fn redact<'a>(&self, record: &'a str) -> Cow<'a, str> {
        let (edits, kinds, names) = Default::default();
        let mut walk = RedactWalk { patterns: self, edits, kinds, names };
        walk.object(record);
        if walk.edits.is_empty() {
            return Cow::Borrowed(record);
        }
        let text = walk.apply(record);
        Cow::Owned(match Object::parse(&text) {
            Ok(object) => object.with("redacted", &walk.kinds(&object)),
            Err(_) => text,
        })
    }

    /// Calls `each` with a record as it is after redaction, and true if that changed it. A record that redaction made invalid is
    /// left out, because its text must not be seen.
    pub fn redacted<E>(
        patterns: Option<&Patterns>,
        record: &Record<'_>,
        each: impl FnOnce(&Record<'_>, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(Cow::Owned(text)) = patterns.map(|patterns| patterns.redact(&record.text)) else {
            return each(record, false);
        };
        let Ok(object) = Object::parse(&text) else { return Ok(()) };
        let Ok(body) = record::parse(&object) else { return Ok(()) };
        let (id, place) = (record.id.clone(), record.place.clone());
        let (offset, end) = (record.offset, record.end);
        each(&Record { id, offset, end, place, text: Cow::Borrowed(&text), body }, true)
    }

    /// Returns `text` with its matches replaced, and their kinds; `None` without a match. All patterns search
    /// the original text. Overlapping matches are replaced together.
    fn replace(&self, text: &str) -> Option<(String, Vec<&str>)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for Pattern { kind, regex } in &self.0 {
            let matches = regex.find_iter(text).filter(|found| !found.is_empty());
            found.extend(matches.map(|found| (found.range(), kind.as_str())));
        }
        if found.is_empty() {
            return None;
        }
        found.sort_by_key(|(range, _)| range.start);
        let (mut out, mut end) = (String::with_capacity(text.len()), 0);
        for (range, kind) in &found {
            if range.start >= end {
                out.push_str(&text[end..range.start]);
                out.push_str(&format!("{MARK}{kind}]"));
            }
            end = end.max(range.end);
        }
        out.push_str(&text[end..]);
        Some((out, found.into_iter().map(|(_, kind)| kind).collect()))
    }
}

impl Pattern {
    /// Reads `KIND REGEX`.
    fn read(line: &[u8]) -> Result<Pattern, String> {
        let line = std::str::from_utf8(line).map_err(|error| format!("not UTF-8: {error}"))?;
        let (kind, regex) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !kind.bytes().all(is_word) {
            return Err(format!("invalid kind '{kind}': use letters, digits, '.', '_' and '-'"));
        }
        if regex.is_empty() {
            return Err(format!("no regular expression after kind '{kind}'"));
        }
        let regex = Regex::new(regex.trim_start())
            .map_err(|error| format!("invalid regular expression: {error}"))?;
        if regex.is_match("") {
            return Err(format!("'{regex}' matches the empty string"));
        }
        Ok(Pattern { kind: kind.to_owned(), regex })
    }
}

/// A walk through a record, in the order of its bytes.
struct RedactWalk<'p, 'a> {
    patterns: &'p Patterns,
    /// Strings of the record, each with its replacement.
    edits: Vec<(&'a str, String)>,
    kinds: BTreeSet<&'p str>,
    /// How often each text replaced a member name. Further ones get a number, so that names stay unique.
    names: BTreeMap<String, usize>,
}

impl<'a> RedactWalk<'_, 'a> {
    /// Handles a record, a block, or the source of an image or document.
    fn object(&mut self, raw: &'a str) {
        let Ok(object) = Object::parse(raw) else { return };
        let kind = object.string("type").unwrap_or_default();
        for member in object.members() {
            match (kind.as_ref(), member.name().as_ref()) {
                (_, name) if KEPT.contains(&name) => {}
                // With its name changed, it would be a call of another tool.
                ("tool_use" | "server_tool_use" | "mcp_tool_use", "name") => {}
                (_, "input") => self.strings(member.value, true),
                // Base64, where a match can only be a coincidence.
                ("base64" | "redacted_thinking", "data") => {}
                ("image" | "document", "source") => self.object(member.value),
                (_, "content" | "output") => self.content(member.value),
                _ => self.strings(member.value, false),
            }
        }
    }

    /// Handles a string, a block, or a list of blocks.
    fn content(&mut self, raw: &'a str) {
        match raw.as_bytes().first() {
            Some(b'{') => self.object(raw),
            Some(b'[') => {
                json::elements(raw).unwrap_or_default().into_iter().for_each(|e| self.content(e));
            }
            _ => self.strings(raw, false),
        }
    }

    /// Handles every string in a value, and member names if `with_names` is true.
    fn strings(&mut self, raw: &'a str, with_names: bool) {
        let bytes = raw.as_bytes();
        let mut at = 0;
        while let Some(quote) = memchr::memchr(b'"', &bytes[at..]) {
            let open = at + quote;
            at = json::string_end(bytes, open);
            let is_name = bytes[at..].trim_ascii_start().first() == Some(&b':');
            if with_names || !is_name {
                self.string(&raw[open..at], is_name);
            }
        }
    }

    fn string(&mut self, raw: &'a str, is_name: bool) {
        let Some(text) = json::string(raw) else { return };
        if let Some((mut replaced, kinds)) = self.patterns.replace(&text) {
            if is_name {
                let count = self.names.entry(replaced.clone()).or_default();
                *count += 1;
                if *count > 1 {
                    replaced.push_str(&format!(" {count}"));
                }
            }
            self.edits.push((raw, quote(&replaced)));
            self.kinds.extend(kinds);
        }
    }

    /// Returns the record with the edits applied.
    fn apply(&self, record: &str) -> String {
        let (mut out, mut at) = (String::with_capacity(record.len()), 0);
        for (old, new) in &self.edits {
            let start = json::offset_in(record, old);
            out.push_str(&record[at..start]);
            out.push_str(new);
            at = start + old.len();
        }
        out.push_str(&record[at..]);
        out
    }

    /// Returns the list of the kinds that were found and of those that the record already listed.
    fn kinds(&self, record: &Object<'_>) -> String {
        let old = record.get("redacted").and_then(json::elements).unwrap_or_default();
        let old: Vec<Cow<'_, str>> = old.into_iter().filter_map(json::string).collect();
        let mut kinds = self.kinds.clone();
        kinds.extend(old.iter().map(AsRef::as_ref));
        strings(kinds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redacts `s3cret-` followed by digits as kind `key`, and mail addresses at .org domains as kind `mail`.
    fn redacted(record: &str) -> String {
        let patterns = b"# secrets\n\nkey s3cret-\\d+\nmail\t\\w+@\\w+\\.org\r\n";
        Patterns::read("p", patterns).unwrap().redact(record).into_owned()
    }

    #[test]
    fn a_match_in_a_string_is_replaced_and_its_kind_is_listed() {
        assert_eq!(
            redacted(r#"{"type":"user","content":"a s3cret-1, s3cret-22 of me@x.org"}"#),
            r#"{"type":"user","content":"a [REDACTED:key], [REDACTED:key] of [REDACTED:mail]","redacted":["key","mail"]}"#
        );
    }

    #[test]
    fn escapes_are_decoded_before_matching() {
        assert_eq!(
            redacted(r#"{"type":"user","content":"\u00e9 s\u0033cret-1\n\"\\"}"#),
            r#"{"type":"user","content":"é [REDACTED:key]\n\"\\","redacted":["key"]}"#
        );
    }

    #[test]
    fn all_other_bytes_stay() {
        let rest =
            r#" "n":1e2, "u":"\u00e9\ud800", "s3cret-1":[ -0.0 ],"big":12345678901234567890123"#;
        assert_eq!(
            redacted(&format!(r#"{{"type":"user","content":"s3cret-1",{rest}}}"#)),
            format!(r#"{{"type":"user","content":"[REDACTED:key]",{rest},"redacted":["key"]}}"#)
        );
        let clean = format!(r#"{{ "type":"user","content":"nothing",{rest} }}"#);
        assert_eq!(redacted(&clean), clean);
    }

    #[test]
    fn ids_signatures_and_data_are_never_changed() {
        for kept in [
            r#"{"id":"s3cret-1","type":"tool_use","tool_use_id":"s3cret-1","name":"s3cret-1","input":{}}"#,
            r#"{"type":"assistant","content":"a","usage":{"s3cret-1":1}}"#,
            r#"{"type":"retract","target":"s3cret-1"}"#,
            r#"{"type":"s3cret-1","request_id":"s3cret-1"}"#,
            r#"{"type":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s3cret-1"},{"type":"redacted_thinking","data":"s3cret-1"},{"type":"tool_use","id":"s3cret-1","name":"f","input":{}}]}"#,
            r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"s3cret-1"}}]}"#,
            r#"{"type":"user","content":[{"type":"document","source":{"type":"base64","data":"s3cret-1"}}]}"#,
        ] {
            assert_eq!(redacted(kept), kept);
        }
    }

    #[test]
    fn member_names_in_the_input_of_a_call_are_redacted_and_stay_unique() {
        for (input, expected) in [
            (
                r#"{"s3cret-1":1,"a":{"s3cret-2" :"s3cret-3"}}"#,
                r#"{"[REDACTED:key]":1,"a":{"[REDACTED:key] 2" :"[REDACTED:key]"}}"#,
            ),
            (r#"[{"\u0073\u0033cret-1":{}}]"#, r#"[{"[REDACTED:key]":{}}]"#),
        ] {
            let block = |input: &str| {
                format!(r#"{{"type":"tool_use","id":"t","name":"f","input":{input}}}"#)
            };
            let after =
                redacted(&format!(r#"{{"type":"assistant","content":[{}]}}"#, block(input)));
            assert_eq!(
                after,
                format!(
                    r#"{{"type":"assistant","content":[{}],"redacted":["key"]}}"#,
                    block(expected)
                )
            );
        }
    }

    #[test]
    fn text_in_every_kind_of_record_is_redacted() {
        for (record, count) in [
            (
                r#"{"type":"tool_use","tool_use_id":"t","name":"f","input":{"id":"s3cret-1","a":[{"type":"s3cret-2"}]}}"#,
                2,
            ),
            (r#"{"type":"tool_result","tool_use_id":"t","content":"s3cret-1"}"#, 1),
            (
                r#"{"type":"tool_result","tool_use_id":"t","output":[{"type":"text","text":"s3cret-1"}]}"#,
                1,
            ),
            (
                r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"s3cret-1"}]}]}"#,
                1,
            ),
            (
                r#"{"type":"user","content":[{"type":"document","title":"s3cret-1","source":{"type":"text","data":"s3cret-1"}}]}"#,
                2,
            ),
            (
                r#"{"type":"assistant","content":[{"type":"thinking","thinking":"s3cret-1","signature":"s"}]}"#,
                1,
            ),
            (r#"{"type":"error","class":"x","message":"s3cret-1"}"#, 1),
            (
                r#"{"type":"compaction","summary":"s3cret-1","kept_user":["s3cret-1"],"first_kept_entry_id":"@0"}"#,
                2,
            ),
            (r#"{"type":"new_kind","data":{"a":["s3cret-1"]}}"#, 1),
        ] {
            let after = redacted(record);
            assert_eq!(after.matches("[REDACTED:key]").count(), count, "{after}");
            assert!(!after.contains("s3cret") && after.ends_with(r#","redacted":["key"]}"#));
        }
    }

    #[test]
    fn overlapping_matches_are_replaced_together() {
        let patterns = Patterns::read("p", b"b bcd\na abc\nc cde").unwrap();
        assert_eq!(
            patterns.redact(r#"{"type":"user","content":"xabcdex"}"#),
            r#"{"type":"user","content":"x[REDACTED:a]x","redacted":["a","b","c"]}"#
        );
    }

    #[test]
    fn kinds_already_listed_are_kept() {
        assert_eq!(
            redacted(r#"{"redacted":["old","key"],"type":"user","content":"s3cret-1"}"#),
            r#"{"redacted":["key","old"],"type":"user","content":"[REDACTED:key]"}"#
        );
    }

    #[test]
    fn an_error_names_the_line_of_the_invalid_pattern() {
        for (file, why) in [
            (
                "a x\n\nb (",
                "'p' line 3: invalid regular expression: found open group without closing ')'",
            ),
            ("key", "'p' line 1: no regular expression after kind 'key'"),
            ("k/y x", "'p' line 1: invalid kind 'k/y': use letters"),
            ("key x*", "'p' line 1: 'x*' matches the empty string"),
            ("# nothing\n", "'p': it has no patterns"),
        ] {
            let error = Patterns::read("p", file.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(crate::exit::status(&error), Exit::Config);
        }
        assert!(Patterns::read("p", b"key \xff").is_err());
    }
}
