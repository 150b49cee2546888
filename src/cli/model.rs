//! Which provider and model, where, and what is known of its window.

use crate::cli::{now, read_file, variable};
use crate::estimate::models;
use crate::estimate::windows::{self, Stated};
use crate::exit::{Error, Exit};
use crate::provider::protocol::Protocol;
use crate::provider::{address, anthropic, offline, openai};
use crate::transcript;
use anyhow::Context;
use std::path::PathBuf;

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
    /// Provider to call (CLAW_PROVIDER, else anthropic)
    #[arg(long, value_name = "NAME")]
    pub provider: Option<Provider>,
    /// Model's name (CLAW_MODEL, else MODEL_ID)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Address of the provider (CLAW_BASE_URL, else ANTHROPIC_BASE_URL, OPENAI_BASE_URL, OLLAMA_HOST)
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
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

    /// The provider: option, then environment, then Anthropic.
    ///
    /// # Errors
    /// 78 when the environment names none that there is.
    pub fn provider(&self) -> anyhow::Result<Provider> {
        if let Some(provider) = self.provider {
            return Ok(provider);
        }
        let Some(name) = variable("CLAW_PROVIDER") else { return Ok(Provider::Anthropic) };
        clap::ValueEnum::from_str(&name, false).map_err(|_| {
            let text = format!(
                "invalid value '{name}' for CLAW_PROVIDER: use anthropic, openai, ollama or offline"
            );
            Error::new(Exit::Config, text).into()
        })
    }

    /// The model's name: option, then environment. The offline provider has one of its own.
    ///
    /// # Errors
    /// 78 as [`ModelArgs::provider`].
    pub fn model(&self) -> anyhow::Result<Option<String>> {
        let named =
            self.model.clone().or_else(|| variable("CLAW_MODEL")).or_else(|| variable("MODEL_ID"));
        Ok(match self.provider()? {
            Provider::Offline => Some(named.unwrap_or_else(|| "offline".to_owned())),
            _ => named,
        })
    }

    /// The address of the provider, without a slash at its end; `offline` for the one inside.
    ///
    /// # Errors
    /// 78 as [`ModelArgs::provider`].
    pub fn endpoint(&self) -> anyhow::Result<String> {
        let provider = self.provider()?;
        if provider == Provider::Offline {
            return Ok(provider.usual_url());
        }
        let named = self.base_url.clone().or_else(|| variable("CLAW_BASE_URL"));
        let url = named.unwrap_or_else(|| provider.usual_url());
        Ok(url.trim_end_matches('/').to_owned())
    }

    /// The window: `given`, else `CLAW_WINDOW`, else the smaller of what the table of models says and what a
    /// refusal by this endpoint stated for this model.
    ///
    /// # Errors
    /// 78 when `CLAW_WINDOW` or the table of `CLAW_MODELS` is malformed.
    pub fn window(&self, given: Option<u64>) -> anyhow::Result<Option<u64>> {
        match explicit_window(given)? {
            Some((window, _)) => Ok(Some(window)),
            None => self.own_window(),
        }
    }

    /// The window of this very model, by the table of models and what refusals stated; `CLAW_WINDOW` is
    /// about the conversation's.
    ///
    /// # Errors
    /// 78 when the table of `CLAW_MODELS` is malformed.
    pub fn own_window(&self) -> anyhow::Result<Option<u64>> {
        let table = self.window_of_table()?;
        let stated = self.stated_window(table)?.map(|stated| stated.window);
        Ok(table.into_iter().chain(stated).min())
    }

    /// A warning where the window that was given is larger than the one that a refusal stated.
    ///
    /// # Errors
    /// As [`ModelArgs::window`].
    pub fn window_warning(&self, given: Option<u64>) -> anyhow::Result<Option<String>> {
        let Some((window, origin)) = explicit_window(given)? else { return Ok(None) };
        let stated = self.stated_window(Some(window))?.map(|stated| stated.window);
        let (Some(stated), Some(path)) = (stated.filter(|stated| *stated < window), windows_file())
        else {
            return Ok(None);
        };
        Ok(Some(format!(
            "the window is {window} by {origin}, but a refusal stated {stated}; if that is wrong, delete \
             its line in '{}'",
            path.display()
        )))
    }

    fn window_of_table(&self) -> anyhow::Result<Option<u64>> {
        let Some(model) = self.model()? else { return Ok(None) };
        let extra = match variable("CLAW_MODELS") {
            Some(path) => Some(String::from_utf8_lossy(&read_file(path.as_ref())?).into_owned()),
            None => None,
        };
        let found = models::lookup(&model, extra.as_deref());
        let found = found.map_err(|why| {
            Error::new(
                Exit::Config,
                format!("cannot use CLAW_MODELS: {why}; claw-estimate(1) says what a line holds"),
            )
        })?;
        let inside = || self.provider().is_ok_and(Provider::is_inside).then_some(offline::WINDOW);
        Ok(found.map(|model| model.window).or_else(inside))
    }

    /// The window that a refusal stated, if it is plausible beside the `known` one.
    fn stated_window(&self, known: Option<u64>) -> anyhow::Result<Option<Stated>> {
        let (Some(model), Some(path)) = (self.model()?, windows_file()) else { return Ok(None) };
        // A memory that cannot be read is empty.
        let Ok(bytes) = std::fs::read(path) else { return Ok(None) };
        let (text, place) = (String::from_utf8_lossy(&bytes), address::place(&self.endpoint()?));
        let is_place = |endpoint: &str| address::place(endpoint) == place;
        Ok(windows::lookup(&text, is_place, &model, known, now()?))
    }

    /// Remembers the window that a refusal stated, for every program, if it is plausible beside the one that
    /// was given or is in the table.
    ///
    /// # Errors
    /// When the state cannot be written.
    pub fn learn_window(&self, window: u64, given: Option<u64>) -> anyhow::Result<()> {
        let (Some(model), Some(path)) = (self.model()?, windows_file()) else { return Ok(()) };
        let known = match explicit_window(given)? {
            Some((window, _)) => Some(window),
            None => self.window_of_table()?,
        };
        if !windows::is_plausible(window, known) {
            return Ok(());
        }
        let place = address::place(&self.endpoint()?);
        let line = windows::line(&place, &model, Stated { window, ts: now()? });
        transcript::append_state(&path, &line)
            .with_context(|| format!("cannot note the window in '{}'", path.display()))
    }
}

/// The window that was given, and by what.
fn explicit_window(given: Option<u64>) -> anyhow::Result<Option<(u64, &'static str)>> {
    if let Some(window) = given {
        return Ok(Some((window, "--window")));
    }
    let Some(window) = variable("CLAW_WINDOW") else { return Ok(None) };
    let text = format!(
        "invalid value '{window}' for CLAW_WINDOW: not a whole number; write digits alone, without a unit"
    );
    let window = window.parse().map_err(|_| Error::new(Exit::Config, text))?;
    Ok(Some((window, "CLAW_WINDOW")))
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
