//! Signals that end programs. This module runs registered steps before such a signal ends this program, and detects
//! that a child was ended by one.

use crate::system::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The signals by which users and supervisors end programs.
pub const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The longest wait for the signal that ended a child to arrive in this process.
const ARRIVAL: Duration = Duration::from_millis(200);

/// True if this module or another part of the program catches signals.
static IS_CAUGHT: AtomicBool = AtomicBool::new(false);

/// True if the program has its own signal handlers, and this module must do nothing.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// Leaves all signals to the program's own handlers from now on.
pub fn leave() {
    IS_CAUGHT.store(true, Ordering::Relaxed);
    IS_LEFT.store(true, Ordering::Relaxed);
}

/// The steps to run, with the signal's number, before a signal ends the program. Each is in the list once.
static BEFORE: Mutex<Vec<fn(i32)>> = Mutex::new(Vec::new());

/// Registers a step to run before a signal ends the program. Steps run in the reverse order of their registration, and
/// then the signal has its default effect. Signals that the program ignores stay ignored.
pub fn before_end(step: fn(i32)) {
    let mut steps = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if !steps.iter().any(|known| std::ptr::fn_addr_eq(*known, step)) {
        steps.push(step);
    }
    drop(steps);
    if IS_CAUGHT.swap(true, Ordering::Relaxed) {
        return;
    }
    // If this fails, a signal ends the program without the steps.
    let Ok(mut signals) = Signals::new(not_ignored(&ENDING)) else { return };
    let listen = move || {
        for signal in signals.forever() {
            if IS_LEFT.load(Ordering::Relaxed) {
                break;
            }
            let steps = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).clone();
            steps.iter().rev().for_each(|step| step(signal));
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = thread::Builder::new().spawn(listen);
}

/// Returns the signals among `signals` that the program does not ignore.
pub fn not_ignored(signals: &[i32]) -> Vec<i32> {
    signals.iter().copied().filter(|signal| !is_ignored(*signal)).collect()
}

/// Waits briefly if a signal ended a child. If the sender also signals this process, the signal arrives during the wait
/// and ends this process before it can record the end of the child as a result.
pub fn await_own_signal(status: ExitStatus) {
    if is_interrupted(status) {
        thread::sleep(ARRIVAL);
    }
}

/// Returns true if SIGHUP, SIGINT, SIGQUIT or SIGTERM ended a process, or if the process is a shell whose exit status
/// says that one of them ended its command.
#[must_use]
pub fn is_interrupted(status: ExitStatus) -> bool {
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128));
    signal.is_some_and(|signal| ENDING.contains(&signal))
}
