//! `--markdown`: a summary with the totals and a table of failures.

use super::results::{TestResult, abridged};
use super::{ReportFile, Sink, Totals};
use crate::report::{Report, counted};
use clawutils::show::markdown::{fenced, inline};
use std::io::Write;
use std::path::Path;

/// The maximum length of a summary in bytes: GitHub rejects a larger one.
const MAX_BYTES: usize = 1024 * 1024;
/// The maximum length of the heading, the totals and the last line together, in bytes.
const FRAME: usize = 1024;
/// The maximum length of a cell in bytes.
const MAX_CELL: usize = 1000;
/// The maximum length of the detail of a failure, in bytes.
const MAX_DETAIL: usize = 16 * 1024;

/// A summary of failures. It is kept in memory, because the totals precede it.
pub struct Markdown {
    file: ReportFile,
    /// The rows of the table.
    rows: String,
    /// The folded sections below the table.
    details: String,
    /// The number of failures that are not in the table.
    omitted: u64,
}

impl Markdown {
    /// Creates the file.
    ///
    /// # Errors
    /// Fails if it cannot be created.
    pub fn create(path: &Path) -> anyhow::Result<Markdown> {
        let file = ReportFile::create(path)?;
        let (rows, details) = (String::new(), String::new());
        Ok(Markdown { file, rows, details, omitted: 0 })
    }

    fn has_room(&self, text: &str) -> bool {
        self.rows.len() + self.details.len() + text.len() + FRAME <= MAX_BYTES
    }
}

impl Sink for Markdown {
    fn take(&mut self, report: &Report, results: &[TestResult<'_>], _: &str) -> anyhow::Result<()> {
        for failure in results.iter().filter(|result| result.is_failure()) {
            let row = row(&report.path, failure);
            // After the first failure that does not fit, all others are omitted, so that the table has no gaps.
            if self.omitted > 0 || !self.has_room(&row) {
                self.omitted += 1;
                continue;
            }
            self.rows.push_str(&row);
            let detail = detail(failure);
            if self.has_room(&detail) {
                self.details.push_str(&detail);
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, totals: &Totals) -> anyhow::Result<()> {
        let Markdown { rows, details, omitted, .. } = &*self;
        let mut text = format!("## claw-replay\n\n{}\n", totals.text());
        if !rows.is_empty() {
            text.extend(["\n| transcript | case | line | message |\n|---|---|---|---|\n", rows]);
        }
        if *omitted > 0 {
            let more = counted(*omitted, "more failure");
            text.push_str(&format!("\n{more}: see the reports.\n"));
        }
        text.push_str(details);
        self.file.write_all(text.as_bytes())?;
        self.file.finish()
    }
}

fn row(path: &str, failure: &TestResult<'_>) -> String {
    let line = failure.case.line.map(|line| line.to_string()).unwrap_or_default();
    let [path, case, message] = [path, &failure.case.name, &failure.case.message].map(cell);
    format!("| {path} | {case} | {line} | {message} |\n")
}

/// Returns a folded block with the detail of a failure, or an empty string if there is none.
fn detail(failure: &TestResult<'_>) -> String {
    let Some(detail) = failure.case.detail.as_ref().filter(|detail| !detail.is_empty()) else {
        return String::new();
    };
    let (name, fence) = (cell(&failure.name), fenced(&abridged(detail, MAX_DETAIL), "diff"));
    format!("\n<details><summary>{name}</summary>\n\n{fence}\n\n</details>\n")
}

/// Escapes `text` for a cell. A backslash also keeps an address from becoming a link.
fn cell(text: &str) -> String {
    let text = inline(&abridged(text, MAX_CELL));
    text.replace("://", "\\://").replace("www.", "www\\.")
}
