//! The functions for every Unix except Linux: there are no unnamed files, paths are resolved one component at a time,
//! and processes are listed with ps(1).

use crate::system::{OpenedBelow, SESSIONS};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use rustix::process::Pid;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

/// The maximum number of symbolic links that are followed in a path.
const MAX_LINKS: usize = 40;

/// Always fails: these systems cannot create unnamed files. The caller falls back to a named file.
///
/// # Errors
/// Always.
pub(crate) fn unnamed_file(_: &Path, _: u32) -> io::Result<File> {
    Err(ErrorKind::Unsupported.into())
}

/// Always fails, because there are no unnamed files.
///
/// # Errors
/// Always.
pub(crate) fn link_unnamed(_: &File, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Opens `path` below `root`. Each component is opened in the directory before it without following links, and the
/// directories that `..` refers to stay open, so concurrent changes to the tree cannot make the path escape from
/// `root`.
///
/// # Errors
/// XDEV if the path escapes from `root`.
pub(crate) fn open_below(root: impl AsFd, path: &str, flags: OFlags) -> Result<OpenedBelow, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut places =
        vec![Place { file: open_in(root, ".", OFlags::DIRECTORY)?, is_sessions: false }];
    let mut left = parts(path.as_bytes())?;
    let mut links = 0;
    while let Some(part) = left.pop() {
        let Some(above) = places.last() else { return Err(Errno::XDEV) };
        if part == b".." {
            places.pop();
            continue;
        }
        match readlinkat(&above.file, &part[..], Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                left.extend(parts(target.as_bytes())?);
            }
            Err(Errno::INVAL) => {
                let flags = if left.is_empty() { flags } else { OFlags::DIRECTORY };
                places.push(Place::open(above, &part, flags)?);
            }
            Err(error) => return Err(error),
        }
    }
    let is_among_sessions = places.iter().any(|place| place.is_sessions);
    let file = places.pop().ok_or(Errno::XDEV)?.file;
    Ok(OpenedBelow { file, is_among_sessions })
}

/// A directory on the path, or the file at its end.
struct Place {
    file: OwnedFd,
    is_sessions: bool,
}

impl Place {
    fn open(above: &Place, name: &[u8], flags: OFlags) -> Result<Place, Errno> {
        let file = open_in(&above.file, name, flags)?;
        let own = fstat(&file)?;
        // Names are not compared, because the file system may ignore case.
        let sessions = statat(&above.file, SESSIONS, AtFlags::SYMLINK_NOFOLLOW);
        let is_sessions =
            sessions.is_ok_and(|it| (it.st_dev, it.st_ino) == (own.st_dev, own.st_ino));
        Ok(Place { file, is_sessions })
    }
}

fn open_in(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let always = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    openat(directory, name, flags | always | OFlags::NOFOLLOW, Mode::empty())
}

/// Splits a path into its components, the last one first.
fn parts(path: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    if path.starts_with(b"/") {
        return Err(Errno::XDEV);
    }
    let parts = path.split(|byte| *byte == b'/').rev();
    Ok(parts.filter(|part| !part.is_empty() && *part != b".").map(<[u8]>::to_vec).collect())
}

/// Returns all processes with their parents.
pub(crate) fn parents() -> Vec<(Pid, Pid)> {
    let mut ps = Command::new("ps");
    ps.args(["-A", "-o", "pid=", "-o", "ppid="]).stdin(Stdio::null()).stderr(Stdio::null());
    let listed = ps.output().map(|output| output.stdout).unwrap_or_default();
    let process = |line: &str| {
        let (process, parent) = line.trim().split_once(char::is_whitespace)?;
        let number = |text: &str| Pid::from_raw(text.trim().parse().ok()?);
        Some((number(process)?, number(parent)?))
    };
    String::from_utf8_lossy(&listed).lines().filter_map(process).collect()
}

/// Returns the parent of a process.
pub(crate) fn parent(process: Pid) -> Option<Pid> {
    parents().into_iter().find(|(own, _)| *own == process).map(|(_, parent)| parent)
}

/// Returns true: the states of processes are written differently on each system.
pub(crate) fn is_stopped(_process: Pid) -> bool {
    true
}

/// Returns no process: there is no list of open files.
pub(crate) fn holders(_path: &Path) -> Vec<Pid> {
    Vec::new()
}

/// Returns true if this program might be ignoring a signal. There is no way to ask without `unsafe` code, so this
/// assumes that SIGHUP is ignored, as under nohup(1), and that all other signals are not.
pub(crate) fn is_ignored(signal: i32) -> bool {
    signal == signal_hook::consts::SIGHUP
}

/// Starts to write everything to the disks, on all file systems. Some systems do not wait until it is written.
///
/// # Errors
/// None.
pub(crate) fn sync_file_system(_: &File) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}
