//! Handles signals that arrive while an answer is being read. The reader of the answer is notified, so that it can
//! write the part of the reply that was already shown. Then the signal ends the program.

use clawutils::cli::progress;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time that the reader has to end the program after a signal arrives. After that, the signal ends it.
const GRACE: Duration = Duration::from_secs(3);

/// The interval between attempts to notify a reader whose queue is full.
const PAUSE: Duration = Duration::from_millis(20);

/// The channel to the reader of the current answer, if one is being read.
static READER: Mutex<Option<SyncSender<AnswerEvent>>> = Mutex::new(None);

/// An event for the reader of an answer.
#[derive(Debug)]
pub(super) enum AnswerEvent {
    /// A part of the answer.
    Part(clawutils::provider::http::AnswerPart),
    /// The transfer ended, with or without an error.
    End(Result<(), Box<clawutils::provider::Failure>>),
    /// A signal arrived that ends the program.
    Signal(i32),
}

/// While this value exists, the reader is notified of signals.
pub(super) struct Listening(());

impl Listening {
    pub(super) fn new(reader: SyncSender<AnswerEvent>) -> Listening {
        progress::end_by_signals(notify);
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

fn notify(signal: i32) {
    let Some(reader) = slot().clone() else { return };
    // If the program is still running after this time, the reader is blocked in a write to a terminal or a pipe.
    let end = Instant::now() + GRACE;
    let mut is_notified = false;
    while Instant::now() < end {
        is_notified = is_notified || reader.try_send(AnswerEvent::Signal(signal)).is_ok();
        thread::sleep(PAUSE);
    }
}
