//! Brings a request under a limit in bytes: leaves out images and documents, then shortens long results, then leaves out
//! long inputs of calls. Each step takes the oldest first and the current turn's last, and stops as soon as the request
//! fits. The prompt's own images and pinned messages come last of all.

use super::leave_out::{BlockPlace, Omissions};
use super::result::{self, ReadResult};
use super::{TruncateOutcome, update_meta};
use crate::estimate::{Gauge, Request, Tally, bytes};
use crate::messages::Message;
use crate::record::content::{Block, BlockKind};
use crate::shorten::HEAD_RATIO;

/// The length in bytes up to which a block is kept, because the line in its place is hardly shorter.
const SMALL: usize = 1000;
/// The length in bytes that is assumed for the line in place of a block.
const LINE: usize = 250;
/// The reason in the lines of text.
const REASON: &str = "the request had too many bytes";

/// The options of [`shrink`].
#[derive(Clone, Copy, Debug)]
pub struct ShrinkOptions {
    /// The number of bytes that the request may have.
    pub target: u64,
    /// The length in characters to which results are shortened.
    pub floor_chars: usize,
    /// The share of a shortened result that comes from its beginning, from 0 to 1.
    pub head_ratio: f64,
}

impl ShrinkOptions {
    /// Returns the defaults for a target in bytes.
    #[must_use]
    pub fn new(target: u64) -> ShrinkOptions {
        ShrinkOptions { target, floor_chars: 2000, head_ratio: HEAD_RATIO }
    }
}

/// Makes `messages` smaller until the request fits, or nothing is left to leave out. `beside` is the rest of the request.
pub fn shrink(
    messages: &mut Vec<Message<'_>>,
    beside: Request<'_, '_>,
    gauge: Gauge,
    options: ShrinkOptions,
) -> TruncateOutcome {
    let tally = gauge.tally(Request { messages, ..beside });
    let (before, bytes_before) = (tally.tokens(), bytes::of(Request { messages, ..beside }));
    let over = bytes_before.saturating_sub(options.target);
    let mut shrink = Shrink { messages, tally, over, omissions: Omissions::default() };
    shrink.leave_out(media);
    let results = shrink.shorten_results(options);
    shrink.leave_out(inputs);
    let Shrink { tally, omissions, .. } = shrink;
    let mut records = omissions.to_records(tally.scale());
    records.extend(results.iter().filter_map(|result| result.record(tally.scale())));
    TruncateOutcome {
        before,
        after: tally.tokens(),
        shortened: results.iter().filter(|result| result.is_shorter).count(),
        bytes: Some((bytes_before, bytes::of(Request { messages, ..beside }))),
        omissions,
        records,
        ..TruncateOutcome::default()
    }
}

/// A request that is being made smaller.
struct Shrink<'m, 'a> {
    messages: &'m mut Vec<Message<'a>>,
    tally: Tally,
    /// The number of bytes by which the request is too large.
    over: u64,
    omissions: Omissions,
}

/// The index of an item in a result's content, or `None` for a whole block, and its length in bytes.
pub(super) type SizedPart = (Option<usize>, usize);

/// A block that can be left out.
struct Candidate {
    place: BlockPlace,
    /// Its length in bytes.
    bytes: usize,
}

impl<'a> Shrink<'_, 'a> {
    /// Leaves out blocks that `find` finds in a block, until the request fits.
    fn leave_out(&mut self, find: fn(&Block<'a>) -> Vec<SizedPart>) {
        if self.over == 0 {
            return;
        }
        let mut candidates = Vec::new();
        for (number, message) in self.messages.iter().enumerate() {
            for (index, block) in message.blocks().enumerate() {
                for (part, bytes) in find(block).into_iter().filter(|(_, bytes)| *bytes > SMALL) {
                    let place = BlockPlace { message: number, block: index, part };
                    candidates.push(Candidate { place, bytes });
                }
            }
        }
        let turn = self.messages.iter().rposition(Message::is_from_user).unwrap_or(0);
        let is_pinned = |at: usize| self.messages[at].meta.as_ref().is_some_and(|meta| meta.pin);
        candidates.sort_by_key(|Candidate { place: BlockPlace { message, .. }, .. }| {
            (is_pinned(*message), *message == turn, *message > turn)
        });
        let mut chosen = Vec::new();
        for Candidate { place, bytes } in candidates {
            if self.over > 0 {
                self.over = self.over.saturating_sub((bytes - LINE) as u64);
                chosen.push(place);
            }
        }
        self.omissions.leave_out(self.messages, &chosen, REASON, &mut self.tally);
    }

    /// Shortens long results until the request fits. Returns those that were read.
    fn shorten_results(&mut self, options: ShrinkOptions) -> Vec<ReadResult<'a>> {
        let ShrinkOptions { floor_chars, head_ratio, .. } = options;
        let mut results = match self.over {
            0 => Vec::new(),
            _ => result::find(self.messages),
        };
        for found in &mut results {
            let was = found.block(self.messages).raw.len();
            if self.over > 0
                && was > floor_chars
                && let Some(result) = found.read(self.messages)
            {
                result.shorten(self.messages, floor_chars, head_ratio, false, &mut self.tally);
                let now = found.block(self.messages).raw.len();
                self.over = self.over.saturating_sub(was.saturating_sub(now) as u64);
            }
        }
        update_meta(self.messages, results, self.tally.scale())
    }
}

/// Returns the images and documents in a block: the index of each in a result, if it is in one, and its length in bytes.
pub(super) fn media(block: &Block<'_>) -> Vec<SizedPart> {
    parts(block, |it| it.kind == BlockKind::Media)
}

/// Returns the items of a result that fit, or another block if it fits.
pub(super) fn parts(block: &Block<'_>, fits: impl Fn(&Block<'_>) -> bool) -> Vec<SizedPart> {
    if !block.is_result() {
        return whole(block, fits(block));
    }
    let content = block.result_content();
    let items = content.blocks().iter().enumerate().filter(|(_, item)| fits(item));
    items.map(|(index, item)| (Some(index), item.raw.len())).collect()
}

/// Returns the block if it is one of those that are looked for.
pub(super) fn whole(block: &Block<'_>, is_one: bool) -> Vec<SizedPart> {
    if is_one { vec![(None, block.raw.len())] } else { Vec::new() }
}

fn inputs(block: &Block<'_>) -> Vec<SizedPart> {
    whole(block, matches!(block.kind, BlockKind::ToolUse { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    /// Returns a turn: a prompt with an image, a call with a long input, and a result of text and an image.
    fn turn(number: usize) -> String {
        let image = |data: &str| {
            let data = data.repeat(4000);
            format!(
                r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#
            )
        };
        let (input, text) = ("x".repeat(3000), "line\\n".repeat(1000));
        [
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"Do {number}."}},{}]}}"#, image("p")),
            format!(r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c{number}","name":"f","input":{{"a":"{input}"}}}}]}}"#),
            format!(r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{number}","content":[{{"type":"text","text":"{text}"}},{}]}}]}}"#, image("r")),
        ]
        .join("\n")
    }

    #[test]
    fn images_go_first_the_oldest_first_and_those_of_the_prompt_last() {
        let text =
            [turn(0), r#"{"role":"assistant","content":"Done."}"#.to_owned(), turn(1)].join("\n");
        let messages = messages::read("t", text.as_bytes()).unwrap();
        let request = Request { messages: &messages, ..Request::default() };
        let (gauge, all) = (Gauge::new(request, None), bytes::of(request));
        // Each step saves less than the number of bytes here, and more than without the last two digits.
        for (over, images, shortened, inputs) in [
            (0, 0, 0, 0),
            (3000, 1, 0, 0),
            (7000, 2, 0, 0),
            (10_000, 3, 0, 0),
            (14_000, 4, 0, 0),
            (17_000, 4, 1, 0),
            (23_000, 4, 2, 1),
        ] {
            let mut messages = messages.clone();
            let outcome =
                shrink(&mut messages, Request::default(), gauge, ShrinkOptions::new(all - over));
            let count = |kind: &str| outcome.omissions.kinds.get(kind).copied().unwrap_or(0);
            let done = (count("image"), outcome.shortened, count("tool_use"));
            assert_eq!(done, (images, shortened, inputs), "{over}");
            assert!(outcome.bytes.unwrap().1 <= all - over, "{over}: {outcome:?}");
            let kept: Vec<bool> =
                messages.iter().map(|it| it.to_json().contains("\"image\"")).collect();
            let kept = [kept[0], kept[2], kept[6], kept[4]];
            assert!(
                kept.iter().skip(images).all(|kept| *kept) && !kept[..images].contains(&true),
                "{over}"
            );
            let again =
                shrink(&mut messages, Request::default(), gauge, ShrinkOptions::new(all - over));
            assert!(again.is_unchanged(), "{over}: {again:?}");
        }
    }
}
