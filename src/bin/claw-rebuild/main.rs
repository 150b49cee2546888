//! claw-rebuild: the messages of a transcript.

mod output;

use crate::output::{PartArgs, RuleArgs, write_messages};
use clap::Parser;
use clawutils::cli::{self, LogArgs, Operands, Output, arguments, progress, report};
use clawutils::exit::Exit;
use clawutils::messages::rebuild::{self, Form};
use clawutils::messages::undo::{self, Undo};
use std::process::ExitCode;

/// Rebuild from records the messages that a provider accepts
#[derive(Parser)]
#[command(name = "claw-rebuild", version)]
struct Args {
    #[command(flatten)]
    operands: Operands,
    /// Write one JSON array instead of a message a line
    #[arg(long)]
    array: bool,
    /// Add `_meta` to each message: the records behind it
    #[arg(long)]
    meta: bool,
    #[command(flatten)]
    rules: RuleArgs,
    /// Write the original content of record ID, whole, and nothing else
    #[arg(long, value_name = "ID", conflicts_with_all = ["array", "meta", "ready"])]
    record: Option<String>,
    /// Write control characters in it as escapes, fit for a terminal
    #[arg(long, requires = "record")]
    printable: bool,
    /// Write instead the calls at the end that have no result yet, as records
    #[arg(long, conflicts_with_all = ["array", "meta", "ready", "record"])]
    open: bool,
    /// Write instead the records that take back the newest cut or turn
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["array", "meta", "strict", "ready", "record", "open", "at",
        "to_turn", "limit_turns", "ignore_compactions", "interrupted"])]
    undo: Option<Undo>,
    /// Write instead the records that bring back what the last undo took back
    #[arg(long, conflicts_with_all = ["array", "meta", "strict", "ready", "record", "open", "undo", "at", "to_turn",
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
        let inputs = args.operands.transcripts()?;
        let _progress = log.progress(progress::reading(&inputs));
        let mut out = Output::open();
        if let Some(id) = &args.record {
            rebuild::write_record(&inputs, id, args.printable, &mut out)?;
        } else if let Some(undo) = args.undo {
            undo::write(&inputs, undo, &mut out)?;
        } else if args.redo {
            undo::write_redo(&inputs, &mut out)?;
        } else if args.open {
            let notes = rebuild::write_open_calls(&inputs, &args.part.options(), &mut out)?;
            report(log, &notes.findings, args.rules.strict)?;
        } else {
            let form = Form { array: args.array, meta: args.meta };
            write_messages(&inputs, &args.part.options(), (form, args.rules), log, &mut out)?;
        }
        out.finish()?;
        Ok(Exit::Done)
    })
}
