//! Rebuild: converts transcripts to the messages that a provider accepts.
//!
//! A first search finds the records, such as compactions, that decide which part of the transcript is sent. The inputs
//! are then read once, from the first record of that part, and each message is written as soon as it is complete.
//! Memory depends on the size of the unfinished messages, not on the size of the file.

use crate::dialect;
use crate::exit::{Exit, fail};
use crate::finding::{Finding, Findings, Place, rules};
use crate::id::Id;
use crate::input::line::{Line, LineObject};
use crate::input::lines::Lines;
use crate::input::{self, Input};
use crate::json::{self, Object};
use crate::messages::Message;
use crate::messages::fold::Fold;
pub use crate::messages::range::RebuildOptions;
use crate::messages::view::{self, View};
use crate::record::{self, Body, Record};
use anyhow::Context;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// The messages of a transcript, and the findings.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// The messages in order, each with its `_meta`.
    pub messages: Vec<Message<'static>>,
    /// The findings, in the order in which they were found.
    pub findings: Findings,
    /// The number of lone surrogates that were replaced by U+FFFD.
    pub replaced: usize,
}

/// The results of a rebuild other than the messages.
#[derive(Debug, Default)]
pub struct Notes {
    /// The findings, in the order in which they were found.
    pub findings: Findings,
    /// The number of lone surrogates that were replaced by U+FFFD.
    pub replaced: usize,
    /// The records of the tool calls at the end that have no result yet, in order.
    pub open_calls: Vec<String>,
}

/// Rebuilds the messages of all inputs, as if the inputs were concatenated.
///
/// # Errors
/// When an input cannot be read; status 65 if one is in a dialect that cannot be read, or `options` name a record that
/// does not exist.
pub fn from_inputs(inputs: &[Input], options: &RebuildOptions) -> anyhow::Result<Rebuilt> {
    let mut messages = Vec::new();
    let Notes { findings, replaced, .. } = stream(inputs, options, true, |message| {
        messages.push(message.into_owned());
        Ok(())
    })?;
    Ok(Rebuilt { messages, findings, replaced })
}

/// Rebuilds the messages of all inputs and passes each to `out` as soon as it is complete. Without `with_meta`,
/// messages have no `_meta`, except those that rebuild adds itself.
///
/// # Errors
/// As [`from_inputs`], and the errors of `out`.
pub fn stream(
    inputs: &[Input],
    options: &RebuildOptions,
    with_meta: bool,
    out: impl FnMut(Message<'_>) -> io::Result<()>,
) -> anyhow::Result<Notes> {
    Pass::new(inputs, options, with_meta)?.run(&mut |_| {}, out)
}

/// A rebuild that has found the view but has not read the records yet.
pub struct Pass<'i> {
    inputs: &'i [Input],
    view: View,
    with_meta: bool,
    /// The findings of the search for the view.
    findings: Findings,
}

impl<'i> Pass<'i> {
    /// Finds the view of the inputs.
    ///
    /// # Errors
    /// When an input cannot be read; status 65 if `options` name a record that does not exist.
    pub fn new(
        inputs: &'i [Input],
        options: &RebuildOptions,
        with_meta: bool,
    ) -> anyhow::Result<Pass<'i>> {
        let mut findings = Findings::default();
        let view = view::find(inputs, options, with_meta, &mut findings)?;
        Ok(Pass { inputs, view, with_meta, findings })
    }

    /// Returns true if a summary replaces the first records, which are then not read.
    #[must_use]
    pub fn has_summary(&self) -> bool {
        self.view.compaction.is_some()
    }

    /// Rebuilds the messages: calls `each` with every line, and passes each message to `out` as soon as it is
    /// complete.
    ///
    /// # Errors
    /// As [`from_inputs`], and the errors of `out`.
    pub fn run(
        self,
        each: &mut dyn FnMut(&Line<'_>),
        out: impl FnMut(Message<'_>) -> io::Result<()>,
    ) -> anyhow::Result<Notes> {
        let Pass { inputs, mut view, with_meta, mut findings } = self;
        let mut search_findings = SearchFindings::take_from(&mut view, &mut findings);
        let mut fold = Fold::new(&view, with_meta, &mut findings, out);
        let mut replaced = 0;
        let mut lines = Lines::new(inputs, view.start..view.end);
        while let Some(batch) = lines.batch()? {
            // This fold borrows from the lines of the batch, and must own what it keeps before the batch is dropped.
            let mut batch_fold = fold;
            for line in batch {
                each(&line);
                search_findings.note_line(&line);
                // `?` would copy the record, which is large.
                match read_record(line, &mut replaced) {
                    Err(error) => return Err(error),
                    Ok(Err(finding)) => batch_fold.add_finding(finding),
                    Ok(Ok(ref mut record)) => {
                        search_findings.note_record(record);
                        batch_fold.take(record).context("cannot write '<stdout>'")?;
                    }
                }
            }
            fold = batch_fold.into_owned();
        }
        let open_calls = fold.finish().context("cannot write '<stdout>'")?;
        let findings =
            input::with_origins(inputs, search_findings.finish(view.start == 0, findings));
        Ok(Notes { findings, replaced, open_calls })
    }
}

/// The findings of the backward search. Reading forward completes them: it gives the line numbers, and shows which
/// targets of retractions exist.
struct SearchFindings {
    /// The findings that are certain.
    early: Findings,
    /// For each retraction target that was not read yet, the finding to report if it does not exist.
    unseen: HashMap<String, Finding>,
    /// The places of all these findings, with their line numbers once they are known.
    numbers: HashMap<(Arc<str>, u64), Option<u64>>,
}

impl SearchFindings {
    /// Takes the findings of the search from the view and from `findings`.
    fn take_from(view: &mut View, findings: &mut Findings) -> SearchFindings {
        let (early, unseen) = (std::mem::take(findings), std::mem::take(&mut view.unseen_targets));
        let places = early.iter().chain(unseen.values()).map(|finding| &finding.place);
        let numbers = places.map(|place| ((place.input.clone(), place.offset), place.line));
        SearchFindings { numbers: numbers.collect(), early, unseen }
    }

    /// Stores the number of a line if a finding needs it.
    fn note_line(&mut self, line: &Line<'_>) {
        if self.numbers.is_empty() {
            return;
        }
        let place = line.as_ref().map_or_else(|finding| &finding.place, |object| &object.place);
        if let Some(number) = self.numbers.get_mut(&(place.input.clone(), place.offset)) {
            *number = place.line;
        }
    }

    /// Drops the finding of a retraction whose target is this record.
    fn note_record(&mut self, record: &Record<'_>) {
        if !self.unseen.is_empty() {
            self.unseen.remove(record.id.as_ref());
        }
    }

    /// Returns all findings. A target that was not seen is reported only if all records were read.
    fn finish(self, is_all: bool, findings: Findings) -> Findings {
        let mut early = self.early;
        if is_all {
            let mut unseen: Vec<Finding> = self.unseen.into_values().collect();
            unseen.sort_by_key(|finding| finding.place.offset);
            unseen.into_iter().for_each(|finding| early.push(finding));
        }
        for Place { input, line, offset, .. } in
            early.listed_mut().iter_mut().map(|found| &mut found.place)
        {
            *line = self.numbers.get(&(input.clone(), *offset)).copied().flatten();
        }
        early.append(findings);
        early
    }
}

/// Parses the record of a line, or returns a finding. Replaces lone surrogates with U+FFFD and adds their number to
/// `replaced`.
///
/// # Errors
/// Status 65 if the line belongs to a transcript in a dialect that cannot be read.
pub fn read_record<'a>(
    line: Line<'a>,
    replaced: &mut usize,
) -> anyhow::Result<Result<Record<'a>, Finding>> {
    let line = match line {
        Ok(line) => line,
        Err(finding) => return Ok(Err(finding)),
    };
    if line.object.may_have_surrogates()
        && let (Cow::Owned(repaired), halves) = json::replace_lone_surrogates(line.object.text())
        && let Ok(object) = Object::parse(&repaired)
    {
        *replaced += halves;
        return Ok(read_object(LineObject { object, ..line })?.map(Record::into_owned));
    }
    read_object(line)
}

fn read_object(line: LineObject<'_>) -> anyhow::Result<Result<Record<'_>, Finding>> {
    let object = &line.object;
    let body = match record::parse(object) {
        Ok(body) => body,
        Err(why) => {
            let (rule, id) = (&rules::BAD_RECORD, object.string("id").map(Id::from));
            let message = format!("skipped: {why}");
            return Ok(Err(Finding { rule, place: line.place, id, message }));
        }
    };
    if matches!(body, Body::Session | Body::Other)
        && let Some(dialect) = dialect::foreign_tree(object)
    {
        let (input, name) = (line.place.input, dialect.name());
        let advice = format!("give it as a file of its own, with --from {name}");
        let text = format!("cannot read '{input}': a transcript of {dialect}; {advice}");
        return fail(Exit::Data, text);
    }
    Ok(Ok(Record::of(body, line)))
}

/// Writes the records of the tool calls at the end that have no result yet. A call that is followed by a prompt is
/// omitted, because it counts as interrupted.
///
/// # Errors
/// As [`from_inputs`], and when writing to `out` fails.
pub fn write_open_calls(
    inputs: &[Input],
    options: &RebuildOptions,
    out: &mut impl Write,
) -> anyhow::Result<Notes> {
    let notes = stream(inputs, options, false, |_| Ok(()))?;
    for call in &notes.open_calls {
        writeln!(out, "{}", json::escape_line_breaks(call)).context("cannot write '<stdout>'")?;
    }
    Ok(notes)
}

/// The output format of messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Write one JSON array instead of one message per line.
    pub array: bool,
    /// Write `_meta`.
    pub meta: bool,
}

impl Form {
    /// Rebuilds messages and writes each as soon as it is complete.
    ///
    /// # Errors
    /// As [`from_inputs`], and when writing to `out` fails.
    pub fn stream(
        self,
        inputs: &[Input],
        options: &RebuildOptions,
        out: &mut impl Write,
    ) -> anyhow::Result<Notes> {
        let mut count = 0;
        let notes = stream(inputs, options, self.meta, |message| {
            count += 1;
            self.write(&message, count == 1, out)
        })?;
        self.end(count, out)?;
        Ok(notes)
    }

    /// Writes rebuilt messages.
    ///
    /// # Errors
    /// When writing to `out` fails.
    pub fn write_all(self, messages: Vec<Message<'_>>, out: &mut impl Write) -> anyhow::Result<()> {
        for (index, message) in messages.iter().enumerate() {
            self.write(message, index == 0, out).context("cannot write '<stdout>'")?;
        }
        self.end(messages.len(), out)
    }

    fn write(self, message: &Message<'_>, is_first: bool, out: &mut impl Write) -> io::Result<()> {
        let around = match (self.array, is_first) {
            (false, _) => ("", "\n"),
            (true, true) => ("[", ""),
            (true, false) => (",\n", ""),
        };
        message.write(self.meta, around, out)
    }

    fn end(self, count: usize, out: &mut impl Write) -> anyhow::Result<()> {
        let end = match (self.array, count) {
            (false, _) => return Ok(()),
            (true, 0) => "[]\n",
            (true, _) => "]\n",
        };
        out.write_all(end.as_bytes()).context("cannot write '<stdout>'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::content::Role;
    use std::fmt::Write as _;

    /// When a batch of lines ends, messages can be unfinished, and calls and results can wait for each other.
    #[test]
    fn messages_do_not_depend_on_where_batches_end() {
        // The larger input is read by threads, the smaller one is not.
        for count in [40, 160] {
            let (mut records, mut expected) = (String::new(), String::new());
            for n in 0..count {
                let said = format!("{n} {}", "said ".repeat(n * 7919 % 12_000));
                let call = format!(
                    r#"{{"type":"tool_use","tool_use_id":"c{n}","name":"t","input":{{}}}}"#
                );
                let result =
                    format!(r#"{{"type":"tool_result","tool_use_id":"c{n}","content":"{said}"}}"#);
                writeln!(records, r#"{{"type":"user","content":"{n}"}}"#).unwrap();
                let (first, second) = if n % 5 == 4 { (&result, &call) } else { (&call, &result) };
                // A record with a lone surrogate is parsed from a repaired copy.
                let half = if n % 3 == 0 { "\\ud83d" } else { "" };
                writeln!(records, "{first}\n{second}").unwrap();
                writeln!(records, r#"{{"type":"assistant","content":"{said}{half}"}}"#).unwrap();

                let call = format!(r#"{{"type":"tool_use","id":"c{n}","name":"t","input":{{}}}}"#);
                writeln!(expected, r#"{{"role":"user","content":"{n}"}}"#).unwrap();
                writeln!(expected, r#"{{"role":"assistant","content":[{call}]}}"#).unwrap();
                writeln!(expected, r#"{{"role":"user","content":[{result}]}}"#).unwrap();
                let half = if n % 3 == 0 { "\\ufffd" } else { "" };
                writeln!(expected, r#"{{"role":"assistant","content":"{said}{half}"}}"#).unwrap();
            }
            let input = [Input::memory("t", records.into_bytes())];
            let mut written = Vec::new();
            let notes =
                Form::default().stream(&input, &RebuildOptions::default(), &mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
            assert_eq!((notes.findings.len(), notes.replaced), (0, count.div_ceil(3)));
            let kept = from_inputs(&input, &RebuildOptions::default()).unwrap().messages;
            let kept: Vec<_> = kept.iter().map(Message::to_json).collect();
            assert!(expected.lines().eq(kept));
        }
    }

    #[test]
    fn a_finding_about_a_recovered_record_has_its_line_number() {
        let torn = r#"{"type":"user","content":"to{"type":"compaction","summary":"s","first_kept_entry_id":"x"}"#;
        let text = format!("{{\"type\":\"user\",\"content\":\"hi\"}}\n{torn}\n");
        let input = Input::memory("t", text.into_bytes());
        let findings = from_inputs(&[input], &RebuildOptions::default()).unwrap().findings;
        let unknown = findings.iter().find(|found| *found.rule == rules::UNKNOWN_FIRST_KEPT);
        assert_eq!(unknown.map(|found| found.place.line), Some(Some(2)), "{findings:?}");
    }

    #[test]
    fn a_result_is_not_moved_to_a_call_that_is_a_thousand_messages_before_it() {
        let call = r#"{"type":"tool_use","tool_use_id":"c","name":"t","input":{}}"#;
        let result = r#"{"type":"tool_result","tool_use_id":"c","content":"r"}"#;
        let texts = [r#"{"type":"user","content":"u"}"#, r#"{"type":"assistant","content":"a"}"#];
        for (between, is_moved) in [(999, true), (1000, false)] {
            let texts = texts.into_iter().cycle().take(between);
            let lines: Vec<&str> = [call].into_iter().chain(texts).chain([result]).collect();
            let input = Input::memory("t", lines.join("\n").into_bytes());
            let findings = from_inputs(&[input], &RebuildOptions::default()).unwrap().findings;
            let is_found = findings.iter().any(|found| *found.rule == rules::LATE_RESULT);
            assert_eq!(is_found, is_moved, "{between}: {findings:?}");
        }
    }

    #[test]
    fn a_count_is_dropped_if_its_own_record_has_a_late_result() {
        let usage = r#""usage":{"input_tokens":120,"output_tokens":10},"model":"m""#;
        let result = r#"{"type":"tool_result","tool_use_id":"c","content":"late"}"#;
        let call = r#"{"type":"tool_use","id":"d","name":"t","input":{}}"#;
        let text = r#"{"type":"text","text":"words"}"#;
        for (blocks, is_counted) in [
            (vec![call], true),
            (vec![text, call], true),
            (vec![result, text], false),
            (vec![result, call], false),
        ] {
            let records = [
                r#"{"type":"user","content":"go"}"#,
                r#"{"type":"tool_use","tool_use_id":"c","name":"t","input":{}}"#,
                r#"{"type":"user","content":"more"}"#,
                &format!(r#"{{"type":"assistant","content":[{}],{usage}}}"#, blocks.join(",")),
            ];
            let input = Input::memory("t", records.join("\n").into_bytes());
            let messages = from_inputs(&[input], &RebuildOptions::default()).unwrap().messages;
            let meta = messages.iter().rev().find(|it| it.role == Role::Assistant);
            let meta = meta.and_then(|message| message.meta.as_ref());
            assert_eq!(meta.is_some_and(|meta| meta.usage.is_some()), is_counted, "{blocks:?}");
        }
    }

    #[test]
    fn a_user_record_without_content_is_reported_unless_it_only_has_results() {
        let call = r#"{"type":"tool_use","tool_use_id":"c","name":"t","input":{}}"#;
        let result = r#"{"type":"tool_result","tool_use_id":"c","content":"r"}"#;
        let blank = r#"{"type":"text","text":" "}"#;
        for (content, is_reported) in [
            ("[]".to_owned(), true),
            (format!("[{blank}]"), true),
            (format!("[{result}]"), false),
            (format!("[{result},{blank}]"), true),
        ] {
            let text = format!("{call}\n{{\"type\":\"user\",\"content\":{content}}}\n");
            let input = Input::memory("t", text.into_bytes());
            let findings = from_inputs(&[input], &RebuildOptions::default()).unwrap().findings;
            let is_found = findings.iter().any(|found| *found.rule == rules::EMPTY_MESSAGE);
            assert_eq!(is_found, is_reported, "{content}: {findings:?}");
        }
    }
}
