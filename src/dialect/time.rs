//! Converts other programs' times to Unix seconds, the JSON number in the member `ts`.

use crate::json;
use jiff::Timestamp;

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
    let any_form = || Some(json::string(raw)?.parse::<Timestamp>().ok()?.as_microsecond());
    of_usual_form(raw.as_bytes()).or_else(any_form)
}

/// The form in which programs write times.
const FORM: &[u8; 26] = b"\"0000-00-00T00:00:00.000Z\"";

/// Converts a time in the usual form, in a twentieth of the time that the parser of all forms takes. Returns `None` for
/// other forms, dates that do not exist, leap seconds and years before 1970.
fn of_usual_form(raw: &[u8]) -> Option<i64> {
    let raw: &[u8; FORM.len()] = raw.try_into().ok()?;
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    };
    if !raw.iter().zip(FORM).all(fits) {
        return None;
    }
    let number = |from: usize, to: usize| {
        raw[from..to].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
    };
    let (year, month, day) = (number(1, 5), number(6, 8), number(9, 11));
    let (hour, minute, second) = (number(12, 14), number(15, 17), number(18, 20));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_date = (1970..9999).contains(&year) && (1..=12).contains(&month);
    if !(is_date && (1..=last).contains(&day) && hour < 24 && minute < 60 && second < 60) {
        return None;
    }
    // Years begin in March here, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some((seconds * 1000 + number(21, 24)) * 1000)
}

/// Appends a time in seconds, without trailing zeros.
pub fn push(json: &mut String, micros: i64) {
    if micros < 0 {
        json.push('-');
    }
    let (whole, part) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    json.push_str(itoa::Buffer::new().format(whole));
    if part > 0 {
        json.push('.');
        let (mut rest, mut unit) = (part, 100_000);
        while rest > 0 {
            json.push(char::from(b'0' + (rest / unit) as u8));
            (rest, unit) = (rest % unit, unit / 10);
        }
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
        for (micros, expected) in [
            (1, "0.000001"),
            (1_020_300, "1.0203"),
            (-1, "-0.000001"),
            (-750_000, "-0.75"),
            (-2_000_000, "-2"),
        ] {
            assert_eq!(seconds(Some(micros)).as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_usual_form_is_read_like_all_others() {
        let any_form = |raw: &str| {
            let time = json::string(raw)?.parse::<Timestamp>().ok()?;
            Some(time.as_microsecond())
        };
        let years = [1970, 1999, 2000, 2024, 2026, 2100, 9998];
        let days = (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day)));
        for (year, (month, day)) in
            years.iter().flat_map(|year| days.clone().map(move |it| (year, it)))
        {
            let raw = format!("\"{year:04}-{month:02}-{day:02}T23:04:59.067Z\"");
            assert_eq!(of_usual_form(raw.as_bytes()), any_form(&raw), "{raw}");
        }
        for time in ["00:00:00.000", "23:59:59.999", "24:00:00.000", "12:60:00.000"] {
            let raw = format!("\"2026-11-22T{time}Z\"");
            assert_eq!(of_usual_form(raw.as_bytes()), any_form(&raw), "{raw}");
        }
        let others =
            ["2026-11-22T22:28:13Z", "2026-11-22T22:28:60.000Z", "1969-12-31T23:59:59.000Z"];
        for raw in others.map(|text| format!("\"{text}\"")) {
            assert_eq!((of_usual_form(raw.as_bytes()), of_text(&raw)), (None, any_form(&raw)));
        }
    }
}
