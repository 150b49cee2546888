//! Trees with many sessions of other programs: what is found in them, and how much memory commands need for them.

use std::fs;

use rusqlite::Connection;

use crate::common::{AssertExt, Sandbox};

/// Imports the tree, checks what is reported, and returns what is printed.
fn import(sandbox: &Sandbox, outcome: &str) -> String {
    let run = sandbox.cmd("claw-session").args(["import", "--all", "tree"]).assert().success();
    assert_eq!(run.stderr_text(), format!("claw-session: {outcome}\n"));
    run.stdout_text()
}

/// Makes the database of an opencode with as many sessions, each with a prompt of `size` bytes.
fn opencode(sandbox: &Sandbox, count: u32, size: usize) -> Connection {
    fs::create_dir_all(sandbox.path("tree")).expect("a directory");
    let database = Connection::open(sandbox.path("tree/opencode.db")).expect("a file");
    let tables = "
        CREATE TABLE IF NOT EXISTS project (id TEXT);
        CREATE TABLE IF NOT EXISTS session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, time_created INTEGER, revert TEXT);
        CREATE TABLE IF NOT EXISTS message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE IF NOT EXISTS part (id TEXT, message_id TEXT, data TEXT);
        CREATE INDEX IF NOT EXISTS parts ON part (message_id);
        CREATE INDEX IF NOT EXISTS messages ON message (session_id);
        BEGIN;";
    database.execute_batch(tables).expect("tables");
    let text = serde_json::json!({"type": "text", "text": "x".repeat(size)}).to_string();
    for number in 0..count {
        let row = "INSERT INTO session VALUES (?1, NULL, '/w', 'Title ' || ?1, '1.18.33', 1767225600000, NULL)";
        database.execute(row, [format!("ses_{number}")]).expect("a session");
        let row = "INSERT INTO message VALUES ('m' || ?1, 'ses_' || ?1, 1767225600000, '{\"role\":\"user\"}')";
        database.execute(row, [number]).expect("a message");
        let row = "INSERT INTO part VALUES ('p' || ?1, 'm' || ?1, ?2)";
        database.execute(row, (number, &text)).expect("a part");
    }
    database.execute_batch("COMMIT").expect("committed");
    database
}

#[test]
fn audit_41_databases_in_a_tree_are_imported_with_their_titles() {
    let sandbox = Sandbox::new();
    let database = opencode(&sandbox, 3, 10);
    // A database of another program, and a file that only has such a name.
    Connection::open(sandbox.path("tree/other.sqlite"))
        .expect("a file")
        .execute_batch("CREATE TABLE t (x)")
        .expect("a table");
    sandbox.write("tree/text.db", "text");
    assert_eq!(
        import(&sandbox, "3 imported, 0 updated, 0 unchanged, 2 skipped").lines().count(),
        3
    );
    assert_eq!(import(&sandbox, "0 imported, 0 updated, 3 unchanged, 2 skipped"), "");
    let sessions = sandbox.cmd("claw-session").args(["list", "--json"]).assert().success().json();
    let mut labels: Vec<&str> =
        sessions.iter().map(|it| it["label"].as_str().expect("a label")).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["Title ses_0", "Title ses_1", "Title ses_2"]);
    let row = "INSERT INTO part VALUES ('p9', 'm9', '{\"type\":\"text\",\"text\":\"more\"}'); INSERT INTO message VALUES ('m9', 'ses_1', 1767225700000, '{\"role\":\"user\"}')";
    database.execute_batch(row).expect("rows");
    assert_eq!(
        import(&sandbox, "0 imported, 1 updated, 2 unchanged, 2 skipped").lines().count(),
        1
    );
}

/// Each program may use so much memory in addition to its code; the sessions have 24 MB, and half of them are in a database.
/// The limit is tight for programs without debug information, as `make check` runs them.
const MIB: usize = 18;

#[test]
fn audit_41_memory_does_not_depend_on_the_number_of_sessions() {
    let sandbox = Sandbox::new();
    opencode(&sandbox, 120, 100_000);
    let line = |number: usize| {
        let text = "x".repeat(100_000);
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"parentUuid\":null,\"sessionId\":\"s{number}\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        )
    };
    for number in 0..120 {
        sandbox.write(&format!("tree/{number}.jsonl"), line(number));
    }
    let limited = |command: &str| {
        let kib = MIB * 1024;
        let script = format!(
            "export MALLOC_ARENA_MAX=1; own=0; for one in claw-session claw-index; do
            size=$(($(wc -c <\"$(command -v $one)\") / 1024)); [ $size -gt $own ] && own=$size; done
            ulimit -v $((own + {kib})) && exec {command}"
        );
        sandbox.sh(&script).assert().success()
    };
    let run = limited("claw-session import --all tree");
    assert_eq!(
        run.stderr_text(),
        "claw-session: 240 imported, 0 updated, 0 unchanged, 0 skipped\n"
    );
    limited("claw-session import --all tree")
        .stderr("claw-session: 0 imported, 0 updated, 240 unchanged, 0 skipped\n");
    limited("claw-index --db i.db update --quiet tree/1.jsonl tree/2.jsonl");
    limited("claw-session repair --dry-run tree/*.jsonl").stdout("");
}

#[test]
fn audit_41_a_session_of_codex_has_the_name_that_its_index_gives_it() {
    let sandbox = Sandbox::new();
    let meta = r#"{"timestamp":"2026-05-01T10:00:00Z","type":"session_meta","payload":{"id":"t1","cwd":"/w"}}"#;
    let item = r#"{"timestamp":"2026-05-01T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#;
    let renamed = r#"{"timestamp":"2026-05-01T10:00:02Z","type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"old"}}"#;
    let text = format!("{meta}\n{item}\n{renamed}\n");
    sandbox.write("c/sessions/2026/05/01/rollout-2026-05-01T10-00-00-t1.jsonl", &text);
    sandbox.write("d/sessions/2026/05/01/rollout-2026-05-01T10-00-00-t1.jsonl", &text);
    let index = "{\"id\":\"t1\",\"thread_name\":\"first\"}\n{\"id\":\"t2\",\"thread_name\":\"other\"}\n{\"id\":\"t1\",\"thread_name\":\"名前\"}\n{\"torn";
    sandbox.write("c/session_index.jsonl", index);
    sandbox.cmd("claw-session").args(["import", "--all", "c"]).assert().success();
    sandbox.cmd("claw-session").args(["import", "--all", "d"]).assert().success();
    let sessions = sandbox.cmd("claw-session").args(["list", "--json"]).assert().success().json();
    let mut labels: Vec<&str> =
        sessions.iter().map(|it| it["label"].as_str().expect("a label")).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["old", "名前"]);
}

#[test]
fn chats_of_an_older_gemini_cli_are_found_in_directories() {
    let sandbox = Sandbox::new();
    let header = r#""sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:02.000Z""#;
    let messages = [
        r#"{"id":"1","timestamp":"2026-01-01T00:00:01.000Z","type":"user","content":"one"}"#,
        r#"{"id":"2","timestamp":"2026-01-01T00:00:02.000Z","type":"gemini","content":"two","thoughts":[],"model":"gemini-2.5-pro"}"#,
    ];
    let old = format!("{{{header},\"messages\":[{}]}}", messages.join(","));
    let old: serde_json::Value = serde_json::from_str(&old).expect("an object");
    let old = serde_json::to_string_pretty(&old).expect("its text");
    sandbox.write("tree/p/chats/session-2026-01-01T00-00-s.json", &old);
    // Of other names, nothing is read.
    sandbox.write("tree/p/session-1.json", &old);
    sandbox.write("tree/p/chats/notes.json", &old);
    sandbox.write("tree/p/chats/session-2.json", "[]\n");
    let site = |outcome: &str| {
        let run = sandbox.cmd("claw-show").args(["--output", "site/", "tree"]).assert().success();
        run.stderr(format!("claw-show: {outcome}\n"));
    };
    let index = |outcome: &str| {
        let run = sandbox.cmd("claw-index").args(["--db", "i.db", "update", "tree"]).assert();
        run.success().stderr(format!("claw-index: transcripts: {outcome}\n"));
    };
    site("1 session, 3 files written, 0 removed");
    index("1 new, 1 not transcripts");
    // A newer version continues a chat in a file of lines, and leaves the older one.
    let lines = format!("{{{header}}}\n{}\n", messages.join("\n"));
    sandbox.write("tree/p/chats/session-2026-01-01T00-00-s.jsonl", &lines);
    site("1 session, 1 file written, 0 removed");
    index("1 new, 1 removed, 1 not transcripts");
    fs::remove_dir_all(sandbox.path("tree/p/chats")).expect("a directory");
    sandbox.write("tree/p/chats/session-3.json", &old);
    sandbox.write("tree/p/chats/session-3.jsonl", &lines);
    fs::remove_file(sandbox.path("tree/p/session-1.json")).expect("a file");
    import(&sandbox, "1 imported, 0 updated, 0 unchanged, 0 skipped");
}
