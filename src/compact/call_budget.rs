//! What a run may spend: calls and time.

use crate::exit::{Exit, fail};
use crate::json::write::Members;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// What was spent, and the most that may be.
#[derive(Debug)]
pub struct CallBudget {
    calls: Cell<u32>,
    most: u32,
    begun: Instant,
    most_time: Option<Duration>,
}

impl CallBudget {
    /// Nothing yet.
    #[must_use]
    pub fn new(most: u32, most_time: Option<Duration>) -> CallBudget {
        CallBudget { calls: Cell::new(0), most, begun: Instant::now(), most_time }
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls.get()
    }

    /// Adds how many calls there were, and the seconds since the beginning.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members
            .number("calls", self.calls())
            .decimal("seconds", format_args!("{:.3}", self.seconds()))
    }

    /// How many there may still be.
    #[must_use]
    pub fn left(&self) -> usize {
        (self.most - self.calls.get()) as usize
    }

    /// When the time is over.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.most_time.map(|time| self.begun + time)
    }

    /// Seconds since the beginning.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Whether there may be one more call.
    ///
    /// # Errors
    /// 5 when there may be none, 69 when the time is over.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.left() == 0 {
            let text = format!("all {} calls of --max-calls are spent", self.most);
            return fail(Exit::NoGain, text);
        }
        if self.until().is_some_and(|until| Instant::now() >= until) {
            return fail(Exit::Unavailable, "the time of --deadline is over");
        }
        Ok(())
    }

    /// One more call.
    ///
    /// # Errors
    /// As [`CallBudget::check`].
    pub fn take(&self) -> anyhow::Result<()> {
        self.check()?;
        self.calls.set(self.calls.get() + 1);
        Ok(())
    }
}
