//! The tool calls that are running, for the progress display.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The running calls, oldest first. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<Vec<RunningCall>>>);

/// A running call.
#[derive(Clone, Debug)]
struct RunningCall {
    number: usize,
    name: String,
    at: Instant,
}

impl Running {
    /// Adds call `number` of the tool `name`.
    pub fn begin(&self, number: usize, name: &str) {
        self.calls().push(RunningCall { number, name: name.to_owned(), at: Instant::now() });
    }

    /// Removes call `number`.
    pub fn end(&self, number: usize) {
        self.calls().retain(|call| call.number != number);
    }

    /// Returns the names of the running tools and the start time of the oldest, or `None` if no tool is running.
    #[must_use]
    pub fn now(&self) -> Option<(Vec<String>, Instant)> {
        let calls = self.calls();
        let first = calls.first()?;
        Some((calls.iter().map(|call| call.name.clone()).collect(), first.at))
    }

    fn calls(&self) -> MutexGuard<'_, Vec<RunningCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_calls_are_removed_and_the_time_is_that_of_the_oldest() {
        let running = Running::default();
        assert_eq!(running.now(), None);
        ["a", "b", "c"].iter().enumerate().for_each(|(number, name)| running.begin(number, name));
        let (names, first) = running.now().unwrap();
        assert_eq!(names, ["a", "b", "c"]);
        running.end(0);
        let (names, second) = running.now().unwrap();
        assert_eq!(names, ["b", "c"]);
        assert!(second >= first);
    }
}
