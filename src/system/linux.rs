//! The functions for Linux: files are created without a name, the kernel confines paths to a directory, and processes
//! are listed from /proc.

use crate::system::{OpenedBelow, SESSIONS};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, linkat, openat2, readlink};
use rustix::io::Errno;
use rustix::process::{Pid, getpid};
use std::ffi::OsString;
use std::fs::{DirEntry, File, Metadata, read_dir, read_to_string};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum number of attempts to open a file while the directory is being changed.
const TRIES: usize = 32;

/// Creates a file without a name in `directory`. The file disappears when it is closed, unless [`link_unnamed`] gives
/// it a name.
///
/// # Errors
/// Fails if the file system does not support this, or if /proc is not mounted.
pub(crate) fn unnamed_file(directory: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory, flags, Mode::from_raw_mode(mode))?;
    link_of(&file).symlink_metadata()?;
    Ok(File::from(file))
}

/// Gives a name to a file that has none.
///
/// # Errors
/// Fails if the name exists, or if its directory is on another file system than the file.
pub(crate) fn link_unnamed(file: &File, name: &Path) -> io::Result<()> {
    Ok(linkat(CWD, link_of(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Returns the path in /proc that refers to an open file.
fn link_of(file: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens `path` below `root`. The kernel ensures that the path does not escape from `root`.
///
/// # Errors
/// XDEV if the path escapes from `root`, and NOSYS if the kernel is older than 5.6.
pub(crate) fn open_below(root: impl AsFd, path: &str, flags: OFlags) -> Result<OpenedBelow, Errno> {
    let file = open_beneath(&root, path, flags)?;
    let root = real_path(&open_beneath(&root, ".", OFlags::DIRECTORY)?)?;
    let place = real_path(&file)?;
    let below = place.strip_prefix(&root).unwrap_or(&place);
    let is_among_sessions = below.components().any(|part| part.as_os_str() == SESSIONS);
    Ok(OpenedBelow { file, is_among_sessions })
}

fn open_beneath(root: impl AsFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let once = || openat2(&root, path, flags, Mode::empty(), resolve);
    let again = |result: &Result<_, Errno>| matches!(result, Err(Errno::AGAIN | Errno::INTR));
    let mut tries = (0..TRIES).map(|_| once()).skip_while(again);
    tries.next().unwrap_or(Err(Errno::AGAIN))
}

/// Returns the path of an open file, with all symbolic links resolved.
fn real_path(file: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = readlink(link_of(file), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// Returns all processes with their parents.
pub(crate) fn parents() -> Vec<(Pid, Pid)> {
    let entries = read_dir("/proc").into_iter().flatten().flatten();
    let process = |entry: DirEntry| {
        let process = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        Some((process, parent(process)?))
    };
    entries.filter_map(process).collect()
}

/// Returns the parent of a process.
pub(crate) fn parent(process: Pid) -> Option<Pid> {
    Pid::from_raw(state_and_parent(process)?.1)
}

/// Returns true if a process is stopped, or has ended.
pub(crate) fn is_stopped(process: Pid) -> bool {
    state_and_parent(process).is_none_or(|(state, _)| "TtZX".contains(&state))
}

fn state_and_parent(process: Pid) -> Option<(String, i32)> {
    let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may contain any character, including ')'. The state and the parent
    // come after it.
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// Returns the other processes that have a file open, as far as this process may see that.
pub(crate) fn holders(path: &Path) -> Vec<Pid> {
    let own = |meta: Metadata| (meta.dev(), meta.ino());
    let Ok(file) = path.metadata().map(own) else { return Vec::new() };
    let is_it = |entry: DirEntry| entry.path().metadata().is_ok_and(|meta| own(meta) == file);
    let has_it = |process: &Pid| {
        let open = read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        open.into_iter().any(is_it)
    };
    let others = parents().into_iter().map(|(process, _)| process);
    others.filter(|process| *process != getpid() && has_it(process)).collect()
}

/// Returns true if this program ignores a signal. Without /proc, this assumes that SIGHUP is ignored, as under
/// nohup(1), and that all other signals are not.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.map_or(signal == signal_hook::consts::SIGHUP, |mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Waits until everything that was written to the file system of `file` is on the disk.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn sync_file_system(file: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}
