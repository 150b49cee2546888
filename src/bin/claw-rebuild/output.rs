//! `claw-rebuild`: which part of the transcripts is read, and how messages are held to rules before they are written.

use clawutils::cli::options::LimitTurnsArgs;
use clawutils::cli::{Log, Output, report};
use clawutils::input::Input;
use clawutils::messages::rebuild::{self, Form, Options};
use clawutils::rules::check_ready;

/// The option group for the part that is read.
#[derive(Clone, Debug, clap::Args)]
pub struct PartArgs {
    /// Read only up to record ID
    #[arg(long, value_name = "ID")]
    pub at: Option<String>,
    /// Read only up to the end of turn N
    #[arg(long, value_name = "N")]
    pub to_turn: Option<u64>,
    /// The number of turns to keep.
    #[command(flatten)]
    pub limit: LimitTurnsArgs,
    /// Show what compactions cover instead of their summaries
    #[arg(long)]
    pub ignore_compactions: bool,
    /// Show replies that broke off, too
    #[arg(long)]
    pub interrupted: bool,
}

impl PartArgs {
    /// The same for the rebuild.
    #[must_use]
    pub fn options(self) -> Options {
        Options {
            ignore_compactions: self.ignore_compactions,
            at: self.at,
            to_turn: self.to_turn,
            limit_turns: self.limit.limit_turns,
            interrupted: self.interrupted,
        }
    }
}

/// The option group for what messages have to be.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RuleArgs {
    /// Any finding is an error: status 65, no output
    #[arg(long)]
    pub strict: bool,
    /// Status 7, no output, unless the messages can be sent as they are
    #[arg(long)]
    pub ready: bool,
}

/// Rebuilds the messages and writes them: one by one, or none until all are known to keep the rules.
///
/// # Errors
/// As [`rebuild::from_inputs`]; what the rules say, and when `out` cannot be written to.
pub fn write_messages(
    inputs: &[Input],
    options: &Options,
    (form, rules): (Form, RuleArgs),
    log: Log,
    out: &mut Output,
) -> anyhow::Result<()> {
    if !rules.strict && !rules.ready {
        let notes = form.stream(inputs, options, out)?;
        report(log, &notes.findings, false)?;
        log.replaced(notes.replaced);
        return Ok(());
    }
    let rebuilt = rebuild::from_inputs(inputs, options)?;
    report(log, &rebuilt.findings, rules.strict)?;
    log.replaced(rebuilt.replaced);
    if rules.ready {
        check_ready(&rebuilt.messages)?;
    }
    form.write_all(rebuilt.messages, out)
}
