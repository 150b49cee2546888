//! Converts other programs' times to Unix seconds, the JSON number in the member `ts`.

use crate::json;
use jiff::Timestamp;

/// Converts milliseconds since 1970, given as a JSON number.
#[must_use]
pub fn of_millis(raw: &str) -> Option<String> {
    raw.parse::<i64>().ok().map(|millis| seconds(millis.saturating_mul(1000)))
}

/// Converts a time in the format of RFC 3339, given as a JSON string.
#[must_use]
pub fn of_text(raw: &str) -> Option<String> {
    let time = json::string(raw)?.parse::<Timestamp>().ok()?;
    Some(seconds(time.as_microsecond()))
}

/// Formats microseconds since 1970 as seconds with the digits that they need.
fn seconds(micros: i64) -> String {
    let (whole, part) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    match part {
        0 => whole.to_string(),
        _ => format!("{whole}.{part:06}").trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_seconds() {
        for (raw, expected) in [
            ("1795386493240", Some("1795386493.24")),
            ("1795386493000", Some("1795386493")),
            ("\"x\"", None),
        ] {
            assert_eq!(of_millis(raw).as_deref(), expected, "{raw}");
        }
        let text = "\"2026-11-22T22:28:13.242Z\"";
        assert_eq!(of_text(text).as_deref(), Some("1795386493.242"));
        assert_eq!(of_text("\"yesterday\""), None);
    }
}
