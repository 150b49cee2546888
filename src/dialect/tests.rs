//! Helpers for the tests of dialects.

use crate::dialect::looks::{self, Looks};
use crate::dialect::{Choice, Dialect, open};
use crate::input::Input;
use crate::messages::rebuild::from_inputs;
use crate::record::content::Role;
use crate::rules::violations;
use clap::ValueEnum;
use std::path::PathBuf;

/// Reads a transcript of another program. Returns its messages as words joined by `|` (`U` or `A` for the role, then
/// the text or a word for each block), and the rule, line and id of each finding, including the notes that only
/// claw-check reports. Returns the error message instead if the transcript cannot be read. Checks that a provider
/// accepts the messages.
pub fn rebuild(text: &str, leaf: Option<&str>) -> (String, Vec<String>) {
    let input = Input::memory("t", text.as_bytes().to_vec());
    let directory = PathBuf::from("/nonexistent");
    let leaf = leaf.map(str::to_owned);
    let input = match open(input, &Choice { leaf, directory, ..Choice::default() }) {
        Ok(input) => input,
        Err(error) => return (format!("{error:#}"), Vec::new()),
    };
    let notes = input.origin().unwrap().notes(&input.name);
    let rebuilt = from_inputs(&[input], &Default::default()).unwrap();
    let broken: Vec<_> = violations(&rebuilt.messages);
    assert!(broken.iter().all(|broken| broken.unfinished), "{broken:?}");
    let mut words = Vec::new();
    for message in &rebuilt.messages {
        words.push(if message.role == Role::User { "U" } else { "A" }.to_owned());
        let value: serde_json::Value = serde_json::from_str(&message.to_json()).unwrap();
        match &value["content"] {
            serde_json::Value::String(text) => words.push(text.clone()),
            content => words.extend(content.as_array().unwrap().iter().map(word)),
        }
    }
    let findings = rebuilt.findings.iter().chain(notes.iter());
    let findings = findings.map(|found| {
        let (line, id) = (found.place.line.unwrap_or(0), found.id.as_deref().unwrap_or("-"));
        format!("{} {line} {id}", found.rule.name)
    });
    (words.join("|"), findings.collect())
}

#[test]
fn every_dialect_is_recognised_and_named_in_the_header_of_its_translation() {
    for dialect in Dialect::value_variants() {
        let name = dialect.name();
        assert_eq!(dialect.to_possible_value().unwrap().get_name(), name);
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dialects/injected");
        let bytes = std::fs::read(format!("{root}/{name}.jsonl")).unwrap();
        let input = || Input::memory("t", bytes.clone());
        let is_named = match dialect {
            Dialect::Pi | Dialect::ClaudeCode | Dialect::Codex => true,
            Dialect::GeminiCli | Dialect::Copilot => true,
            // Lines of messages have no header, and are not recognised as those of a program.
            Dialect::Openai | Dialect::Gemini => false,
        };
        let looks = looks::of(&input()).unwrap();
        assert_eq!(
            looks == Looks::Dialect(*dialect),
            is_named || *dialect == Dialect::Gemini,
            "{name}"
        );
        let choice = Choice { from: Some(*dialect), ..Choice::default() };
        let translated = open(input(), &choice).unwrap();
        let records = String::from_utf8(translated.bytes().unwrap().to_vec()).unwrap();
        let header = records.lines().next().unwrap();
        assert_eq!(header.contains(&format!(r#""dialect":"{name}""#)), is_named, "{header}");
        assert!(records.contains(r#""type":"user""#), "{name}");
    }
}

/// Returns the word of a block: its text, `call ID`, the content of a result in brackets (`[error]` for a failed call),
/// or its type.
fn word(block: &serde_json::Value) -> String {
    let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str().unwrap() {
        "text" => text("text"),
        "tool_use" => format!("call {}", text("id")),
        "tool_result" if block["is_error"] == true => "[error]".to_owned(),
        "tool_result" if block["content"].is_array() => {
            let content: Vec<_> = block["content"].as_array().unwrap().iter().map(word).collect();
            format!("[{}]", content.join(" "))
        }
        "tool_result" => format!("[{}]", text("content")),
        other => other.to_owned(),
    }
}
