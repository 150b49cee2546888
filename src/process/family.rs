//! A child and all that it starts, which end together.
//!
//! A child leads a process group of its own. In the foreground of a terminal it stays in ours: only that group may
//! read the terminal, and gets its signals (Ctrl-C, Ctrl-Z). What it starts is then found by its parents.
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

/// How long a child has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// How often to check whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// The children that run.
static RUNNING: Mutex<Vec<ProcessFamily>> = Mutex::new(Vec::new());
/// True if a signal is ending them.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// A child and all that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessFamily {
    child: Pid,
    leads_group: bool,
}

impl ProcessFamily {
    /// Starts a child. Until it is [`ProcessFamily::forget`]ed, a signal that ends this program ends it first.
    pub(super) fn start(command: &mut Command) -> io::Result<(Child, ProcessFamily)> {
        signals::before_end(|_| end_all());
        let leads_group = !has_terminal();
        if leads_group {
            command.process_group(0);
        }
        let mut running = running();
        let child = command.spawn()?;
        let family = ProcessFamily { child: Pid::from_child(&child), leads_group };
        running.push(family);
        Ok((child, family))
    }

    /// Forgets a child that has ended. If a signal is ending this program, this waits for that end: nothing is
    /// made of what an interrupted child left.
    pub(super) fn forget(self) {
        running().retain(|family| *family != self);
    }

    /// Ends all processes: with SIGTERM, and those left after a while with SIGKILL. `reap` is called while that
    /// takes time, to wait for the child itself.
    pub(super) fn end(self, mut reap: impl FnMut()) {
        let mut members = vec![self.child];
        let begun = Instant::now();
        self.signal(&mut members, Signal::TERM);
        while self.is_there(&members) {
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
        // A process that has ended already is not a failure.
        if self.leads_group {
            let _ = kill_process_group(self.child, signal);
            return;
        }
        add_descendants(members);
        for member in members.iter() {
            let _ = kill_process(*member, signal);
        }
    }

    fn is_there(self, members: &[Pid]) -> bool {
        if self.leads_group {
            return test_kill_process_group(self.child).is_ok();
        }
        members.iter().any(|member| test_kill_process(*member).is_ok())
    }
}

fn running() -> MutexGuard<'static, Vec<ProcessFamily>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all children, before a signal ends this program. The list stays locked: no child starts any more, and
/// whoever waited for one waits for the end.
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

/// Returns whether this program is in the foreground of a terminal.
pub fn has_terminal() -> bool {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open("/dev/tty", flags, Mode::empty());
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}
