//! Laws for the messages that are rebuilt from any bytes.

use super::any::{Law, is_sound, lines, only_grows, rebuild, rebuild_all, same};
use super::view;
use clawutils::dialect;
use clawutils::exit::{self, Exit};
use clawutils::input::Input;
use clawutils::input::line::LineObject;
use clawutils::input::lines::Lines;
use clawutils::messages::rebuild::{RebuildOptions, Rebuilt, from_inputs};
use clawutils::record;

/// Checks all laws for any transcript. Returns the rebuilt messages, or `None` if the transcript has lines of
/// another program's format and cannot be read.
pub fn check(bytes: &[u8]) -> Result<Option<Rebuilt>, String> {
    let input = Input::memory("t", bytes.to_vec());
    let rebuilt = match from_inputs(std::slice::from_ref(&input), &RebuildOptions::default()) {
        Ok(rebuilt) => rebuilt,
        Err(error) if has_tree(&input) && exit::status(&error) == Exit::Data => return Ok(None),
        Err(error) => return Err(format!("rebuild failed: {error:#}")),
    };
    is_sound(&rebuilt.messages)?;
    for found in rebuilt.findings.iter() {
        if found.place.offset + found.place.length > input.length {
            return Err(format!("a finding has the wrong position: {found}"));
        }
    }
    view::is_found(bytes)?;
    let expected = lines(&rebuilt.messages);
    same("rebuilt a second time", &lines(&rebuild(bytes)?.messages), &expected)?;
    let ends = line_ends(bytes);
    let parts = ends.get(ends.len() / 2).map(|middle| bytes.split_at(*middle));
    // A byte order mark is ignored only at the beginning of an input.
    if let Some((one, other)) = parts.filter(|(_, other)| !other.starts_with(b"\xEF\xBB\xBF")) {
        let inputs = [one, other].map(|part| Input::memory("t", part.to_vec()));
        same("split into two inputs", &lines(&rebuild_all(&inputs)?.messages), &expected)?;
    }
    // Only two of the line ends are tried, because trying each would take too long.
    let chosen = bytes.len() % ends.len().max(1);
    for end in ends.get(chosen).into_iter().chain(ends.last()) {
        check_only_end_changes(&input, bytes, *end, &rebuilt)?;
    }
    Ok(Some(rebuilt))
}

/// Checks that the messages are sound with each of several options.
pub fn check_each_option(bytes: &[u8]) -> Law {
    let options = RebuildOptions::default();
    for options in [
        RebuildOptions { ignore_compactions: true, ..options.clone() },
        RebuildOptions { limit_turns: Some(1), ..options.clone() },
        RebuildOptions { to_turn: Some(1), ..options },
    ] {
        let inputs = [Input::memory("t", bytes.to_vec())];
        if let Ok(rebuilt) = from_inputs(&inputs, &options) {
            is_sound(&rebuilt.messages).map_err(|why| format!("{options:?}: {why}"))?;
        }
    }
    Ok(())
}

/// Returns the end of each line that is followed by another line.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    let feeds = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1);
    feeds.filter(|end| *end < bytes.len()).collect()
}

/// Returns true if `has` accepts an object in the lines from byte `from` on.
fn any_object(input: &Input, from: u64, has: impl Fn(LineObject<'_>) -> bool) -> bool {
    let mut lines = Lines::new(std::slice::from_ref(input), from..input.length);
    while let Some(batch) = lines.batch().expect("memory can be read") {
        if batch.flatten().any(&has) {
            return true;
        }
    }
    false
}

fn has_tree(input: &Input) -> bool {
    any_object(input, 0, |line| dialect::foreign_tree(&line.object).is_some())
}

/// Checks that the bytes after `cut` only add messages or extend the last one. Checks nothing if there is a view record
/// among these bytes.
fn check_only_end_changes(input: &Input, bytes: &[u8], cut: usize, now: &Rebuilt) -> Law {
    let is_view = |line: LineObject<'_>| record::parse(&line.object).is_ok_and(|it| it.is_view());
    if any_object(input, cut as u64, is_view) {
        return Ok(());
    }
    let then = rebuild(&bytes[..cut])?;
    only_grows(&then.messages, &now.messages)
        .map_err(|why| format!("the bytes from {cut} on change earlier messages: {why}"))
}
