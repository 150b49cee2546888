//! Converts a report to test results for CI systems: one result for each case, or one for a report without cases.

use super::STOPPED;
use crate::report::{Case, Outcome, Report, Status};
use std::borrow::Cow;

/// The outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The case passed.
    Passed,
    /// The case failed.
    Failed,
    /// The transcript could not be examined.
    Broken,
    /// The case was not examined, or the file is not a transcript and need not be one.
    Skipped,
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResult<'r> {
    /// The path of the transcript and the name of the case: unique in a run.
    pub name: Cow<'r, str>,
    /// The case; one without a name if the report has no cases.
    pub case: Cow<'r, Case>,
    /// The outcome.
    pub verdict: Verdict,
}

impl TestResult<'_> {
    /// Returns true if the test failed or is broken.
    pub fn is_failure(&self) -> bool {
        matches!(self.verdict, Verdict::Failed | Verdict::Broken)
    }
}

/// Returns the results of a report. A file that is not a transcript is broken only if `strict` is true.
pub fn results(report: &Report, strict: bool) -> Vec<TestResult<'_>> {
    if !report.cases.is_empty() {
        return report.cases.iter().map(|case| of_case(report, case)).collect();
    }
    let verdict = match report.status {
        _ if report.is_failure(strict) => Verdict::Broken,
        Status::Passed | Status::Failed => Verdict::Passed,
        Status::Unreadable => Verdict::Skipped,
    };
    vec![without_case(&report.path, verdict, report.message.as_deref().unwrap_or_default())]
}

/// Returns the result that stands for the transcripts that a stopped run did not examine.
pub fn not_examined() -> TestResult<'static> {
    without_case("further transcripts", Verdict::Skipped, STOPPED)
}

fn without_case<'r>(name: &'r str, verdict: Verdict, message: &'r str) -> TestResult<'r> {
    let case = Case::new("", Outcome::Skipped, message);
    TestResult { name: name.into(), case: Cow::Owned(case), verdict }
}

fn of_case<'r>(report: &'r Report, case: &'r Case) -> TestResult<'r> {
    TestResult {
        name: Cow::Owned([&report.path, ": ", &case.name].concat()),
        case: Cow::Borrowed(case),
        verdict: match case.outcome {
            Outcome::Passed => Verdict::Passed,
            Outcome::Failed => Verdict::Failed,
            Outcome::Skipped => Verdict::Skipped,
        },
    }
}

/// Returns the beginning of `text`, with a mark if it is longer than `most` bytes.
pub fn abridged(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    Cow::Owned([&text[..end], " …"].concat())
}
