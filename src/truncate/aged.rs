//! Shortens old results when the prompt cache has expired: the whole request is then paid for anew in any case, and a shorter
//! one costs less from now on.
//!
//! The rules are those of OpenClaw's context pruning (2026.9, `pi-hooks/context-pruning`): nothing happens below 30 % of the
//! window; results before the third-last reply are then shortened to 1,500 characters from each end; and above half of the window,
//! if they have many characters in all, further to the shortest form. Results with images and pinned ones stay as they are.

use super::result::{self, FoundResult};
use super::{TruncateOutcome, body, update_meta};
use crate::cost::for_cost;
use crate::cost::policy::SHORTEN_FROM;
use crate::estimate::{Gauge, Request};
use crate::messages::Message;
use crate::record::content::Role;

/// The newest replies whose results stay whole.
const PROTECTED_REPLIES: usize = 3;
/// The share of the window, in percent, from which results are shortened to [`SHORTEST`].
const CLEAR_FROM: u64 = 50;
/// The fewest characters that old results must have in all to be shortened to [`SHORTEST`].
const CLEAR_CHARS: usize = 50_000;
/// The length in characters above which a result is shortened.
const LONG: usize = 4000;
/// The length in characters of a shortened result, with the line that says so.
const SHORT: usize = 3200;
/// The shortest form of a result in characters, with that line.
const SHORTEST: usize = 300;
/// The share of an old result that comes from its beginning. So little is kept that neither end may crowd out the other.
const AGED_HEAD_RATIO: f64 = 0.5;

/// Shortens the results in `messages` that are old, for a context window of `window` tokens. The records that it makes say that
/// they were made for cost.
pub fn shorten_aged(
    messages: &mut [Message<'_>],
    beside: Request<'_, '_>,
    gauge: Gauge,
    window: u64,
) -> TruncateOutcome {
    let mut tally = gauge.tally(Request { messages, ..beside });
    let before = tally.tokens();
    let is_above = |tokens: u64, percent: u64| tokens >= window / 100 * percent;
    let mut results = aged(messages);
    if !is_above(before, SHORTEN_FROM) {
        results.clear();
    }
    let mut chars = 0;
    for found in &mut results {
        if let Some(old) = found.read(messages) {
            if old.length > LONG {
                old.shorten(messages, SHORT, AGED_HEAD_RATIO, true, &mut tally);
            }
            chars += old.length;
        }
    }
    if chars >= CLEAR_CHARS {
        for found in &mut results {
            if is_above(tally.tokens(), CLEAR_FROM)
                && let Some(old) = found.read(messages)
            {
                old.shorten(messages, SHORTEST, AGED_HEAD_RATIO, true, &mut tally);
            }
        }
    }
    let results = update_meta(messages, results, tally.scale());
    let records = results.iter().filter_map(|result| result.record(tally.scale()));
    TruncateOutcome {
        before,
        after: tally.tokens(),
        shortened: results.iter().filter(|result| result.is_shorter).count(),
        records: records.map(|record| for_cost(&record)).collect(),
        ..TruncateOutcome::default()
    }
}

/// Returns about how many of the tokens of a message shortening saves when it is old: in proportion to the bytes of its results.
#[must_use]
pub fn saving(message: &Message<'_>, tokens: u64) -> u64 {
    let bytes: usize = message.blocks().map(|block| block.raw.len()).sum();
    let results = message.blocks().filter(|block| block.is_result());
    let saved: usize =
        results.map(|it| it.raw.len()).filter(|it| *it > LONG).map(|it| it - SHORT).sum();
    (tokens as f64 * saved as f64 / bytes.max(1) as f64) as u64
}

/// Returns the results before the third-last reply that consist of text.
fn aged<'a>(messages: &[Message<'a>]) -> Vec<FoundResult<'a>> {
    let replies = messages.iter().enumerate().filter(|(_, it)| it.role == Role::Assistant);
    let newest = replies.rev().nth(PROTECTED_REPLIES - 1).map_or(0, |(at, _)| at);
    let mut results = result::find(messages);
    results.retain(|it| it.message < newest && body::media(it.block(messages)).is_empty());
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    /// Returns a conversation of replies with one call each, whose results have this many characters.
    fn conversation(replies: usize, chars: usize) -> String {
        let mut lines = vec![r#"{"role":"user","content":"go"}"#.to_owned()];
        for at in 0..replies {
            lines.push(format!(r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t{at}","name":"f","input":{{}}}}]}}"#));
            let text = format!("{at} {}", "word ".repeat(chars / 5));
            lines.push(format!(r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{at}","content":"{text}"}}],"_meta":{{"id":"r{at}","offset":{at},"end":9,"results":[{{"tool_use_id":"t{at}","record":"r{at}"}}]}}}}"#));
        }
        lines.join("\n")
    }

    fn shortened(text: &str, window: u64) -> TruncateOutcome {
        let mut messages = messages::read("t", text.as_bytes()).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        let gauge = Gauge::new(request, None);
        let outcome = shorten_aged(&mut messages, Request::default(), gauge, window);
        // What is short already is left alone.
        let gauge = Gauge::new(Request { messages: &messages, ..Request::default() }, None);
        assert!(shorten_aged(&mut messages, Request::default(), gauge, window).is_unchanged());
        outcome
    }

    #[test]
    fn audit_40_old_results_are_shortened_but_not_those_of_the_newest_replies() {
        let text = conversation(10, 6000);
        let outcome = shortened(&text, 40_000);
        assert_eq!((outcome.shortened, outcome.records.len()), (7, 7));
        assert!(outcome.records[0].ends_with(r#""reason":"cost"}"#), "{:?}", outcome.records);
        assert!(outcome.after < outcome.before * 7 / 10);
        assert!(shortened(&text, 200_000).is_unchanged());
        assert!(shortened(&conversation(10, 3000), 15_000).is_unchanged());
        assert_eq!(shortened(&conversation(3, 6000), 5000).shortened, 0);
    }

    #[test]
    fn audit_40_above_half_of_the_window_results_are_shortened_to_little() {
        let outcome = shortened(&conversation(40, 6000), 60_000);
        assert_eq!(outcome.shortened, 37);
        assert!(outcome.after <= 31_000, "{}", outcome.after);
    }
}
