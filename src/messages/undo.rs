//! Undo and redo: an undo retracts the newest cut or turn, or the cuts that did not help against a refusal, and a redo
//! retracts these retractions. A cut is a compaction, or a group of truncations and omissions that were appended together.
//!
//! The first record that an undo writes has the member `undo`, which separates consecutive undos.

use crate::exit::{Exit, fail};
use crate::finding::Findings;
use crate::input::backward::{Backward, Needles};
use crate::input::{self, Input};
use crate::json::Object;
use crate::json::write::Members;
use crate::messages::range::RebuildOptions;
use crate::messages::view::{self, View};
use crate::record::content::{Block, BlockKind};
use crate::record::{self, Body, Record};
use anyhow::Context;
use std::collections::HashSet;
use std::io::Write;

/// The part of the conversation to undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Undo {
    /// The newest cut in effect: the compaction that applies, or the newest group of truncations and omissions
    Cut,
    /// The newest prompt and everything after it
    Turn,
    /// All cuts since the first of the refusals of a block that the transcript ends with
    Refused,
}

impl Undo {
    /// The word that marks the first record of an undo.
    fn word(self) -> &'static str {
        match self {
            Undo::Cut => "cut",
            Undo::Turn => "turn",
            Undo::Refused => "refused",
        }
    }
}

/// Writes a `retract` record for each record to undo, the newest first.
///
/// # Errors
/// Fails with status 5 if there is nothing to undo or the turn is part of a summary, and with another status if an
/// input cannot be read or `out` cannot be written.
pub fn write(inputs: &[Input], undo: Undo, out: &mut impl Write) -> anyhow::Result<()> {
    retract(&targets(inputs, undo)?, Some(undo), out)
}

/// Writes a `retract` record for each retraction of the newest undo that is still in effect, the newest first.
///
/// # Errors
/// Fails with status 5 if there is nothing to redo, or if a message or a cut was added since the undo, and with another
/// status if an input cannot be read or `out` cannot be written.
pub fn write_redo(inputs: &[Input], out: &mut impl Write) -> anyhow::Result<()> {
    retract(&newest_undo(inputs)?, None, out)
}

fn retract(targets: &[String], undo: Option<Undo>, out: &mut impl Write) -> anyhow::Result<()> {
    let mut mark = undo.map(Undo::word);
    for target in targets {
        let record = Members::of_type("retract").string("target", target);
        let record = record.optional(Members::string, "undo", mark.take());
        out.write_all(record.into_line().as_bytes()).context("cannot write '<stdout>'")?;
    }
    Ok(())
}

fn targets(inputs: &[Input], undo: Undo) -> anyhow::Result<Vec<String>> {
    let view = view::find(inputs, &RebuildOptions::default(), false, &mut Findings::default())?;
    match undo {
        Undo::Cut => cut(inputs, &view),
        Undo::Turn => turn(inputs, &view),
        Undo::Refused => refused(inputs, &view),
    }
}

fn cut(inputs: &[Input], view: &View) -> anyhow::Result<Vec<String>> {
    let mut targets = Vec::new();
    // The offset of the oldest truncation or omission found so far.
    let mut begin = None;
    walk(inputs, &CUTS, |record| {
        if view.retracted.contains(record.id.as_ref()) {
            return true;
        }
        let is_next_to = begin.is_none_or(|begin| begin <= record.end + 1);
        let governs = view.compaction.as_ref().is_some_and(|it| it.id == record.id);
        match record.body {
            Body::Compaction { .. } if !governs => true,
            Body::Compaction { .. } if begin.is_none() => {
                targets.push(record.id.to_string());
                false
            }
            Body::Truncation { .. } | Body::Omission { .. } if is_next_to => {
                targets.push(record.id.to_string());
                begin = Some(record.offset);
                true
            }
            Body::Compaction { .. } | Body::Truncation { .. } | Body::Omission { .. } => false,
            _ => true,
        }
    })?;
    if targets.is_empty() {
        return fail(Exit::NoGain, "nothing to undo: no cut is in effect");
    }
    Ok(targets)
}

fn turn(inputs: &[Input], view: &View) -> anyhow::Result<Vec<String>> {
    let mut targets = Vec::new();
    let mut begin = None;
    walk(inputs, &MESSAGES, |record| {
        if view.retracted.contains(record.id.as_ref()) {
            return true;
        }
        if makes_message(&record.body) {
            targets.push(record.id.to_string());
        }
        begin = is_prompt(&record.body).then_some(record.offset);
        begin.is_none()
    })?;
    match begin {
        None => fail(Exit::NoGain, "nothing to undo: there is no prompt"),
        Some(begin) if begin < view.start => {
            let text = "cannot undo the newest turn: it is part of a summary; undo the cut first";
            fail(Exit::NoGain, text)
        }
        Some(_) => Ok(targets),
    }
}

fn refused(inputs: &[Input], view: &View) -> anyhow::Result<Vec<String>> {
    // The cuts before the oldest refusal so far are in `cuts`, those after it in `targets`.
    let (mut cuts, mut targets) = (Vec::new(), Vec::new());
    let needles = [&MESSAGES[..], &CUTS, &["\"error\"", "\"retract\""]].concat();
    walk(inputs, &needles, |record| match &record.body {
        Body::Error if is_of_a_block(record) => {
            targets.append(&mut cuts);
            true
        }
        Body::Compaction { .. } | Body::Truncation { .. } | Body::Omission { .. } => {
            if !view.retracted.contains(record.id.as_ref()) {
                cuts.push(record.id.to_string());
            }
            true
        }
        Body::Error | Body::Retract { .. } => false,
        body => !makes_message(body),
    })?;
    if targets.is_empty() {
        return fail(Exit::NoGain, "nothing to undo: no cut follows a refusal of a block");
    }
    Ok(targets)
}

/// Returns true for the record of a request that was refused because of a block.
fn is_of_a_block(error: &Record<'_>) -> bool {
    Object::parse(&error.text).is_ok_and(|it| it.string("fault").as_deref() == Some("block"))
}

/// A retraction after the last message or cut.
struct Retraction {
    id: String,
    target: String,
    /// True for the first record of an undo.
    begins: bool,
}

/// Returns the ids of the retractions that the newest undo wrote, the newest first. Skips those that are not in effect,
/// and retractions of retractions.
fn newest_undo(inputs: &[Input]) -> anyhow::Result<Vec<String>> {
    let view = view::find(inputs, &RebuildOptions::default(), false, &mut Findings::default())?;
    let last = last_retractions(inputs)?;
    let ids: HashSet<&str> = last.iter().map(|retraction| retraction.id.as_str()).collect();
    let holds = |retraction: &&Retraction| {
        !view.retracted.contains(&retraction.id) && !ids.contains(retraction.target.as_str())
    };
    let mut undone = Vec::new();
    for retraction in last.iter().filter(holds) {
        undone.push(retraction.id.clone());
        if retraction.begins {
            break;
        }
    }
    if undone.is_empty() {
        let text = "nothing to redo: nothing was undone since the last message or cut";
        return fail(Exit::NoGain, text);
    }
    Ok(undone)
}

/// Returns the retractions after the last message or cut, the newest first.
fn last_retractions(inputs: &[Input]) -> anyhow::Result<Vec<Retraction>> {
    let mut found = Vec::new();
    let needles = [&MESSAGES[..], &CUTS, &["\"retract\""]].concat();
    walk(inputs, &needles, |record| match &record.body {
        Body::Retract { target } => {
            let begins = Object::parse(&record.text).is_ok_and(|o| o.get("undo").is_some());
            found.push(Retraction { id: record.id.to_string(), target: target.clone(), begins });
            true
        }
        body => !body.is_view() && !makes_message(body),
    })?;
    Ok(found)
}

/// The types of records that make messages, as they are written in a line.
const MESSAGES: [&str; 4] = ["\"user\"", "\"assistant\"", "\"tool_use\"", "\"tool_result\""];

/// The types of records that cut.
const CUTS: [&str; 3] = ["\"compaction\"", "\"truncation\"", "\"omission\""];

/// Calls `each` with the records in lines that contain one of `needles`, the newest first, until it returns false.
fn walk(
    inputs: &[Input],
    needles: &[&'static str],
    mut each: impl FnMut(&Record<'_>) -> bool,
) -> anyhow::Result<()> {
    let needles = Needles::quoted(needles);
    let mut lines = Backward::new(inputs, input::total(inputs), &needles);
    while let Some(line) = lines.next_line()? {
        if !record::in_line(&line).iter().rev().all(&mut each) {
            break;
        }
    }
    Ok(())
}

/// Returns true if a record is part of a message, complete or interrupted.
fn makes_message(body: &Body<'_>) -> bool {
    body.is_message_part() || matches!(body, Body::Interrupted { .. })
}

/// Returns true for a prompt. User records of other programs may contain only tool results.
fn is_prompt(body: &Body<'_>) -> bool {
    let Body::User { content, .. } = body else { return false };
    let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::ToolResult { .. });
    content.blocks().is_empty() || !content.blocks().iter().all(is_result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a transcript of records with these ids. The first letter of an id is the type of the record.
    fn transcript(ids: &str) -> String {
        let line = |id: &str| {
            let members = match &id[..1] {
                "u" => r#""type":"user","content":"hi""#.to_owned(),
                "a" => r#""type":"assistant","content":"yes""#.to_owned(),
                "i" => r#""type":"assistant","content":"ye","interrupted":true"#.to_owned(),
                "c" => r#""type":"tool_use","tool_use_id":"c","name":"f","input":{}"#.to_owned(),
                "r" => r#""type":"tool_result","tool_use_id":"c","content":"out""#.to_owned(),
                "l" => r#""type":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"out"}]"#.to_owned(),
                "t" => r#""type":"truncation","tool_use_id":"c","record_id":"r1","head":1,"tail":0,"bytes":3,"sha256":"0""#.to_owned(),
                "k" => format!(r#""type":"compaction","summary":"s","first_kept_entry_id":"{}""#, &id[1..]),
                "y" => format!(
                    r#""type":"compaction","summary":"s","first_kept_entry_id":"u2","retry_of":"{}""#,
                    &id[2..]
                ),
                "e" => r#""type":"error","class":"overflow""#.to_owned(),
                "X" => format!(r#""type":"retract","target":"{}","undo":"turn""#, &id[1..]),
                _ => format!(r#""type":"retract","target":"{}""#, &id[1..]),
            };
            format!("{{\"id\":\"{id}\",{members}}}\n")
        };
        ids.split(' ').map(line).collect()
    }

    /// Returns the ids that a redo would retract. An `X` is the first retraction of an undo.
    fn redone(ids: &str) -> String {
        let inputs = [Input::memory("s", transcript(ids).into_bytes())];
        newest_undo(&inputs).map_or_else(|why| why.to_string(), |ids| ids.join(" "))
    }

    fn undone(ids: &str, undo: Undo) -> String {
        let inputs = [Input::memory("s", transcript(ids).into_bytes())];
        targets(&inputs, undo).map_or_else(|why| why.to_string(), |ids| ids.join(" "))
    }

    #[test]
    fn undo_retracts_the_newest_cut_in_effect() {
        let nothing = "nothing to undo: no cut is in effect";
        for (ids, targets) in [
            ("u1 a1 u2", nothing),
            ("u1 a1 u2 ku2 u3", "ku2"),
            ("u1 a1 u2 ku2 u3 xku2", nothing),
            ("u1 a1 u2 a2 u3 ku2 u4 ku3 xku3", "ku2"),
            // Truncations that were appended together are one cut, a later compaction is another.
            ("u1 c1 r1 t1 t2 e1 u2", "t2 t1"),
            ("u1 c1 r1 t1 e1 t2 t3 u2", "t3 t2"),
            ("u1 c1 r1 t1 t2 a1 u2 ku2", "ku2"),
            ("u1 c1 r1 t1 t2 a1 u2 ku2 xku2", "t2 t1"),
            ("u1 c1 r1 t1 t2 a1 xt2 xt1", nothing),
            // After undo and redo the cut is in effect again.
            ("u1 a1 u2 ku2 xku2 xxku2", "ku2"),
        ] {
            assert_eq!(undone(ids, Undo::Cut), targets, "{ids}");
        }
    }

    #[test]
    fn audit_23_undo_skips_compactions_that_are_not_in_effect() {
        let nothing = "nothing to undo: no cut is in effect";
        for (ids, targets) in [
            // The first kept record does not exist, or comes after the compaction.
            ("u1 a1 u2 ku9", nothing),
            ("u1 a1 ku2 u2", nothing),
            ("u1 a1 u2 ku2 u3 ku9", "ku2"),
            ("u1 c1 r1 t1 t2 u2 ku9", "t2 t1"),
            ("u1 c1 r1 u2 ku2 t1 ku9 u3", "t1"),
            // A replacement takes effect when the replaced compaction would.
            ("u1 a1 u2 ku2 u3 y=ku2", "y=ku2"),
            ("u1 a1 u2 ku2 u3 y=ku2 xy=ku2", "ku2"),
            ("u1 a1 u2 ku2 u3 y=ku2 u4 ku3", "ku3"),
            ("u1 a1 u2 ku2 u3 ku3 y=ku2", "ku3"),
            ("u1 a1 u2 y=ku2", nothing),
        ] {
            assert_eq!(undone(ids, Undo::Cut), targets, "{ids}");
        }
    }

    #[test]
    fn the_newest_turn_is_the_last_prompt_and_everything_after_it() {
        for (ids, targets) in [
            ("u1 a1 u2", "u2"),
            ("u1 a1 u2 c1 r1 a2 e1", "a2 r1 c1 u2"),
            ("u1 a1 u2 i1 e1", "i1 u2"),
            // A user record of another program with only tool results is not a prompt.
            ("u1 a1 u2 c1 l1 a2", "a2 l1 c1 u2"),
            ("u1 a1 u2 a2 xa2 xu2", "a1 u1"),
            ("u1 a1 u2 a2 u3 ku3", "u3"),
            (
                "u1 a1 u2 a2 ka2",
                "cannot undo the newest turn: it is part of a summary; undo the cut first",
            ),
            ("e1", "nothing to undo: there is no prompt"),
        ] {
            assert_eq!(undone(ids, Undo::Turn), targets, "{ids}");
        }
    }

    #[test]
    fn audit_04_a_redo_retracts_the_retractions_of_the_last_undo() {
        let nothing = "nothing to redo: nothing was undone since the last message or cut";
        for (ids, targets) in [
            ("u1 a1", nothing),
            ("u1 a1 u2 a2 Xa2 xu2", "xu2 Xa2"),
            // Consecutive undos are redone one after the other.
            ("u1 a1 u2 a2 Xa2 xu2 Xa1 xu1", "xu1 Xa1"),
            ("u1 a1 u2 a2 Xa2 xu2 Xa1 xu1 xxu1 xXa1", "xu2 Xa2"),
            ("u1 a1 u2 a2 Xa2 xu2 Xa1 xu1 xxu1 xXa1 xxu2 xXa2", nothing),
            ("u1 a1 u2 ku2 Xku2 Xu2", "Xu2"),
            ("u1 a1 u2 ku2 Xku2 Xu2 xXu2", "Xku2"),
            // After a new message or cut, nothing can be redone. A failed call does not matter.
            ("u1 a1 Xa1 xu1 u2", nothing),
            ("u1 a1 u2 Xu2 ku1", nothing),
            ("u1 a1 Xa1 xu1 e1", "xu1 Xa1"),
            // A message that was added after an undo prevents its redo, even if the message was itself undone and
            // redone.
            ("u1 Xu1 u2 Xu2", "Xu2"),
            ("u1 Xu1 u2 Xu2 xXu2", nothing),
            // Retractions that were not written by an undo.
            ("u1 a1 xa1 xu1", "xu1 xa1"),
        ] {
            assert_eq!(redone(ids), targets, "{ids}");
        }
    }
}
