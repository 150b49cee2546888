//! `claw-session export`: a session exported in another program's format rebuilds to the same
//! messages.

use predicates::str::contains;
use serde_json::Value;

use super::{plain, run, sessions};
use crate::common::Sandbox;

const SESSION: &str = r#"{"type":"user","ts":1767225600.25,"content":"one"}
{"type":"assistant","ts":1767225601,"model":"m","usage":{"input_tokens":5,"output_tokens":2},"content":[{"type":"thinking","thinking":"hm","signature":"s="},{"type":"redacted_thinking","data":"d="},{"type":"text","text":"look é"}]}
{"type":"tool_use","tool_use_id":"c1","name":"ls","input":{"path":"."}}
{"type":"tool_use","tool_use_id":"c2","name":"ls","input":{}}
{"type":"tool_result","tool_use_id":"c1","content":"r1"}
{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"r2"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}],"is_error":true}
{"type":"user","content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}]}
{"type":"assistant","model":"m","content":"three"}
"#;
/// A compaction, and a prompt after it. `OFFSET` stands for the offset of the first kept record.
const COMPACTION: &str = r#"{"type":"compaction","summary":"sum","kept_user":["word for word"],"first_kept_entry_id":"@OFFSET"}
{"type":"user","content":"four"}
"#;

/// Returns the messages of a file in a normal form.
fn messages(sandbox: &Sandbox, file: &str) -> Vec<Value> {
    plain(&run(sandbox, &["claw-rebuild", file]))
}

#[test]
fn exported_files_rebuild_to_the_same_messages() {
    let offset = |text: &str| SESSION.find(text).expect("a record").to_string();
    let compacted = |text: &str| SESSION.to_owned() + &COMPACTION.replace("OFFSET", &offset(text));
    for text in [
        SESSION.to_owned(),
        compacted(r#"{"type":"user","content":[{"type":"text","text":"two"#),
        compacted(r#"{"type":"assistant","model":"m","content":"three"#),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("s.jsonl", &text);
        for form in ["pi", "claude-code"] {
            let file = format!("{form}.jsonl");
            sandbox
                .sh(&format!("claw-session export --to {form} ./s.jsonl >{file}"))
                .assert()
                .success();
            assert_eq!(messages(&sandbox, &file), messages(&sandbox, "s.jsonl"), "{form}: {text}");
            sandbox
                .sh(&format!("chmod 600 {file}; claw-check {file}"))
                .assert()
                .success()
                .stdout("");
        }
    }
}

#[test]
fn an_exported_import_rebuilds_to_the_messages_of_its_source() {
    for form in ["pi", "claude-code"] {
        for directory in sessions(form) {
            let source = directory.join("session.jsonl");
            let source = source.to_str().expect("a path");
            let sandbox = Sandbox::new();
            let import =
                format!("claw-session export --to {form} \"$(claw-session import '{source}')\"");
            sandbox.sh(&format!("{import} >out.jsonl")).assert().success();
            assert_eq!(messages(&sandbox, "out.jsonl"), messages(&sandbox, source), "{source}");
        }
    }
}

#[test]
fn exported_records_have_what_the_programs_require() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    let records =
        |form: &str| run(&sandbox, &["claw-session", "export", "--to", form, "./s.jsonl"]);
    let pi = records("pi");
    assert_eq!((&pi[0]["type"], &pi[0]["version"]), (&Value::from("session"), &Value::from(3)));
    assert_eq!(pi[1]["timestamp"], "2026-01-01T00:00:00.250Z");
    assert_eq!(pi[2]["message"]["usage"]["totalTokens"], 7);
    assert_eq!(pi[2]["message"]["stopReason"], "toolUse");
    for (before, record) in pi[1..].iter().zip(&pi[2..]) {
        assert_eq!(record["parentId"], before["id"]);
    }
    let claude = records("claude-code");
    for (before, record) in claude.iter().zip(&claude[1..]) {
        assert_eq!(record["parentUuid"], before["uuid"]);
        assert_eq!(record["uuid"].as_str().expect("an id").len(), 36);
        // Claude Code resumes from the newest record.
        assert!(record["timestamp"].as_str() > before["timestamp"].as_str(), "{record}");
    }
    let body = &records("openai")[0];
    assert_eq!(body["messages"][0]["content"], "one");
    let none = sandbox.cmd("claw-session").args(["export", "--to", "pi", "none"]).assert();
    none.code(1).stderr(contains("no session 'none'"));
}
