//! How many of a provider's tokens one of ours stands for, by a count of the provider's.
//!
//! A count ends with the view record that changes what it covered. What it tells of our estimates stays
//! true, so that record keeps it, and every program scales its estimates by the same number.

use std::fmt;

/// Millionths, so that a scale that was written and read again is the same one.
const ONE: u64 = 1_000_000;
/// Past these bounds the numbers are about different requests.
const BOUNDS: (u64, u64) = (ONE / 4, 8 * ONE);

/// A provider's tokens for each of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

impl Default for Scale {
    fn default() -> Scale {
        Scale(ONE)
    }
}

impl Scale {
    /// The scale at which `ours` stands for `theirs`.
    #[must_use]
    pub fn new(theirs: u64, ours: u64) -> Scale {
        let ours = u128::from(ours.max(1));
        let scale = (u128::from(theirs) * u128::from(ONE) + ours / 2) / ours;
        Scale(u64::try_from(scale).unwrap_or(u64::MAX).clamp(BOUNDS.0, BOUNDS.1))
    }

    /// Reads a JSON number; `None` when it is not a plausible scale.
    #[must_use]
    pub fn parse(raw: &str) -> Option<Scale> {
        let scale = raw.parse::<f64>().ok()? * ONE as f64;
        let is_plausible = (BOUNDS.0 as f64..=BOUNDS.1 as f64).contains(&scale);
        is_plausible.then(|| Scale(scale.round() as u64))
    }

    /// The provider's tokens for `ours`, rounded to the nearest.
    #[must_use]
    pub fn apply(self, ours: u64) -> u64 {
        let tokens =
            (u128::from(ours) * u128::from(self.0) + u128::from(ONE / 2)) / u128::from(ONE);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 as f64 / ONE as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_14_a_scale_is_read_as_it_was_written_and_gives_back_the_count() {
        for (theirs, ours) in [(4167, 5936), (12_000, 9000), (1, 3), (7, 7), (170_510, 123_457)] {
            let scale = Scale::new(theirs, ours);
            assert_eq!(Scale::parse(&scale.to_string()), Some(scale));
            assert_eq!(scale.apply(ours), theirs);
        }
        assert_eq!(Scale::new(5, 12_000).apply(12_000), 3000, "past the bounds");
        for raw in ["0", "0.2", "9", "-1", "1e9", "null", "\"1\"", ""] {
            assert_eq!(Scale::parse(raw), None, "{raw}");
        }
        assert_eq!(Scale::parse("1"), Some(Scale::default()));
    }
}
