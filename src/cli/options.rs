//! Option groups that programs share with the scripts and with claw-config.

use crate::cli::input::text_of;
use crate::cli::model::ModelArgs;
use crate::cli::{prices, read_file};
use crate::cost::PriceList;
use crate::exit::{Error, Exit, fail};
use crate::provider::refusal::Rows;
use crate::redact::Patterns;
use crate::session::reset;
use crate::settings::values::seconds;
use clap::ArgAction;
use jiff::civil;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The option for the number of turns to keep.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LimitTurnsArgs {
    /// Keep only the last N turns
    #[arg(long, value_name = "N", env = "CLAW_LIMIT_TURNS")]
    pub limit_turns: Option<u64>,
}

/// The options for timeouts and retries.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct PatienceArgs {
    /// Treat an answer from Ollama as an overflow if it reports far fewer prompt tokens than estimated
    #[arg(long, env = "CLAW_DETECT_TRUNCATION")]
    pub detect_truncation: bool,
    /// Longest wait for the answer to begin, and for each piece of it, in seconds
    #[arg(long, value_name = "SECONDS", env = "CLAW_TIMEOUT", default_value = "600", value_parser = seconds)]
    pub timeout: Duration,
    /// Maximum number of retries when the provider is busy, broken or unreachable
    #[arg(long, value_name = "N", env = "CLAW_MAX_RETRIES", default_value = "2")]
    pub max_retries: u32,
    /// Longest wait to accept if the provider asks for one, in seconds
    #[arg(long, value_name = "SECONDS", env = "CLAW_MAX_WAIT", default_value = "60", value_parser = seconds)]
    pub max_wait: Duration,
}

/// The options for prices and limits.
#[derive(Clone, Debug, clap::Args)]
pub struct LimitArgs {
    /// File of prices, one model per line, which wins over the table of models; the cost of each reply is reported
    #[arg(long, value_name = "FILE", env = "CLAW_PRICES")]
    pub prices: Option<PathBuf>,
    /// Refuse a call that would take the session above this many tokens
    #[arg(long, value_name = "TOKENS", env = "CLAW_MAX_TOTAL")]
    pub max_total: Option<u64>,
    /// Refuse a call that would take the session above this cost
    #[arg(long, value_name = "AMOUNT", env = "CLAW_MAX_COST", value_parser = amount)]
    pub max_cost: Option<f64>,
}

fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "not an amount; write a plain number, such as 0.5".to_owned())
}

impl LimitArgs {
    /// Returns the prices.
    ///
    /// # Errors
    /// Fails as [`prices`] does, and with 78 if the cost is limited and the model has no price.
    pub fn prices(&self, model: &ModelArgs) -> anyhow::Result<PriceList> {
        let list = prices(self.prices.as_deref(), model.models.as_deref())?;
        let limited = model.model().filter(|_| self.max_cost.is_some());
        limited.map_or(Ok(()), |name| list.require(&name).map(drop))?;
        Ok(list)
    }
}

/// The option group for the failure table.
#[derive(Clone, Debug, clap::Args)]
pub struct FailuresArgs {
    /// File with further rows for the failure table
    #[arg(long, value_name = "FILE", env = "CLAW_FAILURES")]
    pub failures: Option<PathBuf>,
}

/// The option group for recordings.
#[derive(Clone, Debug, clap::Args)]
pub struct CassetteArgs {
    /// Record each exchange with the provider in directory DIR
    #[arg(long, value_name = "DIR", env = "CLAW_RECORD", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Answer from the recordings in directory DIR, without a network connection
    #[arg(long, value_name = "DIR", env = "CLAW_REPLAY")]
    pub replay: Option<PathBuf>,
}

/// The option for the pause between attempts at a missing summary.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct PauseArgs {
    /// Pause before a missing summary is tried again, in seconds; doubles after each failure
    #[arg(long, value_name = "SECONDS", env = "CLAW_RETRY_INTERVAL", default_value = "60")]
    pub retry_interval: u64,
}

/// The options for the sources of summaries.
#[derive(Clone, Debug, clap::Args)]
pub struct SourceArgs {
    /// Do not use a checkpoint as the summary, even if it covers half of the request or more
    #[arg(long = "no-prefer-checkpoint", env = "CLAW_PREFER_CHECKPOINT", action = ArgAction::SetFalse)]
    pub prefer_checkpoint: bool,
    /// Fail if no model makes a summary, instead of making one without a model
    #[arg(long, env = "CLAW_NO_FALLBACK", conflicts_with_all = ["fallback", "emergency"])]
    pub no_fallback: bool,
    /// Source of the summary if no model makes one (default: local, then --emergency)
    #[arg(long, value_name = "SOURCE", env = "CLAW_FALLBACK")]
    pub fallback: Option<Fallback>,
    /// If no source gives a summary, keep the newest fifth of the messages and mark the summary as missing
    #[arg(long, env = "CLAW_EMERGENCY")]
    pub emergency: bool,
}

/// A source of summaries that calls no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fallback {
    /// Extract the summary from the messages, without a model
    Local,
}

/// The options for the conditions under which a checkpoint is due.
#[derive(Clone, Debug, clap::Args)]
pub struct DueArgs {
    /// Do not make checkpoints automatically
    #[arg(long = "no-checkpoint", env = "CLAW_CHECKPOINT", action = ArgAction::SetFalse)]
    pub checkpoint: bool,
    /// Percentages of the window at which a checkpoint becomes due
    #[arg(
        long = "checkpoint-percents", value_name = "LIST",
        env = "CLAW_CHECKPOINT_PERCENTS", default_value = "25,50,75", value_delimiter = ',',
        value_parser = percent
    )]
    pub percents: Vec<u64>,
    /// Number of turns after which a checkpoint becomes due; 0 for never
    #[arg(
        long = "checkpoint-turns",
        value_name = "N",
        env = "CLAW_CHECKPOINT_TURNS",
        default_value = "10"
    )]
    pub turns: u64,
    /// Smallest request for which a checkpoint becomes due, in tokens
    #[arg(
        long = "checkpoint-min-tokens",
        value_name = "TOKENS",
        env = "CLAW_CHECKPOINT_MIN_TOKENS",
        default_value = "5000"
    )]
    pub min_tokens: u64,
}

fn percent(text: &str) -> Result<u64, &'static str> {
    let percent = text.parse().ok().filter(|percent| (1..=100).contains(percent));
    percent.ok_or("not a percentage; use numbers from 1 to 100")
}

/// The options for running tool calls.
#[derive(Clone, Debug, clap::Args)]
pub struct PermitArgs {
    /// Allow this tool; others are refused or, with --ask, need a confirmation; may be repeated
    #[arg(long, value_name = "NAME", env = "CLAW_ALLOW")]
    pub allow: Vec<String>,
    /// Never run this tool; may be repeated
    #[arg(long, value_name = "NAME", env = "CLAW_DENY")]
    pub deny: Vec<String>,
    /// Ask on the terminal before running a tool that --allow does not name
    #[arg(long, env = "CLAW_ASK")]
    pub ask: bool,
    /// Pass this variable to tools even if it looks like a credential; may be repeated
    #[arg(long, value_name = "NAME", env = "CLAW_PASS_ENV")]
    pub pass_env: Vec<OsString>,
    /// Maximum number of tool calls to run at a time (default: the number of processors)
    #[arg(long, value_name = "N", env = "CLAW_JOBS")]
    pub jobs: Option<NonZeroUsize>,
    /// Time limit for each tool call, in seconds
    #[arg(long, value_name = "SECONDS", env = "CLAW_EXEC_TIMEOUT", default_value = "120", value_parser = seconds)]
    pub exec_timeout: Duration,
}

/// The option for the workspace.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkspaceArgs {
    /// Workspace: the directory that holds the sessions and in which tools run
    #[arg(
        long,
        value_name = "DIR",
        env = "CLAW_WORKSPACE",
        default_value = "workspace",
        global = true
    )]
    pub workspace: PathBuf,
}

impl WorkspaceArgs {
    /// Returns the workspace.
    ///
    /// # Errors
    /// Fails with 78 if it does not exist.
    pub fn require(&self) -> anyhow::Result<PathBuf> {
        if self.workspace.is_dir() {
            return Ok(self.workspace.clone());
        }
        let text = format!(
            "cannot run tools in '{}': no such directory; make it, or give --workspace",
            self.workspace.display()
        );
        fail(Exit::Config, text)
    }
}

/// The options that locate the sessions.
#[derive(Clone, Debug, clap::Args)]
pub struct PlaceArgs {
    /// The workspace.
    #[command(flatten)]
    pub workspace: WorkspaceArgs,
    /// Agent that the sessions belong to
    #[arg(long, value_name = "NAME", env = "CLAW_AGENT", global = true)]
    pub agent: Option<String>,
    /// The index of the sessions.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The options for the index of the sessions.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreArgs {
    /// Keep the index that claw-index queries up to date (sqlite), or keep only transcripts (jsonl)
    #[arg(long, value_name = "KIND", env = "CLAW_STORE", default_value = "jsonl", global = true)]
    pub store: StoreKind,
    /// The database of the index.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// The form in which sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StoreKind {
    /// Only transcripts
    Jsonl,
    /// Transcripts, and an index of them in a SQLite database
    Sqlite,
}

/// The option for the database of the index.
#[derive(Clone, Debug, clap::Args)]
pub struct DatabaseArgs {
    /// Database of the index (default: index.db beside the sessions of the workspace)
    #[arg(long, visible_alias = "db", value_name = "FILE", env = "CLAW_STORE_PATH", global = true)]
    pub store_path: Option<PathBuf>,
}

/// The options for beginning a new session under the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct ResetArgs {
    /// Begin a new session every day at this local time: daily@HH:MM
    #[arg(long, value_name = "RULE", env = "CLAW_RESET", value_parser = reset::daily)]
    pub reset: Option<civil::Time>,
    /// Begin a new session after this many minutes without a prompt
    #[arg(long, value_name = "MINUTES", env = "CLAW_IDLE")]
    pub idle: Option<u32>,
}

/// The option for redaction.
#[derive(Clone, Debug, clap::Args)]
pub struct RedactArgs {
    /// Redact text that matches a pattern in FILE
    #[arg(long, value_name = "FILE")]
    pub redact: Option<PathBuf>,
}

impl RedactArgs {
    /// Reads the patterns.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file cannot be read, and with 78 if a line is not a pattern.
    pub fn patterns(&self) -> anyhow::Result<Option<Patterns>> {
        let read = |path: &PathBuf| Patterns::read(&path.display().to_string(), &read_file(path)?);
        self.redact.as_ref().map(read).transpose()
    }
}

/// The option for the longest wait for another turn.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LockArgs {
    /// Longest wait for another turn on the same transcript, in seconds
    #[arg(long, value_name = "SECONDS", env = "CLAW_LOCK_TIMEOUT", default_value = "30", value_parser = seconds)]
    pub lock_timeout: Duration,
}

impl FailuresArgs {
    /// Reads the rows.
    ///
    /// # Errors
    /// Fails with 74 or 77 if the file cannot be read, and with 78 if a line is not a row.
    pub fn read(&self) -> anyhow::Result<Rows> {
        let Some(path) = &self.failures else { return Ok(Rows::default()) };
        let name = path.display().to_string();
        let rows = Rows::read(&name, &text_of(path)?);
        rows.map_err(|why| {
            Error::new(Exit::Config, format!("cannot use rows '{name}': {why}")).into()
        })
    }
}
