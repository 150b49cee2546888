//! Token usage as providers report it, under their various names.
//!
//! A reply's record keeps the usage exactly as the provider sent it; this module only reads it.

pub mod prices;

use crate::finding::Place;
use crate::id;
use crate::json::Object;
use crate::json::write::Members;
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::Add;

/// Adds up two usage objects. Numbers with the same name are added; of other members with the same name, the
/// later object's is kept.
#[must_use]
pub fn sum(earlier: Option<&str>, later: Option<&str>) -> Option<String> {
    let (Some(earlier), Some(later)) = (earlier, later) else {
        return later.or(earlier).map(str::to_owned);
    };
    let Ok(before) = Object::parse(earlier) else { return Some(later.to_owned()) };
    let mut sum = later.to_owned();
    for member in before.members() {
        let Ok(object) = Object::parse(&sum) else { break };
        let name = member.name();
        let numbers = (before.number(&name), object.number(&name));
        let value = match numbers {
            (Some(a), Some(b)) => a.saturating_add(b).to_string(),
            _ if object.get(&name).is_none() => member.value.to_owned(),
            _ => continue,
        };
        sum = object.with(&name, &value);
    }
    Some(sum)
}

/// The largest count of a call that is believed. It is a hundred times the largest window that is sold (10,000,000 tokens,
/// Llama 4 Scout, November 2026), because a provider may count several requests as one call.
const MAX_COUNT: u64 = 1_000_000_000;

/// Returns a count of tokens that is written as a JSON number; `None` if it is not one or cannot be true: if it is negative, a
/// fraction, or more than any window has.
#[must_use]
pub fn count(raw: &str) -> Option<u64> {
    // Some gateways write 34.0.
    let number: f64 = raw.parse().ok()?;
    let is_plausible = number.fract() == 0.0 && (0.0..=MAX_COUNT as f64).contains(&number);
    is_plausible.then_some(number as u64)
}

/// A count of a provider that cannot be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implausible {
    /// The name of the member.
    pub name: &'static str,
    /// The value, as JSON.
    pub value: String,
}

impl fmt::Display for Implausible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value: String = self.value.chars().take(24).collect();
        write!(
            f,
            "the provider's count '{}' cannot be {value}, so the call is not counted",
            self.name
        )
    }
}

/// The members of a usage object, some of which may be implausible.
struct Reader<'u> {
    usage: Object<'u>,
    found: RefCell<Option<Implausible>>,
}

impl Reader<'_> {
    /// Returns a count; 0 if it is missing, not a number or implausible.
    fn count(&self, name: &'static str) -> u64 {
        self.of(&self.usage, name).unwrap_or(0)
    }

    /// Returns a count in a member, which is an object.
    fn within(&self, member: &str, name: &'static str) -> Option<u64> {
        self.of(&Object::parse(self.usage.get(member)?).ok()?, name)
    }

    fn of(&self, object: &Object<'_>, name: &'static str) -> Option<u64> {
        let raw = object.get(name)?;
        raw.parse::<f64>().ok()?;
        let counted = count(raw);
        if counted.is_some() {
            return counted;
        }
        self.found.borrow_mut().get_or_insert_with(|| Implausible { name, value: raw.to_owned() });
        None
    }

    fn counts(&self) -> Counts {
        let prompt = self.count("prompt_tokens");
        let (from_cache, to_cache) =
            (self.count("cache_read_input_tokens"), self.count("cache_creation_input_tokens"));
        if prompt > 0 {
            let cached = self.within("prompt_tokens_details", "cached_tokens");
            let cache_read = cached.unwrap_or(from_cache).min(prompt);
            let output = self.count("completion_tokens");
            Counts { input: prompt - cache_read, cache_read, output, ..Counts::default() }
        } else if self.usage.get("input_tokens_details").is_some_and(|it| it.starts_with('{')) {
            let part = |name| self.within("input_tokens_details", name).unwrap_or(0);
            let all = self.count("input_tokens");
            let cache_read = part("cached_tokens").min(all);
            let cache_write = part("cache_write_tokens").min(all - cache_read);
            let input = all - cache_read - cache_write;
            let output = self.count("output_tokens");
            Counts { input, cache_read, cache_write, output, ..Counts::default() }
        } else if self.count("promptTokenCount") > 0 {
            let prompt = self.count("promptTokenCount");
            let cache_read = self.count("cachedContentTokenCount").min(prompt);
            let input = prompt - cache_read + self.count("toolUsePromptTokenCount");
            let output = self.count("candidatesTokenCount") + self.count("thoughtsTokenCount");
            Counts { input, cache_read, output, ..Counts::default() }
        } else if self.count("prompt_eval_count") > 0 {
            let (input, output) = (self.count("prompt_eval_count"), self.count("eval_count"));
            Counts { input, output, ..Counts::default() }
        } else {
            let (input, output) = (self.count("input_tokens"), self.count("output_tokens"));
            let hour = self.within("cache_creation", "ephemeral_1h_input_tokens");
            let cache_write_1h = hour.unwrap_or(0).min(to_cache);
            Counts { input, cache_read: from_cache, cache_write: to_cache, cache_write_1h, output }
        }
    }
}

/// The token counts of one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Prompt tokens that were neither read from a cache nor written to one.
    pub input: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// Those of them that the cache keeps for an hour, which costs more.
    pub cache_write_1h: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Counts {
    /// Reads a usage object with the member names of any of these APIs:
    ///
    /// - chat completions: `prompt_tokens` (with cached tokens) and `completion_tokens`. These
    ///   names are tried first, because some gateways add only Anthropic's cache counts to them;
    /// - Anthropic: `input_tokens` (without cached tokens), the two cache counts, those written for an hour in
    ///   `cache_creation`, and `output_tokens`;
    /// - Responses: `input_tokens` (with those read from and written to the cache, which `input_tokens_details` has)
    ///   and `output_tokens`;
    /// - Gemini: `promptTokenCount` (with cached tokens), `toolUsePromptTokenCount`, `candidatesTokenCount` and
    ///   `thoughtsTokenCount`;
    /// - Ollama: `prompt_eval_count` and `eval_count`.
    ///
    /// Returns `None` if the size of the prompt is unknown, because all of its counts are missing or 0, or one of the counts
    /// is implausible; see [`Counts::check`].
    #[must_use]
    pub fn read(usage: &str) -> Option<Counts> {
        Counts::check(usage).ok().flatten()
    }

    /// Reads a usage object as [`Counts::read`] does.
    ///
    /// # Errors
    /// If a count is negative, a fraction, or larger than that of any request.
    pub fn check(usage: &str) -> Result<Option<Counts>, Implausible> {
        let Ok(usage) = Object::parse(usage) else { return Ok(None) };
        let usage = Reader { usage, found: RefCell::default() };
        let counts = usage.counts();
        match usage.found.into_inner() {
            Some(implausible) => Err(implausible),
            None => Ok((counts.prompt() > 0).then_some(counts)),
        }
    }

    /// Returns all tokens of the prompt.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the same tokens as if no prompt were cached.
    #[must_use]
    pub fn without_cache(&self) -> Counts {
        Counts { input: self.prompt(), output: self.output, ..Counts::default() }
    }

    /// Returns all tokens of the prompt and the answer.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// Adds the counts as members.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members
            .number("input", self.input)
            .number("cache_read", self.cache_read)
            .number("cache_write", self.cache_write)
            .optional(
                Members::number,
                "cache_write_1h",
                Some(self.cache_write_1h).filter(|n| *n > 0),
            )
            .number("output", self.output)
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { input, cache_read, cache_write, output, .. } = self;
        write!(
            f,
            "{input} tokens in, {cache_read} from cache, {cache_write} to cache, {output} out"
        )
    }
}

/// A call to a provider, as the record that it produced states it. Every count of what a session used is made of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The model. A checkpoint has it as the author of the summary.
    pub model: Option<String>,
    /// The tokens.
    pub counts: Counts,
}

impl Call {
    /// Returns the call that produced a record; `None` if the record is not a reply, compaction or checkpoint, or its counts
    /// are unknown.
    #[must_use]
    pub fn of(record: &Object<'_>) -> Option<Call> {
        let model = match &*record.string("type")? {
            "assistant" | "compaction" => "model",
            "checkpoint" => "generated_by",
            _ => return None,
        };
        let counts = record.get("usage").and_then(Counts::read)?;
        Some(Call { model: record.string(model).map(Cow::into_owned), counts })
    }
}

/// The provider calls in a transcript, each counted once. A call is identified by the provider's request id, or
/// else by the place of its record.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    by_id: HashMap<String, (String, Counts), RandomState>,
}

impl Calls {
    /// Adds the call that produced a record, if the record is a reply, compaction or checkpoint with a `usage` member.
    pub fn take(&mut self, record: &Object<'_>, place: &Place) {
        let Some(Call { model, counts }) = Call::of(record) else { return };
        let id = record.string("request_id").map(Cow::into_owned);
        let id = id.unwrap_or_else(|| [&*place.input, &*id::address(place.offset)].concat());
        self.by_id.insert(id, (model.unwrap_or_default(), counts));
    }

    /// Returns the model and the counts of each call.
    pub fn each(&self) -> impl Iterator<Item = &(String, Counts)> {
        self.by_id.values()
    }

    /// Returns the total of all calls.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.each().fold(Counts::default(), |sum, (_, own)| sum + *own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_counts_are_read_under_all_member_names() {
        let read = |usage: &str| {
            Counts::read(usage).map(|c| [c.input, c.cache_read, c.cache_write, c.output])
        };
        for (usage, counts) in [
            (
                r#"{"input_tokens":10,"cache_read_input_tokens":150,"cache_creation_input_tokens":20,"output_tokens":5}"#,
                Some([10, 150, 20, 5]),
            ),
            (r#"{"cache_read_input_tokens":24,"output_tokens":64}"#, Some([0, 24, 0, 64])),
            (
                r#"{"prompt_tokens":34,"completion_tokens":32,"total_tokens":66,"prompt_tokens_details":{"cached_tokens":24}}"#,
                Some([10, 24, 0, 32]),
            ),
            (
                r#"{"prompt_tokens":34,"completion_tokens":2,"cache_read_input_tokens":24}"#,
                Some([10, 24, 0, 2]),
            ),
            (r#"{"prompt_tokens":34}"#, Some([34, 0, 0, 0])),
            (
                r#"{"prompt_eval_count":26,"eval_count":298,"total_duration":5}"#,
                Some([26, 0, 0, 298]),
            ),
            (
                r#"{"input_tokens":34,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":4},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":5}}"#,
                Some([10, 20, 4, 9]),
            ),
            (
                r#"{"promptTokenCount":34,"cachedContentTokenCount":20,"candidatesTokenCount":4,"thoughtsTokenCount":5,"toolUsePromptTokenCount":3}"#,
                Some([17, 20, 0, 9]),
            ),
            (r#"{"eval_count":298}"#, None),
            (r#"{"prompt_tokens":0,"completion_tokens":3}"#, None),
            (r#"{"prompt_tokens":"34"}"#, None),
            ("{}", None),
            ("[]", None),
        ] {
            assert_eq!(read(usage), counts, "{usage}");
        }
    }

    #[test]
    fn replies_compactions_and_checkpoints_are_calls_with_a_model() {
        for (record, model) in [
            (r#"{"type":"assistant","model":"m","usage":{"input_tokens":3}}"#, Some(Some("m"))),
            (r#"{"type":"compaction","model":"m","usage":{"input_tokens":3}}"#, Some(Some("m"))),
            (
                r#"{"type":"checkpoint","generated_by":"m","usage":{"input_tokens":3}}"#,
                Some(Some("m")),
            ),
            (r#"{"type":"checkpoint","usage":{"input_tokens":3}}"#, Some(None)),
            (r#"{"type":"checkpoint","generated_by":"m"}"#, None),
            (r#"{"type":"user","model":"m","usage":{"input_tokens":3}}"#, None),
            (r#"{"usage":{"input_tokens":3}}"#, None),
        ] {
            let counts = Counts { input: 3, ..Counts::default() };
            let expected = model.map(|model| Call { model: model.map(str::to_owned), counts });
            assert_eq!(Call::of(&Object::parse(record).unwrap()), expected, "{record}");
        }
    }

    #[test]
    fn a_count_that_cannot_be_true_is_named_and_not_used() {
        for (usage, name) in [
            (r#"{"input_tokens":10,"output_tokens":-5}"#, "output_tokens"),
            (r#"{"input_tokens":1000000001,"output_tokens":5}"#, "input_tokens"),
            (r#"{"input_tokens":18446744073709551616}"#, "input_tokens"),
            (r#"{"prompt_tokens":1e400,"completion_tokens":1}"#, "prompt_tokens"),
            (r#"{"prompt_tokens":10.5}"#, "prompt_tokens"),
            (
                r#"{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":-1}}"#,
                "cached_tokens",
            ),
            (r#"{"promptTokenCount":34,"candidatesTokenCount":4e9}"#, "candidatesTokenCount"),
            (r#"{"prompt_eval_count":-26,"eval_count":298}"#, "prompt_eval_count"),
        ] {
            let found = Counts::check(usage).map_err(|it| it.name);
            assert_eq!((found, Counts::read(usage)), (Err(name), None), "{usage}");
        }
        let most = r#"{"input_tokens":1000000000,"output_tokens":2.0}"#;
        assert_eq!(Counts::read(most).map(|counts| counts.all()), Some(1_000_000_002));
        let long = Implausible { name: "n", value: "9".repeat(300) }.to_string();
        assert!(long.contains("'n' cannot be 999999999999999999999999, so"), "{long}");
    }
}
