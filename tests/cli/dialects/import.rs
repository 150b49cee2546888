//! `claw-session import`, and OpenClaw's workspace.

use std::fs;
use std::path::{Path, PathBuf};

use predicates::str::contains;
use serde_json::Value;

use super::corpus;
use crate::common::{AssertExt, Sandbox};

const PI: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-01-01T00:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"two"},{"type":"toolCall","id":"c1","name":"t","arguments":{}}],"model":"m","usage":{"input":5,"output":2}}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-01-01T00:00:03Z","message":{"role":"toolResult","toolCallId":"c1","content":[{"type":"text","text":"r"}]}}
{"type":"compaction","id":"k1","parentId":"a3","timestamp":"2026-01-01T00:00:04Z","summary":"sum","firstKeptEntryId":"a2","tokensBefore":9}
{"type":"session_info","id":"n1","parentId":"k1","timestamp":"2026-01-01T00:00:05Z","name":"work"}
"#;

/// Runs claw-session, and returns what it prints without the line end.
fn session(sandbox: &Sandbox, words: &[&str]) -> String {
    let run = sandbox.cmd("claw-session").args(words).assert().success();
    run.stdout_text().trim_end().to_owned()
}

/// Returns all transcripts in the corpus.
fn transcripts() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for dialect in ["pi", "claude-code", "codex"] {
        let Some(directory) = corpus(dialect) else { continue };
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            paths.extend([path.join("session.jsonl"), path].into_iter().find(|it| it.is_file()));
        }
    }
    paths
}

#[test]
fn an_import_gives_the_same_messages_as_the_source() {
    let sandbox = Sandbox::new();
    let small = sandbox.write("small.jsonl", PI);
    for source in transcripts().iter().chain([&small]) {
        let source = source.to_str().expect("a path");
        let before = fs::read(source).expect("a source");
        let id = session(&sandbox, &["import", source]);
        let path = session(&sandbox, &["path", &id]);
        let messages = |path: &str| sandbox.cmd("claw-rebuild").arg(path).assert().stdout_text();
        assert_eq!(messages(&path), messages(source), "{source}");
        sandbox.cmd("claw-check").arg(&path).assert().code(predicates::ord::ne(65));
        assert_eq!(fs::read(source).expect("a source"), before, "{source}");
    }
}

#[test]
fn a_header_names_the_source_and_the_usage_is_kept() {
    let sandbox = Sandbox::new();
    let source = sandbox.write("small.jsonl", PI);
    let id = session(&sandbox, &["import", "small.jsonl"]);
    let status: Value =
        serde_json::from_str(&session(&sandbox, &["status", "--json", "work"])).expect("JSON");
    assert_eq!(
        (&status["id"], &status["label"]),
        (&Value::from(id.as_str()), &Value::from("work"))
    );
    assert_eq!(
        (&status["used"]["input"], &status["compactions"]),
        (&Value::from(5), &Value::from(1))
    );
    let path = session(&sandbox, &["path", &id]);
    let header = &sandbox.sh(&format!("sed -n 1p {path}")).assert().success().json()[0];
    let file = fs::canonicalize(source).expect("a path");
    assert_eq!(header["source"]["dialect"], "pi");
    assert_eq!(header["source"]["session"], "s");
    assert_eq!(header["source"]["file"], file.to_str().expect("a path"));
}

#[test]
fn importing_again_appends_what_is_new() {
    let sandbox = Sandbox::new();
    let lines: Vec<&str> = PI.lines().collect();
    fs::create_dir(sandbox.path("tree")).expect("a directory");
    let write = |count: usize| sandbox.write("tree/s.jsonl", lines[..count].join("\n") + "\n");
    sandbox.write("tree/notes.jsonl", "no transcript\n");
    sandbox.write("tree/ours.jsonl", "{\"type\":\"user\",\"content\":\"x\"}\n");
    let all = |outcome: &str| {
        let run = sandbox.cmd("claw-session").args(["import", "--all", "tree"]).assert().success();
        let text = format!("claw-session: {outcome}, 2 skipped\n");
        assert_eq!(run.stderr_text(), text);
        run.stdout_text().trim().to_owned()
    };
    write(3);
    let id = all("1 imported, 0 updated, 0 unchanged");
    assert_eq!(all("0 imported, 0 updated, 1 unchanged"), "");
    write(4);
    assert_eq!(all("0 imported, 1 updated, 0 unchanged"), id);
    let path = session(&sandbox, &["path", &id]);
    let messages = |path: &str| sandbox.cmd("claw-rebuild").arg(path).assert().stdout_text();
    assert_eq!(messages(&path), messages("tree/s.jsonl"));
    sandbox.cmd("claw-check").arg(&path).assert().stdout("");
    // A session that was continued is not changed as long as its source is unchanged.
    sandbox.sh(&format!("echo more | claw-append --user {path}")).assert().success();
    assert_eq!(all("0 imported, 0 updated, 1 unchanged"), "");
    // The session and its source have both grown, so the source is imported as another session.
    write(6);
    let other = all("1 imported, 0 updated, 0 unchanged");
    assert_ne!(other, id);
    assert_eq!(all("0 imported, 0 updated, 1 unchanged"), "");
}

#[test]
fn dialects_7_an_import_reads_only_files_that_have_changed() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("tree/s.jsonl", PI);
    sandbox.write("tree/notes.jsonl", "no transcript\n");
    let all = |outcome: &str| {
        let run = sandbox.cmd("claw-session").args(["import", "--all", "tree"]).assert().success();
        assert_eq!(run.stderr_text(), format!("claw-session: {outcome}\n"));
        run.stdout_text().trim().to_owned()
    };
    let id = all("1 imported, 0 updated, 0 unchanged, 1 skipped");
    // Text of the same length and the same time: the file counts as unchanged, so it was not read.
    let modified = fs::metadata(&file).expect("a file").modified().expect("a time");
    fs::write(&file, PI.replace("2026", "2025")).expect("written");
    let reset =
        || fs::File::options().write(true).open(&file).expect("a file").set_modified(modified);
    reset().expect("set");
    assert_eq!(all("0 imported, 0 updated, 1 unchanged, 1 skipped"), "");
    // A session that was deleted or continued is compared with its source.
    let path = session(&sandbox, &["path", &id]);
    fs::remove_file(sandbox.path(&path)).expect("removed");
    let second = all("1 imported, 0 updated, 0 unchanged, 1 skipped");
    let path = session(&sandbox, &["path", &second]);
    sandbox.sh(&format!("echo more | claw-append --user {path}")).assert().success();
    assert_eq!(all("0 imported, 0 updated, 1 unchanged, 1 skipped"), "");
    // A damaged cache is of no use, but does no harm.
    let sessions = sandbox.path(&path).parent().expect("a directory").to_owned();
    let cache = sessions.with_file_name("imports.json");
    fs::write(&cache, "{\"x").expect("written");
    assert_eq!(all("0 imported, 0 updated, 1 unchanged, 1 skipped"), "");
    assert!(fs::read_to_string(&cache).expect("a cache").contains(&second));
}

#[test]
fn two_imports_at_the_same_time_import_each_file_once() {
    let sandbox = Sandbox::new();
    for number in 0..60 {
        sandbox.write(&format!("tree/{number}/s.jsonl"), PI);
    }
    let script =
        "claw-session import --all tree >one 2>&1 & claw-session import --all tree >two 2>&1; wait";
    sandbox.sh(script).assert().success();
    let sessions = sandbox.cmd("claw-session").args(["list", "--json"]).assert().success().json();
    let keys: std::collections::HashSet<&str> =
        sessions.iter().map(|it| it["key"].as_str().expect("a key")).collect();
    assert_eq!((sessions.len(), keys.len()), (60, 60));
}

/// The types of records that have an equivalent in clawutils.
const TRANSLATED: [&str; 11] = [
    "session",
    "message",
    "custom_message",
    "branch_summary",
    "compaction",
    "session_info",
    "user",
    "assistant",
    "attachment",
    "response_item",
    "compacted",
];

#[test]
fn an_import_keeps_every_record_of_the_source() {
    let sandbox = Sandbox::new();
    let branch = r#"{"type":"message","id":"b2","parentId":"a1","message":{"role":"user","content":"other"}}"#;
    let (begin, end) = PI.split_once("{\"type\":\"message\",\"id\":\"a3\"").expect("two parts");
    let small = format!("{begin}{branch}\n{{\"type\":\"message\",\"id\":\"a3\"{end}");
    let small = sandbox.write("branch.jsonl", small);
    for source in transcripts().iter().chain([&small]) {
        let source = source.to_str().expect("a path");
        let id = session(&sandbox, &["import", source]);
        let path = session(&sandbox, &["path", &id]);
        let records = sandbox.sh(&format!("cat {path}")).assert().json();
        let kept: Vec<&Value> = records.iter().map(|it| &it["record"]).collect();
        for line in fs::read_to_string(source).expect("a source").lines() {
            let line: Value = serde_json::from_str(line).expect("a record");
            let kind = line["type"].as_str().expect("a type");
            // The event with which a turn of Codex failed becomes an error.
            let is_translated = TRANSLATED.contains(&kind) || line["payload"]["error"].is_object();
            assert!(is_translated || kept.contains(&&line), "{source}: {line}");
        }
    }
    let other: Value = serde_json::from_str(branch).expect("a record");
    let records = sandbox.sh("cat workspace/.sessions/agents/*/sessions/*.jsonl").assert().json();
    assert!(records.iter().any(|it| it["type"] == "imported" && it["record"] == other));
}

#[test]
fn openclaws_workspace_is_listed_and_never_changed() {
    let sandbox = Sandbox::new();
    let sessions = "claw/agents/main/sessions";
    sandbox.write(&format!("{sessions}/s.jsonl"), PI);
    sandbox.write(
        &format!("{sessions}/sessions.json"),
        r#"{"agent:main:telegram:direct:7":{"sessionId":"s","updatedAt":1767225600000}}"#,
    );
    let files =
        || sandbox.sh("find claw | sort; cat claw/agents/main/sessions/*").assert().stdout_text();
    let before = files();
    let list = session(&sandbox, &["--workspace", "claw", "list", "--json"]);
    let entry: Value = serde_json::from_str(&list).expect("one session");
    assert_eq!((&entry["id"], &entry["agent"]), (&Value::from("s"), &Value::from("main")));
    assert_eq!(entry["key"], "agent:main:telegram:direct:7");
    assert_eq!(entry["last_active"], "2026-01-01T00:00:00.000000+00:00");
    let path = session(&sandbox, &["--workspace", "claw", "path", "agent:main:telegram:direct:7"]);
    assert!(Path::new(&path).ends_with("agents/main/sessions/s.jsonl"), "{path}");
    sandbox.cmd("claw-rebuild").arg(path).assert().success().stdout(contains("sum"));
    for words in [
        "new",
        "fork s",
        "switch s",
        "delete s",
        "expire --max 0",
        "label s x",
        "reindex",
        "import s.jsonl",
        "path --create other",
    ] {
        let words = ["--workspace", "claw"].into_iter().chain(words.split(' '));
        let run = sandbox.cmd("claw-session").args(words).assert().code(77);
        run.stderr(contains("these are OpenClaw's sessions; import them"));
        assert_eq!(files(), before);
    }
}
