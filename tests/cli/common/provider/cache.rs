//! Prompt caches with the rules of Anthropic and of OpenAI.
//!
//! A prompt is a sequence of blocks in the order tools, system prompt, messages. **Anthropic** looks, from each mark, up to 20
//! blocks back for the longest prefix that was written before and has not expired, and writes the prefix up to each mark, if it
//! has at least 1024 tokens. **OpenAI** finds the longest common prefix with an earlier request that had the same key, in steps
//! of 128 tokens from 1024 on. The clock is the test's.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::common::rules::Violation;
use crate::common::shapes::Shape;

/// The fewest tokens that a cache keeps.
const LEAST: u64 = 1024;
/// The number of blocks before a mark in which Anthropic's servers look for a prefix.
const LOOK_BACK: usize = 20;
/// The maximum number of marks in a request.
const MOST_MARKS: usize = 4;
/// The step of OpenAI's cache, in tokens.
const STEP: u64 = 128;
/// The lifetimes in seconds: Anthropic's default and longer one.
const LIFETIMES: [u64; 2] = [300, 3600];
/// The lifetime of OpenAI's cache in seconds.
const LIFETIME: u64 = 1800;

/// The tokens of one prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cached {
    /// All tokens.
    pub prompt: u64,
    /// Those read from the cache.
    pub read: u64,
    /// Those written to it.
    pub written: u64,
    /// Those written to it for an hour.
    pub hour: u64,
    /// Why the prefix of the answer that the request names is not reused, with the tokens of its prompt.
    pub miss: Option<(&'static str, u64)>,
}

/// The tokens of all prompts, and their cost in input tokens: reading costs a tenth, writing 1.25 (2 for an hour).
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// The tokens.
    pub tokens: Cached,
    /// What they cost.
    pub cost: f64,
    /// What they would cost if each block that was sent before, in the same place, was read from the cache, and every other
    /// one was written to it once.
    pub ideal: f64,
}

/// A cache.
#[derive(Default)]
pub struct Cache {
    /// The time in seconds.
    pub now: u64,
    /// The prefixes of marked requests: the ends of their lives by their text.
    entries: HashMap<String, u64>,
    /// Earlier prompts, as blocks, with key and end of life.
    prompts: Vec<(String, Vec<String>, u64)>,
    /// Earlier requests with the ids of their answers, and their tokens.
    bodies: Vec<(String, Value, u64)>,
    /// The sums over all requests.
    pub totals: Totals,
}

/// A block of a prompt, without its mark.
struct Block {
    text: String,
    /// The lifetime that its mark asks for.
    mark: Option<u64>,
}

impl Cache {
    /// Answers a request: returns what it reads and writes. `id` is that of the answer.
    pub fn take(&mut self, shape: Shape, body: &Value, id: String) -> Cached {
        let miss = self.miss(body);
        let blocks = blocks(body);
        let texts: Vec<String> = blocks.iter().map(|block| block.text.clone()).collect();
        let (prompt, known) = (tokens(&texts), self.known(&texts));
        let cached = match shape {
            Shape::Anthropic => self.take_marked(&blocks, prompt),
            _ => self.take_keyed(body["prompt_cache_key"].as_str().unwrap_or_default(), &texts),
        };
        let until = self.now + LIFETIME;
        let key = body["prompt_cache_key"].as_str().unwrap_or_default().to_owned();
        self.prompts.push((key, texts, until));
        let new_rate = match (shape, blocks.iter().filter_map(|block| block.mark).max()) {
            (_, None) => 1.0,
            (_, Some(life)) => {
                if life > LIFETIMES[0] {
                    2.0
                } else {
                    1.25
                }
            }
        };
        self.bodies.push((id, body.clone(), prompt));
        let Cached { read, written, .. } = cached;
        let plain = (prompt - read - written) as f64;
        self.totals.cost += plain + read as f64 * 0.1 + written as f64 * new_rate;
        self.totals.ideal += known as f64 * 0.1 + (prompt - known) as f64 * new_rate;
        let sum = &mut self.totals.tokens;
        sum.prompt += prompt;
        sum.read += read;
        sum.written += written;
        Cached { miss, ..cached }
    }

    /// Returns why the prefix of the answer that `body` names is not reused.
    fn miss(&self, body: &Value) -> Option<(&'static str, u64)> {
        let named = body["diagnostics"]["previous_message_id"].as_str()?;
        let Some((_, last, tokens)) = self.bodies.iter().find(|(id, ..)| id == named) else {
            return Some(("previous_message_not_found", 0));
        };
        let parts = |body: &Value, name: &str| {
            let only = json!({name: body[name]});
            blocks(&only).into_iter().map(|block| block.text).collect::<Vec<_>>()
        };
        let is_changed = |name: &str| !parts(body, name).starts_with(&parts(last, name));
        let named = [
            ("tools", "tools_changed"),
            ("system", "system_changed"),
            ("messages", "messages_changed"),
        ];
        named.into_iter().find(|(name, _)| is_changed(name)).map(|(_, why)| (why, *tokens))
    }

    /// Returns the tokens of the longest run of blocks at the start that an earlier prompt has too.
    fn known(&self, texts: &[String]) -> u64 {
        let same = |(_, earlier, _): &(String, Vec<String>, u64)| {
            texts.iter().zip(earlier).take_while(|(a, b)| a == b).count()
        };
        let most = self.prompts.iter().map(same).max().unwrap_or(0);
        tokens(&texts[..most])
    }

    fn take_marked(&mut self, blocks: &[Block], prompt: u64) -> Cached {
        let texts: Vec<&str> = blocks.iter().map(|block| &*block.text).collect();
        let prefix = |end: usize| texts[..end].concat();
        let marked = || blocks.iter().enumerate().filter_map(|(at, it)| Some((at + 1, it.mark?)));
        let mut found = 0;
        for (end, _) in marked() {
            let hit = (end.saturating_sub(LOOK_BACK)..=end)
                .rev()
                .find(|at| self.entries.get(&prefix(*at)).is_some_and(|until| *until > self.now));
            found = found.max(hit.unwrap_or(0));
        }
        let (mut written_to, mut longest) = (0, 0);
        for (end, life) in marked() {
            if tokens(&texts[..end]) >= LEAST {
                self.entries.insert(prefix(end), self.now + life);
                written_to = written_to.max(end);
                longest = longest.max(life);
            }
        }
        let read = tokens(&texts[..found]);
        let written = tokens(&texts[..written_to]).saturating_sub(read);
        let hour = if longest > LIFETIMES[0] { written } else { 0 };
        Cached { prompt, read, written, hour, miss: None }
    }

    fn take_keyed(&mut self, key: &str, texts: &[String]) -> Cached {
        let all = texts.concat();
        let common = |(own, earlier, until): &(String, Vec<String>, u64)| {
            let is_there = own == key && *until > self.now;
            let same = all.bytes().zip(earlier.concat().into_bytes()).take_while(|(a, b)| a == b);
            if is_there { same.count() as u64 / 4 } else { 0 }
        };
        let most = self.prompts.iter().map(common).max().unwrap_or(0);
        let read = if most < LEAST { 0 } else { most / STEP * STEP };
        Cached { prompt: tokens(texts), read, ..Cached::default() }
    }
}

/// Returns the number of tokens in texts, each a quarter of its bytes.
fn tokens(texts: &[impl AsRef<str>]) -> u64 {
    texts.iter().map(|text| text.as_ref().len() as u64).sum::<u64>() / 4
}

/// Returns the blocks of a prompt.
fn blocks(body: &Value) -> Vec<Block> {
    let mut all = Vec::new();
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.for_each(|tool| all.push(block("tool", tool)));
    all.extend(content("system", &body["system"]));
    for message in body["messages"].as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        all.extend(content(role, &message["content"]));
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls.for_each(|call| all.push(block(role, call)));
    }
    all
}

fn content(role: &str, content: &Value) -> Vec<Block> {
    match content {
        Value::String(text) => vec![block(role, &json!({"type": "text", "text": text}))],
        Value::Array(blocks) => blocks.iter().map(|it| block(role, it)).collect(),
        _ => Vec::new(),
    }
}

fn block(role: &str, value: &Value) -> Block {
    let mut value = value.clone();
    let mark = value.as_object_mut().and_then(|members| members.remove("cache_control"));
    let mark = mark.map(|mark| LIFETIMES[usize::from(mark["ttl"] == "1h")]);
    Block { text: format!("{role} {value}"), mark }
}

/// Checks the marks of a request as the Messages API does.
pub fn check(body: &Value) -> Result<(), Violation> {
    let invalid = |message: String| Err(Violation::invalid("cache", message));
    let marks = blocks(body).iter().filter(|block| block.mark.is_some()).count();
    if marks > MOST_MARKS {
        return invalid(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        ));
    }
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    for block in blocks.filter(|block| !block["cache_control"].is_null()) {
        let kind = block["type"].as_str().unwrap_or_default();
        if matches!(kind, "thinking" | "redacted_thinking") {
            return invalid(format!("{kind}.cache_control: Extra inputs are not permitted"));
        }
        if kind == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
            return invalid("cache_control cannot be set for empty text blocks".to_owned());
        }
    }
    Ok(())
}
