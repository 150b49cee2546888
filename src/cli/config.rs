//! The options that select the configuration file, and the function that reads the file.

use crate::cli::ENVIRONMENT;
use crate::exit::{Error, Exit};
use crate::settings::file::{self, ConfigFile, MAX_BYTES};
use crate::settings::place;
use anyhow::Context;
use clap::ArgMatches;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The options that select the file.
#[derive(Clone, Debug, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file (default: clawutils/config.json in XDG_CONFIG_HOME or ~/.config)
    #[arg(long, value_name = "FILE", env = "CLAW_CONFIG", global = true)]
    pub config: Option<PathBuf>,
    /// Profile of the configuration file to use
    #[arg(long, value_name = "NAME", env = "CLAW_PROFILE", global = true)]
    pub profile: Option<String>,
}

/// Opens the file that the command line selects, else the one that the variable selects, else the default one if it
/// exists.
///
/// # Errors
/// Fails with 74 or 77 if it cannot be read, and with 78 if it is malformed or has an unknown key.
pub fn open(given: &ArgMatches) -> anyhow::Result<ConfigFile> {
    let Some(path) = place::selected(given, ENVIRONMENT) else { return Ok(ConfigFile::default()) };
    let text = read(&path)?;
    let profile = place::profile(given, ENVIRONMENT);
    ConfigFile::parse(&path, &text, profile, place::home(ENVIRONMENT))
        .map_err(|why| Error::new(Exit::Config, file::unusable(&path, &why)).into())
}

/// Reads the text of a file.
fn read(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read '{}'", path.display()))?;
    file::text(path, bytes)
}
