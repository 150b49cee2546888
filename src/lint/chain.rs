//! The chain of ids: every id is a hash over its own line and the line before it.
//!
//! Each change to the file is reported as one finding:
//!
//! - A changed line matches neither its own id nor the id of the next line.
//! - An inserted line has no id or does not match it, and the next line matches if the inserted one is left out.
//! - Where a line was removed, only the id of the next line does not match.
//! - Of two swapped lines, the second matches if the first is left out, and the first matches if it comes after the
//!   second.
//!
//! A line is checked only if it begins with an id in the form that `claw-append` writes (16 hexadecimal digits) and
//! is not the header of a session. The line after an unchecked one can still be checked. A damaged line, and the line
//! after it, are not reported, because the parser already reports the damage.

use crate::finding::rules::{self, Rule};
use crate::finding::{Finding, Findings, Place};
use crate::id::Id;
use crate::input::Input;
use crate::input::block::BLOCK;
use crate::input::line::{Line, LineObject, read_line};
use crate::json::Object;
use crate::json::write::opening;
use crate::messages::rebuild::read_record;
use crate::record::{self, LineHash};
use anyhow::Context;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};

/// Checks the ids in an input.
///
/// # Errors
/// Fails if the input cannot be read.
pub fn check(input: &Input) -> anyhow::Result<Findings> {
    let mut lines = ChainLines::of(input);
    let mut findings = Findings::default();
    // The number of following lines whose mismatch is part of an earlier finding.
    let mut explained = 0;
    for index in 0.. {
        if !lines.move_to(index).with_context(|| format!("cannot read '{}'", input.name))? {
            break;
        }
        let is_explained = explained > 0;
        explained = usize::saturating_sub(explained, 1);
        if is_explained
            || lines.fits(index, lines.before(index)).unwrap_or(true)
            || lines.is_damaged(index)
            || index.checked_sub(1).is_some_and(|before| lines.is_damaged(before))
        {
            continue;
        }
        let (rule, at) = lines.diagnose(index);
        explained = match *rule {
            _ if at < index => 0,
            rules::LINE_MISSING => 0,
            rules::LINES_SWAPPED => 2,
            _ => 1,
        };
        let number = at as u64 + 1;
        let HeldLine { offset, ref bytes } = lines.held[at - lines.first];
        let length = bytes.len() as u64;
        let place = Place { input: input.name.clone(), line: Some(number), offset, length };
        let id = lines.sealed(at).map(|sealed| Id::from(sealed.id));
        findings.push(Finding { rule, place, id, message: message(rule, number) });
    }
    Ok(findings)
}

fn message(rule: &Rule, line: u64) -> String {
    if *rule == rules::LINE_INSERTED {
        format!("line {line} was inserted later: without it, the id of the next line matches")
    } else if *rule == rules::LINES_SWAPPED {
        format!("lines {line} and {} were swapped", line + 1)
    } else if *rule == rules::LINE_MISSING {
        format!(
            "a line is missing before line {line}, or line {line} was changed before the next line was appended"
        )
    } else {
        format!("line {line} was changed, or it is the last one and a line before it is missing")
    }
}

/// Checks the ids while the lines are read. If all of them match, [`check`] need not run, because it would find
/// nothing.
#[derive(Default)]
pub struct RunningChain {
    /// The hash of the previous line, from which the id of the next line is computed; `None` if the previous line
    /// has no id.
    before: Option<LineHash>,
    /// The offset at which the next line begins.
    next: u64,
    is_broken: bool,
}

impl RunningChain {
    /// Takes the next line.
    pub fn take(&mut self, line: &Line<'_>) {
        // Leave every line that is not exactly one object to `check`. Blank lines are never passed in; the gap in the
        // offsets reveals them, and they are left to `check` as well.
        let whole =
            line.as_ref().ok().filter(|it| it.object.text().len() as u64 == it.place.length);
        let Some(LineObject { object, place, .. }) = whole.filter(|_| !self.is_broken) else {
            self.is_broken = true;
            return;
        };
        let text = object.text();
        // A line without an id is not hashed, because the next line usually has no id either. If it has one, that is
        // left to `check`.
        let (before, is_fit) = match (Sealed::of(text), self.before()) {
            (Some(sealed), Some(before)) => {
                let (id, next) = before.next(text, sealed.rest);
                (Some(next), id == sealed.id || is_session(text))
            }
            (sealed, _) => {
                let has_id = text.starts_with(opening!("id"));
                let next = has_id.then(|| LineHash::of(text.as_bytes()));
                (next, sealed.is_none() || is_session(text))
            }
        };
        self.is_broken = place.offset != self.next || !is_fit;
        self.next = place.offset + place.length + 1;
        self.before = before;
    }

    /// Takes the hash of the previous line, if it was hashed.
    fn before(&mut self) -> Option<LineHash> {
        let first = || (self.next == 0).then(LineHash::default);
        self.before.take().or_else(first)
    }

    /// Returns true if every id matches.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        !self.is_broken
    }
}

/// The lines of an input around the one that is checked.
struct ChainLines<'i> {
    reader: BufReader<InputReader<'i>>,
    /// The lines in memory: the one that is checked, and up to two before and two after it.
    held: VecDeque<HeldLine>,
    /// The index of the first line in `held`.
    first: usize,
    /// The offset at which the next line begins.
    next: u64,
}

/// A line in memory.
#[derive(Default)]
struct HeldLine {
    offset: u64,
    /// Its bytes, without the line feed.
    bytes: Vec<u8>,
}

impl<'i> ChainLines<'i> {
    fn of(input: &'i Input) -> ChainLines<'i> {
        let reader = BufReader::with_capacity(BLOCK, InputReader { input, offset: 0 });
        ChainLines { reader, held: VecDeque::new(), first: 0, next: 0 }
    }

    /// Reads the lines around the line at `index`, which must not be less than in the call before. Returns false if
    /// there is no such line.
    fn move_to(&mut self, index: usize) -> io::Result<bool> {
        while self.first + self.held.len() <= index + 2 {
            let is_past = self.first + 2 < index && !self.held.is_empty();
            let mut line = if is_past { self.drop_first() } else { HeldLine::default() };
            line.bytes.clear();
            let length = self.reader.read_until(b'\n', &mut line.bytes)?;
            if length == 0 {
                break;
            }
            if line.bytes.last() == Some(&b'\n') {
                line.bytes.pop();
            }
            line.offset = self.next;
            self.next += length as u64;
            self.held.push_back(line);
        }
        Ok(index < self.first + self.held.len())
    }

    /// Removes the first line and returns it, so that its memory can be reused.
    fn drop_first(&mut self) -> HeldLine {
        self.first += 1;
        self.held.pop_front().unwrap_or_default()
    }

    fn line(&self, index: usize) -> Option<&[u8]> {
        let line = self.held.get(index.checked_sub(self.first)?)?;
        Some(&line.bytes)
    }

    fn sealed(&self, index: usize) -> Option<Sealed<'_>> {
        self.line(index).and_then(Sealed::read)
    }

    /// Returns the line before the line at `index`; an empty one for the first line.
    fn before(&self, index: usize) -> &[u8] {
        index.checked_sub(1).and_then(|before| self.line(before)).unwrap_or_default()
    }

    /// Returns true if the line's id matches with `before` as the previous line; `None` if the line has no id to
    /// check.
    fn fits(&self, index: usize, before: &[u8]) -> Option<bool> {
        self.sealed(index).map(|sealed| sealed.fits(before))
    }

    /// Returns true if the parser reports the line.
    fn is_damaged(&self, index: usize) -> bool {
        let Some(HeldLine { offset, bytes }) = self.held.get(index - self.first) else {
            return false;
        };
        let (offset, length) = (*offset, bytes.len() as u64);
        let place = Place { input: "".into(), line: None, offset, length };
        let is_finding = |line| matches!(read_record(line, &mut 0), Ok(Err(_)));
        read_line(bytes, place, 0).into_iter().any(is_finding)
    }

    /// Finds the cause of a mismatch at the line `index`: the rule, and the index of the line to report.
    fn diagnose(&self, index: usize) -> (&'static Rule, usize) {
        let (line, before) = (self.before(index + 1), self.before(index));
        if let Some(other) = index.checked_sub(1)
            && self.sealed(other).is_none()
            && self.fits(index, self.before(other)) == Some(true)
        {
            return (&rules::LINE_INSERTED, other);
        }
        let rule = match self.fits(index + 1, before) {
            Some(true) if self.is_swapped(index) => &rules::LINES_SWAPPED,
            Some(true) => &rules::LINE_INSERTED,
            _ if self.fits(index + 1, line) == Some(true) => &rules::LINE_MISSING,
            _ => &rules::LINE_CHANGED,
        };
        (rule, index)
    }

    /// Returns true if the line and the next one were swapped: this line matches after the next one, and the line
    /// after both matches after this line.
    fn is_swapped(&self, index: usize) -> bool {
        self.fits(index, self.before(index + 2)) == Some(true)
            && self.fits(index + 2, self.before(index + 1)).unwrap_or(true)
    }
}

/// Reads the bytes of an input in order.
struct InputReader<'i> {
    input: &'i Input,
    offset: u64,
}

impl Read for InputReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Returns true if a line is the header of a session. Its id names the session and is not a hash.
fn is_session(text: &str) -> bool {
    Object::parse(text).is_ok_and(|object| object.string("type").as_deref() == Some("session"))
}

/// A line that begins with an id in the form that `claw-append` writes.
struct Sealed<'a> {
    id: &'a str,
    /// The rest of the line, after the id member.
    rest: &'a str,
}

impl<'a> Sealed<'a> {
    fn read(line: &'a [u8]) -> Option<Sealed<'a>> {
        let text = std::str::from_utf8(line).ok()?;
        Sealed::of(text).filter(|_| !is_session(text))
    }

    /// Splits a line. The caller must check that the line is not the header of a session.
    fn of(text: &'a str) -> Option<Sealed<'a>> {
        let (id, rest) = text.strip_prefix(concat!(opening!("id"), "\""))?.split_once("\",")?;
        let is_ours = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_ours.then_some(Sealed { id, rest })
    }

    fn fits(&self, before: &[u8]) -> bool {
        record::id(before, self.rest) == self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five records as `claw-append` writes them.
    fn lines() -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for number in 0..5 {
            let previous = lines.last().map(|line| line.as_bytes()).unwrap_or_default();
            let text = format!(r#"{{"type":"user","content":"{number}"}}"#);
            lines.push(record::seal(&text, previous, "1").unwrap());
        }
        lines
    }

    fn found(lines: &[String]) -> Vec<(&'static str, u64)> {
        let input = Input::memory("t", (lines.join("\n") + "\n").into_bytes());
        let line = |finding: &Finding| finding.place.line.unwrap();
        check(&input).unwrap().iter().map(|found| (found.rule.name, line(found))).collect()
    }

    #[test]
    fn an_intact_chain_has_no_findings() {
        assert_eq!(found(&lines()), []);
    }

    #[test]
    fn one_change_is_one_finding_with_its_line() {
        for at in 0..5 {
            let mut changed = lines();
            changed[at] = changed[at].replace("content\":\"", "content\":\"x");
            assert_eq!(found(&changed), [("line-changed", at as u64 + 1)]);

            let mut inserted = lines();
            inserted.insert(at, changed[at].replace("\"1", "\"2"));
            assert_eq!(found(&inserted), [("line-inserted", at as u64 + 1)]);

            let mut removed = lines();
            removed.remove(at);
            match at {
                // No id covers the last line.
                4 => assert_eq!(found(&removed), []),
                3 => assert_eq!(found(&removed), [("line-changed", 4)]),
                _ => assert_eq!(found(&removed), [("line-missing", at as u64 + 1)]),
            }
        }
    }

    #[test]
    fn two_swapped_lines_are_one_finding() {
        for at in 0..4 {
            let mut swapped = lines();
            swapped.swap(at, at + 1);
            assert_eq!(found(&swapped), [("lines-swapped", at as u64 + 1)]);
        }
        // A copy of line `at + 1` inserted before line `at` looks like the first of two swapped lines: it matches
        // after line `at`. But the line after both does not match after the copy.
        for at in 0..3 {
            let mut copied = lines();
            copied.insert(at, copied[at + 1].clone());
            assert_eq!(found(&copied), [("line-inserted", at as u64 + 1)]);
        }
    }

    #[test]
    fn an_inserted_line_without_an_id_is_reported_at_its_own_place() {
        for at in 0..5 {
            let mut inserted = lines();
            inserted.insert(at, r#"{"type":"user","content":"foreign"}"#.to_owned());
            assert_eq!(found(&inserted), [("line-inserted", at as u64 + 1)]);
        }
    }

    #[test]
    fn lines_that_the_parser_reported_are_not_reported_again() {
        for at in 0..5 {
            let mut torn = lines();
            torn[at].truncate(40);
            assert_eq!(found(&torn), []);
        }
    }

    #[test]
    fn the_next_id_covers_a_line_without_an_id() {
        let mut lines = vec![r#"{"type":"user","content":"foreign"}"#.to_owned()];
        let text = r#"{"type":"user","content":"ours"}"#;
        lines.push(record::seal(text, lines[0].as_bytes(), "1").unwrap());
        assert_eq!(found(&lines), []);
        lines[0].push(' ');
        assert_eq!(found(&lines), [("line-changed", 2)]);
    }
}
