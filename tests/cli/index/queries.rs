//! `claw-index query`, `schema` and `stats`.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::json;

use super::{index, rows, transcript};
use crate::common::{AssertExt, Sandbox};

fn indexed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.jsonl", transcript(10, 1));
    sandbox.write("b.jsonl", transcript(5, 2));
    index(&sandbox, "i.db", &["update", "a.jsonl", "b.jsonl"]).success();
    sandbox
}

#[test]
fn a_query_cannot_write() {
    let sandbox = indexed();
    let before = sandbox.read("i.db");
    for sql in [
        "DELETE FROM messages",
        "DROP TABLE messages",
        "VACUUM INTO 'copy.db'",
        "PRAGMA user_version = 5",
        "ATTACH 'new.db' AS new",
        "CREATE TABLE x (y)",
        "BEGIN IMMEDIATE",
    ] {
        let run = index(&sandbox, "i.db", &["query", sql]);
        assert!(!run.get_output().status.success(), "{sql}\n{run}");
    }
    assert!(!sandbox.exists("copy.db") && !sandbox.exists("new.db"));
    assert_eq!(sandbox.read("i.db"), before);
    let wrong = index(&sandbox, "i.db", &["query", "SELECT x FROM y"]).code(2);
    wrong.stderr(contains("no such table: y").and(contains("claw-index schema")));
}

#[test]
fn a_query_writes_tables_csv_and_json() {
    let sandbox = indexed();
    let sql = "SELECT 1 AS n, 'a \"b\", c' AS text, NULL AS more UNION ALL SELECT 20, 'x\ny', 2.5";
    for (format, expected) in [
        ("table", " n  text      more\n 1  a \"b\", c\n20  x y        2.5\n"),
        ("csv", "n,text,more\r\n1,\"a \"\"b\"\", c\",\r\n20,\"x\ny\",2.5\r\n"),
        (
            "json",
            "{\"n\":1,\"text\":\"a \\\"b\\\", c\",\"more\":null}\n{\"n\":20,\"text\":\"x\\ny\",\"more\":2.5}\n",
        ),
    ] {
        index(&sandbox, "i.db", &["query", "--format", format, sql]).success().stdout(expected);
    }
    let input = sandbox
        .cmd("claw-index")
        .args(["--db", "i.db", "query", "-"])
        .write_stdin("SELECT 5 AS five");
    input.assert().success().stdout("five\n   5\n");
}

#[test]
fn an_invalid_query_is_a_usage_error() {
    let sandbox = indexed();
    for (sql, why) in [
        ("SELEC", "near \"SELEC\": syntax error"),
        ("SELECT ?", "Wrong number of parameters"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT * FROM messages_fts WHERE messages_fts MATCH 'a AND'", "fts5: syntax error"),
        ("SELECT json('{')", "malformed JSON"),
    ] {
        let run = index(&sandbox, "i.db", &["query", sql]).code(2);
        run.stderr(contains(format!("claw-index: cannot run the query: {why}")));
    }
    let names = "SELECT 1 AS a, 2 AS b, 3 AS a, 4 AS a_2, 5 AS a";
    let run = index(&sandbox, "i.db", &["query", "--format", "json", names]).success();
    run.stdout("{\"a\":1,\"b\":2,\"a_2\":3,\"a_2_2\":4,\"a_3\":5}\n");
}

#[test]
fn only_regular_files_are_read() {
    let sandbox = indexed();
    let before = sandbox.read("a.jsonl");
    sandbox.sh("mkfifo pipe").assert().success();
    for (args, name) in [
        (["update", "pipe"], "pipe"),
        (["update", "/dev/zero"], "/dev/zero"),
        (["records", "/dev/zero"], "/dev/zero"),
        (["records", "."], "."),
    ] {
        let run = index(&sandbox, "i.db", &args).code(65);
        run.stderr(contains("': not a regular file; give another one\n").and(contains(name)));
    }
    index(&sandbox, ".", &["query", "SELECT 1"]).code(65).stderr(contains("not a regular file"));
    let run = index(&sandbox, "a.jsonl", &["update", "a.jsonl"]).code(65);
    run.stderr(
        "claw-index: cannot use 'a.jsonl': file is not a database; give another file with --db\n",
    );
    assert_eq!(sandbox.read("a.jsonl"), before);
}

#[test]
fn views_answer_common_questions() {
    let sandbox = indexed();
    let views =
        rows(&sandbox, "i.db", "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name");
    assert!(views.len() >= 9, "{views:?}");
    for view in views {
        let name = view["name"].as_str().expect("a name");
        assert!(!rows(&sandbox, "i.db", &format!("SELECT * FROM {name}")).is_empty(), "{name}");
    }
    let compacted = rows(&sandbox, "i.db", "SELECT compactions, gained FROM compacted_sessions");
    // The longer session has two compactions, and the first one is retracted. The other session has only a retracted
    // compaction.
    assert_eq!(compacted, [json!({"compactions": 1, "gained": 9000 - 2006})]);
    let tools =
        rows(&sandbox, "i.db", "SELECT name, calls, failed, mean_seconds FROM tools ORDER BY name");
    assert_eq!(
        tools[0],
        json!({"name": "edit_file", "calls": 7, "failed": 0, "mean_seconds": 1.5})
    );
    assert_eq!(tools[1]["failed"], 5);
    let errors = rows(&sandbox, "i.db", "SELECT class, status, errors FROM errors_by_class");
    assert_eq!(errors, [json!({"class": "throttle", "status": 429, "errors": 3})]);
}

#[test]
fn calls_in_copies_of_a_session_count_once() {
    let sandbox = indexed();
    let total = |db: &str| rows(&sandbox, db, "SELECT sum(total) AS n FROM tokens_by_day");
    let before = total("i.db");
    sandbox.write("copy.jsonl", transcript(10, 1));
    index(&sandbox, "i.db", &["update", "copy.jsonl"]).success();
    assert_eq!(total("i.db"), before);
}

#[test]
fn schema_prints_the_tables_and_views() {
    let sandbox = indexed();
    let schema = index(&sandbox, "i.db", &["schema"]).success().stdout_text();
    for part in ["CREATE TABLE messages (", "CREATE VIEW tokens_by_day", "messages_fts"] {
        assert!(schema.contains(part), "{schema}");
    }
    assert!(!schema.contains("messages_fts_data"), "{schema}");
    for (table, column) in [
        ("sessions", "compaction_count"),
        ("messages", "tool_is_error"),
        ("checkpoints", "covers_up_to"),
        ("compactions", "first_kept_entry_id"),
        ("messages", "raw_json"),
    ] {
        rows(&sandbox, "i.db", &format!("SELECT {column} FROM {table} LIMIT 1"));
    }
}

#[test]
fn statistics_have_bars() {
    let sandbox = indexed();
    let text = index(&sandbox, "i.db", &["stats"]).success().stdout_text();
    assert!(text.starts_with("sessions: 2, turns: 15, messages: 75\n"), "{text}");
    let bar = format!("  read_file  8  {}\n  edit_file  7  {}\n", "█".repeat(30), "█".repeat(26));
    assert!(text.contains(&format!("\nTools, in calls\n{bar}")), "{text}");
    let short = index(&sandbox, "i.db", &["stats", "--limit", "1"]).success().stdout_text();
    assert!(short.lines().count() < text.lines().count());
    index(&sandbox, "empty.db", &["update", "."]).success();
}

#[test]
fn each_query_in_docs_queries_finds_something() {
    let sandbox = indexed();
    let open = [
        json!({"type": "user", "content": "another question"}),
        json!({"type": "tool_use", "tool_use_id": "t", "name": "sh", "input": {}}),
        json!({"type": "user", "content": "a prompt without a reply"}),
    ];
    sandbox.write("open.jsonl", open.map(|line| format!("{line}\n")).concat());
    index(&sandbox, "i.db", &["update", "open.jsonl"]).success();
    let page = include_str!("../../../docs/queries.md");
    let queries = page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for query in queries {
        assert!(!rows(&sandbox, "i.db", query).is_empty(), "{query}");
        count += 1;
    }
    assert_eq!(count, 20);
}
