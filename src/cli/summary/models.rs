//! The models that write summaries: those of `--via`, or else the configured Ollama model, and last the conversation's
//! model.

use crate::cli::model::{ModelArgs, state_dir};
use crate::cli::summary::SummaryModel;
use crate::cli::{ENVIRONMENT, now};
use crate::compact::attempts::Attempts;
use crate::estimate::Budget;
use crate::exit::{Exit, fail};
use crate::provider::Provider;
use crate::settings::mistakes::one_of;
use clap::ValueEnum;

/// The options for the models that write summaries.
#[derive(Clone, Debug, clap::Args)]
pub struct SummariserArgs {
    /// Source of summaries: PROVIDER:MODEL, main for the conversation's model, or provider for its server's own; may be
    /// repeated
    #[arg(long, value_name = "MODEL", env = "CLAW_VIA", value_parser = via)]
    pub via: Vec<Via>,
    /// Ollama model to ask first for summaries, unless --via is given
    #[arg(long, value_name = "NAME", env = "CLAW_OLLAMA_MODEL")]
    pub ollama_model: Option<String>,
    /// Address of the server of --ollama-model (default: OLLAMA_HOST)
    #[arg(long, value_name = "URL", env = "CLAW_OLLAMA_URL")]
    pub ollama_url: Option<String>,
    /// Longest wait for an answer from --ollama-model, in seconds
    #[arg(long, value_name = "SECONDS", env = "CLAW_OLLAMA_TIMEOUT")]
    pub ollama_timeout: Option<u64>,
    /// Context window of --ollama-model, in tokens
    #[arg(long, value_name = "TOKENS", env = "CLAW_OLLAMA_WINDOW")]
    pub ollama_window: Option<u64>,
    /// Skip a summary model after N failures in a row, but never the conversation's model; 0 skips none
    #[arg(long, value_name = "N", env = "CLAW_MAX_FAILURES", default_value = "3")]
    pub max_failures: u64,
    /// Time for which a model that reached --max-failures is skipped, in minutes
    #[arg(long, value_name = "MINUTES", env = "CLAW_FAILURE_RESET", default_value = "30")]
    pub failure_reset: u64,
}

/// The argument of `--via`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// `main`: the model of the conversation.
    Main,
    /// `provider`: the server of the conversation's model, which makes a summary of its own.
    Provider,
    /// A provider and a model.
    Other(Provider, Option<String>),
}

/// Parses `main`, `provider` or `PROVIDER:MODEL`. The offline provider needs no model.
///
/// # Errors
/// Returns the reason if the provider is unknown or the model is missing.
pub fn via(text: &str) -> Result<Via, String> {
    match text {
        "main" => return Ok(Via::Main),
        "provider" => return Ok(Via::Provider),
        _ => {}
    }
    let (provider, model) = text.split_once(':').map_or((text, None), |(p, m)| (p, Some(m)));
    let provider = Provider::from_str(provider, false).map_err(|_| {
        let names: Vec<_> = Provider::value_variants().iter().map(|it| it.name()).collect();
        format!("use main, provider or PROVIDER:MODEL with {}", one_of(&names))
    })?;
    let model = model.filter(|model| !model.is_empty()).map(str::to_owned);
    // The environment variables that name a model are for the conversation's model, so they give no default here.
    if model.is_none() && provider != Provider::Offline {
        return Err(format!("no model; write {}:MODEL", provider.name()));
    }
    Ok(Via::Other(provider, model))
}

impl SummariserArgs {
    /// Returns the models to try, in order. `main` is the model of the conversation, and `budget` the budget of its
    /// window.
    ///
    /// # Errors
    /// Fails with 78 if the window of a model leaves no room for a prompt, or the file of `--models` is malformed.
    pub fn models(
        &self,
        main: &ModelArgs,
        budget: Option<Budget>,
    ) -> anyhow::Result<Vec<SummaryModel>> {
        let conversation = || SummaryModel::main(main, budget);
        if self.via.is_empty() {
            let ollama = self.ollama_model.as_ref().map(|model| self.ollama(main, model));
            return Ok(ollama.transpose()?.into_iter().chain([conversation()]).collect());
        }
        let model = |via: &Via| match via {
            Via::Main => Ok(conversation()),
            Via::Provider => {
                Ok(SummaryModel { by_server: true, name: "provider".into(), ..conversation() })
            }
            Via::Other(provider, model) => other(main, *provider, model.clone(), None),
        };
        let mut models = self.via.iter().map(model).collect::<anyhow::Result<Vec<_>>>()?;
        if !self.via.contains(&Via::Main) {
            models.push(conversation());
        }
        Ok(models)
    }

    /// Refuses a model that has reached `--max-failures`.
    ///
    /// # Errors
    /// Fails with 69 if it has. The error states for how long the model is skipped.
    pub fn refuse_failing(&self, summariser: &SummaryModel) -> anyhow::Result<()> {
        let Some(attempts) = &summariser.attempts else { return Ok(()) };
        let reset = self.failure_reset as f64 * 60.0;
        let failures = attempts.failures(reset);
        let left = failures.last + reset - now()?;
        let is_failing = self.max_failures > 0 && failures.count >= self.max_failures;
        // More than `reset` can be left only if the clock was set back.
        if !is_failing || !(0.0..=reset).contains(&left) {
            return Ok(());
        }
        let text = format!(
            "skipping '{}' for {:.0} s: it failed {} times in a row",
            summariser.name,
            left.ceil(),
            failures.count
        );
        fail(Exit::Unavailable, text)
    }

    fn ollama(&self, main: &ModelArgs, model: &str) -> anyhow::Result<SummaryModel> {
        let (url, model) = (self.ollama_url.clone(), Some(model.to_owned()));
        let mut summariser = other(main, Provider::Ollama, model, url)?;
        summariser.timeout = self.ollama_timeout;
        if let Some(window) = self.ollama_window.filter(|window| *window > 0) {
            summariser.window = Some(budget_of(window, &summariser.name)?);
        }
        Ok(summariser)
    }
}

/// Returns a model other than the conversation's. Only the table of models is taken from `main`.
fn other(
    main: &ModelArgs,
    provider: Provider,
    model: Option<String>,
    url: Option<String>,
) -> anyhow::Result<SummaryModel> {
    let base_url = url.unwrap_or_else(|| provider.default_url(ENVIRONMENT));
    let provider_name = provider.name();
    let name = match &model {
        Some(model) => format!("{provider_name}:{model}"),
        None => provider_name.to_owned(),
    };
    let key = format!("summary:{name}@{base_url}");
    let (provider, base_url) = (Some(provider), Some(base_url));
    let model = ModelArgs { provider, model, base_url, models: main.models.clone() };
    let window = model.window(None)?.map(|window| budget_of(window.tokens, &name)).transpose()?;
    Ok(SummaryModel {
        name,
        model,
        window,
        by_server: false,
        timeout: None,
        attempts: Some(Attempts::at(key, state_dir())),
    })
}

fn budget_of(window: u64, name: &str) -> anyhow::Result<Budget> {
    match Budget::new(window, None, None) {
        Ok(budget) => Ok(budget),
        Err(why) => fail(Exit::Config, format!("cannot use '{name}': {why}")),
    }
}
