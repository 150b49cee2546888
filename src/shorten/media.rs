//! Images and documents of results: left out whole, one line of text in the place of each, or kept.
//!
//! A truncation names those that it leaves out by hash, in the order in which they stand, and so what it
//! says fits one result alone. The line says how to see what was there; one that stands in the messages
//! already is no text of the result, and stays as it is.

use crate::json::Object;
use crate::record::content::{Block, BlockKind, Content};
use crate::record::digest;

const KINDS: [&str; 2] = ["image", "document"];

/// The name of an image or a document in a truncation: the first 16 hex digits of the SHA-256 of its
/// JSON text. The line in its place has it too.
#[must_use]
pub fn name(block: &Block<'_>) -> Option<String> {
    match block.kind {
        BlockKind::Media => Some(digest(&block.raw)),
        BlockKind::Other => read_line(&said(block)?, None),
        _ => None,
    }
}

/// What stands in the place of an image or a document.
#[must_use]
pub fn stand_in(block: &Block<'_>, record: Option<&str>) -> Block<'static> {
    let kind = Object::parse(&block.raw).ok();
    let kind = kind.and_then(|object| object.string("type")).unwrap_or_default();
    let how = record.map(all_of_it).unwrap_or_default();
    let (bytes, name) = (block.raw.len(), digest(&block.raw));
    let text = format!("[... {kind} of {bytes} bytes left out, sha256 {name}{how} ...]");
    Block { kind: BlockKind::Other, ..Block::text(&text) }
}

fn all_of_it(record: &str) -> String {
    format!("; all of it: claw-rebuild --record {record}")
}

/// The content with the lines for what was left out set aside, so that they are no text of it. `left_out`
/// are the names that are known; without them whatever reads as such a line is believed.
#[must_use]
pub fn set_aside<'a>(
    mut content: Content<'a>,
    left_out: Option<&[String]>,
    record: Option<&str>,
) -> Content<'a> {
    let mut names = left_out.map(|names| names.iter().peekable());
    for block in content.blocks_mut().iter_mut().filter(|block| block.kind == BlockKind::Text) {
        let Some(name) = said(block).and_then(|text| read_line(&text, record)) else { continue };
        let is_known =
            names.as_mut().is_none_or(|names| names.next_if(|next| **next == name).is_some());
        if is_known {
            block.kind = BlockKind::Other;
        }
    }
    content
}

fn said(block: &Block<'_>) -> Option<String> {
    let object = Object::parse(&block.raw).ok()?;
    let is_text = object.string("type").as_deref() == Some("text");
    Some(object.string("text").filter(|_| is_text)?.into_owned())
}

/// The name in such a line, of this record if one is given.
fn read_line(text: &str, record: Option<&str>) -> Option<String> {
    let inner = text.strip_prefix("[... ")?.strip_suffix(" ...]")?;
    let (kind, inner) = inner.split_once(" of ")?;
    let (bytes, inner) = inner.split_once(" bytes left out, sha256 ")?;
    let (name, how) = inner.split_at_checked(16)?;
    let is_ours = KINDS.contains(&kind)
        && bytes.parse::<usize>().is_ok()
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && match record {
            Some(record) => how == all_of_it(record),
            None => how.is_empty() || how.starts_with("; all of it: ") && !how.contains('\n'),
        };
    is_ours.then(|| name.to_owned())
}

/// Leaves out what `names` says, in this order. `None` when not all of it is there.
#[must_use]
pub fn leave_out<'a>(
    blocks: Vec<Block<'a>>,
    names: &[String],
    record: Option<&str>,
) -> Option<Vec<Block<'a>>> {
    let mut names = names.iter().peekable();
    let mut out = Vec::with_capacity(blocks.len());
    for block in blocks {
        let is_next = names.peek().is_some_and(|next| name(&block).as_ref() == Some(*next));
        out.push(match is_next && names.next().is_some() && block.kind == BlockKind::Media {
            true => stand_in(&block, record),
            false => block,
        });
    }
    names.peek().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: Option<&str> = Some("3a8aceb8f1db7e4a");

    fn media(kind: &str, data: &str) -> String {
        format!(r#"{{"type":"{kind}","source":{{"type":"base64","data":"{data}"}}}}"#)
    }

    fn blocks(json: &str) -> Vec<Block<'_>> {
        let Content::Blocks(blocks) = Content::parse(json).unwrap() else { panic!("no list") };
        blocks
    }

    #[test]
    fn l5_a_line_says_what_was_there_and_how_to_see_it() {
        let image = media("image", "AAAA");
        let line = stand_in(&Block::parse(&*image).unwrap(), RECORD);
        let name = digest(&image);
        let expected = format!(
            "[... image of {} bytes left out, sha256 {name}; all of it: claw-rebuild --record 3a8aceb8f1db7e4a ...]",
            image.len()
        );
        assert_eq!(said(&line), Some(expected));
        assert_eq!(super::name(&line), Some(name));
    }

    #[test]
    fn l5_what_is_not_there_in_this_order_is_not_left_out() {
        let [a, b] = [media("image", "AAAA"), media("document", "BBBB")];
        let json = format!(r#"[{a},{{"type":"text","text":"between"}},{b},{a}]"#);
        let names =
            |of: &[&String]| -> Vec<String> { of.iter().map(|media| digest(media)).collect() };
        let out = |of: &[&String]| leave_out(blocks(&json), &names(of), RECORD);
        let places = |of: &[&String]| -> Vec<bool> {
            let kept = out(of).unwrap();
            kept.iter().zip(blocks(&json)).map(|(now, then)| *now != then).collect()
        };
        assert_eq!(places(&[]), [false; 4]);
        assert_eq!(places(&[&b]), [false, false, true, false]);
        assert_eq!(places(&[&a, &a]), [true, false, false, true]);
        let other = media("image", "CCCC");
        for wrong in [&[&b, &b][..], &[&other], &[&b, &a, &a], &[&a, &b, &a, &a]] {
            assert_eq!(out(wrong), None, "{wrong:?}");
        }
        // What is left out already can be left out again, with more.
        let some = leave_out(blocks(&json), &names(&[&a]), RECORD).unwrap();
        assert_eq!(leave_out(some, &names(&[&a, &b]), RECORD), out(&[&a, &b]));
    }

    #[test]
    fn l5_only_a_line_of_ours_is_set_aside() {
        let image = media("image", "AAAA");
        let line = stand_in(&Block::parse(&*image).unwrap(), RECORD);
        let json = format!("[{}]", line.raw);
        let is_aside = |json: &str, names: Option<&[String]>, record| {
            let content = set_aside(Content::parse(json).unwrap(), names, record);
            content.blocks()[0].kind == BlockKind::Other
        };
        assert!(is_aside(&json, None, None) && is_aside(&json, None, RECORD));
        assert!(is_aside(&json, Some(&[digest(&image)]), RECORD));
        assert!(!is_aside(&json, Some(&[]), RECORD), "it is said to be whole");
        assert!(!is_aside(&json, None, Some("of another")));
        for (from, to) in
            [("image", "sound"), (" of ", " in "), ("bytes", "pages"), ("; all", ", all")]
        {
            assert!(!is_aside(&json.replace(from, to), None, None), "{to}");
        }
    }
}
