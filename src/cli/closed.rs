//! Detects that standard output was closed when the program started.
//!
//! The Rust runtime opens /dev/null in place of a closed descriptor, so everything that is written would be lost
//! without an error. Afterwards, a closed standard output cannot be told from one that is /dev/null on purpose, because
//! many programs start others with /dev/null opened for reading and writing. So this module looks at the descriptor
//! before the runtime does.

use std::sync::atomic::{AtomicBool, Ordering};

/// True if standard output was closed.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Makes the loader call [`note`] before `main`. The loader passes arguments, which the function ignores.
#[allow(unsafe_code, reason = "nothing else runs before the runtime of Rust")]
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static BEFORE_MAIN: extern "C" fn() = note;

/// Stores whether standard output is closed. This makes only a system call, because the standard library must not be
/// used this early.
extern "C" fn note() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    IS_CLOSED.store(flags == Err(rustix::io::Errno::BADF), Ordering::Relaxed);
}

/// Checks that standard output was not closed when the program started.
///
/// # Errors
/// Fails if it was.
pub fn check() -> std::io::Result<()> {
    let text = "standard output is closed; redirect it to a file, a pipe or /dev/null";
    match IS_CLOSED.load(Ordering::Relaxed) {
        true => Err(std::io::Error::other(text)),
        false => Ok(()),
    }
}
