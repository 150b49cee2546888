//! Truncate: messages to smaller messages, by shortening tool results.
//!
//! First each result is held to a limit of its own. Then, if the whole request is still over its
//! budget, the oldest results are shortened down to a floor, those of the current turn last, until it
//! fits. If it does not even then, their images and documents are left out, each whole, in the same
//! order. Pinned results stay whole. Doing it twice is doing it once.

mod result;

use crate::estimate::{Gauge, Request};
use crate::id::Id;
use crate::messages::Message;
use crate::record::scale::Scale;
use crate::record::truncation::KeptSpan;
use result::FoundResult;
use std::collections::HashMap;

/// The share of the window that one result may take by default, as in the seeds of this toolkit.
pub const MAX_FRACTION: f64 = 0.3;
/// Characters a token is taken for in the limit of one result.
pub const CHARS_PER_TOKEN: f64 = 4.0;
/// How much of what is kept comes from the beginning by default.
pub const HEAD_RATIO: f64 = 0.7;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct TruncateOptions {
    /// The most characters that one result may have, marker included.
    pub max_chars: usize,
    /// The characters down to which results are shortened for the sake of the whole.
    pub floor_chars: usize,
    /// The share of what is kept that comes from the beginning, 0 to 1.
    pub head_ratio: f64,
    /// The most tokens that the whole request may have.
    pub budget: u64,
    /// The fewest tokens for which anything is changed.
    pub min_gain: u64,
}

impl TruncateOptions {
    /// The defaults for a window: `fraction` of it for one result at 4 characters a token, a floor of
    /// a tenth of that (200 to 2000 characters).
    #[must_use]
    pub fn new(window: u64, fraction: f64, budget: u64) -> TruncateOptions {
        let max_chars = (window as f64 * CHARS_PER_TOKEN * fraction) as usize;
        let floor_chars = (max_chars / 10).clamp(200, 2000).min(max_chars);
        TruncateOptions { max_chars, floor_chars, head_ratio: HEAD_RATIO, budget, min_gain: 0 }
    }
}

/// What was done. All sizes are tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruncateOutcome {
    /// The request before.
    pub before: u64,
    /// The request now.
    pub after: u64,
    /// How many results have shorter texts than before.
    pub shortened: usize,
    /// How many images and documents are left out that were not before.
    pub left_out: usize,
    /// What could have been gained and was not, for it is less than what was asked for.
    pub forgone: Option<u64>,
    /// A truncation record for each result that changed, without id and time.
    pub records: Vec<String>,
}

impl TruncateOutcome {
    /// Whether nothing was changed.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.shortened == 0 && self.left_out == 0
    }
}

/// Shortens results in `messages` until they keep to `options`. `beside` is what the request has beside them,
/// and `gauge` counts for all of it.
pub fn truncate(
    messages: &mut Vec<Message<'_>>,
    beside: Request<'_, '_>,
    gauge: Gauge,
    options: TruncateOptions,
) -> TruncateOutcome {
    let whole = (options.min_gain > 0).then(|| messages.clone());
    let mut tally = gauge.tally(Request { messages, ..beside });
    let before = tally.tokens();
    let mut results = result::find(messages);
    for result in &mut results {
        result.shorten(messages, options.max_chars, options.head_ratio, false, &mut tally);
    }
    for result in &mut results {
        let after = tally.tokens();
        if after <= options.budget {
            break;
        }
        // Only as far as it has to be, if a guess from this result's own density reaches the budget.
        let own = gauge.block(result.block(messages)).max(1);
        let share = (own.saturating_sub(after - options.budget)) as f64 / own as f64;
        let guess = (result.length as f64 * share * 0.9) as usize;
        for max in [guess.max(options.floor_chars), options.floor_chars] {
            if tally.tokens() > options.budget {
                result.shorten(messages, max, options.head_ratio, true, &mut tally);
            }
        }
    }
    for result in &mut results {
        while tally.tokens() > options.budget && result.leave_out_next(messages, gauge, &mut tally)
        {
        }
    }
    let after = tally.tokens();
    let gain = before.saturating_sub(after);
    if let Some(whole) = whole.filter(|_| gain < options.min_gain) {
        *messages = whole;
        return TruncateOutcome {
            before,
            after: before,
            forgone: Some(gain),
            ..TruncateOutcome::default()
        };
    }
    update_meta(messages, &results, tally.scale());
    TruncateOutcome {
        before,
        after,
        shortened: results.iter().filter(|result| result.is_shorter).count(),
        left_out: results.iter().map(|result| result.left_out).sum(),
        forgone: None,
        records: results.iter().filter_map(|result| result.record(tally.scale())).collect(),
    }
}

/// Says in `_meta` what is shown now, and drops the counts that are about results as they were: all of them
/// where `scale` keeps what they told.
fn update_meta(messages: &mut [Message<'_>], results: &[FoundResult<'_>], scale: Option<Scale>) {
    let changed = || results.iter().filter(|result| result.shown.is_some());
    let Some(first) = changed().map(|result| result.message).min() else { return };
    let known = changed().filter_map(|result| {
        let id = &result.meta.as_ref()?.tool_use_id;
        Some(((result.message, id), result.shown.as_ref()?))
    });
    let mut shown: HashMap<(usize, &Id), &KeptSpan> = known.collect();
    for (number, message) in messages.iter_mut().enumerate().skip(first) {
        let Some(meta) = &mut message.meta else { continue };
        for result in &mut meta.results {
            if let Some(now) = shown.remove(&(number, &result.tool_use_id)) {
                result.shown = Some(now.clone());
            }
        }
    }
    let counted = if scale.is_some() { 0 } else { first };
    for meta in messages[counted..].iter_mut().filter_map(|message| message.meta.as_mut()) {
        meta.drop_count();
    }
    if let Some(meta) = messages[0].meta.as_mut().filter(|_| scale.is_some()) {
        meta.scale = scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Object, quote};
    use crate::messages;

    fn talk(results: &[String]) -> String {
        let mut lines = vec![r#"{"role":"user","content":"go"}"#.to_owned()];
        for (index, text) in results.iter().enumerate() {
            lines.push(format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t{index}","name":"f","input":{{}}}}]}}"#
            ));
            lines.push(format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{index}","content":{}}}]}}"#,
                quote(text)
            ));
        }
        lines.join("\n")
    }

    fn cut(text: &str, options: TruncateOptions) -> (Vec<String>, TruncateOutcome) {
        let mut messages = messages::read("t", text.as_bytes()).unwrap();
        let gauge = Gauge::new(Request { messages: &messages, ..Request::default() }, None);
        let outcome = truncate(&mut messages, Request::default(), gauge, options);
        (messages.iter().map(Message::to_line).collect(), outcome)
    }

    #[test]
    fn v39_the_seeds_limit_is_three_tenths_of_the_window() {
        let options = TruncateOptions::new(180_000, MAX_FRACTION, u64::MAX);
        assert_eq!(options.max_chars, 216_000);
        let lengths = [215_999, 216_000, 216_001];
        let results: Vec<String> = lengths.iter().map(|length| "x".repeat(*length)).collect();
        let text = talk(&results);
        let (lines, outcome) = cut(&text, options);
        let before: Vec<&str> = text.lines().collect();
        assert_eq!(outcome.shortened, 1);
        assert_eq!(lines[..6], before[..6]);
        assert!(lines[6].len() < before[6].len());
    }

    #[test]
    fn v45_many_results_under_the_limit_are_brought_under_the_budget_oldest_first() {
        let results: Vec<String> =
            (0..10).map(|n| format!("line {n} of words\n").repeat(300)).collect();
        let mut text = talk(&results[..8]);
        text.push_str("\n{\"role\":\"assistant\",\"content\":\"done\"}\n");
        text.push_str(&talk(&results[8..]).replace("\"t0\"", "\"u0\"").replace("\"t1\"", "\"u1\""));
        let all = cut(&text, TruncateOptions::new(1_000_000, MAX_FRACTION, u64::MAX)).1.before;
        let options = TruncateOptions {
            floor_chars: 400,
            ..TruncateOptions::new(1_000_000, MAX_FRACTION, all / 3)
        };
        let (lines, outcome) = cut(&text, options);
        assert!(outcome.after <= all / 3, "{outcome:?}");
        let before: Vec<&str> = text.lines().collect();
        let changed: Vec<bool> = lines.iter().zip(&before).map(|(now, then)| now != then).collect();
        assert!(changed[2] && changed[4] && changed[6], "the oldest were shortened");
        assert!(!changed[20] && !changed[22], "the current turn was not touched");
    }

    #[test]
    fn v43_twice_is_once() {
        let results: Vec<String> =
            (0..6).map(|n| format!("{n} words on a line\n").repeat(400)).collect();
        for budget in [u64::MAX, 5000, 1000, 1] {
            let options = TruncateOptions::new(8000, MAX_FRACTION, budget);
            let (once, first) = cut(&talk(&results), options);
            let (twice, second) = cut(&once.join("\n"), options);
            assert_eq!(once, twice);
            assert_eq!(first.shortened > 0, budget < u64::MAX);
            assert_eq!(second.shortened, 0);
        }
    }

    #[test]
    fn v44_a_tiny_budget_is_bounded() {
        let results = ["y".repeat(50_000)];
        for window in [1, 10, 100] {
            let (lines, outcome) =
                cut(&talk(&results), TruncateOptions::new(window, MAX_FRACTION, 0));
            assert!(lines[2].len() < 1000 && outcome.after > 0);
        }
    }

    #[test]
    fn a_pinned_result_stays_whole() {
        let text = talk(&["z".repeat(50_000)]).replace(
            "\"role\":\"user\",\"content\":[",
            "\"role\":\"user\",\"_meta\":{\"id\":\"r\",\"pin\":true},\"content\":[",
        );
        assert_eq!(cut(&text, TruncateOptions::new(1000, MAX_FRACTION, 10)).1.shortened, 0);
    }

    const IMAGE: &str = r#"{"type":"image","source":{"type":"url","url":"x"}}"#;

    /// A talk in which each result is an image, with a word before it.
    fn images(count: usize) -> String {
        let talk = talk(&vec!["IMAGE".to_owned(); count]);
        talk.replace(r#""IMAGE""#, &format!(r#"[{{"type":"text","text":"see"}},{IMAGE}]"#))
    }

    #[test]
    fn l5_images_go_whole_and_oldest_first_and_no_more_than_it_takes() {
        let text = images(4);
        let all = cut(&text, TruncateOptions::new(100_000, MAX_FRACTION, u64::MAX)).1.before;
        for (budget, count) in [(all, 0), (all - 1, 1), (all - 2000, 2), (all - 5000, 4), (1, 4)] {
            let options = TruncateOptions::new(100_000, MAX_FRACTION, budget);
            let (once, outcome) = cut(&text, options);
            let has_image: Vec<bool> = once.iter().map(|line| line.contains(IMAGE)).collect();
            let kept: Vec<bool> = (0..4).map(|nth| has_image[2 + 2 * nth]).collect();
            let expected: Vec<bool> = (0..4).map(|nth| nth >= count).collect();
            assert_eq!((kept, outcome.left_out), (expected, count), "{budget}");
            assert_eq!(outcome.shortened, 0, "there is no text to shorten");
            // Twice is once, here too.
            let (twice, again) = cut(&once.join("\n"), options);
            assert_eq!((&twice, again.left_out), (&once, 0), "{budget}");
        }
    }

    #[test]
    fn l5_texts_go_to_their_floors_before_any_image() {
        let text = images(1) + "\n" + &talk(&["many words\n".repeat(3000)]).replace("t0", "u0");
        let options = |budget| TruncateOptions::new(100_000, MAX_FRACTION, budget);
        let all = cut(&text, options(u64::MAX)).1.before;
        let some = cut(&text, options(all - 1000)).1;
        assert_eq!((some.shortened, some.left_out), (1, 0));
        let most = cut(&text, options(1)).1;
        assert_eq!((most.shortened, most.left_out), (1, 1));
    }

    #[test]
    fn l6_a_gain_below_what_is_asked_for_changes_nothing() {
        let results = ["some words\n".repeat(2000)];
        let text = talk(&results);
        let options = TruncateOptions::new(4000, MAX_FRACTION, 3000);
        let (short, outcome) = cut(&text, options);
        let gain = outcome.before - outcome.after;
        let (same, done) = cut(&text, TruncateOptions { min_gain: gain, ..options });
        assert_eq!((same, done), (short, outcome.clone()));
        let (whole, none) = cut(&text, TruncateOptions { min_gain: gain + 1, ..options });
        assert_eq!(whole.join("\n"), text);
        assert_eq!((none.forgone, none.after), (Some(gain), outcome.before));
        assert!(none.is_nothing() && none.records.is_empty());
    }

    #[test]
    fn records_say_what_rebuild_has_to_show() {
        let text = talk(&["some words\n".repeat(2000)]).replace(
            "\"role\":\"user\",\"content\":[",
            "\"role\":\"user\",\"_meta\":{\"id\":\"r\",\"results\":[{\"tool_use_id\":\"t0\",\"original_id\":\"t:0\",\"record\":\"r\"}]},\"content\":[",
        );
        let outcome = cut(&text, TruncateOptions::new(4000, MAX_FRACTION, 10_000)).1;
        let record = Object::parse(&outcome.records[0]).unwrap();
        assert_eq!(record.string("tool_use_id").unwrap(), "t:0");
        assert_eq!(record.string("record_id").unwrap(), "r");
        assert_eq!(record.number("bytes"), Some(22_000));
    }
}
