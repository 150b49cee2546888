//! Threads that share work.

use std::hint;
use std::num::NonZero;
use std::thread;

/// How many threads can work at the same time.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The processor that the calling thread is on, to be given to [`Here::leave`] by one that it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    #[cfg(target_os = "linux")]
    processor: usize,
}

impl Here {
    pub(super) fn new() -> Here {
        Here {
            #[cfg(target_os = "linux")]
            processor: rustix::thread::sched_getcpu(),
        }
    }

    /// Goes on on another processor, if there is one. In a virtual machine a thread often starts on the same
    /// one, and both take turns there, for 10 ms and more, while another is idle.
    pub(super) fn leave(self) {
        #[cfg(target_os = "linux")]
        if let Ok(all) = rustix::thread::sched_getaffinity(None) {
            let mut others = all;
            others.unset(self.processor);
            // Where that is not allowed, or there is no other, nothing is lost but time.
            if rustix::thread::sched_setaffinity(None, &others).is_ok() {
                let _ = rustix::thread::sched_setaffinity(None, &all);
            }
        }
    }
}

/// So often it is asked whether something is there: for about a tenth of a millisecond.
const MOST_LOOKS: usize = 2000;

/// Waits for something that is about to be there, without sleeping, and says whether it is. A thread that sleeps
/// between two pieces of work takes long to come back, and often to the processor of the one that woke it.
pub(super) fn wait_briefly(mut is_there: impl FnMut() -> bool) -> bool {
    (0..MOST_LOOKS).any(|_| {
        let is_there = is_there();
        if !is_there {
            hint::spin_loop();
        }
        is_there
    })
}
