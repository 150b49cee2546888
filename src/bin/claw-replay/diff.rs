//! diff: compares two directories of transcripts, or the reports of two runs.

mod messages;
mod reports;

use crate::check::Check;
use crate::paths::{self, GlobArgs, Paths};
use crate::report::{Case, Outcome, Report};
use crate::run::{self, Mode, WorkArgs};
use crate::transcript::{OpenFile, Transcript};
use clawutils::cli::Log;
use clawutils::exit::{Exit, fail};
use clawutils::json::Object;
use clawutils::json::write::Members;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of characters of a value that are shown.
const MAX_VALUE: usize = 100;

/// Compare two directories of transcripts, or the reports of two runs
#[derive(Clone, Debug, clap::Args)]
pub struct DiffArgs {
    /// Directory of transcripts, or file of reports
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The other one
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
    /// Fails with 74 or 77 if a side cannot be read, 65 if it is neither a directory nor a file of reports, and 2 if
    /// one is a directory and the other is not.
    pub fn run(self, log: Log) -> anyhow::Result<Exit> {
        let DiffArgs { a, b, globs, work } = self;
        let totals = match (a.is_dir(), b.is_dir()) {
            (true, true) => {
                refuse_nested(&a, &b)?;
                let [in_a, in_b] = [&a, &b].map(|side| paths::below(side, &globs.glob));
                let files = all_files((&a, in_a?), (&b, in_b?));
                let mode = Diff { a, b, check: Check::default() };
                run::run_on(mode, (Paths::of(files), None), &work, log)?
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

/// Returns an error if one directory is inside the other, because each file in both would have two paths.
fn refuse_nested(a: &Path, b: &Path) -> anyhow::Result<()> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (a, b) = (whole(a), whole(b));
    if a != b && (a.starts_with(&b) || b.starts_with(&a)) {
        let text = "one directory is in the other; give two separate directories";
        return fail(Exit::Usage, text);
    }
    Ok(())
}

/// Returns the files of `a`, and those of `b` that `a` does not have, in the order of their paths below the two.
fn all_files(a: (&Path, Vec<PathBuf>), b: (&Path, Vec<PathBuf>)) -> Vec<PathBuf> {
    let in_a: BTreeSet<&PathBuf> = a.1.iter().collect();
    let added = b.1.iter().filter(|path| !in_a.contains(path)).map(|path| (path, b.0));
    let mut all: Vec<(&PathBuf, &Path)> = a.1.iter().map(|path| (path, a.0)).chain(added).collect();
    all.sort_by(|one, other| one.0.as_os_str().cmp(other.0.as_os_str()));
    all.into_iter().map(|(path, side)| side.join(path)).collect()
}

/// The mode of `claw-replay diff` for directories. For each path, it runs on the file in `a`, or on that in `b` if `a`
/// has none.
struct Diff {
    a: PathBuf,
    b: PathBuf,
    check: Check,
}

impl Mode for Diff {
    fn name(&self) -> &'static str {
        "diff"
    }

    fn options(&self) -> String {
        String::new()
    }

    fn run(&self, transcript: &Transcript) -> anyhow::Result<Report> {
        let Some((path, other)) = self.other(&transcript.path) else {
            let path = transcript.path.strip_prefix(&self.b).unwrap_or(&transcript.path);
            return Ok(present(&path.display().to_string(), Change::Added));
        };
        if !other.exists() {
            return Ok(present(&path, Change::Removed));
        }
        let other = OpenFile::open(&other)?.into_transcript()?;
        if transcript.input.length == other.input.length
            && transcript.input.bytes()? == other.input.bytes()?
        {
            return Ok(present(&path, Change::Same));
        }
        let [old, new] = [transcript, &other].map(|side| self.check.run(side));
        let (old, new) = (old?, new?);
        let messages = messages::case(&transcript.input, &other.input)?;
        let numbers = numbers_case(&old.numbers, &new.numbers);
        Ok(compared(&path, vec![messages, numbers], (&old, &new)))
    }
}

impl Diff {
    /// Returns the path of a file below the directory `a`, and the file with the same path below `b`; `None` for a file
    /// that is only in `b`.
    fn other(&self, path: &Path) -> Option<(String, PathBuf)> {
        let inside = path.strip_prefix(&self.a).ok()?;
        Some((inside.display().to_string(), self.b.join(inside)))
    }
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
/// has.
fn present(path: &str, change: Change) -> Report {
    let outcome = if change == Change::Same { Outcome::Passed } else { Outcome::Failed };
    let case = Case::new("presence", outcome, change.name());
    let numbers = Members::new().string("change", change.name());
    Report::new("diff", path, vec![case], numbers)
}

/// Returns the report on a transcript or a report that both sides have.
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

/// Returns the names and both values of the numbers that differ. The list of findings is not compared, because it
/// contains positions in the file; the number of findings is.
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
