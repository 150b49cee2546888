//! claw-rebuild: the messages of a transcript.

use clap::Parser;
use clawutils::cli::{LogArgs, Operands, Output, progress, report};
use clawutils::exit::{self, Exit};
use clawutils::messages::rebuild::{self, Form, Options};
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
    /// Any finding is an error: status 65, no output
    #[arg(long)]
    strict: bool,
    /// Status 7, no output, unless the messages can be sent as they are
    #[arg(long)]
    ready: bool,
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
        "to_turn", "limit_turns", "ignore_compactions"])]
    undo: Option<Undo>,
    /// Read only up to record ID
    #[arg(long, value_name = "ID")]
    at: Option<String>,
    /// Read only up to the end of turn N
    #[arg(long, value_name = "N")]
    to_turn: Option<u64>,
    /// Show only the last N turns
    #[arg(long, value_name = "N")]
    limit_turns: Option<u64>,
    /// Show what compactions cover instead of their summaries
    #[arg(long)]
    ignore_compactions: bool,
    #[command(flatten)]
    log: LogArgs,
}

fn main() -> ExitCode {
    exit::run("claw-rebuild", || {
        let args = Args::parse();
        let log = args.log.open("claw-rebuild");
        let inputs = args.operands.open()?;
        let _progress = log.progress(progress::reading(&inputs));
        let mut out = Output::open();
        if let Some(id) = &args.record {
            rebuild::write_record(&inputs, id, args.printable, &mut out)?;
        } else if let Some(undo) = args.undo {
            undo::write(&inputs, undo, &mut out)?;
        } else {
            let options = Options {
                ignore_compactions: args.ignore_compactions,
                at: args.at,
                to_turn: args.to_turn,
                limit_turns: args.limit_turns,
            };
            let form = Form { array: args.array, meta: args.meta };
            if args.open {
                let notes = rebuild::write_open_calls(&inputs, &options, &mut out)?;
                report(log, &notes.findings, args.strict)?;
            } else if args.strict || args.ready {
                let rebuilt = rebuild::from_inputs(&inputs, &options)?;
                report(log, &rebuilt.findings, args.strict)?;
                log.replaced(rebuilt.replaced);
                if args.ready {
                    rebuild::check_ready(&rebuilt.messages)?;
                }
                form.write_all(rebuilt.messages, &mut out)?;
            } else {
                let notes = form.stream(&inputs, &options, &mut out)?;
                report(log, &notes.findings, false)?;
                log.replaced(notes.replaced);
            }
        }
        out.finish()?;
        Ok(Exit::Done)
    })
}
