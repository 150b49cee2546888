//! `claw-session import` turns the databases of opencode into sessions: the messages are those that opencode sends.

use predicates::str::contains;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// The columns of opencode 1.18.33 that matter, and some that do not.
const TABLES: &str = "
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL);
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL, directory TEXT NOT NULL,
  title TEXT NOT NULL, version TEXT NOT NULL, revert TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL,
  data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
  time_updated INTEGER NOT NULL, data TEXT NOT NULL);";

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

/// Creates a database with a session. A message is its role with more members, and its parts.
fn database(sandbox: &Sandbox, revert: Option<&str>, messages: &[(Value, Vec<Value>)]) {
    let database = Connection::open(sandbox.path("opencode.db")).expect("a file");
    database.execute_batch(TABLES).expect("tables");
    let session = "INSERT INTO session VALUES ('ses_1', 'p', NULL, 's', '/w', 'Wörter 言葉', '1.18.33', ?, 1767225600000, 1)";
    database.execute(session, [revert]).expect("a session");
    for (number, (data, parts)) in messages.iter().enumerate() {
        let (id, time) = (format!("msg_{number}"), 1_767_225_601_000 + number as i64);
        let row = "INSERT INTO message VALUES (?, 'ses_1', ?, 1, ?)";
        database.execute(row, (&id, time, data.to_string())).expect("a message");
        for (at, part) in parts.iter().enumerate() {
            let row = "INSERT INTO part VALUES (?, ?, 'ses_1', ?, 1, ?)";
            let part_id = format!("prt_{number}_{at}");
            database.execute(row, (part_id, &id, time, part.to_string())).expect("a part");
        }
    }
}

fn user(text: &str) -> (Value, Vec<Value>) {
    (json!({"role": "user"}), vec![json!({"type": "text", "text": text})])
}

fn reply(parts: Vec<Value>) -> (Value, Vec<Value>) {
    let tokens =
        json!({"input": 10, "output": 5, "reasoning": 4, "cache": {"read": 1, "write": 2}});
    (
        json!({"role": "assistant", "modelID": "m", "providerID": "anthropic", "tokens": tokens}),
        parts,
    )
}

fn tool(id: &str, state: Value) -> Value {
    json!({"type": "tool", "tool": "read", "callID": id, "state": state})
}

/// Imports the database and returns the messages of its session.
fn messages(sandbox: &Sandbox) -> Vec<Value> {
    let id =
        sandbox.cmd("claw-session").args(["import", "opencode.db"]).assert().success().stderr("");
    let path = sandbox.cmd("claw-session").args(["path", id.stdout_text().trim()]).assert();
    let path = path.success().stdout_text().trim().to_owned();
    sandbox.cmd("claw-rebuild").arg(path).assert().success().json()
}

#[test]
fn a_database_of_opencode_becomes_sessions() {
    let sandbox = Sandbox::new();
    let image =
        json!({"type": "file", "mime": "image/png", "url": format!("data:image/png;base64,{PNG}")});
    let thinking = json!({"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "c2ln"}}});
    let done = |output: &str| json!({"status": "completed", "input": {"filePath": "a"}, "output": output, "attachments": [image]});
    let calls = vec![
        json!({"type": "step-start"}),
        thinking,
        json!({"type": "text", "text": "I look."}),
        tool("c1", done("r1")),
        tool("c2", json!({"status": "error", "input": {}, "error": "no such file"})),
        json!({"type": "step-finish", "reason": "tool-calls"}),
        json!({"type": "step-start"}),
        json!({"type": "text", "text": "Done."}),
    ];
    let prompt = vec![
        json!({"type": "text", "text": "Look."}),
        json!({"type": "text", "text": "hidden", "ignored": true}),
        image.clone(),
        json!({"type": "file", "mime": "text/plain", "url": "file:///w/a.txt"}),
    ];
    let failed = json!({"role": "assistant", "error": {"name": "APIError"}});
    let messages_of = [
        (json!({"role": "user"}), prompt),
        reply(calls),
        user("And?"),
        (failed, vec![json!({"type": "text", "text": "lost"})]),
        reply(vec![json!({"type": "text", "text": "Nothing."})]),
        user("taken back"),
    ];
    database(&sandbox, Some(r#"{"messageID":"msg_5"}"#), &messages_of);
    let block = |text: &str| json!({"type": "text", "text": text});
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}});
    let call = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "read", "input": input});
    let found = messages(&sandbox);
    let expected = [
        json!([block("Look."), picture]),
        json!([{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, block("I look."),
            call("c1", json!({"filePath": "a"})), call("c2", json!({}))]),
        json!([{"type": "tool_result", "tool_use_id": "c1", "content": [block("r1"), picture]},
            {"type": "tool_result", "tool_use_id": "c2", "content": "no such file", "is_error": true}]),
        json!([block("Done.")]),
        json!("And?"),
        json!([block("Nothing.")]),
    ];
    let content: Vec<&Value> = found.iter().map(|message| &message["content"]).collect();
    let plain = |value: &Value| match value {
        Value::String(text) => json!([block(text)]),
        value => value.clone(),
    };
    assert_eq!(
        content.into_iter().map(plain).collect::<Vec<_>>(),
        expected.iter().map(plain).collect::<Vec<_>>()
    );
    let listed = sandbox.cmd("claw-session").args(["list", "--json"]).assert().success().json();
    assert_eq!(
        (&listed[0]["label"], &listed[0]["key"]),
        (&json!("Wörter 言葉"), &json!("main:opencode:ses_1"))
    );
    let status = sandbox.cmd("claw-session").args(["status", "--json", "Wörter"]).assert().json();
    assert_eq!(status[0]["calls"], 2, "{status:?}");
    // Another program can go on with it.
    let carried =
        sandbox.cmd("claw-session").args(["export", "--to", "pi", "Wörter"]).assert().success();
    let lines = carried.json();
    assert_eq!(lines[0]["cwd"], "/w");
    assert_eq!(lines[2]["message"]["content"][2]["arguments"], json!({"path": "a"}), "{lines:?}");
}

#[test]
fn a_compaction_of_opencode_keeps_what_follows_it_and_the_tail_that_it_names() {
    let summary = (
        json!({"role": "assistant", "summary": true}),
        vec![json!({"type": "text", "text": "sum"})],
    );
    let request = |tail: Option<&str>| {
        (
            json!({"role": "user"}),
            vec![json!({"type": "compaction", "auto": true, "tail_start_id": tail})],
        )
    };
    for (tail, kept) in [(None, vec!["three"]), (Some("msg_1"), vec!["two", "three"])] {
        let sandbox = Sandbox::new();
        database(
            &sandbox,
            None,
            &[user("one"), user("two"), request(tail), summary.clone(), user("three")],
        );
        let text = messages(&sandbox).iter().map(Value::to_string).collect::<String>();
        assert!(text.contains("sum") && !text.contains("\"one\""), "{text}");
        assert_eq!(text.contains("two"), kept.len() == 2, "{text}");
        assert!(text.contains("three"), "{text}");
    }
    let sandbox = Sandbox::new();
    sandbox.write("opencode.db", "");
    let run = sandbox.cmd("claw-index").args(["records", "opencode.db"]).assert().code(1);
    run.stderr(contains("not a database of GoClaw, OpenClaw, opencode or llm"));
}
