//! Times in transcripts and in the index, in microseconds since 1970.

use crate::json;
use jiff::Timestamp;

/// Converts seconds to microseconds.
#[must_use]
pub fn of_seconds(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// Parses a time in RFC 3339.
#[must_use]
pub fn of_text(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
}

/// Parses a `ts` member: seconds, or RFC 3339 text, as in claw0's first format.
#[must_use]
pub fn of_ts(raw: &str) -> Option<i64> {
    match json::string(raw) {
        Some(text) => of_text(&text),
        None => raw.parse::<f64>().ok().filter(|ts| ts.abs() < 1e12).map(of_seconds),
    }
}

/// Formats a time in RFC 3339 as claw0 does, so that times sort as text.
#[must_use]
pub fn to_text(time: i64) -> String {
    let time = Timestamp::from_microsecond(time).unwrap_or(Timestamp::UNIX_EPOCH);
    let printer = jiff::fmt::temporal::DateTimePrinter::new().precision(Some(6));
    printer.timestamp_to_string(&time).replace('Z', "+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_both_formats_of_claw0_are_read() {
        let time = of_text("2026-11-21T21:09:59.819858+00:00").unwrap();
        assert_eq!(to_text(time), "2026-11-21T21:09:59.819858+00:00");
        assert_eq!(of_ts("1795295399.819858"), Some(time));
        assert_eq!(of_ts("\"2026-11-21T21:09:59.819858+00:00\""), Some(time));
        assert_eq!(of_ts("\"yesterday\""), None);
        assert_eq!(to_text(0), "1970-01-01T00:00:00.000000+00:00");
    }
}
