//! Reports what was found while transcripts were read.

use clawutils::cli::{Log, report};
use clawutils::show::ShowNotes;

/// Reports the diagnostics.
pub fn report_notes(log: Log, notes: &ShowNotes) -> anyhow::Result<()> {
    report(log, &notes.findings, false)?;
    log.replaced(notes.replaced);
    Ok(())
}
