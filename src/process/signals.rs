//! The signals that end programs: steps to take before one ends this program, and what one does to a child.

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

/// True if this or another part of the program catches signals.
static IS_CAUGHT: AtomicBool = AtomicBool::new(false);

/// True if the program handles signals itself.
static IS_LEFT: AtomicBool = AtomicBool::new(false);

/// Leaves signals to a program that handles them itself, from now on.
pub fn leave() {
    IS_CAUGHT.store(true, Ordering::Relaxed);
    IS_LEFT.store(true, Ordering::Relaxed);
}

/// The steps that run, with the signal's number, before a signal ends the program; each runs once.
static BEFORE: Mutex<Vec<fn(i32)>> = Mutex::new(Vec::new());

/// Runs `step` before a signal ends the program as it would have without this, and before the steps that were
/// named earlier. A signal that the program ignores stays ignored.
pub fn before_end(step: fn(i32)) {
    let mut steps = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if !steps.iter().any(|known| std::ptr::fn_addr_eq(*known, step)) {
        steps.push(step);
    }
    drop(steps);
    if IS_CAUGHT.swap(true, Ordering::Relaxed) {
        return;
    }
    let heard = heard(&ENDING);
    // Without this no step is taken, and the signal ends the program all the same.
    let Ok(mut signals) = Signals::new(heard) else { return };
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

/// Those of the signals that are not ignored.
pub fn heard(signals: &[i32]) -> Vec<i32> {
    signals.iter().copied().filter(|signal| is_heard(*signal)).collect()
}

/// Returns whether a signal would end the program. Where the kernel does not tell, a hang-up is taken for ignored, as it
/// is after nohup(1), and no other signal.
fn is_heard(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.map_or(signal != SIGHUP, |mask| (mask >> (signal - 1)) & 1 == 0)
}

/// Waits a moment after a signal ended a child. If the sender signals all processes of a session, this process is ended,
/// too, and does not store the end of the child as a result.
pub fn await_own_signal(status: ExitStatus) {
    if is_interrupted(status) {
        thread::sleep(ARRIVAL);
    }
}

/// Returns whether SIGHUP, SIGINT, SIGQUIT or SIGTERM ended a process, or a command of a shell as its status reports.
#[must_use]
pub fn is_interrupted(status: ExitStatus) -> bool {
    let signal = status.signal().or_else(|| status.code().map(|code| code - 128));
    signal.is_some_and(|signal| ENDING.contains(&signal))
}
