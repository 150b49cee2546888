//! diff: compares two directories of transcripts, or the reports of two runs.

mod messages;
mod reports;

use crate::check::Check;
use crate::paths::{self, GlobArgs, Paths};
use crate::report::{Case, Outcome, Report};
use crate::run::{self, Mode, WorkArgs};
use crate::transcript::{OpenFile, Transcript};
use anyhow::Context;
use clawutils::cli::Log;
use clawutils::exit::{self, Exit, fail};
use clawutils::input::Input;
use clawutils::json::Object;
use clawutils::json::write::Members;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum length of a value in a message, in characters.
const MAX_VALUE: usize = 100;

/// The options of `claw-replay diff`.
#[derive(Clone, Debug, clap::Args)]
pub struct DiffArgs {
    /// Directory of transcripts, or file of reports
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Directory or file to compare with A
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// The patterns for files in directories.
    #[command(flatten)]
    pub globs: GlobArgs,
    /// The options for threads, failures and output.
    #[command(flatten)]
    pub work: WorkArgs,
}

impl DiffArgs {
    /// Compares both sides and returns the exit status.
    ///
    /// # Errors
    /// Fails with 74 or 77 if a side cannot be read, 65 if it is neither a directory nor a file of reports, 2 if one is
    /// a directory and the other is not, and 1 if both are directories without transcripts.
    pub fn run(self, log: Log) -> anyhow::Result<Exit> {
        let DiffArgs { a, b, globs, work } = self;
        let totals = match (is_directory(&a)?, is_directory(&b)?) {
            (true, true) => {
                refuse_nested(&a, &b)?;
                let [in_a, in_b] = [&a, &b].map(|side| paths::below(side, &globs.glob));
                let (in_a, in_b) = (in_a?, in_b?);
                let side = |path: &OsString| if in_a.contains(path) { &a } else { &b };
                let files = in_a.union(&in_b).map(|path| side(path).join(path)).collect();
                let both = in_a.intersection(&in_b).cloned().collect();
                let none = format!("no transcripts in '{}' and '{}'", a.display(), b.display());
                let mode = Diff { a, b, both, check: Check::default() };
                let reporter = work.sinks.open(work.strict)?;
                let from = (Paths::of(files), None);
                let totals = run::run_on(Arc::new(mode), from, &work, reporter, log)?;
                if totals.all() == 0 {
                    return fail(Exit::Failed, none + "; check the paths and --glob");
                }
                totals
            }
            (false, false) => reports::compare(&a, &b, &work)?,
            _ => {
                let text = "one operand is a directory and the other is not; give two directories or two files";
                return fail(Exit::Usage, text);
            }
        };
        Ok(run::end(totals, &work, log))
    }
}

/// Returns true for a directory.
fn is_directory(path: &Path) -> anyhow::Result<bool> {
    let meta = path.metadata().with_context(|| format!("cannot read '{}'", path.display()));
    Ok(meta?.is_dir())
}

/// Returns true if two inputs have the same bytes.
fn is_equal(a: &Input, b: &Input) -> anyhow::Result<bool> {
    if a.length != b.length {
        return Ok(false);
    }
    for (one, other) in a.parts().zip(b.parts()) {
        if one? != other? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns an error if one directory is inside the other, because each file in the inner one would have two paths.
fn refuse_nested(a: &Path, b: &Path) -> anyhow::Result<()> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (a, b) = (whole(a), whole(b));
    if a != b && (a.starts_with(&b) || b.starts_with(&a)) {
        let text = "one directory is in the other; give two separate directories";
        return fail(Exit::Usage, text);
    }
    Ok(())
}

/// The mode of `claw-replay diff` for directories. For each path, it runs on the file in `a`, or on that in `b` if `a`
/// has none.
struct Diff {
    a: PathBuf,
    b: PathBuf,
    /// The files that both directories have, as paths relative to them.
    both: HashSet<OsString>,
    check: Check,
}

impl Mode for Diff {
    fn name(&self) -> &'static str {
        "diff"
    }

    fn options(&self) -> String {
        String::new()
    }

    /// Returns the path relative to the directory that contains the file.
    fn name_of(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.a).or_else(|_| path.strip_prefix(&self.b));
        inside.unwrap_or(path).display().to_string()
    }

    fn run(&self, transcript: &Transcript) -> anyhow::Result<Report> {
        let path = self.name_of(&transcript.path);
        let Ok(inside) = transcript.path.strip_prefix(&self.a) else {
            return Ok(present(&path, Change::Added, ""));
        };
        if !self.both.contains(inside.as_os_str()) {
            return Ok(present(&path, Change::Removed, ""));
        }
        let other = match open(&self.b.join(inside)) {
            Err(error) if exit::status(&error) == Exit::Data => {
                return Ok(present(&path, Change::Changed, "only the first file is a transcript"));
            }
            other => other?,
        };
        if is_equal(&transcript.input, &other.input)? {
            return Ok(present(&path, Change::Same, ""));
        }
        let [old, new] = [transcript, &other].map(|side| self.check.run(side));
        let (old, new) = (old?, new?);
        let messages = messages::case(&transcript.input, &other.input)?;
        let numbers = numbers_case(&old.numbers, &new.numbers);
        Ok(compared(&path, vec![messages, numbers], (&old, &new)))
    }

    /// Reports a change if the other file is a transcript.
    fn run_on_other(&self, path: &Path, error: anyhow::Error) -> anyhow::Result<Report> {
        let inside = path.strip_prefix(&self.a).ok();
        let inside = inside.filter(|inside| self.both.contains(inside.as_os_str()));
        if inside.is_some_and(|inside| open(&self.b.join(inside)).is_ok()) {
            let why = "only the second file is a transcript";
            return Ok(present(&self.name_of(path), Change::Changed, why));
        }
        Err(error)
    }
}

fn open(path: &Path) -> anyhow::Result<Transcript> {
    OpenFile::open(path)?.into_transcript()
}

/// The change of a transcript or a report as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Same,
    Changed,
    Added,
    Removed,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::Same => "same",
            Change::Changed => "changed",
            Change::Added => "added",
            Change::Removed => "removed",
        }
    }
}

/// Returns the report on a transcript that is the same on both sides, or on a transcript or report that only one side
/// has. `why` explains the change, and may be empty.
fn present(path: &str, change: Change, why: &str) -> Report {
    let outcome = if change == Change::Same { Outcome::Passed } else { Outcome::Failed };
    let message = match why {
        "" => change.name().to_owned(),
        why => format!("{}: {why}", change.name()),
    };
    let case = Case::new("presence", outcome, message);
    let numbers = Members::new().string("change", change.name());
    Report::new("diff", path, vec![case], numbers)
}

/// Returns the report on the comparison of a transcript, or of a report, that both sides have.
fn compared(path: &str, cases: Vec<Case>, (old, new): (&Report, &Report)) -> Report {
    let is_same = cases.iter().all(|case| case.outcome == Outcome::Passed);
    let change = if is_same { Change::Same } else { Change::Changed };
    let changes = changed_numbers(&old.numbers, &new.numbers);
    let numbers = Members::new().string("change", change.name());
    let numbers = numbers.object("numbers", |members| {
        changes.iter().fold(members, |members, (name, old, new)| {
            let pair = Members::new().raw("a", old).raw("b", new).into_json();
            members.named(name, &pair)
        })
    });
    Report::new("diff", path, cases, numbers)
}

/// Returns the names and both values of the numbers that differ. The number of findings is compared, but not the list
/// of findings, because it contains positions in the file.
fn changed_numbers(old: &Members, new: &Members) -> Vec<(String, String, String)> {
    let (old, new) = (old.clone().into_json(), new.clone().into_json());
    let (Ok(old), Ok(new)) = (Object::parse(&old), Object::parse(&new)) else { return Vec::new() };
    let added = new.members().filter(|member| old.get(&member.name()).is_none());
    let names = old.members().chain(added).map(|member| member.name().into_owned());
    let value = |object: &Object<'_>, name: &str| object.get(name).unwrap_or("null").to_owned();
    let both = names.map(|name| (value(&old, &name), value(&new, &name), name));
    let changed = both.filter(|(old, new, name)| old != new && name != "first_findings");
    changed.map(|(old, new, name)| (name, old, new)).collect()
}

/// Returns the case that compares the numbers.
fn numbers_case(old: &Members, new: &Members) -> Case {
    let changes = changed_numbers(old, new);
    if changes.is_empty() {
        return Case::new("numbers", Outcome::Passed, "same");
    }
    let short = |value: &str| match value.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => [&value[..end], "…"].concat(),
        None => value.to_owned(),
    };
    let change = |(name, old, new): &(String, String, String)| {
        format!("{name} {} -> {}", short(old), short(new))
    };
    let message = changes.iter().map(change).collect::<Vec<_>>().join(", ");
    Case::new("numbers", Outcome::Failed, message)
}
