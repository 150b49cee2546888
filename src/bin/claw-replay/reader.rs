//! Reads the reports of earlier runs, and checks that these runs finished.
//!
//! A file may have the outputs of several runs, one after the other. The last line of each counts its reports, so an
//! output that was cut off is noticed wherever it is in the file.

use crate::line_file::LineFile;
use crate::report::Report;
use crate::sinks::Totals;
use std::path::Path;

/// The maximum length of a report in bytes.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// The reports in a file.
pub struct ReportReader {
    lines: LineFile,
    /// The number of lines so far.
    number: u64,
    /// The totals of the reports since the last end of a run.
    totals: Totals,
    /// True if the last line was the end of a run.
    is_ended: bool,
    /// True if one of the runs stopped at the first failure.
    pub is_stopped: bool,
}

impl ReportReader {
    /// Opens a file of reports, or standard input if the path is `-`.
    ///
    /// # Errors
    /// Fails with 74 or 77 if it cannot be opened.
    pub fn open(path: &Path) -> anyhow::Result<ReportReader> {
        Ok(ReportReader {
            lines: LineFile::open(path, b'\n')?,
            number: 0,
            totals: Totals::default(),
            is_ended: false,
            is_stopped: false,
        })
    }

    /// Returns the next report and its line, without the line feed; `None` at the end.
    ///
    /// # Errors
    /// Fails with 74 if the file cannot be read, and with 65 if a line is not a report or a run did not finish.
    pub fn next(&mut self) -> anyhow::Result<Option<(Report, String)>> {
        loop {
            let line = self.lines.next(MAX_LINE)?;
            self.number += 1;
            if line.is_empty() {
                let why = "the run that wrote these reports did not finish; repeat it";
                return if self.is_ended { Ok(None) } else { self.lines.refuse(why) };
            }
            let json = String::from_utf8(line).unwrap_or_default();
            let json = json.strip_suffix('\n').unwrap_or_default();
            if let Some(end) = Totals::parse(json) {
                self.end(end)?;
            } else if let Some(report) = Report::parse(json) {
                self.is_ended = false;
                self.totals.count(&report);
                return Ok(Some((report, json.to_owned())));
            } else {
                let advice = "give the output of claw-replay, or repeat the run if it was killed";
                let why = format!("line {} is not a report; {advice}", self.number);
                return self.lines.refuse(&why);
            }
        }
    }

    /// Takes the totals of a run, which are in its last line.
    fn end(&mut self, end: Totals) -> anyhow::Result<()> {
        let is_stopped = end.is_stopped;
        let found = Totals { is_stopped, ..std::mem::take(&mut self.totals) };
        if found != end {
            let (number, all, found) = (self.number, end.all(), found.all());
            return self.lines.refuse(&format!(
                "line {number} ends a run with {all} reports, but {found} are before it; give all output of each run"
            ));
        }
        self.is_ended = true;
        self.is_stopped |= is_stopped;
        Ok(())
    }
}
