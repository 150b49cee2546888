//! Truncate: messages to smaller messages, by shortening tool results.
//!
//! First each result is held to a limit of its own. Then, if the whole request is still over its
//! budget, the oldest results are shortened down to a floor, those of the current turn last, until it
//! fits. Pinned results, and images and documents in any, stay whole. Doing it twice is doing it once.

use crate::estimate::{Gauge, Request, Tally};
use crate::json::{Object, quote};
use crate::messages::meta::{ResultMeta, Shown};
use crate::messages::shorten::{self, Text};
use crate::messages::{Block, BlockKind, Content, Message};
use std::borrow::Cow;

/// The share of the window that one result may take by default, as in the seeds of this toolkit.
pub const MAX_FRACTION: f64 = 0.3;
/// Characters a token is taken for in the limit of one result.
pub const CHARS_PER_TOKEN: f64 = 4.0;
/// How much of what is kept comes from the beginning by default.
pub const HEAD_RATIO: f64 = 0.7;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most characters that one result may have, marker included.
    pub max_chars: usize,
    /// The characters down to which results are shortened for the sake of the whole.
    pub floor_chars: usize,
    /// The share of what is kept that comes from the beginning, 0 to 1.
    pub head_ratio: f64,
    /// The most tokens that the whole request may have.
    pub budget: u64,
}

impl Options {
    /// The defaults for a window: `fraction` of it for one result at 4 characters a token, a floor of
    /// a tenth of that (200 to 2000 characters).
    #[must_use]
    pub fn new(window: u64, fraction: f64, budget: u64) -> Options {
        let max_chars = (window as f64 * CHARS_PER_TOKEN * fraction) as usize;
        let floor_chars = (max_chars / 10).clamp(200, 2000).min(max_chars);
        Options { max_chars, floor_chars, head_ratio: HEAD_RATIO, budget }
    }
}

/// What was done. All sizes are tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The request before.
    pub before: u64,
    /// The request now.
    pub after: u64,
    /// How many results are shorter than before.
    pub shortened: usize,
    /// A truncation record for each of them, without id and time.
    pub records: Vec<String>,
}

/// Shortens results in `messages` until they keep to `options`. `gauge` counts for the whole request
/// with `system` and `tools`.
pub fn truncate(
    messages: &mut [Message<'_>],
    system: Option<&str>,
    tools: Option<&str>,
    gauge: Gauge,
    options: Options,
) -> Outcome {
    let mut tally = gauge.tally(Request { messages, system, tools });
    let before = tally.tokens();
    let mut results = find_results(messages);
    for result in &mut results {
        result.shorten(messages, options.max_chars, options.head_ratio, &mut tally);
    }
    for result in &mut results {
        let after = tally.tokens();
        if after <= options.budget {
            break;
        }
        // Only as far as it has to be, if a guess from this result's own density reaches the budget.
        let own = gauge.block(&messages[result.message].content.blocks()[result.block]).max(1);
        let share = (own.saturating_sub(after - options.budget)) as f64 / own as f64;
        let guess = (result.length as f64 * share * 0.9) as usize;
        for max in [guess.max(options.floor_chars), options.floor_chars] {
            if tally.tokens() > options.budget {
                result.shorten(messages, max, options.head_ratio, &mut tally);
            }
        }
    }
    update_meta(messages, &results);
    let records: Vec<String> = results.iter().filter_map(FoundResult::record).collect();
    let shortened = results.iter().filter(|result| result.shown.is_some()).count();
    Outcome { before, after: tally.tokens(), shortened, records }
}

/// Says in `_meta` what is shown now, and drops the counts that are about results as they were.
fn update_meta(messages: &mut [Message<'_>], results: &[FoundResult<'_>]) {
    let changed = || results.iter().filter(|result| result.shown.is_some());
    let Some(first) = changed().map(|result| result.message).min() else { return };
    for result in changed() {
        let id = result.meta.as_ref().map(|meta| &meta.tool_use_id);
        if let Some(meta) = &mut messages[result.message].meta
            && let Some(own) = meta.results.iter_mut().find(|own| Some(&own.tool_use_id) == id)
        {
            own.shown.clone_from(&result.shown);
        }
    }
    for meta in messages[first..].iter_mut().filter_map(|message| message.meta.as_mut()) {
        meta.usage = None;
    }
}

/// A result in the messages, as it was before.
struct FoundResult<'a> {
    message: usize,
    block: usize,
    content: Content<'a>,
    text: Text,
    /// Its length now, in characters.
    length: usize,
    meta: Option<ResultMeta>,
    /// How much is shown now, if that is less than before.
    shown: Option<Shown>,
}

/// The results that may be shortened: oldest first, those of the current turn last.
fn find_results<'a>(messages: &[Message<'a>]) -> Vec<FoundResult<'a>> {
    let mut found = Vec::new();
    for (message, held) in messages.iter().enumerate() {
        if held.meta.as_ref().is_some_and(|meta| meta.pin) {
            continue;
        }
        for (index, block) in held.blocks().enumerate() {
            let BlockKind::ToolResult { id } = &block.kind else { continue };
            let Some(content) = result_content(block) else { continue };
            let meta = held
                .meta
                .as_ref()
                .map(|meta| meta.results.iter().find(|result| result.tool_use_id == *id).cloned());
            let shown =
                meta.as_ref().map(|meta| meta.as_ref().and_then(|meta| meta.shown.as_ref()));
            let said = shorten::text_of(&content);
            found.push(FoundResult {
                message,
                block: index,
                text: Text::read(&said, shown),
                length: said.chars().count(),
                content,
                meta: meta.flatten(),
                shown: None,
            });
        }
    }
    let turn = messages.iter().rposition(Message::is_said_by_user).unwrap_or(0);
    found.sort_by_key(|result| result.message > turn);
    found
}

fn result_content<'a>(block: &Block<'a>) -> Option<Content<'a>> {
    match &block.raw {
        Cow::Borrowed(raw) => Content::parse(Object::parse(raw).ok()?.get("content")?).ok(),
        Cow::Owned(raw) => {
            let content = Content::parse(Object::parse(raw).ok()?.get("content")?).ok()?;
            Some(content.into_owned())
        }
    }
}

impl<'a> FoundResult<'a> {
    /// Holds the result to `max` characters, always cutting from what was there at the beginning.
    fn shorten(
        &mut self,
        messages: &mut [Message<'a>],
        max: usize,
        head_ratio: f64,
        tally: &mut Tally,
    ) {
        if self.length <= max {
            return;
        }
        let record = self.meta.as_ref().map(|meta| meta.record.as_ref());
        let Some(shown) = shorten::plan(&self.text, max, head_ratio, record) else { return };
        let Some(short) = shorten::show(&self.content, &self.text, &shown, record) else { return };
        let length = shorten::text_of(&short).chars().count();
        let Content::Blocks(blocks) = &mut messages[self.message].content else { return };
        let block = &mut blocks[self.block];
        let Ok(object) = Object::parse(&block.raw) else { return };
        if length < self.length {
            let raw = Cow::Owned(object.with("content", &short.to_json()));
            let shortened = Block { raw, kind: block.kind.clone() };
            tally.replace(block, &shortened);
            *block = shortened;
            self.length = length;
            self.shown = Some(shown);
        }
    }

    /// The truncation record, if the result was shortened and its record is known.
    fn record(&self) -> Option<String> {
        let (meta, shown) = (self.meta.as_ref()?, self.shown.as_ref()?);
        let id = meta.original_id.as_ref().unwrap_or(&meta.tool_use_id);
        Some(format!(
            r#"{{"type":"truncation","tool_use_id":{},"record_id":{},"head":{},"tail":{},"bytes":{},"sha256":{}}}"#,
            quote(id),
            quote(&meta.record),
            shown.head,
            shown.tail,
            shown.bytes,
            quote(&shown.sha256)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn cut(text: &str, options: Options) -> (Vec<String>, Outcome) {
        let mut messages = messages::read("t", text.as_bytes()).unwrap();
        let gauge = Gauge::new(Request { messages: &messages, system: None, tools: None }, None);
        let outcome = truncate(&mut messages, None, None, gauge, options);
        (messages.iter().map(Message::to_line).collect(), outcome)
    }

    #[test]
    fn v39_the_seeds_limit_is_three_tenths_of_the_window() {
        let options = Options::new(180_000, MAX_FRACTION, u64::MAX);
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
        let all = cut(&text, Options::new(1_000_000, MAX_FRACTION, u64::MAX)).1.before;
        let options =
            Options { floor_chars: 400, ..Options::new(1_000_000, MAX_FRACTION, all / 3) };
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
            let options = Options::new(8000, MAX_FRACTION, budget);
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
            let (lines, outcome) = cut(&talk(&results), Options::new(window, MAX_FRACTION, 0));
            assert!(lines[2].len() < 1000 && outcome.after > 0);
        }
    }

    #[test]
    fn a_pinned_result_stays_whole() {
        let text = talk(&["z".repeat(50_000)]).replace(
            "\"role\":\"user\",\"content\":[",
            "\"role\":\"user\",\"_meta\":{\"id\":\"r\",\"pin\":true},\"content\":[",
        );
        assert_eq!(cut(&text, Options::new(1000, MAX_FRACTION, 10)).1.shortened, 0);
    }

    #[test]
    fn records_say_what_rebuild_has_to_show() {
        let text = talk(&["some words\n".repeat(2000)]).replace(
            "\"role\":\"user\",\"content\":[",
            "\"role\":\"user\",\"_meta\":{\"id\":\"r\",\"results\":[{\"tool_use_id\":\"t0\",\"original_id\":\"t:0\",\"record\":\"r\"}]},\"content\":[",
        );
        let outcome = cut(&text, Options::new(4000, MAX_FRACTION, 10_000)).1;
        let record = Object::parse(&outcome.records[0]).unwrap();
        assert_eq!(record.string("tool_use_id").unwrap(), "t:0");
        assert_eq!(record.string("record_id").unwrap(), "r");
        assert_eq!(record.number("bytes"), Some(22_000));
    }
}
