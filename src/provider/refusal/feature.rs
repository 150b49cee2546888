//! What models are known to refuse: read from refusals, and stored in a file with one JSON object per line.

use super::{Failure, FailureClass};
use crate::estimate::models;
use crate::json::Object;
use crate::json::write::Members;
use crate::provider::sampling::PARAMETERS;

/// The time in seconds for which a statement applies: 30 days, because servers are reconfigured.
const LIFETIME: f64 = 30.0 * 86_400.0;

/// Something that a request may contain, that not every model takes, and without which the request can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Tool calls and their results in the messages.
    Calls,
    /// The provider's own summary of the old part of the conversation. Its text takes its place.
    OwnSummary,
    /// A budget in tokens for thinking. An effort takes its place.
    ThinkingBudget,
    /// Any setting of how much the model thinks.
    Thinking,
    /// A sampling parameter, by its index in the table of parameters.
    Parameter(usize),
    /// The longer lifetime of a prompt cache.
    LongCache,
    /// The marks of a prompt cache.
    CacheMarks,
    /// The key of a prompt cache.
    CacheKey,
    /// The question why a prompt cache was not used.
    CacheDiagnostics,
}

/// The features other than the sampling parameters, each with its name in the file. Those come first that a refusal names by
/// the most particular words.
const NAMED: [(Feature, &str); 8] = [
    (Feature::OwnSummary, "provider-summary"),
    (Feature::LongCache, "long_cache"),
    (Feature::CacheMarks, "cache_control"),
    (Feature::CacheKey, "prompt_cache_key"),
    (Feature::CacheDiagnostics, "diagnostics"),
    (Feature::ThinkingBudget, "thinking-budget"),
    (Feature::Thinking, "thinking"),
    (Feature::Calls, "calls"),
];

/// Words for calls, and for the roles of messages, in lower case. They are matched as parts of words.
const CALLS: [&str; 6] = ["tool", "role", "function", "template", "jinja", "function_call"];
/// Words for a summary by the provider, in lower case (`types/compaction_signature_invalid_error.py` and its neighbours in anthropic
/// 2.14.0; `encrypted_content` in `types/responses/response_compaction_item.py` of openai 3.57.0).
const SUMMARY: [&str; 3] = ["compaction", "encrypted content", "encrypted_content"];
/// Words for a budget, in lower case.
const BUDGET: [&str; 6] = [
    "budget_tokens",
    "thinking.type.enabled",
    "thinkingbudget",
    "thinking_budget",
    "thinking.budget",
    "thinking budget",
];
/// Words for thinking, in lower case.
const THINKING: [&str; 6] =
    ["reasoning_effort", "reasoning", "effort", "thinking", "thinkinglevel", "thinking_level"];
/// The members that ask for the longer lifetime of a prompt cache, as refusals name them.
const LONG_CACHE: [&str; 4] =
    ["cache_control.ttl", "ephemeral.ttl", "prompt_cache_options", "prompt_cache_retention"];
/// Words that say that something is not taken, in lower case.
const REFUSED: [&str; 19] = [
    "support",
    "unrecognized",
    "extra",
    "not permitted",
    "additional",
    "maximum of",
    "alternate",
    "unknown",
    "invalid",
    "unexpected",
    "not allowed",
    "not enabled",
    "must",
    "expected",
    "exception",
    "only ",
    "requires",
    "cannot",
    "disabled",
];
/// Words that say that a setting is not taken, whatever its value, in lower case.
const UNSUPPORTED: [&str; 16] = [
    "support",
    "deprecated",
    "not allowed",
    "allowed for this model",
    "not permitted",
    "only be set",
    "only the default",
    "cannot both",
    "cannot be used",
    "cannot be set",
    "compatible",
    "not accept",
    "unknown",
    "unrecognized",
    "unexpected",
    "removed",
];
/// Words that say that another value of the setting would be taken, in lower case.
const VALUES: [&str; 10] = [
    "between",
    "less than",
    "greater than",
    "at least",
    "at most",
    "range",
    "above maximum",
    "below minimum",
    "supported values",
    "one of",
];

impl Feature {
    /// Returns all features, those first that a refusal names by the most particular words.
    fn all() -> impl Iterator<Item = Feature> {
        let parameters = (0..PARAMETERS.len()).map(Feature::Parameter);
        parameters.chain(NAMED.map(|(feature, _)| feature))
    }

    /// Returns the name in the file, and for a sampling parameter also in a request.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = NAMED.into_iter().find(|(feature, _)| *feature == self);
        match self {
            Feature::Parameter(index) => PARAMETERS.get(index).map_or("", |names| names[0]),
            _ => named.map_or("", |(_, name)| name),
        }
    }

    /// Returns how a request is sent without this, as the end of a sentence.
    #[must_use]
    pub fn replacement(self) -> String {
        match self {
            Feature::Calls => "with tool calls and results as text".to_owned(),
            Feature::OwnSummary => "with the text of the summary".to_owned(),
            Feature::ThinkingBudget => "with an effort instead of a thinking budget".to_owned(),
            Feature::Thinking => "without settings for thinking".to_owned(),
            Feature::LongCache => "with the default lifetime of the cache".to_owned(),
            Feature::CacheMarks | Feature::CacheKey => "with no prompt cache".to_owned(),
            Feature::CacheDiagnostics => "without diagnostics of the cache".to_owned(),
            Feature::Parameter(_) => format!("without {}", self.name()),
        }
    }

    /// Returns the words, in lower case, by which a refusal names this.
    fn words(self) -> &'static [&'static str] {
        match self {
            Feature::OwnSummary => &SUMMARY,
            Feature::Calls => &CALLS,
            Feature::ThinkingBudget => &BUDGET,
            Feature::Thinking => &THINKING,
            Feature::LongCache => &LONG_CACHE,
            Feature::CacheMarks => &["cache_control"],
            Feature::CacheKey => &["prompt_cache_key"],
            Feature::CacheDiagnostics => &["diagnostics"],
            Feature::Parameter(index) => PARAMETERS.get(index).copied().unwrap_or_default(),
        }
    }

    /// Returns true if the failure may be due to this. A refusal that names a place in the messages is about the block there,
    /// which may be the provider's own summary, unless it names a member that asks for a cache.
    #[must_use]
    pub fn is_refused_by(self, failure: &Failure) -> bool {
        let is_refusal = match failure.class {
            FailureClass::BadRequest | FailureClass::NotFound => true,
            FailureClass::Server => failure.status == Some(500) || failure.status == Some(501),
            _ => false,
        };
        let text = failure.message.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_named = match self {
            Feature::OwnSummary => return is_refusal && has(&SUMMARY),
            Feature::LongCache
            | Feature::CacheMarks
            | Feature::CacheKey
            | Feature::CacheDiagnostics => {
                return is_refusal && has(self.words()) && has(&REFUSED);
            }
            Feature::Calls => has(&CALLS) && has(&REFUSED),
            _ => self.last_in(&text).is_some() && has(&UNSUPPORTED) && !has(&VALUES),
        };
        is_refusal && failure.wire_places.is_empty() && !failure.wants_responses() && is_named
    }

    /// Returns the place at which the text, in lower case, names the setting for the last time.
    fn last_in(self, text: &str) -> Option<usize> {
        self.words().iter().filter_map(|word| last_word(text, word)).max()
    }

    /// Returns the line that stores that `model` at `endpoint` refuses this.
    #[must_use]
    pub fn line(self, with: Option<Feature>, endpoint: &str, model: &str, ts: f64) -> String {
        let place = Members::new().string("endpoint", endpoint).string("model", model);
        place
            .string("refuses", self.name())
            .optional(Members::string, "with", with.map(Feature::name))
            .decimal("ts", ts)
            .into_line()
    }
}

/// Returns the place of the last occurrence of a word that is not part of another one.
fn last_word(text: &str, word: &str) -> Option<usize> {
    let word = word.to_ascii_lowercase();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let places = text.match_indices(&word).map(|(at, _)| at);
    places
        .filter(|at| {
            let (before, after) = (&text[..*at], &text[*at + word.len()..]);
            !is_part(before.chars().next_back()) && !is_part(after.chars().next())
        })
        .last()
}

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u32);

impl Features {
    fn bit(feature: Feature) -> u32 {
        Feature::all().position(|other| other == feature).map_or(0, |at| 1 << at)
    }

    /// Returns true if the feature is in the set.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 & Features::bit(feature) != 0
    }

    /// Adds a feature.
    pub fn add(&mut self, feature: Feature) {
        self.0 |= Features::bit(feature);
    }

    /// Returns the features in the set.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::all().filter(move |feature| self.has(*feature))
    }

    /// Returns the feature in the set to which the failure is due, and another one in the set if it is refused only
    /// together with that. Of sampling parameters that the refusal names, it is the last one: models that refuse a pair name
    /// the temperature first.
    #[must_use]
    pub fn refused_by(self, failure: &Failure) -> Option<(Feature, Option<Feature>)> {
        let text = failure.message.to_lowercase();
        let refused = || self.iter().filter(|feature| feature.is_refused_by(failure));
        let is_parameter = |feature: &Feature| matches!(feature, Feature::Parameter(_));
        let parameter = refused().filter(is_parameter).max_by_key(|it| it.last_in(&text));
        let Some(parameter) = parameter else { return Some((refused().next()?, None)) };
        let is_setting =
            |it| matches!(it, Feature::Parameter(_) | Feature::Thinking | Feature::ThinkingBudget);
        let is_other = |other: &Feature| *other != parameter && is_setting(*other);
        let with = self.iter().find(|other| is_other(other) && other.last_in(&text).is_some());
        Some((parameter, with))
    }

    /// Returns those features of the set that are refused according to `text`, at `now`. `is_place` returns true if a stored
    /// endpoint is the one wanted. Lines that do not match are skipped.
    #[must_use]
    pub fn known(
        self,
        text: &str,
        is_place: impl Fn(&str) -> bool,
        model: &str,
        now: f64,
    ) -> Features {
        let stated = |line: &str| {
            let object = Object::parse(line).ok()?;
            let ts: f64 = object.get("ts")?.parse().ok()?;
            let named = |member: &str| {
                let name = object.string(member)?;
                self.iter().find(|feature| feature.name() == name)
            };
            let feature = named("refuses")?;
            let is_same = models::is_same(&object.string("model")?, model)
                && is_place(&object.string("endpoint")?)
                && (object.get("with").is_none() || named("with").is_some());
            (is_same && (now - ts).abs() <= LIFETIME).then_some(feature)
        };
        let mut known = Features::default();
        text.lines().filter_map(stated).for_each(|feature| known.add(feature));
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::refusal::Rows;

    #[test]
    #[rustfmt::skip]
    fn refusals_of_calls_are_told_from_others() {
        let refused = |status, message| Feature::Calls.is_refused_by(&failure(status, message));
        for (status, message) in [
            (400, "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."),
            (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
            (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
            (404, "No endpoints found that support tool use. Try disabling \"read\"."),
            (400, "Invalid role: tool"),
            (422, "unexpected role 'tool', expected 'user' or 'assistant'"),
            (400, "Requests which include `tool_use` or `tool_result` blocks must define tools"),
            (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"),
        ] {
            assert!(refused(status, message), "{status} {message}");
        }
        for (status, message) in [
            (429, "Too many requests with tools; only 5 are allowed"),
            (401, "invalid role for this key"),
            (400, "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead."),
            (400, "messages.3.content.0: unexpected tool_use_id"),
            (400, "Could not process image"),
            (400, "temperature is not supported with this model"),
            (400, "Could not process the output of the tool"),
            (503, "the tool server cannot be reached"),
        ] {
            assert!(!refused(status, message), "{status} {message}");
        }
    }

    fn failure(status: u16, message: &str) -> Failure {
        let body = format!(r#"{{"error":{{"message":{}}}}}"#, serde_json::Value::from(message));
        Failure::classify(status, &|_| None, body.as_bytes(), 0.0, &Rows::default())
    }

    fn named(name: &str) -> Feature {
        Feature::all().find(|feature| feature.name() == name).unwrap()
    }

    fn set(names: &str) -> Features {
        let mut set = Features::default();
        names.split_whitespace().for_each(|name| set.add(named(name)));
        set
    }

    #[test]
    #[rustfmt::skip]
    fn settings_that_a_model_refuses_are_found() {
        // The texts of Anthropic, OpenAI, Moonshot and Ollama are those in public reports of 2024 to 2026; those of pydantic,
        // Gemini and Mistral are what their validation prints.
        for (asked, message, refused, with) in [
            ("temperature", "temperature is not supported with this model", "temperature", ""),
            ("temperature", "`temperature` is deprecated for this model.", "temperature", ""),
            ("temperature thinking", "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation", "temperature", "thinking"),
            ("temperature", "`temperature` may only be set to 1 when thinking is enabled.", "temperature", ""),
            ("temperature", "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is supported.", "temperature", ""),
            ("temperature top_p", "Unsupported parameter: 'top_p' is not supported with this model.", "top_p", ""),
            ("temperature top_p", "`temperature` and `top_p` cannot both be specified for this model. Please use only one.", "top_p", "temperature"),
            ("temperature", "invalid temperature: only 1 is allowed for this model", "temperature", ""),
            ("top_k", "top_k: Extra inputs are not permitted", "top_k", ""),
            ("top_k", "Unrecognized request argument supplied: top_k", "top_k", ""),
            ("top_k", "Invalid JSON payload received. Unknown name \"topK\" at 'generation_config': Cannot find field.", "top_k", ""),
            ("presence_penalty", "Penalty is not supported: presencePenalty is not enabled for this model", "presence_penalty", ""),
            ("thinking-budget thinking", "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.", "thinking-budget", ""),
            ("thinking-budget thinking", "\"llama3.2\" does not support thinking", "thinking", ""),
            ("temperature thinking", "Unsupported parameter: 'reasoning_effort' is not supported with this model.", "thinking", ""),
            ("thinking calls", "Invalid role: tool", "calls", ""),
            ("provider-summary calls", "messages.1.content.0: the compaction block was made for another model", "provider-summary", ""),
            ("long_cache cache_control", "messages.0.content.0.cache_control.ttl: Extra inputs are not permitted", "long_cache", ""),
            ("prompt_cache_key", "Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key", ""),
        ] {
            let found = set(asked).refused_by(&failure(400, message));
            let expected = (named(refused), Feature::all().find(|it| it.name() == with));
            assert_eq!(found, Some(expected), "{message}");
        }
        // Another value would be accepted, the setting is another one, or the request does not have it.
        for (asked, status, message) in [
            ("temperature", 400, "temperature: Input should be less than or equal to 1"),
            ("temperature", 400, "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead."),
            ("temperature", 400, "temperature must be between 0 and 2, other values are not supported"),
            ("thinking", 400, "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'low', 'medium'"),
            ("thinking", 400, "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead."),
            ("top_p", 400, "temperature is not supported with this model"),
            ("temperature", 429, "temperature is not supported while too many requests run"),
            ("temperature", 400, "messages.3.content.0: temperature is unexpected"),
            ("top_k", 400, "stop_top_k is not supported"),
            ("top_k", 400, "top_p is not supported with this model"),
            ("provider-summary", 429, "too many requests with compaction"),
            ("cache_control", 429, "cache_control is not supported while too many requests run"),
            ("cache_control", 400, "the cache_control of the request was read"),
            ("cache_control", 400, "top_k is not supported with this model"),
        ] {
            assert_eq!(set(asked).refused_by(&failure(status, message)), None, "{message}");
        }
    }

    #[test]
    fn a_refusal_applies_to_its_model_and_endpoint_for_a_month() {
        let then = 1_767_225_600.0;
        let text = "torn{\n".to_owned() + &Feature::Calls.line(None, "a", "m", then);
        let found = |endpoint: &str, model: &str, now: f64| {
            let known = set("calls").known(&text, |other| other == endpoint, model, now);
            known == set("calls")
        };
        assert!(found("a", "m", then + 1.0) && found("a", "m", then + LIFETIME));
        assert!(!found("b", "m", then) && !found("a", "n", then));
        assert!(!found("a", "m", then + LIFETIME + 1.0));
    }

    #[test]
    fn a_refusal_of_a_pair_applies_to_requests_with_both() {
        let line = named("top_p").line(Some(named("temperature")), "a", "m", 5.0);
        assert!(line.contains(r#""refuses":"top_p","with":"temperature""#), "{line}");
        for (asked, known) in [("top_p temperature", "top_p"), ("top_p", ""), ("temperature", "")] {
            assert_eq!(set(asked).known(&line, |_| true, "m", 5.0), set(known), "{asked}");
        }
    }
}
