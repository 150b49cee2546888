//! Prompt caching: a request asks the provider to keep its prefix, so that the next request of the session pays for it once.
//!
//! - **Anthropic**, on all its platforms, caches up to a mark: `cache_control` on the last tool, on the system prompt, and on
//!   the last block of the conversation and of the previous request. The last request wrote its end to the cache, so marking
//!   that block again finds it however many blocks were added since; without it, the server searches only 20 blocks back. A
//!   request may have four marks. They are not allowed on thinking and on empty text (`types/cache_control_ephemeral_param.py`
//!   and the block types of anthropic 2.14.0; platform.claude.com/docs/en/build-with-claude/prompt-caching, November 2026).
//!   Anthropic's own service also says why it could not reuse the prefix of an earlier answer whose id a request names
//!   (`types/diagnostics_param.py`).
//! - **Chat completions** of a Claude model, at OpenRouter or LiteLLM, take the same marks on parts of text
//!   (`litellm_core_utils/prompt_templates/factory.py` and `llms/openrouter/chat/transformation.py` of litellm 1.110.2). The
//!   system prompt comes after the tools, so its mark includes them.
//! - **OpenAI and Azure** cache by themselves, and find the cache more often with a `prompt_cache_key`. The longer lifetime
//!   is `prompt_cache_options.ttl` or, up to GPT-5.5, `prompt_cache_retention` (`types/responses/response_create_params.py` and
//!   `types/chat/completion_create_params.py` of openai 3.57.0).
//! - All others get nothing: what they cache depends on the prefix alone.

use crate::cost::cold::LIFETIMES;
use crate::json::write::{self, Members};
use crate::json::{Object, elements, is_blank};
use crate::provider::address::{Address, is_azure};
use crate::provider::protocol::Protocol;
use crate::provider::refusal::Feature;
use crate::provider::{ModelRequest, Provider};
use crate::record::digest;

/// The member of a mark.
const MARK: &str = "cache_control";

/// The value of the setting `cache`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CacheChoice {
    /// Use the provider's prompt cache, with its default lifetime
    #[default]
    Auto,
    /// Ask for no cache
    Off,
    /// Use the cache with the longer lifetime, an hour at Anthropic, for which writing costs more
    #[value(name = "1h")]
    Hour,
}

impl CacheChoice {
    /// Returns the lifetime of the cache in seconds; `None` without one.
    #[must_use]
    pub fn lifetime(self) -> Option<f64> {
        match self {
            CacheChoice::Auto => Some(LIFETIMES[0]),
            CacheChoice::Off => None,
            CacheChoice::Hour => Some(LIFETIMES[1]),
        }
    }
}

/// How a request asks for caching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Marks in tools, system prompt and messages.
    Marks,
    /// A key, for servers that cache by themselves.
    Key,
}

/// The caching that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache<'r> {
    form: Form,
    /// The key of the session; servers with marks need none.
    key: &'r str,
    /// True for the longer lifetime.
    long: bool,
    /// The id of the answer to the session's last request, to be told why its prefix is not reused.
    previous: Option<&'r str>,
}

/// Returns the key of the session in a transcript: a hash of its path, which names neither the user nor the machine.
#[must_use]
pub fn session_key(transcript: &str) -> String {
    digest(transcript)
}

impl<'r> Cache<'r> {
    /// Returns the caching that a model at an address takes; `None` for none. `key` is the key of the session: without one,
    /// OpenAI's servers find the cache by the prefix alone.
    #[must_use]
    pub fn of(
        choice: CacheChoice,
        (provider, protocol): (Provider, Protocol),
        base: &str,
        model: &str,
        key: Option<&'r str>,
    ) -> Option<Cache<'r>> {
        if choice == CacheChoice::Off || provider.is_offline() {
            return None;
        }
        let address = Address::parse(base);
        let is_own = address.is_below("api.openai.com") || is_azure(base);
        let marks = Some(Form::Marks);
        let form = match protocol {
            Protocol::Anthropic | Protocol::AnthropicOnVertex | Protocol::AnthropicOnBedrock => {
                marks
            }
            Protocol::Chat | Protocol::Responses if is_own => Some(Form::Key),
            Protocol::Chat if model.to_ascii_lowercase().contains("claude") => marks,
            Protocol::Chat | Protocol::Responses => None,
            Protocol::Gemini | Protocol::GeminiOnVertex | Protocol::Ollama => None,
        };
        let long = choice == CacheChoice::Hour;
        let is_empty = form == Some(Form::Key) && key.is_none() && !long;
        let key = key.unwrap_or_default();
        let cache = form.map(|form| Cache { form, key, long, previous: None });
        cache.filter(|_| !is_empty)
    }

    /// Returns this with the longer lifetime, if that is asked for by marks. Elsewhere, it is left to the user, because the
    /// longer lifetime is also that for which the provider stores the prompt.
    #[must_use]
    pub fn kept_longer(self) -> Cache<'r> {
        Cache { long: self.long || self.form == Form::Marks, ..self }
    }

    /// Returns this with the question why the prefix of the answer with this id is not reused, if the server at `base` is
    /// Anthropic's own.
    #[must_use]
    pub fn compared_with(self, previous: Option<&'r str>, base: &str) -> Cache<'r> {
        let is_known = Address::parse(base).is_below("anthropic.com");
        Cache { previous: previous.filter(|_| is_known), ..self }
    }

    /// Returns the part of this caching that is left if a server refuses a feature; `None` for none.
    #[must_use]
    pub fn without(self, refused: Feature) -> Option<Cache<'r>> {
        match (refused, self.form) {
            (Feature::LongCache, Form::Key) if self.key.is_empty() => None,
            (Feature::LongCache, _) => Some(Cache { long: false, ..self }),
            (Feature::CacheDiagnostics, _) => Some(Cache { previous: None, ..self }),
            (Feature::CacheMarks, Form::Marks) | (Feature::CacheKey, Form::Key) => None,
            _ => Some(self),
        }
    }

    /// Returns what a server may refuse of this.
    pub(super) fn features(self) -> impl Iterator<Item = Feature> {
        let all =
            [Feature::LongCache, Feature::CacheMarks, Feature::CacheKey, Feature::CacheDiagnostics];
        all.into_iter().filter(move |feature| self.without(*feature) != Some(self))
    }

    /// Adds the members of OpenAI's APIs.
    pub(super) fn add_to(self, body: Members, model: &str, protocol: Protocol) -> Members {
        if self.form != Form::Key {
            return body;
        }
        let key = Some(self.key).filter(|key| !key.is_empty());
        let body = body.optional(Members::string, "prompt_cache_key", key);
        match version(model).filter(|_| self.long) {
            // Chat completions have one lifetime, the default.
            Some(it) if it >= (5, 6) && protocol == Protocol::Responses => {
                body.object("prompt_cache_options", |it| it.string("ttl", "12h"))
            }
            Some(it) if it < (5, 6) => body.string("prompt_cache_retention", "24h"),
            _ => body,
        }
    }

    /// Adds Anthropic's question why the prefix is not reused.
    pub(super) fn ask_why(self, body: Members) -> Members {
        match self.previous {
            Some(id) => body.object("diagnostics", |it| it.string("previous_message_id", id)),
            None => body,
        }
    }

    /// Returns the value of a mark.
    fn mark(self) -> String {
        let ttl = self.long.then_some("1h");
        Members::of_type("ephemeral").optional(Members::string, "ttl", ttl).into_json()
    }
}

/// Returns the version of a GPT model from 4.1 on, the first that keeps its cache for longer if asked.
fn version(model: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next()?.to_ascii_lowercase();
    let rest = name.strip_prefix("gpt-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (major, minor) = rest[..end].split_once('.').unwrap_or((&rest[..end], "0"));
    let version = (major.parse().ok()?, minor.parse().ok()?);
    Some(version).filter(|it| *it >= (4, 1))
}

/// The marks of one request. Without marks, all parts of the body stay as they are.
pub(super) struct Marks(Option<String>);

impl Marks {
    /// Returns the marks for a request. A request whose tools, messages or further members have marks of their own gets no
    /// others, because a fifth one would be refused.
    pub(super) fn of(request: &ModelRequest<'_, '_>) -> Marks {
        let cache = request.wanted_cache().filter(|cache| cache.form == Form::Marks);
        let has_own =
            || {
                let texts = [request.tools, request.extra];
                texts.into_iter().flatten().any(|text| text.contains(QUOTED_MARK))
                    || request.messages.iter().flat_map(|it| it.blocks()).any(|block| {
                        block.raw.contains(QUOTED_MARK) && block.member(MARK).is_some()
                    })
            };
        Marks(cache.filter(|_| !has_own()).map(Cache::mark))
    }

    /// Returns the system prompt as JSON.
    pub(super) fn system(&self, text: &str) -> String {
        let text = crate::json::quote(text);
        self.text(&text).unwrap_or(text)
    }

    /// Returns a string, which is JSON, as a list with one marked block; `None` if there are no marks or the text is blank.
    fn text(&self, quoted: &str) -> Option<String> {
        let mark = self.0.as_deref().filter(|_| !is_blank(quoted))?;
        let block = Members::of_type("text").raw("text", quoted).raw(MARK, mark);
        Some(write::list([block.into_json()]))
    }

    /// Returns a list of tools, a JSON array, with a mark on the last.
    pub(super) fn tools(&self, raw: &str) -> String {
        let marked = || {
            let mark = self.0.as_deref()?;
            let mut tools: Vec<String> = elements(raw)?.into_iter().map(str::to_owned).collect();
            let last = tools.last_mut()?;
            *last = Object::parse(last).ok()?.with(MARK, mark);
            Some(write::list(tools))
        };
        marked().unwrap_or_else(|| raw.to_owned())
    }

    /// Returns messages with a mark at the end of the conversation and one at the end of the previous request, which is the
    /// message before the model's last one. `takes` returns true for the types of blocks that can have a mark.
    pub(super) fn messages(
        &self,
        mut messages: Vec<String>,
        takes: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        if self.0.is_none() {
            return messages;
        }
        let is_reply = |message: &String| {
            Object::parse(message).is_ok_and(|it| it.string("role").as_deref() == Some("assistant"))
        };
        let previous = messages.iter().rposition(is_reply).unwrap_or(0);
        let (before, after) = messages.split_at_mut(previous);
        for part in [before, after] {
            for message in part.iter_mut().rev() {
                if let Some(marked) = self.message(message, &takes) {
                    *message = marked;
                    break;
                }
            }
        }
        messages
    }

    /// Returns a message with a mark on its last block that can have one; `None` if there is none.
    fn message(&self, message: &str, takes: impl Fn(&str) -> bool) -> Option<String> {
        let object = Object::parse(message).ok()?;
        let content = object.get("content")?;
        if content.starts_with('"') {
            return self.text(content).map(|text| object.with("content", &text));
        }
        let mark = self.0.as_deref()?;
        let mut blocks: Vec<String> = elements(content)?.into_iter().map(str::to_owned).collect();
        let marked = |raw: &String| {
            let block = Object::parse(raw).ok()?;
            let is_empty = block.get("text").is_some_and(is_blank);
            let can = takes(&block.string("type")?) && !is_empty;
            can.then(|| block.with(MARK, mark))
        };
        let (at, block) =
            blocks.iter().enumerate().rev().find_map(|(at, raw)| Some((at, marked(raw)?)))?;
        blocks[at] = block;
        Some(object.with("content", &write::list(blocks)))
    }
}

/// Anthropic's reason why its cache did not have the prefix of the request that this one was compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMiss {
    /// Its word for the reason (`types/cache_miss_reason.py` of anthropic 2.14.0), such as `tools_changed`.
    pub reason: String,
    /// The number of tokens that would otherwise have been read from the cache; `None` if it does not say.
    pub tokens: Option<u64>,
}

impl CacheMiss {
    /// Reads the reason in an answer; `None` if it has none.
    #[must_use]
    pub fn of_answer(answer: &Object<'_>) -> Option<CacheMiss> {
        let diagnostics = Object::parse(answer.get("diagnostics")?).ok()?;
        let miss = Object::parse(diagnostics.get("cache_miss_reason")?).ok()?;
        let reason = miss.string("type")?.into_owned();
        Some(CacheMiss { reason, tokens: miss.number("cache_missed_input_tokens") })
    }
}

/// The name of a mark as it is written in JSON. In a string, the quotes would be escaped.
const QUOTED_MARK: &str = "\"cache_control\"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;
    use serde_json::{Value, json};

    const ANTHROPIC: &str = "https://api.anthropic.com";
    const LINES: &str = r#"{"role":"user","content":"one"}
{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}
{"role":"assistant","content":[{"type":"text","text":"two"},{"type":"thinking","thinking":"hm","signature":"s"}]}
{"role":"user","content":"three"}"#;

    fn of(
        choice: CacheChoice,
        protocol: Protocol,
        base: &str,
        model: &str,
    ) -> Option<Cache<'static>> {
        let provider = match protocol {
            Protocol::Anthropic => Provider::Anthropic,
            Protocol::Ollama => Provider::Ollama,
            _ => Provider::Openai,
        };
        Cache::of(choice, (provider, protocol), base, model, Some("k"))
    }

    /// Returns the body of a request with these messages, a system prompt and two tools.
    fn body(lines: &str, protocol: Protocol, model: &str, cache: Option<Cache<'_>>) -> Value {
        let messages = messages::read("t", lines.as_bytes()).unwrap();
        let request = ModelRequest {
            model,
            system: Some("s"),
            tools: Some(r#"[{"name":"f","input_schema":{}},{"name":"g","input_schema":{}}]"#),
            cache,
            ..ModelRequest::plain(&messages, 9)
        };
        serde_json::from_str(&protocol.body(&request)).unwrap()
    }

    /// Returns the paths of the marks in a value.
    fn marked(value: &Value, path: &str, found: &mut Vec<String>) {
        let members: Vec<(String, &Value)> = match value {
            Value::Object(it) => it.iter().map(|(name, it)| (name.clone(), it)).collect(),
            Value::Array(it) => it.iter().enumerate().map(|(n, it)| (n.to_string(), it)).collect(),
            _ => return,
        };
        for (name, it) in members {
            match name == MARK {
                true => found.push(path[1..].to_owned()),
                false => marked(it, &format!("{path}.{name}"), found),
            }
        }
    }

    fn marks(body: &Value) -> Vec<String> {
        let mut found = Vec::new();
        marked(body, "", &mut found);
        found.sort();
        found
    }

    #[test]
    fn tools_system_and_the_ends_of_this_and_the_previous_request_are_marked() {
        let cache = of(CacheChoice::Auto, Protocol::Anthropic, ANTHROPIC, "claude-x");
        let sent = body(LINES, Protocol::Anthropic, "claude-x", cache);
        let all = ["messages.2.content.0", "messages.4.content.0", "system.0", "tools.1"];
        assert_eq!(marks(&sent), all);
        assert_eq!(sent["system"][0][MARK], json!({"type": "ephemeral"}));
        let first = body(LINES.lines().next().unwrap(), Protocol::Anthropic, "claude-x", cache);
        assert_eq!(marks(&first), ["messages.0.content.0", "system.0", "tools.1"]);
        let hour = of(CacheChoice::Hour, Protocol::Anthropic, ANTHROPIC, "claude-x");
        let sent = body(LINES, Protocol::Anthropic, "claude-x", hour);
        assert_eq!(sent["tools"][1][MARK], json!({"type": "ephemeral", "ttl": "1h"}));
    }

    #[test]
    fn thinking_and_blank_text_are_never_marked() {
        let cache = of(CacheChoice::Auto, Protocol::Anthropic, ANTHROPIC, "claude-x");
        // A paused answer is continued, so that the last message is the model's.
        let paused: Vec<&str> = LINES.lines().take(4).collect();
        let sent = body(&paused.join("\n"), Protocol::Anthropic, "claude-x", cache);
        assert_eq!(marks(&sent)[..2], ["messages.2.content.0", "messages.3.content.0"]);
        let blank =
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":" "}]}"#;
        let sent = body(blank, Protocol::Anthropic, "claude-x", cache);
        assert_eq!(marks(&sent)[0], "messages.0.content.0");
    }

    #[test]
    fn marks_of_the_user_take_the_place_of_ours() {
        let cache = of(CacheChoice::Auto, Protocol::Anthropic, ANTHROPIC, "claude-x");
        let own = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}"#;
        assert_eq!(
            marks(&body(own, Protocol::Anthropic, "claude-x", cache)),
            ["messages.0.content.0"]
        );
        let quoted = r#"{"role":"user","content":[{"type":"text","text":"\"cache_control\":{}"}]}"#;
        assert_eq!(marks(&body(quoted, Protocol::Anthropic, "claude-x", cache)).len(), 3);
        let messages = messages::read("t", LINES.as_bytes()).unwrap();
        let extra = Some(r#"{"cache_control":{"type":"ephemeral"}}"#);
        let request = ModelRequest { cache, extra, ..ModelRequest::plain(&messages, 9) };
        assert_eq!(Protocol::Anthropic.body(&request).matches(MARK).count(), 1);
    }

    #[test]
    fn only_servers_that_know_it_are_asked_for_a_cache() {
        for (protocol, base, model, is_asked) in [
            (Protocol::Anthropic, ANTHROPIC, "claude-x", true),
            (Protocol::Anthropic, "https://gateway.example/anthropic", "m", true),
            (Protocol::Chat, "https://api.openai.com", "gpt-5.2", true),
            (Protocol::Responses, "https://x.openai.azure.com", "gpt-5.2", true),
            (Protocol::Chat, "https://openrouter.ai/api/v1", "anthropic/claude-sonnet-5", true),
            (Protocol::Chat, "https://openrouter.ai/api/v1", "openai/gpt-5.2", false),
            (Protocol::Responses, "https://openrouter.ai/api/v1", "openai/gpt-5.2", false),
            (Protocol::Chat, "http://127.0.0.1:8080", "qwen", false),
            (Protocol::Gemini, "https://generativelanguage.googleapis.com", "gemini-3", false),
            (Protocol::Ollama, "http://127.0.0.1:11434", "claude-like", false),
        ] {
            let cache = of(CacheChoice::Auto, protocol, base, model);
            assert_eq!(cache.is_some(), is_asked, "{base} {model}");
            assert_eq!(of(CacheChoice::Off, protocol, base, model), None);
            let plain = body(LINES, protocol, model, None);
            assert_eq!(body(LINES, protocol, model, cache) != plain, is_asked, "{base} {model}");
        }
    }

    #[test]
    fn openai_gets_the_key_and_the_lifetime_that_the_model_has() {
        for (protocol, model, choice, members) in [
            (Protocol::Chat, "gpt-5.2", CacheChoice::Auto, json!({"prompt_cache_key": "k"})),
            (
                Protocol::Chat,
                "gpt-5.2",
                CacheChoice::Hour,
                json!({"prompt_cache_key": "k", "prompt_cache_retention": "24h"}),
            ),
            (
                Protocol::Responses,
                "gpt-6-astra",
                CacheChoice::Hour,
                json!({"prompt_cache_key": "k", "prompt_cache_options": {"ttl": "12h"}}),
            ),
            (Protocol::Chat, "gpt-5.6", CacheChoice::Hour, json!({"prompt_cache_key": "k"})),
            (Protocol::Chat, "o3", CacheChoice::Hour, json!({"prompt_cache_key": "k"})),
        ] {
            let cache = of(choice, protocol, "https://api.openai.com", model);
            let mut sent = body(LINES, protocol, model, cache);
            let sent = sent.as_object_mut().unwrap();
            sent.retain(|name, _| name.starts_with("prompt_cache"));
            assert_eq!(*sent, *members.as_object().unwrap(), "{model}");
        }
    }

    #[test]
    fn messages_of_chat_completions_are_marked_in_their_text() {
        let claude = "anthropic/claude-sonnet-5";
        let cache = of(CacheChoice::Auto, Protocol::Chat, "https://openrouter.ai/api/v1", claude);
        let sent = body(LINES, Protocol::Chat, claude, cache);
        let all = ["messages.0.content.0", "messages.3.content.0", "messages.5.content.0"];
        assert_eq!(marks(&sent), all);
        assert_eq!(sent["messages"][3]["content"][0]["text"], "x");
    }
}
