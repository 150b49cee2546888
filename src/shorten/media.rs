//! Images and documents in tool results: kept, or replaced by one line of text each.
//!
//! A truncation record lists the hashes of the images and documents that it leaves out, in order, so the record matches
//! only that result. The line of text says how to read the original. Such a line in a result does not count as text of
//! the result, and is not changed.

use crate::json::Object;
use crate::record::content::{Block, BlockKind, Content};
use crate::record::digest;

const KINDS: [&str; 2] = ["image", "document"];

/// Returns the name by which a truncation record lists an image or a document: the first 16 hex digits of the SHA-256
/// of its JSON text. For a line that replaces one, returns the name that the line states.
#[must_use]
pub fn name(block: &Block<'_>) -> Option<String> {
    match block.kind {
        BlockKind::Media => Some(digest(&block.raw)),
        BlockKind::Other => read_line(&text_of(block)?, None),
        _ => None,
    }
}

/// Returns the line that replaces an image or a document.
#[must_use]
pub fn stand_in(block: &Block<'_>, record: Option<&str>) -> Block<'static> {
    let kind = Object::parse(&block.raw).ok();
    let kind = kind.and_then(|object| object.string("type")).unwrap_or_default();
    let how = record.map(recovery_hint).unwrap_or_default();
    let (bytes, name) = (block.raw.len(), digest(&block.raw));
    let text = format!("[... {kind} of {bytes} bytes left out, sha256 {name}{how} ...]");
    Block { kind: BlockKind::Other, ..Block::from_text(&text) }
}

fn recovery_hint(record: &str) -> String {
    format!("; all of it: claw-rebuild --record {record}")
}

/// Marks the lines that replace images and documents, so that they do not count as text of the content. `left_out`
/// holds the names in the truncation record; without it, every line of this form is marked.
#[must_use]
pub fn set_aside<'a>(
    mut content: Content<'a>,
    left_out: Option<&[String]>,
    record: Option<&str>,
) -> Content<'a> {
    let mut names = left_out.map(|names| names.iter().peekable());
    for block in content.blocks_mut().iter_mut().filter(|block| block.kind == BlockKind::Text) {
        let Some(name) = text_of(block).and_then(|text| read_line(&text, record)) else { continue };
        let is_known =
            names.as_mut().is_none_or(|names| names.next_if(|next| **next == name).is_some());
        if is_known {
            block.kind = BlockKind::Other;
        }
    }
    content
}

fn text_of(block: &Block<'_>) -> Option<String> {
    let object = Object::parse(&block.raw).ok()?;
    let is_text = object.string("type").as_deref() == Some("text");
    Some(object.string("text").filter(|_| is_text)?.into_owned())
}

/// Returns the name in a line that replaces an image or a document. If `record` is given, the line must name it.
fn read_line(text: &str, record: Option<&str>) -> Option<String> {
    let inner = text.strip_prefix("[... ")?.strip_suffix(" ...]")?;
    let (kind, inner) = inner.split_once(" of ")?;
    let (bytes, inner) = inner.split_once(" bytes left out, sha256 ")?;
    let (name, how) = inner.split_at_checked(16)?;
    let is_ours = KINDS.contains(&kind)
        && bytes.parse::<usize>().is_ok()
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && match record {
            Some(record) => how == recovery_hint(record),
            None => how.is_empty() || how.starts_with("; all of it: ") && !how.contains('\n'),
        };
    is_ours.then(|| name.to_owned())
}

/// Replaces the images and documents that have these names, in this order, by lines of text. Returns `None` if one of
/// them is missing.
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
    fn l5_a_line_names_the_image_and_how_to_read_it() {
        let image = media("image", "AAAA");
        let line = stand_in(&Block::parse(&*image).unwrap(), RECORD);
        let name = digest(&image);
        let expected = format!(
            "[... image of {} bytes left out, sha256 {name}; all of it: claw-rebuild --record 3a8aceb8f1db7e4a ...]",
            image.len()
        );
        assert_eq!(text_of(&line), Some(expected));
        assert_eq!(super::name(&line), Some(name));
    }

    #[test]
    fn l5_all_names_must_be_in_the_result_and_in_the_same_order() {
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
        // Media that is left out already can be left out again, together with more.
        let some = leave_out(blocks(&json), &names(&[&a]), RECORD).unwrap();
        assert_eq!(leave_out(some, &names(&[&a, &b]), RECORD), out(&[&a, &b]));
    }

    #[test]
    fn l5_only_lines_that_replace_an_image_are_set_aside() {
        let image = media("image", "AAAA");
        let line = stand_in(&Block::parse(&*image).unwrap(), RECORD);
        let json = format!("[{}]", &*line.raw);
        let is_aside = |json: &str, names: Option<&[String]>, record| {
            let content = set_aside(Content::parse(json).unwrap(), names, record);
            content.blocks()[0].kind == BlockKind::Other
        };
        assert!(is_aside(&json, None, None) && is_aside(&json, None, RECORD));
        assert!(is_aside(&json, Some(&[digest(&image)]), RECORD));
        assert!(!is_aside(&json, Some(&[]), RECORD), "the record leaves nothing out");
        assert!(!is_aside(&json, None, Some("of another")));
        for (from, to) in
            [("image", "sound"), (" of ", " in "), ("bytes", "pages"), ("; all", ", all")]
        {
            assert!(!is_aside(&json.replace(from, to), None, None), "{to}");
        }
    }
}
