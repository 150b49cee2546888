//! Limits on the model calls and the time of a run.

use crate::exit::{Exit, fail};
use crate::json::write::Members;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The calls and the time that a run has used, with their limits.
#[derive(Debug)]
pub struct CallBudget {
    calls: Cell<u32>,
    most: u32,
    begun: Instant,
    most_time: Option<Duration>,
    /// True if a call was refused.
    is_over: Cell<bool>,
}

impl CallBudget {
    /// Starts the clock, with no calls made. If `most_time` is `None`, the time is unlimited.
    #[must_use]
    pub fn new(most: u32, most_time: Option<Duration>) -> CallBudget {
        let (calls, is_over) = (Cell::new(0), Cell::new(false));
        CallBudget { calls, most, begun: Instant::now(), most_time, is_over }
    }

    /// Returns the number of calls made.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.calls.get()
    }

    /// Adds the number of calls and the seconds since the start to a JSON object.
    #[must_use]
    pub fn add_to(&self, members: Members) -> Members {
        members
            .number("calls", self.calls())
            .decimal("seconds", format_args!("{:.3}", self.seconds()))
    }

    /// Returns the number of calls left.
    #[must_use]
    pub fn left(&self) -> usize {
        (self.most - self.calls.get()) as usize
    }

    /// Returns the time at which the run has to end.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.most_time.map(|time| self.begun + time)
    }

    /// Returns the seconds since the start.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Checks that one more call is allowed.
    ///
    /// # Errors
    /// Fails with status 5 if no calls are left, and with 69 if the time is over.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_late = self.until().is_some_and(|until| Instant::now() >= until);
        self.is_over.set(self.left() == 0 || is_late);
        if self.left() == 0 {
            let text = format!("no call is left: --max-calls is {}", self.most);
            return fail(Exit::NoGain, text);
        }
        if is_late {
            return fail(Exit::Unavailable, "the time limit of --deadline has passed");
        }
        Ok(())
    }

    /// Returns true if [`CallBudget::check`] has failed. A summary that is missing for this reason is not a failure of the
    /// model.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Counts one more call.
    ///
    /// # Errors
    /// Fails as [`CallBudget::check`] does.
    pub fn take(&self) -> anyhow::Result<()> {
        self.check()?;
        self.calls.set(self.calls.get() + 1);
        Ok(())
    }
}
