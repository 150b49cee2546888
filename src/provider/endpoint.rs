//! The endpoint that requests are sent to: its URL, its key and its headers.

use crate::exit::{Exit, fail};
use crate::provider::address::{self, Address, Platform, is_azure, is_local};
use crate::provider::api::Urls;
use crate::provider::batch::BatchService;
use crate::provider::call::Ask;
#[cfg(feature = "http")]
use crate::provider::http::{why_invalid_certificates, why_invalid_url};
use crate::provider::key::KeySource;
use crate::provider::protocol::Protocol;
use crate::provider::{ApiChoice, Provider, chat, secret};
use crate::settings::Variables;
use clap::ValueEnum;
use std::path::PathBuf;

/// The header for Google's API keys.
const GOOGLE_KEY: &str = "x-goog-api-key";

/// The name of the output limit in chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum OutputField {
    /// Choose by model; max_completion_tokens for OpenAI itself
    Auto,
    /// The older name, which most servers know
    MaxTokens,
    /// The newer name, which OpenAI's newer models require
    MaxCompletionTokens,
}

/// The options of an endpoint.
pub struct EndpointOptions {
    /// The source of the key, if there is one.
    pub key: Option<KeySource>,
    /// The path and content of a file with certificates to trust in addition to the system's.
    pub certificates: Option<(PathBuf, Vec<u8>)>,
    /// The API to use on OpenAI's servers.
    pub api: ApiChoice,
    /// The name of the output limit.
    pub output_field: OutputField,
    /// The beta features to request, separated by commas.
    pub beta: String,
    /// True if plain HTTP to other machines is allowed.
    pub insecure_http: bool,
    /// The environment variables, for hints about keys in error messages.
    pub variables: Variables<'static>,
}

/// The endpoint that requests are sent to.
pub struct Endpoint {
    /// The provider that answers.
    pub provider: Provider,
    /// The provider's wire protocol.
    pub protocol: Protocol,
    /// The base URL.
    pub base: String,
    /// The URLs for requests.
    pub urls: Urls,
    /// True if the URL is on this machine.
    pub is_local: bool,
    options: EndpointOptions,
    /// The header that carries the key.
    key: Option<(&'static str, String)>,
}

impl Endpoint {
    /// Returns the endpoint of a provider's model under the base URL `base`. The key is not read yet.
    #[must_use]
    pub fn new(provider: Provider, base: &str, model: &str, options: EndpointOptions) -> Endpoint {
        let protocol = provider.protocol(base, model, options.api);
        let (base, urls) = (base.to_owned(), protocol.api().urls(base, model));
        let is_local = is_local(&base);
        Endpoint { provider, protocol, base, urls, is_local, options, key: None }
    }

    /// Checks that the URL is safe to send to.
    ///
    /// # Errors
    /// Status 78 if it is not.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.provider == Provider::Offline {
            return Ok(());
        }
        let url = &self.urls.reply;
        let is_http = url.starts_with("http://");
        let is_safe =
            url.starts_with("https://") || is_http && (self.is_local || self.options.insecure_http);
        if !is_safe {
            let why = match is_http {
                true => "not https; http to another machine needs --insecure-http",
                false => "not an https address; begin it with https://",
            };
            let text = format!("cannot send to '{}': {why}", address::shown(url));
            return fail(Exit::Config, text);
        }
        if Address::parse(url).user.is_some() {
            let text = "cannot send: the address contains a user name; give the key with --key-file or a variable";
            return fail(Exit::Config, text);
        }
        Ok(())
    }

    /// Checks that the URL is safe, and reads the key.
    ///
    /// # Errors
    /// Status 77 if there is no key, other users may read the key file, or the key command fails; 74 or 77 if the key
    /// file cannot be read; 78 if the URL, the certificates or the key cannot be used.
    pub fn open(&mut self) -> anyhow::Result<()> {
        self.check()?;
        self.check_transport()?;
        if self.provider == Provider::Offline {
            return Ok(());
        }
        if let Some(source) = &self.options.key {
            let key = source.read()?;
            self.key = Some(match self.key_header(Some(&key)) {
                "authorization" => ("authorization", format!("Bearer {key}")),
                name => (name, key),
            });
        }
        self.require_key()
    }

    /// Checks that the HTTP library accepts the URL and the certificates. [`Endpoint::check`] does not do this, so
    /// that only claw-call contains the library.
    fn check_transport(&self) -> anyhow::Result<()> {
        if self.provider == Provider::Offline {
            return Ok(());
        }
        let url = &self.urls.reply;
        if let Some(why) = why_invalid_url(url) {
            return fail(Exit::Config, format!("cannot send to '{}': {why}", address::shown(url)));
        }
        if let Some((path, pem)) = &self.options.certificates
            && let Some(why) = why_invalid_certificates(pem)
        {
            let text = format!("cannot use certificates '{}': {why}", path.display());
            return fail(Exit::Config, text);
        }
        Ok(())
    }

    /// Checks that there is a key if one is needed, without reading it.
    ///
    /// # Errors
    /// Status 77 if a needed key is missing.
    pub fn require_key(&self) -> anyhow::Result<()> {
        let is_needed = !self.is_local && self.provider.needs_key();
        match is_needed && self.options.key.is_none() {
            true => fail(Exit::Permission, self.no_key()),
            false => Ok(()),
        }
    }

    /// Returns the error for a missing key. It explains how to give one, and names the variables that are set to keys
    /// for other providers.
    fn no_key(&self) -> String {
        let names = self.provider.key_variables(&self.base).join(" or ");
        let others = Provider::value_variants().iter().filter(|other| **other != self.provider);
        let set = others.flat_map(|other| {
            let set = other
                .key_variables("")
                .iter()
                .find(|name| self.options.variables.text(name).is_some());
            set.map(|variable| format!(" ({variable} is for --provider {})", other.name()))
        });
        let (name, hint) = (self.provider.name(), set.collect::<String>());
        let set = if names.is_empty() { String::new() } else { format!("set {names}, or ") };
        let example = match Platform::at(&self.base) {
            Platform::Vertex => " 'gcloud auth print-access-token'",
            _ => "",
        };
        format!("no key for {name}; {set}give --key-file or --key-cmd{example}{hint}")
    }

    /// Returns the name of the header for the key; `key` is the key itself, if it has been read. Azure and Google have a
    /// separate header for API keys, but take the tokens of their identity services as bearer tokens: Azure's are JWTs, and
    /// Google's begin with `ya29.`, while its API keys begin with `AIza` or `AQ.`.
    fn key_header(&self, key: Option<&str>) -> &'static str {
        let is_token = matches!(self.options.key, Some(KeySource::Variable { is_token: true, .. }));
        let begins = |begin: &str| key.is_some_and(|key| key.starts_with(begin));
        let platform = Platform::at(&self.base);
        let is_key = match self.provider {
            Provider::Anthropic => platform == Platform::Own && !is_token,
            Provider::Gemini => match platform {
                Platform::Vertex => begins("AIza") || begins("AQ."),
                Platform::Own => !begins("ya29."),
                Platform::Bedrock => false,
            },
            Provider::Openai => is_azure(&self.base) && !is_token && !begins("eyJ"),
            Provider::Ollama | Provider::Offline => false,
        };
        match self.provider {
            Provider::Anthropic if is_key => "x-api-key",
            Provider::Gemini if is_key => GOOGLE_KEY,
            Provider::Openai if is_key => "api-key",
            _ => "authorization",
        }
    }

    /// Returns the headers of a request, including the key if it has been read.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let own = match self.provider.is_offline() {
            true => Vec::new(),
            false => self.protocol.api().headers(&self.options.beta),
        };
        own.into_iter().chain(self.key.clone()).collect()
    }

    /// Requests a beta feature, unless it is requested already.
    pub fn request_beta(&mut self, id: &str) {
        let beta = &mut self.options.beta;
        if !beta.split(',').any(|own| own == id) {
            let comma = if beta.is_empty() { "" } else { "," };
            *beta += &format!("{comma}{id}");
        }
    }

    /// Returns the URL for a purpose.
    #[must_use]
    pub fn url(&self, ask: Ask, stream: bool) -> String {
        let urls = &self.urls;
        let own = match ask {
            Ask::Count => urls.count.clone(),
            Ask::Summary => self.protocol.api().summary_url(urls),
            Ask::Reply if stream => Some(urls.stream.clone()),
            Ask::Reply => None,
        };
        own.unwrap_or_else(|| urls.reply.clone())
    }

    /// Returns the batch service for the requests of this endpoint.
    ///
    /// # Errors
    /// Status 78 if there is none. OpenRouter has none, and Azure's is another one.
    pub fn batches(&self, model: &str) -> anyhow::Result<Box<dyn BatchService>> {
        let has_none = self.provider.is_offline()
            || Address::parse(&self.base).is_below("openrouter.ai")
            || is_azure(&self.base);
        let service = self.protocol.api().batches(&self.base, model).filter(|_| !has_none);
        match service {
            Some(service) => Ok(service),
            None => {
                let text = format!(
                    "no batch service for {} at '{}'; use the address of Anthropic, OpenAI or Gemini, or leave out --batch",
                    self.provider.name(),
                    address::shown(&self.base)
                );
                fail(Exit::Config, text)
            }
        }
    }

    /// Returns the key or token in use.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        let (_, value) = self.key.as_ref()?;
        Some(value.strip_prefix("Bearer ").unwrap_or(value))
    }

    /// Removes the key from a provider's text, because some providers repeat a key that they reject. Prefixes of the
    /// key are removed as well.
    #[must_use]
    pub fn without_key(&self, text: &str) -> String {
        self.secret().map_or_else(|| text.to_owned(), |key| secret::hidden(text, key))
    }

    /// Describes the request of an endpoint whose key has not been read: returns one line for the URL and one per
    /// header, with `(hidden)` in place of the key.
    #[must_use]
    pub fn shown(&self, ask: Ask, stream: bool) -> Vec<String> {
        let mut lines = vec![format!("would send POST {}", address::shown(&self.url(ask, stream)))];
        let headers = self.headers().into_iter();
        lines.extend(headers.map(|(name, value)| format!("would send {name}: {value}")));
        if self.options.key.is_some() {
            lines.push(format!("would send {}: (hidden)", self.key_header(None)));
        }
        lines
    }

    /// Returns the certificates to trust in addition to the system's.
    #[must_use]
    pub fn certificates(&self) -> Option<&[u8]> {
        self.options.certificates.as_ref().map(|(_, pem)| pem.as_slice())
    }

    /// Returns the name of the output limit in chat completions. OpenAI's own servers accept the newer name for all
    /// their models.
    #[must_use]
    pub fn output_limit_name(&self, model: &str) -> &'static str {
        match self.options.output_field {
            OutputField::MaxTokens => chat::LIMIT_NAME,
            OutputField::MaxCompletionTokens => chat::NEWER_LIMIT_NAME,
            OutputField::Auto if Address::parse(&self.base).is_below("api.openai.com") => {
                chat::NEWER_LIMIT_NAME
            }
            OutputField::Auto => chat::output_limit_name(model),
        }
    }
}

#[cfg(not(feature = "http"))]
fn why_invalid_certificates(_: &[u8]) -> Option<String> {
    why_invalid_url("")
}

#[cfg(not(feature = "http"))]
fn why_invalid_url(_: &str) -> Option<String> {
    Some("this build has no network".to_owned())
}
