//! Runs `claw-show`: chooses the format, the width and the colours, and shows or follows transcripts, or renders
//! Markdown.

use crate::file;
use anyhow::Context;
use clawutils::cli::options::RedactArgs;
use clawutils::cli::{
    DialectArgs, Log, Operands, Output, open_stdin, prices, progress, report, variable,
};
use clawutils::cost::{Bill, PriceList};
use clawutils::exit::{Exit, fail};
use clawutils::input::lines::Lines;
use clawutils::messages::range::{self, RebuildOptions};
use clawutils::printable::printable;
use clawutils::show::follow::{Follow, FollowEvent};
use clawutils::show::render::MarkdownLayout;
use clawutils::show::stream::Stream;
use clawutils::show::{self, Format, ShowNotes, ShowOptions};
use clawutils::usage::Calls;
use jiff::tz::TimeZone;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{IsTerminal, Write, stdout};
use std::path::PathBuf;

/// The pause between two checks of a followed file, in nanoseconds.
const PAUSE: i64 = 200_000_000;
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
    /// Write to a new file instead of standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "markdown"])]
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
    /// Show the file, and then what is appended to it, until a signal ends the program
    #[arg(long)]
    pub follow: bool,
    /// Render Markdown from standard input for a terminal as it arrives, instead of a transcript
    #[arg(long, conflicts_with_all = ["format", "full", "limit_turns", "turn", "follow", "cost", "redact"])]
    pub markdown: bool,
    /// Number of columns of the text, at least 24 (default: COLUMNS, the width of the terminal, or 80)
    #[arg(long, value_name = "N")]
    pub width: Option<usize>,
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
    /// Shows the operands.
    ///
    /// # Errors
    /// Fails with 2 if options cannot be combined; 65 for a dialect that cannot be read; 74, 77 or 141 if reading or
    /// writing fails.
    pub fn run(&self, operands: &Operands, log: Log) -> anyhow::Result<Exit> {
        if self.markdown {
            return self.markdown(operands);
        }
        if self.cost {
            return self.bill(operands);
        }
        let (options, format) = (self.options()?, self.format()?);
        if self.follow {
            return self.follow(operands, &options, log);
        }
        let inputs = operands.transcripts_of(&self.dialect)?;
        let _progress = log.progress(progress::reading(&inputs));
        // The title of a page has only the name of the file, so that it does not reveal the author's directories.
        let name = operands.files.first().filter(|path| path.as_os_str() != "-");
        let name = name.and_then(|path| path.file_name()).unwrap_or("transcript".as_ref());
        let name = name.to_string_lossy();
        let show = |out: &mut dyn Write| show::show(&inputs, &name, format, &options, out);
        let notes = match &self.output {
            Some(path) => file::create(path, self.replace, show)?,
            None => {
                let mut out = Output::open();
                let notes = show(&mut out)?;
                out.finish()?;
                notes
            }
        };
        report_notes(log, &notes)?;
        Ok(Exit::Done)
    }

    fn prices(&self) -> anyhow::Result<PriceList> {
        prices(self.prices.as_deref(), self.models.as_deref())
    }

    /// Writes the bill for the calls in the selected turns; nothing if they have no counts.
    fn bill(&self, operands: &Operands) -> anyhow::Result<Exit> {
        let (inputs, prices) = (operands.transcripts_of(&self.dialect)?, self.prices()?);
        let limit_turns = self.limit_turns.or(self.turn.map(|_| 1));
        let part = RebuildOptions { to_turn: self.turn, limit_turns, ..RebuildOptions::default() };
        let mut lines = Lines::new(&inputs, range::find(&inputs, &part)?);
        let mut calls = Calls::default();
        while let Some(batch) = lines.batch()? {
            batch.flatten().for_each(|line| calls.take(&line.object, &line.place));
        }
        let bill = Bill::of(calls.each(), &prices);
        let line = printable(&bill.line(&prices)).into_owned();
        let mut out = Output::open();
        if !bill.is_empty() {
            let line = if self.has_color() { format!("\x1b[2m{line}\x1b[0m") } else { line };
            writeln!(out, "{line}").context("cannot write '<stdout>'")?;
        }
        out.finish()?;
        Ok(Exit::Done)
    }

    /// Lays out Markdown from standard input. Each row is shown as soon as no further text can change it.
    fn markdown(&self, operands: &Operands) -> anyhow::Result<Exit> {
        if !operands.files.is_empty() {
            return fail(
                Exit::Usage,
                "cannot use --markdown with files: it reads standard input; leave the files out",
            );
        }
        let layout =
            MarkdownLayout { width: self.columns(), color: self.has_color(), has_all: false };
        drop(open_stdin()?);
        let mut stream = Stream::new(layout, Output::open());
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match rustix::io::read(std::io::stdin(), &mut buffer) {
                Ok(0) => break,
                Ok(length) => stream.take(&buffer[..length]).context("cannot write '<stdout>'")?,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => {
                    return Err(std::io::Error::from(error)).context("cannot read '<stdin>'");
                }
            }
        }
        stream.end().context("cannot write '<stdout>'")?.finish()?;
        Ok(Exit::Done)
    }

    /// Returns the format from the option, else the one that the name of the output file selects.
    fn format(&self) -> anyhow::Result<Format> {
        match (self.format, &self.output) {
            (Some(format), _) => Ok(format),
            (None, Some(path)) => file::format(path),
            (None, None) => Ok(Format::Text),
        }
    }

    fn columns(&self) -> usize {
        self.width.or_else(|| columns(self.output.is_none())).unwrap_or(WIDTH)
    }

    fn has_color(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                self.output.is_none() && stdout().is_terminal() && variable("NO_COLOR").is_none()
            }
        }
    }

    fn options(&self) -> anyhow::Result<ShowOptions> {
        Ok(ShowOptions {
            full: self.full,
            limit_turns: self.limit_turns,
            turn: self.turn,
            redact: self.redact.patterns()?,
            prices: self.prices()?,
            zone: TimeZone::try_system().unwrap_or(TimeZone::UTC),
            width: self.columns(),
            color: self.has_color(),
        })
    }

    fn follow(&self, operands: &Operands, options: &ShowOptions, log: Log) -> anyhow::Result<Exit> {
        if self.format.is_some_and(|format| format != Format::Text) {
            return fail(Exit::Usage, "--follow writes only text; omit --format");
        }
        let [path] = operands.files.as_slice() else {
            return fail(Exit::Usage, "--follow takes one file; name one");
        };
        if path.as_os_str() == "-" {
            return fail(Exit::Usage, "cannot follow '<stdin>'; name a file");
        }
        let mut out = Output::open();
        // Passed as a `dyn Write`, as in `run`, so that the code that writes text is compiled only once.
        let mut follow = Follow::open(path, options, &mut out as &mut dyn Write)?;
        loop {
            match follow.step()? {
                FollowEvent::Read(notes) => report_notes(log, &notes)?,
                FollowEvent::Restarted(why) => log.note(&why),
                FollowEvent::Nothing => pause().context("cannot write '<stdout>'")?,
            }
        }
    }
}

/// Reports the diagnostics.
fn report_notes(log: Log, notes: &ShowNotes) -> anyhow::Result<()> {
    report(log, &notes.findings, false)?;
    log.replaced(notes.replaced);
    Ok(())
}

/// Returns the width of a line, from the environment or else from the terminal that is written to.
fn columns(is_stdout: bool) -> Option<usize> {
    let given = variable("COLUMNS").and_then(|text| text.parse().ok());
    let size = || rustix::termios::tcgetwinsize(stdout()).ok().filter(|_| is_stdout);
    given.or_else(|| size().map(|size| usize::from(size.ws_col))).filter(|columns| *columns > 0)
}

/// Waits before the next check. If the reader of standard output closes it, fails at once, as a write would.
fn pause() -> std::io::Result<()> {
    let stdout = stdout();
    let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
    let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE };
    match rustix::event::poll(&mut ends, Some(&pause)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    match ends[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
        true => Err(std::io::ErrorKind::BrokenPipe.into()),
        false => Ok(()),
    }
}
