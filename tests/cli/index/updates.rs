//! `claw-index update`: new, changed and deleted transcripts, concurrent and killed updates, and `--follow`.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use predicates::str::contains;
use rusqlite::{Connection, TransactionBehavior};
use serde_json::json;

use super::{assert_equals_fresh, dump, index, rows, transcript};
use crate::common::{AssertExt, Sandbox};

/// Appends to a file.
fn append(sandbox: &Sandbox, name: &str, bytes: &[u8]) {
    let mut file =
        OpenOptions::new().append(true).create(true).open(sandbox.path(name)).expect("a file");
    file.write_all(bytes).expect("room");
}

/// Returns transcripts in several dialects, each with the name of its dialect.
fn samples() -> Vec<(&'static str, String)> {
    let own = transcript(6, 3);
    let lines =
        |values: Vec<serde_json::Value>| values.iter().map(|line| format!("{line}\n")).collect();
    let claude = |id: u32, parent: Option<u32>, kind: &str, message: serde_json::Value| {
        json!({"uuid": format!("u{id}"), "parentUuid": parent.map(|id| format!("u{id}")), "sessionId": "cc",
            "type": kind, "timestamp": format!("2026-01-02T00:00:{id:02}Z"), "version": "2.1", "cwd": "/w", "message": message})
    };
    let reply = |id: u32, block: serde_json::Value| {
        json!({"id": format!("m{id}"), "role": "assistant", "model": "claude-x", "content": [block],
            "usage": {"input_tokens": id, "output_tokens": 2}})
    };
    let claude_code = lines(vec![
        claude(1, None, "user", json!({"role": "user", "content": "a question"})),
        claude(
            2,
            Some(1),
            "assistant",
            reply(
                2,
                json!({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.rs"}}),
            ),
        ),
        claude(
            3,
            Some(2),
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "the file"}]}),
        ),
        claude(4, Some(3), "assistant", reply(4, json!({"type": "text", "text": "the answer"}))),
        // Another branch, which replaces the answer.
        claude(
            5,
            Some(3),
            "assistant",
            reply(5, json!({"type": "text", "text": "another answer"})),
        ),
        claude(6, Some(5), "user", json!({"role": "user", "content": "more words"})),
    ]);
    let pi = |id: u32, more: serde_json::Value| {
        let mut line = json!({"type": "message", "id": format!("p{id}"), "parentId": (id > 1).then(|| format!("p{}", id - 1)),
            "timestamp": format!("2026-01-03T00:00:{id:02}Z")});
        line["message"] = more;
        line
    };
    let pi = lines(vec![
        json!({"type": "session", "version": 3, "id": "pi1", "timestamp": "2026-01-03T00:00:00Z", "cwd": "/w"}),
        pi(1, json!({"role": "user", "content": "a question", "timestamp": 1})),
        pi(
            2,
            json!({"role": "assistant", "model": "m", "provider": "p", "stopReason": "toolUse", "timestamp": 2,
            "usage": {"input": 5, "output": 1, "cacheRead": 0, "cacheWrite": 0},
            "content": [{"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}}]}),
        ),
        pi(
            3,
            json!({"role": "toolResult", "toolCallId": "t1", "toolName": "read", "isError": false, "timestamp": 3,
            "content": [{"type": "text", "text": "the file"}]}),
        ),
        pi(4, json!({"role": "user", "content": "the words", "timestamp": 4})),
    ]);
    let claw0 = lines(vec![
        json!({"type": "user", "content": "a question", "ts": "2026-01-01T00:00:00Z"}),
        json!({"type": "assistant", "content": [{"type": "text", "text": "the answer"}], "ts": "2026-01-01T00:00:01Z"}),
        json!({"type": "user", "content": "words"}),
    ]);
    vec![("own", own), ("claude-code", claude_code), ("pi", pi), ("claw0", claw0)]
}

#[test]
fn an_index_updated_in_steps_equals_one_made_at_once() {
    for (name, text) in samples() {
        let sandbox = Sandbox::new();
        let bytes = text.as_bytes();
        // Some steps end in the middle of a line.
        let cuts: Vec<usize> = (1..=7).map(|part| bytes.len() * part / 7).collect();
        let mut from = 0;
        for to in cuts {
            append(&sandbox, "d/s.jsonl".trim_start_matches("d/"), &bytes[from..to]);
            index(&sandbox, "i.db", &["update", "--quiet", "s.jsonl"]);
            from = to;
        }
        assert!(rows(&sandbox, "i.db", "SELECT * FROM messages").len() > 2, "{name}");
        assert_equals_fresh(&sandbox, "i.db", &["s.jsonl"]);
    }
}

#[test]
fn only_the_new_part_of_a_grown_transcript_is_read() {
    let sandbox = Sandbox::new();
    let text = transcript(4, 1);
    sandbox.write("s.jsonl", &text[..text.len() / 2]);
    let summary = |what: &str| contains(format!("claw-index: transcripts: 1 {what}\n"));
    index(&sandbox, "i.db", &["update", "s.jsonl"]).success().stderr(summary("new"));
    index(&sandbox, "i.db", &["update", "s.jsonl"]).success().stderr(summary("unchanged"));
    append(&sandbox, "s.jsonl", &text.as_bytes()[text.len() / 2..]);
    // The first half ended in the middle of a line, which is complete now.
    index(&sandbox, "i.db", &["update", "s.jsonl"]).success().stderr(summary("grown"));
    assert_equals_fresh(&sandbox, "i.db", &["s.jsonl"]);
    index(&sandbox, "i.db", &["update", "--full", "s.jsonl"])
        .success()
        .stderr(summary("read again"));
    assert_equals_fresh(&sandbox, "i.db", &["s.jsonl"]);
}

#[test]
fn a_transcript_that_changed_or_became_shorter_is_read_again_with_a_diagnostic() {
    let sandbox = Sandbox::new();
    let text = transcript(4, 1);
    let changed = text.replacen("question", "QUESTION", 1);
    let cut = &text[..=text[..text.len() / 2].rfind('\n').expect("a line")];
    let longer = format!("{changed}{}", json!({"type": "user", "content": "last"})) + "\n";
    for (after, why) in [
        (changed.as_str(), "it has changed in place"),
        (cut, "it has become shorter"),
        (&longer.replace("done", "DONE"), "it has changed in place"),
    ] {
        sandbox.write("s.jsonl", &text);
        let _ = fs::remove_file(sandbox.path("i.db"));
        index(&sandbox, "i.db", &["update", "s.jsonl"]).success();
        fs::remove_file(sandbox.path("s.jsonl")).expect("a file");
        sandbox.write("s.jsonl", after);
        let path = sandbox.path("s.jsonl").canonicalize().expect("a path");
        let message = format!("claw-index: reading '{}' again: {why}\n", path.display());
        index(&sandbox, "i.db", &["update", "s.jsonl"]).success().stderr(contains(message));
        assert_equals_fresh(&sandbox, "i.db", &["s.jsonl"]);
    }
}

#[test]
fn sessions_of_deleted_transcripts_are_removed() {
    let sandbox = Sandbox::new();
    for n in 0..4 {
        sandbox.write(&format!("d/{n}.jsonl"), transcript(2, n));
    }
    sandbox.write("d/no.jsonl", "not a transcript\n");
    sandbox.write("other.jsonl", transcript(1, 9));
    index(&sandbox, "i.db", &["update", "d", "other.jsonl"]).success();
    for n in [1, 2] {
        fs::remove_file(sandbox.path(&format!("d/{n}.jsonl"))).expect("a file");
    }
    let run = index(&sandbox, "i.db", &["update", "d"]).success();
    run.stderr("claw-index: transcripts: 2 removed, 2 unchanged, 1 not transcripts\n");
    assert_equals_fresh(&sandbox, "i.db", &["d", "other.jsonl"]);
    fs::remove_file(sandbox.path("other.jsonl")).expect("a file");
    index(&sandbox, "i.db", &["update", "other.jsonl"]).success();
    assert_equals_fresh(&sandbox, "i.db", &["d"]);
    let run = index(&sandbox, "i.db", &["update", "other.jsonl"]).code(74);
    run.stderr(contains("other.jsonl': no such file or directory"));
}

#[test]
#[allow(clippy::print_stdout, reason = "the test reports that it was skipped")]
fn sessions_whose_directory_cannot_be_read_stay_and_are_reported() {
    let sandbox = Sandbox::new();
    // Without search permission a directory can still be listed, but the files in it cannot be opened.
    let script = r#"
mkdir -p d/e && claw-append --user d/e/s.jsonl && cp d/e/s.jsonl d/t.jsonl
update="claw-index --db i.db update"
$update d || exit 98
for mode in 000 444; do
    chmod $mode d/e
    for path in d d/e/s.jsonl; do $update $path; echo $?; done
    chmod 755 d/e
done
chmod 000 d/t.jsonl && $update --full d; echo $?
claw-index --db i.db query --format json 'SELECT count(*) AS n FROM messages'"#;
    let Some(run) = sandbox.as_nobody(script, "hello") else {
        println!("skipped: the tests run as root, and the user nobody cannot run the programs");
        return;
    };
    let run = run.code(0).stdout("77\n77\n77\n77\n77\n{\"n\":2}\n");
    let reported = run.stderr_text().matches("permission denied").count();
    assert!(reported == 5 && !run.stderr_text().contains("removed"), "{run}");
}

/// Compares every message and the sums of usage with the transcripts.
#[test]
fn all_rows_and_sums_are_those_of_the_transcripts() {
    let sandbox = Sandbox::new();
    let texts: Vec<String> = (0..8).map(|n| transcript(30, n)).collect();
    for (n, text) in texts.iter().enumerate() {
        sandbox.write(&format!("d/{n}.jsonl"), text);
    }
    index(&sandbox, "i.db", &["update", "d"]).success();
    let (mut expected, mut usage) = (Vec::new(), [0, 0, 0]);
    for (n, text) in texts.iter().enumerate() {
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            if let Some(own) = record["usage"].as_object() {
                for (sum, name) in usage.iter_mut().zip([
                    "input_tokens",
                    "cache_read_input_tokens",
                    "output_tokens",
                ]) {
                    *sum += own.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
                }
            }
            let kind = record["type"].as_str().expect("a type");
            let text = match record["content"].as_str() {
                Some(text) => text.to_owned(),
                None => record["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            };
            if ["user", "assistant", "tool_use", "tool_result"].contains(&kind) {
                expected.push(json!([
                    n.to_string(),
                    offset,
                    kind,
                    text,
                    record["ts"].as_f64(),
                    record["tool_use_id"],
                    record["name"],
                    record["model"]
                ]));
            }
            offset += line.len();
        }
    }
    let sql = "SELECT header_key, offset, role, coalesce(tool_result, content) AS text, timestamp, tool_call_id, \
        tool_name, messages.model FROM messages JOIN sessions ON key = session_key ORDER BY key, offset";
    let found = rows(&sandbox, "i.db", sql);
    assert_eq!((found.len(), expected.len()), (1200, 1200));
    for (found, expected) in found.iter().zip(&expected) {
        let key = found["header_key"].as_str().expect("a key").rsplit(':').next();
        let own = json!([
            key,
            found["offset"],
            found["role"],
            found["text"],
            found["timestamp"].as_f64(),
            found["tool_call_id"],
            found["tool_name"],
            found["model"]
        ]);
        assert_eq!(&own, expected);
    }
    let sums = "SELECT sum(input) AS i, sum(cache_read) AS c, sum(output) AS o, (SELECT sum(total_tokens) FROM sessions) AS s FROM usage";
    let [input, cached, output] = usage;
    let all = input + cached + output;
    assert_eq!(
        rows(&sandbox, "i.db", sums),
        [json!({"i": input, "c": cached, "o": output, "s": all})]
    );
    let turns = "SELECT count(*) AS n, sum(message_count) AS m, sum(tool_call_count) AS c, sum(tokens) AS t FROM turns";
    assert_eq!(rows(&sandbox, "i.db", turns), [json!({"n": 240, "m": 1200, "c": 240, "t": all})]);
    let calls = "SELECT count(*) AS n, sum(is_error) AS e, min(ended_at - started_at) AS s FROM tool_calls \
        JOIN messages ON messages.row = result_row AND messages.tool_call_id = tool_calls.tool_call_id";
    assert_eq!(rows(&sandbox, "i.db", calls), [json!({"n": 240, "e": 64, "s": 1.5})]);
}

#[test]
fn a_retracted_record_is_marked_until_its_retraction_is_retracted() {
    let sandbox = Sandbox::new();
    let line = |value: serde_json::Value| format!("{value}\n");
    sandbox.write(
        "s.jsonl",
        [
            line(json!({"type": "user", "id": "u1", "content": "one"})),
            line(
                json!({"type": "assistant", "id": "a1", "content": [{"type": "text", "text": "two"},
            {"type": "tool_use", "id": "t", "name": "n", "input": {}}]}),
            ),
            line(json!({"type": "retract", "id": "r1", "target": "a1"})),
        ]
        .concat(),
    );
    let retracted = || {
        index(&sandbox, "i.db", &["update", "--quiet", "s.jsonl"]).success();
        rows(&sandbox, "i.db", "SELECT id FROM messages WHERE retracted").len()
    };
    assert_eq!(retracted(), 2);
    append(
        &sandbox,
        "s.jsonl",
        line(json!({"type": "retract", "id": "r2", "target": "r1"})).as_bytes(),
    );
    assert_eq!(retracted(), 0);
    assert_equals_fresh(&sandbox, "i.db", &["s.jsonl"]);
}

/// Two updates run while a third program holds the database, so they end in any order. Between their starts, a file
/// grows and another one is deleted.
#[test]
fn of_two_updates_the_one_that_writes_last_has_read_the_latest_state() {
    let sandbox = Sandbox::new();
    sandbox.write("d/kept.jsonl", transcript(1, 0));
    index(&sandbox, "i.db", &["update", "d"]).success();
    let mut holder = Connection::open(sandbox.path("i.db")).expect("a database");
    for n in 1..4 {
        sandbox.write("d/grown.jsonl", transcript(n, n));
        sandbox.write("d/deleted.jsonl", transcript(n, n));
        let held = holder.transaction_with_behavior(TransactionBehavior::Immediate);
        let held = held.expect("the lock");
        let update = || {
            let update = sandbox.cmd("claw-index").args(["--db", "i.db", "update", "d"]).spawn();
            thread::sleep(Duration::from_millis(100));
            update
        };
        let mut first = update();
        sandbox.write("d/grown.jsonl", transcript(n + 5, n));
        fs::remove_file(sandbox.path("d/deleted.jsonl")).expect("a file");
        let mut second = update();
        held.rollback().expect("a rollback");
        assert!(first.wait().expect("a status").success());
        assert!(second.wait().expect("a status").success());
        assert_equals_fresh(&sandbox, "i.db", &["d"]);
    }
}

#[test]
fn readers_read_while_an_update_writes_and_two_updates_take_turns() {
    let sandbox = Sandbox::new();
    for n in 0..30 {
        sandbox.write(&format!("d/{n}.jsonl"), transcript(10, n));
    }
    index(&sandbox, "i.db", &["update", "d/0.jsonl"]).success();
    let update =
        || sandbox.cmd("claw-index").args(["--db", "i.db", "update", "--quiet", "d"]).spawn();
    let (mut first, mut second) = (update(), update());
    let mut before = 0;
    while first.try_wait().expect("a state").is_none() {
        // Each transcript is in the database completely or not at all.
        let sql = "SELECT count(*) AS n, count(DISTINCT session_key) AS s FROM messages";
        let found = rows(&sandbox, "i.db", sql);
        let (n, s) = (found[0]["n"].as_u64(), found[0]["s"].as_u64());
        assert_eq!(n, s.map(|s| s * 50));
        assert!(n >= Some(before));
        before = n.unwrap_or(0);
    }
    assert!(
        first.wait().expect("a status").success() && second.wait().expect("a status").success()
    );
    assert_equals_fresh(&sandbox, "i.db", &["d"]);
}

#[test]
fn an_update_killed_at_any_time_is_completed_by_the_next_one() {
    let sandbox = Sandbox::new();
    let kills = if std::env::var_os("CLAW_TEST_FULL").is_some() { 200 } else { 8 };
    let texts: Vec<String> = (0..6).map(|n| transcript(12, n)).collect();
    for kill in 0..kills {
        for (n, text) in texts.iter().enumerate() {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let count = lines.len() * (kill + 1) / kills;
            // In some rounds, a transcript is replaced with a new file instead of extended.
            let name = format!("d/{n}.jsonl");
            if (kill + n) % 5 == 0 {
                let _ = fs::remove_file(sandbox.path(&name));
            }
            sandbox.write(&name, lines[..count].concat());
        }
        let mut child =
            sandbox.cmd("claw-index").args(["--db", "i.db", "update", "--quiet", "d"]).spawn();
        std::thread::sleep(Duration::from_micros(kill as u64 * 7919 % 40_000));
        child.kill().expect("a process");
        child.wait().expect("a status");
        let check = ["query", "--format", "json", "PRAGMA integrity_check"];
        let run = index(&sandbox, "i.db", &check);
        // The first update may have been killed before it created the database.
        match run.get_output().status.success() {
            true => assert_eq!(run.json(), [json!({"integrity_check": "ok"})]),
            false => drop(run.code(1).stderr(contains("no index 'i.db'"))),
        }
    }
    index(&sandbox, "i.db", &["update", "d"]).success();
    assert_equals_fresh(&sandbox, "i.db", &["d"]);
}

#[test]
fn the_database_is_private_and_no_other_database_is_changed() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", transcript(1, 1));
    index(&sandbox, "i.db", &["update", "s.jsonl"]).success();
    let mode = fs::metadata(sandbox.path("i.db")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // SQLite stores the version of the schema and the id of the application at these offsets of the file.
    for (at, why) in
        [(60, "a newer version of claw-index made it"), (68, "a database of another program")]
    {
        let mut bytes = sandbox.read("i.db");
        bytes[at + 3] ^= 0x40;
        sandbox.write("other.db", &bytes);
        for args in [&["update", "s.jsonl"][..], &["search", "words"]] {
            index(&sandbox, "other.db", args).code(65).stdout("").stderr(contains(why));
        }
        assert_eq!(sandbox.read("other.db"), bytes);
    }
    sandbox.write("text.db", "x".repeat(5000));
    index(&sandbox, "text.db", &["update", "s.jsonl"])
        .code(65)
        .stderr(contains("give another file with --db"));
    index(&sandbox, "none.db", &["search", "x"]).code(1).stderr(contains("claw-index update"));
}

#[test]
fn by_default_the_database_is_beside_the_sessions_of_the_workspace() {
    let sandbox = Sandbox::new();
    sandbox.sh("claw-session new --agent a --label one >/dev/null").assert().success();
    sandbox.sh("printf '%s\\n' '{\"type\":\"user\",\"content\":\"hello\"}' | claw-append \"$(claw-session path one)\"").assert().success();
    sandbox
        .cmd("claw-index")
        .arg("update")
        .assert()
        .success()
        .stderr("claw-index: transcripts: 1 new\n");
    assert!(sandbox.exists("workspace/.sessions/index.db"));
    sandbox.cmd("claw-index").args(["search", "--session", "one", "hello"]).assert().success();
    let other = sandbox.cmd("claw-index").args(["--workspace", "none", "update"]).assert().code(2);
    assert!(other.stderr_text().contains("--db"), "{other}");
    assert!(!dump_is_empty(&sandbox));
}

fn dump_is_empty(sandbox: &Sandbox) -> bool {
    dump(sandbox, "workspace/.sessions/index.db").is_empty()
}

#[test]
fn follow_indexes_what_changes_and_prints_a_line_for_each_change() {
    let sandbox = Sandbox::new();
    sandbox.write("d/a.jsonl", transcript(1, 1));
    let arguments = ["--db", "i.db", "update", "--quiet", "--follow", "d"];
    let mut child = sandbox.cmd("claw-index").args(arguments).spawn();
    let mut lines = BufReader::new(child.stdout.take().expect("an output")).lines();
    let directory = sandbox.path("d").canonicalize().expect("a path");
    let mut next = || lines.next().expect("a line").expect("text");
    let line = |what: &str, name: &str| format!("{what} {}/{name}", directory.display());
    // The watch begins before the first update, so once the update has written a row, no change is missed.
    while !sandbox.exists("i.db") || rows_if_any(&sandbox) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Complete files are moved into place, so that no file is indexed while it is being written.
    sandbox.write("b.jsonl", transcript(1, 2));
    fs::rename(sandbox.path("b.jsonl"), sandbox.path("d/b.jsonl")).expect("a file");
    assert_eq!(next(), line("new", "b.jsonl"));
    append(
        &sandbox,
        "d/b.jsonl",
        format!("{}\n", json!({"type": "user", "content": "x"})).as_bytes(),
    );
    assert_eq!(next(), line("grown", "b.jsonl"));
    sandbox.write("new/c.jsonl", transcript(1, 3));
    fs::rename(sandbox.path("new"), sandbox.path("d/new")).expect("a directory");
    assert_eq!(next(), line("new", "new/c.jsonl"));
    fs::rename(sandbox.path("d/new"), sandbox.path("away")).expect("a directory");
    assert_eq!(next(), line("removed", "new/c.jsonl"));
    fs::remove_file(sandbox.path("d/a.jsonl")).expect("a file");
    assert_eq!(next(), line("removed", "a.jsonl"));
    child.kill().expect("a process");
    child.wait().expect("a status");
    assert_equals_fresh(&sandbox, "i.db", &["d"]);
}

/// Returns the number of sessions in the database, or 0 if it has no tables yet.
fn rows_if_any(sandbox: &Sandbox) -> usize {
    let run = index(sandbox, "i.db", &["query", "--format", "json", "SELECT 1 FROM sessions"]);
    if run.get_output().status.success() { run.json().len() } else { 0 }
}
