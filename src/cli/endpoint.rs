//! The options for the connection to the provider and for its key.

use crate::cli::model::ModelArgs;
use crate::cli::{ENVIRONMENT, read_file};
use crate::exit::{Exit, fail};
use crate::provider::endpoint::{Endpoint, EndpointOptions, OutputField};
use crate::provider::key::{KeySource, from_environment};
use crate::provider::{ApiChoice, Provider};
use std::path::PathBuf;

/// The option group for the key.
#[derive(Clone, Debug, clap::Args)]
pub struct KeyArgs {
    /// File with the API key, readable only by its owner
    #[arg(long, value_name = "FILE", env = "CLAW_KEY_FILE", conflicts_with = "key_cmd")]
    pub key_file: Option<PathBuf>,
    /// Shell command that prints the API key
    #[arg(long, value_name = "COMMAND", env = "CLAW_KEY_CMD")]
    pub key_cmd: Option<String>,
}

/// The option group for the connection to the provider.
#[derive(Clone, Debug, clap::Args)]
pub struct ConnectionArgs {
    /// The key.
    #[command(flatten)]
    pub key: KeyArgs,
    /// Allow plain HTTP to other machines; the key is sent unencrypted
    #[arg(long, env = "CLAW_INSECURE_HTTP")]
    pub insecure_http: bool,
    /// PEM file of certificates to trust in addition to the system's
    #[arg(long, value_name = "FILE", env = "CLAW_CA")]
    pub ca: Option<PathBuf>,
    /// API of OpenAI's servers; auto takes Responses where a model needs it
    #[arg(long, value_name = "API", env = "CLAW_API", default_value = "auto")]
    pub api: ApiChoice,
    /// Name of the field that limits the answer in chat completions
    #[arg(long, value_name = "NAME", env = "CLAW_MAX_TOKENS_FIELD", default_value = "auto")]
    pub max_tokens_field: OutputField,
    /// Anthropic beta feature to request; may be repeated
    #[arg(long, value_name = "ID", env = "CLAW_BETA")]
    pub beta: Vec<String>,
}

impl ConnectionArgs {
    /// Returns the endpoint of a model; the key is not read yet.
    ///
    /// # Errors
    /// Fails with 78 if options or variables contradict each other, and with 74 or 77 if the certificates cannot be
    /// read.
    pub fn endpoint(&self, model: &ModelArgs) -> anyhow::Result<Endpoint> {
        let (provider, base) = (model.provider(), model.endpoint());
        let beta = self.beta.join(",");
        if !beta.is_empty() && provider != Provider::Anthropic {
            let text = format!("--beta cannot be used with {}; leave it out", provider.name());
            return fail(Exit::Config, text);
        }
        let certificates = |path: &PathBuf| anyhow::Ok((path.clone(), read_file(path)?));
        let options = EndpointOptions {
            certificates: self.ca.as_ref().map(certificates).transpose()?,
            key: match self.key.source() {
                None => from_environment(provider, &base, ENVIRONMENT)?,
                given => given,
            },
            api: self.api,
            output_field: self.max_tokens_field,
            beta,
            insecure_http: self.insecure_http,
            variables: ENVIRONMENT,
        };
        Ok(Endpoint::new(provider, &base, &model.model().unwrap_or_default(), options))
    }
}

impl KeyArgs {
    /// Returns the source of the key that an option, its variable or the configuration file gives.
    fn source(&self) -> Option<KeySource> {
        let command = || self.key_cmd.clone().map(KeySource::Command);
        self.key_file.clone().map(KeySource::File).or_else(command)
    }
}
