//! `--github`: failures as workflow commands of GitHub Actions, which become annotations.
//!
//! They go to standard error, which GitHub reads like standard output, so that standard output has only the
//! reports.

use super::Sink;
use super::results::TestResult;
use crate::report::Report;
use clawutils::cli::diagnostics;
use clawutils::printable::printable_lines;

/// Annotations on standard error.
pub struct Github;

impl Sink for Github {
    fn take(&mut self, report: &Report, results: &[TestResult<'_>], _: &str) -> anyhow::Result<()> {
        let mut lines = String::new();
        for result in results.iter().filter(|result| result.is_failure()) {
            let mut properties = format!("file={}", property(&report.path));
            if let Some(line) = result.case.line {
                properties.push_str(&format!(",line={line}"));
            }
            let title = property(&["claw-replay ", &report.mode].concat());
            let message = [data(&result.name), data(&result.case.message)].join(": ");
            lines.push_str(&format!("::error {properties},title={title}::{message}\n"));
        }
        if !lines.is_empty() {
            diagnostics::write_lines(&lines);
        }
        Ok(())
    }
}

/// Escapes `text` for the message of a command. Carriage returns are escaped like the other control characters.
fn data(text: &str) -> String {
    printable_lines(text).replace('%', "%25").replace('\n', "%0A")
}

/// Escapes `text` for a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
