//! Tests of both implementations, run on Linux.

use super::*;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, getpid, getppid};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type OpenBelow = fn(&File, &str, OFlags) -> Result<OpenedBelow, Errno>;
const BOTH: [OpenBelow; 2] = [
    |root, path, flags| linux::open_below(root, path, flags),
    |root, path, flags| portable::open_below(root, path, flags),
];

/// Creates a directory with a workspace and, next to it, a secret.
fn workspace() -> (tempfile::TempDir, File) {
    let dir = tempfile::TempDir::new().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir_all(work.join("sub")).unwrap();
    std::fs::create_dir_all(work.join(".sessions/agents")).unwrap();
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    std::fs::write(work.join("sub/secret"), "harmless").unwrap();
    std::fs::write(work.join(".sessions/agents/s"), "session").unwrap();
    let link = |target: &str, name: &str| symlink(target, work.join(name)).unwrap();
    link("../secret", "up");
    link("sub/../sub", "down");
    link("loop", "loop");
    link("/proc/self/root/etc/passwd", "magic");
    link(".sessions/agents", "sub/link");
    link("../.sessions/agents", "sub/sessions");
    symlink(dir.path(), work.join("away")).unwrap();
    let root = File::open(&work).unwrap();
    (dir, root)
}

#[test]
fn a_path_below_a_directory_does_not_lead_out() {
    let (dir, root) = workspace();
    let absolute = dir.path().join("work/sub/secret");
    let cases = [
        ("sub/secret", Ok(false)),
        ("./sub//secret", Ok(false)),
        ("sub/../sub/secret", Ok(false)),
        ("down/secret", Ok(false)),
        (".", Ok(false)),
        (".sessions", Ok(true)),
        (".sessions/agents/s", Ok(true)),
        ("sub/sessions/s", Ok(true)),
        ("sub/sessions/../../sub/secret", Ok(false)),
        ("", Err(Errno::NOENT)),
        ("gone", Err(Errno::NOENT)),
        ("sub/secret/x", Err(Errno::NOTDIR)),
        ("sub/link", Err(Errno::NOENT)),
        ("loop", Err(Errno::LOOP)),
        ("..", Err(Errno::XDEV)),
        ("sub/../../secret", Err(Errno::XDEV)),
        ("../work/sub/secret", Err(Errno::XDEV)),
        ("up", Err(Errno::XDEV)),
        ("away/secret", Err(Errno::XDEV)),
        ("magic", Err(Errno::XDEV)),
        ("/etc/passwd", Err(Errno::XDEV)),
        (absolute.to_str().unwrap(), Err(Errno::XDEV)),
    ];
    for (path, expected) in cases {
        for (number, open) in BOTH.iter().enumerate() {
            let opened = open(&root, path, OFlags::empty()).map(|opened| opened.is_among_sessions);
            assert_eq!(opened, expected, "{path}, {number}");
        }
    }
}

#[test]
fn a_link_that_is_swapped_in_does_not_let_a_path_escape() {
    let (_dir, root) = workspace();
    let (is_over, failed) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !is_over.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(&root, "sub", &root, "away", flags).unwrap();
            }
        });
        // The other thread may begin late.
        let begun = Instant::now();
        let is_seen =
            || failed.load(Ordering::Relaxed) || begun.elapsed() > Duration::from_secs(60);
        for _ in (0..).take_while(|count| *count < 5_000 || !is_seen()) {
            let Ok(opened) = portable::open_below(&root, "sub/secret", OFlags::empty()) else {
                failed.store(true, Ordering::Relaxed);
                continue;
            };
            let mut text = String::new();
            File::from(opened.file).read_to_string(&mut text).unwrap();
            assert_eq!(text, "harmless");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(failed.into_inner(), "no path led through the link, so the race was not tested");
}

#[test]
fn a_process_is_stopped_some_time_after_the_signal() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let process = Pid::from_child(&child);
    assert!(!linux::is_stopped(process) && portable::is_stopped(process));
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    while !linux::is_stopped(process) {}
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(linux::is_stopped(process));
}

#[test]
fn parents_of_processes_are_found() {
    check_parents(linux::parent, &linux::parents());
}

/// The portable implementation runs ps, which a minimal system may not have.
#[test]
#[expect(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn parents_of_processes_are_found_with_ps() {
    if Command::new("ps").output().is_err() {
        println!("skipped: ps is not installed");
        return;
    }
    check_parents(portable::parent, &portable::parents());
    assert_eq!(portable::parent(Pid::from_raw(i32::MAX).unwrap()), None);
}

fn check_parents(parent: fn(Pid) -> Option<Pid>, parents: &[(Pid, Pid)]) {
    assert_eq!(parent(getpid()), getppid());
    assert!(parents.contains(&(getpid(), getppid().unwrap())), "{parents:?}");
}

#[test]
fn only_the_linux_implementation_creates_unnamed_files() {
    let dir = tempfile::TempDir::new().unwrap();
    let name = dir.path().join("name");
    let file = linux::unnamed_file(dir.path(), 0o600).unwrap();
    assert!(!name.exists());
    linux::link_unnamed(&file, &name).unwrap();
    assert!(name.exists());
    assert!(portable::unnamed_file(dir.path(), 0o600).is_err());
    assert!(portable::link_unnamed(&file, Path::new("other")).is_err());
}

#[test]
fn a_signal_with_a_handler_is_not_ignored() {
    let signal = signal_hook::consts::SIGUSR1;
    signal_hook::flag::register(signal, Arc::default()).unwrap();
    assert!(!linux::is_ignored(signal) && !portable::is_ignored(signal));
    assert!(portable::is_ignored(signal_hook::consts::SIGHUP));
}

#[test]
fn both_implementations_sync_a_file_system() {
    let file = tempfile::tempfile().unwrap();
    linux::sync_file_system(&file).unwrap();
    portable::sync_file_system(&file).unwrap();
}

#[test]
fn only_the_linux_implementation_knows_who_has_a_file_open() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut other = Command::new("sleep");
    let mut other = other.arg("60").stdin(file.reopen().unwrap()).spawn().unwrap();
    let process = Pid::from_raw(i32::try_from(other.id()).unwrap()).unwrap();
    // Processes that other tests are just starting have all files of this one open for a moment.
    let begun = Instant::now();
    let is_held_by = |expected: &[Pid]| {
        while linux::holders(file.path()) != expected {
            if begun.elapsed() > Duration::from_secs(60) {
                return false;
            }
        }
        true
    };
    assert!(is_held_by(&[process]));
    assert!(portable::holders(file.path()).is_empty());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(is_held_by(&[]));
}
