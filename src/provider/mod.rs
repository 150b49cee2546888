//! Talking to a provider: requests, replies and failures, as bytes in and bytes out.
//!
//! Shaping a request and reading an answer is pure: [`protocol`] has three ways to spell them
//! ([`anthropic`], [`openai`], [`ollama`]), [`stream`] finds the events in a stream's bytes, [`reading`]
//! makes a reply or a failure of what comes. What kind of failure an answer is says [`failure`]; [`call`]
//! ties them to something that moves bytes. Only `http` knows a network.

pub mod address;
pub mod anthropic;
pub mod call;
pub mod cassette;
mod chat;
pub mod estimated;
pub mod endpoint;
mod extent;
pub mod failure;
#[cfg(feature = "http")]
pub mod http;
pub mod key;
mod kind;
pub mod offline;
pub mod ollama;
pub mod openai;
pub mod collect;
pub mod protocol;
pub mod reading;
#[cfg(test)]
mod recorded;
pub mod secret;
pub mod stream;

use crate::input::lines;
use crate::json::write::{Members, member, opening};
use crate::json::{Object, is_deeper, on_one_line};
use crate::messages::Message;
use crate::record;
use crate::record::content::Block;
pub use failure::Failure;
use failure::Rows;
pub use kind::Provider;

/// What is asked of a provider.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'r, 'a> {
    /// The model's name.
    pub model: &'r str,
    /// The most tokens of the answer.
    pub max_tokens: u64,
    /// What these are called in chat completions: `max_tokens`, or as OpenAI itself has it now.
    pub max_tokens_name: &'r str,
    /// The system prompt.
    pub system: Option<&'r str>,
    /// The tools, as a JSON array.
    pub tools: Option<&'r str>,
    /// The messages.
    pub messages: &'r [Message<'a>],
    /// Whether the answer is to come event by event.
    pub stream: bool,
    /// The window that is asked for, in tokens, where the provider wants to be told.
    pub window: Option<u64>,
    /// Further members of the body, a JSON object; they win over others.
    pub extra: Option<&'r str>,
}

#[cfg(test)]
impl<'r, 'a> ModelRequest<'r, 'a> {
    /// A request with these messages and nothing else that is special.
    fn plain(messages: &'r [Message<'a>], max_tokens: u64) -> ModelRequest<'r, 'a> {
        ModelRequest {
            model: "m",
            max_tokens,
            max_tokens_name: "max_tokens",
            system: None,
            tools: None,
            messages,
            stream: false,
            window: None,
            extra: None,
        }
    }
}

/// One exchange's answer, whatever its status.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header by its lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    }

    /// Whether its status says that it is a reply.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What is refused, where `body` is what says so. `now` is the time in Unix seconds, `rows` are the
    /// user's rows.
    #[must_use]
    pub fn refusal(&self, body: &[u8], now: f64, rows: &Rows) -> Failure {
        Failure::classify(self.status, &|name| self.header(name), body, now, rows)
    }
}

/// A reply of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The content blocks, each as JSON, in order.
    pub blocks: Vec<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Why it stopped: in Anthropic's word where there is one for it, else in the provider's.
    pub stop_reason: Option<String>,
    /// What was counted, as it was sent.
    pub usage: Option<String>,
    /// The provider's name for the exchange.
    pub request_id: Option<String>,
    /// What it thought aloud, as a JSON string, where a provider tells that apart and takes it back from
    /// nobody.
    pub reasoning: Option<String>,
    /// True if it broke off: the blocks are what was shown by then.
    pub interrupted: bool,
    /// The kinds of parts that no record can hold: audio, an image.
    pub left_out: Vec<String>,
}

/// A call that failed.
#[derive(Clone, Debug)]
pub struct FailedCall {
    /// The reason.
    pub failure: Failure,
    /// The part of the reply that was shown by then, behind any replies that the provider paused.
    pub shown: Vec<Reply>,
}

impl From<Failure> for FailedCall {
    fn from(failure: Failure) -> FailedCall {
        FailedCall { failure, shown: Vec::new() }
    }
}

/// Records of a reply, without ids and times, and what was left out of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The lines.
    pub lines: Vec<String>,
    /// The name of a call that was cut off in the middle and so is no call.
    pub cut_call: Option<String>,
}

impl Reply {
    /// Whether the answer was cut off: by `max_tokens`, or by the window.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(
            self.stop_reason.as_deref(),
            Some("max_tokens" | "length" | "model_context_window_exceeded")
        )
    }

    /// Tells that the answer may end in half a call: it was cut off, or refused on the way.
    #[must_use]
    pub fn may_end_in_half(&self) -> bool {
        self.is_cut_off() || self.stop_reason.as_deref() == Some("refusal")
    }

    /// Tells that the provider waits to be asked for the rest of its turn, and that the part so far can be sent
    /// back.
    #[must_use]
    pub fn can_be_continued(&self) -> bool {
        let is_sendable = |block: &String| {
            Block::parse(block.as_str()).is_ok_and(|block| !block.is_blank())
                && call_name(block).is_none()
        };
        self.stop_reason.as_deref() == Some("pause_turn")
            && !self.blocks.is_empty()
            && self.blocks.iter().all(is_sendable)
    }

    /// Returns the reason why it cannot be kept as records, as a clause about the answer: `claw-append` refuses
    /// invalid records, and records that are nested too deep.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        // A call is a record of its own; another block stands in a list, which stands in a record.
        let most = |block: &str| lines::MOST_DEPTH - if call_name(block).is_some() { 0 } else { 2 };
        let is_deep = |block: &String| is_deeper(block, most(block));
        let usage = self.usage.as_deref().unwrap_or_default();
        if self.blocks.iter().any(is_deep) || is_deeper(usage, lines::MOST_DEPTH - 1) {
            return Some(format!("is nested more than {} deep", lines::MOST_DEPTH));
        }
        let flaw = |block: &String| match call_name(block) {
            Some(_) => {
                let call = call_record(block).ok_or("has a call without id or name")?;
                let object = Object::parse(&call).map_err(|_| "has an invalid call")?;
                record::parse(&object).map(drop)
            }
            None => Block::parse(block.as_str()).map(drop),
        };
        let why = self.blocks.iter().find_map(|block| flaw(block).err())?;
        Some(format!("cannot be kept as records: {why}"))
    }

    /// The text that it says, block by block.
    pub fn said(&self) -> impl Iterator<Item = String> {
        let says = |raw: &String| Block::parse(raw.as_str()).ok().and_then(|block| block.says());
        self.blocks.iter().filter_map(says)
    }

    /// The reply as records: an assistant record, always; a `tool_use` record for each call in order;
    /// after a call a further assistant record for what follows. A call that an answer ends in which was cut
    /// off or refused may be half a call and is left out.
    #[must_use]
    pub fn to_records(&self, provider: &str) -> Records {
        self.clone().take_records(provider)
    }

    /// The same, where the blocks are not needed any more: they may be long.
    #[must_use]
    pub fn take_records(&mut self, provider: &str) -> Records {
        let mut records = Records::default();
        let mut blocks = std::mem::take(&mut self.blocks);
        if self.may_end_in_half()
            && let Some(name) = blocks.last().and_then(|block| call_name(block))
        {
            records.cut_call = Some(name);
            blocks.pop();
        }
        let mut text: Vec<String> = Vec::new();
        let mut is_first = true;
        for block in blocks {
            match call_record(&block) {
                Some(call) => {
                    self.flush(&mut text, &mut is_first, provider, &mut records.lines);
                    records.lines.push(call);
                }
                None => text.push(block),
            }
        }
        self.flush(&mut text, &mut is_first, provider, &mut records.lines);
        // A record is a line, however the answer was laid out.
        let is_several = |line: &&mut String| line.contains(['\n', '\r']);
        for line in records.lines.iter_mut().filter(is_several) {
            *line = on_one_line(line);
        }
        records
    }

    /// Adds an assistant record for the blocks in `text`: the first one in any case, with all that is
    /// known of the reply; others only if there is something to say.
    fn flush(
        &self,
        text: &mut Vec<String>,
        first: &mut bool,
        provider: &str,
        out: &mut Vec<String>,
    ) {
        let blocks = std::mem::take(text);
        if *first {
            // What was thought may be long, and is not copied twice.
            let (name, reasoning) = match self.reasoning.as_deref() {
                Some(raw) => (member!("reasoning"), raw),
                None => ("", ""),
            };
            let end =
                if self.interrupted { concat!(member!("interrupted": true), "}") } else { "}" };
            let around = Members::new()
                .or_null(Members::string, "model", self.model.as_deref())
                .string("provider", provider)
                .or_null(Members::string, "stop_reason", self.stop_reason.as_deref())
                .or_null(Members::raw, "usage", self.usage.as_deref())
                .or_null(Members::string, "request_id", self.request_id.as_deref())
                .into_rest();
            out.push(assistant_record(blocks, &[&around, name, reasoning, end]));
        } else if !blocks.is_empty() {
            out.push(assistant_record(blocks, &["}"]));
        }
        *first = false;
    }
}

/// The line of an assistant record: its blocks, and what comes behind them. It is put together in the first
/// block, which may be long, and others go as soon as they are in it.
fn assistant_record(blocks: Vec<String>, behind: &[&str]) -> String {
    let begin = concat!(opening!("type": "assistant", "content"), "[");
    let length = blocks.iter().map(|block| block.len() + 1).sum::<usize>();
    let length = length + behind.iter().map(|part| part.len()).sum::<usize>();
    let mut blocks = blocks.into_iter();
    let mut line = blocks.next().unwrap_or_default();
    line.reserve_exact(begin.len() + length - line.len().min(length) + 1);
    line.insert_str(0, begin);
    for block in blocks {
        line.push(',');
        line.push_str(&block);
    }
    line.push(']');
    behind.iter().for_each(|part| line.push_str(part));
    line
}

fn call_name(block: &str) -> Option<String> {
    let object = Object::parse(block).ok()?;
    let is_call = object.string("type")? == "tool_use";
    is_call.then(|| object.string("name").unwrap_or_default().into_owned())
}

/// A `tool_use` block as a record.
fn call_record(block: &str) -> Option<String> {
    let object = Object::parse(block).ok()?;
    if object.string("type")? != "tool_use" {
        return None;
    }
    let (id, name) = (object.get("id")?, object.get("name")?);
    let input = object.get("input").unwrap_or("{}");
    let record = Members::of_type("tool_use").raw("tool_use_id", id).raw("name", name);
    Some(record.raw("input", input).into_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"type":"text","text":"look"}"#;
    const CALL: &str = r#"{"type":"tool_use","id":"a","name":"f","input":{"x":1e2}}"#;

    fn reply(blocks: &[&str], stop: &str) -> Reply {
        Reply {
            blocks: blocks.iter().map(|block| (*block).to_owned()).collect(),
            model: Some("m".into()),
            stop_reason: Some(stop.into()),
            usage: Some(r#"{"input_tokens":1}"#.into()),
            ..Reply::default()
        }
    }

    #[test]
    fn a_reply_is_one_record_and_its_calls() {
        let head = |content: &str| {
            format!(
                r#"{{"type":"assistant","content":[{content}],"model":"m","provider":"p","stop_reason":"tool_use","usage":{{"input_tokens":1}},"request_id":null}}"#
            )
        };
        let call = r#"{"type":"tool_use","tool_use_id":"a","name":"f","input":{"x":1e2}}"#;
        let lines = |blocks: &[&str]| reply(blocks, "tool_use").to_records("p").lines;
        assert_eq!(lines(&[TEXT, CALL]), [head(TEXT), call.to_owned()]);
        assert_eq!(lines(&[CALL]), [head(""), call.to_owned()]);
        assert_eq!(lines(&[]), [head("")]);
        let after = format!(r#"{{"type":"assistant","content":[{TEXT}]}}"#);
        assert_eq!(lines(&[TEXT, CALL, TEXT]), [head(TEXT), call.to_owned(), after]);
    }

    #[test]
    fn v66_half_a_call_is_no_call() {
        let records = reply(&[TEXT, CALL, CALL], "max_tokens").to_records("p");
        assert_eq!((records.lines.len(), records.cut_call.as_deref()), (2, Some("f")));
    }
}
