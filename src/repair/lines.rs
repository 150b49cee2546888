//! The bytes of a line: damage that makes a record unreadable for the program, or a request unreadable for a provider.

use crate::finding::Place;
use crate::finding::rules;
use crate::input::line::{read_line, without_mark};
use crate::json;

/// Returns the texts that replace a damaged line, and the reason, or `None` if the line is right. A line of which nothing
/// can be kept is replaced by nothing.
pub(super) fn read(line: u64, bytes: &[u8]) -> Option<(Vec<String>, String)> {
    let unmarked = if line == 1 { without_mark(bytes) } else { bytes };
    let place = Place { input: "".into(), line: Some(line), offset: 1, length: bytes.len() as u64 };
    let parts = read_line(unmarked, place.clone(), 0);
    let is_one = matches!(parts.as_slice(), [Ok(_)]);
    if parts.is_empty() || is_one && unmarked.len() == bytes.len() {
        let text = std::str::from_utf8(bytes).ok()?;
        let (mended, count) = json::replace_lone_surrogates(text);
        let why = || format!("{} of a surrogate pair, which is no character", halves(count));
        return (count > 0).then(|| (vec![mended.into_owned()], why()));
    }
    let mut why = Vec::new();
    if unmarked.len() < bytes.len() {
        why.push("the file begins with a byte order mark".to_owned());
    }
    let mut texts: Vec<String> = Vec::new();
    for part in &parts {
        match part {
            Ok(part) => texts.push(part.object.text().to_owned()),
            Err(finding) => why.push(finding.message.clone()),
        }
    }
    // Bytes that are not UTF-8 are replaced, if the line is a record then. A line that has NUL bytes inside is one without.
    let is_invalid = |part: &crate::input::line::Line<'_>| {
        part.as_ref().is_err_and(|finding| *finding.rule == rules::INVALID_UTF8)
    };
    if parts.iter().any(is_invalid) {
        let text = String::from_utf8_lossy(unmarked).replace('\0', "");
        if json::Object::parse(text.trim()).is_ok() {
            texts = vec![text];
            why = vec!["it has bytes that are not UTF-8".to_owned()];
        }
    } else if texts.is_empty() && unmarked.contains(&0) {
        let text = String::from_utf8_lossy(unmarked).replace('\0', "");
        if json::Object::parse(text.trim()).is_ok() {
            texts = vec![text];
            why = vec!["it has NUL bytes".to_owned()];
        }
    }
    let texts = texts.iter().map(|text| json::replace_lone_surrogates(text).0.into_owned());
    Some((texts.collect(), why.join("; ")))
}

fn halves(count: usize) -> String {
    if count == 1 { "it has half".to_owned() } else { format!("it has {count} halves") }
}
