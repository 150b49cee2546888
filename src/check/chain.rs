//! Ids as a chain: every id covers its own line and the one before.
//!
//! One damage is one finding. A line that was changed fits neither itself nor the next one; one that
//! was put in fits nothing, and the next one fits without it; where one was removed, only the one
//! after it does not fit. Lines that were not sealed by `claw-append` (no 16-digit id in front) are
//! links without a lock: they cannot be checked themselves, but what follows them can.

use super::rules::{self, Rule};
use super::{Finding, Place};
use crate::record;
use crate::source::Input;
use std::io;

/// Checks the ids in an input.
///
/// # Errors
/// When it cannot be read.
pub fn check(input: &Input) -> io::Result<Vec<Finding>> {
    let bytes = input.bytes()?;
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let mut findings = Vec::new();
    let mut is_explained = false;
    let mut offset = 0;
    for (index, line) in lines.iter().enumerate() {
        let before = index.checked_sub(1).map_or(&b""[..], |before| lines[before]);
        let was_explained = std::mem::replace(&mut is_explained, false);
        if let Some(sealed) = Sealed::read(line)
            && !sealed.fits(before)
            && !was_explained
        {
            let next = lines.get(index + 1).and_then(|next| Sealed::read(next));
            let rule = diagnose(line, before, next.as_ref());
            is_explained = rule != &rules::LINE_MISSING;
            let length = line.len() as u64;
            let number = index as u64 + 1;
            let place = Place { input: input.name.clone(), line: Some(number), offset, length };
            let id = Some(sealed.id.to_owned());
            findings.push(Finding { rule, place, id, message: message(rule, number) });
        }
        offset += line.len() as u64 + 1;
    }
    Ok(findings)
}

/// What happened to a line that does not fit the one before it.
fn diagnose(line: &[u8], before: &[u8], next: Option<&Sealed<'_>>) -> &'static Rule {
    match next {
        Some(next) if next.fits(before) => &rules::LINE_PUT_IN,
        Some(next) if next.fits(line) => &rules::LINE_MISSING,
        _ => &rules::LINE_CHANGED,
    }
}

fn message(rule: &Rule, line: u64) -> String {
    if *rule == rules::LINE_PUT_IN {
        format!("line {line} was put in: the next one was written after the one before it")
    } else if *rule == rules::LINE_MISSING {
        format!("a line is missing before line {line}")
    } else {
        format!("line {line} was changed, or is the last of lines of which one is missing")
    }
}

/// A line with an id of ours in front.
struct Sealed<'a> {
    id: &'a str,
    /// The line without its id member.
    body: String,
}

impl<'a> Sealed<'a> {
    fn read(line: &'a [u8]) -> Option<Sealed<'a>> {
        let text = std::str::from_utf8(line).ok()?;
        let (id, rest) = text.strip_prefix("{\"id\":\"")?.split_once("\",")?;
        let is_ours = id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_ours.then(|| Sealed { id, body: format!("{{{rest}") })
    }

    fn fits(&self, before: &[u8]) -> bool {
        record::id(before, &self.body) == self.id
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
    fn a_whole_chain_is_whole() {
        assert_eq!(found(&lines()), []);
    }

    #[test]
    fn one_damage_is_one_finding_with_its_line() {
        for at in 0..5 {
            let mut changed = lines();
            changed[at] = changed[at].replace("content", "contend");
            assert_eq!(found(&changed), [("line-changed", at as u64 + 1)]);

            let mut put_in = lines();
            put_in.insert(at, changed[at].replace("\"1", "\"2"));
            assert_eq!(found(&put_in), [("line-put-in", at as u64 + 1)]);

            let mut removed = lines();
            removed.remove(at);
            match at {
                // Nothing stands after the last line that could tell.
                4 => assert_eq!(found(&removed), []),
                3 => assert_eq!(found(&removed), [("line-changed", 4)]),
                _ => assert_eq!(found(&removed), [("line-missing", at as u64 + 1)]),
            }
        }
    }

    #[test]
    fn lines_of_others_are_links_too() {
        let mut lines = vec![r#"{"type":"user","content":"foreign"}"#.to_owned()];
        let text = r#"{"type":"user","content":"ours"}"#;
        lines.push(record::seal(text, lines[0].as_bytes(), "1").unwrap());
        assert_eq!(found(&lines), []);
        lines[0].push(' ');
        assert_eq!(found(&lines), [("line-changed", 2)]);
    }
}
