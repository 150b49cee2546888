//! The beginning of a session before its damage.

use super::program::{Part, PartKind, Program};
use super::sheet::Sheet;
use super::{Options, lines, mend};
use crate::record::content::Role;

/// The most places where the session is cut to see whether the beginning is sound.
const MOST_CUTS: usize = 100;

/// Returns the length of the longest beginning of `bytes` that ends before line `damaged` and after a complete turn, and
/// in which nothing is wrong.
pub(super) fn length(
    program: &dyn Program,
    bytes: &[u8],
    name: &str,
    damaged: u64,
) -> Option<usize> {
    let sheet = Sheet::new(bytes, lines::read);
    let ends = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1);
    let ends: Vec<usize> = std::iter::once(0).chain(ends).collect();
    // A record that lacks something may be long before the line that shows it, so earlier turns are tried, too.
    let prompts = (1..damaged as usize).rev().filter(|row| is_prompt(program, sheet.text(*row)));
    let is_damage_first = usize::try_from(damaged).ok().and_then(|line| line.checked_sub(1));
    let cuts = is_damage_first.into_iter().chain(prompts).take(MOST_CUTS);
    cuts.filter_map(|line| ends.get(line).copied()).find(|end| {
        let part = &bytes[..*end];
        let mended = mend(program, part, name, Options::default());
        let is_right = mended.is_ok_and(|mended| mended.edits().is_empty());
        *end > 0 && is_right && is_complete(program, part)
    })
}

/// Returns true if a record is a prompt of the user.
fn is_prompt(program: &dyn Program, text: &str) -> bool {
    program.said(text).is_some_and(|said| {
        let is_result = |kind: &PartKind<'_>| matches!(kind, PartKind::Result(_));
        said.role == Role::User && !said.parts.iter().any(|part| is_result(&part.kind))
    })
}

/// Returns true if the last record that is sent ends a reply: it has no call, and not only thinking.
fn is_complete(program: &dyn Program, bytes: &[u8]) -> bool {
    let sheet = Sheet::new(bytes, lines::read);
    let last = sheet.records().rev().find_map(|(row, _)| program.said(sheet.text(row)));
    last.is_some_and(|said| {
        let is_call = |part: &Part<'_>| matches!(part.kind, PartKind::Call(_));
        let ends = said.parts.last().is_some_and(|part| part.kind == PartKind::Other);
        said.role == Role::Assistant && ends && !said.parts.iter().any(is_call)
    })
}
