//! The command line definitions of the scripts, and the settings that they share.

use clap::{ArgAction, Args, Parser};
use clawutils::cli::LogArgs;
use clawutils::cli::budget::{BodyArgs, BudgetArgs, RequestArgs};
use clawutils::cli::endpoint::ConnectionArgs;
use clawutils::cli::model::ModelArgs;
use clawutils::cli::options::{
    CassetteArgs, DueArgs, FailuresArgs, LimitArgs, LimitTurnsArgs, LockArgs, PatienceArgs,
    PauseArgs, PermitArgs, PlaceArgs, ResetArgs, SourceArgs,
};
use clawutils::cli::summary::{CommandArgs, SummariserArgs};
use clawutils::cost::CompactWhen;
use clawutils::settings::values::{positive, seconds};
use std::path::PathBuf;
use std::time::Duration;

/// The settings of all programs that a turn runs.
#[derive(Clone, Debug, Args)]
pub struct TurnSettings {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
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

/// The options for the output of a turn.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ReplyArgs {
    /// Write the reply's text as it arrives
    #[arg(long, env = "CLAW_STREAM")]
    pub stream: bool,
    /// Render the reply's Markdown for a terminal, as claw-show --markdown does
    #[arg(long, env = "CLAW_MARKDOWN")]
    pub markdown: bool,
    /// Report the tokens and the cost of the turn after it
    #[arg(long, env = "CLAW_COST")]
    pub cost: bool,
}

/// The options of a turn.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TurnArgs {
    /// Do not compact ahead of an overflow
    #[arg(long = "no-proactive", env = "CLAW_PROACTIVE", action = ArgAction::SetFalse)]
    pub proactive: bool,
    /// When a conversation is compacted ahead of an overflow
    #[arg(long, value_name = "WHEN", env = "CLAW_COMPACT_WHEN", default_value = "window")]
    pub compact_when: CompactWhen,
    /// Do not ask the provider for the window of the model
    #[arg(long = "no-ask-window", env = "CLAW_ASK_WINDOW", action = ArgAction::SetFalse)]
    pub ask_window: bool,
    /// After a refusal, do not make the request smaller or cleaner
    #[arg(long = "no-guard", env = "CLAW_GUARD", action = ArgAction::SetFalse)]
    pub guard: bool,
    /// Do not make missing summaries after the reply
    #[arg(long = "no-retry", env = "CLAW_RETRY", action = ArgAction::SetFalse)]
    pub retry: bool,
    /// Maximum number of rounds of tool calls in a turn
    #[arg(long, value_name = "N", env = "CLAW_MAX_ROUNDS", default_value = "50")]
    pub max_rounds: u32,
}

/// The options of a conversation on a terminal.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ChatArgs {
    /// Show a reply only when it is complete
    #[arg(long = "no-stream", env = "CLAW_STREAM", action = ArgAction::SetFalse)]
    pub stream: bool,
    /// Show replies as plain text, neither wrapped nor rendered
    #[arg(long = "no-markdown", visible_alias = "plain", env = "CLAW_MARKDOWN", action = ArgAction::SetFalse)]
    pub markdown: bool,
    /// Do not show the tokens and the cost of each turn
    #[arg(long = "no-cost", env = "CLAW_COST", action = ArgAction::SetFalse)]
    pub cost: bool,
    /// Do not save the history of typed lines
    #[arg(long = "no-history", env = "CLAW_HISTORY", action = ArgAction::SetFalse)]
    pub history: bool,
}

/// The examples of claw-turn for --help.
const TURN_EXAMPLES: &str = "\
Examples:
  Send a prompt and print the reply:
      echo 'What is 2 + 2?' | claw-turn s.jsonl
  Let the model call tools, and ask before each call:
      claw-turn --tools tools --ask -m 'What is in src?' s.jsonl";

/// Run one turn of a conversation within the context window, with the prompt from standard input
#[derive(Clone, Debug, Parser)]
#[command(
    name = "claw-turn",
    version,
    args_override_self = true,
    after_help = TURN_EXAMPLES,
    override_usage = "claw-turn [OPTIONS] SESSION"
)]
pub struct Turn {
    /// Transcript file if it contains a / or ends in .jsonl (created if missing), else the name of
    /// a session
    #[arg(value_name = "SESSION", required_unless_present = "current", conflicts_with = "current")]
    pub session: Option<String>,
    /// Run the turn in the current session
    #[arg(short = 'c', long = "continue")]
    pub current: bool,
    /// Take the prompt from the command line instead of standard input
    #[arg(short, long, value_name = "TEXT", conflicts_with = "again", allow_hyphen_values = true)]
    pub message: Option<String>,
    /// Continue a turn that failed, without a new prompt
    #[arg(long)]
    pub again: bool,
    /// File to send with the prompt: an image, a PDF document or text; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "again")]
    pub attach: Vec<PathBuf>,
    /// Print the commands that the turn would run, without running them
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub reply: ReplyArgs,
    #[command(flatten)]
    pub settings: TurnSettings,
}

/// The examples of claw-retry for --help.
const RETRY_EXAMPLES: &str = "\
Examples:
  Make the missing summaries of a transcript:
      claw-retry s.jsonl
  Limit the calls and the time for each summary of two sessions:
      claw-retry --max-calls 4 --deadline 300 work home";

/// Make missing summaries
#[derive(Clone, Debug, Parser)]
#[command(name = "claw-retry", version, args_override_self = true, after_help = RETRY_EXAMPLES)]
pub struct Retry {
    /// Transcript files if they contain a / or end in .jsonl, else names of sessions
    #[arg(value_name = "SESSION", required = true)]
    pub sessions: Vec<String>,
    /// Repeat until stopped, with this pause in seconds (default: --retry-interval)
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = positive)]
    pub every: Option<Option<u64>>,
    /// Maximum number of calls for one summary
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_calls: Option<u64>,
    /// Time limit for one summary, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: Option<Duration>,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub connection: ConnectionArgs,
    #[command(flatten)]
    pub request: RequestArgs,
    #[command(flatten)]
    pub body: BodyArgs,
    #[command(flatten)]
    pub budget: BudgetArgs,
    #[command(flatten)]
    pub summarisers: SummariserArgs,
    #[command(flatten)]
    pub pause: PauseArgs,
    #[command(flatten)]
    pub call: CommandArgs,
    #[command(flatten)]
    pub patience: PatienceArgs,
    #[command(flatten)]
    pub cassette: CassetteArgs,
    #[command(flatten)]
    pub failures: FailuresArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub log: LogArgs,
}

/// The list of the commands in claw-chat, for --help and /help.
pub const COMMANDS: &str = "  /new [LABEL]         begin a new session
  /list, /sessions     list sessions
  /switch NAME         continue another session: id, label or key, or the beginning of one
  /label [TEXT]        show the label of this session, or change it
  /fork [LABEL]        continue in a copy of this session
  /delete NAME         delete another session
  /show [N]            show the last turn, or the last N turns
  /history [N]         show the last 20 records, or the last N, one per line
  /status              show counts and dates of this session
  /context             show how full the window is, and what fills it
  /compact [FOCUS]     summarise the old part
  /checkpoint          make a checkpoint now
  /undo [turn]         undo the newest compaction or truncation, or the newest turn
  /redo                reverse the last undo
  /again               continue a turn that failed or was interrupted
  /attach FILE         send a file with the next prompt: an image, a PDF document or text
  /edit [TEXT]         write a prompt with $VISUAL or $EDITOR
  /model [NAME]        show the model, or use another one
  /set [KEY [VALUE]]   list changed settings, or show or change one
  /unset KEY           reset a setting to its value in the configuration file or the default
  /export [FILE]       write this session to a file that ends in .md, .html or .txt
  /help                show this
  /quit, /exit         leave; quit, exit and Ctrl-D do the same
A line that ends with a backslash continues on the next line.
A prompt that begins with \"//\" is sent with one slash.";

/// The examples of claw-chat for --help.
const CHAT_EXAMPLES: &str = "\
Examples:
  Continue the current session:
      claw-chat
  Begin a session with a label and another model:
      claw-chat --new --model claude-haiku-4-5 my-project";

/// Have a conversation with a model on a terminal
#[derive(Clone, Debug, Parser)]
#[command(
    name = "claw-chat",
    version,
    args_override_self = true,
    after_help = format!("In a conversation:\n{COMMANDS}\n\n{CHAT_EXAMPLES}")
)]
pub struct Chat {
    /// Id, key or label of the session, or the beginning of one (default: the current session)
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// Begin a new session, with SESSION as its label
    #[arg(long)]
    pub new: bool,
    /// File to send with the first prompt: an image, a PDF document or text; may be repeated
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    #[command(flatten)]
    pub chat: ChatArgs,
    #[command(flatten)]
    pub settings: TurnSettings,
}

/// Returns true if an argument is the path of a transcript, not the name of a session.
pub fn is_path(session: &str) -> bool {
    session.contains('/') || session.ends_with(".jsonl")
}
