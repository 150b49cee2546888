//! `--junit`: results as JUnit XML, one test suite per transcript and one test case per case.
//!
//! The file is valid under the schema of Ant's JUnit task and under the stricter of Jenkins's schemas: it has every
//! attribute that either of them requires, and none that either of them forbids. Durations are not measured and the
//! host is not named, so the bytes depend only on the reports and the time of the run.

use super::results::{TestResult, Verdict, not_examined};
use super::{ReportFile, Sink, Totals};
use crate::report::Report;
use clawutils::cli;
use clawutils::printable::{printable, printable_lines};
use jiff::Timestamp;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::io::{self, Write};
use std::path::Path;

/// A file of JUnit results.
pub struct Junit {
    xml: Writer<ReportFile>,
    /// The time of the run, without a time zone.
    time: String,
    /// The number of suites so far.
    suites: u64,
}

impl Junit {
    /// Creates the file.
    ///
    /// # Errors
    /// Fails if it cannot be created, and with 78 if `SOURCE_DATE_EPOCH` is invalid.
    pub fn create(path: &Path) -> anyhow::Result<Junit> {
        let mut xml = Writer::new_with_indent(ReportFile::create(path)?, b' ', 1);
        xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        xml.write_event(Event::Start(BytesStart::new("testsuites")))?;
        let now = Timestamp::from_second(cli::now()? as i64).unwrap_or(Timestamp::UNIX_EPOCH);
        let time = now.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        Ok(Junit { xml, time, suites: 0 })
    }
}

impl Junit {
    /// Writes a suite with these results.
    fn suite(&mut self, name: &str, mode: &str, results: &[TestResult<'_>]) -> anyhow::Result<()> {
        let count = |verdict| results.iter().filter(|it| it.verdict == verdict).count().to_string();
        let package = ["claw-replay.", mode].concat();
        let suite = self.xml.create_element("testsuite").with_attributes([
            ("id", self.suites.to_string().as_str()),
            ("package", &package),
            ("name", &attribute(name)),
            ("timestamp", &self.time),
            ("hostname", "localhost"),
            ("tests", &results.len().to_string()),
            ("failures", &count(Verdict::Failed)),
            ("errors", &count(Verdict::Broken)),
            ("skipped", &count(Verdict::Skipped)),
            ("time", "0"),
        ]);
        suite.write_inner_content(|xml| {
            xml.create_element("properties").write_empty()?;
            results.iter().try_for_each(|result| test_case(xml, &package, result))?;
            xml.create_element("system-out").write_empty()?;
            xml.create_element("system-err").write_empty().map(|_| ())
        })?;
        self.suites += 1;
        Ok(())
    }
}

impl Sink for Junit {
    fn take(&mut self, report: &Report, results: &[TestResult<'_>], _: &str) -> anyhow::Result<()> {
        self.suite(&report.path, &report.mode, results)
    }

    fn finish(mut self: Box<Self>, totals: &Totals) -> anyhow::Result<()> {
        if totals.is_stopped {
            self.suite("further transcripts", "stopped", &[not_examined()])?;
        }
        self.xml.write_event(Event::End(BytesEnd::new("testsuites")))?;
        let mut file = self.xml.into_inner();
        file.write_all(b"\n")?;
        file.finish()
    }
}

fn test_case(xml: &mut Writer<ReportFile>, class: &str, result: &TestResult<'_>) -> io::Result<()> {
    let name = attribute(&result.name);
    let case = xml.create_element("testcase").with_attributes([
        ("classname", class),
        ("name", &name),
        ("time", "0"),
    ]);
    let (element, kind) = match result.verdict {
        Verdict::Passed => return case.write_empty().map(|_| ()),
        Verdict::Skipped => ("skipped", None),
        Verdict::Failed => ("failure", Some("failed")),
        Verdict::Broken => ("error", Some("unreadable")),
    };
    let message = attribute(&result.case.message);
    case.write_inner_content(|xml| {
        let reason = xml.create_element(element).with_attribute(("message", message.as_str()));
        let reason = reason.with_attributes(kind.map(|kind| ("type", kind)));
        reason.write_text_content(BytesText::new(&content(result))).map(|_| ())
    })
    .map(|_| ())
}

/// Returns the text of a failure: its message, the line of the transcript, and the detail.
fn content(result: &TestResult<'_>) -> String {
    let mut text = result.case.message.clone();
    if let Some(line) = result.case.line {
        text.push_str(&format!("\nline {line}"));
    }
    if let Some(detail) = &result.case.detail {
        text.extend(["\n\n", detail.trim_end_matches('\n')]);
    }
    allowed(&printable_lines(&text))
}

/// Escapes `text` for an attribute, and keeps it on one line.
fn attribute(text: &str) -> String {
    allowed(&printable(text))
}

/// Escapes the two characters that XML forbids besides control characters.
fn allowed(text: &str) -> String {
    text.replace('\u{fffe}', "\\u{fffe}").replace('\u{ffff}', "\\u{ffff}")
}
