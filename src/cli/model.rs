//! Which provider and model, where, and what is known of its window.

use crate::cli::{now, read_file, variable};
use crate::estimate::models;
use crate::estimate::windows::{self, Stated};
use crate::exit::{Error, Exit};
use crate::provider::protocol::Protocol;
use crate::provider::{address, anthropic, offline, openai};
use crate::transcript;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// A kind of provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Provider {
    /// The Anthropic Messages API
    Anthropic,
    /// Chat completions: OpenAI, OpenRouter, LiteLLM, vLLM, llama.cpp
    Openai,
    /// Ollama's own API
    Ollama,
    /// Inside the program: no network, no key, a window of 200000 tokens unless another is set
    Offline,
}

impl Provider {
    /// Its word in options and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::Openai => "openai",
            Provider::Ollama => "ollama",
            Provider::Offline => "offline",
        }
    }

    /// Whether it is inside the program.
    #[must_use]
    pub fn is_inside(self) -> bool {
        self == Provider::Offline
    }

    /// The protocol that it speaks. The one inside answers as Anthropic does.
    #[must_use]
    pub fn protocol(self) -> Protocol {
        match self {
            Provider::Anthropic | Provider::Offline => Protocol::Anthropic,
            Provider::Openai => Protocol::OpenAi,
            Provider::Ollama => Protocol::Ollama,
        }
    }

    /// The providers that are found by their keys, in this order.
    const BY_KEY: [Provider; 2] = [Provider::Anthropic, Provider::Openai];

    /// Returns the model to use if none is named.
    #[must_use]
    pub fn default_model(self) -> Option<&'static str> {
        match self {
            Provider::Anthropic => Some("claude-sonnet-5"),
            Provider::Openai => Some("gpt-5.4"),
            Provider::Ollama => None,
            Provider::Offline => Some("offline"),
        }
    }

    /// Returns whether a variable of the provider's own has a key.
    fn has_key(self) -> bool {
        let names: &[&str] = match self {
            Provider::Anthropic => &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
            Provider::Openai => &["OPENAI_API_KEY"],
            Provider::Ollama | Provider::Offline => &[],
        };
        names.iter().any(|name| variable(name).is_some())
    }

    /// Returns whether no variable of the provider's own gives another address.
    fn has_usual_url(self) -> bool {
        match self {
            Provider::Anthropic => variable("ANTHROPIC_BASE_URL").is_none(),
            Provider::Openai => variable("OPENAI_BASE_URL").is_none(),
            Provider::Ollama | Provider::Offline => true,
        }
    }

    /// Where it is when nobody says: by its own variable, else its usual address.
    #[must_use]
    pub fn usual_url(self) -> String {
        let (name, usual) = match self {
            Provider::Anthropic => ("ANTHROPIC_BASE_URL", anthropic::BASE_URL),
            Provider::Openai => ("OPENAI_BASE_URL", openai::BASE_URL),
            Provider::Ollama => {
                return variable("OLLAMA_HOST")
                    .map_or_else(|| ollama_url(""), |host| ollama_url(&host));
            }
            Provider::Offline => return "offline".to_owned(),
        };
        variable(name).unwrap_or_else(|| usual.to_owned())
    }
}

/// The option group for the model.
#[derive(Clone, Debug, clap::Args)]
pub struct ModelArgs {
    /// Provider to call (default: the one whose key is in the environment, else anthropic)
    #[arg(long, value_name = "NAME", env = "CLAW_PROVIDER")]
    pub provider: Option<Provider>,
    /// Name of the model (default: MODEL_ID, else the provider's default model)
    #[arg(long, value_name = "NAME", env = "CLAW_MODEL")]
    pub model: Option<String>,
    /// Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL or OLLAMA_HOST)
    #[arg(long, value_name = "URL", env = "CLAW_BASE_URL")]
    pub base_url: Option<String>,
    /// File of models to look up before the built-in table
    #[arg(long, value_name = "FILE", env = "CLAW_MODELS")]
    pub models: Option<PathBuf>,
}

impl ModelArgs {
    /// The options that were given, for a program that is run.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let provider = self.provider.map(|provider| provider.name().to_owned());
        let given = [
            ("--provider", provider),
            ("--model", self.model.clone()),
            ("--base-url", self.base_url.clone()),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given.flatten().collect()
    }

    /// Returns the provider: without a setting the one whose key is in the environment, else Anthropic.
    #[must_use]
    pub fn provider(&self) -> Provider {
        let by_key = || match self.base_url {
            None => Provider::BY_KEY.into_iter().find(|provider| provider.has_key()),
            Some(_) => None,
        };
        self.provider.or_else(by_key).unwrap_or(Provider::Anthropic)
    }

    /// Returns the model's name, if one is set.
    #[must_use]
    pub fn named_model(&self) -> Option<String> {
        self.model.clone().or_else(|| variable("MODEL_ID"))
    }

    /// Returns the model's name: the one that is set, else the provider's default. Anthropic and OpenAI have one
    /// if their key is in the environment and their address is the usual one: other servers have other models.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        let provider = self.provider();
        self.named_model().or_else(|| {
            let is_usual = self.base_url.is_none() && provider.has_usual_url();
            let is_ready = provider.is_inside() || is_usual && provider.has_key();
            provider.default_model().filter(|_| is_ready).map(str::to_owned)
        })
    }

    /// Returns the address of the provider, without a slash at its end; `offline` for the one inside.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let provider = self.provider();
        let named = self.base_url.clone().filter(|_| provider != Provider::Offline);
        let url = named.unwrap_or_else(|| provider.usual_url());
        url.trim_end_matches('/').to_owned()
    }

    /// Returns the window: the configured one, else the smaller of what the table of models says and what a
    /// refusal by this endpoint stated for this model.
    ///
    /// # Errors
    /// 78 when the file of `--models` is malformed.
    pub fn window(&self, configured: Option<u64>) -> anyhow::Result<Option<u64>> {
        configured.map_or_else(|| self.own_window(), |window| Ok(Some(window)))
    }

    /// Returns the window of this very model, by the table of models and what refusals stated.
    ///
    /// # Errors
    /// 78 when the file of `--models` is malformed.
    pub fn own_window(&self) -> anyhow::Result<Option<u64>> {
        let table = self.window_of_table()?;
        let stated = self.stated_window(table)?.map(|stated| stated.window);
        Ok(table.into_iter().chain(stated).min())
    }

    /// Returns a warning if the configured window is larger than the one that a refusal stated.
    ///
    /// # Errors
    /// As [`ModelArgs::window`].
    pub fn window_warning(&self, configured: Option<u64>) -> anyhow::Result<Option<String>> {
        let Some(window) = configured else { return Ok(None) };
        let stated = self.stated_window(Some(window))?.map(|stated| stated.window);
        let (Some(stated), Some(path)) = (stated.filter(|stated| *stated < window), windows_file())
        else {
            return Ok(None);
        };
        Ok(Some(format!(
            "the window is set to {window}, but a refusal stated {stated}; if that is wrong, delete its \
             line in '{}'",
            path.display()
        )))
    }

    fn window_of_table(&self) -> anyhow::Result<Option<u64>> {
        let Some(model) = self.model() else { return Ok(None) };
        let read = |path: &PathBuf| -> anyhow::Result<String> {
            Ok(String::from_utf8_lossy(&read_file(path)?).into_owned())
        };
        let extra = self.models.as_ref().map(read).transpose()?;
        let found = models::lookup(&model, extra.as_deref());
        let found = found.map_err(|why| {
            let path = self.models.as_deref().unwrap_or(Path::new("")).display();
            let help = "claw-estimate(1) says what a line holds";
            Error::new(Exit::Config, format!("cannot use models '{path}': {why}; {help}"))
        })?;
        let inside = || self.provider().is_inside().then_some(offline::WINDOW);
        Ok(found.map(|model| model.window).or_else(inside))
    }

    /// The window that a refusal stated, if it is plausible beside the `known` one.
    fn stated_window(&self, known: Option<u64>) -> anyhow::Result<Option<Stated>> {
        let (Some(model), Some(path)) = (self.model(), windows_file()) else { return Ok(None) };
        // A memory that cannot be read is empty.
        let Ok(bytes) = std::fs::read(path) else { return Ok(None) };
        let (text, place) = (String::from_utf8_lossy(&bytes), address::place(&self.endpoint()));
        let is_place = |endpoint: &str| address::place(endpoint) == place;
        Ok(windows::lookup(&text, is_place, &model, known, now()?))
    }

    /// Remembers the window that a refusal stated, for every program, if it is plausible beside the one that
    /// was given or is in the table.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn learn_window(&self, window: u64, configured: Option<u64>) -> anyhow::Result<()> {
        let (Some(model), Some(path)) = (self.model(), windows_file()) else { return Ok(()) };
        let known = configured.map_or_else(|| self.window_of_table(), |it| Ok(Some(it)))?;
        if !windows::is_plausible(window, known) {
            return Ok(());
        }
        let place = address::place(&self.endpoint());
        let line = windows::line(&place, &model, Stated { window, ts: now()? });
        transcript::append_state(&path, &line)
            .with_context(|| format!("cannot note the window in '{}'", path.display()))
    }
}

/// The address that `OLLAMA_HOST` means, as Ollama's own client reads it: without a scheme it is HTTP and
/// port 11434, with one that scheme's port; an address that only a server can have is this machine.
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
    let usual = match scheme {
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
    format!("{scheme}://{name}:{}{path}", port.unwrap_or(usual))
}

/// The file of the windows that refusals stated.
fn windows_file() -> Option<PathBuf> {
    state_dir().map(|dir| dir.join("windows.jsonl"))
}

/// The folder for what programs remember: `CLAW_STATE_DIR`, else `clawutils` in `XDG_STATE_HOME` or
/// `~/.local/state`.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let own = variable("CLAW_STATE_DIR").map(PathBuf::from);
    let xdg = || variable("XDG_STATE_HOME").map(|dir| PathBuf::from(dir).join("clawutils"));
    let home = || variable("HOME").map(|dir| PathBuf::from(dir).join(".local/state/clawutils"));
    own.or_else(xdg).or_else(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ollama_host_is_read_as_its_own_client_reads_it() {
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
