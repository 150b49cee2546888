//! Facts from what is left of a header: from the text of a torn line, and from the name of the file.

use super::sheet::Sheet;
use crate::json;

/// Returns the text of the first line of the file if it was left out, which is before the line `first`.
pub(super) fn torn(sheet: &Sheet<'_>, first: usize) -> String {
    let torn = (0..first).map(|row| String::from_utf8_lossy(sheet.original(row)));
    torn.collect::<Vec<_>>().join("\n")
}

/// Returns the string member `name` of a torn object, wherever it is.
pub(super) fn string(torn: &str, name: &str) -> Option<String> {
    let label = [&json::quote(name), ":\""].concat();
    let at = torn.find(&label)? + label.len() - 1;
    let end = json::string_end(torn.as_bytes(), at);
    json::string(torn.get(at..end)?).map(std::borrow::Cow::into_owned)
}

/// Returns the first UUID in the name of a file.
pub(super) fn uuid(name: &str) -> Option<String> {
    let is_uuid = |text: &&str| {
        let parts: Vec<&str> = text.split('-').collect();
        let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        parts.iter().all(is_hex) && parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    let starts = name.char_indices().map(|(at, _)| at);
    starts.filter_map(|at| name.get(at..at + 36)).find(is_uuid).map(str::to_owned)
}
