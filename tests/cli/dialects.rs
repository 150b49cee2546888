//! Transcripts of other programs: claw-rebuild gives the messages that the other program sent when it resumed the
//! session.
//!
//! The corpus has sessions that the other programs wrote, and for most sessions also the messages that the program sent
//! after resuming the session with one more prompt. The corpus may not be copied into the repository, so these tests
//! are skipped where it is absent. `CLAW_CORPUS` names its directory; the default is `../shared/corpus`.

mod claude_code;
mod codex;
mod export;
mod import;
mod pi;
mod targets;
mod trees;

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// Returns a directory of the corpus, or `None` if there is no corpus.
#[expect(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn corpus(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus"));
    let directory = env::var_os("CLAW_CORPUS").map_or_else(beside, PathBuf::from).join(name);
    if !directory.is_dir() {
        println!("skipped: no corpus at '{}'", directory.display());
        return None;
    }
    Some(directory)
}

/// Returns the sessions of a dialect in the corpus that have a request to compare with.
fn sessions(dialect: &str) -> Vec<PathBuf> {
    let Some(directory) = corpus(dialect) else { return Vec::new() };
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("sent-after-resume.json").is_file())
        .collect();
    paths.sort();
    paths
}

fn read_json(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Runs a program on a transcript, and returns the JSON lines that it prints.
fn run(sandbox: &Sandbox, words: &[&str]) -> Vec<Value> {
    sandbox.cmd(words[0]).args(&words[1..]).assert().success().json()
}

/// Returns messages in a normal form: content is a list, the content of a result with a single text block is a string,
/// `cache_control` and a false `is_error` are left out, and adjacent messages of the same role are merged.
fn plain(messages: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for message in messages {
        let content = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            content => content.as_array().expect("a list").clone(),
        };
        let blocks: Vec<Value> = content.into_iter().map(plain_block).collect();
        match out.last_mut().filter(|last| last["role"] == message["role"]) {
            Some(last) => last["content"].as_array_mut().expect("a list").extend(blocks),
            None => out.push(json!({"role": message["role"], "content": blocks})),
        }
    }
    out
}

fn plain_block(mut block: Value) -> Value {
    let members = block.as_object_mut().expect("an object");
    members.remove("cache_control");
    if members["type"] == "tool_result" {
        if members.get("is_error") == Some(&json!(false)) {
            members.remove("is_error");
        }
        let content = &members["content"];
        if content.as_array().is_some_and(|it| it.len() == 1 && it[0]["type"] == "text") {
            members["content"] = content[0]["text"].clone();
        }
    }
    block
}

/// The assistant's reply that claw-rebuild adds after a summary; the other programs add none.
const ACKNOWLEDGEMENT: &str = "Agreed. Let me build on this summary.";
/// A word in the result that claw-rebuild adds for a call without a result.
const INTERRUPTED: &str = "interrupted";

/// Removes what claw-rebuild adds to conversations of every dialect: the heading of a summary and the reply to it. The
/// result of a call that was interrupted becomes `[interrupted]`.
fn without_additions(messages: Vec<Value>) -> Vec<Value> {
    let is_acknowledgement = |message: &Value| {
        message["content"] == ACKNOWLEDGEMENT || message["content"][0]["text"] == ACKNOWLEDGEMENT
    };
    let kept: Vec<Value> = messages.into_iter().filter(|it| !is_acknowledgement(it)).collect();
    let mut kept = plain(&kept);
    for block in kept.iter_mut().flat_map(|it| it["content"].as_array_mut().expect("a list")) {
        let text = block["text"].as_str().unwrap_or_default();
        if let Some(summary) = text.strip_prefix("[Previous conversation summary]\n") {
            block["text"] = json!(summary);
        }
        let is_interrupted = block["is_error"] == true
            && block["content"].as_str().is_some_and(|text| text.contains(INTERRUPTED));
        if is_interrupted {
            block["content"] = json!("[interrupted]");
        }
    }
    kept
}

/// Checks that two conversations are equal, and shows the first message that differs.
#[track_caller]
fn assert_same(name: &str, ours: &[Value], theirs: &[Value]) {
    for (index, (own, sent)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(own, sent, "{name}: message {index}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}: the number of messages");
}

/// Removes Claude Code's reminders from messages. Returns the remaining messages, and the reminders. Also sorts results
/// by id, trims the user's text, and drops empty text.
fn without_reminders(messages: &[Value]) -> (Vec<Value>, Vec<String>) {
    let (mut out, mut reminders) = (Vec::new(), Vec::new());
    for mut message in plain(messages) {
        let is_user = message["role"] == "user";
        let blocks = message["content"].as_array_mut().expect("a list");
        for block in blocks.iter_mut() {
            for name in ["text", "content"] {
                if let Some(text) = block[name].as_str().filter(|_| is_user) {
                    block[name] = json!(split_reminders(text, &mut reminders));
                }
            }
            for inner in block["content"].as_array_mut().into_iter().flatten() {
                if let Some(text) = inner["text"].as_str() {
                    inner["text"] = json!(split_reminders(text, &mut reminders));
                }
            }
            if let Some(inner) = block["content"].as_array_mut() {
                inner.retain(|it| it["text"] != "");
            }
        }
        blocks.retain(|block| block["text"] != "");
        blocks.sort_by_key(|block| {
            (block["type"] != "tool_result", block["tool_use_id"].as_str().unwrap_or("").to_owned())
        });
        if !blocks.is_empty() {
            out.push(message);
        }
    }
    (plain(&out), reminders)
}

/// Returns `text` without its reminders, which are added to `reminders`. If the text contains a task notification,
/// returns only the notification.
fn split_reminders(text: &str, reminders: &mut Vec<String>) -> String {
    let (begin, end) = ("<system-reminder>", "</system-reminder>");
    let notification = ("<task-notification>", "</task-notification>");
    if let (Some(from), Some(to)) = (text.find(notification.0), text.find(notification.1)) {
        return text[from..to + notification.1.len()].to_owned();
    }
    let mut rest = text.to_owned();
    while let (Some(from), Some(to)) = (rest.find(begin), rest.find(end)) {
        reminders.push(rest[from..to + end.len()].to_owned());
        rest = format!("{}{}", rest[..from].trim_end(), rest[to + end.len()..].trim_start());
    }
    rest.trim().to_owned()
}

/// Returns the sums of the token counts in the replies of `s.jsonl`: input, read from the cache, written to the cache,
/// and output. Also checks that claw-show can write the transcript as HTML.
fn used(sandbox: &Sandbox) -> [u64; 4] {
    let shown = sandbox.cmd("claw-show").args(["--format", "html", "s.jsonl"]).assert().success();
    assert!(shown.stdout_text().contains("</html>"));
    sandbox.sh("mkdir -p workspace/.sessions/agents/main/sessions && cp s.jsonl workspace/.sessions/agents/main/sessions/s.jsonl")
        .assert()
        .success();
    let status = sandbox.cmd("claw-session").args(["status", "--json", "s"]).assert().success();
    let status = status.json_one();
    ["input", "cache_read", "cache_write", "output"]
        .map(|name| status["used"][name].as_u64().unwrap_or_default())
}
