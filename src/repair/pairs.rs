//! The pairs of calls and results: each call has one result, right after the reply, and each result has its call.

use super::links::unused;
use super::program::{Part, PartKind, Program, with};
use super::sheet::Sheet;
use crate::id::is_id;
use crate::json::quote;
use crate::record::content::Role;
use crate::record::digest;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A call, and what was found about it.
#[derive(Debug)]
struct Call {
    at: At,
    id: String,
    /// The number of its reply.
    reply: usize,
    result: Option<usize>,
}

/// A result.
#[derive(Debug)]
struct Answer {
    at: At,
    id: String,
    /// The number of the reply that it follows.
    reply: usize,
    call: Option<usize>,
}

/// The place of a block: the line, and the number of the block in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    row: usize,
    part: usize,
}

/// The conversation, as far as calls and results go.
#[derive(Debug, Default)]
struct Pairs {
    calls: Vec<Call>,
    answers: Vec<Answer>,
    /// For each reply, the line of the first record after it and its results.
    ends: BTreeMap<usize, usize>,
    /// The line of the last message that is neither a call nor a result.
    last_message: Option<usize>,
}

/// Repairs the pairs of the records that are sent. Changes of blocks come before insertions, which move lines.
pub(super) fn mend(program: &dyn Program, sheet: &mut Sheet<'_>, sent: &[usize]) {
    let mut pairs = Pairs::of(program, sheet, sent);
    pairs.match_up();
    let renames = pairs.renames(program, sheet);
    if !renames.is_empty() {
        // The next round sees the new ids.
        return apply(program, sheet, renames);
    }
    let inserts = pairs.inserts(program, sheet);
    apply(program, sheet, pairs.left_out(program));
    for insert in inserts.into_iter().rev() {
        insert.apply(program, sheet, sent.last().copied());
    }
}

/// The changes of the blocks of lines: the new block, or `None` if it is left out, and the reason.
type Edits = BTreeMap<At, (Option<String>, String)>;

/// A result to insert as a record.
struct Insert {
    /// The line before which it is inserted.
    before: usize,
    /// The record of its call.
    near: String,
    result: String,
    why: String,
}

impl Pairs {
    fn of(program: &dyn Program, sheet: &Sheet<'_>, sent: &[usize]) -> Pairs {
        let mut pairs = Pairs::default();
        let (mut reply, mut open, mut name) = (0, false, None);
        for row in sent {
            let Some(said) = program.said(sheet.text(*row)) else { continue };
            let is_result = |part: &Part<'_>| matches!(part.kind, PartKind::Result(_));
            let is_reply = said.role == Role::Assistant;
            let same = is_reply && open && said.reply.is_some() && said.reply == name;
            for (part, own) in said.parts.iter().enumerate().filter(|(_, own)| is_result(own)) {
                let PartKind::Result(id) = &own.kind else { continue };
                let at = At { row: *row, part };
                pairs.answers.push(Answer { at, id: id.clone().into_owned(), reply, call: None });
            }
            let closes = said.parts.is_empty() || said.parts.iter().any(|part| !is_result(part));
            if closes && !same {
                pairs.ends.insert(reply, *row);
                reply += 1;
                open = is_reply;
                name = said.reply.map(|name| name.into_owned().into());
            }
            if said.parts.iter().all(|part| part.kind == PartKind::Other) {
                pairs.last_message = Some(*row);
            }
            for (part, own) in said.parts.iter().enumerate() {
                let PartKind::Call(id) = &own.kind else { continue };
                let at = At { row: *row, part };
                pairs.calls.push(Call { at, id: id.clone().into_owned(), reply, result: None });
            }
        }
        pairs
    }

    /// Finds the call of each result: first among the calls of the reply before it, then among earlier and later ones.
    fn match_up(&mut self) {
        for round in 0..3 {
            for (index, answer) in self.answers.iter_mut().enumerate() {
                if answer.call.is_some() {
                    continue;
                }
                let fits = |call: &Call| {
                    let is_before = call.at < answer.at;
                    call.id == answer.id
                        && call.result.is_none()
                        && match round {
                            0 => is_before && call.reply == answer.reply,
                            1 => is_before,
                            _ => true,
                        }
                };
                let found = match round {
                    2 => self.calls.iter().position(fits),
                    _ => self.calls.iter().rposition(fits),
                };
                if let Some(call) = found {
                    self.calls[call].result = Some(index);
                    answer.call = Some(call);
                }
            }
        }
    }

    /// Returns true if a matched result is where the program needs it.
    fn is_in_place(&self, answer: &Answer, call: &Call, is_near: bool) -> bool {
        if is_near { call.reply == answer.reply } else { call.at < answer.at }
    }

    /// Gives calls whose ids are invalid or were used before, and their results, an id of their own.
    fn renames(&self, program: &dyn Program, sheet: &Sheet<'_>) -> Edits {
        let mut edits = Edits::new();
        let all: HashSet<&str> = self.calls.iter().map(|call| call.id.as_str()).collect();
        let mut seen: HashSet<&str> = HashSet::new();
        for (number, call) in self.calls.iter().enumerate() {
            let is_valid = is_id(&call.id);
            if is_valid && seen.insert(&call.id) {
                continue;
            }
            let why = match is_valid {
                true => format!("an earlier call has the id '{}'", call.id),
                false => format!("a provider refuses the id of call '{}'", call.id),
            };
            let seeds = (0_u64..).map(|try_| format!("{} {number} {try_}", call.id));
            let mut ids = seeds.map(|seed| format!("call_{}", digest(&seed)));
            let Some(new) = ids.find(|id| !all.contains(id.as_str())) else { continue };
            let answer = call.result.map(|result| self.answers[result].at);
            for at in [Some(call.at), answer].into_iter().flatten() {
                let Some(said) = program.said(sheet.text(at.row)) else { continue };
                let part = program.with_call_id(&said.parts[at.part], &new);
                edits.insert(at, (Some(part), format!("{why}; it is '{new}' now")));
            }
        }
        edits
    }

    /// Leaves out the results without a call, second results, and those that are moved.
    fn left_out(&self, program: &dyn Program) -> Edits {
        let mut edits = Edits::new();
        for answer in &self.answers {
            let id = &answer.id;
            let why = match answer.call.map(|call| &self.calls[call]) {
                Some(call) if self.is_in_place(answer, call, program.needs_results_next()) => {
                    continue;
                }
                Some(_) => format!("the result of call '{id}' is moved to its call"),
                None if self.calls.iter().any(|call| call.id == *id) => {
                    format!("it is a second result of call '{id}'")
                }
                None => format!("the result of call '{id}' has no call"),
            };
            edits.insert(answer.at, (None, why));
        }
        edits
    }

    /// Returns the results to insert, in the order of the lines: those that are moved, and those that are missing. A call
    /// at the end may still get its result.
    fn inserts(&self, program: &dyn Program, sheet: &Sheet<'_>) -> Vec<Insert> {
        let is_near = program.needs_results_next();
        let mut inserts = Vec::new();
        for call in &self.calls {
            let near = sheet.text(call.at.row);
            let before = match is_near {
                true => self.ends.get(&call.reply).copied(),
                false => Some(call.at.row + 1),
            };
            let is_over = match is_near {
                true => before.is_some(),
                false => self.last_message.is_some_and(|message| message > call.at.row),
            };
            let (result, why) = match call.result.map(|result| &self.answers[result]) {
                Some(answer) if self.is_in_place(answer, call, is_near) => continue,
                Some(answer) => {
                    let Some(said) = program.said(sheet.text(answer.at.row)) else { continue };
                    let why = format!("the result of call '{}' belongs here", call.id);
                    (said.parts[answer.at.part].raw.to_owned(), why)
                }
                None if is_over => {
                    let Some(said) = program.said(near) else { continue };
                    let why = format!("call '{}' has no result", call.id);
                    (program.no_result(&said.parts[call.at.part], &call.id), why)
                }
                None => continue,
            };
            let before = before.unwrap_or(sheet.len());
            inserts.push(Insert { before, near: near.to_owned(), result, why });
        }
        inserts.sort_by_key(|insert| insert.before);
        inserts
    }
}

/// Changes blocks of lines.
fn apply(program: &dyn Program, sheet: &mut Sheet<'_>, edits: Edits) {
    let rows: BTreeSet<usize> = edits.keys().map(|at| at.row).collect();
    for row in rows {
        let Some(said) = program.said(sheet.text(row)) else { continue };
        let mut reasons = Vec::new();
        let mut parts = Vec::new();
        for (part, own) in said.parts.iter().enumerate() {
            match edits.get(&At { row, part }) {
                None => parts.push(own.raw.to_owned()),
                Some((new, why)) => {
                    parts.extend(new.clone());
                    reasons.push(why.as_str());
                }
            }
        }
        let text = match parts.is_empty() {
            true => program.silent(sheet.text(row)),
            false => Some(program.with_parts(sheet.text(row), &parts)),
        };
        sheet.put(row, text, reasons.join("; "));
    }
}

impl Insert {
    /// Inserts the record. In a tree, the record at its place becomes its child; without one, it follows `last`.
    fn apply(self, program: &dyn Program, sheet: &mut Sheet<'_>, last: Option<usize>) {
        let Insert { before, near, result, why } = self;
        let Some(links) = program.links() else {
            let record = program.record_of(&near, &result, "", "");
            return sheet.insert(before, record, why);
        };
        let id = unused(program, sheet, links, &result);
        let next = (before < sheet.len()).then(|| sheet.record(before)).flatten();
        let parent = match (&next, last.and_then(|last| sheet.record(last))) {
            (Some(next), _) => next.get(links.parent).map(str::to_owned),
            (None, Some(last)) => last.get(links.id).map(str::to_owned),
            (None, None) => None,
        };
        let is_before = next.is_some();
        let record = program.record_of(&near, &result, &id, parent.as_deref().unwrap_or("null"));
        if is_before {
            let text = with(sheet.text(before), &[links.parent], &quote(&id));
            sheet.set(before, text, "its parent is the inserted result now");
        }
        sheet.insert(before, record, why);
    }
}
