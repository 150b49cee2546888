//! `claw-session import` turns the databases of OpenClaw into sessions.

use rusqlite::Connection;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// The columns of OpenClaw 2026.9.6 that matter.
const TABLES: &str = "
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, label TEXT, display_name TEXT);
CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT NOT NULL);
CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,
  event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq));
CREATE TABLE transcript_event_identities (session_id TEXT NOT NULL, event_id TEXT NOT NULL, seq INTEGER NOT NULL);
INSERT INTO session_nodes VALUES ('agent:main:main', 's1', NULL, 'Ausflug 遠足'), ('agent:main:cron', 's2', NULL, NULL);
INSERT INTO session_windows VALUES ('s1', 'agent:main:main'), ('s2', 'agent:main:cron');";

fn message(id: &str, parent: Option<&str>, message: Value) -> Value {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-09-01T10:00:00.000Z", "message": message})
}

fn header(id: &str) -> Value {
    json!({"type": "session", "version": 4, "id": id, "timestamp": "2026-09-01T10:00:00.000Z", "cwd": "/w"})
}

/// Adds the events of a session. Those of 1 KiB or more are compressed, as by OpenClaw.
fn add(database: &Connection, session: &str, events: &[Value]) {
    for (seq, event) in events.iter().enumerate() {
        let text = event.to_string();
        let row = "INSERT INTO transcript_events VALUES (?, ?, ?, 1, ?, ?)";
        let (plain, packed) = if text.len() < 1024 {
            (Some(text.clone()), None)
        } else {
            (None, Some(compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)))
        };
        database
            .execute(row, (session, seq as i64, plain, packed, text.len() as i64))
            .expect("an event");
    }
}

#[test]
fn audit_41_sessions_of_openclaws_database_are_imported() {
    let sandbox = Sandbox::new();
    let database = Connection::open(sandbox.path("openclaw-agent.sqlite")).expect("a file");
    database.execute_batch(TABLES).expect("tables");
    let long = "Ein Satz. 一文。 ".repeat(2000);
    let call = json!({"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}});
    add(
        &database,
        "s1",
        &[
            header("s1"),
            message(
                "a",
                None,
                json!({"role": "user", "content": "Lies.", "__openclaw": {"senderIsOwner": true}}),
            ),
            message(
                "b",
                Some("a"),
                json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "model": "m",
            "provider": "p", "usage": {"input": 5, "output": 2}}),
            ),
            message(
                "c",
                Some("b"),
                json!({"role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": false,
            "content": [{"type": "text", "text": long}]}),
            ),
            message(
                "d",
                Some("c"),
                json!({"role": "assistant", "content": [{"type": "text", "text": "Gelesen."}], "stopReason": "stop"}),
            ),
        ],
    );
    add(
        &database,
        "s2",
        &[header("s2"), message("a", None, json!({"role": "user", "content": "Täglich."}))],
    );
    drop(database);
    let run = sandbox.cmd("claw-session").args(["import", "openclaw-agent.sqlite"]).assert();
    let run = run.success().stderr("");
    let ids: Vec<String> = run.stdout_text().lines().map(str::to_owned).collect();
    let path = |id: &str| {
        let run = sandbox.cmd("claw-session").args(["path", id]).assert().success();
        run.stdout_text().trim().to_owned()
    };
    let messages = sandbox.cmd("claw-rebuild").arg(path(&ids[0])).assert().success().json();
    let contents: Vec<&Value> = messages.iter().map(|message| &message["content"]).collect();
    assert_eq!(
        contents,
        [
            &json!("Lies."),
            &json!([{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]),
            &json!([{"type": "tool_result", "tool_use_id": "c1", "content": long}]),
            &json!([{"type": "text", "text": "Gelesen."}]),
        ]
    );
    let listed = sandbox.cmd("claw-session").args(["list", "--json"]).assert().success().json();
    let mut names: Vec<(&str, &str)> = listed
        .iter()
        .map(|it| (it["key"].as_str().expect("a key"), it["label"].as_str().expect("a label")))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [("main:openclaw:s1", "Ausflug 遠足"), ("main:openclaw:s2", "agent:main:cron"),]
    );
    // It is imported again when it grows, and its tokens are counted.
    let database = Connection::open(sandbox.path("openclaw-agent.sqlite")).expect("a file");
    let more = message(
        "b",
        Some("a"),
        json!({"role": "assistant", "content": [{"type": "text", "text": "Gut."}], "stopReason": "stop"}),
    );
    let row = "INSERT INTO transcript_events VALUES ('s2', 2, ?, 1, NULL, NULL)";
    database.execute(row, [more.to_string()]).expect("an event");
    drop(database);
    let again = sandbox.cmd("claw-session").args(["import", "openclaw-agent.sqlite"]).assert();
    assert_eq!(again.success().stderr("").stdout_text(), ids.join("\n") + "\n");
    let grown = sandbox.cmd("claw-rebuild").arg(path(&ids[1])).assert().success().stdout_text();
    assert!(grown.contains("Gut."), "{grown}");
    let status = sandbox.cmd("claw-session").args(["status", "--json", &ids[0]]).assert().json();
    assert_eq!(status[0]["used"]["input"], 5, "{status:?}");
}

#[test]
fn audit_41_a_packed_event_that_is_damaged_or_too_long_costs_its_session() {
    let sandbox = Sandbox::new();
    let huge = compress_to_vec(&b"x".repeat(5 * 1024 * 1024)[..], CompressionLevel::Fastest);
    for packed in [b"no frame".to_vec(), huge] {
        let database = Connection::open(sandbox.path("o.sqlite")).expect("a file");
        database
            .execute_batch(&format!(
                "DROP TABLE IF EXISTS transcript_events; {}",
                TABLES
                    .replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")
                    .replace("INSERT INTO", "INSERT OR IGNORE INTO")
            ))
            .expect("tables");
        add(&database, "s1", &[header("s1")]);
        add(
            &database,
            "s2",
            &[header("s2"), message("a", None, json!({"role": "user", "content": "x"}))],
        );
        let row = "INSERT INTO transcript_events VALUES ('s1', 1, NULL, 1, ?, 9)";
        database.execute(row, [packed]).expect("an event");
        drop(database);
        let run = sandbox.cmd("claw-index").args(["records", "o.sqlite"]).assert().code(65);
        assert!(
            run.stderr_text()
                .contains("left out conversation 's1' of 'o.sqlite': column 'event_zstd' holds"),
            "{run}"
        );
        assert!(run.stdout_text().starts_with("{\"type\":\"session\",\"id\":\"s2\""), "{run}");
    }
}

#[test]
fn audit_41_an_unknown_event_of_openclaw_is_named() {
    let sandbox = Sandbox::new();
    let database = Connection::open(sandbox.path("o.sqlite")).expect("a file");
    database.execute_batch(TABLES).expect("tables");
    let novelty = json!({"type": "novelty", "id": "n", "parentId": "a"});
    let prompt = message("a", None, json!({"role": "user", "content": "x"}));
    add(&database, "s1", &[header("s1"), prompt, novelty]);
    drop(database);
    let run = sandbox.cmd("claw-session").args(["import", "o.sqlite"]).assert().success();
    let told = run.stderr_text();
    assert!(
        told.contains("'o.sqlite s1' line 3") && told.contains("unknown type 'novelty'"),
        "{told}"
    );
}
