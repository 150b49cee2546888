//! Locks that keep the turns of a session from overlapping. A program holds the lock for turns while it works on a
//! transcript for longer than one append. A program that makes missing summaries holds a separate lock, so that turns
//! do not wait for it.
//!
//! Each is a kernel lock on an empty file beside the transcript: `.ID.jsonl.lock` for turns, `.ID.jsonl.retry` for
//! missing summaries. Appending to the transcript does not check the locks. A lock belongs to the process;
//! [`HeldTurn::leave`] keeps it for the program that the process executes. Child processes do not hold the lock, so a
//! background process that a turn leaves behind does not block the next turn. When the process dies, the kernel
//! releases the lock.
//!
//! A program that runs the tools of a turn has a lock of its own on the file, of the other kind that the kernel has: whoever
//! takes the turn first waits for that, so that no tool of a killed turn still runs.

use crate::exit::{Error, Exit};
use crate::transcript::make_directory;
use anyhow::Context;
use rustix::fs::{FlockOperation, OFlags, fcntl_lock, flock};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The lowest descriptor for a lock file. Shells use descriptors from 10 on for their own files, and a
/// process loses a lock when it closes any descriptor of the file.
const MIN_DESCRIPTOR: i32 = 100;

/// The attempts to take the lock of a process that runs tools, a millisecond apart.
const ATTEMPTS: usize = 10;

/// A lock that this process holds until the value is dropped or the process ends.
#[derive(Debug)]
pub struct HeldTurn {
    file: OwnedFd,
    path: PathBuf,
}

/// The kind of work that a lock is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A turn, from the prompt to the reply.
    Turn,
    /// Making summaries that are missing.
    Retry,
}

impl Purpose {
    /// Returns the name for diagnostics.
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

/// Returns the path of the lock file for this kind of work on a transcript.
#[must_use]
pub fn lock_path(transcript: &Path, purpose: Purpose) -> PathBuf {
    let name = transcript.file_name().unwrap_or_default().to_string_lossy();
    transcript.with_file_name(format!(".{name}.{}", purpose.extension()))
}

impl HeldTurn {
    /// Takes the lock for this kind of work on a transcript, which need not exist.
    ///
    /// # Errors
    /// 75 if another program holds the lock for longer than `timeout`; 74 or 77 if the lock file cannot be opened.
    pub fn take(
        transcript: &Path,
        purpose: Purpose,
        timeout: Duration,
    ) -> anyhow::Result<HeldTurn> {
        let path = lock_path(transcript, purpose);
        let name = purpose.name();
        let cannot = || format!("cannot lock the {name} of '{}'", transcript.display());
        if let Some(directory) = transcript.parent() {
            make_directory(directory).with_context(cannot)?;
        }
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(turn) = HeldTurn::try_take(&path).with_context(cannot)? {
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

    /// Takes the lock on the file `path`, which is created if it does not exist. Returns `None` if another process holds
    /// the lock, or still runs the tools of an earlier holder.
    pub(super) fn try_take(path: &Path) -> io::Result<Option<HeldTurn>> {
        let file = high(open(path, true)?)?;
        // Where the two kinds of locks conflict, this is refused while another process holds the turn.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            // Programs that this process starts would keep such a lock.
            _ => drop(flock(&file, FlockOperation::Unlock)),
        }
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
            locked => locked?,
        }
        // The previous holder may have removed the file.
        let own = rustix::fs::fstat(&file)?;
        let is_there = rustix::fs::lstat(path)
            .is_ok_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino));
        Ok(is_there.then(|| HeldTurn { file, path: path.to_owned() }))
    }

    /// Returns the path of the lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the lock for the program that this process executes next.
    ///
    /// # Errors
    /// If the descriptor cannot be changed.
    pub fn leave(self) -> io::Result<()> {
        fcntl_setfd(&self.file, FdFlags::empty())?;
        std::mem::forget(self.file);
        Ok(())
    }

    /// Removes the lock file while holding the lock. Programs that wait for the lock then create a new file.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the process that holds the lock on this file, if there is one other than the calling process.
#[must_use]
pub fn holder(lock: &Path) -> Option<Pid> {
    let file = open(lock, false).ok()?;
    fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)).ok()??.pid
}

/// A turn of another process, in which this process runs tools. No later turn begins before this process ends.
#[derive(Debug)]
pub struct WatchedTurn(ManuallyDrop<File>);

impl WatchedTurn {
    /// Returns the turn of a transcript; `None` if no other process holds it.
    #[must_use]
    pub fn of(transcript: &Path) -> Option<WatchedTurn> {
        // If this process itself holds the turn, closing the file would release it.
        let path = lock_path(transcript, Purpose::Turn);
        let file = ManuallyDrop::new(open(&path, false).ok()?);
        let held = fcntl_getlk(&*file, &Flock::from(FlockType::WriteLock));
        held.ok()??;
        // A waiting process has this lock for a moment whenever it looks. Where it conflicts with that of the turn, it is
        // never free; then a later turn may begin before this process has ended.
        for _ in 0..ATTEMPTS {
            if flock(&*file, FlockOperation::NonBlockingLockShared).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(WatchedTurn(file))
    }

    /// Waits until the process that holds the turn releases it or ends. Returns false if that cannot be told.
    #[must_use]
    pub fn await_end(self) -> bool {
        loop {
            match fcntl_lock(&*self.0, FlockOperation::LockShared) {
                Err(Errno::INTR) => {}
                locked => return locked.is_ok(),
            }
        }
    }
}

/// Removes a lock file, unless another process holds the lock.
pub fn tidy(lock: &Path) {
    if lock.symlink_metadata().is_ok()
        && let Ok(Some(turn)) = HeldTurn::try_take(lock)
    {
        turn.remove();
    }
}

/// Removes the lock files in a directory whose transcripts do not exist, unless another process holds the lock. A process
/// that was killed while it removed a transcript left them.
pub fn tidy_orphans(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let transcript = name.to_str().and_then(|name| {
            let of = |purpose: Purpose| name.strip_suffix(purpose.extension())?.strip_suffix('.');
            of(Purpose::Turn).or_else(|| of(Purpose::Retry))?.strip_prefix('.')
        });
        let is_missing = |name: &str| directory.join(name).symlink_metadata().is_err();
        if transcript.is_some_and(|name| name.ends_with(".jsonl") && is_missing(name)) {
            tidy(&entry.path());
        }
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

/// Returns a duplicate of the file with a high descriptor, or the file itself if the limit on descriptors is too low.
fn high(file: File) -> io::Result<OwnedFd> {
    match fcntl_dupfd_cloexec(&file, MIN_DESCRIPTOR) {
        Ok(high) => Ok(high),
        Err(Errno::INVAL | Errno::MFILE) => Ok(file.into()),
        Err(error) => Err(error.into()),
    }
}
