//! Options of subcommands that are defined only if the command line needs them.

use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches};
use std::cell::Cell;
use std::ffi::OsString;

/// The options of a subcommand, which [`command_for`] may leave out.
#[derive(Clone, Debug)]
pub struct Deferred<A>(pub A);

thread_local! {
    static OPTIONS_ARE_LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Returns the command `A`. If `arguments` ask for the help or the version of the whole program, the deferred options
/// are left out: the text contains only the names and descriptions of the subcommands, and defining their options would
/// take longer than printing it.
#[must_use]
pub fn command_for<A: CommandFactory>(arguments: &[OsString]) -> Command {
    OPTIONS_ARE_LEFT_OUT.set(is_about_whole_program(arguments));
    let command = A::command();
    OPTIONS_ARE_LEFT_OUT.set(false);
    command
}

/// Returns true if `arguments`, the program's name first, are exactly `--help` or `--version`.
pub(super) fn is_about_whole_program(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, word] if word == "--help" || word == "--version")
}

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: Command) -> Command {
        if OPTIONS_ARE_LEFT_OUT.get() { command } else { A::augment_args(command) }
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Deferred<A>, clap::Error> {
        A::from_arg_matches(matches).map(Deferred)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Deferred<A>, clap::Error> {
        A::from_arg_matches_mut(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(subcommand)]
        _command: Subcommand,
    }

    #[derive(clap::Subcommand)]
    enum Subcommand {
        Copy(Deferred<CopyArgs>),
    }

    #[derive(clap::Args)]
    struct CopyArgs {
        #[arg(long)]
        _force: bool,
    }

    #[test]
    fn options_are_left_out_for_the_text_of_the_whole_program_only() {
        let number = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let command = command_for::<Program>(&words);
            command.find_subcommand("copy").map(|copy| copy.get_arguments().count())
        };
        assert_eq!(number(&["p", "--help"]), Some(0));
        assert_eq!(number(&["p", "--version"]), Some(0));
        assert_eq!(number(&["p", "copy", "--help"]), Some(1));
        assert_eq!(number(&["p", "--help", "copy"]), Some(1));
        assert_eq!(number(&["p"]), Some(1));
    }
}
