//! A signal that ends a program while its line is on the terminal: the line goes first.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Whether signals are heeded, here or in another place.
static HEEDED: AtomicBool = AtomicBool::new(false);

/// Leaves signals to a program that has its own way with them.
pub fn leave() {
    HEEDED.store(true, Ordering::Relaxed);
}

/// Runs `before`, with the signal's number, before a signal ends the program as it would have without this.
/// A signal that the program ignores stays ignored.
pub(super) fn heed(before: impl Fn(i32) + Send + 'static) {
    if HEEDED.swap(true, Ordering::Relaxed) {
        return;
    }
    let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| is_heard(*signal));
    // Without this the line stays, and no more than that.
    let Ok(mut signals) = Signals::new(heard.collect::<Vec<_>>()) else { return };
    let listen = move || {
        for signal in signals.forever() {
            before(signal);
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = thread::Builder::new().spawn(listen);
}

/// Whether a signal would end the program; where the kernel does not tell, it is left as it is.
fn is_heard(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 0)
}
