//! The arguments of `claw-show`.

use crate::file;
use clawutils::cli::options::RedactArgs;
use clawutils::cli::{DialectArgs, prices, variable};
use clawutils::cost::PriceList;
use clawutils::show::text::NARROWEST;
use clawutils::show::{Format, Language, ShowOptions};
use jiff::tz::TimeZone;
use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

/// The width in columns if neither the environment nor the terminal gives one.
const WIDTH: usize = 80;

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The options of `claw-show`.
#[derive(Clone, Debug, clap::Args)]
pub struct ShowArgs {
    /// The options for transcripts of other programs.
    #[command(flatten)]
    pub dialect: DialectArgs,
    /// Format of the output (default: from the extension of --output, else text)
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write to a new file instead of standard output, or a site of many sessions to a directory
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["follow", "markdown"])]
    pub output: Option<PathBuf>,
    /// Replace the file of --output if it exists
    #[arg(long, requires = "output")]
    pub replace: bool,
    /// Do not fold anything
    #[arg(long)]
    pub full: bool,
    /// Show only the last N turns
    #[arg(long, value_name = "N")]
    pub limit_turns: Option<u64>,
    /// Show only turn N, counted from 1
    #[arg(long, value_name = "N", conflicts_with_all = ["follow", "limit_turns"])]
    pub turn: Option<u64>,
    /// Compare two sessions, side by side from where they part
    #[arg(long, conflicts_with_all = ["follow", "markdown", "cost", "limit_turns", "turn"])]
    pub diff: bool,
    /// Show the file, and then what is appended to it, until a signal ends the program
    #[arg(long)]
    pub follow: bool,
    /// Render Markdown from standard input for a terminal as it arrives, instead of a transcript
    #[arg(long, conflicts_with_all = ["format", "full", "limit_turns", "turn", "follow", "cost", "redact"])]
    pub markdown: bool,
    /// Number of columns of the text, at least 24 (default: COLUMNS, the width of the terminal, or 80)
    #[arg(long, value_name = "N", value_parser = width)]
    pub width: Option<usize>,
    /// Language of the program's own words
    #[arg(long, value_name = "LANGUAGE", default_value = "en")]
    pub language: Language,
    /// Use colours in text
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Show only the tokens and the cost of the calls, in one line
    #[arg(long, conflicts_with_all = ["format", "output", "follow", "full"])]
    pub cost: bool,
    /// File of prices, one model per line, which wins over the table of models
    #[arg(long, value_name = "FILE", env = "CLAW_PRICES")]
    pub prices: Option<PathBuf>,
    /// File of models to look up before the built-in table
    #[arg(long, value_name = "FILE", env = "CLAW_MODELS")]
    pub models: Option<PathBuf>,
    /// The patterns to redact.
    #[command(flatten)]
    pub redact: RedactArgs,
}

impl ShowArgs {
    /// Returns the format from the option, else the one that the name of the output file selects.
    pub fn format(&self) -> anyhow::Result<Format> {
        match (self.format, &self.output) {
            (Some(format), _) => Ok(format),
            (None, Some(path)) => file::format(path),
            (None, None) => Ok(Format::Text),
        }
    }

    pub fn columns(&self) -> usize {
        self.width.or_else(|| columns(self.output.is_none())).unwrap_or(WIDTH)
    }

    pub fn has_color(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                self.output.is_none() && stdout().is_terminal() && variable("NO_COLOR").is_none()
            }
        }
    }

    pub fn prices(&self) -> anyhow::Result<PriceList> {
        prices(self.prices.as_deref(), self.models.as_deref())
    }

    pub fn options(&self) -> anyhow::Result<ShowOptions> {
        Ok(ShowOptions {
            full: self.full,
            limit_turns: self.limit_turns,
            turn: self.turn,
            redact: self.redact.patterns()?,
            prices: self.prices()?,
            zone: TimeZone::try_system().unwrap_or(TimeZone::UTC),
            width: self.columns(),
            color: self.has_color(),
            language: self.language,
        })
    }
}

/// Parses a number of columns.
fn width(text: &str) -> Result<usize, String> {
    let columns = text.parse().ok().filter(|columns| *columns >= NARROWEST);
    columns.ok_or_else(|| format!("not a number of columns; give at least {NARROWEST}"))
}

/// Returns the width of a line, from the environment or else from the terminal that is written to.
fn columns(is_stdout: bool) -> Option<usize> {
    let given = variable("COLUMNS").and_then(|text| text.parse().ok());
    let size = || rustix::termios::tcgetwinsize(stdout()).ok().filter(|_| is_stdout);
    given.or_else(|| size().map(|size| usize::from(size.ws_col))).filter(|columns| *columns > 0)
}
