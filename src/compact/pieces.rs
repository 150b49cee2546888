//! Divides the messages that a compaction covers into pieces if they do not fit in one request for a summary.
//!
//! First, text is shortened more and more, tool results most. If that is not enough, the messages are divided into
//! pieces. The model is called once for each piece, and brings the summary so far up to date, so the number of calls is
//! known in advance. If there are too many pieces even with the shortest text, messages from the middle are left out,
//! and the request says how many.

use crate::compact::request::{self, LEVELS, Level, SummaryPrompt};
use crate::estimate::{Gauge, Request};
use crate::messages::Message;
use crate::record::content::Role;

/// The share of the room that a piece takes if messages are small. It is less than 1 because models summarise a
/// shorter text more faithfully, and the margin absorbs errors of the estimate.
const SHARE: f64 = 0.8;
/// The share if messages are so large that a single one is a large part of a piece.
const MIN_SHARE: f64 = 0.5;
/// The number of levels to try before dividing the messages.
const WHOLE_LEVELS: usize = 4;

/// Limits on the requests for a summary.
#[derive(Clone, Copy, Debug)]
pub struct PieceLimits {
    /// Counts tokens.
    pub gauge: Gauge,
    /// The most tokens that one request may have, if the context window is known.
    pub room: Option<u64>,
    /// The most tokens that a summary may have.
    pub summary: u64,
    /// The most calls to the model.
    pub calls: usize,
}

/// The quotation of the covered messages, divided into pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    pieces: Vec<Piece>,
    /// The number of messages that are left out.
    pub left_out: usize,
}

/// The part that one request quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The quoted text.
    pub text: String,
    /// The index of its first message.
    pub first: usize,
}

/// A quoted message.
struct QuotedPart {
    text: String,
    /// Its index.
    message: usize,
    tokens: u64,
}

impl Pieces {
    /// Divides the quotation of `covered`. `earlier` is the summary of what came before it. Returns `None` if not
    /// even one message fits in a request.
    #[must_use]
    pub fn new(
        covered: &[Message<'_>],
        prompt: SummaryPrompt<'_>,
        earlier: Option<&str>,
        limits: PieceLimits,
    ) -> Option<Pieces> {
        let quote = |level| quote(covered, level, limits.gauge);
        let Some(room) = limits.room else { return Some(one(&quote(LEVELS[0]))) };
        let overhead = |earlier| {
            let request = [Message::text(Role::User, &prompt.request(earlier, ""))];
            limits.gauge.tokens(Request { messages: &request, ..Request::default() })
        };
        let room_for_all = room.checked_sub(overhead(earlier))?;
        for level in &LEVELS[..WHOLE_LEVELS] {
            let parts = quote(*level);
            if tokens(&parts) <= room_for_all {
                return Some(one(&parts));
            }
        }
        // Reserve room for the summary so far: the longest allowed, or the earlier one if that is longer.
        let so_far = limits.summary.max(earlier.map_or(0, |text| limits.gauge.text(text)));
        let room = room.checked_sub(overhead(Some("")) + so_far)?;
        for level in &LEVELS[WHOLE_LEVELS - 1..] {
            let parts = quote(*level);
            let average = tokens(&parts) as f64 / parts.len().max(1) as f64;
            for room in [(room as f64 * share(average, room as f64)) as u64, room] {
                if let Some(pieces) = divide(&parts, room, limits.calls) {
                    return Some(Pieces { pieces, left_out: 0 });
                }
            }
        }
        without_middle(quote(LEVELS[LEVELS.len() - 1]), room, limits)
    }

    /// Returns the number of calls, one for each piece.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the pieces, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter()
    }
}

fn quote(covered: &[Message<'_>], level: Level, gauge: Gauge) -> Vec<QuotedPart> {
    let part = |(message, quoted): (usize, &Message<'_>)| {
        let text = request::quoted(quoted, level);
        QuotedPart { tokens: gauge.text(&text), text, message }
    };
    covered.iter().enumerate().map(part).filter(|part| !part.text.is_empty()).collect()
}

fn tokens(parts: &[QuotedPart]) -> u64 {
    parts.iter().map(|part| part.tokens).sum()
}

fn one(parts: &[QuotedPart]) -> Pieces {
    Pieces { pieces: vec![piece(parts)], left_out: 0 }
}

fn piece(parts: &[QuotedPart]) -> Piece {
    let text = parts.iter().map(|part| part.text.as_str()).collect();
    Piece { text, first: parts.first().map_or(0, |part| part.message) }
}

/// Returns the share of `room` for a piece, given the average tokens of a message.
fn share(average: f64, room: f64) -> f64 {
    // A fifth more, because estimates may be too low.
    let part = 1.2 * average / room.max(1.0);
    (SHARE - 2.0 * (part - 0.1).max(0.0)).max(MIN_SHARE)
}

/// Divides the parts, in order, into as few pieces as possible, each within `room` tokens. Returns `None` if that
/// makes more than `most` pieces, or if a part is larger than `room`.
fn divide(parts: &[QuotedPart], room: u64, most: usize) -> Option<Vec<Piece>> {
    let (mut pieces, mut start, mut filled) = (Vec::new(), 0, 0);
    for (at, part) in parts.iter().enumerate() {
        if part.tokens > room {
            return None;
        }
        if filled + part.tokens > room {
            pieces.push(piece(&parts[start..at]));
            (start, filled) = (at, 0);
        }
        filled += part.tokens;
    }
    pieces.push(piece(&parts[start..]));
    (pieces.len() <= most).then_some(pieces)
}

/// Leaves out the parts that are larger than `room`, then as few as possible from the middle, until the pieces are
/// few enough.
fn without_middle(parts: Vec<QuotedPart>, room: u64, limits: PieceLimits) -> Option<Pieces> {
    let all = parts.len();
    let parts: Vec<QuotedPart> = parts.into_iter().filter(|part| part.tokens <= room).collect();
    let with = |kept: usize| {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let text = format!("({} messages are left out here)\n", all - kept);
        let gap = QuotedPart {
            tokens: limits.gauge.text(&text),
            text,
            message: parts.get(head).map_or(0, |part| part.message),
        };
        let copy = |part: &QuotedPart| QuotedPart { text: part.text.clone(), ..*part };
        let head = parts[..head].iter().map(copy);
        let tail = parts[parts.len() - tail..].iter().map(copy);
        let some: Vec<QuotedPart> = head.chain([gap]).chain(tail).collect();
        let pieces = divide(&some, room, limits.calls)?;
        Some(Pieces { pieces, left_out: all - kept })
    };
    let (mut low, mut high) = (0, parts.len());
    while low < high {
        let middle = (low + high).div_ceil(2);
        match with(middle) {
            Some(_) => low = middle,
            None => high = middle - 1,
        }
    }
    with(low).filter(|_| low > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    const SUMMARY_PROMPT: SummaryPrompt<'_> = SummaryPrompt { text: request::PROMPT, focus: None };

    fn conversation(messages: usize, words: usize) -> String {
        let line = |n: usize| {
            let role = ["user", "assistant"][n % 2];
            format!(r#"{{"role":"{role}","content":"message {n} {}"}}"#, "snow ".repeat(words))
        };
        (0..messages).map(line).collect::<Vec<_>>().join("\n")
    }

    fn limits(room: u64, calls: usize) -> PieceLimits {
        let nothing = Request { messages: &[], ..Request::default() };
        PieceLimits { gauge: Gauge::new(nothing, None), room: Some(room), summary: 300, calls }
    }

    fn pieces(text: &str, limits: PieceLimits) -> Option<Pieces> {
        let covered = messages::read("t", text.as_bytes()).unwrap();
        let pieces = Pieces::new(&covered, SUMMARY_PROMPT, None, limits)?;
        // Each request fits, with the longest summary before it.
        for (number, piece) in pieces.iter().enumerate() {
            let words = limits.summary * 100 / limits.gauge.text(&"snow ".repeat(100));
            let earlier = "snow ".repeat(words as usize);
            let earlier = (number > 0).then_some(earlier.as_str());
            let tokens = limits.gauge.text(&SUMMARY_PROMPT.request(earlier, &piece.text));
            assert!(tokens <= limits.room.unwrap(), "{tokens} of {:?}", limits.room);
        }
        Some(pieces)
    }

    #[test]
    fn a_conversation_that_fits_is_one_piece() {
        let pieces = pieces(&conversation(20, 50), limits(4000, 9)).unwrap();
        assert_eq!((pieces.calls(), pieces.left_out), (1, 0));
    }

    #[test]
    fn m2_the_number_of_calls_for_ten_windows_of_text_is_known_in_advance() {
        let text = conversation(400, 100);
        let pieces = pieces(&text, limits(4000, 64)).unwrap();
        // The quoted text has about 56,000 tokens. A piece takes four fifths of the 4000 tokens of a request, less the
        // instructions and the longest summary.
        assert_eq!((pieces.calls(), pieces.left_out), (23, 0));
        let all: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        for n in 0..400 {
            assert_eq!(all.matches(&format!("message {n} ")).count(), 1, "each is quoted once");
        }
    }

    #[test]
    fn with_fewer_calls_the_pieces_are_larger() {
        let text = conversation(400, 100);
        for calls in [21, 20, 19] {
            let pieces = pieces(&text, limits(4000, calls)).unwrap();
            assert!(pieces.calls() <= calls && pieces.left_out == 0, "{calls}");
        }
    }

    #[test]
    fn d49_too_few_calls_leave_out_the_middle() {
        let text = conversation(400, 200);
        for calls in [1, 2, 5] {
            let pieces = pieces(&text, limits(3000, calls)).unwrap();
            assert!(pieces.calls() <= calls && pieces.left_out > 0);
            let all: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            assert!(all.contains("message 0 ") && all.contains("message 399 "));
            let said = format!("({} messages are left out here)", pieces.left_out);
            assert!(all.contains(&said));
        }
    }

    #[test]
    fn large_messages_make_small_pieces() {
        assert!((share(10.0, 1000.0) - SHARE).abs() < 1e-9);
        assert!(share(150.0, 1000.0) < SHARE);
        assert!((share(900.0, 1000.0) - MIN_SHARE).abs() < 1e-9);
    }

    #[test]
    fn without_room_there_are_no_pieces() {
        assert_eq!(pieces(&conversation(20, 50), limits(100, 9)), None);
        let pieces = pieces(&conversation(20, 5000), limits(620, 9));
        assert_eq!(pieces.map(|pieces| pieces.calls()), None);
    }
}
