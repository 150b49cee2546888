//! What calls cost, in the views of the index. Issue 40.

use rusqlite::Connection;
use serde_json::json;

use super::{index, rows};
use crate::common::Sandbox;

const CALLS: &str = "SELECT model, cost, cost_without_cache FROM calls ORDER BY row";

/// Writes a session with a call that read from the cache and wrote to it, also for an hour, and one without a known price.
fn session(sandbox: &Sandbox) {
    sandbox.write("prices", "m 3 0.3 3.75 15\n");
    let usage = json!({
        "input_tokens": 1000, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 5000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 4000},
        "output_tokens": 100,
    });
    let reply = |model: &str, usage| json!({"type": "assistant", "content": "a", "model": model, "usage": usage});
    let lines =
        [json!({"type": "user", "content": "q"}), reply("m", usage.clone()), reply("n", usage)];
    sandbox.write("s.jsonl", lines.map(|line| line.to_string() + "\n").concat());
}

#[test]
fn audit_40_calls_cost_what_they_cost_elsewhere() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    index(&sandbox, "i.db", &["update", "--quiet", "--prices", "prices", "s.jsonl"]).success();
    // 1000 at 3, 2000 at 0.3, 1000 at 3.75, 4000 at twice the price of input, 100 at 15, per million.
    let expected = [
        json!({"model": "m", "cost": 0.03285, "cost_without_cache": 0.0255}),
        json!({"model": "n", "cost": null, "cost_without_cache": null}),
    ];
    assert_eq!(rows(&sandbox, "i.db", CALLS), expected);
    sandbox.write("prices", "m 3 0.3 3.75 15\nn 0 0 0 0\n");
    let shown = sandbox.cmd("claw-show").args(["--cost", "--prices", "prices", "s.jsonl"]);
    shown.assert().success().stdout(predicates::str::contains("200 out; 0.0328"));
}

/// An index of the version before is brought up to date by the next update.
#[test]
fn audit_40_an_older_index_gets_the_price_of_an_hour() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    let update = |options: &[&str]| {
        let args = [&["update", "--quiet", "--prices", "prices"], options, &["s.jsonl"]].concat();
        index(&sandbox, "i.db", &args).success();
    };
    update(&[]);
    let new = rows(&sandbox, "i.db", CALLS);
    let database = Connection::open(sandbox.path("i.db")).expect("a database");
    let back = "DROP VIEW tokens_by_day; DROP VIEW tokens_by_model; DROP VIEW tokens_by_session; DROP VIEW calls;
        ALTER TABLE usage DROP COLUMN cache_write_1h; ALTER TABLE prices DROP COLUMN cache_write_1h;
        DELETE FROM schema_version WHERE version = 3; PRAGMA user_version = 2;";
    database.execute_batch(back).expect("version 2");
    drop(database);
    // What was written for an hour is counted when the transcript is read again.
    update(&[]);
    assert_eq!(rows(&sandbox, "i.db", CALLS)[0]["cost"], json!(0.02385));
    update(&["--full"]);
    assert_eq!(rows(&sandbox, "i.db", CALLS), new);
}
