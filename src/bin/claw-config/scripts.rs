//! The command lines of the scripts, and the settings that they share.

use clap::{Args, Parser};
use clawutils::cli::LogArgs;
use clawutils::cli::budget::{BodyArgs, BudgetArgs, RequestArgs};
use clawutils::cli::call::classify::FailuresArgs;
use clawutils::cli::call::endpoint::WayArgs;
use clawutils::cli::call::spent::LimitArgs;
use clawutils::cli::call::{CassetteArgs, PatienceArgs};
use clawutils::cli::checkpoint::DueArgs;
use clawutils::cli::compact::{PauseArgs, SourceArgs};
use clawutils::cli::exec::PermitArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::rebuild::LimitTurnsArgs;
use clawutils::cli::script::{ChatArgs, LockArgs, ReplyArgs, TurnArgs};
use clawutils::cli::session::{PlaceArgs, ResetArgs};
use clawutils::cli::summary::{CommandArgs, SummariserArgs};

/// The settings of everything that a turn runs.
#[derive(Clone, Debug, Args)]
pub struct Settings {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub way: WayArgs,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub body: BodyArgs,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub limit_turns: LimitTurnsArgs,
    #[command(flatten)]
    pub turn: TurnArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub summarisers: SummariserArgs,
    #[command(flatten)]
    pub pause: PauseArgs,
    #[command(flatten)]
    pub due: DueArgs,
    #[command(flatten)]
    pub permits: PermitArgs,
    #[command(flatten)]
    pub call: CommandArgs,
    #[command(flatten)]
    pub patience: PatienceArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub cassette: CassetteArgs,
    #[command(flatten)]
    pub failures: FailuresArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub resets: ResetArgs,
    #[command(flatten)]
    pub lock: LockArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Run one guarded turn on a transcript, with the prompt from standard input
#[derive(Clone, Debug, Parser)]
#[command(
    name = "claw-turn",
    version,
    args_override_self = true,
    override_usage = "claw-turn [OPTIONS] SESSION"
)]
pub struct Turn {
    /// Path of the transcript (with a / or .jsonl), created if absent; or the name of a session
    #[arg(value_name = "SESSION", required_unless_present = "current", conflicts_with = "current")]
    pub session: Option<String>,
    /// Take the turn in the current session
    #[arg(short = 'c', long = "continue")]
    pub current: bool,
    /// Take the prompt from the command line
    #[arg(short, long, value_name = "TEXT", conflicts_with = "again", allow_hyphen_values = true)]
    pub message: Option<String>,
    /// Send what the transcript holds, after a turn that failed
    #[arg(long)]
    pub again: bool,
    #[command(flatten)]
    pub reply: ReplyArgs,
    #[command(flatten)]
    pub settings: Settings,
}

/// Make the missing summaries of transcripts
#[derive(Clone, Debug, Parser)]
#[command(name = "claw-retry", version, args_override_self = true)]
pub struct Retry {
    /// Paths of transcripts (with a / or .jsonl), or names of sessions
    #[arg(value_name = "SESSION", required = true)]
    pub sessions: Vec<String>,
    /// Repeat until stopped, with this pause in seconds (--retry-interval)
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = clawutils::cli::positive)]
    pub every: Option<Option<u64>>,
    /// Most calls to spend on one summary
    #[arg(long, value_name = "N", value_parser = clawutils::cli::positive)]
    pub max_calls: Option<u64>,
    /// Longest time to spend on one summary, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clawutils::cli::positive)]
    pub deadline: Option<u64>,
    #[command(flatten)]
    pub settings: Settings,
}

/// Have a conversation with a model, in sessions that are kept
#[derive(Clone, Debug, Parser)]
#[command(name = "claw-chat", version, args_override_self = true)]
pub struct Chat {
    /// Id, key or label of the session, or the beginning of one; else the current one
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// Begin with a new session, with SESSION as its label
    #[arg(long)]
    pub new: bool,
    #[command(flatten)]
    pub chat: ChatArgs,
    #[command(flatten)]
    pub settings: Settings,
}
