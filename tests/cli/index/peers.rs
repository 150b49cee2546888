//! Other programs that read the same data: ccusage counts the same tokens, and Datasette shows the tables.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{index, rows, transcript};
use crate::common::{AssertExt, Sandbox};

/// The last version of ccusage that is written only in JavaScript and needs no network.
const CCUSAGE: &str = "ccusage@17.2.1";

/// Reports why a test is skipped.
#[allow(clippy::print_stderr, reason = "reports which test was skipped")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Installs ccusage once for all runs. Returns the path of its script, or `None` if npm or the network is missing.
fn ccusage() -> Option<String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(CCUSAGE);
    let script = directory.join("node_modules/ccusage/dist/index.js");
    if !script.is_file() {
        // npm runs with the user's configuration, which may name a registry.
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--fetch-retries=0",
            "--fetch-timeout=10000",
            "--prefix",
        ]);
        let _ = npm.arg(&directory).arg(CCUSAGE).output();
    }
    let is_there = script.is_file();
    if !is_there {
        skip("npm cannot install ccusage");
    }
    is_there.then(|| script.to_string_lossy().into_owned())
}

/// Returns a line of a project file of Claude Code.
fn line(id: u32, parent: u32, at: &str, more: &Value) -> String {
    let mut line = json!({"uuid": format!("u{id}"), "parentUuid": (parent > 0).then(|| format!("u{parent}")),
        "sessionId": "cc", "version": "2.1.330", "cwd": "/w", "timestamp": format!("2026-01-{at}:00.000Z"),
        "isSidechain": false});
    for (name, value) in more.as_object().expect("members") {
        line[name] = value.clone();
    }
    format!("{line}\n")
}

fn prompt(id: u32, parent: u32, at: &str) -> String {
    line(
        id,
        parent,
        at,
        &json!({"type": "user", "message": {"role": "user", "content": "a question"}}),
    )
}

/// Returns a line of reply number `reply`, which belongs to the request of the same number.
fn part(id: u32, parent: u32, at: &str, (reply, model): (u32, &str), more: &Value) -> String {
    let mut own = json!({"type": "assistant", "requestId": format!("req{reply}"), "message": {"id": format!("msg{reply}"),
        "type": "message", "role": "assistant", "model": model, "content": [{"type": "text", "text": format!("part {id}")}],
        "usage": {"input_tokens": reply, "cache_creation_input_tokens": 10 * reply, "cache_read_input_tokens": 100 * reply,
            "output_tokens": 1000 + reply}}});
    for (name, value) in more.as_object().expect("members") {
        own[name] = value.clone();
    }
    line(id, parent, at, &own)
}

/// Writes two files with replies of two models on several days: a reply of two lines, an abandoned branch, a subagent,
/// and a continued session whose file begins with a copy of the first turn.
fn project(sandbox: &Sandbox) {
    let none = json!({});
    let begin = [
        prompt(1, 0, "01T10:00"),
        part(2, 1, "01T10:01", (2, "claude-a"), &none),
        part(3, 2, "01T10:01", (2, "claude-a"), &none),
    ]
    .concat();
    let rest = [
        prompt(4, 3, "01T23:59"),
        part(5, 4, "02T00:01", (5, "claude-b"), &none),
        // The user edited the prompt, so the branch above is abandoned.
        prompt(6, 3, "02T08:00"),
        part(7, 6, "02T08:01", (7, "claude-a"), &none),
        part(8, 6, "02T08:02", (8, "claude-a"), &json!({"isSidechain": true})),
        prompt(9, 7, "03T08:00"),
        part(10, 9, "03T08:01", (10, "claude-a"), &none),
    ]
    .concat();
    sandbox.write(".claude/projects/w/one.jsonl", begin.clone() + &rest);
    let more = prompt(20, 3, "04T08:00") + &part(21, 20, "04T08:01", (21, "claude-b"), &none);
    sandbox.write(".claude/projects/w/two.jsonl", begin + &more);
}

#[test]
fn usage_per_day_and_model_of_claude_code_is_that_of_ccusage() {
    let sandbox = Sandbox::new();
    project(&sandbox);
    index(&sandbox, "i.db", &["update", "--quiet", ".claude"]).success();
    let sql = "SELECT day, model, input, cache_read, cache_write, output FROM tokens_by_day ORDER BY day, model";
    let own: Vec<Value> = rows(&sandbox, "i.db", sql);
    assert_eq!(own.len(), 5, "{own:?}");
    let Some(script) = ccusage() else { return };
    let run =
        sandbox.sh("exec node \"$1\" daily --json --offline --timezone UTC").arg("sh").arg(script);
    let report =
        run.env("CLAUDE_CONFIG_DIR", sandbox.path(".claude")).assert().success().stdout_text();
    let report: Value = serde_json::from_str(&report).expect("a report");
    let mut theirs = Vec::new();
    for day in report["daily"].as_array().expect("days") {
        for model in day["modelBreakdowns"].as_array().expect("models") {
            theirs.push(json!({"day": day["date"], "model": model["modelName"], "input": model["inputTokens"],
                "cache_read": model["cacheReadTokens"], "cache_write": model["cacheCreationTokens"],
                "output": model["outputTokens"]}));
        }
    }
    theirs.sort_by_key(|row| format!("{} {}", row["day"], row["model"]));
    assert_eq!(own, theirs);
}

#[test]
fn calls_on_abandoned_branches_and_of_subagents_have_the_kind_aside() {
    let sandbox = Sandbox::new();
    project(&sandbox);
    index(&sandbox, "i.db", &["update", "--quiet", ".claude"]).success();
    let sql = "SELECT call FROM usage WHERE kind = 'aside' AND session_key LIKE '%/one.jsonl' ORDER BY call";
    let asides: Vec<Value> = rows(&sandbox, "i.db", sql);
    assert_eq!(asides, [json!({"call": "msg5:req5"}), json!({"call": "msg8:req8"})]);
}

#[test]
fn datasette_shows_the_tables_and_their_foreign_keys() {
    let sandbox = Sandbox::new();
    let works = sandbox.sh("exec python3 -m datasette --get /-/versions.json").assert();
    if !works.get_output().status.success() {
        return skip("the Python package datasette is not installed, or does not work");
    }
    sandbox.write("s.jsonl", transcript(3, 1));
    index(&sandbox, "i.db", &["update", "--quiet", "s.jsonl"]).success();
    let get = |path: &str| {
        let run =
            sandbox.sh("exec python3 -m datasette i.db --get \"$1\"").arg("sh").arg(path).assert();
        serde_json::from_str::<Value>(&run.success().stdout_text()).expect("JSON")
    };
    let tables = get("/i.json");
    let tables = tables["tables"].as_array().expect("tables");
    let table = |name: &str| tables.iter().find(|table| table["name"] == name).expect("a table");
    assert_eq!(table("messages")["count"], 15);
    for (name, column, other) in [
        ("messages", "session_key", "sessions"),
        ("tool_calls", "result_row", "messages"),
        ("turns", "row", "messages"),
    ] {
        let keys = table(name)["foreign_keys"]["outgoing"].as_array().expect("keys");
        let is_own = |key: &&Value| key["column"] == column && key["other_table"] == other;
        assert!(keys.iter().any(|key| is_own(&key)), "{name}: {keys:?}");
    }
    assert_eq!(get("/i/tools.json?_shape=array").as_array().map(Vec::len), Some(2));
}
