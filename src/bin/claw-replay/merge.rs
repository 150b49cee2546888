//! merge: combines the reports of several runs, and writes their results.

use crate::report::Report;
use crate::sinks::{Reporter, SinkArgs};
use anyhow::Context;
use clawutils::cli::{self, Log};
use clawutils::exit::{Exit, fail};
use clawutils::printable::printable_json;
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The maximum length of a report in bytes.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// Merge the reports of several runs, and write their results
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
    /// Fails with 65 if a line is not a report, with 74 or 77 if reading or writing fails, and with 1 if there are no
    /// reports.
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
                let s = if repeated == 1 { "" } else { "s" };
                log.note(&format!("left out {repeated} repeated report{s}"));
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
        let (name, reader) = open(path)?;
        let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
        for number in 1.. {
            line.clear();
            let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            if read.with_context(|| format!("cannot read '{name}'"))? == 0 {
                break;
            }
            // A line without a line feed is incomplete: the run that wrote it was killed.
            let json = line.strip_suffix(b"\n").and_then(|line| str::from_utf8(line).ok());
            let Some((json, report)) = json.and_then(|json| Some((json, Report::parse(json)?)))
            else {
                let advice = "give the output of claw-replay, or repeat the run if it was killed";
                return fail(Exit::Data, format!("'{name}' line {number}: not a report; {advice}"));
            };
            let hash = self.known.hasher().hash_one(json);
            match self.known.insert(hash) {
                true => self.reporter.take(&report, &printable_json(json))?,
                false => self.repeated += 1,
            }
        }
        Ok(())
    }
}

/// Opens a file of reports, or standard input, and returns its name for diagnostics.
fn open(path: &Path) -> anyhow::Result<(String, Box<dyn Read>)> {
    if path.as_os_str() == "-" {
        return Ok((cli::stdin_name(), Box::new(cli::open_stdin()?)));
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read '{name}'"))?;
    Ok((name, Box::new(file)))
}
