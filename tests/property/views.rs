//! Laws of view records, such as truncations and compactions: after one is appended, rebuilding gives the messages that
//! were planned with it, and every view record can be undone.

use std::collections::HashMap;

use serde_json::Value;

use super::any::{Law, is_accepted, lines, rebuild, same};
use super::laws::{has_plain_ids, has_unique_calls, values};
use super::records::Conversation;
use clawutils::compact::cut::{CutLimits, CutRule};
use clawutils::compact::{MadeSummary, Strategy, Task};
use clawutils::estimate::{Estimate, Gauge, Method, Request};
use clawutils::finding::rules::DUPLICATE_RESULT;
use clawutils::messages::Message;
use clawutils::record;
use clawutils::truncate::{self, TruncateOptions};

/// A transcript to which records are appended as by `claw-append`.
pub struct File {
    pub bytes: Vec<u8>,
    /// The ids of the view records appended.
    pub views: Vec<String>,
}

/// Truncates a conversation, compacts it three times with a new turn after each compaction, and checks each step. Then
/// checks that retracting all view records gives the messages of the conversation and the new turns alone.
pub fn of_views(conversation: &Conversation) -> Law {
    let mut file = File::new(conversation.write().bytes);
    let mut plain = File::new(file.bytes.clone());
    let is_exact = has_unique_calls(conversation);
    // If a compaction covers a call and its first result but not its second result, rebuild reads only the second
    // result, takes it for an early result, and pairs it with the next call that has the same id. Transcripts in which
    // this can happen are skipped.
    let found = rebuild(&file.bytes)?.findings;
    let has_seconds = found.iter().any(|found| *found.rule == DUPLICATE_RESULT);
    if !has_plain_ids(conversation) || has_seconds && !is_exact {
        return Ok(());
    }
    // Some transcripts are truncated twice, so that some results have two records.
    let tenths = if file.bytes.len().is_multiple_of(2) { &[9, 1][..] } else { &[1] };
    for tenths in tenths {
        truncated(&mut file, *tenths)?;
    }
    for turn in 0..3 {
        compacted(&mut file, turn)?;
        for line in turn_of(turn) {
            file.append(&line)?;
            plain.append(&line)?;
        }
    }
    for view in file.views.clone().into_iter().rev() {
        file.append(&format!(r#"{{"type":"retract","target":"{view}"}}"#))?;
    }
    let (now, then) = (rebuild(&file.bytes)?.messages, rebuild(&plain.bytes)?.messages);
    same("all view records undone", &lines(&now), &lines(&then))
}

/// Returns a turn with a call, for the next compaction to cover.
fn turn_of(turn: usize) -> [String; 5] {
    let long = "many new words on a line ".repeat(8);
    [
        format!(r#"{{"type":"user","content":"w{turn} {long}"}}"#),
        format!(r#"{{"type":"assistant","content":[{{"type":"text","text":"w{turn} {long}"}}]}}"#),
        format!(r#"{{"type":"tool_use","tool_use_id":"new_{turn}","name":"f","input":{{}}}}"#),
        format!(r#"{{"type":"tool_result","tool_use_id":"new_{turn}","content":"{long}"}}"#),
        format!(r#"{{"type":"assistant","content":"w{turn} {long}"}}"#),
    ]
}

impl File {
    /// Returns a transcript to which no view records have been appended yet.
    pub fn new(bytes: Vec<u8>) -> File {
        File { bytes, views: Vec::new() }
    }

    /// Appends a record. Returns its id.
    pub fn append(&mut self, record: &str) -> Result<String, String> {
        if self.bytes.last().is_some_and(|last| *last != b'\n') {
            self.bytes.push(b'\n');
        }
        let ended = self.bytes.strip_suffix(b"\n").unwrap_or_default();
        let last = ended.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = record::seal(record, last, "1")?;
        self.bytes.extend(line.bytes());
        self.bytes.push(b'\n');
        let id = line.get(7..23).ok_or("no id")?;
        Ok(id.to_owned())
    }

    /// Appends a view record.
    pub fn append_view(&mut self, record: &str) -> Law {
        let id = self.append(record)?;
        self.views.push(id);
        Ok(())
    }
}

fn gauge(messages: &[Message<'_>]) -> (Gauge, u64) {
    let request = Request { messages, ..Request::default() };
    let gauge = Gauge::new(request, None);
    (gauge, gauge.tokens(request))
}

/// Checks that the estimate of the messages is the size that truncation or compaction reported.
fn has_size(messages: &[Message<'_>], reported: u64) -> Law {
    let tokens = Estimate::of(Request { messages, ..Request::default() }, Method::Script).tokens;
    same("the reported size", &[tokens.to_string()], &[reported.to_string()])
}

/// Truncates the transcript and appends the records. Checks that rebuild then gives the truncated messages, and that a
/// second truncation changes nothing.
fn truncated(file: &mut File, tenths: u64) -> Law {
    let mut messages = rebuild(&file.bytes)?.messages;
    let (gauge, tokens) = gauge(&messages);
    let options = TruncateOptions {
        max_chars: 300,
        floor_chars: 150,
        head_ratio: 0.7,
        min_gain: 0,
        budget: tokens * tenths / 10,
    };
    let outcome = truncate::truncate(&mut messages, Request::default(), gauge, options);
    for record in &outcome.records {
        file.append_view(record)?;
    }
    let rebuilt = rebuild(&file.bytes)?.messages;
    same("truncated and rebuilt", &lines(&rebuilt), &lines(&messages))?;
    has_size(&rebuilt, outcome.after)?;
    let again = truncate::truncate(&mut messages, Request::default(), gauge, options);
    same("truncated twice", &lines(&messages), &lines(&rebuilt))?;
    same("truncated twice", &again.records, &Vec::new())?;
    is_accepted(&rebuilt, &file.bytes)
}

/// Compacts the transcript and appends the record. Checks that rebuild then gives the planned messages, even if the
/// record's offset for the first kept record is wrong or missing.
fn compacted(file: &mut File, turn: usize) -> Law {
    let messages = rebuild(&file.bytes)?.messages;
    let (gauge, tokens) = gauge(&messages);
    // Some compactions have a target size, and the others cover the oldest half.
    let target = turn.is_multiple_of(2).then_some(tokens * 3 / 4);
    let task = Task {
        messages: &messages,
        system: None,
        tools: None,
        model: None,
        gauge,
        target,
        keep_user: 100,
        rule: CutRule::Half,
        limits: CutLimits::default(),
    };
    let Some(planned) = task.plan() else { return Ok(()) };
    let text = format!("what happened up to turn {turn}");
    let source = MadeSummary {
        text: &text,
        strategy: Strategy::File,
        model: None,
        usage: None,
        retry_of: None,
        scale: gauge.scale(),
    };
    let (id, place) = task.first_kept(&planned).ok_or("nothing kept has a record")?;
    let expected = task.apply(&planned, &text);
    let wrong = [Some(place + 1), Some(u64::MAX), None];
    let wrong = if turn == 0 { &wrong[..] } else { &[] };
    for hint in wrong.iter().copied().chain([Some(place)]) {
        let mut record = planned.record(&source, &(id.clone(), hint.unwrap_or_default()), 1);
        if hint.is_none() {
            record = record.replacen(r#","first_kept_offset":0"#, "", 1);
        }
        let mut tried = File { bytes: file.bytes.clone(), views: file.views.clone() };
        tried.append_view(&record)?;
        let rebuilt = rebuild(&tried.bytes)?.messages;
        let what = format!("compacted and rebuilt, hint {hint:?} for {place}");
        // The ids of calls may be mapped differently once the calls before them are covered.
        same(&what, &with_plain_ids(&rebuilt)?, &with_plain_ids(&expected)?)?;
        has_size(&rebuilt, task.tokens(&expected))?;
        is_accepted(&rebuilt, &tried.bytes)?;
        if hint == Some(place) {
            *file = tried;
        }
    }
    Ok(())
}

/// Returns messages with the ids of calls replaced by numbers, in order. If two calls share an id, the later one is
/// sent with a different id. Once a compaction covers the earlier call, the later one is sent with its own id again.
pub fn with_plain_ids(messages: &[Message<'_>]) -> Result<Vec<String>, String> {
    let mut ids: HashMap<String, Value> = HashMap::new();
    let mut values = values(messages)?;
    for block in values.iter_mut().filter_map(|value| value["content"].as_array_mut()).flatten() {
        for name in ["id", "tool_use_id"] {
            if let Some(id) = block.get_mut(name) {
                let count = ids.len();
                let plain = ids.entry(id.to_string()).or_insert_with(|| count.into());
                *id = plain.clone();
            }
        }
    }
    Ok(values.iter().map(Value::to_string).collect())
}
