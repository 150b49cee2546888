//! Command line parsing. All programs use this module, so they report mistakes in the same way: in one line that ends
//! with what to do.

use crate::cli::{ENVIRONMENT, config, diagnostics};
use crate::exit::{Error, Exit};
use crate::settings::decide::{CommandLine, CommandLineError, Parsed};
use crate::settings::mistakes::usage_error;
use crate::settings::{Setting, SettingValue};
use clap::error::ErrorKind;
use clap::{ArgMatches, Parser};
use std::ffi::OsString;

/// Parses the arguments of this process. For help and version, prints them and exits.
///
/// # Errors
/// Fails with 2 if the command line is invalid, and with 78 if a variable or the configuration file is.
pub fn parse<A: Parser>() -> anyhow::Result<A> {
    let arguments = process_arguments();
    let parsed = read::<A>(&arguments).and_then(|mut parsed| from_matches(&mut parsed.matches));
    parsed.map_err(|failed| into_error(failed, &arguments))
}

/// Parses only the flags of this process, for commands that must work in spite of an invalid variable or configuration
/// file. The format of diagnostics is still taken from the flag, the variable or the file.
///
/// # Errors
/// Fails with 2 if the command line is invalid.
pub fn parse_flags<A: Parser>() -> anyhow::Result<(A, ArgMatches)> {
    let arguments = process_arguments();
    #[cfg(feature = "completions")]
    print_completions_if_asked(&A::command(), &arguments);
    let line = CommandLine::parse(A::command(), &arguments);
    let parsed = line.and_then(|line| Ok((from_matches(&mut line.given.clone())?, line.given)));
    let (parsed, given) = parsed.map_err(|failed| into_error(failed, &arguments))?;
    if !log_json_if_asked(&arguments) && config::open(&given).is_ok_and(|file| file.logs_json()) {
        diagnostics::log_json();
    }
    Ok((parsed, given))
}

/// Returns the settings of this process with their values.
///
/// # Errors
/// Fails as [`parse`] does.
pub fn decided<A: Parser>() -> anyhow::Result<Vec<(Setting, SettingValue)>> {
    let arguments = process_arguments();
    read::<A>(&arguments)
        .map(|parsed| parsed.settings)
        .map_err(|failed| into_error(failed, &arguments))
}

/// If the only argument is `--completions=SHELL`, prints the completions for that shell and ends the program.
#[cfg(feature = "completions")]
#[expect(clippy::exit, reason = "it is called before the program does anything else")]
fn print_completions_if_asked(command: &clap::Command, arguments: &[OsString]) {
    use std::io::Write;
    let [_, argument] = arguments else { return };
    let shell = argument.to_str().and_then(|text| text.strip_prefix("--completions="));
    let Some(shell) = shell.and_then(|name| name.parse().ok()) else { return };
    let text = crate::completion::completions(command, shell);
    let written = std::io::stdout().write_all(text.as_bytes());
    std::process::exit(written.is_err().into());
}

fn process_arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

fn from_matches<A: Parser>(matches: &mut ArgMatches) -> Result<A, CommandLineError> {
    A::from_arg_matches_mut(matches)
        .map_err(|error| CommandLineError::Usage(Box::new(A::command()), error))
}

/// Returns the error for a command line that cannot be parsed. For help and version, prints them and exits.
fn into_error(failed: CommandLineError, arguments: &[OsString]) -> anyhow::Error {
    log_json_if_asked(arguments);
    match failed {
        CommandLineError::Config(error) => error,
        CommandLineError::Usage(_, error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            error.exit()
        }
        CommandLineError::Usage(command, error) => {
            Error::new(Exit::Usage, usage_error(&error, &command, arguments)).into()
        }
    }
}

/// Parses `arguments`, the program's name first, as defined by `A`, and finds the values of its settings.
///
/// # Errors
/// See [`CommandLineError`].
pub fn read<A: Parser>(arguments: &[OsString]) -> Result<Parsed, CommandLineError> {
    #[cfg(feature = "completions")]
    print_completions_if_asked(&A::command(), arguments);
    let line = CommandLine::parse(A::command(), arguments)?;
    let file = config::open(&line.given)?;
    line.decide(ENVIRONMENT, &file)
}

/// Selects JSON for diagnostics if `--log`, or without it `CLAW_LOG`, is `json`. Returns true if either of them is
/// given.
fn log_json_if_asked(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().enumerate();
    let asked = words.find_map(|(at, word)| match word.to_str()?.strip_prefix("--log")? {
        "" => Some(arguments.get(at + 1)?.to_owned()),
        value => Some(value.strip_prefix('=')?.into()),
    });
    let format = asked.or_else(|| std::env::var_os("CLAW_LOG"));
    if format.as_ref().is_some_and(|format| format == "json") {
        diagnostics::log_json();
    }
    format.is_some()
}
