//! Where summaries may come from: models, by option and configuration, and those that ask nobody.

use crate::cli::attempts::Attempts;
use crate::cli::compact::Session;
use crate::cli::config::OllamaConfig;
use crate::cli::model::{ModelArgs, Provider};
use crate::cli::now;
use crate::cli::summary::Asked;
use crate::estimate::Budget;
use crate::exit::{Exit, fail};
use crate::messages::Message;
use crate::messages::checkpoint::Known;
use std::path::PathBuf;

/// The argument of `--via`: a provider and perhaps a model, or that of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// `main`: the model of the conversation.
    Main,
    /// Another one.
    Other(Provider, Option<String>),
}

/// Reads `main` or `PROVIDER:MODEL`; the offline provider needs no model.
///
/// # Errors
/// Says which providers there are, or that the model is missing.
pub fn via(text: &str) -> Result<Via, String> {
    if text == "main" {
        return Ok(Via::Main);
    }
    let (provider, model) = text.split_once(':').map_or((text, None), |(p, m)| (p, Some(m)));
    let provider = <Provider as clap::ValueEnum>::from_str(provider, false)
        .map_err(|_| "use main, offline, or anthropic, openai or ollama and :MODEL".to_owned())?;
    let model = model.filter(|model| !model.is_empty()).map(str::to_owned);
    // The variables for the model are about that of the conversation.
    if model.is_none() && provider != Provider::Offline {
        return Err(format!("no model; write {}:MODEL", provider.name()));
    }
    Ok(Via::Other(provider, model))
}

/// One source of summaries.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file of the user's.
    File(PathBuf),
    /// A checkpoint that is there already.
    Checkpoint,
    /// A model that is asked.
    Model(Box<Asked>),
    /// Put together without a model.
    Local,
    /// A note that there is no summary yet.
    Stub,
}

impl Source {
    /// Whether there is such a source for these messages at all.
    #[must_use]
    pub fn is_there(&self, messages: &[Message<'_>]) -> bool {
        !matches!(self, Source::Checkpoint) || Known::among(messages).is_some()
    }

    /// How it is named in diagnostics.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Source::File(_) => "file",
            Source::Checkpoint => "checkpoint",
            Source::Model(asked) => &asked.name,
            Source::Local => "local",
            Source::Stub => "stub",
        }
    }

    /// The model that is asked, if it is one.
    #[must_use]
    pub fn model(&self) -> Option<&Asked> {
        match self {
            Source::Model(asked) => Some(asked),
            _ => None,
        }
    }
}

impl Session<'_> {
    /// All sources, in the order in which they are tried. By default nothing is left out without a summary from
    /// a request that fits.
    ///
    /// # Errors
    /// 78 when one of the models cannot be.
    pub(super) fn sources(&self, is_too_long: bool) -> anyhow::Result<Vec<Source>> {
        if let Some(path) = &self.args.summary {
            return Ok(vec![Source::File(path.clone())]);
        }
        let mut sources = Vec::new();
        if self.args.prefer_checkpoint || self.config.compaction.prefer_checkpoint {
            sources.push(Source::Checkpoint);
        }
        let models = self.models()?.into_iter();
        sources.extend(models.map(|asked| Source::Model(Box::new(asked))));
        let args = self.args;
        // Naming one of the two leaves the other out.
        let is_default = !args.no_fallback && args.fallback.is_none() && !args.emergency;
        if is_default || args.fallback.is_some() {
            sources.push(Source::Local);
        }
        if (is_default && is_too_long) || args.emergency {
            sources.push(Source::Stub);
        }
        Ok(sources)
    }

    /// The models that are asked, in order: those of `--via`, or else the one of the configuration; then that
    /// of the conversation. None at all where no call may be spent.
    ///
    /// # Errors
    /// 78 when the window of one leaves no room.
    pub(super) fn models(&self) -> anyhow::Result<Vec<Asked>> {
        if self.args.max_calls == 0 {
            return Ok(Vec::new());
        }
        if self.args.via.is_empty() {
            let ollama = self.config.compaction.ollama.as_ref();
            let ollama = ollama.map(|ollama| self.configured(ollama)).transpose()?;
            return Ok(ollama.into_iter().chain([self.main()]).collect());
        }
        let model = |via: &Via| match via {
            Via::Main => Ok(self.main()),
            Via::Other(provider, model) => self.other(*provider, model.clone(), None),
        };
        let mut models = self.args.via.iter().map(model).collect::<anyhow::Result<Vec<_>>>()?;
        if !self.args.via.contains(&Via::Main) {
            models.push(self.main());
        }
        Ok(models)
    }

    /// The model of the conversation.
    pub(super) fn main(&self) -> Asked {
        Asked::main(self.model, self.budget)
    }

    fn configured(&self, ollama: &OllamaConfig) -> anyhow::Result<Asked> {
        let url = ollama.url.clone();
        let mut asked = self.other(Provider::Ollama, Some(ollama.model.clone()), url)?;
        asked.timeout = ollama.timeout_seconds;
        if let Some(window) = ollama.window {
            asked.window = Some(divided(window, &asked.name)?);
        }
        Ok(asked)
    }

    fn other(
        &self,
        provider: Provider,
        model: Option<String>,
        url: Option<String>,
    ) -> anyhow::Result<Asked> {
        // The variables for any provider are about that of the conversation.
        let base_url = url.unwrap_or_else(|| provider.usual_url());
        let provider_name = provider.name();
        let name = match &model {
            Some(model) => format!("{provider_name}:{model}"),
            None => provider_name.to_owned(),
        };
        let key = format!("summary:{name}@{base_url}");
        let model = ModelArgs { provider: Some(provider), model, base_url: Some(base_url) };
        let window = model.own_window()?.map(|window| divided(window, &name)).transpose()?;
        Ok(Asked { name, model, window, timeout: None, attempts: Some(Attempts::at(key)) })
    }

    /// Refuses a source that failed too often lately.
    ///
    /// # Errors
    /// 69 with how long that is so.
    pub(super) fn refuse_failing(&self, asked: &Asked) -> anyhow::Result<()> {
        let Some(attempts) = &asked.attempts else { return Ok(()) };
        let (most, minutes) =
            (self.config.compaction.failures, self.config.compaction.reset_minutes);
        let reset = minutes as f64 * 60.0;
        let failures = attempts.failures(reset);
        let left = failures.last + reset - now()?;
        // More than all of it is left only where the clock was set back.
        if most == 0 || failures.count < most || !(0.0..=reset).contains(&left) {
            return Ok(());
        }
        let text = format!(
            "'{}' is not asked: it failed {} times in a row, and is left alone for {:.0} s more",
            asked.name,
            failures.count,
            left.ceil()
        );
        fail(Exit::Unavailable, text)
    }
}

fn divided(window: u64, name: &str) -> anyhow::Result<Budget> {
    match Budget::new(window, None, None) {
        Ok(budget) => Ok(budget),
        Err(why) => fail(Exit::Config, format!("cannot ask '{name}': {why}")),
    }
}
