//! The text of a shortened tool result: its beginning, a marker, its end.
//!
//! `claw-truncate` uses [`plan`] to decide how much to keep, and rebuild uses [`show`] to apply a truncation record,
//! so the same record always gives the same text. The marker counts toward the length. It states how much was left
//! out and how to read the whole result. Markers are never nested: shortening a result again cuts the same two ends
//! further. The truncation record says where the ends are, because a tool could write a marker itself.

pub mod media;
pub mod stand_in;
mod text;

use crate::json::{self, Object};
use crate::record::content::{Block, BlockKind, Content};
use crate::record::truncation::KeptSpan;
use std::borrow::Cow;
pub use text::ResultText;

/// The share of a kept text that comes from its beginning, for results, tools' output and quotations: a text says at its
/// beginning what it is, and its end often has an error.
pub const HEAD_RATIO: f64 = 0.7;

/// Plans how to shorten `text` to at most `max` characters, marker included. The marker is kept even if it is longer
/// than `max`. `head_ratio` (0 to 1) is the share of the kept text that comes from the beginning. Returns `None` if the
/// text is within `max` already or would not become shorter.
///
/// A cut is at a line end if one is near (within the last fifth of the head or the first fifth of the tail), else
/// between characters, but never between a carriage return and its line feed.
#[must_use]
pub fn plan(
    text: &ResultText,
    max: usize,
    head_ratio: f64,
    record: Option<&str>,
) -> Option<KeptSpan> {
    let now = text.render(record);
    let length = now.chars().count();
    if length <= max {
        return None;
    }
    // The marker is longest if no text is kept.
    let marker = text.keep(0, 0).marker(record).chars().count();
    let room = max.saturating_sub(marker + 2);
    let head_room = (room as f64 * head_ratio.clamp(0.0, 1.0)).floor() as usize;
    let head = head_end(&text.head, head_room);
    let end = if text.is_whole() { &text.head[head..] } else { &text.tail };
    let tail = tail_length(end, room - head_room);
    let cut = text.keep(head, tail);
    (cut.render(record).chars().count() < length).then(|| cut.shown())
}

/// Returns the byte index at which to end a head of at most `room` characters.
fn head_end(text: &str, room: usize) -> usize {
    let end = char_index(text, room);
    if end == text.len() {
        return end;
    }
    let least = char_index(text, room * 4 / 5);
    let on_line = text[least..end].rfind('\n').map(|at| least + at);
    let mut end = on_line.unwrap_or(end);
    if text[..end].ends_with('\r') {
        end -= 1;
    }
    end
}

/// Returns the length in bytes of a tail of at most `room` characters.
fn tail_length(text: &str, room: usize) -> usize {
    let count = text.chars().count();
    if count <= room {
        return text.len();
    }
    let start = char_index(text, count - room);
    let most = char_index(text, count - room + room / 5);
    let on_line = text[start..most].find('\n').map(|at| start + at + 1);
    let mut start = on_line.unwrap_or(start);
    if text[start..].starts_with('\n') && text[..start].ends_with('\r') {
        start += 1;
    }
    text.len() - start
}

/// Returns the byte index of character number `count`, or the text's length.
fn char_index(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

/// Returns the text of a result's content: the string, or its text blocks joined.
#[must_use]
pub fn text_of(content: &Content<'_>) -> String {
    match content {
        Content::Text(raw) => json::string(raw).unwrap_or_default().into_owned(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::text).collect(),
    }
}

/// Returns a result's content shortened to the spans of `shown`, with the marker between them. A string stays a string;
/// a list keeps its order, and the images and documents that are not left out. `text` is the content's text. Returns
/// `None` if `shown` does not match the content: a different length or hash, a cut inside a character, or an image or
/// document that the content does not have.
#[must_use]
pub fn show<'a>(
    content: &Content<'a>,
    text: &ResultText,
    shown: &KeptSpan,
    record: Option<&str>,
) -> Option<Content<'a>> {
    let (head, tail) = (usize::try_from(shown.head).ok()?, usize::try_from(shown.tail).ok()?);
    let end = if text.is_whole() { &text.head } else { &text.tail };
    let fits = shown.bytes == text.bytes as u64
        && shown.sha256 == text.sha256
        && text.head.is_char_boundary(head)
        && tail <= end.len()
        && end.is_char_boundary(end.len() - tail)
        && (!text.is_whole() || head + tail <= text.bytes);
    if !fits {
        return None;
    }
    let cut = text.keep(head, tail);
    match content {
        Content::Text(_) if !shown.media.is_empty() => None,
        Content::Text(_) => Some(Content::Text(Cow::Owned(json::quote(&cut.render(record))))),
        Content::Blocks(blocks) => {
            let blocks = show_blocks(blocks, &cut, record);
            media::leave_out(blocks, &shown.media, record).map(Content::Blocks)
        }
    }
}

/// Distributes shortened text over the text blocks that it came from. The text of the blocks, joined, equals
/// [`ResultText::render`]. The marker is in the first block that loses text.
fn show_blocks<'a>(blocks: &[Block<'a>], cut: &ResultText, record: Option<&str>) -> Vec<Block<'a>> {
    let total: usize = blocks.iter().filter_map(Block::text).map(|text| text.len()).sum();
    let (head_end, tail_start) = (cut.head.len(), total - cut.tail.len());
    let mut marked: Option<(usize, &Block<'a>, String)> = None;
    let (mut at, mut out) = (0, Vec::new());
    for block in blocks {
        let text = block.text().unwrap_or_default();
        let (start, end) = (at, at + text.len());
        at = end;
        let head = &text[..head_end.saturating_sub(start).min(text.len())];
        let tail = &text[tail_start.saturating_sub(start).min(text.len())..];
        match &mut marked {
            _ if head == text => out.push(block.clone()),
            None => {
                let marked_text = [head, &*cut.middle(record), tail].concat();
                marked = Some((out.len(), block, marked_text));
                out.push(block.clone());
            }
            Some(_) if tail == text => out.push(block.clone()),
            // Providers reject blocks that are only white space.
            Some((_, _, marked_text)) if tail.trim().is_empty() => marked_text.push_str(tail),
            Some(_) => out.push(with_text(block, tail)),
        }
    }
    if let Some((index, block, marked_text)) = marked {
        out[index] = with_text(block, &marked_text);
    }
    out
}

/// Returns a text block with a different text. Its other members are kept.
fn with_text<'a>(block: &Block<'a>, text: &str) -> Block<'a> {
    match Object::parse(&block.raw) {
        Ok(object) => {
            let raw = object.with("text", &json::quote(text));
            Block { raw: raw.into(), kind: BlockKind::Text }
        }
        Err(_) => Block::from_text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::text::{CLOSE, OPEN};
    use super::*;

    fn whole(text: &str) -> ResultText {
        ResultText::whole(text)
    }

    fn shorten(text: &str, max: usize, ratio: f64) -> Option<String> {
        let whole = whole(text);
        let shown = plan(&whole, max, ratio, None)?;
        Some(whole.keep(shown.head as usize, shown.tail as usize).render(None))
    }

    #[test]
    fn v39_only_texts_longer_than_the_limit_change() {
        for (length, changes) in [(999, false), (1000, false), (1001, true)] {
            assert_eq!(shorten(&"x".repeat(length), 1000, 0.7).is_some(), changes, "{length}");
        }
    }

    #[test]
    fn the_marker_counts_toward_the_limit() {
        for max in [0, 1, 50, 100, 200, 500, 999] {
            let short = shorten(&"wörter und mehr\n".repeat(100), max, 0.7).unwrap();
            assert!(short.chars().count() <= max.max(130), "{max}: {}", short.chars().count());
        }
    }

    #[test]
    fn v40_a_line_end_is_used_only_if_it_is_near() {
        let room = 1000 - 2 - whole(&"x".repeat(5000)).keep(0, 0).marker(None).len();
        let head = |at: usize| {
            let mut text = "x".repeat(5000);
            text.replace_range(at..=at, "\n");
            plan(&whole(&text), 1000, 1.0, None).unwrap().head as usize
        };
        assert_eq!(head(room * 81 / 100), room * 81 / 100, "a line end past four fifths is used");
        for far in [0, 100, room * 79 / 100] {
            assert_eq!(head(far), room, "a line end at {far} is not used");
        }
    }

    #[test]
    fn v41_the_end_of_the_text_is_kept() {
        let text = format!("{}\nerror: it broke", "line\n".repeat(1000));
        let short = shorten(&text, 600, 0.7).unwrap();
        assert!(short.ends_with("error: it broke"), "{short}");
        assert!(
            !shorten(&text, 600, 1.0).unwrap().contains("broke"),
            "with a ratio of 1, only the head is kept"
        );
    }

    #[test]
    fn v42_characters_and_crlf_are_not_split() {
        for unit in ["日", "👩‍👩‍👧", "e\u{301}", "ab\r\n"] {
            let text = unit.repeat(400);
            for max in 150..330 {
                let short = shorten(&text, max, 0.5).unwrap();
                assert!(!short.contains("\r\n[") && !short.contains("\r\n\n"), "{short:?}");
                assert!(!short.contains("\r[") && short.chars().count() <= max);
            }
        }
    }

    #[test]
    fn v43_shortening_again_keeps_one_marker() {
        let text = "some words on a line\n".repeat(500);
        let once = shorten(&text, 2000, 0.7).unwrap();
        assert_eq!(
            plan(&ResultText::guess(&once), 2000, 0.7, None),
            None,
            "the text is already within the limit"
        );
        let again = ResultText::guess(&once);
        let shown = plan(&again, 800, 0.7, None).unwrap();
        let twice = again.keep(shown.head as usize, shown.tail as usize).render(None);
        assert_eq!(twice.matches(OPEN).count(), 1, "{twice}");
        assert_eq!(
            twice,
            shorten(&text, 800, 0.7).unwrap(),
            "shortening twice gives the same text as shortening once"
        );
    }

    #[test]
    fn a_marker_with_wrong_numbers_is_text() {
        let text = format!(
            "[... 5 of 9 bytes (1 lines) left out, sha256 0123456789abcdef ...]\n{}",
            "x".repeat(900)
        );
        assert!(ResultText::guess(&text).is_whole());
    }

    #[test]
    fn v44_the_marker_is_kept_if_it_is_longer_than_the_limit() {
        for max in [0, 1, 10] {
            let short = shorten(&"x".repeat(10_000), max, 0.7).unwrap();
            assert!(short.starts_with(OPEN) && short.ends_with(CLOSE), "{short}");
        }
        assert_eq!(shorten("short, and shorter than any marker", 5, 0.7), None);
    }

    #[test]
    fn v46_blocks_keep_their_order_and_images() {
        let image = r#"{"type":"image","source":{"type":"url","url":"x"}}"#;
        let long = "y".repeat(900);
        let json = format!(
            r#"[{{"type":"text","text":"first"}},{image},{{"type":"text","text":"{long}","extra":1}},{{"type":"text","text":"last"}}]"#
        );
        let content = Content::parse(&json).unwrap();
        let text = whole(&text_of(&content));
        let shown = plan(&text, 300, 0.7, Some("abc")).unwrap();
        let Some(Content::Blocks(blocks)) = show(&content, &text, &shown, Some("abc")) else {
            panic!("not shown")
        };
        assert_eq!(blocks.len(), 4);
        assert_eq!(&*blocks[0].raw, r#"{"type":"text","text":"first"}"#);
        assert_eq!(&*blocks[1].raw, image);
        assert!(blocks[2].raw.ends_with(r#","extra":1}"#), "{}", &*blocks[2].raw);
        assert!(blocks[2].raw.contains("claw-rebuild --record abc"));
        assert_eq!(blocks[3].text().unwrap(), "last");
    }

    #[test]
    fn spans_that_do_not_match_the_text_are_rejected() {
        let content = Content::parse(r#""日本語のテキスト""#).unwrap();
        let text = whole(&text_of(&content));
        let good = KeptSpan { head: 3, tail: 3, ..text.shown() };
        assert!(show(&content, &text, &good, None).is_some());
        for bad in [
            KeptSpan { head: 1, ..good.clone() },
            KeptSpan { head: 30, ..good.clone() },
            KeptSpan { tail: u64::MAX, ..good.clone() },
            KeptSpan { bytes: 5, ..good.clone() },
            KeptSpan { sha256: "0".repeat(16), ..good.clone() },
            KeptSpan { media: vec!["0".repeat(16)], ..good.clone() },
        ] {
            assert_eq!(show(&content, &text, &bad, None), None, "{bad:?}");
        }
    }
}
