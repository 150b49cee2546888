//! Signals while an answer is being read: the reader is notified, so that it can write what was shown before the
//! signal ends the program.

use clawutils::cli::progress;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a notified reader has to end the program; then the signal ends it.
const GRACE: Duration = Duration::from_secs(3);

/// How often a reader whose queue is full is notified again.
const PAUSE: Duration = Duration::from_millis(20);

/// The sender to the reader of the current answer, if one is being read.
static READER: Mutex<Option<SyncSender<AnswerEvent>>> = Mutex::new(None);

/// Something that the reader of an answer waits for.
#[derive(Debug)]
pub(super) enum AnswerEvent {
    /// A part of the answer.
    #[cfg(feature = "http")]
    Part(clawutils::provider::http::AnswerPart),
    /// The answer ended, well or not.
    #[cfg(feature = "http")]
    End(Result<(), clawutils::provider::Failure>),
    /// A signal came that ends the program.
    Signal(i32),
}

/// Notifies a reader of signals, until this is dropped.
pub(super) struct Listening(());

impl Listening {
    pub(super) fn new(reader: SyncSender<AnswerEvent>) -> Listening {
        progress::end_by_signals(tell);
        *slot() = Some(reader);
        Listening(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        *slot() = None;
    }
}

fn slot() -> MutexGuard<'static, Option<SyncSender<AnswerEvent>>> {
    READER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(signal: i32) {
    let Some(reader) = slot().clone() else { return };
    // A reader that does not end the program within the grace is held up by a terminal or a pipe.
    let end = Instant::now() + GRACE;
    let mut is_told = false;
    while Instant::now() < end {
        is_told = is_told || reader.try_send(AnswerEvent::Signal(signal)).is_ok();
        thread::sleep(PAUSE);
    }
}
