//! The outputs for reports. The runner passes each report, in order, to one [`Reporter`], which passes it to all sinks.
//!
//! A new format needs a type that implements [`Sink`], an option in [`SinkArgs`], and a line in [`SinkArgs::open`].

mod file;
mod github;
mod html;
mod junit;
mod markdown;
mod results;

use self::file::ReportFile;
use self::github::Github;
use self::html::Html;
use self::junit::Junit;
use self::markdown::Markdown;
use self::results::{TestResult, results};
use crate::report::{Report, Status, counted};
use anyhow::Context;
use clawutils::cli::{Output, survive_file_limits};
use clawutils::exit::{Exit, fail};
use clawutils::json::Object;
use clawutils::json::write::Members;
use std::io::Write;
use std::path::PathBuf;

/// Receives all reports of a run, in order.
pub trait Sink: Send {
    /// Takes the next report. `results` are those in it, and `json` is its line, without a line feed.
    ///
    /// # Errors
    /// Fails if it cannot be written. This ends the run.
    fn take(
        &mut self,
        report: &Report,
        results: &[TestResult<'_>],
        json: &str,
    ) -> anyhow::Result<()>;

    /// Writes what was taken so far, because the next report may come much later.
    ///
    /// # Errors
    /// Fails if it cannot be written. This ends the run.
    fn flush(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Completes the output at the end of the run. Is not called if the run ends with an error.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    fn finish(self: Box<Self>, _totals: &Totals) -> anyhow::Result<()> {
        Ok(())
    }
}

/// The options for the output of reports.
#[derive(Clone, Debug, clap::Args)]
pub struct SinkArgs {
    /// Also write the results as JUnit XML, which most CI systems read
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write failures as annotations of GitHub Actions, on standard error
    #[arg(long)]
    pub github: bool,
    /// Also write a summary with a table of failures as Markdown, at most 1 MiB
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Also write a report for a browser to DIR/index.html, with a page for each failed transcript
    #[arg(long, value_name = "DIR")]
    pub html: Option<PathBuf>,
    /// Show no progress and no totals on standard error
    #[arg(long)]
    pub quiet: bool,
}

impl SinkArgs {
    /// Opens all sinks. Files that are not transcripts count as failures if `strict` is true.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub fn open(&self, strict: bool) -> anyhow::Result<Reporter> {
        survive_file_limits()?;
        self.refuse_same_names()?;
        let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(JsonLines { out: Output::open() })];
        if let Some(path) = &self.junit {
            sinks.push(Box::new(Junit::create(path)?));
        }
        if let Some(path) = &self.markdown {
            sinks.push(Box::new(Markdown::create(path)?));
        }
        if let Some(directory) = &self.html {
            sinks.push(Box::new(Html::create(directory)?));
        }
        if self.github {
            sinks.push(Box::new(Github));
        }
        Ok(Reporter { sinks, strict, totals: Totals::default() })
    }

    /// Returns an error if two reports would be written to the same file.
    fn refuse_same_names(&self) -> anyhow::Result<()> {
        let index = self.html.as_ref().map(|directory| directory.join("index.html"));
        let files = [self.junit.as_ref(), self.markdown.as_ref(), index.as_ref()];
        let files: Vec<&PathBuf> = files.into_iter().flatten().collect();
        match files.iter().enumerate().find(|(at, path)| files[..*at].contains(path)) {
            Some((_, path)) => {
                let text = format!("cannot write two reports to '{}'", path.display());
                fail(Exit::Usage, text + "; give each its own name")
            }
            None => Ok(()),
        }
    }
}

/// The number of reports of a run, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Transcripts that passed.
    pub passed: u64,
    /// Transcripts that failed.
    pub failed: u64,
    /// Files that are not transcripts.
    pub not_transcripts: u64,
    /// Files that cannot be opened or read.
    pub unreadable: u64,
    /// True if the run stopped at the first failure, so that there may be further transcripts without a report.
    pub is_stopped: bool,
}

/// The text that says why a run stopped before it had examined all transcripts.
pub const STOPPED: &str = "stopped at the first failure; further transcripts were not examined";

impl Totals {
    /// Counts a report.
    pub fn count(&mut self, report: &Report) {
        let number = match report.status {
            Status::Passed => &mut self.passed,
            Status::Failed => &mut self.failed,
            Status::Unreadable if report.is_not_a_transcript() => &mut self.not_transcripts,
            Status::Unreadable => &mut self.unreadable,
        };
        *number += 1;
    }

    /// Returns the number of all reports.
    pub fn all(&self) -> u64 {
        self.passed + self.failed + self.not_transcripts + self.unreadable
    }

    /// Returns the exit status of the run. `strict` makes files that are not transcripts an error.
    pub fn exit(&self, strict: bool) -> Exit {
        match self {
            _ if strict && self.not_transcripts > 0 => Exit::Data,
            _ if self.failed + self.unreadable > 0 => Exit::Failed,
            _ => Exit::Done,
        }
    }

    /// Returns the line that ends the reports of a run.
    fn to_line(self) -> String {
        Members::new()
            .string("end", if self.is_stopped { "stopped" } else { "complete" })
            .number("passed", self.passed)
            .number("failed", self.failed)
            .number("unreadable", self.unreadable)
            .number("not_transcripts", self.not_transcripts)
            .into_line()
    }

    /// Parses a line that [`Totals::to_line`] wrote. Returns `None` for a report.
    pub fn parse(json: &str) -> Option<Totals> {
        let end = Object::parse(json).ok()?;
        Some(Totals {
            is_stopped: match &*end.string("end")? {
                "complete" => false,
                "stopped" => true,
                _ => return None,
            },
            passed: end.number("passed")?,
            failed: end.number("failed")?,
            unreadable: end.number("unreadable")?,
            not_transcripts: end.number("not_transcripts")?,
        })
    }

    /// Returns the totals as text.
    pub fn text(&self) -> String {
        let Totals { passed, failed, not_transcripts, unreadable, is_stopped } = *self;
        let files = counted(self.all(), "file");
        let mut text = format!("{files}: {passed} passed, {failed} failed");
        let foreign = if not_transcripts == 1 { "not a transcript" } else { "not transcripts" };
        for (count, what) in [(unreadable, "unreadable"), (not_transcripts, foreign)] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        if is_stopped {
            text.extend(["; ", STOPPED]);
        }
        text
    }
}

/// Passes reports to all sinks and counts them.
pub struct Reporter {
    sinks: Vec<Box<dyn Sink>>,
    strict: bool,
    /// The numbers of the reports so far.
    pub totals: Totals,
}

impl Reporter {
    /// Returns a reporter that writes nothing.
    pub fn silent() -> Reporter {
        Reporter { sinks: Vec::new(), strict: false, totals: Totals::default() }
    }

    /// Takes the next report.
    ///
    /// # Errors
    /// Fails if a sink cannot write it.
    pub fn take(&mut self, report: &Report, json: &str) -> anyhow::Result<()> {
        self.totals.count(report);
        let results = results(report, self.strict);
        self.sinks.iter_mut().try_for_each(|sink| sink.take(report, &results, json))
    }

    /// Returns true if the run must stop: `fail_fast` is true, and `report` or an earlier one is a failure. Records
    /// this in the totals.
    pub fn stops(&mut self, report: &Report, fail_fast: bool) -> bool {
        self.totals.is_stopped |= fail_fast && report.is_failure(self.strict);
        self.totals.is_stopped
    }

    /// Flushes all sinks.
    ///
    /// # Errors
    /// Fails if one cannot be written.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        self.sinks.iter_mut().try_for_each(|sink| sink.flush())
    }

    /// Completes the output of all sinks.
    ///
    /// # Errors
    /// Fails if one cannot be written.
    pub fn finish(self) -> anyhow::Result<Totals> {
        let Reporter { sinks, totals, .. } = self;
        sinks.into_iter().try_for_each(|sink| sink.finish(&totals))?;
        Ok(totals)
    }
}

/// Standard output: one line of JSON per report, and one with the totals at the end of the run. A run that was killed or
/// that ended with an error has no such line, so readers can tell that reports are missing.
struct JsonLines {
    out: Output,
}

impl Sink for JsonLines {
    fn take(&mut self, _: &Report, _: &[TestResult<'_>], json: &str) -> anyhow::Result<()> {
        self.out.write_all(json.as_bytes()).context("cannot write '<stdout>'")?;
        self.out.write_all(b"\n").context("cannot write '<stdout>'")
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush().context("cannot write '<stdout>'")
    }

    fn finish(mut self: Box<Self>, totals: &Totals) -> anyhow::Result<()> {
        self.out.write_all(totals.to_line().as_bytes()).context("cannot write '<stdout>'")?;
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_status_depends_on_the_totals() {
        let totals = |passed, failed, not_transcripts, unreadable| Totals {
            passed,
            failed,
            not_transcripts,
            unreadable,
            is_stopped: false,
        };
        for (totals, exit, strict) in [
            (totals(0, 0, 0, 0), Exit::Done, Exit::Done),
            (totals(2, 0, 0, 0), Exit::Done, Exit::Done),
            (totals(2, 1, 0, 0), Exit::Failed, Exit::Failed),
            (totals(2, 0, 1, 0), Exit::Done, Exit::Data),
            (totals(2, 1, 1, 0), Exit::Failed, Exit::Data),
            (totals(2, 0, 0, 1), Exit::Failed, Exit::Failed),
        ] {
            assert_eq!((totals.exit(false), totals.exit(true)), (exit, strict), "{totals:?}");
        }
    }
}
