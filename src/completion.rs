//! Generates completions for bash, zsh and fish from the clap definition of a program. Only `make completions` builds
//! this module, with the feature `completions`; the programs for users do not contain it.

mod bash;

use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::generate;

pub use clap_complete::Shell;

/// The hint for a session. clap has no such hint, so a hint that no option uses takes its place.
const SESSION: ValueHint = ValueHint::Username;
/// The hint for the id of a record.
const RECORD: ValueHint = ValueHint::Hostname;
/// The options whose value is the id of a record.
const RECORD_OPTIONS: [&str; 3] = ["at", "expect-tail", "record"];

/// Returns the completions of a program.
#[must_use]
pub fn completions(command: &Command, shell: Shell) -> String {
    let name = command.get_name();
    let mut command = visible(command);
    let mut text = Vec::new();
    match shell {
        Shell::Bash => generate(bash::Bash, &mut command, name, &mut text),
        _ => generate(shell, &mut command, name, &mut text),
    }
    let text = String::from_utf8_lossy(&text);
    let note = format!("# Completion of {name}. `make completions` writes this file.");
    match shell {
        Shell::Zsh => {
            let text = text.replace(":_users'", ":_claw_sessions'");
            let text = text.replace(":_hosts'", ":_claw_records'");
            text.replacen('\n', &format!("\n{note}\n"), 1)
        }
        Shell::Fish => {
            let text = text.replace("(__fish_complete_users)", FISH_SESSIONS);
            let text = text.replace("(__fish_print_hostnames)", FISH_RECORDS);
            format!("{note}\n\n{text}{}", fish_operands(&command))
        }
        _ => format!("{note}\n\n{text}"),
    }
}

/// The command with which fish lists sessions.
const FISH_SESSIONS: &str = "(claw-session list --names 2>/dev/null)";
/// The command with which fish lists the ids of records.
const FISH_RECORDS: &str = "(for word in (commandline -opc)[2..]; \
    claw-session history --ids -n 1000 -- $word 2>/dev/null; and break; end)";

/// Returns lines for operands that are sessions, which clap_complete leaves out for fish.
fn fish_operands(command: &Command) -> String {
    let name = command.get_name();
    let line = |condition: &str| format!("complete -c {name}{condition} -a \"{FISH_SESSIONS}\"\n");
    let mut lines = String::new();
    if has_session(command) {
        lines += &line("");
    }
    for sub in command.get_subcommands().filter(|sub| has_session(sub)) {
        let function = name.replace('-', "_");
        lines += &line(&format!(" -n \"__fish_{function}_using_subcommand {}\"", sub.get_name()));
    }
    lines
}

fn has_session(command: &Command) -> bool {
    command.get_positionals().any(|arg| arg.get_value_hint() == SESSION)
}

/// Returns a copy of a command without its hidden options and commands, which clap_complete would also complete.
fn visible(command: &Command) -> Command {
    let mut shown = Command::new(command.get_name().to_owned()).disable_help_subcommand(true);
    if command.get_version().is_some() {
        shown = shown.version("1");
    }
    let is_shown = |arg: &&Arg| !arg.is_hide_set();
    let args = command.get_arguments().filter(is_shown).map(|arg| visible_arg(command, arg));
    let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(visible);
    shown.about(command.get_about().cloned().unwrap_or_default()).args(args).subcommands(subs)
}

fn visible_arg(command: &Command, arg: &Arg) -> Arg {
    let mut shown = Arg::new(arg.get_id().clone()).global(arg.is_global_set());
    shown = shown.help(arg.get_help().cloned().unwrap_or_default());
    if let Some(long) = arg.get_long() {
        shown = shown.long(long.to_owned());
    }
    if let Some(short) = arg.get_short() {
        shown = shown.short(short);
    }
    for alias in arg.get_visible_aliases().unwrap_or_default() {
        shown = shown.visible_alias(alias.to_owned());
    }
    if !arg.get_action().takes_values() {
        return shown.action(ArgAction::SetTrue);
    }
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    let action = if is_list || !arg.is_positional() { ArgAction::Append } else { ArgAction::Set };
    shown = shown.action(action).value_hint(hint(command, arg)).last(arg.is_last_set());
    shown = if is_list && arg.is_positional() { shown.num_args(0..) } else { shown.num_args(1) };
    shown = shown.require_equals(arg.is_require_equals_set());
    shown = shown.value_names(arg.get_value_names().unwrap_or_default().iter().cloned());
    match arg.get_possible_values() {
        values if values.is_empty() => shown,
        values => shown.value_parser(values),
    }
}

fn hint(command: &Command, arg: &Arg) -> ValueHint {
    let names = arg.get_value_names().unwrap_or_default();
    let value =
        names.first().map_or_else(|| arg.get_id().as_str().to_uppercase(), ToString::to_string);
    let is_name = arg.is_positional() && value == "NAME" && command.get_name() != "new";
    match (value.as_str(), arg.get_long()) {
        ("SESSION", _) => SESSION,
        _ if is_name => SESSION,
        (_, Some(long)) if RECORD_OPTIONS.contains(&long) => RECORD,
        ("DIR", _) => ValueHint::DirPath,
        ("FILE" | "PATH" | "A" | "B", _) => ValueHint::FilePath,
        ("CMD" | "COMMAND", _) => ValueHint::CommandName,
        _ => match arg.get_value_hint() {
            ValueHint::Unknown => ValueHint::Other,
            known => known,
        },
    }
}
