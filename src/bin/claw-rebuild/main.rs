//! claw-rebuild: rebuild the messages for a provider from a transcript.

mod output;

use crate::output::{PartArgs, RuleArgs, TargetArgs, write_messages};
use clap::Parser;
use clawutils::cli::{self, DialectArgs, LogArgs, Operands, Output, arguments, progress, report};
use clawutils::exit::Exit;
use clawutils::messages::original;
use clawutils::messages::rebuild::{self, Form};
use clawutils::messages::undo::{self, Undo};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Print the messages of the last two turns:
      claw-rebuild --limit-turns 2 s.jsonl
  Undo the last turn:
      claw-rebuild --undo turn s.jsonl | claw-append s.jsonl";

/// Rebuild the messages for a provider from a transcript
#[derive(Parser)]
#[command(name = "claw-rebuild", version, after_help = EXAMPLES)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    #[command(flatten)]
    dialect: DialectArgs,
    /// Write one JSON array instead of one message per line
    #[arg(long)]
    array: bool,
    /// Add a member _meta to each message, which names the records behind it
    #[arg(long)]
    meta: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Write the complete content of record ID as text
    #[arg(long, value_name = "ID", conflicts_with_all = ["array", "meta", "ready", "to", "thinking"])]
    record: Option<String>,
    /// Escape control characters in the content of --record
    #[arg(long, requires = "record")]
    printable: bool,
    /// Write the tool calls at the end that have no result yet
    #[arg(long, conflicts_with_all = ["array", "meta", "ready", "to", "thinking", "record"])]
    open: bool,
    /// Write the retract records that undo a cut or a turn
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["array", "meta", "strict", "ready", "to", "thinking", "record", "open", "at",
        "to_turn", "limit_turns", "ignore_compactions", "interrupted"])]
    undo: Option<Undo>,
    /// Write the retract records that reverse the last undo
    #[arg(long, conflicts_with_all = ["array", "meta", "strict", "ready", "to", "thinking", "record", "open", "undo", "at", "to_turn",
        "limit_turns", "ignore_compactions", "interrupted"])]
    redo: bool,
    #[command(flatten)]
    part: PartArgs,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    cli::run("claw-rebuild", || {
        let args = arguments::parse::<Args>()?;
        let log = args.log.open("claw-rebuild");
        let inputs = args.operands.transcripts_of(&args.dialect)?;
        let _progress = log.progress(progress::reading(&inputs));
        let mut out = Output::open();
        if let Some(id) = &args.record {
            original::write_record(&inputs, id, args.printable, &mut out)?;
        } else if let Some(undo) = args.undo {
            undo::write(&inputs, undo, &mut out)?;
        } else if args.redo {
            undo::write_redo(&inputs, &mut out)?;
        } else if args.open {
            let notes = rebuild::write_open_calls(&inputs, &args.part.options(), &mut out)?;
            report(log, &notes.findings, args.rules.strict)?;
        } else {
            let form = Form { array: args.array, meta: args.meta };
            let options = args.part.options();
            match args.target.to {
                None if args.target.thinking.is_none() => {
                    write_messages(&inputs, &options, (form, args.rules), log, &mut out)?;
                }
                _ => args.target.write(&inputs, &options, (form, args.rules), log, &mut out)?,
            }
        }
        out.finish()?;
        Ok(Exit::Done)
    })
}
