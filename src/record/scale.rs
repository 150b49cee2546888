//! The ratio between a provider's token count and our estimate of the same request.
//!
//! A view record that changes a counted message makes the provider's count invalid. The ratio still holds, so the view
//! record stores it, and every program scales its estimates by the same number.

use std::fmt;

/// The scale 1. Scales are stored in millionths, so that writing and reading one does not change it.
const ONE: u64 = 1_000_000;
/// The smallest and the largest scale. Beyond them the two numbers must be about different requests.
const BOUNDS: (u64, u64) = (ONE / 4, 8 * ONE);

/// The number of a provider's tokens for each token of our estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(u64);

impl Default for Scale {
    fn default() -> Scale {
        Scale(ONE)
    }
}

impl Scale {
    /// Returns the scale at which our estimate `ours` corresponds to the provider's count `theirs`.
    #[must_use]
    pub fn new(theirs: u64, ours: u64) -> Scale {
        let ours = u128::from(ours.max(1));
        let scale = (u128::from(theirs) * u128::from(ONE) + ours / 2) / ours;
        Scale(u64::try_from(scale).unwrap_or(u64::MAX).clamp(BOUNDS.0, BOUNDS.1))
    }

    /// Parses a JSON number. Returns `None` if it is not a plausible scale.
    #[must_use]
    pub fn parse(raw: &str) -> Option<Scale> {
        let scale = raw.parse::<f64>().ok()? * ONE as f64;
        let is_plausible = (BOUNDS.0 as f64..=BOUNDS.1 as f64).contains(&scale);
        is_plausible.then(|| Scale(scale.round() as u64))
    }

    /// Converts our estimate `ours` to the provider's tokens, rounded to the nearest number.
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
    fn audit_14_a_scale_survives_writing_and_restores_the_count() {
        for (theirs, ours) in [(4167, 5936), (12_000, 9000), (1, 3), (7, 7), (170_510, 123_457)] {
            let scale = Scale::new(theirs, ours);
            assert_eq!(Scale::parse(&scale.to_string()), Some(scale));
            assert_eq!(scale.apply(ours), theirs);
        }
        assert_eq!(
            Scale::new(5, 12_000).apply(12_000),
            3000,
            "a scale beyond the bounds is clamped"
        );
        for raw in ["0", "0.2", "9", "-1", "1e9", "null", "\"1\"", ""] {
            assert_eq!(Scale::parse(raw), None, "{raw}");
        }
        assert_eq!(Scale::parse("1"), Some(Scale::default()));
    }
}
