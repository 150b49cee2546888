//! Wording that all formats share, as plain text that each format escapes.

use super::wording::{Language, noun, phrase};
use super::{
    CallOutcome, Item, Media, Refusal, ReplyFacts, Session, ShowOptions, ShownCompaction,
    ShownEntry, Spent,
};
use crate::dialect::program::Program;
use crate::estimate::report::grouped;
use crate::printable::printable_lines;
use crate::record::compaction::HEADING;
use crate::record::content::Role;
use crate::record::omission::Omission;
use crate::record::truncation::KeptSpan;
use crate::shorten::stand_in;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quick_xml::escape::partial_escape;
use std::fmt::Display;

/// A view record, or another record that is not part of the conversation.
pub struct Note {
    /// The kind of record, one word, as a class.
    pub class: &'static str,
    /// The kind of record.
    pub title: &'static str,
    /// A one-line description.
    pub line: String,
    /// The full text, if there is one.
    pub body: Option<String>,
}

/// Returns the note for an entry that is not part of the conversation.
pub fn note(entry: &ShownEntry, language: Language) -> Option<Note> {
    let (class, title, line, body) = match &entry.item {
        Item::Compaction(it) => {
            ("compaction", phrase::COMPACTION, compaction(it, language), Some(summary(it)))
        }
        Item::Truncation { name, call, shown } => {
            let of = name.as_ref().map_or(call.clone(), |name| format!("{name} ({call})"));
            let line = language.with(phrase::RESULT_SHORTENED, &[&of, &amount(shown, language)]);
            ("truncation", phrase::TRUNCATION, line, None)
        }
        Item::Omission(it) => ("omission", phrase::OMISSION, omission(it, language), None),
        Item::Checkpoint(it) => {
            let mut line = language.say(phrase::IN_ADVANCE).to_owned();
            let counts = [(it.messages, noun::MESSAGE), (it.tokens, noun::TOKEN)];
            let counts = counts.map(|(count, noun)| language.count(count, noun)).join(", ");
            line.push_str(&format!(": {counts}"));
            it.generated_by.iter().for_each(|model| line.push_str(&format!(", {model}")));
            ("checkpoint", phrase::CHECKPOINT, line, Some(it.render()))
        }
        Item::Retract(target) => {
            let line = language.with(phrase::RECORD_RETRACTED, &[target]);
            ("retract", phrase::RETRACTION, line, None)
        }
        Item::Error(it) => ("error", phrase::ERROR, error(it, language), None),
        Item::Label(label) => {
            ("label", phrase::LABEL, language.with(phrase::LABEL_NOW, &[label]), None)
        }
        _ => return None,
    };
    let line = match entry.spent {
        Some(Spent { counts, .. }) => {
            let input = language.with(phrase::IN, &[&grouped(counts.prompt())]);
            let output = language.with(phrase::OUT, &[&grouped(counts.output)]);
            format!("{line}, {input}, {output}")
        }
        None => line,
    };
    let retracted = language.say(phrase::RETRACTED);
    let line = if entry.retracted { format!("{line} ({retracted})") } else { line };
    Some(Note { class, title: language.say(title), line, body })
}

fn omission(it: &Omission, language: Language) -> String {
    let what = match stand_in::what(&it.kind) {
        "thinking" => language.say(phrase::THINKING).to_owned(),
        "input" => language.say(phrase::INPUT_OF_CALL).to_owned(),
        other => language.with(phrase::ONE, &[&other]),
    };
    let reason = if it.reason.is_empty() { String::new() } else { format!(": {}", it.reason) };
    language.with(phrase::NOT_SENT, &[&what, &it.record_id]) + &reason
}

fn compaction(it: &ShownCompaction, language: Language) -> String {
    let all = || language.say(phrase::RECORDS_ABOVE).to_owned();
    let what = it.records.map_or_else(all, |count| language.count(count, noun::RECORD));
    let mut line = language.with(phrase::SUMMARY_OF, &[&what]);
    match (it.before, it.summary.tokens_after) {
        (Some(before), Some(after)) => {
            let values: [&dyn Display; 2] = [&grouped(before), &grouped(after)];
            line.push_str(&format!(": {}", language.with(phrase::TOKENS_FROM_TO, &values)));
        }
        (Some(before), None) => {
            let tokens = language.with(phrase::TOKENS_BEFORE, &[&grouped(before)]);
            line.push_str(&format!(": {tokens}"));
        }
        _ => {}
    }
    let by = [it.strategy.as_deref(), it.model.as_deref()];
    by.into_iter().flatten().for_each(|word| line.push_str(&format!(", {word}")));
    if let Some(place) = &it.retry_of {
        line.push_str(&format!(", {}", language.with(phrase::REPLACES, &[place])));
    }
    if it.summary.needs_retry {
        line.push_str(&format!(", {}", language.say(phrase::SUMMARY_MISSING)));
    }
    line
}

/// Returns the summary as the model reads it, without its heading.
fn summary(it: &ShownCompaction) -> String {
    let text = it.summary.render();
    text.strip_prefix(HEADING).unwrap_or(&text).trim_start().to_owned()
}

fn error(it: &Refusal, language: Language) -> String {
    let status = it.status.map_or(String::new(), |status| format!(" ({status})"));
    let message = if it.message.is_empty() { String::new() } else { format!(": {}", it.message) };
    let mut line = format!("{}{status}{message}", it.class);
    if let Some(actual) = it.actual {
        line.push_str(&format!("; {}", language.count(actual, noun::TOKEN)));
    }
    if let Some(limit) = it.limit {
        line.push_str(&format!("; {}", language.with(phrase::WINDOW, &[&grouped(limit)])));
    }
    line
}

/// Returns the name of a role.
pub fn role(role: Role, language: Language) -> &'static str {
    language.say(match role {
        Role::User => phrase::USER,
        Role::Assistant => phrase::ASSISTANT,
    })
}

/// Returns the name of the program that the header of a session names, or that name itself if it is not known.
pub fn program(name: &str) -> String {
    match Program::named(name) {
        Program::Other => name.to_owned(),
        program => program.to_string(),
    }
}

/// Returns the facts about a session, in order of display.
pub fn session(it: &Session, options: &ShowOptions) -> Vec<String> {
    let language = options.language;
    let program = it.dialect.as_deref().map(program);
    let agent = it.agent.as_ref().map(|agent| language.with(phrase::SUBAGENT, &[agent]));
    let created = it.created.map(|time| when(time, &options.zone));
    let parent = it.parent.as_ref().map(|parent| language.with(phrase::FORKED, &[parent]));
    let key = it.key.clone().filter(|key| *key != it.id);
    let all = [Some(it.id.clone()), key, it.label.clone(), program, agent, created, parent];
    all.into_iter().flatten().filter(|it| !it.is_empty()).collect()
}

/// Returns the facts about a reply, in order of display.
pub fn reply(it: &ReplyFacts, options: &ShowOptions) -> Vec<String> {
    let language = options.language;
    let mut facts: Vec<String> = it.model.iter().cloned().collect();
    if let Some(counts) = &it.counts {
        let cached = match counts.cache_read {
            0 => String::new(),
            read => format!(" ({})", language.with(phrase::FROM_CACHE, &[&grouped(read)])),
        };
        facts.push(language.with(phrase::IN, &[&grouped(counts.prompt())]) + &cached);
        facts.push(language.with(phrase::OUT, &[&grouped(counts.output)]));
        facts.extend(it.cost.map(|cost| options.prices.amount(cost)));
    }
    let ended = ["end_turn", "tool_use", "stop", "tool_calls", "stop_sequence"];
    let odd = it.stop_reason.as_ref().filter(|reason| !ended.contains(&reason.as_str()));
    facts.extend(odd.cloned());
    facts.extend(it.interrupted.then(|| language.say(phrase::INTERRUPTED).to_owned()));
    facts
}

/// Returns the facts about a tool result: its call, failure, and the part that is sent.
pub fn result(it: &CallOutcome, language: Language) -> Vec<String> {
    let mut facts = vec![match &it.call {
        Some((name, _)) if it.follows => name.clone(),
        Some((name, input)) => format!("{name} {input}"),
        None => language.with(phrase::WITHOUT_CALL, &[&it.id]),
    }];
    facts.extend(it.is_error.then(|| language.say(phrase::FAILED).to_owned()));
    let shown = it.shown.as_ref().map(|shown| amount(shown, language));
    facts.extend(shown.map(|amount| language.with(phrase::SHORTENED, &[&amount])));
    facts
}

/// Returns the size of the part of a result that is sent.
fn amount(shown: &KeptSpan, language: Language) -> String {
    let kept = shown.head.saturating_add(shown.tail);
    let mut text = language.with(phrase::BYTES_OF, &[&grouped(kept), &grouped(shown.bytes)]);
    if !shown.media.is_empty() {
        let media = language.count(shown.media.len() as u64, noun::ATTACHMENT);
        text.push_str(&format!(", {}", language.with(phrase::LEFT_OUT, &[&media])));
    }
    text
}

/// Describes an image or document.
pub fn media(it: &Media, language: Language) -> String {
    let mut facts = vec![it.kind.clone()];
    facts.extend(it.media_type.clone());
    let size = it.bytes.map(|bytes| language.count(bytes as u64, noun::BYTE));
    facts.push(size.unwrap_or_else(|| language.say(phrase::NOT_INCLUDED).to_owned()));
    facts.join(", ")
}

/// Describes a block that is shown only by its type and size.
pub fn other(kind: &str, bytes: usize, language: Language) -> String {
    format!("{kind}, {}", language.count(bytes as u64, noun::BYTE))
}

/// Returns the mark of a retracted or pinned record, unless it is shown already. `marked` is the record whose mark was last shown.
pub fn marks(
    entry: &ShownEntry,
    marked: &mut Option<String>,
    language: Language,
) -> Option<&'static str> {
    let mark = match (entry.retracted, entry.pinned) {
        _ if marked.as_ref() == Some(&entry.id) => return None,
        (true, _) => phrase::RETRACTED,
        (false, true) => phrase::PINNED,
        (false, false) => return None,
    };
    *marked = Some(entry.id.clone());
    Some(language.say(mark))
}

/// Formats a local time to the minute.
pub fn when(time: i64, zone: &TimeZone) -> String {
    let time = Timestamp::from_microsecond(time).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Formats a local time of day to the second.
pub fn clock(time: Option<i64>, zone: &TimeZone) -> Option<String> {
    let time = Timestamp::from_microsecond(time?).ok()?;
    Some(time.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string())
}

/// Escapes control characters in text of many lines. CRLF line ends become line feeds.
pub fn clean(text: &str) -> String {
    match text.contains("\r\n") {
        true => printable_lines(&text.replace("\r\n", "\n")).into_owned(),
        false => printable_lines(text).into_owned(),
    }
}

/// Escapes text for HTML content, outside tags.
pub fn html(text: &str) -> String {
    partial_escape(text).into_owned()
}
