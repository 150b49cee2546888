//! The options of `claw-call`.

use crate::classify::{self, RowArgs};
use crate::source::SourceArgs;
use crate::spent::SpentArgs;
use clawutils::cli::budget::{BodyArgs, WindowArgs};
use clawutils::cli::endpoint::ConnectionArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::PatienceArgs;
use clawutils::exit::{Exit, fail};
use clawutils::provider::call::Patience;
use clawutils::settings::values::{positive, seconds};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The options for a call: its limits, output, recordings, connection and retries.
#[derive(Clone, Debug, clap::Args)]
pub struct CallArgs {
    /// The context window, which the offline provider enforces, and the maximum length of the answer.
    #[command(flatten)]
    pub window: WindowArgs,
    /// The rest of the request body.
    #[command(flatten)]
    pub body: BodyArgs,
    /// Stream the answer, and show its text as it arrives: on standard error, in FILE, or with - on standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(requires_if("-", "reply"))]
    pub stream: Option<Option<PathBuf>>,
    /// Write the records to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub reply: Option<PathBuf>,
    /// The batch service.
    #[command(flatten)]
    pub batches: BatchArgs,
    /// Add a 'call' member to the reply's first record, with the model, the output limit and hashes of the request
    #[arg(long)]
    pub meta: bool,
    /// Write the request body and report the address and headers, but send nothing
    #[arg(long, conflicts_with_all = ["count", "classify"])]
    pub dry_run: bool,
    /// Write the number of tokens that the provider counts in the request, without asking for a reply
    #[arg(long, conflicts_with = "classify")]
    pub count: bool,
    /// List the models that the provider offers, as JSON lines, instead of a call
    #[arg(long = "list-models", conflicts_with_all = ["count", "classify", "dry_run", "ask_window"])]
    pub models_offered: bool,
    /// Ask the provider for the window of the model, and store it for all programs, instead of a call
    #[arg(long, conflicts_with_all = ["count", "classify", "dry_run"])]
    pub ask_window: bool,
    /// Ask for the provider's own summary of the messages instead of a reply
    #[arg(long, conflicts_with_all = ["count", "classify", "stream"])]
    pub compact: bool,
    /// Classify an answer with HTTP status STATUS whose body is the input, without sending anything
    #[arg(long, value_name = "STATUS", value_parser = classify::status)]
    pub classify: Option<u16>,
    /// Additional rows of the failure table, and headers for --classify.
    #[command(flatten)]
    pub rows: RowArgs,
    /// Write the error record of a failed call to FILE
    #[arg(long, value_name = "FILE")]
    pub failure: Option<PathBuf>,
    /// The limits on tokens and cost.
    #[command(flatten)]
    pub spent: SpentArgs,
    /// The source of the answers.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Begin with recording N of a request that was recorded several times
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1")]
    pub recording: u64,
    /// The connection to the provider and its key.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// The timeouts and retries.
    #[command(flatten)]
    pub patience: PatienceArgs,
    /// Time limit for the whole call, in seconds, including retries and waits
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
}

/// The options for batches.
#[derive(Clone, Debug, clap::Args)]
pub struct BatchArgs {
    /// Send what --queue has stored in subdirectories of DIR as batches, and wait for the answers
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["queue", "record", "replay", "dry_run", "count", "classify", "compact", "stream", "reply"])]
    pub batch: Option<PathBuf>,
    /// Pause before looking again whether the batches have ended, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    pub poll: Duration,
}

impl CallArgs {
    /// Returns how often the call is tried again, and how long it waits.
    pub(super) fn patience(&self) -> Patience {
        let PatienceArgs { max_retries: retries, max_wait, .. } = self.patience;
        Patience { retries, max_wait: max_wait.as_secs_f64() }
    }

    /// Returns the time limit of the call, if there is one, and the moment at which it expires.
    pub(super) fn until(&self) -> Option<(Duration, Instant)> {
        let end = |most: Duration| Some((most, Instant::now().checked_add(most)?));
        self.deadline.and_then(end)
    }
}

/// Returns the name of the model.
pub(super) fn named(model: &ModelArgs) -> anyhow::Result<String> {
    match model.model() {
        Some(name) => Ok(name),
        None => fail(Exit::Config, "no model is named; give --model or set CLAW_MODEL"),
    }
}
