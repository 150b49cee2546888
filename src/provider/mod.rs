//! Provider calls: builds requests, reads replies, and classifies failures.
//!
//! Building requests and reading answers have no side effects. A [`Provider`] is what a user names; with an address and a
//! model it has a [`protocol`]. [`api`] says what a protocol does. Each of the five (`anthropic`, `chat`, `responses`,
//! `gemini`, `ollama`) is a folder, and two of them have variants for the platforms on which they are offered. [`target`]
//! converts messages alone, for other programs. [`stream`] splits a stream into events, [`reading`] turns the
//! bytes of an answer into a reply or a failure, and [`refusal`] classifies refusals. [`call`] combines them
//! with a transport that the caller supplies. Only `http` uses the network.

pub mod address;
pub mod anthropic;
pub mod api;
pub mod batch;
pub mod cache;
pub mod call;
pub mod cassette;
pub mod chat;
pub mod container;
pub mod effort;
pub mod estimated;
pub mod endpoint;
mod extent;
pub mod fit;
mod gemini;
#[cfg(feature = "http")]
pub mod http;
pub mod key;
pub mod message_places;
pub mod offline;
pub mod ollama;
pub mod offered;
pub mod plain;
pub mod collect;
pub mod own_summary;
pub mod prefix;
pub mod protocol;
mod providers;
pub mod question;
pub mod reading;
#[cfg(test)]
mod recorded;
pub mod reasoning;
mod responses;
pub mod refusal;
pub mod sampling;
pub mod secret;
pub mod stream;
pub mod target;
mod turns;

use crate::input::line;
use crate::json::write::{Members, member, opening};
use crate::json::{Object, is_deeper, on_one_line};
use crate::messages::Message;
use crate::provider::cache::{Cache, CacheMiss};
use crate::provider::reasoning::Author;
use crate::record;
use crate::record::content::Block;
use effort::Effort;
pub use providers::{ApiChoice, Provider};
pub use refusal::Failure;
use refusal::{Feature, Features, Rows};
pub(crate) use turns::FAILED;

/// A request to a provider.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelRequest<'r, 'a> {
    /// The model's name.
    pub model: &'r str,
    /// The maximum number of tokens in the answer.
    pub max_tokens: u64,
    /// The name of the member with the output limit in a chat completions request: `max_tokens`, or
    /// `max_completion_tokens` for OpenAI's newer models.
    pub max_tokens_name: &'r str,
    /// The system prompt.
    pub system: Option<&'r str>,
    /// The tools, as a JSON array.
    pub tools: Option<&'r str>,
    /// The messages.
    pub messages: &'r [Message<'a>],
    /// The sampling temperature; the provider's default if it is `None`.
    pub temperature: Option<f64>,
    /// How much the model thinks; the provider's default if it is `None`.
    pub effort: Option<Effort>,
    /// The maximum number of tokens that the model thinks, of those in the answer.
    pub thinking_budget: Option<u64>,
    /// What the request is sent without, because the model refuses it.
    pub without: Features,
    /// The beta features to request, separated by commas. Only Bedrock has them in the body.
    pub betas: &'r str,
    /// The server and the model, which get their own reasoning back. `None` for no reasoning.
    pub author: Option<&'r Author>,
    /// The id of the container in which Anthropic's servers run code, as a JSON string.
    pub container: Option<&'r str>,
    /// The prompt cache to ask for, if any.
    pub cache: Option<Cache<'r>>,
    /// True to request a streaming answer.
    pub stream: bool,
    /// The context window in tokens, if it is known. Requests to Ollama contain it.
    pub window: Option<u64>,
    /// Additional members of the body, as a JSON object. They override members of the same name.
    pub extra: Option<&'r str>,
}

impl<'r> ModelRequest<'r, '_> {
    /// Returns the caching to ask for, without what the model refuses.
    #[must_use]
    pub fn wanted_cache(&self) -> Option<Cache<'r>> {
        let wanted = self.cache?;
        let mut refused = wanted.features().filter(|feature| self.without.has(*feature));
        refused.try_fold(wanted, |cache, feature| cache.without(feature))
    }

    /// Returns those features of the request that models may refuse and without which it can be sent. With tools in the
    /// request, the model would have to call them, so calls stay.
    #[must_use]
    pub fn features(&self) -> Features {
        let is_set = |name: &&str| {
            *name == "temperature" && self.temperature.is_some()
                || self.extra.is_some_and(|extra| sampling::values(extra, name).next().is_some())
        };
        let mut features = Features::default();
        for (index, names) in sampling::PARAMETERS.iter().enumerate() {
            if names.iter().any(is_set) {
                features.add(Feature::Parameter(index));
            }
        }
        if self.thinking_budget.is_some_and(|tokens| tokens > 0) {
            features.add(Feature::ThinkingBudget);
        }
        if self.effort.is_some() || self.thinking_budget.is_some() {
            features.add(Feature::Thinking);
        }
        if own_summary::is_among(self.messages, self.author) {
            features.add(Feature::OwnSummary);
        }
        if let Some(cache) = self.cache {
            cache.features().for_each(|feature| features.add(feature));
        }
        if self.tools.is_none() && plain::has_calls(self.messages) {
            features.add(Feature::Calls);
        }
        features
    }

    /// Returns the effort that is sent: for APIs and models without a budget, also the level nearest to the budget.
    fn level(&self, has_budgets: bool) -> Option<Effort> {
        let has_budget = has_budgets && !self.without.has(Feature::ThinkingBudget);
        let nearest = || self.thinking_budget.filter(|_| !has_budget).map(Effort::nearest);
        let level = self.effort.or_else(nearest);
        level.filter(|_| !self.without.has(Feature::Thinking))
    }

    /// Returns the budget for thinking that is sent to an API that has budgets.
    fn budget(&self) -> Option<u64> {
        let refused = [Feature::ThinkingBudget, Feature::Thinking];
        let is_refused = refused.into_iter().any(|feature| self.without.has(feature));
        self.thinking_budget.filter(|_| !is_refused)
    }
}

#[cfg(test)]
impl<'r, 'a> ModelRequest<'r, 'a> {
    /// Returns a request with these messages and defaults for everything else.
    fn plain(messages: &'r [Message<'a>], max_tokens: u64) -> ModelRequest<'r, 'a> {
        ModelRequest {
            model: "m",
            max_tokens,
            max_tokens_name: "max_tokens",
            system: None,
            tools: None,
            messages,
            temperature: None,
            effort: None,
            thinking_budget: None,
            without: Features::default(),
            betas: "",
            author: None,
            container: None,
            cache: None,
            stream: false,
            window: None,
            extra: None,
        }
    }
}

/// The answer to one HTTP request, with any status.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, or the part of it that has arrived.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of the header with this lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
    }

    /// Returns true if the status is 2xx.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Classifies the refusal described by `body`, with this answer's status and headers. `now` is the time
    /// in Unix seconds; `rows` are the user's additions to the failure table.
    #[must_use]
    pub fn refusal(&self, body: &[u8], now: f64, rows: &Rows) -> Failure {
        Failure::classify(self.status, &|name| self.header(name), body, now, rows)
    }
}

/// The model's reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The content blocks, each as JSON, in order.
    pub blocks: Vec<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The stop reason: Anthropic's word for it if there is one, otherwise the provider's.
    pub stop_reason: Option<String>,
    /// The token usage, as the provider sent it.
    pub usage: Option<String>,
    /// The provider's id for the request.
    pub request_id: Option<String>,
    /// The id of the answer itself, by which Anthropic knows it.
    pub id: Option<String>,
    /// Anthropic's reason why its prompt cache did not have the prefix of an earlier request.
    pub cache_miss: Option<CacheMiss>,
    /// The reasoning text, as a JSON string, from providers that send it separately and do not accept it in
    /// later requests.
    pub reasoning: Option<String>,
    /// The container in which the provider ran code, as JSON.
    pub container: Option<String>,
    /// True if the reply was interrupted; the blocks hold the part shown before that.
    pub interrupted: bool,
    /// The kinds of content that records cannot hold and that are therefore dropped: audio, images.
    pub left_out: Vec<String>,
}

/// A call that failed.
#[derive(Clone, Debug)]
pub struct FailedCall {
    /// The reason.
    pub failure: Failure,
    /// The earlier replies of a paused turn, then the part of the last reply that was shown before the
    /// failure.
    pub shown: Vec<Reply>,
}

impl From<Failure> for FailedCall {
    fn from(failure: Failure) -> FailedCall {
        FailedCall { failure, shown: Vec::new() }
    }
}

/// The records of a reply, without ids and timestamps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The records, one JSON object each.
    pub lines: Vec<String>,
    /// The name of a tool call that was dropped because the answer was cut off inside it.
    pub cut_call: Option<String>,
}

impl Reply {
    /// Returns true if `max_tokens` or the context window cut the answer off.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(
            self.stop_reason.as_deref(),
            Some("max_tokens" | "length" | "model_context_window_exceeded")
        )
    }

    /// Returns true if the answer ended normally, but with neither text nor tool calls: nothing, or only thinking.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let reason = self.stop_reason.as_deref();
        let ended = matches!(reason, None | Some("end_turn" | "tool_use" | "stop_sequence"));
        let has_content = |raw: &String| {
            Block::parse(raw.as_str()).is_ok_and(|block| !block.is_thinking() && !block.is_blank())
        };
        ended && self.left_out.is_empty() && !self.blocks.iter().any(has_content)
    }

    /// Returns true if the last tool call may be incomplete, because the answer was cut off or ended in a
    /// refusal.
    #[must_use]
    pub fn may_end_in_partial_call(&self) -> bool {
        self.is_cut_off() || self.stop_reason.as_deref() == Some("refusal")
    }

    /// Returns true if the provider paused the turn and the part so far can be sent back to continue it.
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

    /// Returns the reason why the reply cannot be stored as records, phrased to follow "the answer".
    /// `claw-append` rejects invalid records and records that are nested too deeply.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        // A tool call becomes a record; any other block is two levels down, in a record's content list.
        let most = |block: &str| line::MAX_DEPTH - if call_name(block).is_some() { 0 } else { 2 };
        let is_deep = |block: &String| is_deeper(block, most(block));
        let usage = self.usage.as_deref().unwrap_or_default();
        if self.blocks.iter().any(is_deep) || is_deeper(usage, line::MAX_DEPTH - 1) {
            return Some(format!("is nested more than {} levels deep", line::MAX_DEPTH));
        }
        let flaw = |block: &String| match call_name(block) {
            Some(_) => {
                let call = call_record(block).ok_or("has a tool call without an id or a name")?;
                let object = Object::parse(&call).map_err(|_| "has an invalid tool call")?;
                record::parse(&object).and_then(|body| record::check_calls(&body))
            }
            None => Block::parse(block.as_str()).map(drop),
        };
        let why = self.blocks.iter().find_map(|block| flaw(block).err())?;
        Some(format!("cannot be stored as records: {why}"))
    }

    /// Returns the visible text of each block that has some.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        let text = |raw: &String| Block::parse(raw.as_str()).ok().and_then(|block| block.text());
        self.blocks.iter().filter_map(text)
    }

    /// Returns the reply as records: always one assistant record, then a `tool_use` record per tool call in
    /// order. Blocks after a tool call go into another assistant record. If the answer was cut off or refused,
    /// a tool call at its end may be incomplete and is dropped.
    #[must_use]
    pub fn to_records(&self, provider: &str) -> Records {
        self.clone().take_records(provider, &Author::default())
    }

    /// Like [`Reply::to_records`], but moves the blocks, which may be long, out of the reply, and adds the author to
    /// reasoning.
    #[must_use]
    pub fn take_records(&mut self, provider: &str, author: &Author) -> Records {
        let mut records = Records::default();
        let mut blocks = std::mem::take(&mut self.blocks);
        if self.may_end_in_partial_call()
            && let Some(name) = blocks.last().and_then(|block| call_name(block))
        {
            records.cut_call = Some(name);
            blocks.pop();
        }
        let container = self.container.as_deref().map(container::block);
        let mut text: Vec<String> = container.into_iter().map(|it| author.sign(it)).collect();
        let mut is_first = true;
        for block in blocks {
            match call_record(&block) {
                Some(call) => {
                    self.flush(&mut text, &mut is_first, provider, &mut records.lines);
                    records.lines.push(call);
                }
                None => text.push(author.sign(block)),
            }
        }
        self.flush(&mut text, &mut is_first, provider, &mut records.lines);
        // A record is one line, even if the provider formatted its JSON on several.
        let is_multiline = |line: &&mut String| line.contains(['\n', '\r']);
        for line in records.lines.iter_mut().filter(is_multiline) {
            *line = on_one_line(line);
        }
        records
    }

    /// Appends an assistant record for the blocks in `text`. The reply's first record is always written and
    /// has the metadata; further records are written only if `text` has blocks.
    fn flush(
        &self,
        text: &mut Vec<String>,
        first: &mut bool,
        provider: &str,
        out: &mut Vec<String>,
    ) {
        let blocks = std::mem::take(text);
        if *first {
            // The reasoning may be long, so it is copied only once.
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

/// Returns an assistant record: its content blocks, followed by the text in `after`. To save memory, the line
/// is built in the first block's buffer, and each further block is freed once copied.
fn assistant_record(blocks: Vec<String>, after: &[&str]) -> String {
    let begin = concat!(opening!("type": "assistant", "content"), "[");
    let length = blocks.iter().map(|block| block.len() + 1).sum::<usize>();
    let length = length + after.iter().map(|part| part.len()).sum::<usize>();
    let mut blocks = blocks.into_iter();
    let mut line = blocks.next().unwrap_or_default();
    line.reserve_exact(begin.len() + length - line.len().min(length) + 1);
    line.insert_str(0, begin);
    for block in blocks {
        line.push(',');
        line.push_str(&block);
    }
    line.push(']');
    after.iter().for_each(|part| line.push_str(part));
    line
}

fn call_name(block: &str) -> Option<String> {
    let object = Object::parse(block).ok()?;
    let is_call = object.string("type")? == "tool_use";
    is_call.then(|| object.string("name").unwrap_or_default().into_owned())
}

/// Returns a `tool_use` block as a record; `None` for any other block, or if the id or the name is missing.
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
    fn a_reply_becomes_an_assistant_record_and_its_calls() {
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
    fn v66_an_incomplete_call_is_dropped() {
        let records = reply(&[TEXT, CALL, CALL], "max_tokens").to_records("p");
        assert_eq!((records.lines.len(), records.cut_call.as_deref()), (2, Some("f")));
    }
}
