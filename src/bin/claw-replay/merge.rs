//! merge: combines the reports of several runs, and writes their results.

use crate::reader::ReportReader;
use crate::report::counted;
use crate::sinks::{Reporter, SinkArgs};
use clawutils::cli::Log;
use clawutils::exit::{Exit, fail};
use clawutils::printable::printable_json;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

/// The options of `claw-replay merge`.
#[derive(Clone, Debug, clap::Args)]
pub struct MergeArgs {
    /// Files with reports; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Exit with 65 if a file is not a transcript
    #[arg(long)]
    pub strict: bool,
    /// The output.
    #[command(flatten)]
    pub sinks: SinkArgs,
}

impl MergeArgs {
    /// Writes all reports and returns the exit status that a single run over all transcripts would have.
    ///
    /// # Errors
    /// Fails with 65 if a line is not a report or a run did not finish, with 74 or 77 if reading or writing fails, and
    /// with 1 if there are no reports.
    pub fn run(&self, log: Log) -> anyhow::Result<Exit> {
        let reporter = self.sinks.open(self.strict)?;
        let mut merged = Merged { reporter, known: HashSet::default(), repeated: 0 };
        let stdin = [PathBuf::from("-")];
        let files = if self.files.is_empty() { &stdin[..] } else { &self.files };
        for path in files {
            merged.add(path)?;
        }
        let Merged { reporter, repeated, .. } = merged;
        let totals = reporter.finish()?;
        if totals.all() == 0 {
            return fail(Exit::Failed, "no reports found; check the runs that should make them");
        }
        if !self.sinks.quiet {
            if repeated > 0 {
                log.note(&format!("left out {}", counted(repeated, "repeated report")));
            }
            log.note(&totals.text());
        }
        Ok(totals.exit(self.strict))
    }
}

/// The reports so far.
struct Merged {
    reporter: Reporter,
    /// The hashes of the reports, to leave out repeated ones: the reports of the same run may be given twice.
    known: HashSet<u64, RandomState>,
    /// The number of repeated reports.
    repeated: u64,
}

impl Merged {
    /// Passes on the reports of a file, without repeated ones.
    fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        let mut reports = ReportReader::open(path)?;
        while let Some((report, json)) = reports.next()? {
            let hash = self.known.hasher().hash_one(&json);
            match self.known.insert(hash) {
                true => self.reporter.take(&report, &printable_json(&json))?,
                false => self.repeated += 1,
            }
        }
        self.reporter.totals.is_stopped |= reports.is_stopped;
        Ok(())
    }
}
