//! The options for the model, its provider and its address, and the lookup of its context window.

use crate::cli::{ENVIRONMENT, input, now, variable};
use crate::estimate::bytes::{self, ByteLimit, RefusedBody};
use crate::estimate::sizes::{self, Size, Sizes};
use crate::estimate::windows::{self, Origin, Source, Stated, Window};
use crate::estimate::{Model, Refused};
use crate::provider::{Provider, address, offline};
use crate::transcript;
use anyhow::Context;
use std::path::{Path, PathBuf};

/// The option group for the model.
#[derive(Clone, Debug, clap::Args)]
pub struct ModelArgs {
    /// Provider to call (default: the one whose key is in the environment, else anthropic)
    #[arg(long, value_name = "NAME", env = "CLAW_PROVIDER")]
    pub provider: Option<Provider>,
    /// Name of the model (default: MODEL_ID, else the provider's default model)
    #[arg(long, value_name = "NAME", env = "CLAW_MODEL")]
    pub model: Option<String>,
    /// Address of the provider (default: ANTHROPIC_BASE_URL, OPENAI_BASE_URL, GEMINI_BASE_URL or OLLAMA_HOST)
    #[arg(long, value_name = "URL", env = "CLAW_BASE_URL")]
    pub base_url: Option<String>,
    /// File of models to look up before the built-in table
    #[arg(long, value_name = "FILE", env = "CLAW_MODELS")]
    pub models: Option<PathBuf>,
}

impl ModelArgs {
    /// Returns those of `--provider`, `--model` and `--base-url` that are set, as arguments for another program.
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

    /// Returns the configured provider. If there is none, and no address is set, returns the one whose key is in the
    /// environment. Otherwise returns Anthropic.
    #[must_use]
    pub fn provider(&self) -> Provider {
        let by_key = || match self.base_url {
            None => Provider::by_key().find(|provider| provider.has_key(ENVIRONMENT)),
            Some(_) => None,
        };
        self.provider.or_else(by_key).unwrap_or(Provider::Anthropic)
    }

    /// Returns the model's name, if one is set.
    #[must_use]
    pub fn named_model(&self) -> Option<String> {
        self.model.clone().or_else(|| variable("MODEL_ID"))
    }

    /// Returns the model's name: the one that is set, else the provider's default. The defaults of Anthropic, OpenAI and
    /// Gemini apply if their key is in the environment and the address is the default one, because other servers have
    /// other models.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        let provider = self.provider();
        self.named_model().or_else(|| {
            let is_usual = self.base_url.is_none() && provider.has_default_url(ENVIRONMENT);
            let is_ready = provider.is_offline() || is_usual && provider.has_key(ENVIRONMENT);
            provider.default_model().filter(|_| is_ready).map(str::to_owned)
        })
    }

    /// Returns the address of the provider, without a slash at its end; `offline` for the built-in provider.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let provider = self.provider();
        let named = self.base_url.clone().filter(|_| provider != Provider::Offline);
        let url = named.unwrap_or_else(|| provider.default_url(ENVIRONMENT));
        url.trim_end_matches('/').to_owned()
    }

    /// Returns the window and its origin: the configured one, else the one that the provider stated when it was asked, else
    /// the one in the table of models; but less if this endpoint stated less for this model in a refusal.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file of `--models` cannot be read, and with 78 if it is malformed.
    pub fn window(&self, configured: Option<u64>) -> anyhow::Result<Option<Window>> {
        if let Some(tokens) = configured {
            return Ok(Some(Window { tokens, origin: Origin::Setting }));
        }
        let table = self.window_of_table()?;
        let answered = self.stated_window(Source::Answer, table)?;
        let refused = |known| self.stated_window(Source::Refusal, known).ok().flatten();
        Ok(windows::combined(answered, table, refused))
    }

    /// Returns true if the provider was not asked for the window in the last week.
    ///
    /// # Errors
    /// Fails as [`ModelArgs::window`] does.
    pub fn is_window_due(&self) -> anyhow::Result<bool> {
        let (answered, now) = (self.stated_window(Source::Answer, None)?, now()?);
        Ok(answered.is_none_or(|it| now - it.ts > windows::ASK_AGAIN))
    }

    /// Returns a warning if the configured window is larger than the one that the provider stated in a refusal.
    ///
    /// # Errors
    /// Fails as [`ModelArgs::window`] does.
    pub fn window_warning(&self, configured: Option<u64>) -> anyhow::Result<Option<String>> {
        let Some(window) = configured else { return Ok(None) };
        let stated = self.stated_window(Source::Refusal, Some(window))?;
        let stated = stated.and_then(|stated| stated.window);
        let (Some(stated), Some(path)) =
            (stated.filter(|stated| *stated < window), state_file("windows.jsonl"))
        else {
            return Ok(None);
        };
        Ok(Some(format!(
            "the window is set to {window} tokens, but the provider refused a request and stated a \
             limit of {stated}; if that limit is wrong, delete its line in '{}'",
            path.display()
        )))
    }

    /// Finds the model with this name in the table of `--models` and in the built-in one.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file of `--models` cannot be read, and with 78 if it is malformed.
    pub fn known<'n>(&self, name: &'n str) -> anyhow::Result<Model<'n>> {
        let path = self.models.as_deref();
        let extra = path.map(input::text_of).transpose()?;
        let found = Model::find(name, extra.as_deref());
        found.map_err(|why| input::unusable("models", path, &why, "see claw(7) for the format"))
    }

    fn window_of_table(&self) -> anyhow::Result<Option<u64>> {
        let Some(model) = self.model() else { return Ok(None) };
        let inside = || self.provider().is_offline().then_some(offline::WINDOW);
        Ok(self.known(&model)?.window.or_else(inside))
    }

    /// Returns the window that the provider stated, if it is plausible given the `known` one.
    fn stated_window(&self, source: Source, known: Option<u64>) -> anyhow::Result<Option<Stated>> {
        let (Some(model), Some(path)) = (self.model(), state_file("windows.jsonl")) else {
            return Ok(None);
        };
        // A state file that cannot be read counts as empty.
        let Ok(bytes) = std::fs::read(path) else { return Ok(None) };
        let (text, place) = (String::from_utf8_lossy(&bytes), address::place(&self.endpoint()));
        let is_place = |endpoint: &str| address::place(endpoint) == place;
        Ok(windows::lookup(&text, source, is_place, &model, known, now()?))
    }

    /// Stores the window that the provider stated, or that it states none, unless the window is implausible given the
    /// configured one or the one in the table. It is stored in the state directory, so that all programs use it.
    ///
    /// # Errors
    /// Fails if the state file cannot be written.
    pub fn learn_window(
        &self,
        source: Source,
        window: Option<u64>,
        configured: Option<u64>,
    ) -> anyhow::Result<()> {
        let (Some(model), Some(path)) = (self.model(), state_file("windows.jsonl")) else {
            return Ok(());
        };
        let known = configured.map_or_else(|| self.window_of_table(), |it| Ok(Some(it)))?;
        if window.is_some_and(|window| !windows::is_plausible(window, known)) {
            return Ok(());
        }
        let place = address::place(&self.endpoint());
        append(&path, &windows::line(&place, &model, source, Stated { window, ts: now()? }))
    }

    /// Returns the sizes of bodies that the endpoint is known to accept.
    ///
    /// # Errors
    /// Fails if the clock cannot be read.
    pub fn sizes(&self) -> anyhow::Result<Sizes> {
        // A state file that cannot be read counts as empty.
        let Some(Ok(bytes)) = state_file("sizes.jsonl").map(std::fs::read) else {
            return Ok(Sizes::default());
        };
        let (text, place) = (String::from_utf8_lossy(&bytes), address::place(&self.endpoint()));
        Ok(sizes::lookup(&text, |endpoint| address::place(endpoint) == place, now()?))
    }

    /// Returns the largest body that the endpoint accepts: the smaller of the documented limit and the one that it stated,
    /// if either is known. An accepted body refutes a smaller documented limit.
    ///
    /// # Errors
    /// Fails if the clock cannot be read.
    pub fn byte_limit(&self) -> anyhow::Result<Option<ByteLimit>> {
        let sizes = self.sizes()?;
        // Without a name or a key, the provider is only a default.
        let has_key = || Provider::by_key().any(|provider| provider.has_key(ENVIRONMENT));
        let provider = Some(self.provider()).filter(|_| self.provider.is_some() || has_key());
        let documented = provider.and_then(|it| bytes::documented(it.name(), &self.endpoint()));
        let documented = documented.filter(|limit| sizes.accepted.is_none_or(|it| it <= *limit));
        Ok(documented.into_iter().chain(sizes.limit).min().map(ByteLimit))
    }

    /// Returns what is known about a request that was refused because of its bytes.
    ///
    /// # Errors
    /// Fails if the clock cannot be read.
    pub fn refused_body(&self, refused: Option<&Refused>) -> anyhow::Result<RefusedBody> {
        Ok(RefusedBody {
            sent: refused.and_then(|refused| refused.request_bytes),
            stated: refused.and_then(|refused| refused.limit_bytes),
            known: self.byte_limit()?.map(|limit| limit.0),
            accepted: self.sizes()?.accepted,
        })
    }

    /// Stores the size of a body that the endpoint accepted, or the limit that it stated.
    ///
    /// # Errors
    /// Fails if the state file cannot be written.
    pub fn learn_size(&self, size: Size) -> anyhow::Result<()> {
        let Some(path) = state_file("sizes.jsonl") else { return Ok(()) };
        append(&path, &sizes::line(&address::place(&self.endpoint()), size, now()?))
    }
}

fn append(path: &Path, line: &str) -> anyhow::Result<()> {
    transcript::append_state(path, line)
        .with_context(|| format!("cannot store in '{}'", path.display()))
}

/// Returns the path of a file in the state directory.
fn state_file(name: &str) -> Option<PathBuf> {
    state_dir().map(|dir| dir.join(name))
}

/// Returns the state directory: `CLAW_STATE_DIR`, else `clawutils` in `XDG_STATE_HOME` or `~/.local/state`.
#[must_use]
pub fn state_dir() -> Option<PathBuf> {
    let own = variable("CLAW_STATE_DIR").map(PathBuf::from);
    let xdg = || variable("XDG_STATE_HOME").map(|dir| PathBuf::from(dir).join("clawutils"));
    let home = || variable("HOME").map(|dir| PathBuf::from(dir).join(".local/state/clawutils"));
    own.or_else(xdg).or_else(home)
}
