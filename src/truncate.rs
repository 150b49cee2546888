//! Truncate: shortens the tool results in messages, and leaves out what a provider does not accept.
//!
//! First, each result is shortened to a limit. If the whole request still exceeds its budget, the results are
//! shortened further, down to a floor: the oldest first, those of the current turn last. If that is not enough,
//! whole images and documents are left out in the same order. Pinned results are not changed. The operation is
//! idempotent.
//!
//! [`body`] does the same for a limit in bytes, where images and documents go first, and [`block`] finds the blocks that a
//! refusal blames; [`leave_out`] leaves them out.

pub mod aged;
pub mod block;
pub mod body;
pub mod leave_out;
mod result;

use crate::estimate::{Gauge, Request, Tally};
use crate::id::Id;
use crate::json::Object;
use crate::messages::Message;
use crate::messages::meta::LeftOut;
use crate::record::scale::Scale;
use crate::shorten::HEAD_RATIO;
use leave_out::Omissions;
use result::{FoundResult, ReadResult};
use std::collections::HashMap;

/// The default share of the context window that one result may take, as in claw0.
pub const MAX_FRACTION: f64 = 0.3;
/// The number of characters assumed per token when the limit of one result is computed from the window.
pub const CHARS_PER_TOKEN: f64 = 4.0;

/// The limits of a truncation.
#[derive(Clone, Copy, Debug)]
pub struct TruncateOptions {
    /// The most characters that one result may have, marker included.
    pub max_chars: usize,
    /// The length in characters below which results are not shortened to reach the budget.
    pub floor_chars: usize,
    /// The share of the kept text that comes from the beginning, 0 to 1.
    pub head_ratio: f64,
    /// The most tokens that the whole request may have.
    pub budget: u64,
    /// The fewest tokens to save; if fewer can be saved, nothing is changed.
    pub min_gain: u64,
}

impl TruncateOptions {
    /// Returns the defaults for a window: one result may take `fraction` of it, at 4 characters per token. The floor is
    /// a tenth of that, but at least 200 and at most 2000 characters, and never more than the limit of one result.
    #[must_use]
    pub fn new(window: u64, fraction: f64, budget: u64) -> TruncateOptions {
        let max_chars = (window as f64 * CHARS_PER_TOKEN * fraction) as usize;
        let floor_chars = (max_chars / 10).clamp(200, 2000).min(max_chars);
        TruncateOptions { max_chars, floor_chars, head_ratio: HEAD_RATIO, budget, min_gain: 0 }
    }
}

/// The result of a truncation. All sizes are in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TruncateOutcome {
    /// The size of the request before.
    pub before: u64,
    /// The size of the request after.
    pub after: u64,
    /// The number of results whose text was shortened.
    pub shortened: usize,
    /// The tokens that could have been saved, if there were fewer than `min_gain`. In that case, nothing was changed.
    pub too_small_gain: Option<u64>,
    /// The blocks that were left out.
    pub omissions: Omissions,
    /// The size of the request in bytes, before and after, if its bytes were limited.
    pub bytes: Option<(u64, u64)>,
    /// A truncation or omission record for each change, without id and time.
    pub records: Vec<String>,
}

impl TruncateOutcome {
    /// Returns the outcome of this truncation and a further one.
    #[must_use]
    pub fn then(mut self, next: TruncateOutcome) -> TruncateOutcome {
        self.records.extend(next.records);
        TruncateOutcome {
            after: next.after,
            shortened: self.shortened + next.shortened,
            too_small_gain: next.too_small_gain.filter(|_| self.omissions.count() == 0),
            omissions: self.omissions.and(next.omissions),
            records: self.records,
            ..self
        }
    }

    /// Says how to see what was left out: the ids of the first and the last record. Empty if there are no records.
    #[must_use]
    pub fn how_to_see(&self) -> String {
        let id =
            |record: &String| Some(Object::parse(record).ok()?.string("record_id")?.into_owned());
        let mut ids: Vec<String> = self.records.iter().filter_map(id).collect();
        ids.dedup();
        match &ids[..] {
            [] => String::new(),
            [id] => format!("; all of it: claw-rebuild --record {id}"),
            [first, .., last] => {
                let count = ids.len();
                format!(
                    "; all of it: claw-rebuild --record ID, for {count} records from {first} to {last}"
                )
            }
        }
    }

    /// Returns true if nothing was changed.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.shortened == 0 && self.omissions.count() == 0
    }
}

/// Shortens results in `messages`, and leaves out their images and documents if necessary, to meet the limits of
/// `options` as far as possible. `beside` is the rest of the request, and `gauge` counts the tokens of the whole
/// request.
pub fn truncate(
    messages: &mut Vec<Message<'_>>,
    beside: Request<'_, '_>,
    gauge: Gauge,
    options: TruncateOptions,
) -> TruncateOutcome {
    let tally = gauge.tally(Request { messages, ..beside });
    truncate_counted(messages, tally, gauge, options)
}

/// Like [`truncate`], for a request that has already been counted: `tally` is the result of [`Gauge::tally`].
pub fn truncate_counted(
    messages: &mut Vec<Message<'_>>,
    mut tally: Tally,
    gauge: Gauge,
    options: TruncateOptions,
) -> TruncateOutcome {
    let whole = (options.min_gain > 0).then(|| messages.clone());
    let before = tally.tokens();
    let mut results = result::find(messages);
    for found in &mut results {
        // Text is never longer than its JSON, so a block within the limit need not be read.
        if found.block(messages).raw.len() > options.max_chars
            && let Some(result) = found.read(messages)
        {
            result.shorten(messages, options.max_chars, options.head_ratio, false, &mut tally);
        }
    }
    for found in &mut results {
        if tally.tokens() <= options.budget {
            break;
        }
        if let Some(result) = found.read(messages) {
            shorten_to_budget(result, messages, gauge, options, &mut tally);
        }
    }
    for found in &mut results {
        while tally.tokens() > options.budget
            && found.read(messages).is_some_and(|it| it.leave_out_next(messages, gauge, &mut tally))
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
            too_small_gain: Some(gain),
            ..TruncateOutcome::default()
        };
    }
    let results = update_meta(messages, results, tally.scale());
    let shortened = results.iter().filter(|result| result.is_shorter).count();
    let mut records: Vec<String> =
        results.iter().filter_map(|result| result.record(tally.scale())).collect();
    let omissions = Omissions::of(results.into_iter().flat_map(|result| result.omissions));
    records.extend(omissions.to_records(tally.scale()));
    TruncateOutcome { before, after, shortened, omissions, records, ..TruncateOutcome::default() }
}

/// Shortens a result to bring the request within the budget: first to a length that is estimated from the result's own
/// ratio of tokens to characters, and if that is not enough, to the floor.
fn shorten_to_budget<'a>(
    result: &mut ReadResult<'a>,
    messages: &mut [Message<'a>],
    gauge: Gauge,
    options: TruncateOptions,
    tally: &mut Tally,
) {
    let own = gauge.block(result.block(messages)).max(1);
    let share = (own.saturating_sub(tally.tokens() - options.budget)) as f64 / own as f64;
    let guess = (result.length as f64 * share * 0.9) as usize;
    for max in [guess.max(options.floor_chars), options.floor_chars] {
        if tally.tokens() > options.budget {
            result.shorten(messages, max, options.head_ratio, true, tally);
        }
    }
}

/// Updates the kept spans in `_meta`, and drops the provider's counts that include text that is now shortened. If there is
/// a `scale`, which was derived from the counts, it replaces all of them. Returns the results that were read.
fn update_meta<'a>(
    messages: &mut [Message<'a>],
    results: Vec<FoundResult<'a>>,
    scale: Option<Scale>,
) -> Vec<ReadResult<'a>> {
    let results: Vec<_> = results.into_iter().filter_map(FoundResult::into_read).collect();
    let changed = || results.iter().filter(|result| result.is_changed());
    let Some(first) = changed().map(|result| result.message).min() else { return results };
    let known = changed().filter_map(|result| {
        let id = &result.meta.as_ref()?.tool_use_id;
        Some(((result.message, id), result))
    });
    let mut known: HashMap<(usize, &Id), &ReadResult<'_>> = known.collect();
    for (number, message) in messages.iter_mut().enumerate().skip(first) {
        let Some(meta) = &mut message.meta else { continue };
        for result in &mut meta.results {
            let Some(now) = known.remove(&(number, &result.tool_use_id)) else { continue };
            result.shown = now.shown.clone().or(result.shown.take());
            if !now.omissions.is_empty() {
                result.left_out = LeftOut::Parts(now.parts.clone());
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
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::quote;
    use crate::messages;

    fn conversation(results: &[String]) -> String {
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
    fn v39_the_limit_of_a_result_is_three_tenths_of_the_window() {
        let options = TruncateOptions::new(180_000, MAX_FRACTION, u64::MAX);
        assert_eq!(options.max_chars, 216_000);
        let lengths = [215_999, 216_000, 216_001];
        let results: Vec<String> = lengths.iter().map(|length| "x".repeat(*length)).collect();
        let text = conversation(&results);
        let (lines, outcome) = cut(&text, options);
        let before: Vec<&str> = text.lines().collect();
        assert_eq!(outcome.shortened, 1);
        assert_eq!(lines[..6], before[..6]);
        assert!(lines[6].len() < before[6].len());
    }

    #[test]
    fn v45_results_within_their_limit_are_shortened_oldest_first_to_reach_the_budget() {
        let results: Vec<String> =
            (0..10).map(|n| format!("line {n} of words\n").repeat(300)).collect();
        let mut text = conversation(&results[..8]);
        text.push_str("\n{\"role\":\"assistant\",\"content\":\"done\"}\n");
        text.push_str(
            &conversation(&results[8..]).replace("\"t0\"", "\"u0\"").replace("\"t1\"", "\"u1\""),
        );
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
    fn v43_truncating_twice_changes_nothing_more() {
        let results: Vec<String> =
            (0..6).map(|n| format!("{n} words on a line\n").repeat(400)).collect();
        for budget in [u64::MAX, 5000, 1000, 1] {
            let options = TruncateOptions::new(8000, MAX_FRACTION, budget);
            let (once, first) = cut(&conversation(&results), options);
            let (twice, second) = cut(&once.join("\n"), options);
            assert_eq!(once, twice);
            assert_eq!(first.shortened > 0, budget < u64::MAX);
            assert_eq!(second.shortened, 0);
        }
    }

    #[test]
    fn v44_a_long_result_becomes_short_with_a_tiny_window() {
        let results = ["y".repeat(50_000)];
        for window in [1, 10, 100] {
            let (lines, outcome) =
                cut(&conversation(&results), TruncateOptions::new(window, MAX_FRACTION, 0));
            assert!(lines[2].len() < 1000 && outcome.after > 0);
        }
    }

    #[test]
    fn a_pinned_result_stays_whole() {
        let text = conversation(&["z".repeat(50_000)]).replace(
            "\"role\":\"user\",\"content\":[",
            "\"role\":\"user\",\"_meta\":{\"id\":\"r\",\"pin\":true},\"content\":[",
        );
        assert_eq!(cut(&text, TruncateOptions::new(1000, MAX_FRACTION, 10)).1.shortened, 0);
    }

    const IMAGE: &str = r#"{"type":"image","source":{"type":"url","url":"x"}}"#;

    /// Returns a conversation in which each result is a word and an image.
    fn images(count: usize) -> String {
        let text = conversation(&vec!["IMAGE".to_owned(); count]);
        text.replace(r#""IMAGE""#, &format!(r#"[{{"type":"text","text":"see"}},{IMAGE}]"#))
    }

    #[test]
    fn l5_no_more_images_than_necessary_are_left_out_oldest_first() {
        let text = images(4);
        let all = cut(&text, TruncateOptions::new(100_000, MAX_FRACTION, u64::MAX)).1.before;
        for (budget, count) in [(all, 0), (all - 1, 1), (all - 2000, 2), (all - 5000, 4), (1, 4)] {
            let options = TruncateOptions::new(100_000, MAX_FRACTION, budget);
            let (once, outcome) = cut(&text, options);
            let has_image: Vec<bool> = once.iter().map(|line| line.contains(IMAGE)).collect();
            let kept: Vec<bool> = (0..4).map(|nth| has_image[2 + 2 * nth]).collect();
            let expected: Vec<bool> = (0..4).map(|nth| nth >= count).collect();
            assert_eq!((kept, outcome.omissions.count()), (expected, count), "{budget}");
            assert_eq!(outcome.shortened, 0, "there is no text to shorten");
            // Truncation of images is also idempotent.
            let (twice, again) = cut(&once.join("\n"), options);
            assert_eq!((&twice, again.omissions.count()), (&once, 0), "{budget}");
        }
    }

    #[test]
    fn l5_texts_are_shortened_to_the_floor_before_images_are_left_out() {
        let text =
            images(1) + "\n" + &conversation(&["many words\n".repeat(3000)]).replace("t0", "u0");
        let options = |budget| TruncateOptions::new(100_000, MAX_FRACTION, budget);
        let all = cut(&text, options(u64::MAX)).1.before;
        let some = cut(&text, options(all - 1000)).1;
        assert_eq!((some.shortened, some.omissions.count()), (1, 0));
        let most = cut(&text, options(1)).1;
        assert_eq!((most.shortened, most.omissions.count()), (1, 1));
    }

    #[test]
    fn l6_nothing_changes_if_the_gain_is_less_than_the_minimum() {
        let results = ["some words\n".repeat(2000)];
        let text = conversation(&results);
        let options = TruncateOptions::new(4000, MAX_FRACTION, 3000);
        let (short, outcome) = cut(&text, options);
        let gain = outcome.before - outcome.after;
        let (same, done) = cut(&text, TruncateOptions { min_gain: gain, ..options });
        assert_eq!((same, done), (short, outcome.clone()));
        let (whole, none) = cut(&text, TruncateOptions { min_gain: gain + 1, ..options });
        assert_eq!(whole.join("\n"), text);
        assert_eq!((none.too_small_gain, none.after), (Some(gain), outcome.before));
        assert!(none.is_unchanged() && none.records.is_empty());
    }

    #[test]
    fn a_truncation_record_names_the_result_and_its_original_length() {
        let text = conversation(&["some words\n".repeat(2000)]).replace(
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
