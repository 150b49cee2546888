//! `--tap`: results in the Test Anything Protocol on standard output.
//!
//! This is version 13, because consumers of that version (such as `prove` before Test::Harness 3.48) reject version 14,
//! while those of version 14 read both.

use super::results::{TestResult, Verdict, not_examined, results};
use super::{Sink, Totals};
use crate::report::Report;
use anyhow::Context;
use clawutils::cli::Output;
use clawutils::json::quote;
use clawutils::printable::{printable, printable_json};
use std::fmt::Write as _;
use std::io::Write;

/// Results on standard output.
pub struct Tap {
    out: Output,
    strict: bool,
    /// The number of results so far.
    count: u64,
}

impl Tap {
    /// Opens standard output.
    pub fn open(strict: bool) -> Tap {
        Tap { out: Output::open(), strict, count: 0 }
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        self.out.write_all(text.as_bytes()).context("cannot write '<stdout>'")
    }
}

impl Sink for Tap {
    fn take(&mut self, report: &Report, _: &str) -> anyhow::Result<()> {
        let mut text = String::new();
        if self.count == 0 {
            text.push_str("TAP version 13\n");
        }
        for result in results(report, self.strict) {
            self.count += 1;
            text.push_str(&test_point(self.count, &result));
            if result.is_failure() {
                text.push_str(&diagnostics(&report.path, &result));
            }
        }
        self.write(&text)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush().context("cannot write '<stdout>'")
    }

    /// Writes the plan. A run that was killed has none, so consumers report it as incomplete.
    fn finish(mut self: Box<Self>, totals: &Totals) -> anyhow::Result<()> {
        if totals.is_stopped {
            self.count += 1;
            self.write(&test_point(self.count, &not_examined()))?;
        }
        match self.count {
            0 => self.write("TAP version 13\n1..0 # SKIP no transcripts\n")?,
            count => self.write(&format!("1..{count}\n"))?,
        }
        self.out.finish()
    }
}

fn test_point(number: u64, result: &TestResult<'_>) -> String {
    let not = if result.is_failure() { "not " } else { "" };
    let mut line = format!("{not}ok {number} - {}", description(&result.name));
    if result.verdict == Verdict::Skipped {
        line.extend([" # SKIP ", &description(result.message)]);
    }
    line + "\n"
}

/// Escapes `text`: an unescaped `#` would begin a directive.
fn description(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('#', "\\#")
}

/// Returns the block of YAML about a failure. Its strings are JSON, which is valid YAML.
fn diagnostics(path: &str, result: &TestResult<'_>) -> String {
    let string = |text: &str| printable_json(&quote(text)).into_owned();
    let mut yaml = format!("  ---\n  message: {}\n  at:\n", string(result.message));
    // Writing into a String cannot fail.
    let _ = writeln!(yaml, "    file: {}", string(path));
    if let Some(line) = result.line {
        let _ = writeln!(yaml, "    line: {line}");
    }
    if let Some(detail) = result.detail.filter(|detail| !detail.is_empty()) {
        yaml.push_str("  detail:\n");
        detail.lines().for_each(|line| {
            let _ = writeln!(yaml, "    - {}", string(line));
        });
    }
    yaml + "  ...\n"
}
