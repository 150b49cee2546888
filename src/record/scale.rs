//! The ratio between a provider's token count and our estimate of the same request.
//!
//! A view record that changes a counted message makes the provider's count invalid. The ratio still holds, so the view
//! record stores it, and every program scales its estimates by the same number. A ratio is valid only for one way of
//! estimating, so the record also names that way: the [`Basis`].

use crate::json::Object;
use crate::json::write::Members;

/// The scale 1. Scales are stored in millionths, so that writing and reading one does not change it.
const ONE: u64 = 1_000_000;
/// The smallest and the largest scale. Beyond these bounds, the count and the estimate must be for different requests.
const BOUNDS: (u64, u64) = (ONE / 4, 8 * ONE);

/// The largest length of a basis in bytes.
const BASIS: usize = 40;

/// A short text that names the way of estimating for which a scale was measured. Scales with the same basis apply to
/// the same estimates. This module only stores and compares the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    /// The text, padded with zero bytes.
    bytes: [u8; BASIS],
}

impl Basis {
    /// Stores a basis. Returns `None` if the text is empty or too long, or has a character that is a space or is not
    /// printable ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Basis> {
        let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let mut bytes = [0; BASIS];
        bytes.get_mut(..text.len()).filter(|_| is_valid)?.copy_from_slice(text.as_bytes());
        Some(Basis { bytes })
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default().trim_end_matches('\0')
    }
}

/// The number of a provider's tokens for each token of our estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    millionths: u64,
    /// The way of estimating for which the scale was measured; `None` if the record does not name it.
    basis: Option<Basis>,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { millionths: ONE, basis: None }
    }
}

impl Scale {
    /// Returns the scale that turns our estimate `ours`, made on this basis, into the provider's count `theirs`. A
    /// scale beyond the bounds is clamped.
    #[must_use]
    pub fn new(theirs: u64, ours: u64, basis: Option<Basis>) -> Scale {
        let ours = u128::from(ours.max(1));
        let scale = (u128::from(theirs) * u128::from(ONE) + ours / 2) / ours;
        let millionths = u64::try_from(scale).unwrap_or(u64::MAX).clamp(BOUNDS.0, BOUNDS.1);
        Scale { millionths, basis }
    }

    /// Reads the members `scale` and `scale_basis` of a record. Returns `None` if there is no plausible scale.
    #[must_use]
    pub fn read(object: &Object<'_>) -> Option<Scale> {
        let scale = object.get("scale")?.parse::<f64>().ok()? * ONE as f64;
        let basis = object.string("scale_basis").and_then(|text| Basis::new(&text));
        let is_plausible = (BOUNDS.0 as f64..=BOUNDS.1 as f64).contains(&scale);
        is_plausible.then(|| Scale { millionths: scale.round() as u64, basis })
    }

    /// Adds the members that [`Scale::read`] reads.
    #[must_use]
    pub fn add_to(scale: Option<Scale>, members: Members) -> Members {
        let basis = scale.as_ref().and_then(|scale| scale.basis.as_ref()).map(Basis::as_str);
        let ratio = scale.map(|scale| scale.millionths as f64 / ONE as f64);
        members.optional(Members::decimal, "scale", ratio).optional(
            Members::string,
            "scale_basis",
            basis,
        )
    }

    /// Returns the scale to use for estimates on `basis`. If this scale was measured on another basis or an unknown
    /// one, it is raised to at least 1, because it must not lower other estimates.
    #[must_use]
    pub fn on(self, basis: Option<Basis>) -> Scale {
        if basis.is_some() && self.basis == basis {
            return self;
        }
        Scale { millionths: self.millionths.max(ONE), basis }
    }

    /// Converts our estimate `ours` to the provider's tokens, rounded to the nearest number.
    #[must_use]
    pub fn apply(self, ours: u64) -> u64 {
        let tokens = (u128::from(ours) * u128::from(self.millionths) + u128::from(ONE / 2))
            / u128::from(ONE);
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(record: &str) -> Option<Scale> {
        Scale::read(&Object::parse(record).unwrap())
    }

    #[test]
    fn audit_14_a_scale_survives_writing_and_restores_the_count() {
        for (theirs, ours) in [(4167, 5936), (12_000, 9000), (1, 3), (7, 7), (170_510, 123_457)] {
            let scale = Scale::new(theirs, ours, Basis::new("claude/2"));
            let record = Scale::add_to(Some(scale), Members::new()).into_json();
            assert_eq!(read(&record), Some(scale), "{record}");
            assert_eq!(scale.apply(ours), theirs);
        }
        let clamped = Scale::new(5, 12_000, None).apply(12_000);
        assert_eq!(clamped, 3000, "a scale beyond the bounds is clamped");
        for raw in ["0", "0.2", "9", "-1", "1e9", "null", "\"1\"", "[]"] {
            assert_eq!(read(&format!("{{\"scale\":{raw}}}")), None, "{raw}");
        }
        assert_eq!(read("{\"scale\":1}"), Some(Scale::default()));
    }

    #[test]
    fn a_scale_on_another_basis_never_lowers_an_estimate() {
        let (old, new) = (Basis::new("claude/1"), Basis::new("claude/2"));
        for (theirs, basis, expected) in [
            (80, new, 80),
            (120, new, 120),
            (80, old, 100),
            (120, old, 120),
            (80, None, 100),
            (120, None, 120),
        ] {
            let scale = Scale::new(theirs, 100, basis).on(new);
            assert_eq!(scale.apply(100), expected, "{theirs} {basis:?}");
            assert_eq!(scale.on(new), scale, "a second time");
        }
        assert_eq!(Scale::new(80, 100, None).on(None).apply(100), 100);
    }

    #[test]
    fn a_basis_that_cannot_be_stored_counts_as_missing() {
        for text in ["", "a b", "a\u{7}", "\u{e9}", &"a".repeat(41)] {
            assert_eq!(Basis::new(text), None, "{text:?}");
        }
        let longest = "a".repeat(40);
        assert_eq!(Basis::new(&longest).map(|it| it.as_str().to_owned()), Some(longest));
    }
}
