//! Runs `claw-show`: shows, follows or compares transcripts, makes a site of them, or renders Markdown.

use crate::args::ShowArgs;
use crate::{bill, diff, notes, site};
use anyhow::Context;
use clawutils::cli::{Log, Operands, Output, open_stdin, progress};
use clawutils::dialect::Choice;
use clawutils::exit::{Exit, fail};
use clawutils::show::agents::Agents;
use clawutils::show::follow::{Follow, FollowEvent};
use clawutils::show::render::MarkdownLayout;
use clawutils::show::stream::Stream;
use clawutils::show::{self, Format, ShowOptions};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io::{Write, stdout};
use std::path::PathBuf;

/// The pause between two checks of a followed file, in nanoseconds.
const PAUSE: i64 = 200_000_000;

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
            return bill::run(self, operands);
        }
        if self.diff {
            return diff::run(self, operands, log);
        }
        let options = self.options()?;
        if let Some(output) = &self.output
            && site::is_wanted(output, self.format, &operands.files)
        {
            return site::run(self, output, &operands.files, options, log);
        }
        let format = self.format()?;
        if self.follow {
            return self.follow(operands, &options, log);
        }
        let inputs = operands.transcripts_of(&self.dialect)?;
        let _progress = log.progress(progress::reading(&inputs));
        // The title of a page has only the name of the file, so that it does not reveal the author's directories.
        let name = operands.files.first().filter(|path| path.as_os_str() != "-");
        let name = name.and_then(|path| path.file_name()).unwrap_or("transcript".as_ref());
        let name = name.to_string_lossy();
        let agents = self.agents(&operands.files, format);
        notes::write(self, log, |out| show::show(&inputs, &name, &agents, format, &options, out))
    }

    /// Finds the transcripts of subagents, if one file is shown as a page.
    fn agents(&self, files: &[PathBuf], format: Format) -> Agents {
        match files {
            [file] if format == Format::Html && file.as_os_str() != "-" => {
                Agents::of(file, Choice { leaf: None, ..self.dialect.choice() })
            }
            _ => Agents::default(),
        }
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
                FollowEvent::Read(notes) => notes::report_notes(log, &notes)?,
                FollowEvent::Restarted(why) => log.note(&why),
                FollowEvent::Nothing => pause().context("cannot write '<stdout>'")?,
            }
        }
    }
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
