//! Every rule that an input can break, with what it means. `claw-check --rules` prints this table, and
//! claw-check(1) holds it.

use super::Severity::{self, Error, Note, Warning};
use std::fmt;

/// A rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, a kebab-case word.
    pub name: &'static str,
    /// How bad it is when it is broken.
    pub severity: Severity,
    /// Whether rebuild gives messages as if nothing were wrong.
    pub mended: bool,
    /// What is wrong when it is broken, in a sentence.
    pub meaning: &'static str,
}

impl fmt::Display for Rule {
    /// A line of the table: name, severity, whether rebuild mends it, meaning; tabs between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mended = if self.mended { "mended" } else { "-" };
        write!(f, "{}\t{}\t{mended}\t{}", self.name, self.severity.name(), self.meaning)
    }
}

macro_rules! rules {
    ($($constant:ident, $name:literal, $severity:ident, $mended:literal, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $constant: Rule =
                Rule { name: $name, severity: $severity, mended: $mended, meaning: $meaning };
        )*
        /// All of them, in the order in which an input is read.
        pub const ALL: &[&Rule] = &[$(&$constant),*];
    };
}

rules! {
    TORN_LINE, "torn-line", Error, false,
        "The line ends in the middle of an object; it is passed over.";
    BAD_JSON, "bad-json", Error, false,
        "The line begins like an object and is none; it is passed over.";
    NOT_AN_OBJECT, "not-an-object", Error, false,
        "The line is no JSON object; it is passed over.";
    INVALID_UTF8, "invalid-utf8", Error, false,
        "The line has bytes that are not UTF-8; it is passed over.";
    TOO_DEEP, "too-deep", Error, false,
        "The line's arrays and objects are nested more than 1000 deep; it is passed over.";
    NUL_BYTES, "nul-bytes", Warning, true,
        "NUL bytes stand before, after or between the line's objects, as a crash of the machine leaves them.";
    FUSED_LINE, "fused-line", Note, true,
        "A line holds several whole records, or a whole one behind a torn one; they are kept.";
    BAD_RECORD, "bad-record", Error, false,
        "A record of a known type lacks a member, or a member has the wrong kind; it is passed over.";
    LINE_CHANGED, "line-changed", Error, false,
        "A record's id does not fit its line: the line was changed after it was written.";
    LINE_PUT_IN, "line-put-in", Error, false,
        "A record's id does not fit, and the next one fits without it: the line was put in.";
    LINES_SWAPPED, "lines-swapped", Error, false,
        "A record's id fits behind the next line, and that one's in its place: the two were swapped.";
    LINE_MISSING, "line-missing", Error, false,
        "A record's id does not fit the line before it: a line between them was removed.";
    ID_TWICE, "id-twice", Warning, true,
        "Two records have one id; view records that name it mean the later one.";
    NAME_TWICE, "name-twice", Note, true,
        "A record has a member twice; the last one counts.";
    LONE_SURROGATE, "lone-surrogate", Note, true,
        "A string holds half a surrogate pair; U+FFFD is sent in its place.";
    UNKNOWN_TARGET, "unknown-target", Error, false,
        "A retraction, or a summary in the place of another, names a record that is not there.";
    UNKNOWN_FIRST_KEPT, "unknown-first-kept", Error, false,
        "A compaction's first kept record is not before it; the compaction is not applied.";
    TRUNCATION_MISMATCH, "truncation-mismatch", Warning, true,
        "A truncation does not fit the result that it names; the result is shown whole.";
    EMPTY_MESSAGE, "empty-message", Note, true,
        "A user record says nothing; it is left out.";
    CALL_TWICE, "call-twice", Warning, true,
        "A call comes twice in one reply and differs; the first is kept.";
    RESULT_TWICE, "result-twice", Warning, true,
        "A call has a second result, or one that comes too late by far; it is left out.";
    LATE_RESULT, "late-result", Note, true,
        "A result comes after the talk went on; it is moved to its call.";
    ORPHAN_RESULT, "orphan-result", Warning, true,
        "A result has no call, or stands before one that has another after it; it is left out.";
    OPEN_CALL, "open-call", Warning, true,
        "A call in the middle has no result; it gets one that says so.";
    MISPLACED_BLOCK, "misplaced-block", Warning, true,
        "A block stands in a record of a role that cannot say it; it is left out.";
    UNSIGNED_THINKING, "unsigned-thinking", Note, true,
        "A thinking block has no signature, or was redacted and no longer fits it; it is left out.";
    FINAL_THINKING, "final-thinking", Note, true,
        "A reply ends in thinking, as one does whose tokens ran out; that thinking is left out.";
    OPEN_AT_END, "open-at-end", Note, false,
        "A call at the end has no result yet: the turn is not finished.";
    REFUSED, "refused", Error, false,
        "What rebuild gives would be refused by a provider. This is a defect of rebuild.";
    OPEN_MODE, "open-mode", Note, false,
        "Others than the owner may read or write the file.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_each_is_used_once() {
        for rule in ALL {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(rule.name.chars().all(is_word), "{}", rule.name);
            assert_eq!(ALL.iter().filter(|other| other.name == rule.name).count(), 1);
            assert!(rule.meaning.ends_with('.'));
        }
    }
}
