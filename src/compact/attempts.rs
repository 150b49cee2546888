//! What failed lately, on disk: programs live too short to remember it themselves.
//!
//! `attempts.jsonl` in the state folder is a log, a line for each attempt: what was tried, when, and whether
//! it went well. Many programs may add to it at once. It is only a memory: it may be deleted at any time, and
//! what cannot be read or written is no failure.

use crate::json::Object;
use crate::json::write::Members;
use crate::transcript;
use std::path::PathBuf;

/// The length at which the log is begun anew, in bytes: thousands of failures.
const MOST_BYTES: u64 = 1 << 20;

/// The attempts at one thing.
#[derive(Clone, Debug)]
pub struct Attempts {
    path: Option<PathBuf>,
    key: String,
}

/// Failures in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// When the last attempt was, in Unix seconds.
    pub last: f64,
}

impl Attempts {
    /// Returns the attempts at `key`, a kind and a name as in `summary:ollama:qwen`. They are remembered in the state
    /// folder `dir`, if there is one.
    #[must_use]
    pub fn at(key: impl Into<String>, dir: Option<PathBuf>) -> Attempts {
        Attempts { path: dir.map(|dir| dir.join("attempts.jsonl")), key: key.into() }
    }

    /// The failures since it last went well. Those are forgotten that are followed by more than `reset`
    /// seconds without an attempt.
    #[must_use]
    pub fn failures(&self, reset: f64) -> Failures {
        let text = self.path.as_ref().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
        count(&String::from_utf8_lossy(&text), &self.key, reset)
    }

    /// Notes an attempt.
    pub fn note(&self, is_good: bool, ts: f64) {
        let Some(path) = &self.path else { return };
        if std::fs::metadata(path).is_ok_and(|file| file.len() > MOST_BYTES) {
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
    fn failures_are_counted_in_a_row_and_by_key() {
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
