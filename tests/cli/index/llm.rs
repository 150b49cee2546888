//! `claw-session import` turns the conversations of `llm` into sessions: the messages are those that `llm -c` sends.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{index, rows};
use crate::common::{AssertExt, Sandbox};

/// The columns of llm 0.36 that matter.
const TABLES: &str = "
CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT, conversation_id TEXT,
  datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT);
CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, \"order\" INTEGER);
CREATE TABLE fragments (id INTEGER PRIMARY KEY, content TEXT);
CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, \"order\" INTEGER);
CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT, tool_call_id TEXT);
CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, name TEXT, output TEXT, tool_call_id TEXT, exception TEXT);";

const NEWER: &str = "
CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT, text TEXT, payload TEXT);
CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT, model TEXT,
  resolved_model TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT, datetime_utc TEXT);
INSERT INTO fragments VALUES (1, '断片');";

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\xdac`\0\0\0\x02\0\x01\xe5'\xde\xfc\0\0\0\0IEND\xaeB`\x82";
/// The hash of the image, which is the id of the attachment.
const HASH: &str = "a4d4c009619311d9b83904acfd62fe3b7f918c312522bbcc6ad51cdec4fd1edf";

/// Imports the database, and returns the messages of each session.
fn sessions(sandbox: &Sandbox) -> Vec<Vec<Value>> {
    let run = sandbox.cmd("claw-session").args(["import", "logs.db"]).assert().success().stderr("");
    let ids: Vec<String> = run.stdout_text().lines().map(str::to_owned).collect();
    let messages = |id: &String| {
        let path = sandbox.cmd("claw-session").args(["path", id]).assert().success().stdout_text();
        sandbox.cmd("claw-rebuild").arg(path.trim()).assert().success().json()
    };
    ids.iter().map(messages).collect()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Adds a message with its parts: the type, the text and the payload of each.
fn message(database: &Connection, [id, parent, role]: [&str; 3], parts: &[(&str, &str, Value)]) {
    let parent = Some(parent).filter(|it| !it.is_empty());
    let row = "INSERT INTO messages VALUES (?, ?, ?, NULL)";
    database.execute(row, (id, parent, role)).expect("a message");
    for (at, (kind, text, payload)) in parts.iter().enumerate() {
        let (text, payload) = (
            Some(text).filter(|it| !it.is_empty()),
            (!payload.is_null()).then(|| payload.to_string()),
        );
        let row = "INSERT INTO parts VALUES (NULL, ?, ?, ?, NULL, ?, ?)";
        database.execute(row, (id, at as i64, kind, text, payload)).expect("a part");
    }
}

fn turn(database: &Connection, [id, thread, from, to]: [&str; 4]) {
    let row = "INSERT INTO turns VALUES (?, ?, ?, ?, 'm', NULL, 10, 5, '{\"prompt_tokens_details\": {\"cached_tokens\": 4}}', '2026-05-01T10:00:00.5+00:00')";
    database.execute(row, (id, thread, from, to)).expect("a turn");
}

/// Makes a database with a conversation, and a fork of it after its first reply.
fn database(sandbox: &Sandbox) -> Connection {
    let database = Connection::open(sandbox.path("logs.db")).expect("a file");
    database.execute_batch(TABLES).expect("tables");
    database.execute_batch(NEWER).expect("tables");
    let none = Value::Null;
    message(&database, ["s", "", "system"], &[("text", "Be brief.", none.clone())]);
    let words = json!({"text_ref": [{"fragment": 1}, {"literal": "\nUse the tools."}]});
    message(&database, ["u", "s", "user"], &[("text", "", words)]);
    let call =
        |id: &str, name: &str| json!({"name": name, "arguments": {"x": 1}, "tool_call_id": id});
    // The text is stored after the calls, and sent before them.
    let calls = [
        ("tool_call", "", call("a", "up")),
        ("tool_call", "", call("b", "boom")),
        ("text", "Calling.", none.clone()),
    ];
    message(&database, ["a", "u", "assistant"], &calls);
    let results = [
        ("tool_result", "", json!({"name": "up", "output": "上", "tool_call_id": "a"})),
        (
            "tool_result",
            "",
            json!({"name": "boom", "output": "Error: no", "tool_call_id": "b", "exception": "ValueError: no"}),
        ),
    ];
    message(&database, ["t", "a", "tool"], &results);
    message(&database, ["b", "t", "assistant"], &[("text", "Done.", none.clone())]);
    message(&database, ["v", "a", "user"], &[("text", "Other.", none.clone())]);
    message(&database, ["c", "b", "user"], &[("text", "On.", none.clone())]);
    message(&database, ["d", "c", "assistant"], &[("text", "Yes.", none)]);
    for (id, tip, from) in [("one", "b", None), ("two", "d", Some("one"))] {
        let row =
            "INSERT INTO threads VALUES (?, 'Use the tools.', ?, ?, '2026-05-01 10:00:00+00:00')";
        database.execute(row, (id, tip, from)).expect("a thread");
    }
    turn(&database, ["1", "one", "u", "a"]);
    turn(&database, ["2", "one", "t", "b"]);
    turn(&database, ["3", "two", "c", "d"]);
    database
}

#[test]
fn audit_41_conversations_of_llm_are_imported_with_calls_and_fragments() {
    let sandbox = Sandbox::new();
    let database = database(&sandbox);
    let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"x": 1}});
    let results = json!([
        {"type": "tool_result", "tool_use_id": "a", "content": "上"},
        {"type": "tool_result", "tool_use_id": "b", "content": "Error: no", "is_error": true},
    ]);
    let one = vec![
        json!({"role": "user", "content": [text("断片\nUse the tools.")]}),
        json!({"role": "assistant", "content": [text("Calling."), call("a", "up"), call("b", "boom")]}),
        json!({"role": "user", "content": results}),
        json!({"role": "assistant", "content": [text("Done.")]}),
    ];
    let more = [
        json!({"role": "user", "content": [text("On.")]}),
        json!({"role": "assistant", "content": [text("Yes.")]}),
    ];
    let two = [&one[..], &more].concat();
    assert_eq!(sessions(&sandbox), [one.clone(), two.clone()]);
    // The fork and the conversation have two calls in common.
    index(&sandbox, "i.db", &["update", "--quiet", "."]).success();
    let sql = "SELECT day, calls, input, cache_read, output FROM tokens_by_day";
    let counts =
        json!({"day": "2026-05-01", "calls": 3, "input": 18, "cache_read": 12, "output": 15});
    assert_eq!(rows(&sandbox, "i.db", sql), [counts]);
    // Run again after the conversation went on.
    database
        .execute("UPDATE threads SET tip_message_hash = 'd' WHERE id = 'one'", [])
        .expect("a row");
    assert_eq!(sessions(&sandbox), [two.clone(), two]);
}

/// Damage can make a message its own ancestor.
#[test]
fn a_circle_of_messages_of_llm_ends() {
    let sandbox = Sandbox::new();
    let database = database(&sandbox);
    let circle = "UPDATE messages SET parent_hash = 'b' WHERE hash = 'u'";
    database.execute(circle, []).expect("a row");
    assert_eq!(sessions(&sandbox).len(), 2);
}

#[test]
fn conversations_of_older_versions_of_llm_are_imported_with_attachments() {
    let sandbox = Sandbox::new();
    sandbox.write("p.png", PNG);
    let database = Connection::open(sandbox.path("logs.db")).expect("a file");
    database.execute_batch(TABLES).expect("tables");
    let path = sandbox.path("p.png").display().to_string();
    database
        .execute_batch(&format!(
            "INSERT INTO conversations VALUES ('c', 'Look.', 'm');
             INSERT INTO responses VALUES ('1', 'm', 'Look.', 'Be brief.', 'Calling.', 'c', '2026-05-01T10:00:00', 1, 2, NULL);
             INSERT INTO responses VALUES ('2', 'm', '', '', 'Done.', 'c', '2026-05-01T10:00:01', 1, 2, NULL);
             INSERT INTO attachments VALUES ('{HASH}', 'image/png', '{path}', NULL, NULL), ('other', 'image/png', '{path}', NULL, NULL);
             INSERT INTO prompt_attachments VALUES ('1', '{HASH}', 0), ('1', 'other', 1);
             INSERT INTO tool_calls VALUES (1, '1', 1, 'up', '{{\"x\": 1}}', NULL);
             INSERT INTO tool_results VALUES (1, '2', 'up', 'UP', NULL, NULL);"
        ))
        .expect("rows");
    let messages = sessions(&sandbox).pop().expect("a session");
    let blocks = messages[0]["content"].as_array().expect("blocks");
    assert_eq!(blocks[0], text("Look."));
    assert_eq!(blocks[1]["source"]["media_type"], "image/png");
    // A file that has another content than the one that was attached is not read.
    assert_eq!(blocks[2], text("[image that is no longer there]"));
    let call = json!({"type": "tool_use", "id": "up", "name": "up", "input": {"x": 1}});
    assert_eq!(messages[1]["content"], json!([text("Calling."), call]));
    assert_eq!(
        messages[2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "up", "content": "UP"}])
    );
    assert_eq!(messages[3]["content"], json!([text("Done.")]));
}
