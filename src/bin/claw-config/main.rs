//! claw-config: show, change and check the settings of all programs, and parse the command lines of the scripts.

mod all;
mod check;
mod edit;
mod export;
mod list;
mod plan;
mod program;
mod scripts;
mod shell;
mod stage;
mod value;

use all::All;
use clap::{ArgMatches, CommandFactory, Parser, Subcommand};
use clawutils::cli::{self, LogArgs, arguments, diagnostics};
use clawutils::exit::Exit;
use clawutils::settings::{self, decide};
use std::ffi::OsString;
use std::process::ExitCode;

/// Show and change settings
#[derive(Parser)]
#[command(name = "claw-config", version, after_help = AFTER_HELP)]
struct Args<S: clap::Args> {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    settings: S,
}

/// Replaces [`All`] for the commands that do not need the settings of other programs.
#[derive(clap::Args)]
struct NoSettings {}

const AFTER_HELP: &str = "\
Without a command, all settings are listed. Options of other programs that correspond to settings are accepted, too; \
list then shows the values that they give.

Examples:
  Show the settings that are not at their defaults, and where they come from:
      claw-config list --changed
  Store a setting in the configuration file:
      claw-config set model claude-haiku-4-5";

#[derive(Subcommand)]
enum Command {
    List(list::List),
    Get(list::Get),
    Set(edit::Set),
    Unset(edit::Unset),
    /// Print the path of the configuration file
    Path,
    /// Check the configuration file, all its profiles, and the files and programs that they name
    Check,
    Export(export::Export),
    Shell(shell::Shell),
    Stage(stage::StageArgs),
    /// Write a diagnostic to standard error, in the format of --log
    Say {
        /// Name of the program that the diagnostic is from
        program: String,
        /// Text of the diagnostic
        text: String,
    },
}

fn main() -> ExitCode {
    // The definitions of all settings take 2 ms to build. The commands that scripts run do not need them, and
    // neither does --help, which hides the options of other programs.
    let needs_no_settings = |word: OsString| {
        ["shell", "say", "stage", "--help", "-h", "--version", "-V"]
            .iter()
            .any(|known| word == *known)
    };
    cli::run(
        "claw-config",
        match std::env::args_os().nth(1).is_some_and(needs_no_settings) {
            true => run::<NoSettings>,
            false => run::<All>,
        },
    )
}

fn run<S: clap::Args>() -> anyhow::Result<Exit> {
    let (args, given) = arguments::parse_flags::<Args<S>>()?;
    let log = args.log.open("claw-config");
    match args.command.unwrap_or_else(|| Command::List(list::List::default())) {
        Command::List(list) => list.run(),
        Command::Get(get) => get.run(),
        Command::Set(set) => set.run(&given),
        Command::Unset(unset) => unset.run(&given),
        Command::Path => list::path(&given),
        Command::Check => check::check(&given, log),
        Command::Export(export) => export.run(),
        Command::Shell(shell) => shell.run(options(&Args::<S>::command(), &given)),
        Command::Stage(stage) => stage.run(),
        Command::Say { program, text } => {
            diagnostics::say(&program, &text);
            Ok(Exit::Done)
        }
    }
}

/// Returns the options on the command line that are settings.
fn options(command: &clap::Command, given: &ArgMatches) -> Vec<OsString> {
    let of = |setting| Some(export::flags(&setting, &decide::by_flag(&setting, given)?.texts));
    settings::of(command).into_iter().filter_map(of).flatten().collect()
}
