//! `claw-session import` of databases with values that the other program cannot have written, and of damaged databases: only
//! the conversation with the value is left out, and a damaged database is named.

use std::fs;

use predicates::str::contains;
use rusqlite::Connection;

use crate::common::{AssertExt, Sandbox};

/// Databases with two conversations, `one` and `two`: the name, and the statements that make it.
const DATABASES: [(&str, &str); 5] = [
    (
        "opencode",
        "CREATE TABLE project (id TEXT); CREATE TABLE session (id, parent_id, directory, title, version, time_created, revert);
        CREATE TABLE message (id, session_id, time_created, data); CREATE TABLE part (id, message_id, data);
        INSERT INTO session VALUES ('one', NULL, '/w', 'a', '1', 1, NULL), ('two', NULL, '/w', 'b', '1', 2, NULL);
        INSERT INTO message VALUES ('m1', 'one', 1, '{\"role\":\"user\"}'), ('m2', 'two', 1, '{\"role\":\"user\"}');
        INSERT INTO part VALUES ('p1', 'm1', '{\"type\":\"text\",\"text\":\"odd\"}'), ('p2', 'm2', '{\"type\":\"text\",\"text\":\"plain\"}');",
    ),
    (
        "goclaw",
        "CREATE TABLE schema_version (version INTEGER); CREATE TABLE sessions (key, created_at);
        CREATE TABLE messages (id, session_key, timestamp, role, content); CREATE TABLE checkpoints (session_key, timestamp);
        CREATE TABLE compactions (session_key, timestamp);
        INSERT INTO sessions VALUES ('one', 1), ('two', 1);
        INSERT INTO messages VALUES ('m1', 'one', 1, 'user', 'odd'), ('m2', 'two', 1, 'user', 'plain');",
    ),
    (
        "llm",
        "CREATE TABLE conversations (id); CREATE TABLE attachments (id, type, path, url, content);
        CREATE TABLE prompt_attachments (response_id, attachment_id, \"order\");
        CREATE TABLE responses (id, model, prompt, response, conversation_id, datetime_utc, input_tokens, output_tokens);
        INSERT INTO conversations VALUES ('one'), ('two');
        INSERT INTO responses VALUES ('r1', 'm', 'odd', 'yes', 'one', '2026-05-01T10:00:00', 1, 1),
          ('r2', 'm', 'plain', 'yes', 'two', '2026-05-01T10:00:00', 1, 1);",
    ),
    (
        "threads",
        "CREATE TABLE conversations (id); CREATE TABLE attachments (id, type, path, url, content);
        CREATE TABLE prompt_attachments (response_id, attachment_id, \"order\"); CREATE TABLE responses (id, conversation_id);
        CREATE TABLE threads (id, tip_message_hash, datetime_utc, forked_from); CREATE TABLE messages (hash, parent_hash, role);
        CREATE TABLE parts (message_hash, position, type, text, payload);
        CREATE TABLE turns (id, thread_id, parent_message_hash, tip_message_hash, model, resolved_model, input_tokens,
          output_tokens, token_details, datetime_utc);
        INSERT INTO threads VALUES ('one', 'h1', '2026-05-01 10:00:00', NULL), ('two', 'h2', '2026-05-01 10:00:00', NULL);
        INSERT INTO messages VALUES ('h1', NULL, 'user'), ('h2', NULL, 'user');
        INSERT INTO parts VALUES ('h1', 0, 'text', 'odd', NULL), ('h2', 0, 'text', 'plain', NULL);
        INSERT INTO turns VALUES ('t1', 'one', 'h1', 'h1', 'm', NULL, 1, 1, NULL, NULL);",
    ),
    (
        "openclaw",
        "CREATE TABLE transcript_event_identities (session_id); CREATE TABLE transcript_events (session_id, seq, event_json);
        INSERT INTO transcript_events VALUES ('one', 0, '{\"type\":\"session\",\"version\":4,\"id\":\"one\"}'),
          ('one', 1, '{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"odd\"}}'),
          ('two', 0, '{\"type\":\"session\",\"version\":4,\"id\":\"two\"}'),
          ('two', 1, '{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"plain\"}}');",
    ),
];

#[test]
fn audit_41_an_odd_value_costs_only_its_own_conversation() {
    let sandbox = Sandbox::new();
    let blob = "bytes (a BLOB) that are no text";
    for (number, (program, change, column, what)) in [
        ("opencode", "UPDATE part SET data = x'ff00' WHERE id = 'p1'", "data", blob),
        ("opencode", "UPDATE part SET data = NULL WHERE id = 'p1'", "data", "nothing (NULL)"),
        (
            "opencode",
            "UPDATE message SET time_created = 'x' WHERE id = 'm1'",
            "time_created",
            "text that is not UTF-8, or is no number",
        ),
        ("opencode", "UPDATE session SET title = x'ff' WHERE id = 'one'", "title", blob),
        ("opencode", "UPDATE session SET id = NULL WHERE id = 'one'", "id", "nothing (NULL)"),
        ("goclaw", "UPDATE messages SET content = x'ff' WHERE id = 'm1'", "content", blob),
        (
            "goclaw",
            "UPDATE messages SET timestamp = 'x' WHERE id = 'm1'",
            "timestamp",
            "text that is not UTF-8, or is no number",
        ),
        ("llm", "UPDATE responses SET prompt = x'ff' WHERE id = 'r1'", "prompt", blob),
        ("llm", "UPDATE responses SET id = NULL WHERE id = 'r1'", "id", "nothing (NULL)"),
        ("llm", "UPDATE responses SET input_tokens = x'01' WHERE id = 'r1'", "input_tokens", blob),
        ("llm", "UPDATE conversations SET id = x'ff' WHERE id = 'one'", "id", blob),
        ("threads", "UPDATE parts SET text = x'ff' WHERE message_hash = 'h1'", "text", blob),
        ("threads", "UPDATE turns SET token_details = x'ff'", "token_details", blob),
        ("threads", "UPDATE messages SET role = NULL WHERE hash = 'h1'", "role", "nothing (NULL)"),
        (
            "openclaw",
            "UPDATE transcript_events SET event_json = x'ff' WHERE session_id = 'one'",
            "event_json",
            blob,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.db");
        let (_, tables) = DATABASES.iter().find(|(name, _)| *name == program).expect("tables");
        let database = Connection::open(sandbox.path(&name)).expect("a file");
        database.execute_batch(tables).expect("tables");
        database.execute_batch(change).expect("a change");
        drop(database);
        let run = sandbox.cmd("claw-session").args(["import", &name]).assert().code(65);
        let told = run.stderr_text();
        let which = if column == "id" && program != "llm" || change.contains("conversations") {
            "a conversation of".to_owned()
        } else {
            "conversation 'one' of".to_owned()
        };
        let expected = format!(
            "claw-index: left out {which} '{name}': column '{column}' holds {what}; correct the value with sqlite3, and import the database again\n"
        );
        assert_eq!(told, expected, "{program}: {change}");
        let ids = run.stdout_text();
        assert_eq!(ids.lines().count(), 1, "{program}: {change}: {ids}");
        let path = sandbox.cmd("claw-session").args(["path", ids.trim()]).assert().stdout_text();
        let sent = sandbox.cmd("claw-rebuild").arg(path.trim()).assert().success().stdout_text();
        assert!(sent.contains("plain") && !sent.contains("odd"), "{program}: {change}: {sent}");
    }
}

#[test]
fn audit_41_text_is_read_whatever_its_type_in_the_database() {
    let sandbox = Sandbox::new();
    for (program, change, text) in [
        ("llm", "UPDATE responses SET prompt = CAST('bytes' AS BLOB) WHERE id = 'r1'", "bytes"),
        ("llm", "UPDATE responses SET prompt = 17.5 WHERE id = 'r1'", "17.5"),
        (
            "threads",
            "UPDATE parts SET text = CAST('bytes' AS BLOB) WHERE message_hash = 'h1'",
            "bytes",
        ),
        ("opencode", "UPDATE part SET data = CAST(data AS BLOB)", "odd"),
        ("openclaw", "UPDATE transcript_events SET event_json = CAST(event_json AS BLOB)", "odd"),
    ] {
        let name = format!("{program}{text}.db");
        let (_, tables) = DATABASES.iter().find(|(name, _)| *name == program).expect("tables");
        let database = Connection::open(sandbox.path(&name)).expect("a file");
        database.execute_batch(tables).expect("tables");
        database.execute_batch(change).expect("a change");
        drop(database);
        let run = sandbox.cmd("claw-session").args(["import", &name]).assert().success().stderr("");
        let first = run.stdout_text().lines().next().expect("an id").to_owned();
        let path = sandbox.cmd("claw-session").args(["path", &first]).assert().stdout_text();
        sandbox.cmd("claw-rebuild").arg(path.trim()).assert().success().stdout(contains(text));
    }
}

#[test]
fn audit_41_import_all_names_damaged_databases_and_goes_on() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("tree")).expect("a directory");
    let make = |name: &str, (_, tables): (&str, &str), more: &str| {
        let database = Connection::open(sandbox.path(&format!("tree/{name}"))).expect("a file");
        database.execute_batch(tables).expect("tables");
        database.execute_batch(more).expect("rows");
    };
    let many = "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO part SELECT 'p' || i, 'm2', '{\"type\":\"text\",\"text\":\"' || hex(zeroblob(200)) || '\"}' FROM n;";
    make("damaged.db", DATABASES[0], many);
    make("good.db", DATABASES[2], "");
    make("odd.db", DATABASES[3], "UPDATE parts SET text = x'ff' WHERE message_hash = 'h1'");
    make("other.db", ("", "CREATE TABLE other (id)"), "");
    let path = sandbox.path("tree/damaged.db");
    let mut bytes = fs::read(&path).expect("a database");
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0xff);
    fs::write(&path, bytes).expect("written");
    let all = || sandbox.cmd("claw-session").args(["import", "--all", "tree"]).assert().code(65);
    let run = all();
    let told = run.stderr_text();
    for part in [
        "claw-index: cannot read 'tree/damaged.db': database disk image is malformed; if it is damaged, recover it",
        "claw-index: left out conversation 'one' of 'tree/odd.db': column 'text' holds",
        "imported, 0 updated, 0 unchanged, 1 skipped, 2 damaged\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("other.db"), "{told}");
    assert!(run.stdout_text().lines().count() >= 3, "{run}");
    // They are named again, and nothing is imported twice.
    let again = all();
    assert_eq!(again.stdout_text(), "");
    assert!(again.stderr_text().contains("claw-session: 0 imported, 0 updated, "), "{again}");
    assert!(again.stderr_text().contains(" 2 damaged\n"), "{again}");
    let json =
        sandbox.cmd("claw-session").args(["--log", "json", "import", "--all", "tree"]).assert();
    assert!(json.stderr_text().contains("\"damaged\":2"), "{json}");
}
