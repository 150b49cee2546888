//! Where a request goes, and what goes with it.

use crate::cli::key::{KeyArgs, Source, variables};
use crate::cli::model::{ModelArgs, Provider};
use crate::cli::{Log, read_file, variable};
use crate::exit::{Exit, fail};
use crate::provider::address::{self, Address, is_azure};
use crate::provider::protocol::Protocol;
use crate::provider::{anthropic, openai, secret};
use clap::ValueEnum;
use std::path::PathBuf;

/// The option group for the way there.
#[derive(Clone, Debug, clap::Args)]
pub struct WayArgs {
    /// The key.
    #[command(flatten)]
    pub key: KeyArgs,
    /// Allow plain HTTP to other machines; the key is sent unencrypted
    #[arg(long, env = "CLAW_INSECURE_HTTP")]
    pub insecure_http: bool,
    /// PEM file of certificates to trust in addition to the system's
    #[arg(long, value_name = "FILE", env = "CLAW_CA")]
    pub ca: Option<PathBuf>,
    /// Name of the field that limits the answer in chat completions
    #[arg(long, value_name = "NAME", env = "CLAW_MAX_TOKENS_FIELD", default_value = "auto")]
    pub max_tokens_field: OutputField,
    /// Anthropic beta feature to request; may be repeated
    #[arg(long, value_name = "ID", env = "CLAW_BETA")]
    pub beta: Vec<String>,
}

/// Names of the field for the most tokens of the answer in chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum OutputField {
    /// By model; the newer one for OpenAI itself
    Auto,
    /// The older one, which most servers know
    MaxTokens,
    /// The newer one, which OpenAI's newer models require
    MaxCompletionTokens,
}

/// Where and how to send.
pub struct Endpoint {
    /// Who answers.
    pub provider: Provider,
    /// In which protocol.
    pub protocol: Protocol,
    /// The address for a reply.
    pub url: String,
    /// The address that counts, where there is one.
    pub count_url: Option<String>,
    /// Whether it is on this machine.
    pub is_local: bool,
    /// Certificates to trust beside the system's.
    pub certificates: Option<Vec<u8>>,
    certificates_path: Option<PathBuf>,
    source: Option<Source>,
    /// The header that carries the key.
    key: Option<(&'static str, String)>,
    output_field: OutputField,
    beta: String,
    insecure_http: bool,
}

impl Endpoint {
    /// The endpoint of the options; the key is not read yet.
    ///
    /// # Errors
    /// 78 when options or environment contradict each other, 74 when the certificates cannot be read.
    pub fn new(model: &ModelArgs, way: &WayArgs) -> anyhow::Result<Endpoint> {
        let provider = model.provider();
        let base = model.endpoint();
        let protocol = provider.protocol();
        let url = protocol.url(&base);
        let beta = way.beta.join(",");
        if !beta.is_empty() && provider != Provider::Anthropic {
            return fail(
                Exit::Config,
                format!("--beta is not for {}; leave it out", provider.name()),
            );
        }
        Ok(Endpoint {
            provider,
            protocol,
            count_url: protocol.count_url(&base),
            is_local: is_local(&url),
            certificates: certificates(way)?,
            certificates_path: way.ca.clone(),
            source: way.key.source(provider, &base)?,
            key: None,
            output_field: way.max_tokens_field,
            beta,
            insecure_http: way.insecure_http,
            url,
        })
    }

    /// Sees whether sending there is safe.
    ///
    /// # Errors
    /// 78 when it is not.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.provider == Provider::Offline {
            return Ok(());
        }
        let is_safe = self.url.starts_with("https://")
            || self.url.starts_with("http://") && (self.is_local || self.insecure_http);
        if !is_safe {
            let why = match self.url.starts_with("http://") {
                true => "not https; http to another machine needs --insecure-http",
                false => "not an https address; begin it with https://",
            };
            let text = format!("cannot send to '{}': {why}", address::shown(&self.url));
            return fail(Exit::Config, text);
        }
        if Address::parse(&self.url).user.is_some() {
            let text = "cannot send: the address holds a user name; give the key by --key-file or a variable";
            return fail(Exit::Config, text);
        }
        Ok(())
    }

    /// Sees whether the address is safe, and reads the key.
    ///
    /// # Errors
    /// 77 when there is no key, or it may not be used; 78 when the address is not safe.
    pub fn open(&mut self) -> anyhow::Result<()> {
        self.check()?;
        self.check_transport()?;
        if self.provider == Provider::Offline {
            return Ok(());
        }
        if let Some(source) = &self.source {
            let key = source.read()?;
            self.key = Some(match self.key_header(Some(&key)) {
                "authorization" => ("authorization", format!("Bearer {key}")),
                name => (name, key),
            });
        }
        self.require_key()
    }

    /// Checks the address and the certificates as the code of the network reads them, which claw-call alone has.
    fn check_transport(&self) -> anyhow::Result<()> {
        if self.provider == Provider::Offline {
            return Ok(());
        }
        if let Some(why) = why_no_address(&self.url) {
            return fail(
                Exit::Config,
                format!("cannot send to '{}': {why}", address::shown(&self.url)),
            );
        }
        let why = self.certificates.as_deref().and_then(why_no_certificates);
        if let (Some(why), Some(path)) = (why, &self.certificates_path) {
            let text = format!("cannot use certificates '{}': {why}", path.display());
            return fail(Exit::Config, text);
        }
        Ok(())
    }

    /// Checks that there is a key if one is needed, without reading it.
    ///
    /// # Errors
    /// 77 if there is none.
    pub fn require_key(&self) -> anyhow::Result<()> {
        let is_needed =
            !self.is_local && !matches!(self.provider, Provider::Ollama | Provider::Offline);
        match is_needed && self.source.is_none() {
            true => fail(Exit::Permission, self.no_key()),
            false => Ok(()),
        }
    }

    /// Returns the error for a missing key: how to give one, and which other provider has one.
    fn no_key(&self) -> String {
        let names = variables(self.provider, &self.url).join(" or ");
        let others = Provider::value_variants().iter().filter(|other| **other != self.provider);
        let set = others.flat_map(|other| {
            let set = variables(*other, "").iter().find(|name| variable(name).is_some());
            set.map(|variable| format!(" ({variable} is for --provider {})", other.name()))
        });
        let (name, hint) = (self.provider.name(), set.collect::<String>());
        format!("no key for {name}; set {names}, or give --key-file or --key-cmd{hint}")
    }

    /// The header for the key, as far as it is known: Azure takes its keys in a header of its own, and the
    /// tokens of its identity service, which are JWTs, like others.
    fn key_header(&self, key: Option<&str>) -> &'static str {
        let is_token = matches!(self.source, Some(Source::Variable { is_token: true, .. }));
        match self.provider {
            Provider::Anthropic if !is_token => "x-api-key",
            Provider::Openai
                if is_azure(&self.url)
                    && !is_token
                    && !key.is_some_and(|key| key.starts_with("eyJ")) =>
            {
                "api-key"
            }
            _ => "authorization",
        }
    }

    /// The headers of a request, with the key if it was read.
    #[must_use]
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if self.provider == Provider::Anthropic {
            headers.push(("anthropic-version", anthropic::VERSION.to_owned()));
            if !self.beta.is_empty() {
                headers.push(("anthropic-beta", self.beta.clone()));
            }
        }
        headers.extend(self.key.clone());
        headers
    }

    /// The secret in use.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        let (_, value) = self.key.as_ref()?;
        Some(value.strip_prefix("Bearer ").unwrap_or(value))
    }

    /// A provider's text: some repeat the key that they do not accept. Where the text was shortened there
    /// may be only the beginning of it, which tells too much as well.
    #[must_use]
    pub fn without_key(&self, text: &str) -> String {
        self.secret().map_or_else(|| text.to_owned(), |key| secret::hidden(text, key))
    }

    /// Says where and with which headers a request would be sent; never the key.
    pub fn say_headers(&self, url: &str, log: Log) {
        log.note(&format!("would send POST {}", address::shown(url)));
        for (name, value) in self.headers() {
            log.note(&format!("would send {name}: {value}"));
        }
        if self.source.is_some() {
            log.note(&format!("would send {}: (hidden)", self.key_header(None)));
        }
    }

    /// Returns the name of the field for the most tokens of an answer, in chat completions. OpenAI's own
    /// servers take the newer name for all their models.
    #[must_use]
    pub fn output_limit_name(&self, model: &str) -> &'static str {
        match self.output_field {
            OutputField::MaxTokens => openai::LIMIT_NAME,
            OutputField::MaxCompletionTokens => openai::NEWER_LIMIT_NAME,
            OutputField::Auto if Address::parse(&self.url).is_below("api.openai.com") => {
                openai::NEWER_LIMIT_NAME
            }
            OutputField::Auto => openai::output_limit_name(model),
        }
    }
}

fn certificates(way: &WayArgs) -> anyhow::Result<Option<Vec<u8>>> {
    way.ca.as_deref().map(read_file).transpose()
}

#[cfg(feature = "http")]
fn why_no_certificates(pem: &[u8]) -> Option<String> {
    crate::provider::http::why_no_certificates(pem)
}

#[cfg(feature = "http")]
fn why_no_address(url: &str) -> Option<String> {
    crate::provider::http::why_no_address(url)
}

#[cfg(not(feature = "http"))]
fn why_no_certificates(_: &[u8]) -> Option<String> {
    why_no_address("")
}

#[cfg(not(feature = "http"))]
fn why_no_address(_: &str) -> Option<String> {
    Some("this build has no network".to_owned())
}

/// The path of an address, for recordings: a query may hold a key.
#[must_use]
pub fn path(url: &str) -> &str {
    match Address::parse(url).path {
        "" => "/",
        path => path,
    }
}

/// Whether an address is on this machine.
fn is_local(url: &str) -> bool {
    let Address { user, host, .. } = Address::parse(url);
    let ip: Option<std::net::IpAddr> = host.parse().ok();
    let is_here = host.eq_ignore_ascii_case("localhost") || ip.is_some_and(|ip| ip.is_loopback());
    // With a user name the host is what follows '@'; such addresses are not for keys.
    user.is_none() && is_here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t5_what_is_on_this_machine() {
        for url in [
            "http://127.0.0.1:1/v1",
            "http://localhost/x",
            "http://[::1]:8080/",
            "https://127.0.0.1/",
            "https://LOCALHOST:8443",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "http://example.org/",
            "http://127.0.0.1@example.org/",
            "http://127.0.0.1.example.org/",
            "https://127.0.0.1@example.org/",
            "https://localhost.example.org/",
            "http://10.0.0.1/",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }

    #[test]
    fn t5_a_password_in_an_address_is_not_shown() {
        for (url, shown) in [
            ("https://a.example/v1", "https://a.example/v1"),
            ("https://u:p@a.example/v1", "https://(hidden)@a.example/v1"),
            ("http:///u:p@q@a.example", "http://(hidden)@a.example"),
            ("u:p://@a.example", "(hidden)@a.example"),
        ] {
            assert_eq!(address::shown(url), shown);
        }
    }

    #[test]
    fn a_path_is_what_follows_the_host() {
        assert_eq!(path("https://a.example/v1/messages"), "/v1/messages");
        assert_eq!(path("http://a.example"), "/");
        assert_eq!(path("https://a.example/v1/messages?key=x"), "/v1/messages");
    }
}
