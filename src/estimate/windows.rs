//! Context windows that providers stated in refusals, in a file with one JSON object per line.
//!
//! Each line is for one model at one endpoint. Of the lines that match both, the newest one that is neither too old nor
//! implausible applies. Implausible lines are ignored because a window that is smaller than the one in the table of
//! models replaces it, so a wrong line could make the model unusable.

use crate::estimate::models;
use crate::json::Object;
use crate::json::write::Members;

/// The smallest plausible window in tokens; smaller numbers in refusals count something else.
pub const MIN_WINDOW: u64 = 1024;
/// The largest plausible window, as a multiple of the one that was known before.
pub const MAX_RATIO: u64 = 10;
/// The time in seconds for which a stated window applies: 30 days, because servers are reconfigured.
pub const LIFETIME: f64 = 30.0 * 86_400.0;

/// A window that a provider stated in a refusal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The window in tokens.
    pub window: u64,
    /// The time of the refusal in Unix seconds.
    pub ts: f64,
}

/// Returns true if `window` is plausible for a model. `known` is the window known so far, if any.
#[must_use]
pub fn is_plausible(window: u64, known: Option<u64>) -> bool {
    window >= MIN_WINDOW && known.is_none_or(|known| window <= known.saturating_mul(MAX_RATIO))
}

/// Returns the line that stores the window that `endpoint` stated for `model`.
#[must_use]
pub fn line(endpoint: &str, model: &str, stated: Stated) -> String {
    Members::new()
        .string("endpoint", endpoint)
        .string("model", model)
        .number("window", stated.window)
        .decimal("ts", stated.ts)
        .into_line()
}

/// Returns the newest window in `text` for an endpoint and `model` that still applies at `now` and is plausible
/// compared with the `known` one. `is_place` returns true if a stored endpoint is the one wanted. Lines that do not
/// match are skipped.
#[must_use]
pub fn lookup(
    text: &str,
    is_place: impl Fn(&str) -> bool,
    model: &str,
    known: Option<u64>,
    now: f64,
) -> Option<Stated> {
    text.lines().rev().find_map(|line| {
        let object = Object::parse(line).ok()?;
        let is_same = models::is_same(&object.string("model")?, model)
            && is_place(&object.string("endpoint")?);
        let ts: f64 = object.get("ts")?.parse().ok()?;
        let stated = Stated { window: object.number("window")?, ts };
        let counts = (now - ts).abs() <= LIFETIME && is_plausible(stated.window, known);
        (is_same && counts).then_some(stated)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(window: u64, ts: f64) -> Stated {
        Stated { window, ts }
    }

    fn found(text: &str, endpoint: &str, model: &str, now: f64) -> Option<u64> {
        let stated = lookup(text, |other| other == endpoint, model, None, now)?;
        Some(stated.window)
    }

    #[test]
    fn the_newest_line_for_endpoint_and_model_applies() {
        let text = [
            line("a", "m", stated(1100, 1.0)),
            line("a", "n", stated(1500, 2.5)),
            line("b", "m", stated(1700, 3.0)),
        ]
        .concat();
        let text = text + "torn{\n" + &line("a", "m", stated(1200, 4.0)) + "{\"endpoint\":\"a\",";
        assert_eq!(found(&text, "a", "m", 5.0), Some(1200));
        assert_eq!(found(&text, "b", "m", 5.0), Some(1700));
        assert_eq!(found(&text, "b", "n", 5.0), None);
        assert_eq!(found(&text, "a", "Vendor/M-20260101", 5.0), Some(1200), "a dated name");
    }

    #[test]
    fn audit_11_old_and_implausible_windows_are_ignored() {
        let text = line("a", "m", stated(1100, 0.0)) + &line("a", "m", stated(5, 1.0));
        assert_eq!(
            found(&text, "a", "m", LIFETIME),
            Some(1100),
            "the implausible newer line is skipped"
        );
        assert_eq!(found(&text, "a", "m", LIFETIME + 1.0), None);
        assert_eq!(found(&line("a", "m", stated(9000, 2.0 * LIFETIME)), "a", "m", 0.0), None);
        for (window, known, is) in [
            (1023, None, false),
            (1024, None, true),
            (u64::MAX, None, true),
            (80_000, Some(8000), true),
            (80_001, Some(8000), false),
            (1023, Some(2000), false),
        ] {
            assert_eq!(is_plausible(window, known), is, "{window}");
        }
    }
}
