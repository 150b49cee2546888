//! Error messages for invalid command lines and values. Each is one line that ends with what to do.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

/// Returns the text of the error for an invalid command line.
#[must_use]
pub fn usage_error(error: &clap::Error, command: &Command, arguments: &[OsString]) -> String {
    describe(error, called(command, arguments))
}

/// Returns the long name of the option that an error is about: `window` for `--window <TOKENS>`.
pub(super) fn subject(error: &clap::Error) -> Option<String> {
    let argument = error.get(ContextKind::InvalidArg).map(names)?;
    argument.strip_prefix("--").map(str::to_owned)
}

/// Returns the text of the error for an invalid value of the setting `name`.
pub(super) fn invalid_value(error: &clap::Error, name: &str) -> String {
    let value = error.get(ContextKind::InvalidValue).map(given).unwrap_or_default();
    describe_value(error, name, &value, "see claw-config(1)")
}

/// Returns the command or subcommand that was called, and its name as the user types it.
fn called<'c>(command: &'c Command, arguments: &[OsString]) -> (&'c Command, String) {
    let name = command.get_name().to_owned();
    let found = arguments.iter().skip(1).find_map(|word| command.find_subcommand(word));
    found.map_or_else(|| (command, name.clone()), |sub| (sub, format!("{name} {}", sub.get_name())))
}

/// Describes an error, and what to do.
fn describe(error: &clap::Error, (command, called): (&Command, String)) -> String {
    let help = format!("see {called} --help");
    let context = |kind| error.get(kind).map(names).unwrap_or_default();
    let word = |kind| error.get(kind).map(given).unwrap_or_default();
    let argument = context(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let suggested = context(ContextKind::SuggestedArg);
            let unknown = word(ContextKind::InvalidArg);
            format!("unexpected argument '{unknown}'; {}", or_help(&suggested, &help))
        }
        ErrorKind::InvalidSubcommand => {
            let suggested = context(ContextKind::SuggestedSubcommand);
            let unknown = word(ContextKind::InvalidSubcommand);
            format!("no such command: '{unknown}'; {}", or_help(&suggested, &help))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
            format!("a command is required: {}; {help}", all.join(", "))
        }
        ErrorKind::TooManyValues => {
            let value = word(ContextKind::InvalidValue);
            format!("unexpected value '{value}' for {argument}: it takes none; {help}")
        }
        ErrorKind::MissingRequiredArgument => format!("{argument} is required; {help}"),
        ErrorKind::ArgumentConflict => match context(ContextKind::PriorArg) {
            prior if prior == argument => format!("{argument} is given twice; give it once"),
            prior if prior.is_empty() => {
                format!("{argument} cannot be used with other arguments; {help}")
            }
            prior => format!("{argument} and {prior} exclude each other; give one of them"),
        },
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            describe_value(error, &argument, &word(ContextKind::InvalidValue), &help)
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
            Some(wrong) => fault_in_number(wrong).to_owned(),
            None => source.to_string(),
        },
        (None, Some(ContextValue::Strings(valid))) => format!("use {}", one_of(valid)),
        (None, _) => help.to_owned(),
    };
    format!("invalid value '{value}' for {argument}: {why}")
}

fn fault_in_number(error: &ParseIntError) -> &'static str {
    match error.kind() {
        IntErrorKind::Zero => "use 1 or more",
        IntErrorKind::PosOverflow => "too large; use a smaller number",
        _ => "not a whole number; write digits only, without a unit",
    }
}

fn or_help(suggested: &str, help: &str) -> String {
    match suggested {
        "" => help.to_owned(),
        suggested => format!("try {suggested}, or {help}"),
    }
}

/// Returns the word of the command line that an error is about, as it was given.
fn given(value: &ContextValue) -> String {
    match value {
        ContextValue::String(text) => text.clone(),
        _ => String::new(),
    }
}

/// Returns the arguments that an error is about, without the names of their values.
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

/// Joins words as in `a, b or c`.
#[must_use]
pub fn one_of<W: AsRef<str>>(words: &[W]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        words => words.join(", "),
    }
}
