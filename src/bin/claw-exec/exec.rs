//! `claw-exec`: decides which tool calls may run, runs them, and writes the results.

use anyhow::Context;
use clawutils::cli::model::state_dir;
use clawutils::cli::options::{PermitArgs, WorkspaceArgs};
use clawutils::cli::{Log, Operands, Output, progress, variable};
use clawutils::exec::tools::Directory;
use clawutils::exec::{self, ExecSettings, Job, JobEvent, Running, ToolCall, environment};
use clawutils::exit::{Exit, fail};
use clawutils::printable::{printable, printable_json};
use clawutils::process::signals;
use clawutils::session::turn::WatchedTurn;
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// The options of `claw-exec`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExecArgs {
    /// Directory of tools, one executable each
    #[arg(long, value_name = "DIR", env = "CLAW_TOOLS")]
    pub tools: Option<PathBuf>,
    /// The workspace.
    #[command(flatten)]
    pub workspace: WorkspaceArgs,
    /// The tools that may run, and how.
    #[command(flatten)]
    pub permits: PermitArgs,
    /// Maximum length of a result in bytes; longer output is kept in a file
    #[arg(long, value_name = "BYTES", default_value_t = 100_000)]
    pub max_output: usize,
    /// Directory for longer output, one file per call (default: output in CLAW_STATE_DIR)
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

impl ExecArgs {
    /// Runs the tool calls among the records of all inputs and writes a result for each.
    ///
    /// # Errors
    /// Status 2 if `--tools` is missing, 65 if an input holds anything but records, 78 if the tools or the workspace
    /// are not a directory, 74 if standard output cannot be written.
    pub fn run(&self, operands: &Operands, log: Log) -> anyhow::Result<Exit> {
        let Some(tools) = &self.tools else {
            return fail(Exit::Usage, "--tools is required; see claw-exec --help");
        };
        let (directory, settings) = (Directory::open(tools)?, self.settings()?);
        let mut calls = Vec::new();
        for input in operands.transcripts()? {
            let bytes = input.bytes()?;
            calls.extend(exec::calls(&input.name, &bytes)?);
        }
        let is_turn = variable("CLAW_SESSION").is_some();
        if is_turn && !self.permits.ask && !calls.is_empty() {
            let names: Vec<Cow<'_, str>> = calls.iter().map(|call| printable(&call.name)).collect();
            log.note(&format!("running {}", names.join(", ")));
        }
        // The user is asked here. Signals are caught only afterwards, so that a signal during a question ends the
        // program.
        let jobs: Vec<Job> = calls.into_iter().map(|call| self.job(&directory, call)).collect();
        let (sender, events) = channel();
        listen(sender.clone()).context("cannot handle signals")?;
        let running = settings.running.clone();
        let progress = log.progress(move || {
            let (names, first) = running.now()?;
            Some(format!("running {} ({} s)", names.join(", "), first.elapsed().as_secs()))
        });
        let mut out = Output::open();
        let stopped = exec::run(&jobs, &settings, (&sender, &events), |record| {
            writeln!(out, "{record}").and_then(|()| out.flush()).context("cannot write '<stdout>'")
        })?;
        drop(progress);
        out.finish()?;
        let Some(signal) = stopped else { return Ok(Exit::Done) };
        log.note(
            "stopped by a signal; the running tools were killed and their calls have no result",
        );
        emulate_default_handler(signal)?;
        Ok(Exit::Failed)
    }

    fn settings(&self) -> anyhow::Result<ExecSettings> {
        let workspace = self.workspace.require()?;
        Ok(ExecSettings {
            jobs: self
                .permits
                .jobs
                .or_else(|| thread::available_parallelism().ok())
                .unwrap_or(NonZeroUsize::MIN),
            timeout: self.permits.exec_timeout,
            max_output: self.max_output,
            keep: self.keep.clone().or_else(|| state_dir().map(|dir| dir.join("output"))),
            workspace,
            environment: self.environment(),
            running: Running::default(),
        })
    }

    /// Returns the environment for tools. The transcript's path is made absolute, because tools run in the workspace.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut visible = environment::visible(std::env::vars_os(), &self.permits.pass_env);
        for (_, path) in visible.iter_mut().filter(|(name, _)| name == "CLAW_SESSION") {
            *path =
                std::path::absolute(&*path).map_or_else(|_| path.clone(), PathBuf::into_os_string);
        }
        visible
    }

    fn job(&self, directory: &Directory, call: ToolCall) -> Job {
        let tool = self.permit(&call).and_then(|()| directory.find(&call.name));
        Job { call, tool }
    }

    /// Checks that a call may run. Returns the reason if it may not.
    fn permit(&self, call: &ToolCall) -> Result<(), String> {
        let (name, permits) = (&call.name, &self.permits);
        let is_named = permits.allow.contains(name);
        if permits.deny.contains(name) || !(is_named || permits.allow.is_empty() || permits.ask) {
            return Err(format!("tool '{name}' is not allowed here; it was not run"));
        }
        if is_named || !permits.ask {
            return Ok(());
        }
        match ask(call) {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(format!("the user did not allow this call of tool '{name}'; it was not run"))
            }
            Err(_) => Err(format!(
                "tool '{name}' is not allowed, because there is no terminal to ask the user; it was not run"
            )),
        }
    }
}

/// Asks the user on the terminal whether a call may run. The whole call is shown, with control characters escaped, so
/// that the user sees everything that would run.
fn ask(call: &ToolCall) -> std::io::Result<bool> {
    let mut terminal = Terminal::open()?;
    let (name, input) = (printable(&call.name), printable_json(&call.input).into_owned());
    progress::clear();
    write!(terminal.file, "run {name} {input}? [y/N] ")?;
    let mut answer = String::new();
    BufReader::new(&terminal.file).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The terminal during a question, in line mode with echo. Input typed before the question is discarded. The previous
/// mode is restored on drop.
struct Terminal {
    file: File,
    before: Termios,
}

impl Terminal {
    fn open() -> std::io::Result<Terminal> {
        let file: File = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut asking = before.clone();
        asking.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        asking.input_modes |= InputModes::ICRNL;
        tcsetattr(&file, OptionalActions::Flush, &asking)?;
        Ok(Terminal { file, before })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // This fails only if the terminal has been closed.
        let _ = tcsetattr(&self.file, OptionalActions::Drain, &self.before);
    }
}

/// Forwards the signals that end programs as events. Ignored signals stay ignored, such as SIGHUP after nohup(1). The
/// end of the turn that started this program is forwarded like a SIGTERM.
fn listen(sender: Sender<JobEvent>) -> std::io::Result<()> {
    signals::leave();
    let caught = signals::not_ignored(&signals::ENDING);
    let mut signals = Signals::new(caught)?;
    let turn_sender = sender.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            let _ = sender.send(JobEvent::Signal(signal));
        }
    });
    let transcript = variable("CLAW_SESSION");
    if let Some(turn) = transcript.and_then(|path| WatchedTurn::of(Path::new(&path))) {
        // A turn that was killed cannot end its tools, and the next turn would run the same calls in parallel.
        thread::spawn(move || {
            if turn.await_end() {
                let _ = turn_sender.send(JobEvent::Signal(SIGTERM));
            }
        });
    }
    Ok(())
}
