//! Diagnostics on standard error, and the exit status.
//!
//! [`run`] wraps the `main` of every program. It prints an error once, as `claw-x: what failed 'subject': cause`, and
//! returns its status. If the reader of standard output has gone away, it prints nothing and the status is 141.

use crate::cli::progress;
use crate::exit::{Error, Exit, status, text};
use crate::json::write::Members;
use crate::printable::{printable, printable_json};
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a program's body and turns its outcome into an exit status.
///
/// Prints an error on standard error as one line, `NAME: message: cause`. Control characters are escaped, so that text
/// from outside cannot control the terminal. If standard error is closed, nothing is reported.
pub fn run<T: Into<ExitCode>>(name: &str, body: impl FnOnce() -> anyhow::Result<T>) -> ExitCode {
    match body() {
        Ok(exit) => exit.into(),
        Err(error) => report(name, &error).into(),
    }
}

/// Prints an error of the program `name` and returns its status.
pub fn report(name: &str, error: &anyhow::Error) -> Exit {
    let exit = status(error);
    if exit != Exit::ReaderGone {
        say_with(name, &text(error), &members(error, exit));
    }
    exit
}

/// Returns the members of an error for `--log json`: its status, and its own members.
fn members(error: &anyhow::Error, exit: Exit) -> Members {
    let members = Members::new().number("status", exit.code());
    match error.downcast_ref::<Error>() {
        Some(own) => members.members(own.members()),
        None => members,
    }
}

/// True if the diagnostics of this process are JSON lines (`--log json`).
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes every later diagnostic a JSON line.
pub fn log_json() {
    JSON.store(true, Ordering::Relaxed);
    progress::turn_off();
}

/// Returns true if diagnostics are JSON lines.
#[must_use]
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes one diagnostic line to standard error: `NAME: text`, or an object with `program` and
/// `message`.
pub fn say(name: &str, text: &str) {
    say_with(name, text, &Members::new());
}

/// Writes one diagnostic line as [`say`] does. In JSON, it also has these members.
pub fn say_with(name: &str, text: &str, members: &Members) {
    let mut line = String::new();
    push_line(&mut line, name, text, members);
    write_lines(&line);
}

/// Writes many diagnostic lines as [`say_with`] does; `members` returns the members of each.
pub fn say_all<'a, T: fmt::Display + 'a>(
    name: &str,
    all: impl Iterator<Item = &'a T>,
    members: impl Fn(&T) -> Members,
) {
    let (mut lines, mut text) = (String::new(), String::new());
    for each in all {
        text.clear();
        // Writing into a String cannot fail.
        let _ = write!(text, "{each}");
        let members = if is_json() { members(each) } else { Members::new() };
        let before = lines.len();
        push_line(&mut lines, name, &text, &members);
        if lines.len() > MAX_AT_ONCE {
            write_lines(&lines[..before]);
            lines.drain(..before);
        }
    }
    write_lines(&lines);
}

/// The maximum number of bytes to write in one system call, unless a single line is longer. Lines are collected because
/// a call costs more than formatting a line. Up to this size, writes to a pipe are atomic, so lines of other programs
/// cannot come between.
const MAX_AT_ONCE: usize = 4096;

/// Adds the line of a diagnostic to `lines`.
fn push_line(lines: &mut String, name: &str, text: &str, members: &Members) {
    if !is_json() {
        [name, ": ", &printable(text), "\n"].iter().for_each(|part| lines.push_str(part));
        return;
    }
    let line = Members::new().string("program", name).string("message", text).members(members);
    lines.push_str(&printable_json(&line.into_json()));
    lines.push('\n');
}

/// Writes lines to standard error unchanged. They must not contain control characters from outside.
pub fn write_lines(lines: &str) {
    progress::clear();
    // An error in writing to standard error cannot be reported.
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_members() {
        let plain = anyhow::Error::from(Error::new(Exit::Data, "bad"));
        let json = |error, exit| members(error, exit).into_json();
        assert_eq!(json(&plain, Exit::Data), r#"{"status":65}"#);
        let error =
            Error::new(Exit::NoGain, "no room").with(Members::new().string("outcome", "failed"));
        let error = anyhow::Error::from(error).context("cannot continue");
        assert_eq!(json(&error, Exit::NoGain), r#"{"status":5,"outcome":"failed"}"#);
    }
}
