//! Compares the reports of two runs, by path and mode.

use super::{Change, compared, numbers_case, present};
use crate::reader::ReportReader;
use crate::report::{Case, Outcome, Report};
use crate::run::WorkArgs;
use crate::sinks::Totals;
use clawutils::exit::{Exit, fail};
use std::collections::BTreeMap;
use std::path::Path;

/// Compares two files of reports, and writes a report for each path and mode.
///
/// # Errors
/// Fails with 74 or 77 if a file cannot be read, and with 65 if a line is not a report, if a run did not finish, or if
/// a file has two different reports on the same path and mode. Also fails if a report cannot be written.
pub fn compare(a: &Path, b: &Path, work: &WorkArgs) -> anyhow::Result<Totals> {
    let (old, new) = (read(a)?, read(b)?);
    let mut reporter = work.sinks.open(work.strict)?;
    let paths = old.keys().chain(new.keys().filter(|path| !old.contains_key(*path)));
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    for key in paths {
        let (path, mode) = key;
        let missing = || format!("the other file has no {mode} report on this path");
        let report = match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) => {
                let cases = vec![cases_case(old, new), numbers_case(&old.numbers, &new.numbers)];
                compared(path, cases, (old, new))
            }
            (None, _) => present(path, Change::Added, &missing()),
            (_, None) => present(path, Change::Removed, &missing()),
        };
        reporter.take(&report, &report.to_json())?;
        if reporter.stops(&report, work.fail_fast) {
            break;
        }
    }
    reporter.finish()
}

/// Reads the reports in a file. The key is the path of the transcript and the mode.
fn read(path: &Path) -> anyhow::Result<BTreeMap<(String, String), Report>> {
    let (mut reader, mut reports) = (ReportReader::open(path)?, BTreeMap::new());
    while let Some((report, _)) = reader.next()? {
        let key = (report.path.clone(), report.mode.clone());
        if reports.get(&key).is_some_and(|earlier| *earlier != report) {
            let why = format!("two reports on the path '{}'; give the reports of one run", key.0);
            return fail(Exit::Data, format!("cannot read '{}': {why}", path.display()));
        }
        reports.insert(key, report);
    }
    Ok(reports)
}

/// Compares the status and the cases of two reports.
fn cases_case(old: &Report, new: &Report) -> Case {
    let line = |case: &Case| format!("{}: {}: {}", case.name, case.outcome.name(), case.message);
    let lines = |report: &Report| {
        let first = report.message.iter().filter(|_| report.cases.is_empty()).cloned();
        let status = std::iter::once(report.status.name().to_owned());
        status.chain(first).chain(report.cases.iter().map(line)).collect::<Vec<_>>()
    };
    let (before, after) = (lines(old), lines(new));
    if before == after {
        return Case::new("cases", Outcome::Passed, "same");
    }
    let removed =
        before.iter().filter(|line| !after.contains(line)).map(|line| ["- ", line].concat());
    let added =
        after.iter().filter(|line| !before.contains(line)).map(|line| ["+ ", line].concat());
    let detail = removed.chain(added).map(|line| line + "\n").collect();
    let message = match (old.status.name(), new.status.name()) {
        (before, after) if before != after => format!("{before} -> {after}"),
        _ => "outcomes or messages differ".to_owned(),
    };
    Case { detail: Some(detail), ..Case::new("cases", Outcome::Failed, message) }
}
