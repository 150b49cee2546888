//! The protocols. Each is a folder with the same parts: `request` maps messages to a body, `reply` and `stream` map an answer
//! to a reply.

use crate::json::Object;
use crate::provider::ModelRequest;
use crate::provider::address::Platform;
use crate::provider::anthropic::Anthropic;
use crate::provider::api::Api;
use crate::provider::chat::Chat;
use crate::provider::gemini::Gemini;
use crate::provider::ollama::Ollama;
use crate::provider::own_summary;
use crate::provider::refusal::Feature;
use crate::provider::responses::Responses;
use crate::provider::sampling;

/// A provider's wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(clap::ValueEnum))]
pub enum Protocol {
    /// The Anthropic Messages API, at Anthropic's own address.
    Anthropic,
    /// The Messages API on Vertex AI.
    AnthropicOnVertex,
    /// The Messages API on Bedrock.
    AnthropicOnBedrock,
    /// Chat completions, as offered by OpenAI and many others.
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Gemini's API, at Google's own address.
    Gemini,
    /// Gemini's API on Vertex AI.
    GeminiOnVertex,
    /// Ollama's native `/api/chat`.
    Ollama,
}

impl Protocol {
    /// Returns the protocol's name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Anthropic | Protocol::AnthropicOnVertex | Protocol::AnthropicOnBedrock => {
                "anthropic"
            }
            Protocol::Chat => "chat",
            Protocol::Responses => "responses",
            Protocol::Gemini | Protocol::GeminiOnVertex => "gemini",
            Protocol::Ollama => "ollama",
        }
    }

    /// Returns how requests and answers of the protocol are written.
    #[must_use]
    pub fn api(self) -> &'static dyn Api {
        match self {
            Protocol::Anthropic => &Anthropic(Platform::Own),
            Protocol::AnthropicOnVertex => &Anthropic(Platform::Vertex),
            Protocol::AnthropicOnBedrock => &Anthropic(Platform::Bedrock),
            Protocol::Chat => &Chat,
            Protocol::Responses => &Responses,
            Protocol::Gemini => &Gemini(Platform::Own),
            Protocol::GeminiOnVertex => &Gemini(Platform::Vertex),
            Protocol::Ollama => &Ollama,
        }
    }

    /// Returns the body of a request. The same request always gives the same bytes.
    #[must_use]
    pub fn body(self, request: &ModelRequest<'_, '_>) -> String {
        let messages = own_summary::applied(request);
        let body = self.api().body(&ModelRequest { messages: &messages, ..*request });
        let body = match request.extra {
            Some(extra) => merged(&body, extra),
            None => body,
        };
        let parameter = |feature| match feature {
            Feature::Parameter(index) => sampling::PARAMETERS.get(index),
            _ => None,
        };
        let parameters = request.without.iter().filter_map(parameter);
        parameters.fold(body, |body, names| sampling::without(&body, names))
    }

    /// Returns the tokens of the answer that thinking may take. They are unknown for an API without budgets.
    #[must_use]
    pub fn thinking_budget(self, request: &ModelRequest<'_, '_>) -> Option<u64> {
        request.budget().filter(|_| self.api().least_budget().is_some())
    }

    /// Checks that a budget for thinking is one that the API accepts, and that it leaves tokens for the answer.
    ///
    /// # Errors
    /// Returns what is wrong, and what to do.
    pub fn check_budget(self, request: &ModelRequest<'_, '_>) -> Result<(), String> {
        let (budget, most) = (self.thinking_budget(request), request.max_tokens);
        let Some(budget) = budget.filter(|budget| *budget > 0) else { return Ok(()) };
        match self.api().least_budget() {
            Some(least) if budget < least => Err(format!(
                "--thinking-budget {budget} is too small for the {} API; give at least {least}, or 0 for no thinking",
                self.name()
            )),
            _ if budget >= most => Err(format!(
                "--thinking-budget {budget} leaves no tokens for the answer, because --max-tokens {most} includes thinking; raise --max-tokens or lower the budget"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the body of a request for the server's own summary of the messages. `None` for an API that makes none.
    #[must_use]
    pub fn summary_body(self, request: &ModelRequest<'_, '_>) -> Option<String> {
        let body =
            self.body(&ModelRequest { stream: false, container: None, cache: None, ..*request });
        self.api().summary_body(&Object::parse(&body).ok()?)
    }

    /// Returns the body of a token counting request, which neither asks for a stream nor names a container nor asks for a
    /// cache.
    #[must_use]
    pub fn count_body(self, request: &ModelRequest<'_, '_>) -> String {
        let body =
            self.body(&ModelRequest { stream: false, container: None, cache: None, ..*request });
        Object::parse(&body).map(|body| self.api().count_body(&body, request.model)).unwrap_or(body)
    }
}

/// Returns a body with the members of `extra` added; they override members of the same name. If both values are
/// objects (such as Ollama's `options`), they are merged recursively.
fn merged(body: &str, extra: &str) -> String {
    let Ok(extra) = Object::parse(extra) else { return body.to_owned() };
    extra.members().fold(body.to_owned(), |body, member| {
        let Ok(object) = Object::parse(&body) else { return body };
        let name = member.name();
        match object.get(&name) {
            Some(own) if own.starts_with('{') && member.value.starts_with('{') => {
                object.with(&name, &merged(own, member.value))
            }
            _ => object.with(&name, member.value),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Message;
    use crate::provider::effort::Effort;
    use crate::provider::refusal::Features;
    use crate::record::content::Role;
    use crate::usage::Counts;
    use clap::ValueEnum;

    /// Returns a complete answer with the text `a`, a prompt of 10 tokens and an output of 3.
    fn answer(protocol: Protocol) -> &'static str {
        match protocol {
            Protocol::Anthropic | Protocol::AnthropicOnVertex | Protocol::AnthropicOnBedrock => {
                r#"{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":3}}"#
            }
            Protocol::Chat => {
                r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3}}"#
            }
            Protocol::Responses => {
                r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":10,"input_tokens_details":{},"output_tokens":3}}"#
            }
            Protocol::Gemini | Protocol::GeminiOnVertex => {
                r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3}}"#
            }
            Protocol::Ollama => {
                r#"{"message":{"content":"a"},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":3}"#
            }
        }
    }

    #[test]
    fn the_answer_of_every_protocol_is_read_with_its_usage() {
        for protocol in Protocol::value_variants() {
            let reply = protocol.api().read(&Object::parse(answer(*protocol)).unwrap()).unwrap();
            assert_eq!(reply.texts().collect::<Vec<_>>(), ["a"], "{protocol:?}");
            assert_eq!(reply.stop_reason.as_deref(), Some("end_turn"), "{protocol:?}");
            let counts = Counts::read(&reply.usage.unwrap()).unwrap();
            assert_eq!((counts.prompt(), counts.output), (10, 3), "{protocol:?}");
        }
    }

    #[test]
    fn every_protocol_sends_settings_and_leaves_out_those_that_a_model_refuses() {
        let messages = [Message::text(Role::User, "hi")];
        let request = ModelRequest {
            temperature: Some(0.7),
            effort: Some(Effort::Low),
            ..ModelRequest::plain(&messages, 12_345)
        };
        let without = |feature| {
            let mut features = Features::default();
            features.add(feature);
            ModelRequest { without: features, ..request }
        };
        for protocol in Protocol::value_variants() {
            let temperatures = |body: &str| sampling::values(body, "temperature").count();
            let body = protocol.body(&request);
            assert_eq!(temperatures(&body), 1, "{protocol:?}: {body}");
            let cooled = protocol.body(&without(Feature::Parameter(0)));
            assert_eq!(temperatures(&cooled), 0, "{protocol:?}: {cooled}");
            let high = protocol.body(&ModelRequest { effort: Some(Effort::High), ..request });
            let unset = protocol.body(&ModelRequest { effort: None, ..request });
            assert!(body != high && body != unset, "{protocol:?}: {body}");
            assert_eq!(protocol.body(&without(Feature::Thinking)), unset, "{protocol:?}");
            let counts = protocol.api().urls("https://x", "m").count.is_some();
            assert!(body.contains("12345"), "{protocol:?}: {body}");
            let counted = protocol.count_body(&request);
            assert!(!counts || !counted.contains("12345"), "{protocol:?}: {counted}");
        }
    }

    #[test]
    fn audit_17_an_endpoint_url_is_used_unchanged_and_a_query_is_kept() {
        use Protocol::{Anthropic, Chat, Ollama};
        for (protocol, base, url, count) in [
            (
                Anthropic,
                "https://x",
                "https://x/v1/messages",
                Some("https://x/v1/messages/count_tokens"),
            ),
            (
                Anthropic,
                "https://x/v1/?a=b",
                "https://x/v1/messages?a=b",
                Some("https://x/v1/messages/count_tokens?a=b"),
            ),
            (
                Anthropic,
                "https://x/y/messages?a=b",
                "https://x/y/messages?a=b",
                Some("https://x/y/messages/count_tokens?a=b"),
            ),
            (
                Chat,
                "https://x/chat/completions?a=b",
                "https://x/chat/completions?a=b",
                Some("https://x/chat/completions/input_tokens?a=b"),
            ),
            (Ollama, "http://x/api/?a=b", "http://x/api/chat?a=b", None),
            (Ollama, "http://x/api/chat", "http://x/api/chat", None),
        ] {
            let urls = protocol.api().urls(base, "m");
            assert_eq!((&*urls.reply, &*urls.stream, urls.count.as_deref()), (url, url, count));
        }
    }

    #[test]
    fn extra_members_override_the_body() {
        assert_eq!(merged(r#"{"a":1,"b":2}"#, r#"{"b":3,"c":{}}"#), r#"{"a":1,"b":3,"c":{}}"#);
        let options = merged(r#"{"o":{"a":1,"b":2}}"#, r#"{"o":{"b":3}}"#);
        assert_eq!(options, r#"{"o":{"a":1,"b":3}}"#);
    }
}
