//! Command line parsing, in one place, so that every program reports mistakes in the same way: in one line that ends with
//! what to do.

use crate::cli::config;
use crate::cli::diagnostics;
use crate::cli::settings::{self, Failed, Parsed, Setting, Value};
use crate::exit::{Error, Exit};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, Parser};
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, NonZeroU64, ParseIntError};
use std::time::Duration;

/// Reads the arguments of this process. Help and version are printed, and end it.
///
/// # Errors
/// 2 when the command line is wrong; 78 when a variable or the configuration file is.
pub fn parse<A: Parser>() -> anyhow::Result<A> {
    let arguments = of_process();
    let parsed = read::<A>(&arguments).and_then(|mut parsed| from_matches(&mut parsed.matches));
    parsed.map_err(|failed| why(failed, &arguments))
}

/// Parses only the flags of this process, for commands that must work in spite of an invalid variable or configuration
/// file. The format of diagnostics is still taken from these.
///
/// # Errors
/// 2 when the command line is wrong.
pub fn parse_flags<A: Parser>() -> anyhow::Result<(A, ArgMatches)> {
    let arguments = of_process();
    let given = settings::flags(&with_negative_numbers(A::command()), &arguments);
    let parsed = given.and_then(|given| Ok((from_matches(&mut given.clone())?, given)));
    let (parsed, given) = parsed.map_err(|failed| why(failed, &arguments))?;
    if !log_json_if_asked(&arguments) && config::open(&given).is_ok_and(|file| file.logs_json()) {
        diagnostics::log_json();
    }
    Ok((parsed, given))
}

/// Returns the settings of this process with their values.
///
/// # Errors
/// As [`parse`].
pub fn decided<A: Parser>() -> anyhow::Result<Vec<(Setting, Value)>> {
    let arguments = of_process();
    read::<A>(&arguments).map(|parsed| parsed.settings).map_err(|failed| why(failed, &arguments))
}

fn of_process() -> Vec<OsString> {
    std::env::args_os().collect()
}

fn from_matches<A: Parser>(matches: &mut ArgMatches) -> Result<A, Failed> {
    A::from_arg_matches_mut(matches).map_err(|error| Failed::Usage(Box::new(A::command()), error))
}

/// Returns the error for a command line that cannot be parsed. Prints help and version, and ends the process.
fn why(failed: Failed, arguments: &[OsString]) -> anyhow::Error {
    log_json_if_asked(arguments);
    match failed {
        Failed::Config(error) => error,
        Failed::Usage(_, error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            error.exit()
        }
        Failed::Usage(command, error) => {
            Error::new(Exit::Usage, usage_error(&error, &command, arguments)).into()
        }
    }
}

/// Parses `arguments`, the program's name first, as defined by `A`, and finds the values of its settings.
///
/// # Errors
/// See [`Failed`].
pub fn read<A: Parser>(arguments: &[OsString]) -> Result<Parsed, Failed> {
    settings::read(with_negative_numbers(A::command()), arguments)
}

/// Selects JSON for diagnostics if the command line asks for it, else if the variable does. Returns whether either is
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

/// Returns the text of an error about the command line.
#[must_use]
pub fn usage_error(error: &clap::Error, command: &Command, arguments: &[OsString]) -> String {
    describe(error, called(command, arguments))
}

/// Returns the long name of the option that an error is about: `window` for `--window <TOKENS>`.
pub(super) fn subject(error: &clap::Error) -> Option<String> {
    let argument = error.get(ContextKind::InvalidArg).map(names)?;
    argument.strip_prefix("--").map(str::to_owned)
}

/// Returns the text of an error about a value of the setting `name`.
pub(super) fn invalid_value(error: &clap::Error, name: &str) -> String {
    let value = error.get(ContextKind::InvalidValue).map(names).unwrap_or_default();
    describe_value(error, name, &value, "see claw-config(1)")
}

/// Lets options take a negative number as their value, so that the error is about the number.
fn with_negative_numbers(command: Command) -> Command {
    let is_option = |arg: &Arg| !arg.is_positional() && arg.get_action().takes_values();
    let allow = |arg: Arg| match is_option(&arg) {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(allow).mut_subcommands(with_negative_numbers)
}

/// The command that was called, with its name as the user types it.
fn called<'c>(command: &'c Command, arguments: &[OsString]) -> (&'c Command, String) {
    let name = command.get_name().to_owned();
    let found = arguments.iter().skip(1).find_map(|word| command.find_subcommand(word));
    found.map_or_else(|| (command, name.clone()), |sub| (sub, format!("{name} {}", sub.get_name())))
}

/// Says what is wrong, and what to do.
fn describe(error: &clap::Error, (command, called): (&Command, String)) -> String {
    let help = format!("see {called} --help");
    let context = |kind| error.get(kind).map(names).unwrap_or_default();
    let argument = context(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let suggested = context(ContextKind::SuggestedArg);
            format!("unexpected argument '{argument}'; {}", or_help(&suggested, &help))
        }
        ErrorKind::InvalidSubcommand => {
            let suggested = context(ContextKind::SuggestedSubcommand);
            let unknown = context(ContextKind::InvalidSubcommand);
            format!("no such command: '{unknown}'; {}", or_help(&suggested, &help))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            format!("a command is required: {}; {help}", all.join(", "))
        }
        ErrorKind::TooManyValues => {
            let value = context(ContextKind::InvalidValue);
            format!("unexpected value '{value}' for {argument}: it takes none; {help}")
        }
        ErrorKind::MissingRequiredArgument => format!("{argument} is required; {help}"),
        ErrorKind::ArgumentConflict => match context(ContextKind::PriorArg) {
            prior if prior == argument => format!("{argument} is given twice; give it once"),
            prior if prior.is_empty() => format!("{argument} cannot be used with others; {help}"),
            prior => format!("{argument} and {prior} exclude each other; give one of them"),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            describe_value(error, &argument, &context(ContextKind::InvalidValue), &help)
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("{}; {help}", line.trim_start_matches("error: "))
        }
    }
}

fn describe_value(error: &clap::Error, argument: &str, value: &str, help: &str) -> String {
    if value.is_empty() {
        return format!("a value is required for {argument}; {help}");
    }
    let why = match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) => match source.downcast_ref::<ParseIntError>() {
            Some(wrong) => why_no_number(wrong).to_owned(),
            None => source.to_string(),
        },
        (None, Some(ContextValue::Strings(valid))) => format!("use {}", or(valid)),
        (None, _) => help.to_owned(),
    };
    format!("invalid value '{value}' for {argument}: {why}")
}

fn why_no_number(error: &ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::Zero => "use 1 or more",
        IntErrorKind::PosOverflow => "too large; use a smaller number",
        _ => "not a whole number; write digits alone, without a unit",
    }
}

fn or_help(suggested: &str, help: &str) -> String {
    match suggested {
        "" => help.to_owned(),
        suggested => format!("try {suggested}, or {help}"),
    }
}

/// The arguments that an error is about, without the names of their values.
fn names(value: &ContextValue) -> String {
    let name = |text: &String| match text.split_once([' ', '[']) {
        Some((option, _)) if text.starts_with('-') => option.to_owned(),
        _ => text.trim_matches(['<', '>', '[', ']', '.']).to_owned(),
    };
    match value {
        ContextValue::String(text) => name(text),
        ContextValue::Strings(texts) => texts.iter().map(name).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    }
}

/// `a, b or c`.
fn or(words: &[String]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.join(", "),
    }
}

/// Reads an argument that is a whole number, at least 1.
///
/// # Errors
/// When it is none.
pub fn positive(text: &str) -> Result<u64, ParseIntError> {
    text.parse().map(NonZeroU64::get)
}

/// Reads an argument that is a length of time in seconds, with or without fraction.
///
/// # Errors
/// When it is not one.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds
        .ok_or_else(|| "not a number of seconds; write digits alone, such as 90 or 0.5".to_owned())
}

/// Reads an argument that is a share, from 0 to 1.
///
/// # Errors
/// When it is not one.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a share from 0 to 1; write 0.3 for 30 %".to_owned())
}
