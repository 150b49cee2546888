//! A log of recent attempts on disk, which lets a later run back off after failures.
//!
//! `attempts.jsonl` in the state directory has one line for each attempt: its key, its time, and whether it
//! succeeded. Several programs may append to it at once. The user may delete it at any time; errors in reading
//! or writing it are ignored.

use crate::json::Object;
use crate::json::write::Members;
use crate::transcript;
use std::path::PathBuf;

/// The size in bytes at which the log is deleted and started again. A log of this size has thousands of attempts.
const MAX_BYTES: u64 = 1 << 20;

/// The attempts with one key.
#[derive(Clone, Debug)]
pub struct Attempts {
    path: Option<PathBuf>,
    key: String,
}

/// Consecutive failures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Failures {
    /// Their number.
    pub count: u64,
    /// The time of the last attempt, in Unix seconds.
    pub last: f64,
}

impl Attempts {
    /// Returns the attempts with `key`, which is a kind and a name: `summary:MODEL@URL` or `retry:ID`. The log is in
    /// the state directory `dir`; without one, no attempts are logged.
    #[must_use]
    pub fn at(key: impl Into<String>, dir: Option<PathBuf>) -> Attempts {
        Attempts { path: dir.map(|dir| dir.join("attempts.jsonl")), key: key.into() }
    }

    /// Returns the consecutive failures. The count restarts after a success or after `reset` seconds without an
    /// attempt.
    #[must_use]
    pub fn failures(&self, reset: f64) -> Failures {
        let text = self.path.as_ref().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        count(&String::from_utf8_lossy(&text), &self.key, reset)
    }

    /// Logs an attempt at time `ts`, in Unix seconds.
    pub fn note(&self, is_good: bool, ts: f64) {
        let Some(path) = &self.path else { return };
        if std::fs::metadata(path).is_ok_and(|file| file.len() > MAX_BYTES) {
            let _ = std::fs::remove_file(path);
        }
        let line = Members::new().string("key", &self.key).decimal("ts", ts).bool("ok", is_good);
        let _ = transcript::append_state(path, &line.into_line());
    }
}

fn count(text: &str, key: &str, reset: f64) -> Failures {
    let mut failures = Failures::default();
    for line in text.lines() {
        let Ok(object) = Object::parse(line) else { continue };
        let ts = object.get("ts").and_then(|ts| ts.parse::<f64>().ok());
        let Some(ts) = ts.filter(|ts| ts.is_finite()) else { continue };
        if object.string("key").as_deref() != Some(key) {
            continue;
        }
        if object.is_true("ok") || ts - failures.last > reset {
            failures.count = 0;
        }
        failures.count += u64::from(!object.is_true("ok"));
        failures.last = ts;
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_failures_are_counted_by_key() {
        let line = |key: &str, ts: u64, ok: bool| {
            format!("{{\"key\":\"{key}\",\"ts\":{ts},\"ok\":{ok}}}\n")
        };
        let text = [
            line("a", 0, false),
            line("a", 10, true),
            line("b", 15, false),
            line("a", 20, false),
            "torn {".to_owned() + "\n",
            line("a", 50, false),
        ]
        .concat();
        assert_eq!(count(&text, "a", 30.0), Failures { count: 2, last: 50.0 });
        assert_eq!(count(&text, "a", 29.0), Failures { count: 1, last: 50.0 });
        assert_eq!(count(&text, "b", 29.0), Failures { count: 1, last: 15.0 });
        assert_eq!(count(&text, "c", 29.0), Failures::default());
    }
}
