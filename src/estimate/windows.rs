//! Context windows that providers stated, in a refusal or when they were asked for it, in a file with one JSON object per
//! line.
//!
//! Each line is for one model at one endpoint. Of the lines that match both, the newest one of each source that is neither
//! too old nor implausible applies. Implausible lines are ignored, because such a window replaces the one in the table of
//! models or makes it smaller, so a wrong line could make the model unusable.

use crate::estimate::models;
use crate::json::Object;
use crate::json::write::Members;

/// The smallest plausible window in tokens; smaller numbers in refusals count something else.
pub const MIN_WINDOW: u64 = 1024;
/// The largest plausible window, as a multiple of the one that was known before.
pub const MAX_RATIO: u64 = 10;
/// The time in seconds for which a stated window applies: 30 days, because servers are reconfigured.
pub const LIFETIME: f64 = 30.0 * 86_400.0;
/// The time in seconds after which a provider is asked again: a week.
pub const ASK_AGAIN: f64 = 7.0 * 86_400.0;

/// The occasion on which a provider stated a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A refusal of a request that was too large.
    Refusal,
    /// An answer to the question for the window, or the answer that it states none.
    Answer,
}

/// A statement of a provider about a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stated {
    /// The window in tokens; `None` if the provider was asked, and states none.
    pub window: Option<u64>,
    /// The time in Unix seconds.
    pub ts: f64,
}

/// The place that a window comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin {
    /// A setting of the user's.
    Setting,
    /// The provider, which was asked at this time in Unix seconds.
    Answer(f64),
    /// The table of models.
    Table,
    /// A refusal at this time in Unix seconds.
    Refusal(f64),
}

impl Origin {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Origin::Setting => "setting",
            Origin::Answer(_) => "provider",
            Origin::Table => "table",
            Origin::Refusal(_) => "refusal",
        }
    }

    /// Returns the date of the statement, if the window comes from one.
    #[must_use]
    pub fn date(self) -> Option<String> {
        match self {
            Origin::Answer(ts) | Origin::Refusal(ts) => day(ts),
            Origin::Setting | Origin::Table => None,
        }
    }

    /// Describes the origin: `from the table of models`.
    #[must_use]
    pub fn described(self) -> String {
        let from = match self {
            Origin::Setting => "as set",
            Origin::Answer(_) => "from the provider",
            Origin::Table => "from the table of models",
            Origin::Refusal(_) => "from a refusal",
        };
        self.date().map_or_else(|| from.to_owned(), |date| format!("{from} on {date}"))
    }
}

/// Returns the day of a time in Unix seconds, in UTC: `2026-11-28`.
fn day(ts: f64) -> Option<String> {
    let time = jiff::Timestamp::from_second(ts as i64).ok()?;
    Some(time.strftime("%Y-%m-%d").to_string())
}

/// A window and the place that it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The window in tokens.
    pub tokens: u64,
    /// The place.
    pub origin: Origin,
}

/// Returns the window of a model: what the provider answered, else the table of models, unless a refusal stated less. The
/// `refused` window is looked up given the window known otherwise.
#[must_use]
pub fn combined(
    answered: Option<Stated>,
    table: Option<u64>,
    refused: impl FnOnce(Option<u64>) -> Option<Stated>,
) -> Option<Window> {
    let answer =
        answered.and_then(|it| Some(Window { tokens: it.window?, origin: Origin::Answer(it.ts) }));
    let row = || Some(Window { tokens: table?, origin: Origin::Table });
    let known = answer.or_else(row);
    let refusal = refused(known.map(|it| it.tokens))
        .and_then(|it| Some(Window { tokens: it.window?, origin: Origin::Refusal(it.ts) }));
    known.into_iter().chain(refusal).min_by_key(|it| it.tokens)
}

/// The name of [`Source::Answer`] in the file. Lines about refusals have no source.
const ANSWER: &str = "answer";

/// Returns true if `window` is plausible for a model. `known` is the window known so far, if any.
#[must_use]
pub fn is_plausible(window: u64, known: Option<u64>) -> bool {
    window >= MIN_WINDOW && known.is_none_or(|known| window <= known.saturating_mul(MAX_RATIO))
}

/// Returns the line that stores the window that `endpoint` stated for `model`.
#[must_use]
pub fn line(endpoint: &str, model: &str, source: Source, stated: Stated) -> String {
    let members = Members::new().string("endpoint", endpoint).string("model", model);
    let members = match stated.window {
        Some(window) => members.number("window", window),
        None => members.raw("window", "null"),
    };
    let members = members.decimal("ts", stated.ts);
    match source {
        Source::Refusal => members.into_line(),
        Source::Answer => members.string("source", ANSWER).into_line(),
    }
}

/// Returns the newest statement in `text` from a source about an endpoint and `model` that still applies at `now` and is
/// plausible compared with the `known` window. `is_place` returns true if a stored endpoint is the one wanted. Lines that
/// do not match are skipped.
#[must_use]
pub fn lookup(
    text: &str,
    source: Source,
    is_place: impl Fn(&str) -> bool,
    model: &str,
    known: Option<u64>,
    now: f64,
) -> Option<Stated> {
    text.lines().rev().find_map(|line| {
        let object = Object::parse(line).ok()?;
        let is_answer = object.string("source").is_some_and(|it| it == ANSWER);
        let is_same = is_answer == (source == Source::Answer)
            && models::is_same(&object.string("model")?, model)
            && is_place(&object.string("endpoint")?);
        let ts: f64 = object.get("ts")?.parse().ok()?;
        let window = match object.get("window")? {
            "null" => None,
            _ => Some(object.number("window")?),
        };
        let counts =
            (now - ts).abs() <= LIFETIME && window.is_none_or(|window| is_plausible(window, known));
        (is_same && counts).then_some(Stated { window, ts })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(window: u64, ts: f64) -> Stated {
        Stated { window: Some(window), ts }
    }

    fn line(endpoint: &str, model: &str, stated: Stated) -> String {
        super::line(endpoint, model, Source::Refusal, stated)
    }

    fn found(text: &str, endpoint: &str, model: &str, now: f64) -> Option<u64> {
        lookup(text, Source::Refusal, |other| other == endpoint, model, None, now)?.window
    }

    #[test]
    fn refusals_and_answers_are_looked_up_separately() {
        let answer = |stated| super::line("a", "m", Source::Answer, stated);
        let text = answer(stated(3000, 1.0)) + &line("a", "m", stated(2000, 2.0));
        let asked = |text: &str| lookup(text, Source::Answer, |_| true, "m", None, 5.0);
        assert_eq!(asked(&text), Some(stated(3000, 1.0)));
        assert_eq!(found(&text, "a", "m", 5.0), Some(2000));
        let none = Stated { window: None, ts: 4.0 };
        assert_eq!(asked(&(text + &answer(none))), Some(none), "the provider states none any more");
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
