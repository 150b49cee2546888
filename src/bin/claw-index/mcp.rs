//! mcp: a server of the Model Context Protocol on standard input and output, so that agents can search old sessions.
//!
//! One thread reads messages, so that a request can be cancelled while another thread answers it. Answers come in the order
//! of the requests.

mod message;
mod server;
mod tools;

use crate::mcp::message::Incoming;
use anyhow::Context;
use clawutils::cli::Output;
use clawutils::exit::Exit;
use clawutils::json::Object;
use rusqlite::{Connection, InterruptHandle};
use std::collections::VecDeque;
use std::io::{BufReader, Write, stdin};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a request may take.
const MAX_TIME: Duration = Duration::from_secs(30);
/// The pause between attempts to stop a query.
const PAUSE: Duration = Duration::from_millis(20);
/// The number of requests that may wait. The client then waits, too.
const MAX_WAITING: usize = 256;

/// Serve the index to agents with the Model Context Protocol, on standard input and output
#[derive(Debug, clap::Args)]
pub struct Mcp {}

/// The state that the two threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Incoming>,
    /// The id of the request that is being answered.
    current: Option<String>,
    /// The time at which that began.
    since: Option<Instant>,
    /// True if it was cancelled.
    is_cancelled: bool,
    /// The handle that stops its query.
    interrupt: Option<InterruptHandle>,
    is_over: bool,
}

impl Mcp {
    /// Answers requests until the input ends.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn run(self, path: &Path) -> anyhow::Result<Exit> {
        let shared = Arc::new(Shared::default());
        for work in [Shared::read, Shared::watch] {
            let shared = Arc::clone(&shared);
            // The threads are not joined: one may be waiting for the next line.
            thread::spawn(move || work(&shared));
        }
        let mut out = Output::open();
        while let Some(message) = shared.next() {
            let answer = match message {
                Incoming::Invalid(answer) => Some(answer),
                Incoming::Request { id, method, params } => {
                    let opened = |database: &Connection| {
                        shared.state().interrupt = Some(database.get_interrupt_handle());
                    };
                    let answer = server::answer(&method, &params, path, &opened);
                    let is_cancelled = shared.finish();
                    (!is_cancelled).then(|| match answer {
                        Ok(result) => message::result(&id, result),
                        Err((code, why)) => message::error(&id, code, &why),
                    })
                }
                Incoming::Notification { .. } | Incoming::End => None,
            };
            if let Some(answer) = answer {
                out.write_all(answer.as_bytes())
                    .and_then(|()| out.flush())
                    .context("cannot write '<stdout>'")?;
            }
        }
        out.finish()?;
        Ok(Exit::Done)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads messages until the input ends.
    fn read(&self) {
        let mut input = BufReader::new(stdin());
        loop {
            let message = message::read(&mut input).unwrap_or(Incoming::End);
            let mut state = self.state();
            match message {
                Incoming::End => state.is_over = true,
                Incoming::Notification { method, params } => {
                    if method == "notifications/cancelled" {
                        state.cancel(&params);
                    }
                }
                message => {
                    while state.waiting.len() >= MAX_WAITING {
                        state = self.wait(state);
                    }
                    state.waiting.push_back(message);
                }
            }
            let is_over = state.is_over;
            drop(state);
            self.changed.notify_all();
            if is_over {
                return;
            }
        }
    }

    /// Stops each query that takes too long or was cancelled. It may be about to begin, so it is stopped until it ends.
    fn watch(&self) {
        let mut state = self.state();
        loop {
            let Some(since) = state.since else {
                state = self.wait(state);
                continue;
            };
            let left = MAX_TIME.saturating_sub(since.elapsed());
            let is_due = left.is_zero() || state.is_cancelled;
            if let Some(interrupt) = state.interrupt.as_ref().filter(|_| is_due) {
                interrupt.interrupt();
            }
            let pause = if is_due { PAUSE } else { left };
            let waited = self.changed.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the next message to answer; `None` at the end.
    fn next(&self) -> Option<Incoming> {
        let mut state = self.state();
        loop {
            if let Some(message) = state.waiting.pop_front() {
                if let Incoming::Request { id, .. } = &message {
                    (state.current, state.since) = (Some(id.clone()), Some(Instant::now()));
                }
                drop(state);
                self.changed.notify_all();
                return Some(message);
            }
            if state.is_over {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// Notes that the request is answered. Returns true if it was cancelled, so that it gets no answer.
    fn finish(&self) -> bool {
        let mut state = self.state();
        (state.current, state.since, state.interrupt) = (None, None, None);
        let is_cancelled = std::mem::take(&mut state.is_cancelled);
        drop(state);
        self.changed.notify_all();
        is_cancelled
    }
}

impl State {
    /// Cancels a request, whether it waits or is being answered.
    fn cancel(&mut self, params: &str) {
        let Ok(params) = Object::parse(params) else { return };
        let Some(cancelled) = params.get("requestId") else { return };
        self.waiting.retain(|it| !matches!(it, Incoming::Request { id, .. } if id == cancelled));
        if self.current.as_deref() == Some(cancelled) {
            self.is_cancelled = true;
        }
    }
}
