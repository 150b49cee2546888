//! Decides when the session under a key ends and a new one begins: daily at a fixed time, or after a period
//! without messages.

use super::time;
use crate::input::Input;
use crate::input::backward::{Backward, Needles};
use crate::json::Object;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

/// The conditions that end a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// Ends the session at this local time every day.
    pub daily: Option<civil::Time>,
    /// Ends the session after more than this many minutes without a message from the user.
    pub idle: Option<u32>,
}

impl Reset {
    /// Returns true if a session whose last user message was at `last` is over. It is not over if the clock
    /// was set back.
    #[must_use]
    pub fn is_over(self, last: i64, now: i64, zone: &TimeZone) -> bool {
        let idle = self.idle.is_some_and(|minutes| now - last > i64::from(minutes) * 60_000_000);
        let boundary = self.daily.and_then(|at| last_boundary(at, now, zone));
        idle || boundary.is_some_and(|boundary| last < boundary)
    }
}

/// Returns the latest moment up to `now` at which the local time was `at`. If daylight saving skips that
/// time, the moment is later by the skipped interval; if the time occurs twice, the first moment is used.
fn last_boundary(at: civil::Time, now: i64, zone: &TimeZone) -> Option<i64> {
    let today = Timestamp::from_microsecond(now).ok()?.to_zoned(zone.clone()).date();
    let boundary = |date: civil::Date| {
        let zoned = zone.to_zoned(date.to_datetime(at)).ok()?;
        Some(zoned.timestamp().as_microsecond()).filter(|boundary| *boundary <= now)
    };
    boundary(today).or_else(|| boundary(today.yesterday().ok()?))
}

/// Parses `daily@HH:MM`.
///
/// # Errors
/// If the text does not have this form.
pub fn daily(text: &str) -> Result<civil::Time, String> {
    let read = || {
        let (hour, minute) = text.strip_prefix("daily@")?.split_once(':')?;
        let number = |digits: &str| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number { digits.parse::<i8>().ok() } else { None }
        };
        civil::Time::new(number(hour)?, number(minute)?, 0, 0).ok()
    };
    read().ok_or_else(|| "not a daily time; write it like daily@04:00".to_owned())
}

/// Returns the time of the last user message. Other records, such as checkpoints, do not count.
///
/// # Errors
/// If the transcript cannot be read.
pub fn last_prompt_time(input: &Input) -> anyhow::Result<Option<i64>> {
    let needles = Needles::quoted(&[r#""type":"user""#, r#""type": "user""#]);
    let mut lines = Backward::new(std::slice::from_ref(input), input.length, &needles);
    while let Some(line) = lines.next_line()? {
        let text = std::str::from_utf8(&line.bytes).unwrap_or_default().trim();
        let object = Object::parse(text).ok();
        let is_user = |object: &Object<'_>| object.string("type").as_deref() == Some("user");
        let ts = object.filter(is_user).and_then(|object| time::of_ts(object.get("ts")?));
        if ts.is_some() {
            return Ok(ts);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        time::of_text(text).unwrap()
    }

    fn zone() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn v77_a_daily_reset_follows_local_time_when_the_clocks_change() {
        let four = Reset { daily: Some(daily("daily@04:00").unwrap()), idle: None };
        let half_past_two = Reset { daily: Some(daily("daily@02:30").unwrap()), idle: None };
        for (reset, last, now, expected) in [
            // Winter: 04:00 is 03:00 UTC.
            (four, "2026-01-09T20:00:00Z", "2026-01-10T02:59:59Z", false),
            (four, "2026-01-09T20:00:00Z", "2026-01-10T03:00:00Z", true),
            (four, "2026-01-10T03:00:00Z", "2026-01-10T03:00:00Z", false),
            (four, "2026-01-10T03:00:00Z", "2026-01-11T02:59:00Z", false),
            // The nights in which the clocks change.
            (four, "2026-03-28T20:00:00Z", "2026-03-29T01:59:59Z", false),
            (four, "2026-03-28T20:00:00Z", "2026-03-29T02:00:00Z", true),
            (four, "2026-10-24T20:00:00Z", "2026-10-25T02:59:59Z", false),
            (four, "2026-10-24T20:00:00Z", "2026-10-25T03:00:00Z", true),
            // A skipped time counts as an hour later; if a time occurs twice, the first moment is used.
            (half_past_two, "2026-03-28T20:00:00Z", "2026-03-29T01:29:59Z", false),
            (half_past_two, "2026-03-28T20:00:00Z", "2026-03-29T01:30:00Z", true),
            (half_past_two, "2026-10-24T20:00:00Z", "2026-10-25T00:29:59Z", false),
            (half_past_two, "2026-10-24T20:00:00Z", "2026-10-25T00:30:00Z", true),
            (half_past_two, "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", false),
            // The clock was set back.
            (four, "2026-01-10T12:00:00Z", "2026-01-09T12:00:00Z", false),
        ] {
            assert_eq!(reset.is_over(at(last), at(now), &zone()), expected, "{last} {now}");
        }
    }

    #[test]
    fn v77_a_session_ends_when_it_is_idle_for_longer_than_the_limit() {
        let reset = Reset { daily: None, idle: Some(30) };
        let over = |now| reset.is_over(at("2026-01-10T12:00:00Z"), at(now), &zone());
        assert!(!over("2026-01-10T12:30:00Z") && over("2026-01-10T12:30:00.000001Z"));
        assert!(!over("2026-01-10T11:00:00Z"));
        let both = Reset { daily: Some(daily("daily@04:00").unwrap()), idle: Some(6000) };
        assert!(both.is_over(at("2026-01-10T02:00:00Z"), at("2026-01-10T03:00:00Z"), &zone()));
    }

    #[test]
    fn v77_only_user_messages_count() {
        let time_in = |text: &str| last_prompt_time(&Input::memory("t", text.into())).unwrap();
        let text = "{\"type\":\"user\",\"ts\":5,\"content\":\"x\"}\n\
                    {\"type\":\"checkpoint\",\"ts\":9,\"summary\":{\"type\":\"user\",\"ts\":8}}\n";
        assert_eq!(time_in(text), Some(5_000_000));
        assert_eq!(time_in("{\"type\":\"error\",\"ts\":9}\n"), None);
    }

    #[test]
    fn invalid_daily_times_are_rejected() {
        for wrong in ["04:00", "daily@4:00", "daily@24:00", "daily@04:60", "daily@+4:00", "daily@"]
        {
            assert!(daily(wrong).is_err(), "{wrong}");
        }
    }
}
