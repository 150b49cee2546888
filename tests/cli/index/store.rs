//! The setting `store`: the programs that write transcripts keep the index up to date, and never wait for it.

use std::thread;
use std::time::{Duration, Instant};

use predicates::str::contains;
use rusqlite::Connection;
use serde_json::json;

use super::{assert_equals_fresh, rows};
use crate::common::{AssertExt, Sandbox};

/// The default place of the database.
const DATABASE: &str = "workspace/.sessions/index.db";

/// Returns a sandbox whose configuration has GoClaw's format, with `store` and these members in `session`.
fn stored(members: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("config.json", format!(r#"{{"session": {{"store": "sqlite"{members}}}}}"#));
    sandbox
}

/// Runs a script with the configuration of [`stored`].
#[track_caller]
fn run(sandbox: &Sandbox, script: &str) -> assert_cmd::assert::Assert {
    let settings = "export CLAW_CONFIG=config.json CLAW_PROVIDER=offline";
    sandbox.sh(&format!("{settings}\n{script}")).assert()
}

/// Waits until a query returns this number.
#[track_caller]
fn await_count(sandbox: &Sandbox, name: &str, sql: &str, expected: i64) {
    let begun = Instant::now();
    loop {
        let count = || {
            let database = Connection::open_with_flags(
                sandbox.path(name),
                rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
            );
            database?.query_row(sql, [], |row| row.get::<_, i64>(0))
        };
        let found = count();
        if found.as_ref().is_ok_and(|count| *count == expected) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{sql}: {found:?}, not {expected}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_turn_and_each_change_of_sessions_update_the_index() {
    let sandbox = stored(r#", "storePath": "i.db""#);
    let prompts = "SELECT count(*) FROM messages WHERE content = 'hello' AND role = 'user'";
    let sessions = "SELECT count(*) FROM sessions";
    run(&sandbox, "claw-session new --label one && claw-session new --label two").success();
    await_count(&sandbox, "i.db", sessions, 2);
    run(&sandbox, "claw-turn -m hello one").success().stderr("");
    await_count(&sandbox, "i.db", prompts, 1);
    // A transcript outside the workspace, and a turn that fails.
    run(&sandbox, "claw-turn -m hello ./s.jsonl").success();
    await_count(&sandbox, "i.db", prompts, 2);
    run(&sandbox, "claw-turn --window 200 --max-tokens 50 -m \"$(seq 2000)\" two").code(3);
    let failed = "SELECT count(*) FROM messages WHERE content LIKE '1%2000%' AND session_key NOT LIKE '%s.jsonl'";
    await_count(&sandbox, "i.db", failed, 1);
    run(&sandbox, "printf '%s\\n' hello '/fork three' '/delete two' | claw-chat one").success();
    await_count(&sandbox, "i.db", prompts, 5);
    run(&sandbox, "claw-session delete three").success();
    await_count(&sandbox, "i.db", prompts, 3);
    await_count(&sandbox, "i.db", sessions, 2);
    run(&sandbox, "claw-session import s.jsonl").success();
    await_count(&sandbox, "i.db", sessions, 3);
    run(&sandbox, "claw-session expire --max 0").success();
    await_count(&sandbox, "i.db", sessions, 2);
    assert_equals_fresh(&sandbox, "i.db", &["workspace/.sessions", "s.jsonl"]);
}

#[test]
fn a_checkpoint_made_in_the_background_is_indexed() {
    let sandbox = stored(
        r#", "storePath": "db/i.db", "checkpoint": {"turnThreshold": 1, "minTokensForGen": 1}"#,
    );
    sandbox.sh("mkdir db").assert().success();
    run(&sandbox, "claw-session new --label one && claw-turn -m hello one && claw-turn -m hi one")
        .success();
    await_count(&sandbox, "db/i.db", "SELECT count(*) > 0 FROM checkpoints", 1);
    assert!(!sandbox.exists(DATABASE));
    // The configuration also tells claw-index where the database is.
    run(&sandbox, "claw-index search hello").success();
    assert!(!rows(&sandbox, "db/i.db", "SELECT * FROM turns").is_empty());
}

/// No state of the index makes a turn fail or wait.
#[test]
fn a_turn_succeeds_whatever_the_state_of_the_index_is() {
    let sandbox = stored("");
    let turn = |what: &str, message: &str| {
        let begun = Instant::now();
        let run = run(&sandbox, &format!("{what}\nclaw-turn --no-checkpoint -m hello one"));
        assert!(begun.elapsed() < Duration::from_secs(15), "{what}");
        let run = run.success().stdout(contains("hello"));
        match message {
            "" => run.stderr(""),
            message => run.stderr(contains(message)),
        };
    };
    run(&sandbox, "claw-session new --label one").success();
    await_count(&sandbox, DATABASE, "SELECT count(*) FROM sessions", 1);
    let mut holder = Connection::open(sandbox.path(DATABASE)).expect("a database");
    let held = holder.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive);
    let held = held.expect("the lock");
    turn("", "");
    // The update waited for the lock.
    held.rollback().expect("a rollback");
    await_count(&sandbox, DATABASE, "SELECT count(*) FROM turns", 1);
    drop(holder);
    turn(
        "export CLAW_STORE_PATH=none/i.db",
        "claw-session: cannot keep the index in 'none/i.db': no such directory; make it, or set store-path to another file\n",
    );
    turn("export CLAW_STORE_PATH=/dev/full", "");
    turn("mkdir -p d; export CLAW_STORE_PATH=d", "");
    turn("echo text >t; export CLAW_STORE_PATH=t", "");
    Connection::open(sandbox.path("other.db"))
        .expect("a file")
        .execute_batch("CREATE TABLE t (x)")
        .expect("a table");
    let before = sandbox.read("other.db");
    turn(
        "export CLAW_STORE_PATH=other.db",
        "claw-session: cannot keep the index in 'other.db': it is a database of another program; set store-path to another file\n",
    );
    assert_eq!(sandbox.read("other.db"), before);
    // A `PATH` with all programs but claw-index.
    let hide = "mkdir some; own=$(command -v claw-index); for file in \"${own%/*}\"/claw-*; do ln -s \"$file\" some; done
        rm some/claw-index; ln -s \"$(command -v claw-turn)\" some; PATH=$PWD/some:/usr/bin:/bin";
    turn(hide, "claw-index cannot be run; install it, or set store to jsonl\n");
    assert_eq!(sandbox.read_text("t"), "text\n");
    assert_eq!(
        sandbox.read_json(&path(&sandbox)).iter().filter(|it| it["type"] == json!("user")).count(),
        7
    );
}

/// SQLite creates a database with a page that names no program. While claw-index writes the tables, this page is all that
/// the file has.
#[test]
fn an_index_that_is_being_created_does_not_look_like_another_programs_database() {
    let sandbox = stored("");
    run(&sandbox, "mkdir -p workspace/.sessions").success();
    let creator = Connection::open(sandbox.path(DATABASE)).expect("a database");
    creator.pragma_update(None, "journal_mode", "wal").expect("a write-ahead log");
    assert!(sandbox.read(DATABASE).starts_with(b"SQLite format 3"));
    run(&sandbox, "claw-session new --label one && claw-turn -m hello one").success().stderr("");
    await_count(&sandbox, DATABASE, "SELECT count(*) FROM turns", 1);
}

/// Returns the path of the only transcript.
fn path(sandbox: &Sandbox) -> String {
    sandbox.sh("claw-session path one").assert().success().stdout_text().trim().to_owned()
}
