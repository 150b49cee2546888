//! The lock of a session's turn: one program at a time holds a transcript for longer than an append. The work on
//! missing summaries has a lock of its own, so that no turn waits for it.
//!
//! It is a kernel lock of an empty file beside the transcript (`.ID.jsonl.lock`, `.ID.jsonl.retry`), which
//! appends do not look at. It belongs to the process, also to the program that this turns into, and to none that
//! it starts: what a turn leaves running does not hold it, and the lock of a process that died is free.

use crate::exit::{Error, Exit};
use crate::transcript::make_folder;
use anyhow::Context;
use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shells give descriptors from 10 on to their own files, and a lock is lost with the first descriptor of its
/// file that is closed.
const HIGH: i32 = 100;

/// A turn that is held, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Turn {
    file: OwnedFd,
    path: PathBuf,
}

/// The work that one program at a time does on a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A turn, from the prompt to the reply.
    Turn,
    /// Making summaries that are missing.
    Retry,
}

impl Purpose {
    /// Its name in diagnostics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Turn => "turn",
            Purpose::Retry => "summary retry",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Purpose::Turn => "lock",
            Purpose::Retry => "retry",
        }
    }
}

/// The file that is locked for such work on a transcript.
#[must_use]
pub fn lock_path(transcript: &Path, purpose: Purpose) -> PathBuf {
    let name = transcript.file_name().unwrap_or_default().to_string_lossy();
    transcript.with_file_name(format!(".{name}.{}", purpose.extension()))
}

impl Turn {
    /// Takes the turn of a transcript, which need not be there.
    ///
    /// # Errors
    /// 75 when another program holds it for longer than `timeout`; 74 or 77 when its file cannot be opened.
    pub fn take(transcript: &Path, purpose: Purpose, timeout: Duration) -> anyhow::Result<Turn> {
        let path = lock_path(transcript, purpose);
        let name = purpose.name();
        let cannot = || format!("cannot lock the {name} of '{}'", transcript.display());
        if let Some(folder) = transcript.parent() {
            make_folder(folder).with_context(cannot)?;
        }
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(turn) = Turn::try_take(&path).with_context(cannot)? {
                return Ok(turn);
            }
            if begun.elapsed() >= timeout {
                let text =
                    format!("another {name} held it for {} s; try again", timeout.as_secs_f64());
                return Err(anyhow::Error::from(Error::new(Exit::TryLater, text)).context(cannot()));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn try_take(path: &Path) -> io::Result<Option<Turn>> {
        let file = high(open(path, true)?)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
            locked => locked?,
        }
        // Who held it may have removed the file.
        let own = rustix::fs::fstat(&file)?;
        let is_there = path
            .symlink_metadata()
            .is_ok_and(|meta| (meta.dev(), meta.ino()) == (own.st_dev, own.st_ino));
        Ok(is_there.then(|| Turn { file, path: path.to_owned() }))
    }

    /// Leaves the lock to the program that this process turns into.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn leave(self) -> io::Result<()> {
        fcntl_setfd(&self.file, FdFlags::empty())?;
        std::mem::forget(self.file);
        Ok(())
    }

    /// Removes the lock's file, which is held; who waits for it sees that.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the process that holds the lock of a file, if one does.
#[must_use]
pub fn holder(lock: &Path) -> Option<Pid> {
    let file = open(lock, false).ok()?;
    fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??.pid
}

/// Waits until the process that holds the turn of a transcript has ended. From then on this process shares the lock, until
/// it ends. Returns false at once if no other process holds the turn.
#[must_use]
pub fn await_end(transcript: &Path) -> bool {
    let Ok(file) = open(&lock_path(transcript, Purpose::Turn), false) else { return false };
    // If this process holds the turn itself, closing the file would end that.
    let file = ManuallyDrop::new(file);
    let held = fcntl_getlk(&*file, &Flock::from(FlockType::WriteLock));
    if !held.is_ok_and(|lock| lock.is_some()) {
        return false;
    }
    loop {
        match fcntl_lock(&*file, FlockOperation::LockShared) {
            Err(Errno::INTR) => {}
            locked => return locked.is_ok(),
        }
    }
}

/// Removes a lock file that no process holds.
pub fn tidy(lock: &Path) {
    if lock.symlink_metadata().is_ok()
        && let Ok(Some(turn)) = Turn::try_take(lock)
    {
        turn.remove();
    }
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

/// The same file under a high number, where there may be one.
fn high(file: File) -> io::Result<OwnedFd> {
    match fcntl_dupfd_cloexec(&file, HIGH) {
        Ok(high) => Ok(high),
        Err(Errno::INVAL | Errno::MFILE) => Ok(file.into()),
        Err(error) => Err(error.into()),
    }
}
