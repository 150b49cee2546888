//! The linter: everything that is wrong in a transcript, whether or not rebuild mends it.

use super::rules::{self, Rule};
use super::{Finding, Place, Severity, chain, messages};
use crate::exit::Exit;
use crate::json::{Member, Object};
use crate::jsonl::{self, Line, Lines};
use crate::messages::rebuild::{self, Options};
use crate::source::Input;
use anyhow::Context;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

/// Checks one transcript. Findings come in the order of the file.
///
/// # Errors
/// When it cannot be read; 65 when it is of a dialect that cannot be read.
pub fn lint(input: Input) -> anyhow::Result<Vec<Finding>> {
    let cannot_read = || format!("cannot read '{}'", input.name);
    let mut findings = chain::check(&input).with_context(cannot_read)?;
    findings.extend(check_lines(&input).with_context(cannot_read)?);
    let inputs = [input];
    let rebuilt = rebuild::from_inputs(&inputs, &Options::default())?;
    findings.extend(rebuilt.findings);
    findings.sort_by_key(|finding| finding.place.offset);
    let [input] = inputs;
    let end = Place { input: input.name, line: None, offset: input.length, length: 0 };
    for broken in messages(&rebuilt.messages) {
        let rule = match (broken.unfinished, broken.rule) {
            (true, "open-call") => &rules::OPEN_AT_END,
            // A conversation may well end on the assistant, or not have begun.
            (true, _) => continue,
            (false, _) => &rules::REFUSED,
        };
        let message = broken.to_string();
        findings.push(Finding { rule, place: end.clone(), id: None, message });
    }
    Ok(findings)
}

/// What can be told from a line alone, and from the ids of those before it.
fn check_lines(input: &Input) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut ids = HashSet::new();
    let mut lines = Lines::new(input, 0, input.length);
    let mut each = |line: Line<'_>| {
        if let Line::Object { object, place, .. } = line {
            check_object(&object, place, &mut ids, &mut findings);
        }
    };
    while lines.next(|line, place| jsonl::read_line(line, place, &mut each))? {}
    Ok(findings)
}

fn check_object(
    object: &Object<'_>,
    place: Place,
    ids: &mut HashSet<String>,
    findings: &mut Vec<Finding>,
) {
    let own = object.string("id").map(|id| id.into_owned());
    let id = own.clone().unwrap_or_else(|| format!("@{}", place.offset));
    let mut find = |rule: &'static Rule, message: String| {
        findings.push(Finding { rule, place: place.clone(), id: own.clone(), message });
    };
    if !ids.insert(id.clone()) {
        find(&rules::ID_TWICE, format!("id '{id}' was used before"));
    }
    for name in names_twice(object) {
        find(&rules::NAME_TWICE, format!("member '{name}' comes twice; the last one counts"));
    }
}

fn names_twice<'a>(object: &Object<'a>) -> Vec<Cow<'a, str>> {
    let mut names = HashSet::new();
    let members = object.members().iter().map(Member::name);
    members.filter(|name| !names.insert(name.clone())).collect()
}

/// The status for what was found: 65 if bytes cannot be used, 1 if something had to be mended, else 0.
#[must_use]
pub fn status(findings: &[Finding]) -> Exit {
    match findings.iter().map(|finding| finding.rule.severity).max() {
        Some(Severity::Error) => Exit::Data,
        Some(Severity::Warning) => Exit::Failed,
        Some(Severity::Note) | None => Exit::Done,
    }
}
