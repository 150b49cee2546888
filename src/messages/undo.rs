//! Undo: which records a retraction would have to name to take back the newest cut, or the newest turn.

use crate::exit::{Exit, fail};
use crate::json::quote;
use crate::jsonl::search::{Needles, backwards};
use crate::messages::view::{self, Options, View};
use crate::messages::{Block, BlockKind};
use crate::record::{self, Body, Record};
use crate::source::{self, Input};
use anyhow::Context;
use std::io::{self, Write};

/// What is to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Undo {
    /// The newest cut that counts: a compaction, or the truncations that stand together
    Cut,
    /// The newest record of the user, and what was said after it
    Turn,
}

/// Writes a `retract` record for each record to take back, the newest first.
///
/// # Errors
/// 5 when there is nothing to take back, or the turn is part of a summary; when an input cannot be read or `out`
/// cannot be written to.
pub fn write(inputs: &[Input], undo: Undo, out: &mut impl Write) -> anyhow::Result<()> {
    for target in targets(inputs, undo)? {
        writeln!(out, r#"{{"type":"retract","target":{}}}"#, quote(&target))
            .context("cannot write '<stdout>'")?;
    }
    Ok(())
}

fn targets(inputs: &[Input], undo: Undo) -> anyhow::Result<Vec<String>> {
    let view = view::find(inputs, &Options::default(), false, &mut Vec::new())?;
    match undo {
        Undo::Cut => cut(inputs, &view),
        Undo::Turn => turn(inputs, &view),
    }
}

fn cut(inputs: &[Input], view: &View) -> anyhow::Result<Vec<String>> {
    let mut targets = Vec::new();
    // Where the oldest truncation begins that was found.
    let mut begin = None;
    let needles = ["\"compaction\"", "\"truncation\""];
    walk(inputs, &needles, view, |record| {
        let is_next_to = begin.is_none_or(|begin| begin <= record.end + 1);
        match record.body {
            Body::Compaction { .. } if begin.is_none() => {
                targets.push(record.id.to_string());
                false
            }
            Body::Truncation { .. } if is_next_to => {
                targets.push(record.id.to_string());
                begin = Some(record.offset);
                true
            }
            Body::Compaction { .. } | Body::Truncation { .. } => false,
            _ => true,
        }
    })?;
    if targets.is_empty() {
        return fail(Exit::NoGain, "nothing to take back: no cut counts");
    }
    Ok(targets)
}

fn turn(inputs: &[Input], view: &View) -> anyhow::Result<Vec<String>> {
    let mut targets = Vec::new();
    let mut begin = None;
    let needles = ["\"user\"", "\"assistant\"", "\"tool_use\"", "\"tool_result\""];
    walk(inputs, &needles, view, |record| {
        if record.body.is_of_messages() || matches!(record.body, Body::Interrupted { .. }) {
            targets.push(record.id.to_string());
        }
        begin = is_prompt(&record.body).then_some(record.offset);
        begin.is_none()
    })?;
    match begin {
        None => fail(Exit::NoGain, "nothing to take back: the user said nothing"),
        Some(begin) if begin < view.start => {
            fail(Exit::NoGain, "the newest turn is part of a summary: take back the cut first")
        }
        Some(_) => Ok(targets),
    }
}

/// Gives records that hold one of `needles` and are not retracted to `each`, the newest first, as long as it
/// wants more.
fn walk(
    inputs: &[Input],
    needles: &[&'static str],
    view: &View,
    mut each: impl FnMut(&Record<'_>) -> bool,
) -> io::Result<()> {
    let needles = Needles::quoted(needles);
    let mut wants_more = true;
    for (input, base) in inputs.iter().zip(source::bases(inputs)).rev() {
        backwards(input, input.length, &needles, |line, place| {
            for record in record::read_line(line, place, base).iter().rev() {
                wants_more =
                    wants_more && (view.retracted.contains(record.id.as_ref()) || each(record));
            }
            Ok(if wants_more { 0 } else { input.length })
        })?;
        if !wants_more {
            break;
        }
    }
    Ok(())
}

/// Whether the user said something: other programs' lists may hold results alone.
fn is_prompt(body: &Body<'_>) -> bool {
    let Body::User { content, .. } = body else { return false };
    let is_result = |block: &Block<'_>| matches!(block.kind, BlockKind::ToolResult { .. });
    content.blocks().is_empty() || !content.blocks().iter().all(is_result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transcript of records by their ids: the first letter says what each is.
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
                "e" => r#""type":"error","class":"overflow""#.to_owned(),
                _ => format!(r#""type":"retract","target":"{}""#, &id[1..]),
            };
            format!("{{\"id\":\"{id}\",{members}}}\n")
        };
        ids.split(' ').map(line).collect()
    }

    fn undone(ids: &str, undo: Undo) -> String {
        let inputs = [Input::memory("s", transcript(ids).into_bytes())];
        targets(&inputs, undo).map_or_else(|why| why.to_string(), |ids| ids.join(" "))
    }

    #[test]
    fn the_newest_cut_that_counts_is_taken_back() {
        let nothing = "nothing to take back: no cut counts";
        for (ids, targets) in [
            ("u1 a1 u2", nothing),
            ("u1 a1 u2 ku2 u3", "ku2"),
            ("u1 a1 u2 ku2 u3 xku2", nothing),
            ("u1 a1 u2 a2 u3 ku2 u4 ku3 xku3", "ku2"),
            // A batch is one cut, a compaction after it another.
            ("u1 c1 r1 t1 t2 e1 u2", "t2 t1"),
            ("u1 c1 r1 t1 e1 t2 t3 u2", "t3 t2"),
            ("u1 c1 r1 t1 t2 a1 u2 ku2", "ku2"),
            ("u1 c1 r1 t1 t2 a1 u2 ku2 xku2", "t2 t1"),
            ("u1 c1 r1 t1 t2 a1 xt2 xt1", nothing),
            // What was taken back and brought back counts.
            ("u1 a1 u2 ku2 xku2 xxku2", "ku2"),
        ] {
            assert_eq!(undone(ids, Undo::Cut), targets, "{ids}");
        }
    }

    #[test]
    fn the_newest_turn_is_what_the_user_said_last_and_all_since() {
        for (ids, targets) in [
            ("u1 a1 u2", "u2"),
            ("u1 a1 u2 c1 r1 a2 e1", "a2 r1 c1 u2"),
            ("u1 a1 u2 i1 e1", "i1 u2"),
            // The results of other programs are no words of the user.
            ("u1 a1 u2 c1 l1 a2", "a2 l1 c1 u2"),
            ("u1 a1 u2 a2 xa2 xu2", "a1 u1"),
            ("u1 a1 u2 a2 u3 ku3", "u3"),
            ("u1 a1 u2 a2 ka2", "the newest turn is part of a summary: take back the cut first"),
            ("e1", "nothing to take back: the user said nothing"),
        ] {
            assert_eq!(undone(ids, Undo::Turn), targets, "{ids}");
        }
    }
}
