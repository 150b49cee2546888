//! A child process and its descendants, which are ended together.
//!
//! A child leads its own process group, unless this program is in the foreground of a terminal. The child then stays in
//! this program's group, because only the foreground group may read from the terminal and receives the signals of
//! Ctrl-C and Ctrl-Z. In that case, the child's descendants are found in the list of processes.
//!
//! A signal that ends this program ends its children first.

use crate::process::relatives::add_descendants;
use crate::process::signals;
use rustix::fs::{Mode, OFlags};
use rustix::process::{
    Pid, Signal, getpgrp, kill_process, kill_process_group, test_kill_process,
    test_kill_process_group,
};
use rustix::termios::tcgetpgrp;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// The pause between two checks of whether the processes have ended.
const PAUSE: Duration = Duration::from_millis(5);

/// The running children.
static RUNNING: Mutex<Vec<ProcessFamily>> = Mutex::new(Vec::new());
/// True if a signal is ending the children.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A child process and its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessFamily {
    child: Pid,
    leads_group: bool,
}

impl ProcessFamily {
    /// Starts a child. Until [`ProcessFamily::forget`] is called, a signal that ends this program ends the child first.
    pub(super) fn start(command: &mut Command) -> io::Result<(Child, ProcessFamily)> {
        Self::start_as(command, !has_terminal())
    }

    /// Starts a child that leads a process group of its own, or stays in that of this program.
    pub(super) fn start_as(
        command: &mut Command,
        leads_group: bool,
    ) -> io::Result<(Child, ProcessFamily)> {
        signals::before_end(|_| end_all());
        if leads_group {
            command.process_group(0);
        }
        let mut running = running();
        let child = command.spawn()?;
        let family = ProcessFamily { child: Pid::from_child(&child), leads_group };
        running.push(family);
        Ok((child, family))
    }

    /// Removes a child that has ended from the list of running ones. If a signal is ending this program, this call
    /// does not return, so that the program does not use the output of an interrupted child.
    pub(super) fn forget(self) {
        running().retain(|family| *family != self);
    }

    /// Sends SIGTERM to all processes and, if some still run after a second, SIGKILL. Calls `reap` repeatedly,
    /// so that the caller can reap the child: a process that has exited counts as running until it is reaped.
    pub(super) fn end(self, mut reap: impl FnMut()) {
        let mut members = vec![self.child];
        let begun = Instant::now();
        self.signal(&mut members, Signal::TERM);
        while self.is_running(&members) {
            if begun.elapsed() > GRACE {
                self.signal(&mut members, Signal::KILL);
                break;
            }
            thread::sleep(PAUSE);
            reap();
        }
        reap();
    }

    fn signal(self, members: &mut Vec<Pid>, signal: Signal) {
        // Errors are ignored: the process may have ended already.
        if self.leads_group {
            let _ = kill_process_group(self.child, signal);
            return;
        }
        add_descendants(members);
        for member in members.iter() {
            let _ = kill_process(*member, signal);
        }
    }

    fn is_running(self, members: &[Pid]) -> bool {
        if self.leads_group {
            return test_kill_process_group(self.child).is_ok();
        }
        members.iter().any(|member| test_kill_process(*member).is_ok())
    }
}

fn running() -> MutexGuard<'static, Vec<ProcessFamily>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all children before a signal ends this program. The list stays locked, so that no thread starts another child
/// or returns from [`ProcessFamily::forget`].
fn end_all() {
    if IS_ENDING.swap(true, Ordering::Relaxed) {
        return;
    }
    let running = running();
    thread::scope(|scope| {
        for family in running.iter() {
            scope.spawn(|| family.end(|| {}));
        }
    });
    std::mem::forget(running);
}

/// Returns true if this program is in the foreground of a terminal.
pub fn has_terminal() -> bool {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty());
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
