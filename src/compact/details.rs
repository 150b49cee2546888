//! Finds the files that the tool calls covered by a compaction read or changed.

use crate::json::{Object, string};
use crate::messages::Message;
use crate::record::content::BlockKind;
use crate::record::details::Details;

/// Adds the files that the tool calls in `messages` name. The words in a tool's name tell whether it reads or
/// changes a file.
pub fn add(details: &mut Details, messages: &[Message<'_>]) {
    for block in messages.iter().flat_map(Message::blocks) {
        let BlockKind::ToolUse { .. } = block.kind else { continue };
        let name = block.member("name").and_then(string).unwrap_or_default();
        let Some(path) = block.member("input").and_then(path) else { continue };
        match access(&name) {
            Some(Access::Write) => details.modified.insert(path),
            Some(Access::Read) => details.read.insert(path),
            None => false,
        };
    }
    details.read.retain(|path| !details.modified.contains(path));
}

/// The way in which a tool uses the file that its input names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads the file.
    Read,
    /// It changes the file.
    Write,
}

/// Returns how a tool uses files, judged by the words in its name; `None` if they do not tell.
#[must_use]
pub fn access(tool: &str) -> Option<Access> {
    let name = tool.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["write", "edit", "patch", "replace"]) {
        Some(Access::Write)
    } else if has(&["read", "view", "cat"]) {
        Some(Access::Read)
    } else {
        None
    }
}

/// Returns the path in the input of a tool.
#[must_use]
pub fn path(input: &str) -> Option<String> {
    let input = Object::parse(input).ok()?;
    let names = ["path", "file_path", "filename", "file"];
    names.iter().find_map(|name| input.string(name)).map(|path| path.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::Members;
    use crate::messages;

    #[test]
    fn v57_an_edited_file_is_listed_once_and_earlier_lists_are_kept() {
        let call = |name: &str, path: &str| {
            format!(r#"{{"type":"tool_use","id":"x","name":"{name}","input":{{"path":"{path}"}}}}"#)
        };
        let line =
            |calls: &[String]| format!(r#"{{"role":"assistant","content":[{}]}}"#, calls.join(","));
        let first = line(&[call("read_file", "b"), call("read_file", "a")]);
        let second = line(&[call("edit_file", "a"), call("list_directory", "c")]);
        let mut details = Details::default();
        add(&mut details, &messages::read("t", first.as_bytes()).unwrap());
        let json = |details: &Details| details.add_to(Members::new()).into_json();
        let mut later = Details::parse(&json(&details));
        add(&mut later, &messages::read("t", second.as_bytes()).unwrap());
        assert_eq!(json(&later), r#"{"read_files":["b"],"modified_files":["a"]}"#);
    }
}
