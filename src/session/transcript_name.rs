//! The names of transcripts in directories: a file with another name is not even opened.

use std::path::Path;

/// Returns true if a file in a directory has the name of a transcript: if it ends in `.jsonl`, or is a chat of an older
/// Gemini CLI, which is named `chats/session-*.json`.
#[must_use]
pub fn is_transcript(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "jsonl") || is_old_chat(path)
}

/// Returns true if a file is an old copy of another one: when Gemini CLI continues a chat in a `.json` file, it writes all of
/// it to a `.jsonl` file beside it, and leaves the older one as it is.
#[must_use]
pub fn is_old_copy(path: &Path) -> bool {
    is_old_chat(path) && path.with_extension("jsonl").is_file()
}

fn is_old_chat(path: &Path) -> bool {
    let is_named = |name: &str| name.starts_with("session-") && name.ends_with(".json");
    path.parent().is_some_and(|directory| directory.ends_with("chats"))
        && path.file_name().is_some_and(|name| is_named(&name.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_file_is_a_transcript_only_as_a_chat_of_gemini_cli() {
        for (path, is_wanted) in [
            ("a/b.jsonl", true),
            ("b.jsonl", true),
            ("tmp/p/chats/session-2026-01-01T00-00-abc.json", true),
            ("tmp/p/chats/session-2026-01-01T00-00-abc.jsonl", true),
            ("chats/session-.json", true),
            ("tmp/p/chats/notes.json", false),
            ("tmp/p/chats/session-a.json.bak", false),
            ("tmp/p/chats/old/session-a.json", false),
            ("tmp/p/mychats/session-a.json", false),
            ("session-a.json", false),
            ("package.json", false),
            (".jsonl", false),
        ] {
            assert_eq!(is_transcript(Path::new(path)), is_wanted, "{path}");
        }
    }
}
