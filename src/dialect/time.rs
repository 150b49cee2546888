//! Converts other programs' times to Unix seconds, the JSON number in the member `ts`.

use crate::json;
use jiff::Timestamp;
use std::fmt::Write;

/// The time of a record.
#[derive(Clone, Copy, Debug)]
pub enum Time<'a> {
    /// Microseconds since 1970.
    Micros(i64),
    /// A time in RFC 3339, as a JSON string. It is parsed when the record is written.
    Text(&'a str),
}

impl Time<'_> {
    /// Returns the microseconds since 1970; `None` if the text is not a time.
    #[must_use]
    pub fn micros(self) -> Option<i64> {
        match self {
            Time::Micros(micros) => Some(micros),
            Time::Text(raw) => of_text(raw),
        }
    }
}

/// Converts milliseconds since 1970, given as a JSON number, to microseconds.
#[must_use]
pub fn of_millis(raw: &str) -> Option<i64> {
    raw.parse::<i64>().ok().map(|millis| millis.saturating_mul(1000))
}

/// Converts a time in the format of RFC 3339, given as a JSON string, to microseconds since 1970.
#[must_use]
pub fn of_text(raw: &str) -> Option<i64> {
    Some(json::string(raw)?.parse::<Timestamp>().ok()?.as_microsecond())
}

/// Appends a time in seconds, without trailing zeros.
pub fn push(json: &mut String, micros: i64) {
    let (whole, part) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    json.push_str(itoa::Buffer::new().format(whole));
    if part > 0 {
        // Writing into a String cannot fail.
        let _ = write!(json, ".{part:06}");
        json.truncate(json.trim_end_matches('0').len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(micros: Option<i64>) -> Option<String> {
        let mut json = String::new();
        push(&mut json, micros?);
        Some(json)
    }

    #[test]
    fn times_become_seconds() {
        for (raw, expected) in [
            ("1795386493240", Some("1795386493.24")),
            ("1795386493000", Some("1795386493")),
            ("\"x\"", None),
        ] {
            assert_eq!(seconds(of_millis(raw)).as_deref(), expected, "{raw}");
        }
        let text = "\"2026-11-22T22:28:13.242Z\"";
        assert_eq!(seconds(of_text(text)).as_deref(), Some("1795386493.242"));
        assert_eq!(of_text("\"yesterday\""), None);
    }
}
