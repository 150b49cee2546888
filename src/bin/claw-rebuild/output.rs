//! Writes the messages for `claw-rebuild`, and defines the options that select, check and convert them.

use anyhow::Context;
use clawutils::cli::options::LimitTurnsArgs;
use clawutils::cli::{Log, Output, report};
use clawutils::input::Input;
use clawutils::messages::rebuild::{self, Form, RebuildOptions};
use clawutils::provider::target::{self, Target, Thinking};
use clawutils::rules::check_ready;
use std::io::Write;

/// The options for the part of the transcripts to read.
#[derive(Clone, Debug, clap::Args)]
pub struct PartArgs {
    /// Read only up to and including record ID
    #[arg(long, value_name = "ID")]
    pub at: Option<String>,
    /// Read only up to the end of turn N
    #[arg(long, value_name = "N")]
    pub to_turn: Option<u64>,
    /// The number of turns to keep.
    #[command(flatten)]
    pub limit: LimitTurnsArgs,
    /// Include the records that compactions cover instead of the summaries
    #[arg(long)]
    pub ignore_compactions: bool,
    /// Include the stored parts of interrupted replies
    #[arg(long)]
    pub interrupted: bool,
}

impl PartArgs {
    /// Converts the options to those of the library.
    #[must_use]
    pub fn options(self) -> RebuildOptions {
        RebuildOptions {
            ignore_compactions: self.ignore_compactions,
            at: self.at,
            to_turn: self.to_turn,
            limit_turns: self.limit.limit_turns,
            interrupted: self.interrupted,
        }
    }
}

/// The options that turn findings, or messages that cannot be sent, into errors.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RuleArgs {
    /// Treat any finding as an error: write no messages and exit with 65
    #[arg(long)]
    pub strict: bool,
    /// Write messages only if they can be sent as they are; otherwise exit with 7 or 76
    #[arg(long)]
    pub ready: bool,
}

/// The options for writing the messages in the form of another API.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct TargetArgs {
    /// Write the messages in the form of another API
    #[arg(long, value_name = "API", conflicts_with = "meta")]
    pub to: Option<Target>,
    /// Keep or strip thinking (default: auto)
    #[arg(long, value_name = "WHAT", conflicts_with = "meta")]
    pub thinking: Option<Thinking>,
}

impl TargetArgs {
    /// Rebuilds all messages, and writes them in the form of the API.
    ///
    /// # Errors
    /// As [`write_messages`].
    pub fn write(
        self,
        inputs: &[Input],
        options: &RebuildOptions,
        (form, rules): (Form, RuleArgs),
        log: Log,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let rebuilt = rebuild::from_inputs(inputs, options)?;
        report(log, &rebuilt.findings, rules.strict)?;
        log.replaced(rebuilt.replaced);
        if rules.ready {
            check_ready(&rebuilt.messages)?;
        }
        let (to, thinking) = (self.to.unwrap_or_default(), self.thinking.unwrap_or_default());
        let messages = target::convert(rebuilt.messages, to, thinking);
        let text = match (form.array, messages.is_empty()) {
            (true, _) => format!("[{}]\n", messages.join(",\n")),
            (false, true) => String::new(),
            (false, false) => messages.join("\n") + "\n",
        };
        out.write_all(text.as_bytes()).context("cannot write '<stdout>'")
    }
}

/// Rebuilds the messages and writes them. With `--strict` or `--ready`, writes nothing until all messages are checked.
///
/// # Errors
/// Fails as [`rebuild::from_inputs`] and the checks do, and if `out` cannot be written.
pub fn write_messages(
    inputs: &[Input],
    options: &RebuildOptions,
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
