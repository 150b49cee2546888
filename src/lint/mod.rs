//! The linter: reports all problems in a transcript, including those that rebuild repairs.

mod chain;

use crate::exit::Exit;
use crate::finding::rules::{self, Rule};
use crate::finding::{Finding, Findings, Place, Severity};
use crate::id::{self, Id};
use crate::input::Input;
use crate::input::line::{Line, LineObject};
use crate::json::{self, Member, Object};
use crate::lint::chain::RunningChain;
use crate::messages::rebuild::{Pass, RebuildOptions};
use crate::messages::{Message, Meta};
use crate::rules::Violation;
use crate::usage::Counts;
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Checks one transcript. The findings about lines and records come first, in the order of the file, then those about
/// the rebuilt messages, then one for each rule that has more findings than are listed.
///
/// # Errors
/// Fails if the input cannot be read, and with 65 if it is in a dialect that cannot be read.
pub fn lint(input: Input) -> anyhow::Result<Vec<Finding>> {
    let name = input.name.clone();
    let inspection = inspect(input, &mut |_| {}, &mut |_| {})?;
    Ok(list(&inspection.findings, &name))
}

/// Returns the listed findings about an input and, for each rule with further ones, a finding that says how many.
#[must_use]
pub fn list(findings: &Findings, input: &Arc<str>) -> Vec<Finding> {
    let more = findings.unlisted().map(|(rule, count)| Finding {
        rule: &rules::MORE_FINDINGS,
        place: Place { input: input.clone(), line: None, offset: 0, length: 0 },
        id: None,
        message: format!("{}: {count} more, not listed", rule.name),
    });
    findings.iter().cloned().chain(more).collect()
}

/// The results of checking one transcript.
#[derive(Debug)]
pub struct Inspection {
    /// The findings, ordered as [`lint`] describes.
    pub findings: Findings,
    /// The outlines of the messages that rebuild shows; see [`Message::into_outline`].
    pub outlines: Vec<Message<'static>>,
}

/// Checks one transcript as [`lint`] does. Also calls `each_record` with every object in the file, and `each_message`
/// with every message that rebuild shows.
///
/// If nothing is damaged, the text of the file is read forwards once (twice if there is a summary, because rebuild does
/// not read the records that a compaction covers), and only the text of unfinished messages is in memory.
///
/// # Errors
/// Fails as [`lint`] does.
pub fn inspect(
    input: Input,
    each_record: &mut dyn FnMut(&LineObject<'_>),
    each_message: &mut dyn FnMut(&Message<'_>),
) -> anyhow::Result<Inspection> {
    let inputs = [input];
    let mut scan = LineScan::default();
    let [input] = &inputs;
    let mut each_line = |line: &Line<'_>| {
        scan.chain.take(line);
        if let Ok(line) = line {
            each_record(line);
            scan.take(&line.object, input.original(&line.place));
        }
    };
    let (found, outlines) = rebuilt(&inputs, &mut each_line, each_message)?;
    let mut findings = scan.misfits(input)?;
    if input.origin().is_some() {
        // Another program's transcript already has findings about duplicates.
        scan.findings.remove(&rules::DUPLICATE_ID);
        scan.records.sort_by_key(|record| record.offset);
    } else {
        // An inserted copy of a line already has a finding.
        let places: HashSet<u64> = findings.iter().map(|found| found.place.offset).collect();
        let is_known = |found: &Finding| places.contains(&found.place.offset);
        scan.findings.retain(|found| *found.rule != rules::DUPLICATE_ID || !is_known(found));
    }
    findings.append(found);
    findings.append(scan.findings);
    if let Some(origin) = input.origin() {
        findings.append(origin.notes(&input.name));
    }
    for finding in findings.listed_mut() {
        finding.complete(&scan.records);
    }
    findings.listed_mut().sort_by_key(|finding| finding.place.offset);
    findings.append(message_findings(&outlines, input, &scan.records));
    Ok(Inspection { findings, outlines })
}

/// Returns the findings of rebuild for the whole transcript, and the outlines of the messages. Calls `each_line` with
/// every line.
fn rebuilt(
    inputs: &[Input],
    each_line: &mut dyn FnMut(&Line<'_>),
    each_message: &mut dyn FnMut(&Message<'_>),
) -> anyhow::Result<(Findings, Vec<Message<'static>>)> {
    let mut messages = Vec::new();
    let show = |message: Message<'_>| {
        each_message(&message);
        messages.push(message.into_outline());
        Ok(())
    };
    let pass = Pass::new(inputs, &RebuildOptions::default(), true)?;
    if !pass.has_summary() {
        let findings = pass.run(each_line, show)?.findings;
        return Ok((findings, messages));
    }
    let mut shown = pass.run(&mut |_| {}, show)?.findings;
    let options = RebuildOptions { ignore_compactions: true, ..RebuildOptions::default() };
    let pass = Pass::new(inputs, &options, false)?;
    let mut all = pass.run(each_line, |_| Ok(()))?.findings;
    let known: HashSet<(u64, u64)> =
        all.iter().map(|found| (found.place.offset, found.place.length)).collect();
    let is_new = |found: &Finding| !known.contains(&(found.place.offset, found.place.length));
    shown.retain(|found| is_new(found) && !all.is_full(found.rule));
    all.append(shown);
    Ok((all, messages))
}

/// Returns the findings about the rebuilt messages: tool calls at the end without a result, and violations of a
/// provider's rules.
fn message_findings(messages: &[Message<'_>], input: &Input, records: &[RecordPlace]) -> Findings {
    let mut broken = crate::rules::violations(messages);
    // A transcript may be empty or end with a reply.
    broken.retain(|broken| !broken.unfinished || broken.rule == "open-call");
    let finding = |broken: Violation| {
        let rule = if broken.unfinished { &rules::OPEN_AT_END } else { &rules::REFUSED };
        let meta = messages.get(broken.message).and_then(|message| message.meta.clone());
        let Meta { id, offset, end, .. } = *meta.unwrap_or_default();
        let place = Place { input: input.name.clone(), line: None, offset, length: end - offset };
        let mut place = input.original(&place);
        place.line = record_at(records, place.offset).map(|record| record.line);
        let id = Some(id).filter(|id| !id.is_empty());
        Finding { rule, place, id, message: broken.to_string() }
    };
    let mut findings = Findings::default();
    broken.into_iter().for_each(|broken| findings.push(finding(broken)));
    findings
}

/// The place and the id of a record.
struct RecordPlace {
    offset: u64,
    line: u64,
    length: u64,
    /// The id in the record. Records without one are named by their address, which is formatted only for a finding.
    id: Option<Id>,
}

impl RecordPlace {
    /// Returns the id of the record at `offset`: `own` if it has one, else its address.
    fn id(own: Option<&Id>, offset: u64) -> Id {
        own.cloned().unwrap_or_else(|| Id::from(id::address(offset)))
    }
}

/// Returns the record that begins at `offset`; `records` are in the order of the file.
fn record_at(records: &[RecordPlace], offset: u64) -> Option<&RecordPlace> {
    let index = records.binary_search_by_key(&offset, |record| record.offset).ok()?;
    records.get(index)
}

impl Finding {
    /// Adds the missing line number and id if the finding is about a complete record.
    fn complete(&mut self, records: &[RecordPlace]) {
        if self.place.line.is_some() && self.id.is_some() {
            return;
        }
        let Some(record) = record_at(records, self.place.offset) else { return };
        if record.length == self.place.length {
            self.place.line.get_or_insert(record.line);
            self.id.get_or_insert_with(|| RecordPlace::id(record.id.as_ref(), record.offset));
        }
    }
}

/// Collects the findings that need only one line and the ids of the lines before it.
#[derive(Default)]
struct LineScan {
    findings: Findings,
    records: Vec<RecordPlace>,
    /// The ids that are written in records.
    ids: HashSet<Id, RandomState>,
    /// True if one of these ids has the form of an address.
    has_addresses: bool,
    chain: RunningChain,
}

impl LineScan {
    /// Returns the findings about the chain of ids, after the whole input was read.
    fn misfits(&self, input: &Input) -> anyhow::Result<Findings> {
        if self.chain.is_intact() { Ok(Findings::default()) } else { chain::check(input) }
    }

    /// Examines the record at `place`.
    fn take(&mut self, object: &Object<'_>, place: Place) {
        let Place { offset, length, .. } = place;
        let own = object.string("id").map(Id::from);
        let was_used = self.was_used(own.as_ref(), offset);
        let mut find = |rule: &'static Rule, message: String| {
            let (place, id) = (place.clone(), Some(RecordPlace::id(own.as_ref(), offset)));
            self.findings.push(Finding { rule, place, id, message });
        };
        if was_used {
            let id = RecordPlace::id(own.as_ref(), offset);
            find(&rules::DUPLICATE_ID, format!("an earlier record has the same id '{id}'"));
        }
        for name in duplicate_members(object) {
            find(
                &rules::DUPLICATE_MEMBER,
                format!("duplicate member '{name}'; the last one is used"),
            );
        }
        let halves = match object.may_have_surrogates() {
            true => json::replace_lone_surrogates(object.text()).1,
            false => 0,
        };
        if halves > 0 {
            let what = format!("lone surrogates: {halves}; U+FFFD is sent for each");
            find(&rules::LONE_SURROGATE, what);
        }
        if let Some(Err(implausible)) = object.get("usage").map(Counts::check) {
            find(&rules::IMPLAUSIBLE_COUNT, implausible.to_string());
        }
        let line = place.line.unwrap_or(0);
        self.records.push(RecordPlace { offset, line, length, id: own });
    }

    /// Stores the id of the record at `offset`, if it has one. Returns true if an earlier record has the same id. A
    /// record without an id counts as having its address as its id.
    fn was_used(&mut self, own: Option<&Id>, offset: u64) -> bool {
        let Some(own) = own else {
            return self.has_addresses && self.ids.contains(&RecordPlace::id(None, offset));
        };
        let address = own.strip_prefix('@').and_then(|offset| offset.parse().ok());
        self.has_addresses |= address.is_some();
        let before = address.and_then(|offset| record_at(&self.records, offset));
        let is_address_of = |record: &RecordPlace| {
            record.id.is_none() && RecordPlace::id(None, record.offset) == *own
        };
        !self.ids.insert(own.clone()) || before.is_some_and(is_address_of)
    }
}

/// Returns the name of each member that repeats an earlier name, in the order of the object.
fn duplicate_members<'a>(object: &Object<'a>) -> Vec<Cow<'a, str>> {
    if !object.may_repeat_a_name() {
        return Vec::new();
    }
    let names = object.members().map(|member: Member<'a>| member.name());
    let mut names: Vec<(Cow<'a, str>, usize)> = names.zip(0..).collect();
    names.sort_unstable();
    let again = names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].clone());
    let mut again: Vec<_> = again.collect();
    again.sort_unstable_by_key(|(_, place)| *place);
    again.into_iter().map(|(name, _)| name).collect()
}

/// Returns the exit status for findings: 65 if there is an error, 1 if there is a warning, else 0.
#[must_use]
pub fn status<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Exit {
    match findings.into_iter().map(|finding| finding.rule.severity).max() {
        Some(Severity::Error) => Exit::Data,
        Some(Severity::Warning) => Exit::Failed,
        Some(Severity::Note) | None => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Estimate, Method, Model, Request, Weight, outlined};
    use crate::messages::rebuild;

    /// An inspection keeps no text, but it must give the same tokens and violations as the complete messages.
    #[test]
    fn outlines_give_the_same_tokens_and_violations_as_the_messages() {
        let usage = r#""model":"m","usage":{"input_tokens":900,"output_tokens":5}"#;
        let records = [
            r#"{"type":"user","content":"  "}"#.to_owned(),
            r#"{"type":"user","content":[{"type":"text","text":"words to count"}]}"#.to_owned(),
            format!(r#"{{"type":"assistant","content":"said",{usage}}}"#),
            r#"{"type":"tool_use","tool_use_id":"c","name":"f","input":{}}"#.to_owned(),
            r#"{"type":"tool_result","tool_use_id":"c","content":"more words"}"#.to_owned(),
            r#"{"type":"assistant","content":"and a plain text"}"#.to_owned(),
            r#"{"type":"tool_use","tool_use_id":"d","name":"f","input":{}}"#.to_owned(),
        ];
        for count in 0..=records.len() {
            let input = Input::memory("t", records[..count].join("\n").into_bytes());
            let inputs = [input.clone()];
            let messages = rebuild::from_inputs(&inputs, &RebuildOptions::default()).unwrap();
            let mut outlines = Vec::new();
            for model in [None, Some(Model::named("claude-opus-4-5"))] {
                let mut weights = Vec::new();
                let mut weigh = |message: &Message<'_>| weights.push(Weight::of(message, model));
                outlines = inspect(input.clone(), &mut |_| {}, &mut weigh).unwrap().outlines;
                let request = Request { messages: &messages.messages, model, ..Request::default() };
                let tokens = Estimate::of(request, Method::Script).tokens;
                assert_eq!(outlined(&outlines, &weights, model), tokens, "{count} records");
            }
            let violations = crate::rules::violations;
            assert_eq!(violations(&outlines), violations(&messages.messages), "{count} records");
        }
    }

    #[test]
    fn repeated_members_are_found_among_few_and_many() {
        for count in [0, 5, 13, 14, 40] {
            let others: String = (0..count).map(|n| format!(",\"m{n}\":{n}")).collect();
            for (more, repeated) in [
                ("", &[][..]),
                (",\"b\":1,\"c\":2,\"c\":3,\"b\":4", &["c", "b"]),
                (",\"b\":1,\"\\u0062\":2", &["b"]),
            ] {
                let record = format!("{{\"type\":\"user\",\"content\":\"x\"{others}{more}}}");
                let object = Object::parse(&record).unwrap();
                assert_eq!(duplicate_members(&object), repeated, "{record}");
            }
        }
    }

    #[test]
    fn an_id_that_equals_the_address_of_another_record_is_a_duplicate() {
        let plain = r#"{"type":"user","content":"a"}"#;
        let named = |id: &str| format!(r#"{{"type":"user","content":"a","id":"{id}"}}"#);
        let next = named("@44").len() + 1;
        for (records, expected) in [
            ([plain.to_owned(), named("@0"), named("@00")], vec![plain.len() + 1]),
            ([named(&format!("@{next}")), plain.to_owned(), named("@1")], vec![next]),
            ([named("@x"), named("@x"), plain.to_owned()], vec![named("@x").len() + 1]),
        ] {
            let input = Input::memory("t", records.join("\n").into_bytes());
            let findings = lint(input).unwrap();
            let twice = findings.iter().filter(|found| found.rule == &rules::DUPLICATE_ID);
            let places: Vec<u64> = twice.map(|found| found.place.offset).collect();
            assert_eq!(places, expected.iter().map(|at| *at as u64).collect::<Vec<_>>());
        }
    }
}
