//! Settings that only scripts have.

use crate::cli::seconds;
use clap::ArgAction;
use std::time::Duration;

/// The options for the output of a turn.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ReplyArgs {
    /// Write the reply's text as it arrives
    #[arg(long, env = "CLAW_STREAM")]
    pub stream: bool,
    /// Render the reply's Markdown for a terminal, as claw-show --markdown does
    #[arg(long, env = "CLAW_MARKDOWN")]
    pub markdown: bool,
}

/// The options of a turn.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TurnArgs {
    /// Do not compact ahead of an overflow
    #[arg(long = "no-proactive", env = "CLAW_PROACTIVE", action = ArgAction::SetFalse)]
    pub proactive: bool,
    /// Do not shorten tool results or compact after an overflow
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
    /// Do not save the history of typed lines
    #[arg(long = "no-history", env = "CLAW_HISTORY", action = ArgAction::SetFalse)]
    pub history: bool,
}

/// The option for the wait for another turn.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LockArgs {
    /// Longest wait for another turn on the same transcript, in seconds
    #[arg(long, value_name = "SECONDS", env = "CLAW_LOCK_TIMEOUT", default_value = "30", value_parser = seconds)]
    pub lock_timeout: Duration,
}
