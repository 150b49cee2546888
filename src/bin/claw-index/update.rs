//! update: bring the index up to date with transcripts.

use crate::database;
use crate::files::Files;
use crate::follow::Watch;
use crate::transcript::Redaction;
use crate::updater::Updater;
use clawutils::cli::options::RedactArgs;
use clawutils::cli::{self, Log, read_file};
use clawutils::exit::{Exit, fail};
use clawutils::record;
use std::path::{Path, PathBuf};

/// Bring the index up to date with transcripts
#[derive(Debug, clap::Args)]
pub struct Update {
    /// Transcripts, and directories to search for them (default: the sessions of the workspace)
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read every transcript again, even if it seems not to have changed
    #[arg(long)]
    full: bool,
    /// Report only errors
    #[arg(long)]
    quiet: bool,
    /// After the update, wait for changes, index them, and print a line for each, until a signal ends the program
    #[arg(long)]
    follow: bool,
    /// File of prices, one model per line, which wins over the table of models
    #[arg(long, value_name = "FILE", env = "CLAW_PRICES")]
    prices: Option<PathBuf>,
    /// File of models to look up before the built-in table
    #[arg(long, value_name = "FILE", env = "CLAW_MODELS")]
    models: Option<PathBuf>,
    #[command(flatten)]
    redact: RedactArgs,
}

impl Update {
    /// Updates the index at `path`.
    ///
    /// # Errors
    /// If the database cannot be used. An error about a transcript is reported, and the others are still read; the
    /// status is that of the first error.
    pub fn run(self, path: &Path, workspace: &Path, log: Log) -> anyhow::Result<Exit> {
        if self.paths.is_empty() && !workspace.is_dir() {
            let text =
                format!("no workspace '{}'; give paths, or --workspace", workspace.display());
            return fail(Exit::Usage, text);
        }
        let redaction = self.redaction()?;
        let prices = cli::prices(self.prices.as_deref(), self.models.as_deref())?;
        cli::survive_file_limits()?;
        let database = database::open(path)?;
        let (is_full, is_quiet) = (self.full, self.quiet);
        let path = path.to_owned();
        let mut updater = Updater { path, database, redaction, prices, log, is_full, is_quiet };
        // Watching begins first, so that no change is missed.
        let watch = self.follow.then(|| Watch::begin(&self.paths, workspace)).transpose()?;
        let files = Files::find(&self.paths, workspace);
        let mut first = None;
        let totals = updater.update(&files, &mut first, &mut |_, _| Ok(()))?;
        if !is_quiet {
            log.outcome(&totals.text(), &totals.members());
        }
        match watch {
            Some(watch) => {
                updater.is_full = false;
                watch.follow(&updater)
            }
            None => Ok(first.unwrap_or(Exit::Done)),
        }
    }

    fn redaction(&self) -> anyhow::Result<Redaction> {
        let Some(patterns) = self.redact.patterns()? else { return Ok(Redaction::default()) };
        let text = self.redact.redact.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let digest = record::digest(&String::from_utf8_lossy(&text));
        Ok(Redaction { patterns: Some(patterns), digest })
    }
}
