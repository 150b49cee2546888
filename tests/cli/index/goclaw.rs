//! `claw-session import` turns the databases of GoClaw into sessions, and does not change the databases.

use std::collections::BTreeMap;
use std::fs;

use predicates::str::contains;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::index;
use crate::common::{AssertExt, Sandbox};

/// The tables of GoClaw, without its indices. `{}` stands for the columns of messages that later versions added.
const TABLES: &str = "
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL);
CREATE TABLE sessions (key TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, model TEXT, thinking_level TEXT, max_tokens INTEGER DEFAULT 200000,
  compaction_count INTEGER DEFAULT 0, total_tokens INTEGER DEFAULT 0, flushed_thresholds TEXT DEFAULT '[]',
  flush_actioned INTEGER DEFAULT 0);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, timestamp INTEGER NOT NULL,
  role TEXT NOT NULL, content TEXT NOT NULL DEFAULT '', tool_call_id TEXT, tool_name TEXT, tool_input TEXT,
  tool_result TEXT, tool_is_error INTEGER DEFAULT 0, source TEXT, channel_id TEXT, user_id TEXT,
  input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0, raw_json TEXT{},
  FOREIGN KEY (session_key) REFERENCES sessions (key) ON DELETE CASCADE);
CREATE TABLE checkpoints (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, timestamp INTEGER NOT NULL,
  summary TEXT NOT NULL, tokens_at_checkpoint INTEGER NOT NULL, message_count_at_checkpoint INTEGER NOT NULL,
  topics TEXT DEFAULT '[]', key_decisions TEXT DEFAULT '[]', open_questions TEXT DEFAULT '[]', generated_by TEXT,
  covers_up_to TEXT);
CREATE TABLE compactions (id TEXT PRIMARY KEY, session_key TEXT NOT NULL, parent_id TEXT, timestamp INTEGER NOT NULL,
  summary TEXT NOT NULL, first_kept_entry_id TEXT, tokens_before INTEGER NOT NULL, tokens_after INTEGER DEFAULT 0,
  messages_removed INTEGER DEFAULT 0, from_checkpoint INTEGER DEFAULT 0, checkpoint_id TEXT);";
const ADDED: &str =
    ", transcript_indexed_at INTEGER, thinking TEXT, supervisor TEXT, intervention_type TEXT";

/// The rows of two sessions; the second one is not in the table of sessions.
const ROWS: &str = "
INSERT INTO sessions (key, id, created_at, updated_at, model) VALUES ('primary', 'x1', 1767225600, 1767225700, 'm');
INSERT INTO messages (id, session_key, timestamp, role, content, source, user_id) VALUES
  ('1_000001', 'primary', 1767225601, 'user', 'What is in a.txt?', 'telegram', 'u7'),
  ('1_000002', 'primary', 1767225601, 'system', 'reminder', NULL, NULL);
INSERT INTO messages (id, session_key, timestamp, role, content, input_tokens, output_tokens) VALUES
  ('1_000003', 'primary', 1767225602, 'assistant', 'I look.', 120, 7);
INSERT INTO messages (id, session_key, timestamp, role, tool_call_id, tool_name, tool_input) VALUES
  ('1_000004', 'primary', 1767225602, 'tool_use', 'call-1', 'read', CAST('{\"path\": \"a.txt\"}' AS BLOB));
INSERT INTO messages (id, session_key, timestamp, role, tool_call_id, tool_result, tool_is_error) VALUES
  ('1_000005', 'primary', 1767225603, 'tool_result', 'call-1', 'no such file', 1);
INSERT INTO messages (id, session_key, timestamp, role, content) VALUES
  ('1_000006', 'primary', 1767225604, 'assistant', 'It is missing.'),
  ('1_000007', 'primary', 1767225605, 'user', 'Thanks.'),
  ('1_000008', 'primary', 1767225609, 'assistant', 'Welcome.'),
  ('1_000009', 'user:42', 1767225600, 'user', 'hello');
INSERT INTO checkpoints VALUES ('cp1', 'primary', NULL, 1767225606, 'a file was sought', 900, 5, '[\"files\"]', '[]',
  '[\"where is it?\"]', 'm', NULL);
INSERT INTO compactions VALUES ('k1', 'primary', NULL, 1767225607, 'they sought a file', '1_000007', 1200, 0, 6, 0, NULL);";

/// Creates a database with [`ROWS`] in this version of GoClaw's schema.
fn database(sandbox: &Sandbox, name: &str, version: i64) -> Connection {
    let database = Connection::open(sandbox.path(name)).expect("a file");
    let added = if version > 1 { ADDED } else { "" };
    database.pragma_update(None, "journal_mode", "wal").expect("a log");
    // GoClaw does not enforce foreign keys.
    database.pragma_update(None, "foreign_keys", false).expect("a setting");
    let sql = format!(
        "{}\n{ROWS}\nINSERT INTO schema_version VALUES ({version}, 0);",
        TABLES.replace("{}", added)
    );
    database.execute_batch(&sql).expect("tables");
    if version > 1 {
        let sql = "ALTER TABLE compactions ADD COLUMN needs_summary_retry INTEGER DEFAULT 0;
            UPDATE messages SET thinking = 'hm' WHERE id = '1_000003';";
        database.execute_batch(sql).expect("columns");
    }
    database
}

/// Returns the contents of the files in the sandbox whose names begin with `name`.
fn files(sandbox: &Sandbox, name: &str) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(sandbox.path(".")).expect("a directory");
    let names =
        names.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    names.filter(|own| own.starts_with(name)).map(|own| (own.clone(), sandbox.read(&own))).collect()
}

fn session(sandbox: &Sandbox, args: &[&str]) -> assert_cmd::assert::Assert {
    sandbox.cmd("claw-session").args(args).assert()
}

/// Imports a database, and returns the ids of its sessions.
#[track_caller]
fn import(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let run = session(sandbox, &[&["import"], args].concat()).success().stderr("");
    run.stdout_text().lines().map(str::to_owned).collect()
}

/// Returns the records of a session without members that depend on the import.
fn records(sandbox: &Sandbox, name: &str) -> Vec<Value> {
    let path = session(sandbox, &["path", name]).success().stdout_text();
    let mut records = sandbox.read_json(path.trim());
    for record in &mut records {
        let record = record.as_object_mut().expect("an object");
        for name in ["id", "ts", "version"] {
            record.remove(name);
        }
    }
    records
}

#[test]
fn a_database_of_goclaw_becomes_sessions() {
    let sandbox = Sandbox::new();
    drop(database(&sandbox, "goclaw ü%.db", 6));
    let before = files(&sandbox, "goclaw");
    assert_eq!(before.len(), 1);
    let ids = import(&sandbox, &["--from", "goclaw", "goclaw ü%.db"]);
    assert_eq!(ids.len(), 2);
    assert!(before == files(&sandbox, "goclaw"), "the database changed");
    let path = session(&sandbox, &["path", "primary"]).success().stdout_text();
    let kept = sandbox.read_json(path.trim())[7]["id"].clone();
    let file = sandbox.path("goclaw ü%.db").canonicalize().expect("a file").display().to_string();
    let found = records(&sandbox, "primary");
    assert_eq!(
        found[1..],
        [
            json!({"type": "user", "content": "What is in a.txt?", "source": "telegram", "user_id": "u7"}),
            json!({"type": "imported", "record": {"role": "system", "content": "reminder"}}),
            json!({"type": "assistant", "content": "I look.", "reasoning": "hm", "usage": {"input_tokens": 120, "output_tokens": 7}}),
            json!({"type": "tool_use", "tool_use_id": "call-1", "name": "read", "input": {"path": "a.txt"}}),
            json!({"type": "tool_result", "tool_use_id": "call-1", "content": "no such file", "is_error": true}),
            json!({"type": "assistant", "content": "It is missing."}),
            json!({"type": "user", "content": "Thanks."}),
            json!({"type": "checkpoint", "summary": "a file was sought", "topics": ["files"], "key_decisions": [],
                "open_questions": ["where is it?"], "tokens_at_checkpoint": 900, "message_count_at_checkpoint": 5,
                "generated_by": "m"}),
            json!({"type": "compaction", "summary": "they sought a file", "first_kept_entry_id": kept, "tokens_before": 1200}),
            json!({"type": "assistant", "content": "Welcome."}),
        ]
    );
    assert_eq!(
        found[0]["source"],
        json!({"dialect": "goclaw", "version": 6, "session": "primary", "file": file})
    );
    assert_eq!(found[0]["key"], "main:goclaw:primary");
    let messages =
        sandbox.sh(r#"claw-rebuild --to anthropic "$(claw-session path primary)""#).assert();
    let messages = messages.success().stderr("").stdout_text();
    assert!(messages.contains("they sought a file") && !messages.contains("a.txt"), "{messages}");
    assert_eq!(records(&sandbox, "user:42").len(), 2);
    sandbox
        .sh("claw-check $(claw-session path primary) $(claw-session path user:42)")
        .assert()
        .success();
}

#[test]
fn an_import_of_the_same_database_adds_only_what_is_new() {
    let sandbox = Sandbox::new();
    // While a connection is open, new rows stay in the write-ahead log.
    let database = database(&sandbox, "goclaw.db", 1);
    let ids = import(&sandbox, &["goclaw.db"]);
    assert_eq!(import(&sandbox, &["goclaw.db"]), ids);
    let before = records(&sandbox, "primary");
    let more = "INSERT INTO messages (id, session_key, timestamp, role, content) VALUES
        ('1_000010', 'primary', 1767225610, 'user', 'one more'), ('1_000011', 'user:43', 1767225610, 'user', 'new')";
    database.execute(more, []).expect("rows");
    let log = files(&sandbox, "goclaw.db-wal");
    let again = import(&sandbox, &["goclaw.db"]);
    assert!(again[..2] == ids[..] && again.len() == 3);
    let after = records(&sandbox, "primary");
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()..], [json!({"type": "user", "content": "one more"})]);
    assert!(log == files(&sandbox, "goclaw.db-wal") && !log.is_empty());
    assert_eq!(session(&sandbox, &["list", "--json"]).success().json().len(), 3);
}

#[test]
fn no_other_database_is_imported() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", "{\"type\":\"user\",\"content\":\"hi\"}\n");
    index(&sandbox, "own.db", &["update", "--quiet", "s.jsonl"]).success();
    Connection::open(sandbox.path("other.db"))
        .and_then(|it| it.execute_batch("CREATE TABLE t (x)"))
        .expect("a table");
    sandbox.write("damaged.db", [b"SQLite format 3\0".as_slice(), &[7; 5000]].concat());
    for (name, why) in [
        ("own.db", "cannot import 'own.db': not a database of GoClaw, OpenClaw, opencode or llm"),
        (
            "other.db",
            "cannot import 'other.db': not a database of GoClaw, OpenClaw, opencode or llm",
        ),
        ("damaged.db", "cannot read 'damaged.db': file is not a database"),
        ("damaged.db", "cannot import 'damaged.db': 'claw-index' ended with status 65"),
    ] {
        session(&sandbox, &["import", name]).code(65).stdout("").stderr(contains(why));
    }
    drop(database(&sandbox, "goclaw.db", 6));
    let run = session(&sandbox, &["import", "--label", "x", "goclaw.db"]).code(2);
    run.stderr(contains("leave them out"));
    index(&sandbox, "none.db", &["records", "none"])
        .code(74)
        .stderr(contains("cannot read 'none'"));
    assert!(!sandbox.exists("workspace"));
}
