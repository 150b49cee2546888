//! The kinds of providers: their names, URLs, keys and default models.

use crate::estimate::models::Model;
use crate::provider::address::{self, Address, Platform, is_azure};
use crate::provider::protocol::Protocol;
use crate::provider::{anthropic, chat, gemini};
use crate::settings::Variables;
use clap::ValueEnum;

/// A kind of provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Provider {
    /// The Anthropic Messages API
    Anthropic,
    /// Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp
    Openai,
    /// Google's Gemini, also on Vertex AI
    Gemini,
    /// Ollama's own API
    Ollama,
    /// Built into the program, without network or key; its window is 200000 tokens by default
    Offline,
}

/// The API to use on OpenAI's servers, which offer two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ApiChoice {
    /// Responses on OpenAI's and Azure's servers for models that need it, else chat completions
    #[default]
    Auto,
    /// Chat completions, which most servers know
    Chat,
    /// The Responses API
    Responses,
}

impl Provider {
    /// Returns the provider's name in options and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::Openai => "openai",
            Provider::Gemini => "gemini",
            Provider::Ollama => "ollama",
            Provider::Offline => "offline",
        }
    }

    /// Returns true for the built-in provider.
    #[must_use]
    pub fn is_offline(self) -> bool {
        self == Provider::Offline
    }

    /// Returns the wire protocol for a model at an address. An address that is the endpoint of one of OpenAI's APIs decides
    /// which one it is.
    #[must_use]
    pub fn protocol(self, base: &str, model: &str, api: ApiChoice) -> Protocol {
        let is_own = || Address::parse(base).is_below("api.openai.com") || is_azure(base);
        match self {
            Provider::Offline => Protocol::Anthropic,
            Provider::Anthropic => match Platform::at(base) {
                Platform::Own => Protocol::Anthropic,
                Platform::Vertex => Protocol::AnthropicOnVertex,
                Platform::Bedrock => Protocol::AnthropicOnBedrock,
            },
            Provider::Gemini => match Platform::at(base) {
                Platform::Vertex => Protocol::GeminiOnVertex,
                Platform::Own | Platform::Bedrock => Protocol::Gemini,
            },
            Provider::Ollama => Protocol::Ollama,
            Provider::Openai => match (address::openai_endpoint(base), api) {
                (Some(address::RESPONSES), _) => Protocol::Responses,
                (Some(_), _) | (None, ApiChoice::Chat) => Protocol::Chat,
                (None, ApiChoice::Responses) => Protocol::Responses,
                (None, ApiChoice::Auto) => match is_own() && Model::named(model).needs_responses {
                    true => Protocol::Responses,
                    false => Protocol::Chat,
                },
            },
        }
    }

    /// Returns true if the provider's own servers answer only with a key.
    #[must_use]
    pub fn needs_key(self) -> bool {
        match self {
            Provider::Anthropic | Provider::Openai | Provider::Gemini => true,
            Provider::Ollama | Provider::Offline => false,
        }
    }

    /// Returns the providers that are detected by their keys, in this order.
    pub fn by_key() -> impl Iterator<Item = Provider> {
        Provider::value_variants().iter().copied().filter(|provider| provider.needs_key())
    }

    /// Returns the model to use if none is named.
    #[must_use]
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Provider::Anthropic => Some("claude-sonnet-5"),
            Provider::Openai => Some("gpt-5.4"),
            Provider::Gemini => Some("gemini-3.5-flash"),
            Provider::Ollama => None,
            Provider::Offline => Some("offline"),
        }
    }

    /// Returns true if one of the provider's own variables holds a key.
    #[must_use]
    pub fn has_key(self, variables: Variables<'_>) -> bool {
        self.key_variables("").iter().any(|name| variables.text(name).is_some())
    }

    /// Returns true unless `ANTHROPIC_BASE_URL`, `OPENAI_BASE_URL` or `GEMINI_BASE_URL` sets another base URL for the provider.
    #[must_use]
    pub fn has_default_url(self, variables: Variables<'_>) -> bool {
        match self {
            Provider::Anthropic => variables.text("ANTHROPIC_BASE_URL").is_none(),
            Provider::Openai => variables.text("OPENAI_BASE_URL").is_none(),
            Provider::Gemini => variables.text("GEMINI_BASE_URL").is_none(),
            Provider::Ollama | Provider::Offline => true,
        }
    }

    /// Returns the base URL to use if none is given: the one in the provider's own variable, else the provider's
    /// default.
    #[must_use]
    pub fn default_url(self, variables: Variables<'_>) -> String {
        let (name, default) = match self {
            Provider::Anthropic => ("ANTHROPIC_BASE_URL", anthropic::BASE_URL),
            Provider::Openai => ("OPENAI_BASE_URL", chat::BASE_URL),
            Provider::Gemini => ("GEMINI_BASE_URL", gemini::BASE_URL),
            Provider::Ollama => {
                return ollama_url(&variables.text("OLLAMA_HOST").unwrap_or_default());
            }
            Provider::Offline => return "offline".to_owned(),
        };
        variables.text(name).unwrap_or_else(|| default.to_owned())
    }

    /// Returns the variables that can hold the provider's key for this base URL.
    #[must_use]
    pub fn key_variables(self, base_url: &str) -> &'static [&'static str] {
        match self {
            Provider::Anthropic if Platform::at(base_url) == Platform::Bedrock => {
                &["AWS_BEARER_TOKEN_BEDROCK"]
            }
            Provider::Anthropic if Platform::at(base_url) == Platform::Vertex => &[],
            Provider::Anthropic => &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
            Provider::Gemini if Platform::at(base_url) == Platform::Vertex => &["GOOGLE_API_KEY"],
            Provider::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Provider::Openai if Address::parse(base_url).is_below("openrouter.ai") => {
                &["OPENROUTER_API_KEY"]
            }
            Provider::Openai if is_azure(base_url) => {
                &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"]
            }
            Provider::Openai => &["OPENAI_API_KEY"],
            Provider::Ollama => &["OLLAMA_API_KEY"],
            Provider::Offline => &[],
        }
    }
}

/// Returns the URL that Ollama's own client uses for a value of `OLLAMA_HOST`. The default scheme is HTTP
/// on port 11434 (for `ollama.com`, HTTPS on port 443); if the scheme is given, its own default port applies. A
/// wildcard address, which only a server can listen on, means this machine.
fn ollama_url(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("", host));
    let (authority, path) = match rest.find('/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
        _ => (authority, None),
    };
    let is_cloud = scheme.is_empty() && name == "ollama.com";
    let scheme = if is_cloud { "https" } else { scheme };
    let default_port = match scheme {
        "http" => 80,
        "https" => 443,
        _ => 11434,
    };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        name => name,
    };
    let scheme = if scheme.is_empty() { "http" } else { scheme };
    format!("{scheme}://{name}:{}{path}", port.unwrap_or(default_port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_host_gives_the_url_that_ollamas_client_uses() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434"),
            ("box", "http://box:11434"),
            ("box:1234", "http://box:1234"),
            ("http://box", "http://box:80"),
            ("https://box", "https://box:443"),
            ("https://box:8443/ollama/", "https://box:8443/ollama"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:5000", "http://[::1]:5000"),
            ("[::1]", "http://[::1]:11434"),
            ("ollama.com", "https://ollama.com:443"),
            ("box:none", "http://box:11434"),
        ] {
            assert_eq!(ollama_url(host), url, "{host}");
        }
    }
}
