//! Generates completions for bash 3.2 and later. Those of clap_complete do not work for the subcommands of a program
//! with a hyphen in its name, and cannot complete sessions.

use crate::completion::{RECORD, SESSION};
use clap::builder::PossibleValue;
use clap::{Arg, Command, ValueHint};
use clap_complete::Generator;
use std::io::Write;

/// The generator for bash.
pub(super) struct Bash;

impl Generator for Bash {
    fn file_name(&self, name: &str) -> String {
        name.to_owned()
    }

    fn generate(&self, command: &Command, out: &mut dyn Write) {
        let _ = self.try_generate(command, out);
    }

    fn try_generate(&self, command: &Command, out: &mut dyn Write) -> std::io::Result<()> {
        let name = command.get_name();
        let function = format!("_{}", name.replace('-', "_"));
        let (commands, cases) = (commands(command), cases(command));
        let shared = include_str!("shared.bash");
        let own = include_str!("program.bash").replace("FUNCTION", &function);
        let own = own.replace("PROGRAM", name).replace("COMMANDS", &commands);
        write!(out, "{shared}\n{}", own.replace("\t\tCASES\n", &cases))
    }
}

/// Returns the patterns that select a command.
fn commands(command: &Command) -> String {
    let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    if names.is_empty() { "' '".to_owned() } else { names.join(" | ") }
}

/// Returns the cases of a program and its commands.
fn cases(command: &Command) -> String {
    let names = command.get_subcommands().map(|sub| sub.get_name().to_owned());
    let own = case("", command, names.collect());
    let subs = command.get_subcommands().map(|sub| case(sub.get_name(), sub, Vec::new()));
    own + &subs.collect::<String>()
}

/// Returns the case of one command: its options, the kinds of their values, and the kind of its operands.
fn case(name: &str, command: &Command, commands: Vec<String>) -> String {
    let options: Vec<String> =
        command.get_opts().chain(flags(command)).flat_map(spellings).collect();
    let mut text = format!("\t\t'{name}')\n\t\t\toptions='{}'\n", options.join(" "));
    let operand = command.get_positionals().map(kind).find(|kind| kind != "other");
    let operand = if commands.is_empty() { operand } else { Some(words(commands)) };
    if let Some(operand) = operand {
        text += &format!("\t\t\tkind='{operand}'\n");
    }
    let rows = command
        .get_opts()
        .map(|arg| format!("\t\t\t{}) kind='{}' ;;\n", spellings(arg).join(" | "), kind(arg)));
    let rows: String = rows.collect();
    if !rows.is_empty() {
        text += &format!("\t\t\tcase $previous in\n{rows}\t\t\tesac\n");
    }
    text + "\t\t\t;;\n"
}

/// Returns the options without values.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional() && !arg.get_action().takes_values())
}

/// Returns the names of an option, with their dashes.
fn spellings(arg: &Arg) -> Vec<String> {
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let long = arg.get_long().into_iter().chain(aliases).map(|long| format!("--{long}"));
    arg.get_short().map(|short| format!("-{short}")).into_iter().chain(long).collect()
}

/// Returns the kind of a value, for `_claw_reply` in shared.bash.
fn kind(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    if !values.is_empty() {
        let shown = values.iter().filter(|value| !value.is_hide_set());
        return words(shown.map(PossibleValue::get_name).map(str::to_owned).collect());
    }
    match arg.get_value_hint() {
        SESSION => "session",
        RECORD => "record",
        ValueHint::DirPath => "directory",
        ValueHint::FilePath | ValueHint::AnyPath => "file",
        ValueHint::CommandName | ValueHint::CommandString => "command",
        _ => "other",
    }
    .to_owned()
}

fn words(words: Vec<String>) -> String {
    format!("words {}", words.join(" "))
}
