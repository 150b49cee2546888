//! Which files the covered calls read and changed.

use crate::json::{Object, elements, quote, string};
use crate::messages::{BlockKind, Message};
use std::collections::BTreeSet;

/// Files by what was done to them; a file that was changed is not listed as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Files that were read and not changed.
    pub read: BTreeSet<String>,
    /// Files that were changed.
    pub modified: BTreeSet<String>,
}

impl Details {
    /// Adds the files that the calls in `messages` name. Tools are told by words in their names.
    pub fn add(&mut self, messages: &[Message<'_>]) {
        for block in messages.iter().flat_map(Message::blocks) {
            let BlockKind::ToolUse { .. } = block.kind else { continue };
            let name = block.member("name").and_then(string).unwrap_or_default().to_lowercase();
            let Some(path) = block.member("input").and_then(path) else { continue };
            let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
            if has(&["write", "edit", "patch", "replace"]) {
                self.modified.insert(path);
            } else if has(&["read", "view", "cat"]) {
                self.read.insert(path);
            }
        }
        self.read.retain(|path| !self.modified.contains(path));
    }

    /// Reads the `details` of a compaction record; what is missing is empty.
    #[must_use]
    pub fn parse(raw: &str) -> Details {
        let Ok(object) = Object::parse(raw) else { return Details::default() };
        let list = |name: &str| {
            let elements = object.get(name).and_then(elements).unwrap_or_default();
            elements.into_iter().filter_map(string).map(|path| path.into_owned()).collect()
        };
        Details { read: list("read_files"), modified: list("modified_files") }
    }

    /// As `details` of a compaction record.
    #[must_use]
    pub fn to_json(&self) -> String {
        let list = |paths: &BTreeSet<String>| {
            paths.iter().map(|path| quote(path)).collect::<Vec<_>>().join(",")
        };
        let (read, modified) = (list(&self.read), list(&self.modified));
        format!(r#"{{"read_files":[{read}],"modified_files":[{modified}]}}"#)
    }
}

fn path(input: &str) -> Option<String> {
    let input = Object::parse(input).ok()?;
    let names = ["path", "file_path", "filename", "file"];
    names.iter().find_map(|name| input.string(name)).map(|path| path.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    fn v57_an_edited_file_is_listed_once_and_lists_survive() {
        let call = |name: &str, path: &str| {
            format!(r#"{{"type":"tool_use","id":"x","name":"{name}","input":{{"path":"{path}"}}}}"#)
        };
        let line =
            |calls: &[String]| format!(r#"{{"role":"assistant","content":[{}]}}"#, calls.join(","));
        let first = line(&[call("read_file", "b"), call("read_file", "a")]);
        let second = line(&[call("edit_file", "a"), call("list_directory", "c")]);
        let mut details = Details::default();
        details.add(&messages::read("t", first.as_bytes()).unwrap());
        let mut later = Details::parse(&details.to_json());
        later.add(&messages::read("t", second.as_bytes()).unwrap());
        assert_eq!(later.to_json(), r#"{"read_files":["b"],"modified_files":["a"]}"#);
    }
}
