//! Writes what is shown, and reports what was found while transcripts were read.

use crate::args::ShowArgs;
use crate::file;
use clawutils::cli::{Log, Output, report};
use clawutils::exit::Exit;
use clawutils::show::ShowNotes;
use std::io::Write;

/// Writes to the file of `--output`, or else to standard output, and reports the diagnostics that `write` returns.
///
/// # Errors
/// As [`file::create`] does; 74 or 141 if standard output cannot be written to.
pub fn write(
    args: &ShowArgs,
    log: Log,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<ShowNotes>,
) -> anyhow::Result<Exit> {
    let notes = match &args.output {
        Some(path) => file::create(path, args.replace, write)?,
        None => {
            let mut out = Output::open();
            let notes = write(&mut out)?;
            out.finish()?;
            notes
        }
    };
    report_notes(log, &notes)?;
    Ok(Exit::Done)
}

/// Reports the diagnostics.
pub fn report_notes(log: Log, notes: &ShowNotes) -> anyhow::Result<()> {
    report(log, &notes.findings, false)?;
    log.replaced(notes.replaced);
    Ok(())
}
