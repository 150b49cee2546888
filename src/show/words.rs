//! Wording that all formats share, as plain text that each format escapes.

use super::{CallOutcome, Item, Media, Refusal, ReplyFacts, Session, ShownCompaction, ShownEntry};
use crate::cost::PriceList;
use crate::estimate::report::grouped;
use crate::printable::printable_lines;
use crate::record::compaction::HEADING;
use crate::record::omission::Omission;
use crate::record::truncation::KeptSpan;
use crate::shorten::omit;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The remark beside a tool call whose result comes before it in the file, as in claw0's first format.
pub const ANSWERED: &str = "the result is above";

/// A view record, or another record that is not part of the conversation.
pub struct Note {
    /// The kind of record, one word.
    pub title: &'static str,
    /// A one-line description.
    pub line: String,
    /// The full text, if there is one.
    pub body: Option<String>,
}

/// Returns the note for an entry that is not part of the conversation.
pub fn note(entry: &ShownEntry) -> Option<Note> {
    let (title, line, body) = match &entry.item {
        Item::Compaction(it) => ("compaction", compaction(it), Some(summary(it))),
        Item::Truncation { name, call, shown } => {
            let of =
                name.as_ref().map_or(format!("call {call}"), |name| format!("{name} ({call})"));
            ("truncation", format!("the result of {of} is sent shortened: {}", amount(shown)), None)
        }
        Item::Omission(it) => ("omission", omission(it), None),
        Item::Checkpoint(it) => {
            let by =
                it.generated_by.as_ref().map_or(String::new(), |model| format!(", by {model}"));
            let (messages, tokens) = (plural(it.messages, "message"), plural(it.tokens, "token"));
            let line = format!("a summary made in advance: {messages}, {tokens}{by}");
            ("checkpoint", line, Some(it.render()))
        }
        Item::Retract(target) => ("retract", format!("record {target} is retracted"), None),
        Item::Error(it) => ("error", error(it), None),
        Item::Label(label) => ("label", format!("the label is now '{label}'"), None),
        _ => return None,
    };
    let line = if entry.retracted { format!("{line} (retracted)") } else { line };
    Some(Note { title, line, body })
}

fn omission(it: &Omission) -> String {
    let what = match omit::what(&it.kind) {
        "thinking" => "thinking",
        "input" => "the input of a call",
        other => &format!("one {other}"),
    };
    let reason = if it.reason.is_empty() { String::new() } else { format!(": {}", it.reason) };
    format!("{what} of record {} is not sent{reason}", it.record_id)
}

fn compaction(it: &ShownCompaction) -> String {
    let what = it.records.map_or("the records above".to_owned(), |count| plural(count, "record"));
    let mut line = format!("a summary of {what}");
    match (it.before, it.summary.tokens_after) {
        (Some(before), Some(after)) => {
            line.push_str(&format!(": {} → {} tokens", grouped(before), grouped(after)));
        }
        (Some(before), None) => line.push_str(&format!(": {} tokens before", grouped(before))),
        _ => {}
    }
    let by = [it.strategy.as_deref(), it.model.as_deref()];
    by.into_iter().flatten().for_each(|word| line.push_str(&format!(", {word}")));
    if let Some(place) = &it.retry_of {
        line.push_str(&format!(", replaces {place}"));
    }
    if it.summary.needs_retry {
        line.push_str(", the summary is missing");
    }
    line
}

/// Returns the summary as the model reads it, without its heading.
fn summary(it: &ShownCompaction) -> String {
    let text = it.summary.render();
    text.strip_prefix(HEADING).unwrap_or(&text).trim_start().to_owned()
}

fn error(it: &Refusal) -> String {
    let status = it.status.map_or(String::new(), |status| format!(" ({status})"));
    let message = if it.message.is_empty() { String::new() } else { format!(": {}", it.message) };
    let mut line = format!("{}{status}{message}", it.class);
    if let Some(actual) = it.actual {
        line.push_str(&format!("; {}", plural(actual, "token")));
    }
    if let Some(limit) = it.limit {
        line.push_str(&format!("; window {}", grouped(limit)));
    }
    line
}

/// Returns the name of the program that writes a dialect.
pub fn program(dialect: &str) -> &str {
    match dialect {
        "claude-code" => "Claude Code",
        "codex" => "Codex CLI",
        other => other,
    }
}

/// Returns the facts about a session, in order of display.
pub fn session(it: &Session, zone: &TimeZone) -> Vec<String> {
    let program = it.dialect.as_deref().map(|dialect| program(dialect).to_owned());
    let agent = it.agent.as_ref().map(|agent| format!("subagent {agent}"));
    let created = it.created.map(|time| when(time, zone));
    let parent = it.parent.as_ref().map(|parent| format!("forked from {parent}"));
    let key = it.key.clone().filter(|key| *key != it.id);
    let all = [Some(it.id.clone()), key, it.label.clone(), program, agent, created, parent];
    all.into_iter().flatten().filter(|it| !it.is_empty()).collect()
}

/// Returns the facts about a reply, in order of display.
pub fn reply(it: &ReplyFacts, prices: &PriceList) -> Vec<String> {
    let mut facts: Vec<String> = it.model.iter().cloned().collect();
    if let Some(counts) = &it.counts {
        let cached = match counts.cache_read {
            0 => String::new(),
            read => format!(" ({} from cache)", grouped(read)),
        };
        facts.push(format!("{} in{cached}", grouped(counts.prompt())));
        facts.push(format!("{} out", grouped(counts.output)));
        let cost = it.model.as_ref().and_then(|model| prices.cost(model, counts));
        facts.extend(cost.map(|cost| prices.amount(cost)));
    }
    let ended = ["end_turn", "tool_use", "stop", "tool_calls", "stop_sequence"];
    let odd = it.stop_reason.as_ref().filter(|reason| !ended.contains(&reason.as_str()));
    facts.extend(odd.cloned());
    facts.extend(it.interrupted.then(|| "interrupted".to_owned()));
    facts
}

/// Returns the facts about a tool result: its call, failure, and the part that is sent.
pub fn result(it: &CallOutcome) -> Vec<String> {
    let mut facts = vec![match &it.call {
        Some((name, _)) if it.follows => name.clone(),
        Some((name, input)) => format!("{name} {input}"),
        None => format!("result of call {}, without a call before it", it.id),
    }];
    facts.extend(it.is_error.then(|| "failed".to_owned()));
    facts.extend(it.shown.as_ref().map(|shown| format!("sent shortened: {}", amount(shown))));
    facts
}

/// Returns the size of the part of a result that is sent.
fn amount(shown: &KeptSpan) -> String {
    let kept = shown.head.saturating_add(shown.tail);
    let mut text = format!("{} of {} bytes", grouped(kept), grouped(shown.bytes));
    if !shown.media.is_empty() {
        let media = plural(shown.media.len() as u64, "attachment");
        text.push_str(&format!(", {media} left out"));
    }
    text
}

/// Describes an image or document.
pub fn media(it: &Media) -> String {
    let mut facts = vec![it.kind.clone()];
    facts.extend(it.media_type.clone());
    facts.push(it.bytes.map_or("not included".to_owned(), |bytes| plural(bytes as u64, "byte")));
    facts.join(", ")
}

/// Describes a block that is shown only by its type and size.
pub fn other(kind: &str, bytes: usize) -> String {
    format!("{kind}, {}", plural(bytes as u64, "byte"))
}

/// Returns the mark of a retracted or pinned record.
pub fn marks(entry: &ShownEntry) -> Option<&'static str> {
    match (entry.retracted, entry.pinned) {
        (true, _) => Some("retracted"),
        (false, true) => Some("pinned"),
        (false, false) => None,
    }
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

/// Formats a count with its noun.
pub fn plural(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", grouped(count)),
    }
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
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}
