//! Selects the sessions that are beyond a limit on age or number.

use super::SessionEntry;
use std::collections::HashMap;

/// The sessions to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Sessions that were active at or after this time (microseconds since 1970).
    Since(i64),
    /// This many sessions of each agent.
    Newest(usize),
}

/// Returns the sessions that are not kept. `entries` must be sorted, the most recently active first. Sessions
/// for which `is_current` returns true are always kept, and count among the newest.
#[must_use]
pub fn choose(
    entries: &[SessionEntry],
    keep: Keep,
    is_current: impl Fn(&SessionEntry) -> bool,
) -> Vec<&SessionEntry> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for entry in entries.iter().filter(|entry| is_current(entry)) {
        *counts.entry(&entry.agent).or_default() += 1;
    }
    let mut expired = Vec::new();
    for entry in entries.iter().filter(|entry| !is_current(entry)) {
        let count = counts.entry(&entry.agent).or_default();
        *count += 1;
        let is_over = match keep {
            Keep::Since(time) => entry.active < time,
            Keep::Newest(most) => *count > most,
        };
        if is_over {
            expired.push(entry);
        }
    }
    expired
}

/// Parses a duration, a whole number followed by `s`, `m`, `h`, `d` or `w`, into microseconds.
///
/// # Errors
/// If the text is not a duration.
pub fn duration(text: &str) -> Result<i64, String> {
    let read = || {
        let unit = text.chars().last()?;
        let seconds: i64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        let digits = &text[..text.len() - 1];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let count = if is_number { digits.parse::<i64>().ok()? } else { return None };
        count.checked_mul(seconds)?.checked_mul(1_000_000)
    };
    read().ok_or_else(|| "not a duration; write it like 30d, 12h or 90m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize) -> Vec<SessionEntry> {
        let entry = |number: usize| SessionEntry {
            id: format!("{number:03}"),
            active: -(number as i64),
            ..SessionEntry::default()
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn v78_the_newest_sessions_and_the_current_one_are_kept() {
        let entries = entries(51);
        for most in [1, 49, 50, 51, 500] {
            let expired = choose(&entries, Keep::Newest(most), |entry| entry.id == "000");
            assert_eq!(expired.len(), 51_usize.saturating_sub(most), "{most}");
            // The current session is the oldest, and counts in place of a newer one.
            let expired = choose(&entries, Keep::Newest(most), |entry| entry.id == "050");
            assert_eq!(expired.len(), 51_usize.saturating_sub(most), "{most}");
            assert!(expired.iter().all(|entry| entry.id != "050"));
        }
    }

    #[test]
    fn v78_a_session_active_exactly_at_the_limit_is_kept() {
        let entries = entries(3);
        let expired = choose(&entries, Keep::Since(-1), |_| false);
        assert_eq!(expired.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["002"]);
    }

    #[test]
    fn a_duration_is_a_number_with_a_unit() {
        assert_eq!(duration("30d"), Ok(30 * 86_400_000_000));
        for wrong in ["", "d", "3", "-3d", "3x", "1.5h", "99999999999999w", "3é"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
