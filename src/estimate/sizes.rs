//! Sizes of request bodies in bytes that endpoints accepted or refused, in a file with one JSON object per line.
//!
//! A refusal may state the largest body that an endpoint takes. If it does not, the largest accepted body tells whether
//! a refused one can be too large. Small bodies say nothing, so only large ones are stored.

use crate::json::Object;
use crate::json::write::Members;

/// The size in bytes from which an accepted body is stored. Servers commonly limit a body to 1, 4.5, 10 or 32 MB.
pub const MIN_ACCEPTED: u64 = 1_000_000;
/// The smallest plausible limit in bytes; smaller numbers in refusals are about something else.
pub const MIN_LIMIT: u64 = 16 << 10;
/// The time in seconds for which a size applies: 30 days, because servers are reconfigured.
pub const LIFETIME: f64 = 30.0 * 86_400.0;

/// The known sizes of bodies that an endpoint accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The size of the largest body that was accepted.
    pub accepted: Option<u64>,
    /// The limit that the endpoint stated, if no larger body was accepted since.
    pub limit: Option<u64>,
}

impl Sizes {
    /// Returns true if storing an accepted body of this size tells something new: it is large, and at least a quarter
    /// larger than the largest one, so that a growing session does not store every request.
    #[must_use]
    pub fn learns(&self, bytes: u64) -> bool {
        let known = self.accepted.unwrap_or(0);
        bytes >= MIN_ACCEPTED && bytes > known.saturating_add(known / 4)
            || self.limit.is_some_and(|limit| bytes > limit)
    }
}

/// A size to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A body of this size was accepted.
    Accepted(u64),
    /// The endpoint stated this limit.
    Limit(u64),
}

/// Returns the line that stores a size for `endpoint`.
#[must_use]
pub fn line(endpoint: &str, size: Size, ts: f64) -> String {
    let line = Members::new().string("endpoint", endpoint);
    let line = match size {
        Size::Accepted(bytes) => line.number("accepted_bytes", bytes),
        Size::Limit(bytes) => line.number("limit_bytes", bytes),
    };
    line.decimal("ts", ts).into_line()
}

/// Returns the sizes in `text` that still apply at `now`. `is_place` returns true if a stored endpoint is the one wanted.
/// Lines that do not match are skipped.
#[must_use]
pub fn lookup(text: &str, is_place: impl Fn(&str) -> bool, now: f64) -> Sizes {
    let mut sizes = Sizes::default();
    for object in text.lines().filter_map(|line| Object::parse(line).ok()) {
        let ts: Option<f64> = object.get("ts").and_then(|ts| ts.parse().ok());
        let applies = ts.is_some_and(|ts| (now - ts).abs() <= LIFETIME);
        if !applies || !object.string("endpoint").is_some_and(|endpoint| is_place(&endpoint)) {
            continue;
        }
        if let Some(bytes) = object.number("accepted_bytes") {
            sizes.accepted = sizes.accepted.max(Some(bytes));
            sizes.limit = sizes.limit.filter(|limit| *limit >= bytes);
        }
        if let Some(limit) = object.number("limit_bytes").filter(|limit| *limit >= MIN_LIMIT) {
            sizes.limit = Some(limit);
            sizes.accepted = sizes.accepted.filter(|accepted| *accepted <= limit);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_statement_of_an_endpoint_applies() {
        let lines = |all: &[(Size, f64)]| -> String {
            all.iter().map(|(size, ts)| line("a", *size, *ts)).collect()
        };
        use Size::{Accepted, Limit};
        for (all, accepted, limit) in [
            (&[(Accepted(2_000_000), 1.0), (Accepted(1_500_000), 2.0)][..], Some(2_000_000), None),
            (
                &[(Limit(4_000_000), 1.0), (Accepted(2_000_000), 2.0)],
                Some(2_000_000),
                Some(4_000_000),
            ),
            (&[(Limit(4_000_000), 1.0), (Accepted(5_000_000), 2.0)], Some(5_000_000), None),
            (&[(Accepted(5_000_000), 1.0), (Limit(4_000_000), 2.0)], None, Some(4_000_000)),
            (&[(Limit(100), 1.0)], None, None),
            (&[(Limit(4_000_000), -LIFETIME)], None, None),
        ] {
            let text = line("b", Limit(20_000), 1.0) + &lines(all) + "torn{\n";
            assert_eq!(lookup(&text, |it| it == "a", 3.0), Sizes { accepted, limit }, "{all:?}");
        }
    }

    #[test]
    fn only_what_is_new_is_stored() {
        let known = Sizes { accepted: Some(2_000_000), limit: None };
        assert!(!known.learns(2_400_000) && known.learns(2_600_000));
        assert!(!Sizes::default().learns(999_999) && Sizes::default().learns(1_000_000));
        assert!(Sizes { accepted: None, limit: Some(50_000) }.learns(60_000));
    }
}
