//! claw-index: the database has the same content as the transcripts, however it was updated, and search finds their
//! words.

mod copies;
mod frames;
mod goclaw;
mod llm;
mod mcp;
mod openclaw;
mod opencode;
mod peers;
mod prices;
mod queries;
mod search;
mod store;
mod updates;
mod values;

use assert_cmd::assert::Assert;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// The tables, without those of the full-text index.
const TABLES: [&str; 13] = [
    "sessions",
    "transcripts",
    "messages",
    "turns",
    "tool_calls",
    "files",
    "usage",
    "compactions",
    "checkpoints",
    "retractions",
    "errors",
    "findings",
    "schema_version",
];

/// Runs `claw-index` with the database `name`.
fn index(sandbox: &Sandbox, name: &str, args: &[&str]) -> Assert {
    sandbox.cmd("claw-index").args(["--db", name]).args(args).assert()
}

/// Returns the rows of a query.
fn rows(sandbox: &Sandbox, name: &str, sql: &str) -> Vec<Value> {
    index(sandbox, name, &["query", "--format", "json", sql]).success().json()
}

/// Returns all rows of all tables, and the rows that the full-text index finds for some words.
fn dump(sandbox: &Sandbox, name: &str) -> String {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(sandbox.path(name), flags).expect("a database");
    let mut all = String::new();
    let mut add = |title: &str, sql: &str| {
        all.push_str(&format!("{title}\n"));
        let mut select = database.prepare(sql).expect("a query");
        let columns = select.column_count();
        let mut rows = select.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let values = (0..columns).map(|column| row.get_ref(column).expect("a value"));
            let values = values.map(|value| match value.as_str() {
                Ok(text) => text.to_owned(),
                Err(_) => format!("{value:?}"),
            });
            all.push_str(&format!("{:?}\n", values.collect::<Vec<_>>()));
        }
    };
    for table in TABLES {
        // The rows are not sorted by their hidden rowid, because that depends on the order of insertion.
        let key = if table == "findings" { "1, 2" } else { "1" };
        add(table, &format!("SELECT * FROM {table} ORDER BY {key}"));
    }
    let found = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'a OR the OR words OR file' ORDER BY 1";
    add("found", found);
    all
}

/// Checks that an index equals a new index of the same paths.
#[track_caller]
fn assert_equals_fresh(sandbox: &Sandbox, name: &str, paths: &[&str]) {
    let fresh = format!("fresh-{name}");
    let _ = std::fs::remove_file(sandbox.path(&fresh));
    index(sandbox, &fresh, &[&["update"], paths].concat()).success();
    let (own, again) = (dump(sandbox, name), dump(sandbox, &fresh));
    let wrong = own.lines().zip(again.lines()).find(|(own, again)| own != again);
    assert!(own == again, "differs from a fresh index: {wrong:#?}");
}

/// Returns a transcript of `turns` turns with most types of records. `seed` varies the ids, times and text.
fn transcript(turns: usize, seed: usize) -> String {
    let mut lines = vec![
        json!({"type": "session", "id": format!("s{seed}"), "key": format!("main:cli:{seed}"),
        "label": "work", "created": "2026-01-01T00:00:00.000000+00:00", "version": 1}),
    ];
    for turn in 0..turns {
        let (n, ts) = (seed * 1000 + turn, 1_767_225_600.5 + (seed * 100_000 + turn * 60) as f64);
        let call = format!("call-{n}");
        lines.extend([
            json!({"type": "user", "ts": ts, "content": format!("question {n} about words")}),
            json!({"type": "assistant", "ts": ts + 1.0, "model": format!("model-{}", n % 3),
                "request_id": format!("r{n}"), "stop_reason": "tool_use",
                "usage": {"input_tokens": n, "cache_read_input_tokens": 7, "output_tokens": turn},
                "content": [{"type": "text", "text": format!("the answer {n}")}]}),
            json!({"type": "tool_use", "ts": ts + 1.5, "tool_use_id": call,
                "name": if n % 2 == 0 { "read_file" } else { "edit_file" }, "input": {"path": format!("src/f{}.rs", n % 5)}}),
            json!({"type": "tool_result", "ts": ts + 3.0, "tool_use_id": call, "is_error": n % 4 == 0,
                "content": format!("a file with {n} lines").repeat(n % 9 + 1)}),
            json!({"type": "assistant", "ts": ts + 4.0, "content": format!("done {n}")}),
        ]);
        match turn % 5 {
            1 => lines.push(json!({"type": "compaction", "ts": ts + 5.0, "id": format!("c{n}"), "summary": "so far",
                "first_kept_entry_id": "@0", "tokens_before": 9000, "tokens_after": 1000 + n, "strategy": "llm",
                "model": "model-0", "request_id": format!("c{n}"), "usage": {"input_tokens": 50, "output_tokens": 5}})),
            2 => lines.push(json!({"type": "error", "ts": ts + 5.0, "class": "throttle", "status": 429, "message": "slow down"})),
            3 if turn % 2 == 1 => lines.push(json!({"type": "retract", "ts": ts + 5.0, "target": format!("c{}", n - 2)})),
            _ => lines.push(json!({"type": "label", "ts": ts + 5.0, "label": format!("label {n}")})),
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
