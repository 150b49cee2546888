//! Exit statuses, and the errors that end in them.
//!
//! [`Exit`] is the only place that knows a number. A stage reports a failure as an [`Error`], or as any error with an
//! `Error` or an [`std::io::Error`] in its chain; [`status`] gives the status for it, and [`text`] the words.

use crate::json::write::Members;
use std::fmt;
use std::io;
use std::process::ExitCode;

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
    members: Members,
}

impl Error {
    /// A failure that says `message` (lower case, no full stop) and ends in `exit`.
    pub fn new(exit: Exit, message: impl Into<String>) -> Error {
        Error { exit, message: message.into(), members: Members::new() }
    }

    /// The same with members for programs to read, beside the status.
    #[must_use]
    pub fn with(self, members: Members) -> Error {
        Error { members, ..self }
    }

    /// Those members.
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
}
