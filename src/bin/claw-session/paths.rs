//! Prints paths: as they are, so that a script can use them, but safe for a terminal.

use clawutils::cli::Output;
use clawutils::printable::printable;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

/// Writes a line that begins with text from outside, such as a path, to standard output.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn print_line(out: &mut Output, text: &OsStr, rest: &str) -> anyhow::Result<()> {
    match std::io::stdout().is_terminal() {
        true => write!(out, "{}", printable(&text.to_string_lossy()))?,
        false => out.write_all(text.as_bytes())?,
    }
    Ok(writeln!(out, "{}", printable(rest))?)
}
