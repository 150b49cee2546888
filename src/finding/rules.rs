//! The rules that an input can break, and what each means. `claw-check --rules` prints this table, and
//! claw-check(1) documents it.

use super::Severity::{self, Error, Note, Warning};
use std::fmt;

/// A rule that an input can break.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The name, in kebab case.
    pub name: &'static str,
    /// The severity of a finding of this rule.
    pub severity: Severity,
    /// True if claw-rebuild repairs the problem.
    pub repaired: bool,
    /// The problem and its effect, in one sentence.
    pub meaning: &'static str,
}

impl fmt::Display for Rule {
    /// Writes a line of the table: name, severity, `repaired` or `-`, and meaning, separated by tabs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repaired = if self.repaired { "repaired" } else { "-" };
        write!(f, "{}\t{}\t{repaired}\t{}", self.name, self.severity.name(), self.meaning)
    }
}

macro_rules! rules {
    ($($constant:ident, $name:literal, $severity:ident, $repaired:literal, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub const $constant: Rule =
                Rule { name: $name, severity: $severity, repaired: $repaired, meaning: $meaning };
        )*
        /// All rules, in the order of the stages that check them.
        pub const ALL: &[&Rule] = &[$(&$constant),*];
    };
}

rules! {
    TORN_LINE, "torn-line", Error, false,
        "The line ends in the middle of an object; it is skipped.";
    BAD_JSON, "bad-json", Error, false,
        "The line begins like an object but is not valid JSON; it is skipped.";
    NOT_AN_OBJECT, "not-an-object", Error, false,
        "The line is not a JSON object; it is skipped.";
    INVALID_UTF8, "invalid-utf8", Error, false,
        "The line contains bytes that are not UTF-8; it is skipped.";
    TOO_DEEP, "too-deep", Error, false,
        "The line's arrays and objects are nested more than 1000 levels deep; it is skipped.";
    NUL_BYTES, "nul-bytes", Warning, true,
        "There are NUL bytes before, after or between the line's objects, as after a system crash.";
    FUSED_LINE, "fused-line", Note, true,
        "A line has several complete records, or a complete one after a torn one; complete records are kept.";
    BAD_RECORD, "bad-record", Error, false,
        "A record of a known type lacks a member, or a member has the wrong type; the record is skipped.";
    LINE_CHANGED, "line-changed", Error, false,
        "A record's id does not match its line: the line was changed after it was written.";
    LINE_INSERTED, "line-inserted", Error, false,
        "The next record's id matches only if this line is left out: the line was inserted later.";
    LINES_SWAPPED, "lines-swapped", Error, false,
        "The ids of two neighbouring lines match in the opposite order: the lines were swapped.";
    LINE_MISSING, "line-missing", Error, false,
        "A record's id does not match the line before it: a line between them was removed.";
    DUPLICATE_ID, "duplicate-id", Warning, true,
        "Two records have the same id; view records that name it refer to the later one.";
    DUPLICATE_MEMBER, "duplicate-member", Note, true,
        "A record has the same member twice; the last one is used.";
    LONE_SURROGATE, "lone-surrogate", Note, true,
        "A string contains half of a surrogate pair; U+FFFD is sent in its place.";
    IMPLAUSIBLE_COUNT, "implausible-count", Note, false,
        "A provider's count of tokens is negative, a fraction or more than a billion; the call is not counted.";
    UNKNOWN_VERSION, "unknown-version", Warning, false,
        "Another program wrote the transcript in a newer version of its format; it is read as the newest known one.";
    UNKNOWN_TYPE, "unknown-type", Warning, false,
        "In another program's transcript, records that may change the messages are skipped, because their type is not known; there is one finding for each type.";
    SYSTEM_PROMPT, "system-prompt", Note, false,
        "Messages of another program contain a system prompt; it does not become a message.";
    MISSING_BASE, "missing-base", Error, false,
        "Another program's transcript continues another file, which cannot be read.";
    MISSING_PARENT, "missing-parent", Error, false,
        "In another program's transcript, the parent of a record does not exist; reading begins at the record.";
    PARENT_CYCLE, "parent-cycle", Error, false,
        "In another program's transcript, a record's parent is also its descendant; reading begins at the record.";
    OTHER_BRANCH, "other-branch", Note, false,
        "In another program's transcript, there is a branch that does not lead to the chosen leaf; it is not read.";
    OTHER_ROOT, "other-root", Note, false,
        "In another program's transcript, there is a branch with its own first record; it is not read.";
    UNKNOWN_TARGET, "unknown-target", Error, false,
        "A retraction, a change of the context, or a summary that replaces another, names a record that does not exist.";
    UNKNOWN_FIRST_KEPT, "unknown-first-kept", Error, false,
        "The first record that a compaction keeps is not before it; the compaction is not applied.";
    TRUNCATION_MISMATCH, "truncation-mismatch", Warning, true,
        "A truncation does not match the tool result that it names; the result is not truncated.";
    EMPTY_MESSAGE, "empty-message", Note, true,
        "A user record has no content; it is left out.";
    DUPLICATE_CALL, "duplicate-call", Warning, true,
        "A reply has two different tool calls with the same id; the first one is kept.";
    DUPLICATE_RESULT, "duplicate-result", Warning, true,
        "A tool result is the second one for its call, or comes too late to be moved to its call; it is left out.";
    LATE_RESULT, "late-result", Note, true,
        "A tool result comes after later messages; it is moved to its call.";
    ORPHAN_RESULT, "orphan-result", Warning, true,
        "A tool result has no call, or comes before a call that has another result after it; it is left out.";
    OPEN_CALL, "open-call", Warning, true,
        "A tool call has no result, although the conversation continues; it gets an error result.";
    MISPLACED_BLOCK, "misplaced-block", Warning, true,
        "A record contains a block that its role cannot have; the block is left out.";
    UNSIGNED_THINKING, "unsigned-thinking", Note, true,
        "A thinking block has no signature, or was redacted and no longer matches it; the block is left out.";
    FINAL_THINKING, "final-thinking", Note, true,
        "A reply ends in thinking, usually because it reached the token limit; the thinking is left out.";
    CALL_INPUT, "call-input", Note, true,
        "The input of a tool call is not a JSON object; it is sent as one.";
    CALL_NAME, "call-name", Note, true,
        "The name of a tool has characters that providers refuse, or is empty or too long; another name is sent.";
    FOREIGN_BLOCK, "foreign-block", Note, true,
        "A text or an image is in the form of OpenAI's APIs; it is sent in the usual form.";
    MEDIA_CORRECTED, "media-corrected", Note, true,
        "Providers refuse an image or a document as it is; it is corrected, or sent with fewer pixels.";
    MEDIA_LEFT_OUT, "media-left-out", Warning, true,
        "No provider accepts an image or a document; a line of text says what it was.";
    OPEN_AT_END, "open-at-end", Note, false,
        "A tool call at the end has no result yet: the turn is not finished.";
    REFUSED, "refused", Error, false,
        "A provider would refuse the rebuilt messages. This is a bug in claw-rebuild.";
    MORE_FINDINGS, "more-findings", Note, false,
        "There are more than 1000 findings of a rule; only the first 1000 are listed.";
    OPEN_MODE, "open-mode", Note, false,
        "Users other than the owner may read or write the file.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_kebab_case() {
        for rule in ALL {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(rule.name.chars().all(is_word), "{}", rule.name);
            assert_eq!(ALL.iter().filter(|other| other.name == rule.name).count(), 1);
            assert!(rule.meaning.ends_with('.'));
        }
    }
}
