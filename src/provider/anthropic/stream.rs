//! Collects a streaming answer.

use crate::json::write::{Members, list};
use crate::json::{Member, Object, offset_in, on_one_line};
use crate::provider::cache::CacheMiss;
use crate::provider::collect::{Collect, RawString, Remaining, Unfinished, bounded};
use crate::provider::{Reply, container};
use std::borrow::Cow;

/// The maximum number of members in `usage`.
const MAX_COUNTS: usize = 64;
/// The maximum length of one member of `usage`, in bytes.
const LONGEST_COUNT: usize = 4096;

/// The members that a `compaction_delta` brings; each delta has the whole value (anthropic 2.14.0).
const COMPACTION: [&str; 2] = ["content", "encrypted_content"];
/// The maximum number of kinds of unknown deltas that are reported, and the longest name of one, in bytes.
const MAX_KINDS: usize = 16;
const LONGEST_KIND: usize = 40;

/// A streaming reply: `message_start`; for each block its start, deltas and stop; then `message_delta` and
/// `message_stop`. Unknown events are ignored, and unknown deltas reported. `message_start` may be missing, because some
/// compatible servers omit it.
#[derive(Default)]
pub struct AnthropicStream {
    reply: Reply,
    /// The names and values of the members of `usage`, as raw JSON.
    counts: Option<Vec<(String, String)>>,
    blocks: Vec<BlockDraft>,
    is_complete: bool,
}

/// A content block that is still arriving.
#[derive(Default)]
struct BlockDraft {
    index: u64,
    /// The block from its start event.
    begun: String,
    /// The text that the deltas add to the block's member `text`. The next fields, up to `citations`, are for the
    /// members of the same names.
    text: RawString,
    thinking: RawString,
    signature: RawString,
    input: RawString,
    citations: Vec<String>,
    /// The members `content` and `encrypted_content` of a block with the provider's own summary, as raw JSON.
    compaction: [Option<String>; COMPACTION.len()],
    has_ended: bool,
}

impl Collect for AnthropicStream {
    fn take(&mut self, data: &Object<'_>, show: &mut dyn FnMut(&str)) -> Result<(), String> {
        let inner = |name: &str| data.get(name).and_then(|raw| Object::parse(raw).ok());
        match data.string("type").unwrap_or_default().as_ref() {
            "message_start" => {
                if let Some(message) = inner("message") {
                    self.reply.model = message.string("model").map(Cow::into_owned);
                    self.reply.container = container::of_answer(&message);
                    self.reply.id = message.string("id").map(Cow::into_owned);
                    self.reply.cache_miss = CacheMiss::of_answer(&message);
                    self.count(message.get("usage"))?;
                }
            }
            "content_block_start" => {
                let begun = inner("content_block").ok_or("starts a block that is not an object")?;
                if let Some(text) = begun.string("text") {
                    show(&text);
                }
                let (index, begun) = (index(data)?, begun.text().to_owned());
                self.blocks.push(BlockDraft { index, begun, ..BlockDraft::default() });
                bounded(self.blocks.len())?;
            }
            "content_block_delta" => {
                let block = self.block(index(data)?)?;
                let delta = inner("delta").ok_or("has a delta that is not an object")?;
                if let Some(kind) = block.add(&delta, show) {
                    self.leave_out(kind);
                }
            }
            "content_block_stop" => self.block(index(data)?)?.has_ended = true,
            "message_delta" => {
                if let Some(delta) = inner("delta") {
                    let reason = delta.string("stop_reason").map(Cow::into_owned);
                    self.reply.stop_reason = reason.or(self.reply.stop_reason.take());
                    self.reply.container =
                        container::of_answer(&delta).or(self.reply.container.take());
                }
                self.count(data.get("usage"))?;
            }
            "message_stop" => self.is_complete = true,
            _ => {}
        }
        Ok(())
    }

    fn remaining(&self) -> Remaining {
        if self.is_complete { Remaining::None } else { Remaining::Required }
    }

    fn shown(self: Box<Self>) -> Reply {
        let (reply, blocks) = self.parts();
        let blocks = blocks.into_iter().filter_map(|block| block.whole(true).ok()).collect();
        shown(Reply { blocks, ..reply })
    }

    fn finish(self: Box<Self>) -> Result<Reply, Unfinished> {
        if !self.is_complete {
            return Err(Unfinished::cut(self.shown()));
        }
        let (mut reply, blocks) = self.parts();
        let (last, mut flaw) = (blocks.len().saturating_sub(1), None);
        for (number, block) in blocks.into_iter().enumerate() {
            let may_be_partial = number == last && reply.may_end_in_partial_call();
            match block.whole(may_be_partial) {
                Ok(block) => reply.blocks.push(block),
                Err(why) => flaw = flaw.or(Some(why)),
            }
        }
        match flaw {
            Some(why) => Err(Unfinished { why, shown: shown(reply) }),
            None => Ok(reply),
        }
    }
}

impl AnthropicStream {
    /// Notes that deltas of this kind are dropped.
    fn leave_out(&mut self, kind: String) {
        let left_out = &mut self.reply.left_out;
        if left_out.len() < MAX_KINDS && !left_out.contains(&kind) {
            left_out.push(kind);
        }
    }

    /// Takes the members of `usage`. A later count replaces an earlier one; counts are not added up.
    fn count(&mut self, usage: Option<&str>) -> Result<(), String> {
        let Some(Ok(new)) = usage.map(Object::parse) else { return Ok(()) };
        let counts = self.counts.get_or_insert_default();
        for member in new.members().filter(|member| member.value != "null") {
            let (name, value) = (member.raw_name.to_owned(), member.value.to_owned());
            let is_long = name.len() + value.len() > LONGEST_COUNT;
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known = value,
                None => counts.push((name, value)),
            }
            if is_long || counts.len() > MAX_COUNTS {
                return Err("has too much usage data".to_owned());
            }
        }
        Ok(())
    }

    /// Returns the reply without its blocks, and the blocks.
    fn parts(self) -> (Reply, Vec<BlockDraft>) {
        let add = |it: Members, (raw_name, value): &(String, String)| {
            it.member(Member { raw_name, value })
        };
        let usage = self.counts.map(|counts| counts.iter().fold(Members::new(), add).into_json());
        (Reply { usage, ..self.reply }, self.blocks)
    }

    fn block(&mut self, index: u64) -> Result<&mut BlockDraft, String> {
        let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
        block.ok_or_else(|| format!("continues block {index} without having started it"))
    }
}

/// Returns the reply with only its text blocks and without a stop reason.
fn shown(mut reply: Reply) -> Reply {
    let has_text = |block: &String| {
        let block = Object::parse(block).ok();
        block.is_some_and(|block| block.string("text").is_some_and(|text| !text.is_empty()))
    };
    reply.blocks.retain(has_text);
    Reply { stop_reason: None, container: None, ..reply }
}

/// Appends `more` to a string member of a block. `more` may be long, so its buffer is reused.
fn with_more(mut raw: String, name: &str, more: RawString) -> String {
    let value_end = |raw: &str| {
        let object = Object::parse(raw).ok()?;
        let value = object.get(name).filter(|value| value.starts_with('"'))?;
        Some(offset_in(raw, value) + value.len() - 1)
    };
    if value_end(&raw).is_none()
        && let Ok(object) = Object::parse(&raw)
    {
        raw = object.with(name, "\"\"");
    }
    let Some(end) = value_end(&raw) else { return raw };
    more.into_between(&raw[..end], &raw[end..])
}

fn index(data: &Object<'_>) -> Result<u64, String> {
    data.number("index").ok_or_else(|| "has a block event without an index".to_owned())
}

impl BlockDraft {
    /// Takes a delta. Returns its type if that is unknown.
    fn add(&mut self, delta: &Object<'_>, show: &mut dyn FnMut(&str)) -> Option<String> {
        match delta.string("type").unwrap_or_default().as_ref() {
            "text_delta" => show(&self.text.add(delta.get("text"))),
            "thinking_delta" => {
                self.thinking.add(delta.get("thinking"));
            }
            "signature_delta" => {
                self.signature.add(delta.get("signature"));
            }
            "input_json_delta" => {
                self.input.add(delta.get("partial_json"));
            }
            "citations_delta" => self.citations.extend(delta.get("citation").map(str::to_owned)),
            "compaction_delta" => {
                for (name, value) in COMPACTION.iter().zip(&mut self.compaction) {
                    *value = delta.get(name).map(str::to_owned).or(value.take());
                }
            }
            kind => {
                return Some(if kind.len() > LONGEST_KIND { "delta" } else { kind }.to_owned());
            }
        }
        None
    }

    /// Returns the complete block. If `may_be_partial` is true, a tool call whose input is incomplete keeps the
    /// input of its start event.
    fn whole(self, may_be_partial: bool) -> Result<String, String> {
        let mut raw = self.begun;
        for (name, more) in
            [("text", self.text), ("thinking", self.thinking), ("signature", self.signature)]
        {
            if !more.is_empty() {
                raw = with_more(raw, name, more);
            }
        }
        for (name, value) in COMPACTION.iter().zip(self.compaction) {
            if let (Some(value), Ok(object)) = (value, Object::parse(&raw)) {
                raw = object.with(name, &value);
            }
        }
        if !self.citations.is_empty()
            && let Ok(object) = Object::parse(&raw)
        {
            raw = object.with("citations", &list(self.citations));
        }
        let object = Object::parse(&raw).map_err(|_| "has a block that is not an object")?;
        if !object.string("type").is_some_and(|kind| kind.ends_with("tool_use")) {
            return Ok(raw);
        }
        self.input.bounded(&object.string("name").unwrap_or_default())?;
        let input = self.input.text();
        let is_whole =
            self.has_ended && (input.trim().is_empty() || Object::parse(input.trim()).is_ok());
        match (is_whole, may_be_partial) {
            (true, _) if input.trim().is_empty() => Ok(raw),
            (true, _) => Ok(object.with("input", &on_one_line(input.trim()))),
            (false, true) => Ok(raw),
            (false, false) => {
                let name = object.string("name").unwrap_or_default();
                Err(format!("calls '{name}' with an input that is not a JSON object"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::provider::protocol::Protocol;
    use crate::provider::recorded;

    #[test]
    fn the_container_of_a_reply_is_kept_with_it() {
        let events = [
            r#"{"type":"message_start","message":{"model":"m","content":[],"container":null}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c_1", "expires_at":"2026-11-28T10:00:00Z"}}}"#,
            r#"{"type":"message_stop"}"#,
        ];
        let text: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
        let reply = recorded::read(Protocol::Anthropic, "text/event-stream", text.as_bytes(), 9).0;
        let reply = reply.unwrap();
        let container = r#"{"id":"c_1", "expires_at":"2026-11-28T10:00:00Z"}"#;
        assert_eq!(reply.container.as_deref(), Some(container));
        let record = reply.to_records("p").lines.concat();
        let begin = r#"{"type":"assistant","content":[{"type":"reasoning","api":"","server":"","model":"","container":"#;
        assert!(record.starts_with(&format!("{begin}{container}}},")), "{record}");
    }

    #[test]
    fn a_summary_of_the_provider_is_kept_and_unknown_deltas_are_reported() {
        let events = [
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"encrypted_content":null,"signature":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"Before.","encrypted_content":"e=="}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s=="}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"smell_delta","smell":"b"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ];
        let text: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
        let (reply, shown) =
            recorded::read(Protocol::Anthropic, "text/event-stream", text.as_bytes(), 9);
        let reply = reply.unwrap();
        let summary = r#"{"type":"compaction","content":"Before.","encrypted_content":"e==","signature":"s=="}"#;
        assert_eq!(reply.blocks, [summary, r#"{"type":"text","text":"a"}"#]);
        assert_eq!((reply.left_out, shown.as_str()), (vec!["smell_delta".to_owned()], "a"));
    }
}
