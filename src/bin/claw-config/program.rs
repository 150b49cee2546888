//! Checks that the program of a shell command exists.

use std::process::{Command, Stdio};

/// Returns the program of a command if the shell cannot find it. Skips variable assignments before the program,
/// and does not check a word that the shell would expand or unquote.
pub fn not_found(command: &str) -> Option<&str> {
    let mut words = command.split_whitespace();
    let program = words.find(|word| !word.contains('=')).unwrap_or_default();
    if program.contains(|c: char| !c.is_alphanumeric() && !"/._-+@%:".contains(c)) {
        return None;
    }
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "command -v -- \"$1\"", "sh", program]);
    let status = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_found = status.is_ok_and(|status| status.success());
    (!is_found).then_some(program)
}
