//! Reads files and lists directories below a directory. No path can escape from this directory: not through `..`, not
//! as an absolute path, and not through a link, even if the link is created while the path is opened.

use crate::exit::{Error, Exit, fail};
use crate::printable::printable;
use crate::system::{SESSIONS, open_below};
use anyhow::Context;
use rustix::fs::{Dir, FileType, OFlags, fstat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Opens `path` below `root`, unless it leads into the directory of sessions, directly or through links.
fn open(root: impl AsFd, path: &str, flags: OFlags) -> anyhow::Result<OwnedFd> {
    let opened = open_below(&root, path, flags).map_err(|why| refused(path, why))?;
    if opened.is_among_sessions {
        return fail(
            Exit::Permission,
            format!("cannot open '{path}': tools may not read sessions"),
        );
    }
    Ok(opened.file)
}

/// Returns the error for a failure to open `path`, with its exit status.
fn refused(path: &str, why: Errno) -> anyhow::Error {
    let cannot = format!("cannot open '{path}'");
    let (exit, why) = match why {
        Errno::XDEV => (Exit::Permission, "it leads out of the workspace".to_owned()),
        Errno::NOSYS => (Exit::Config, "this kernel has no openat2(2)".to_owned()),
        other => return anyhow::Error::from(io::Error::from(other)).context(cannot),
    };
    Error::new(exit, format!("{cannot}: {why}")).into()
}

/// Writes the file at `path` below `root` to `out`.
///
/// # Errors
/// Status 77 if the path leads out of `root` or into the sessions, or the file may not be read; 74 if the file does not
/// exist or cannot be read; 65 if it is not a regular file.
pub fn read(root: impl AsFd, path: &str, out: &mut impl Write) -> anyhow::Result<()> {
    let fd = open(root, path, OFlags::empty())?;
    let facts = fstat(&fd).map_err(io::Error::from)?;
    if !FileType::from_raw_mode(facts.st_mode).is_file() {
        return fail(Exit::Data, format!("cannot read '{path}': not a file"));
    }
    io::copy(&mut File::from(fd), out).with_context(|| format!("cannot read '{path}'"))?;
    Ok(())
}

/// Returns the entries of the directory at `path` below `root`, one per line and sorted by name. The directory of
/// sessions is omitted.
///
/// # Errors
/// As [`read`]; status 74 if it is not a directory.
pub fn list(root: impl AsFd, path: &str) -> anyhow::Result<String> {
    let fd = open(root, path, OFlags::DIRECTORY)?;
    let entries = Dir::new(fd).map_err(io::Error::from)?;
    let mut lines = Vec::new();
    for entry in entries {
        let entry =
            entry.map_err(io::Error::from).with_context(|| format!("cannot read '{path}'"))?;
        let kind = match entry.file_type() {
            FileType::Directory => "[dir] ",
            FileType::Symlink => "[link]",
            _ => "[file]",
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        if ![".", "..", SESSIONS].contains(&name.as_str()) {
            lines.push((name, kind));
        }
    }
    lines.sort();
    let line = |(name, kind): &(String, &str)| format!("{kind} {}\n", printable(name));
    Ok(if lines.is_empty() { "(empty)\n".to_owned() } else { lines.iter().map(line).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// Creates a directory with a workspace and, next to it, a secret.
    fn place() -> (tempfile::TempDir, File) {
        let dir = tempfile::TempDir::new().unwrap();
        std::fs::create_dir_all(dir.path().join("work/sub")).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::fs::write(dir.path().join("work/sub/secret"), "harmless").unwrap();
        let root = File::open(dir.path().join("work")).unwrap();
        (dir, root)
    }

    fn text(root: &File, path: &str) -> anyhow::Result<String> {
        let mut out = Vec::new();
        read(root, path, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn t_4_no_path_leads_out_of_the_root() {
        let (dir, root) = place();
        let work = dir.path().join("work");
        symlink("../secret", work.join("up")).unwrap();
        symlink(dir.path(), work.join("away")).unwrap();
        symlink("sub/secret", work.join("fine")).unwrap();
        symlink("/proc/self/root/etc/passwd", work.join("magic")).unwrap();
        for path in ["sub/secret", "fine", "sub/../sub/secret", "./sub//secret"] {
            assert_eq!(text(&root, path).unwrap(), "harmless", "{path}");
        }
        let absolute = dir.path().join("work/sub/secret");
        let absolute = absolute.to_str().unwrap();
        for path in
            ["../secret", "up", "away/secret", "sub/../../secret", "magic", "/etc/passwd", absolute]
        {
            let error = text(&root, path).unwrap_err().to_string();
            assert_eq!(error, format!("cannot open '{path}': it leads out of the workspace"));
            assert!(list(&root, path).is_err(), "{path}");
        }
        for path in ["", "gone", "sub", "a\0b", &"x".repeat(5000)] {
            assert!(text(&root, path).is_err(), "{path}");
        }
    }

    #[test]
    fn audit_21_sessions_are_hidden() {
        let (dir, root) = place();
        let work = dir.path().join("work");
        std::fs::create_dir_all(work.join(".sessions/agents/a")).unwrap();
        std::fs::write(work.join(".sessions/agents/a/s.jsonl"), "secret").unwrap();
        symlink(".sessions/agents", work.join("link")).unwrap();
        symlink("link/a/s.jsonl", work.join("sub/file")).unwrap();
        symlink("../link/a/s.jsonl", work.join("sub/other")).unwrap();
        for path in [
            ".sessions/agents/a/s.jsonl",
            "sub/../.sessions//agents/a/s.jsonl",
            "link/a/s.jsonl",
            "sub/other",
        ] {
            let error = text(&root, path).unwrap_err().to_string();
            assert_eq!(error, format!("cannot open '{path}': tools may not read sessions"));
        }
        for path in [".sessions", "link", ".sessions/agents/a"] {
            assert!(list(&root, path).is_err(), "{path}");
        }
        assert_eq!(list(&root, ".").unwrap(), "[link] link\n[dir]  sub\n");
    }

    #[test]
    fn t_4_a_link_that_is_swapped_in_does_not_lead_out() {
        let (dir, root) = place();
        let work = dir.path().join("work");
        symlink(dir.path(), work.join("link")).unwrap();
        let (is_over, seen) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                while !is_over.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(&root, "sub", &root, "link", flags).unwrap();
                }
            });
            // The other thread may begin late.
            let begun = Instant::now();
            let is_seen =
                || seen.load(Ordering::Relaxed) || begun.elapsed() > Duration::from_secs(60);
            for _ in (0..).take_while(|count| *count < 20_000 || !is_seen()) {
                match text(&root, "sub/secret") {
                    Ok(content) => assert_eq!(content, "harmless"),
                    Err(_) => seen.store(true, Ordering::Relaxed),
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(seen.into_inner(), "no read found the link, so the race was not tested");
    }

    #[test]
    fn only_regular_files_are_read() {
        let (dir, root) = place();
        std::os::unix::net::UnixListener::bind(dir.path().join("work/socket")).unwrap();
        rustix::fs::mkfifoat(&root, "fifo", rustix::fs::Mode::RUSR).unwrap();
        for path in ["socket", "fifo", "sub", "."] {
            assert!(text(&root, path).is_err(), "{path}");
        }
        assert_eq!(list(&root, ".").unwrap(), "[file] fifo\n[file] socket\n[dir]  sub\n");
        std::fs::remove_file(dir.path().join("work/sub/secret")).unwrap();
        assert_eq!(list(&root, "sub").unwrap(), "(empty)\n");
    }
}
