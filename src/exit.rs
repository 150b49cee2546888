//! Exit statuses, and errors with an exit status.
//!
//! The numbers are defined only in [`Exit`]. A function reports a failure as an [`Error`], or as any error
//! with an `Error` or [`std::io::Error`] in its chain. [`status`] returns the exit status for the error,
//! and [`text`] its message.

use crate::json::write::Members;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit statuses of every program, as listed in claw(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: success; standard output is complete.
    Done = 0,
    /// 1: any other failure.
    Failed = 1,
    /// 2: the command line is wrong.
    Usage = 2,
    /// 3: the request does not fit the window.
    Overflow = 3,
    /// 4: the request is too large in bytes.
    TooLarge = 4,
    /// 5: compaction would save nothing, or cannot reach the budget. A check that the request fits (`claw-estimate --check`) ends
    /// with it in the opposite case: a cut is not needed, but pays.
    NoGain = 5,
    /// 6: the answer was cut off.
    CutOff = 6,
    /// 7: not ready to send: the last message is the assistant's, or a tool call has no result.
    NotReady = 7,
    /// 8: no recorded answer for this request.
    NotRecorded = 8,
    /// 65: invalid input data.
    Data = 65,
    /// 69: the provider is unreachable, timed out or failed.
    Unavailable = 69,
    /// 74: reading or writing failed.
    Io = 74,
    /// 75: rate limited, overloaded or locked; try again later.
    TryLater = 75,
    /// 76: the provider rejects the request as invalid.
    Refused = 76,
    /// 77: permission denied: API key, account or file mode.
    Permission = 77,
    /// 78: invalid configuration.
    Config = 78,
    /// 141: the reader of standard output closed it.
    ReaderGone = 141,
}

impl Exit {
    /// All statuses, in the order of the table in claw(7).
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

    /// Returns the number that the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the status with this number, if there is one.
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

/// A failure with its exit status.
#[derive(Debug)]
pub struct Error {
    /// The status that the program exits with.
    pub exit: Exit,
    message: String,
    members: Members,
}

impl Error {
    /// Returns an error with this status and message (lower case, no full stop).
    pub fn new(exit: Exit, message: impl Into<String>) -> Error {
        Error { exit, message: message.into(), members: Members::new() }
    }

    /// Sets the members that `--log json` prints in addition to the status.
    #[must_use]
    pub fn with(self, members: Members) -> Error {
        Error { members, ..self }
    }

    /// Returns the members for `--log json`.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Returns an error with this status and message.
///
/// # Errors
/// Always fails.
pub fn fail<T>(exit: Exit, message: impl Into<String>) -> anyhow::Result<T> {
    Err(Error::new(exit, message).into())
}

/// Returns the exit status for an error: 141 for a closed standard output, else that of an [`Error`], 77 if
/// permission was denied, 74 for other failed reads and writes, else 1.
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

/// Returns the message of an error and its causes. Advice follows the message of a system error.
#[must_use]
pub fn text(error: &anyhow::Error) -> String {
    let message = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(io) => why(io),
        None => cause.to_string(),
    };
    error.chain().map(message).collect::<Vec<_>>().join(": ")
}

/// Returns the system's message for a failed read or write, and advice if there is any.
#[must_use]
pub fn why(error: &io::Error) -> String {
    let text = cause(&error.to_string());
    match error.raw_os_error().and_then(|_| advice(error.kind())) {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// Returns the system's message without its error number, beginning in lower case. Returns any other text unchanged.
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
        io::ErrorKind::PermissionDenied => "check its permissions (ls -l)",
        io::ErrorKind::ReadOnlyFilesystem => "use a writable location",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
        _ => return None,
    })
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
    fn a_closed_standard_output_takes_precedence() {
        let gone = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe))
            .context(Error::new(Exit::Data, "cannot write"));
        assert_eq!(status(&gone), Exit::ReaderGone);
    }

    #[test]
    fn the_outermost_status_applies() {
        let inner = anyhow::Error::from(io::Error::other("boom"));
        assert_eq!(status(&inner), Exit::Io);
        assert_eq!(status(&inner.context(Error::new(Exit::Config, "no window"))), Exit::Config);
        assert_eq!(status(&anyhow::anyhow!("something")), Exit::Failed);
    }
}
