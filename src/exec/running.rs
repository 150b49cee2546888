//! What runs at this moment, for whoever looks on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The calls that run, the oldest first. A clone says the same.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Mutex<Vec<Began>>>);

/// A call that began.
#[derive(Clone, Debug)]
struct Began {
    number: usize,
    name: String,
    at: Instant,
}

impl Running {
    /// Call `number`, of tool `name`, begins.
    pub fn begin(&self, number: usize, name: &str) {
        self.calls().push(Began { number, name: name.to_owned(), at: Instant::now() });
    }

    /// That call has ended.
    pub fn end(&self, number: usize) {
        self.calls().retain(|call| call.number != number);
    }

    /// The names of the tools that run, and since when the first of them does; `None` when none runs.
    #[must_use]
    pub fn now(&self) -> Option<(Vec<String>, Instant)> {
        let calls = self.calls();
        let first = calls.first()?;
        Some((calls.iter().map(|call| call.name.clone()).collect(), first.at))
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Began>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_does_not_run_and_the_oldest_tells_the_time() {
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
