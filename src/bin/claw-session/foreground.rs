//! Runs a command, forwards signals to it, and then ends this program as the command ended.
//!
//! A terminal signals its whole foreground process group, so the command gets Ctrl-C and Ctrl-Z directly. A signal
//! that a process sends to this program (kill(1), a supervisor) is forwarded to the command and all its descendants.
//! In both cases this program waits until the command has ended.
//!
//! Ctrl-Z stops this program only after it has stopped the command. The shell takes the terminal back as soon as this
//! program stops, and a command that is still running would read what is typed at the prompt.

use clawutils::process::{has_terminal, relatives, signals};
use rustix::process::{
    Pid, Resource, Signal, WaitId, WaitIdOptions, WaitIdStatus, getrlimit, kill_process, setrlimit,
    waitid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;
use signal_hook::low_level::emulate_default_handler;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Locked while [`forward`] briefly stops the command, so that this program does not stop with it.
static FORWARDING: Mutex<()> = Mutex::new(());

/// Runs a command until it ends. Signals that this program ignores are also ignored in the command.
///
/// # Errors
/// Fails if the command cannot be started, or the signals cannot be caught.
pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    signals::leave();
    let caught = signals::not_ignored(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP]);
    let mut signals = SignalsInfo::<WithRawSiginfo>::new(caught)?;
    let mut child = command.spawn()?;
    let process = Pid::from_child(&child);
    let listening = signals.handle();
    let wait = move || {
        wait_for_end(process);
        listening.close();
    };
    if thread::Builder::new().spawn(wait).is_ok() {
        let sent = signals.forever().filter(|signal| is_from_process(signal.si_code));
        let sent = sent.map(|signal| signal.si_signo).filter(|signal| *signal != SIGTSTP);
        sent.for_each(|signal| forward(process, signal));
    }
    child.wait()
}

/// Waits until a process has ended, without reaping it, so that its process id is not reused. Stops this program when
/// that process stops.
fn wait_for_end(process: Pid) {
    let wait = |options| waitid(WaitId::Pid(process), options);
    loop {
        match wait(WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) if status.stopped() => {
                let _forwarding = lock_forwarding();
                // Without NOWAIT, each stop is reported once. A stop that `forward` caused is over by now, and is not
                // reported.
                let stopped = wait(WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
                if stopped.ok().flatten().is_some_and(|status| is_to_follow(&status)) {
                    let _ = emulate_default_handler(SIGTSTP);
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Returns true if this program must also stop, now that the command has stopped. Some programs stop
/// themselves with SIGSTOP after Ctrl-Z. Without a terminal, a SIGSTOP is for the command alone. SIGTTIN and
/// SIGTTOU go to the whole process group, so they stop this program directly.
fn is_to_follow(status: &WaitIdStatus) -> bool {
    match status.stopping_signal() {
        Some(SIGTSTP) => true,
        Some(SIGSTOP) => has_terminal(),
        _ => false,
    }
}

fn lock_forwarding() -> MutexGuard<'static, ()> {
    FORWARDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if a signal with this `si_code` was sent by a process, not by the kernel for a key on a terminal.
fn is_from_process(code: i32) -> bool {
    // Linux uses 0 and below. On macOS and FreeBSD, SI_USER is 0x10001.
    code <= 0 || code == 0x10001
}

/// Sends a signal to a process and all its descendants. They are stopped first, because a running process could start
/// another one that misses the signal. They act on the signal when they continue.
fn forward(process: Pid, signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    let _forwarding = lock_forwarding();
    let mut members = vec![process];
    let mut stopped = 0;
    while stopped < members.len() {
        send(&members[stopped..], Signal::STOP);
        relatives::await_stop(&members[stopped..]);
        stopped = members.len();
        relatives::add_descendants(&mut members);
    }
    send(&members, signal);
    send(&members, Signal::CONT);
}

fn send(members: &[Pid], signal: Signal) {
    for member in members {
        // The process may have ended already.
        let _ = kill_process(*member, signal);
    }
}

/// Ends this program as the command ended: by the same signal, or with the status that is returned.
pub(super) fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
    };
    // Do not overwrite the command's core file with one of this program.
    let mut core = getrlimit(Resource::Core);
    core.current = Some(0);
    let _ = setrlimit(Resource::Core, core);
    // This returns only for an unknown signal, or one that does not end programs.
    let _ = emulate_default_handler(signal);
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
}
