//! How every program ends: the statuses, and the one wrapper around each `main`.
//!
//! [`Exit`] is the only place that knows a number. A stage reports failure as an [`Error`] (or any
//! error with an `Error` or an [`std::io::Error`] somewhere in its chain); [`run`] prints it once, as
//! `claw-x: what failed 'subject': cause`, and gives the status. A reader that went away is not an
//! error to talk about: nothing is printed and the status is 141.

use crate::cli::progress;
use crate::json::{self, quote};
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit statuses of every program, as listed in claw(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done; standard output is the whole result.
    Done = 0,
    /// 1: any other failure.
    Failed = 1,
    /// 2: the command line is wrong.
    Usage = 2,
    /// 3: the request does not fit the window.
    Overflow = 3,
    /// 4: the request is too large in bytes.
    TooLarge = 4,
    /// 5: nothing to gain, or the budget could not be reached.
    NoGain = 5,
    /// 6: the answer was cut off.
    CutOff = 6,
    /// 7: not ready to send: it ends on the assistant, or a call is open.
    NotReady = 7,
    /// 8: nothing recorded for this request.
    NotRecorded = 8,
    /// 65: bad input data.
    Data = 65,
    /// 69: the provider is unreachable, timed out or broken.
    Unavailable = 69,
    /// 74: reading or writing failed.
    Io = 74,
    /// 75: rate limited, overloaded or locked: try again after a while.
    TryLater = 75,
    /// 76: the provider refuses the request's shape.
    Refused = 76,
    /// 77: no permission: key, account or file mode.
    Permission = 77,
    /// 78: the configuration cannot work.
    Config = 78,
    /// 141: the reader of standard output went away.
    ReaderGone = 141,
}

impl Exit {
    /// Every status, in the order of the table in claw(7).
    pub const ALL: [Exit; 17] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::Overflow,
        Exit::TooLarge,
        Exit::NoGain,
        Exit::CutOff,
        Exit::NotReady,
        Exit::NotRecorded,
        Exit::Data,
        Exit::Unavailable,
        Exit::Io,
        Exit::TryLater,
        Exit::Refused,
        Exit::Permission,
        Exit::Config,
        Exit::ReaderGone,
    ];

    /// The number that the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The status with this number, if it is one of ours.
    #[must_use]
    pub fn from_code(code: i32) -> Option<Exit> {
        Exit::ALL.into_iter().find(|exit| i32::from(exit.code()) == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// A failure with the status it ends in.
#[derive(Debug)]
pub struct Error {
    /// The status to end with.
    pub exit: Exit,
    message: String,
    members: String,
}

impl Error {
    /// A failure that says `message` (lower case, no full stop) and ends in `exit`.
    pub fn new(exit: Exit, message: impl Into<String>) -> Error {
        Error { exit, message: message.into(), members: String::new() }
    }

    /// The same with members (`"a":1,"b":2`) for programs to read, beside the status.
    #[must_use]
    pub fn with(self, members: impl Into<String>) -> Error {
        Error { members: members.into(), ..self }
    }

    /// Those members.
    #[must_use]
    pub fn members(&self) -> &str {
        &self.members
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Ends a stage: `Err` with `exit` and `message`.
///
/// # Errors
/// Always; that is what it is for.
pub fn fail<T>(exit: Exit, message: impl Into<String>) -> anyhow::Result<T> {
    Err(Error::new(exit, message).into())
}

/// The status for an error: an [`Error`]'s own, 141 for a reader that went away, 77 for a file that
/// may not be touched, 74 for any other failed read or write, else 1.
#[must_use]
pub fn status(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(io) = cause.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::BrokenPipe
        {
            return Exit::ReaderGone;
        }
    }
    if let Some(own) = error.downcast_ref::<Error>() {
        return own.exit;
    }
    for cause in error.chain() {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            return match io.kind() {
                io::ErrorKind::PermissionDenied => Exit::Permission,
                _ => Exit::Io,
            };
        }
    }
    Exit::Failed
}

/// Runs a program's body and turns its outcome into an exit status.
///
/// An error is printed on standard error as one line, `NAME: message: cause`; control characters in
/// it are escaped, so text from outside cannot reach a terminal raw. A standard error that is closed
/// is no further error.
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

/// An error and its causes, as one text; after an error of the system, the advice for it.
#[must_use]
pub fn text(error: &anyhow::Error) -> String {
    let told = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(io) => why(io),
        None => cause.to_string(),
    };
    error.chain().map(told).collect::<Vec<_>>().join(": ")
}

/// Why reading or writing failed, in the system's words, and what can be done about it.
#[must_use]
pub fn why(error: &io::Error) -> String {
    let text = cause(&error.to_string());
    match error.raw_os_error().and_then(|_| advice(error.kind())) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// The system's words without the number behind them, in lower case as any other cause.
#[must_use]
pub fn cause(text: &str) -> String {
    let Some((words, _)) = text.split_once(" (os error ") else { return text.to_owned() };
    let mut letters = words.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

fn advice(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "check the path",
        io::ErrorKind::IsADirectory => "name a file",
        io::ErrorKind::AlreadyExists => "give another name",
        io::ErrorKind::PermissionDenied => "check who may read and write it (ls -l)",
        io::ErrorKind::ReadOnlyFilesystem => "give a place that can be written to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room",
        _ => return None,
    })
}

/// What a failure tells programs: the status, and what it brings along.
fn members(error: &anyhow::Error, exit: Exit) -> String {
    let own = error.downcast_ref::<Error>().map_or("", |own| &own.members);
    let comma = if own.is_empty() { "" } else { "," };
    format!("\"status\":{}{comma}{own}", exit.code())
}

/// Whether diagnostics are JSON lines (`--log json`); one choice for the whole process.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes every later diagnostic a JSON line.
pub fn log_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// Whether diagnostics are JSON lines.
#[must_use]
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes one diagnostic line to standard error: `NAME: text`, or an object with `program` and
/// `message`.
pub fn say(name: &str, text: &str) {
    say_with(name, text, "");
}

/// The same with further members (`"a":1,"b":2`) for programs to read.
pub fn say_with(name: &str, text: &str, members: &str) {
    let mut line = String::new();
    push_line(&mut line, name, text, members);
    write_lines(&line);
}

/// The same for many at once; `members` gives those of each.
pub fn say_all<'a, T: fmt::Display + 'a>(
    name: &str,
    all: impl Iterator<Item = &'a T>,
    members: impl Fn(&T) -> String,
) {
    let (mut lines, mut text) = (String::new(), String::new());
    for each in all {
        text.clear();
        // Writing into a String cannot fail.
        let _ = write!(text, "{each}");
        let members = if is_json() { members(each) } else { String::new() };
        let before = lines.len();
        push_line(&mut lines, name, &text, &members);
        if lines.len() > MOST_AT_ONCE {
            write_lines(&lines[..before]);
            lines.drain(..before);
        }
    }
    write_lines(&lines);
}

/// Lines are written together up to this many bytes: a system call for each takes longer than finding what they
/// say. A pipe takes that many at once, so lines of other programs cannot come between.
const MOST_AT_ONCE: usize = 4096;

/// Adds the line of a diagnostic to `lines`.
fn push_line(lines: &mut String, name: &str, text: &str, members: &str) {
    if !is_json() {
        [name, ": ", &escaped(text, is_hidden), "\n"].iter().for_each(|part| lines.push_str(part));
        return;
    }
    let comma = if members.is_empty() { "" } else { "," };
    let (program, message) = (quote(name), quote(text));
    let line = format!("{{\"program\":{program},\"message\":{message}{comma}{members}}}");
    lines.push_str(&printable_json(&line));
    lines.push('\n');
}

fn write_lines(lines: &str) {
    progress::clear();
    // Nobody is left to tell when standard error itself is gone.
    let _ = io::stderr().lock().write_all(lines.as_bytes());
}

/// Whether a character makes a terminal do something else than show it: a control character, or one of
/// Unicode's line and direction controls.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with every such character written as an escape, fit for a terminal and for one line.
#[must_use]
pub fn printable(text: &str) -> String {
    escaped(text, is_hidden).into_owned()
}

/// The same for a text of many lines: line feeds and tabs stay.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t')).into_owned()
}

/// Returns whether all of `text` is printable ASCII. Nearly all text is, and this is much quicker to tell than
/// whether a character is hidden.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~'))
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(text) || !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A line of JSON with every such character written as JSON's own escape: the same value, fit for a
/// terminal.
#[must_use]
pub fn printable_json(line: &str) -> Cow<'_, str> {
    if is_plain(line) { Cow::Borrowed(line) } else { json::escape(line, is_hidden) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_own_number() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_code(i32::from(exit.code())), Some(exit));
        }
        assert_eq!(Exit::from_code(101), None);
    }

    #[test]
    fn a_reader_that_left_wins_over_any_other_cause() {
        let gone = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe))
            .context(Error::new(Exit::Data, "cannot write"));
        assert_eq!(status(&gone), Exit::ReaderGone);
    }

    #[test]
    fn the_outermost_status_holds() {
        let inner = anyhow::Error::from(io::Error::other("boom"));
        assert_eq!(status(&inner), Exit::Io);
        assert_eq!(status(&inner.context(Error::new(Exit::Config, "no window"))), Exit::Config);
        assert_eq!(status(&anyhow::anyhow!("something")), Exit::Failed);
    }

    #[test]
    fn a_failure_brings_its_members_along() {
        let plain = Error::new(Exit::Data, "bad");
        assert_eq!(members(&plain.into(), Exit::Data), r#""status":65"#);
        let told = Error::new(Exit::NoGain, "no room").with(r#""outcome":"failed""#);
        let told = anyhow::Error::from(told).context("cannot go on");
        assert_eq!(members(&told, Exit::NoGain), r#""status":5,"outcome":"failed""#);
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(printable("a\x1b[31mb\nc\u{202e}"), "a\\u{1b}[31mb\\nc\\u{202e}");
        assert_eq!(printable_lines("a\tb\r\n\u{9b}c"), "a\tb\\r\n\\u{9b}c");
        let line = "{\"a\":\"\u{7f}\u{9b}\u{202e}é\"}";
        assert_eq!(printable_json(line), r#"{"a":"\u007f\u009b\u202eé"}"#);
    }
}
