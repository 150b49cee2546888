//! claw-session: a name selects one session or is an error, the index may be in any state, and nothing is
//! removed except on request.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Cmd, Sandbox, kill_group, reply_to};
use crate::conversations::{Conversation, append, rebuild};

/// Returns a `claw-session` command with these arguments.
fn session(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    sandbox.cmd("claw-session").args(args)
}

/// Runs claw-session and returns its output, without the line feed at the end.
#[track_caller]
fn output(sandbox: &Sandbox, args: &[&str]) -> String {
    session(sandbox, args).assert().success().stdout_text().trim_end().to_owned()
}

fn list(sandbox: &Sandbox) -> Vec<Value> {
    session(sandbox, &["list", "--json"]).assert().success().json()
}

/// Returns the member `name` of each listed session.
fn column(sandbox: &Sandbox, name: &str) -> Vec<String> {
    list(sandbox).iter().map(|entry| entry[name].to_string().replace('"', "")).collect()
}

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Returns a sandbox with a workspace in the current format of claw0.
pub fn claw0() -> Sandbox {
    let sandbox = Sandbox::new();
    let from = data("claw0-present/agents/claw0");
    for name in ["7ab2385f6138", "49c71f1146e5", "5d0aa520d32f", "af3939bf5a29"] {
        let file = format!("sessions/{name}.jsonl");
        let bytes = fs::read(from.join(&file)).expect("a fixture");
        sandbox.write(&format!("{CLAW0}/{file}"), bytes);
    }
    sandbox.write(
        &format!("{CLAW0}/sessions.json"),
        fs::read(from.join("sessions.json")).expect("an index"),
    );
    sandbox
}

/// The directory of the agent in [`claw0`].
pub const CLAW0: &str = "workspace/.sessions/agents/claw0";

/// Returns the content of all transcripts by path, so that a test can check that none has changed.
fn transcripts(sandbox: &Sandbox) -> BTreeMap<String, Vec<u8>> {
    let files = walkdir::WalkDir::new(sandbox.path("workspace")).into_iter().flatten();
    let is_transcript =
        |entry: &walkdir::DirEntry| entry.path().extension().is_some_and(|end| end == "jsonl");
    let read = |entry: walkdir::DirEntry| {
        (entry.path().display().to_string(), fs::read(entry.path()).expect("a transcript"))
    };
    files.filter(is_transcript).map(read).collect()
}

// ---- the store -------------------------------------------------------------------------------

#[test]
fn a_new_session_is_where_claw0_looks_and_has_a_header() {
    let sandbox = Sandbox::new();
    let id = output(&sandbox, &["new", "--label", "my work", "--key", "main:cli:user"]);
    let path = format!("workspace/.sessions/agents/main/sessions/{id}.jsonl");
    let expected = json!({"id": id, "type": "session", "ts": 1767225600, "key": "main:cli:user",
        "label": "my work", "created": "2026-01-01T00:00:00.000000+00:00", "version": 1});
    assert_eq!(sandbox.read_json(&path), [expected]);
    assert_eq!(output(&sandbox, &["path", "my work"]), path);
    let mode =
        |path: &str| fs::metadata(sandbox.path(path)).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode("workspace/.sessions")), (0o600, 0o700));
    // The index has the members that claw0 needs.
    list(&sandbox);
    let index = &sandbox.read_json_file("workspace/.sessions/agents/main/sessions.json")[&id];
    assert_eq!((&index["label"], &index["message_count"]), (&json!("my work"), &json!(0)));
    assert!(index["last_active"].is_string() && index["created_at"].is_string());
}

impl Sandbox {
    /// Returns the JSON value in a file.
    fn read_json_file(&self, name: &str) -> Value {
        serde_json::from_str(&self.read_text(name)).expect("JSON")
    }
}

#[test]
fn e_1_both_layouts_of_claw0_are_listed_and_not_changed() {
    let sandbox = claw0();
    let from = data("claw0-first/.sessions");
    for entry in walkdir::WalkDir::new(&from).into_iter().flatten().filter(|e| e.path().is_file()) {
        let inside = entry
            .path()
            .strip_prefix(&from)
            .expect("a path in the directory")
            .display()
            .to_string();
        let bytes = fs::read(entry.path()).expect("a fixture");
        sandbox.write(&format!("workspace/.sessions/{inside}"), bytes);
    }
    let before = transcripts(&sandbox);
    // Two of the sessions have the same key, and claw0's index lists only one of the two.
    assert_eq!(list(&sandbox).len(), 7);
    assert_eq!(output(&sandbox, &["path", "smol"]), format!("{CLAW0}/sessions/af3939bf5a29.jsonl"));
    output(&sandbox, &["path", "main:cli:user_211000"]);
    output(&sandbox, &["switch", "my-proj"]);
    assert_eq!(output(&sandbox, &["--agent", "claw0", "current"]), "49c71f1146e5");
    session(&sandbox, &["history", "smol", "-n", "1"])
        .assert()
        .success()
        .stdout(contains("assistant"));
    assert_eq!(transcripts(&sandbox), before);
}

#[test]
fn v10_e_2_the_list_is_right_even_if_the_index_is_wrong() {
    let sandbox = claw0();
    let index = format!("{CLAW0}/sessions.json");
    let expected = output(&sandbox, &["list"]);
    assert!(expected.contains("(smol)") && expected.lines().count() == 4, "{expected}");
    let (good, before) = (sandbox.read_text(&index), transcripts(&sandbox));
    let without_labels = |text: &str| text.split(" (").next().unwrap_or_default().trim().to_owned();
    let bare: Vec<String> = expected.lines().map(without_labels).collect();
    let ghost = good.replacen(
        "{\n",
        "{\n  \"0123456789ab\": {\"label\":\"ghost\",\"message_count\":9},\n",
        1,
    );
    let stale = good
        .replace("\"message_count\":", "\"message_count\":9")
        .replace("\"size\":", "\"size\":9");
    for (what, text) in [("ghost", ghost), ("stale", stale), ("good", good.clone())] {
        sandbox.write(&index, text);
        assert_eq!(output(&sandbox, &["list"]), expected, "{what}");
    }
    // If the index is damaged, only the labels are lost.
    for text in ["", "{\"7ab2385f6138\": {", "[]", "\0\0\0"] {
        sandbox.write(&index, text);
        let lines = output(&sandbox, &["list"]);
        assert_eq!(lines.lines().map(without_labels).collect::<Vec<_>>(), bare, "{text:?}");
    }
    fs::remove_file(sandbox.path(&index)).expect("an index");
    assert_eq!(list(&sandbox).len(), 4);
    assert_eq!(transcripts(&sandbox), before);
}

#[test]
fn v10_an_index_damaged_by_other_programs_changes_nothing() {
    let sandbox = claw0();
    let expected = output(&sandbox, &["list"]).lines().count();
    let before = transcripts(&sandbox);
    let breaking = "cd workspace/.sessions/agents/claw0; while test ! -e done
        do rm -f sessions.json; mkdir sessions.json 2>/dev/null; rmdir sessions.json; echo '{' >sessions.json; done";
    let mut breaker = sandbox.sh(breaking).spawn();
    for _ in 0..50 {
        assert_eq!(session(&sandbox, &["list"]).assert().success().lines().len(), expected);
    }
    sandbox.write(&format!("{CLAW0}/done"), "");
    breaker.wait().expect("an exit status");
    assert_eq!(transcripts(&sandbox), before);
}

#[test]
fn v10_changes_are_seen_and_appending_does_not_rewrite_the_index() {
    let sandbox = claw0();
    list(&sandbox);
    let index = format!("{CLAW0}/sessions.json");
    let before = sandbox.read(&index);
    let file = format!("{CLAW0}/sessions/49c71f1146e5.jsonl");
    append(
        &sandbox,
        &file,
        json!({"type": "user", "content": "more", "ts": 1999999999}).to_string(),
    );
    assert_eq!(sandbox.read(&index), before);
    let first = list(&sandbox).remove(0);
    assert_eq!((&first["id"], &first["message_count"]), (&json!("49c71f1146e5"), &json!(3)));
    // A symbolic link in place of a transcript is not a session.
    fs::remove_file(sandbox.path(&file)).expect("a transcript");
    std::os::unix::fs::symlink("/etc/passwd", sandbox.path(&file)).expect("a link");
    assert_eq!(list(&sandbox).len(), 3);
    session(&sandbox, &["reindex"]).assert().success().stderr(contains("3 sessions"));
    assert!(!sandbox.read_text(&index).contains("49c71f1146e5"));
}

// ---- names -----------------------------------------------------------------------------------

#[test]
fn v81_d63_a_name_selects_one_session_and_an_error_keeps_the_current_session() {
    let sandbox = Sandbox::new();
    let one = output(&sandbox, &["new", "--label", "work"]);
    let two = output(&sandbox, &["new", "--label", "workshop"]);
    assert_eq!(output(&sandbox, &["switch", "work"]), one);
    assert_eq!(output(&sandbox, &["path", "works"]), output(&sandbox, &["path", &two]));
    session(&sandbox, &["switch", "wor"])
        .assert()
        .code(1)
        .stderr(contains(&one))
        .stderr(contains(&two))
        .stdout("");
    session(&sandbox, &["switch", "play"]).assert().code(1).stderr(contains("claw-session new"));
    // The index lists the session, but its file is missing.
    list(&sandbox);
    fs::remove_file(sandbox.path(&output(&sandbox, &["path", &two]))).expect("a transcript");
    session(&sandbox, &["switch", &two]).assert().code(1);
    assert_eq!(output(&sandbox, &["current"]), one);
}

#[test]
fn current_create_creates_the_first_session_of_an_agent() {
    let sandbox = Sandbox::new();
    session(&sandbox, &["current"]).assert().code(1);
    let made = output(&sandbox, &["current", "--create", "first"]);
    assert_eq!(column(&sandbox, "label"), ["first"]);
    assert_eq!(output(&sandbox, &["current", "--create", "second"]), made);
    // Another agent without a session gets its own.
    let other = output(&sandbox, &["--agent", "ops", "current", "--create", "third"]);
    assert_ne!(other, made);
}

#[test]
fn names_are_listed_for_completion() {
    let sandbox = Sandbox::new();
    session(&sandbox, &["list", "--names"]).assert().success().stdout("");
    let one = output(&sandbox, &["new", "--label", "my work"]);
    let two = output(&sandbox, &["new"]);
    let names = session(&sandbox, &["list", "--names"]).assert().success().lines();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names[..2].contains(&one) && names[..2].contains(&two), "{names:?}");
    assert_eq!(names[2], "my work");
    session(&sandbox, &["list", "--names", "--json"]).assert().code(2);
    let why = format!("claw-session: session '{two}' has no label; give TEXT to set one\n");
    session(&sandbox, &["label", &two]).assert().success().stdout("\n").stderr(why.clone());
    session(&sandbox, &["label", &one]).assert().success().stdout("my work\n").stderr("");
}

#[test]
fn t_4_e_3_v9_d6_no_name_becomes_a_path() {
    let sandbox = Sandbox::new();
    sandbox.write("victim.jsonl", "{}\n");
    for name in ["../victim", "./victim", "/etc/passwd", "..", ".", "victim.jsonl"] {
        session(&sandbox, &["delete", "--", name]).assert().code(1);
    }
    let long = "x".repeat(300);
    for agent in ["../x", "..", "a/b", "", "-x", "con", "a b", &long] {
        let run = session(&sandbox, &[&format!("--agent={agent}"), "new", "--label", "x"]).assert();
        assert!(
            agent.is_empty() || run.get_output().status.code() == Some(2),
            "{agent:?} was not refused\n{run}"
        );
    }
    session(&sandbox, &["new", "--key", "../../x:cli:user"]).assert().code(2);
    session(&sandbox, &["new", "--key", &long]).assert().code(2);
    for (label, code) in [("a\nb", 2), ("\u{1b}[31m", 2), ("with  spaces 🦞", 0)] {
        session(&sandbox, &["new", "--label", label]).assert().code(code);
    }
    session(&sandbox, &["--agent", "Work", "new"]).assert().success();
    session(&sandbox, &["--agent", "work", "new"]).assert().code(2).stderr(contains("case"));
    assert!(sandbox.exists("victim.jsonl"));
}

#[test]
fn d7_v9_similar_keys_are_different_sessions() {
    let sandbox = Sandbox::new();
    for key in ["a:b", "a_b", "../x", "A:b", "🦞"] {
        assert_ne!(output(&sandbox, &["new", "--key", key]), "");
    }
    let paths = column(&sandbox, "path");
    assert_eq!(paths.iter().collect::<std::collections::BTreeSet<_>>().len(), 5, "{paths:?}");
    assert!(output(&sandbox, &["path", "a:b"]) != output(&sandbox, &["path", "A:b"]));
}

#[test]
fn v82_two_sessions_created_in_one_second_differ_and_the_key_names_the_newer() {
    let sandbox = Sandbox::new();
    let first = output(&sandbox, &["new", "--key", "main:cli:user"]);
    let second = output(&sandbox, &["new", "--key", "main:cli:user"]);
    assert_ne!(first, second);
    assert_eq!(list(&sandbox).len(), 2);
    assert!(output(&sandbox, &["path", "main:cli:user"]).contains(&second));
    session(&sandbox, &["delete", "nobody"]).assert().code(1);
    // If the current session is removed, another session becomes current.
    session(&sandbox, &["delete", &second]).assert().success().stdout(contains(&second));
    assert_eq!(output(&sandbox, &["current"]), first);
}

#[test]
fn v82_labels_of_other_programs_are_escaped() {
    let sandbox = claw0();
    let index = format!("{CLAW0}/sessions.json");
    let evil = sandbox.read_text(&index).replace("smol", "\\u001b[31m\\nevil");
    sandbox.write(&index, evil);
    for args in [&["list"][..], &["list", "--json"], &["path", "\u{1b}"]] {
        let run = session(&sandbox, args).assert();
        assert!(
            !run.stdout_text().contains('\u{1b}') && !run.stderr_text().contains('\u{1b}'),
            "{args:?}"
        );
    }
    assert_eq!(output(&sandbox, &["list"]).lines().count(), 4);
}

#[test]
fn a_label_can_be_changed_and_is_stored_in_the_transcript() {
    let sandbox = Sandbox::new();
    let id = output(&sandbox, &["new", "--label", "old"]);
    output(&sandbox, &["label", "old", "brand new"]);
    fs::remove_file(sandbox.path("workspace/.sessions/agents/main/sessions.json")).ok();
    assert_eq!(column(&sandbox, "label"), ["brand new"]);
    session(&sandbox, &["path", "old"]).assert().code(1);
    output(&sandbox, &["label", &id, ""]);
    assert_eq!(column(&sandbox, "label"), [""]);
    let path = output(&sandbox, &["path", &id]);
    assert_eq!(sandbox.cmd("claw-check").arg(path).assert().success().stdout_text(), "");
}

// ---- status, new sessions and resets -----------------------------------------------------------

#[test]
fn a_status_does_not_count_undone_turns() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "work"]);
    let turn = "claw-turn --provider offline --window 4000 -m hi work";
    sandbox.sh(&format!("{turn} && {turn}")).assert().success();
    let path = output(&sandbox, &["path", "work"]);
    let status = || {
        let text = output(&sandbox, &["status", "--json", "work"]);
        let status: Value = serde_json::from_str(&text).expect("an object");
        ["message_count", "turns", "calls", "findings"].map(|name| status[name].clone())
    };
    assert_eq!(status(), [4, 2, 0, 0]);
    sandbox.sh(&format!("claw-rebuild --undo turn {path} | claw-append {path}")).assert().success();
    assert_eq!(status(), [6, 1, 0, 0]);
    sandbox.sh(&format!("echo '{{\"torn' >>{path}")).assert().success();
    assert_eq!(status(), [7, 1, 0, 1]);
    sandbox.write(
        "workspace/.sessions/agents/main/sessions/tree.jsonl",
        r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"x"}}"#,
    );
    let tree = output(&sandbox, &["status", "--json", "tree"]);
    assert_eq!(serde_json::from_str::<Value>(&tree).expect("an object")["turns"], 1);
    // The usage still counts the tokens of the undone reply.
    session(&sandbox, &["status", "work"])
        .assert()
        .success()
        .stdout(contains("model        offline\n"))
        .stdout(contains("used         "));
}

#[test]
fn a_key_does_not_match_a_longer_key() {
    let sandbox = Sandbox::new();
    let long = output(&sandbox, &["path", "main:web:42", "--create"]);
    let short = output(&sandbox, &["path", "main:web:4", "--create"]);
    assert_ne!(long, short);
    assert_eq!(output(&sandbox, &["path", "main:web:4", "--create"]), short);
    let label = output(&sandbox, &["path", "notes", "--create"]);
    assert_eq!(output(&sandbox, &["path", "notes"]), label);
}

#[test]
fn v77_an_expired_session_is_kept_and_a_new_one_takes_its_key() {
    let sandbox = Sandbox::new();
    let day = 86_400;
    // 20:00 on 2026-01-10 in the time zone below.
    let evening = 1_768_071_600_u64;
    let at = |time: u64, args: &[&str]| {
        let run = session(&sandbox, args).env("SOURCE_DATE_EPOCH", time.to_string());
        run.env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
            .assert()
            .success()
            .stdout_text()
            .trim_end()
            .to_owned()
    };
    let daily = ["path", "main:web:7", "--create", "--reset", "daily@04:00"];
    let first = at(evening, &daily);
    append(&sandbox, &first, json!({"type": "user", "content": "hi", "ts": evening}).to_string());
    let four = evening + 8 * 3600;
    // An error record does not count as activity.
    append(
        &sandbox,
        &first,
        json!({"type": "error", "class": "x", "message": "m", "ts": four - 1}).to_string(),
    );
    assert_eq!(at(four - 60, &daily), first);
    assert_eq!(
        at(evening - day, &daily),
        first,
        "a clock that was set back must not end a session"
    );
    let second = at(four, &daily);
    assert_ne!(second, first);
    assert!(sandbox.exists(&first));
    assert_eq!(at(four + 60, &daily), second);
    assert_eq!(column(&sandbox, "key"), ["main:web:7", "main:web:7"]);
    let idle = ["path", "main:web:7", "--idle", "30"];
    assert_eq!(at(four + 30 * 60, &idle), second);
    assert_ne!(at(four + 30 * 60 + 1, &idle), second);
}

#[test]
fn audit_27_each_new_session_has_its_own_key_which_selects_it() {
    let sandbox = Sandbox::new();
    let keys = ["main:cli:user", "main:cli:user-2", "main:cli:user-3"];
    let ids = keys.map(|_| output(&sandbox, &["new"]));
    for (key, id) in keys.iter().zip(&ids) {
        assert_eq!(&output(&sandbox, &["switch", key]), id, "{key}");
    }
    let forks = [0, 1].map(|_| output(&sandbox, &["fork", &ids[0]]));
    let key = format!("main:fork:{}", ids[0]);
    assert_eq!(output(&sandbox, &["switch", &key]), forks[0]);
    assert_eq!(output(&sandbox, &["switch", &format!("{key}-2")]), forks[1]);
}

#[test]
fn audit_27_a_workspace_of_claw0_is_continued_without_options() {
    let sandbox = claw0();
    let index = format!("{CLAW0}/sessions.json");
    let made_at = |sandbox: &Sandbox| -> BTreeMap<String, String> {
        let index = sandbox.read_json_file(&index);
        let entries = index.as_object().expect("an object").iter();
        entries.map(|(id, entry)| (id.clone(), entry["created_at"].to_string())).collect()
    };
    let before = made_at(&sandbox);
    assert_eq!(before["49c71f1146e5"], "\"2026-11-21T21:05:28.523013+00:00\"");
    assert_eq!(output(&sandbox, &["current"]), "af3939bf5a29");
    // Members that claw0 wrote stay when the index is updated, even for a session that has grown.
    append(
        &sandbox,
        &format!("{CLAW0}/sessions/49c71f1146e5.jsonl"),
        json!({"type": "user", "content": "more"}).to_string(),
    );
    list(&sandbox);
    assert_eq!(made_at(&sandbox), before);
    session(&sandbox, &["reindex"]).assert().success();
    assert_eq!(made_at(&sandbox), before);
    // A new session belongs to the only existing agent.
    let id = output(&sandbox, &["new"]);
    assert!(sandbox.exists(&format!("{CLAW0}/sessions/{id}.jsonl")));
    assert_eq!(output(&sandbox, &["switch", "claw0:cli:user"]), id);
}

#[test]
fn audit_27_the_label_is_printed_if_none_is_given() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "old"]);
    assert_eq!(output(&sandbox, &["label", "old"]), "old");
    output(&sandbox, &["label", "old", "new"]);
    assert_eq!(output(&sandbox, &["label", "main:cli:user"]), "new");
}

#[test]
fn audit_27_an_expired_session_is_replaced_under_any_name() {
    let sandbox = Sandbox::new();
    let id = output(&sandbox, &["new", "--label", "work"]);
    let at = |minutes: u64, args: &[&str]| {
        let now = (1_767_225_600 + minutes * 60).to_string();
        let run = session(&sandbox, args).env("SOURCE_DATE_EPOCH", now).assert();
        run.success().stdout_text().trim_end().to_owned()
    };
    let idle = |name| ["switch", name, "--idle", "30"];
    assert_eq!(at(30, &idle("work")), id);
    let next = at(31, &idle("work"));
    assert_ne!(next, id);
    assert_eq!(at(31, &["current"]), next);
    // The label still belongs to the old session, but with --idle, it selects the new session until that one expires,
    // too.
    for name in ["work", &id, &next, "main:cli:user"] {
        assert_eq!(at(60, &idle(name)), next, "{name}");
    }
    assert_eq!(at(62, &["switch", "work"]), id);
    let last = at(62, &idle("work"));
    assert!(last != id && last != next);
    assert_eq!(at(92, &["current", "--idle", "30"]), last);
    assert_ne!(at(93, &["current", "--idle", "30"]), last);
}

// ---- fork ------------------------------------------------------------------------------------

#[test]
fn s_3_a_fork_has_the_same_messages_and_chained_ids() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "source"]);
    let path = output(&sandbox, &["path", "source"]);
    Conversation::plain(3, 20).tool("a result").append(&sandbox, &path);
    let records = sandbox.read_json(&path);
    let id = |n: usize| records[n]["id"].as_str().expect("an id").to_owned();
    let views = [
        json!({"type": "compaction", "summary": "so far", "first_kept_entry_id": id(3), "first_kept_offset": 1}),
        json!({"type": "retract", "target": id(1)}),
        json!({"type": "checkpoint", "summary": "s", "covers_up_to": id(2)}),
    ];
    append(&sandbox, &path, views.map(|view| view.to_string()).join("\n"));
    let before = sandbox.read(&path);
    let fork = output(&sandbox, &["fork", "source", "--label", "copy"]);
    let copy = output(&sandbox, &["path", "copy"]);
    assert_eq!(rebuild(&sandbox, &copy), rebuild(&sandbox, &path));
    assert_eq!(sandbox.cmd("claw-check").arg(&copy).assert().success().stdout_text(), "");
    let header = &sandbox.read_json(&copy)[0];
    assert_eq!((&header["id"], &header["parent"]["session"]), (&json!(fork), &records[0]["id"]));
    assert_eq!(
        header["parent"]["record"],
        sandbox.read_json(&path).last().expect("a record")["id"]
    );
    assert_eq!(sandbox.read(&path), before);
    assert_ne!(output(&sandbox, &["current"]), fork);
}

#[test]
fn s_3_a_fork_at_an_open_call_is_reported() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "source"]);
    let path = output(&sandbox, &["path", "source"]);
    Conversation::new().user("one").tool("a result").user("two").append(&sandbox, &path);
    let records = sandbox.read_json(&path);
    let call = records.iter().find(|record| record["type"] == "tool_use").expect("a call");
    let at = call["id"].as_str().expect("an id");
    session(&sandbox, &["fork", "source", "--at", at])
        .assert()
        .success()
        .stderr(contains("tool calls that have no result where the copy ends: 1"));
    session(&sandbox, &["fork", "source", "--at", "nobody"]).assert().code(65);
    session(&sandbox, &["fork", "source", "--to-turn", "1", "--label", "t"])
        .assert()
        .success()
        .stderr("");
    let copy = rebuild(&sandbox, &output(&sandbox, &["path", "t"]));
    assert!(copy.contains("one") && !copy.contains("two"), "{copy}");
}

#[test]
fn audit_24_a_fork_counts_the_open_calls_at_its_end() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "source"]);
    let path = output(&sandbox, &["path", "source"]);
    let call = |id| json!({"type": "tool_use", "tool_use_id": id, "name": "f", "input": {}});
    let result = |id| json!({"type": "tool_result", "tool_use_id": id, "content": "done"});
    let prompt = || json!({"type": "user", "content": "q"});
    let mut records = vec![prompt(), call("a"), prompt()];
    records.extend(["b", "c", "d"].map(call));
    records.extend([result("c"), result("nobody")]);
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    append(&sandbox, &path, lines.join("\n"));
    session(&sandbox, &["fork", "source"])
        .assert()
        .success()
        .stderr("claw-session: tool calls that have no result where the copy ends: 2\n");
    append(&sandbox, &path, prompt().to_string());
    session(&sandbox, &["fork", "source"]).assert().success().stderr("");
}

#[test]
fn v3_a_fork_omits_damaged_lines_and_converts_the_formats_of_claw0() {
    let sandbox = claw0();
    let path = format!("{CLAW0}/sessions/7ab2385f6138.jsonl");
    let whole = rebuild(&sandbox, &path);
    let mut bytes = sandbox.read(&path);
    bytes.extend_from_slice(b"{\"type\":\"us");
    sandbox.write(&path, bytes);
    session(&sandbox, &["fork", "initial", "--label", "copy"])
        .assert()
        .success()
        .stderr(contains("left out 1"));
    let copy = output(&sandbox, &["path", "copy"]);
    assert_eq!(rebuild(&sandbox, &copy), whole);
    sandbox.write(
        &format!("{CLAW0}/sessions/pi.jsonl"),
        "{\"type\":\"session\",\"id\":\"x\",\"timestamp\":\"2026-01-01T00:00:00Z\"}\n",
    );
    session(&sandbox, &["fork", "pi"]).assert().success();
}

// ---- removal ---------------------------------------------------------------------------------

#[test]
fn f_1_v78_expire_removes_exactly_what_its_dry_run_lists() {
    let sandbox = claw0();
    let now = |args: &[&str]| -> Assert {
        // 2026-11-21 21:05:28.636023, when the third of the four sessions was last active.
        session(&sandbox, args).env("SOURCE_DATE_EPOCH", "1795295128.636023").assert()
    };
    now(&["switch", "initial"]).success();
    let old = now(&["expire", "--older-than", "0s", "--dry-run"]).success().stdout_text();
    assert!(old.contains("49c71f1146e5") && !old.contains("7ab2385f6138"), "{old}");
    let dry = now(&["expire", "--max", "2", "--dry-run"]).success().stdout_text();
    assert_eq!(dry.lines().count(), 2, "{dry}");
    assert_eq!(list(&sandbox).len(), 4);
    assert_eq!(now(&["expire", "--max", "2"]).success().stdout_text(), dry);
    assert_eq!(now(&["expire", "--max", "2"]).success().stdout_text(), "");
    let left = column(&sandbox, "id");
    assert_eq!(
        left,
        ["af3939bf5a29", "7ab2385f6138"],
        "the newest and the current session must stay"
    );
    now(&["delete", "smol", "--dry-run"]).success().stdout(contains("af3939bf5a29"));
    assert_eq!(list(&sandbox).len(), 2);
    now(&["expire"]).code(2);
    now(&["expire", "--max", "1", "--older-than", "1d"]).code(2);
}

#[test]
fn lock_files_that_a_killed_removal_left_are_removed() {
    let sandbox = Sandbox::new();
    let path = output(&sandbox, &["path", "--create", "a"]);
    let (directory, name) = path.rsplit_once('/').expect("a directory");
    let left = [".0.jsonl.lock", ".0.jsonl.retry"].map(|name| format!("{directory}/{name}"));
    let current = format!("{directory}/.{name}.lock");
    for args in [&["expire", "--max", "9"][..], &["delete", "a"]] {
        for lock in left.iter().chain([&current]) {
            sandbox.write(lock, "");
        }
        let dry = [args, &["--dry-run"]].concat();
        session(&sandbox, &dry).assert().success();
        assert!(left.iter().all(|lock| sandbox.exists(lock)));
        session(&sandbox, args).assert().success();
        assert!(!left.iter().any(|lock| sandbox.exists(lock)), "{args:?}");
        // The transcript of this one is there.
        assert_eq!(sandbox.exists(&current), args[0] == "expire");
    }
}

// ---- turn locks ------------------------------------------------------------------------------

/// Starts a program that holds the turn lock of session `name` until its process group is killed.
fn holder(sandbox: &Sandbox, name: &str) -> std::process::Child {
    let mut child =
        session(sandbox, &["lock", name, "--", "sh", "-c", "echo held; exec sleep 60"]).spawn();
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    assert_eq!(line, "held\n");
    child
}

#[test]
fn v80_a_turn_is_exclusive_and_does_not_block_appends() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "a"]);
    output(&sandbox, &["new", "--label", "b"]);
    let mut child = holder(&sandbox, "a");
    let take = |name: &str, wait: &str| {
        session(&sandbox, &["lock", name, "--lock-timeout", wait, "--", "echo", "mine"])
            .timeout(Duration::from_secs(60))
            .assert()
    };
    take("a", "0.05").code(75).stdout("");
    take("b", "0").success().stdout("mine\n");
    let path = output(&sandbox, &["path", "a"]);
    append(&sandbox, &path, json!({"type": "user", "content": "meanwhile"}).to_string());
    session(&sandbox, &["delete", "a"]).assert().code(75);
    session(&sandbox, &["expire", "--max", "0"])
        .assert()
        .success()
        .stderr(contains("a turn is running in it"))
        .stdout("");
    kill_group(child.id());
    child.wait().expect("an exit status");
    take("a", "5").success().stdout("mine\n");
    // The kernel holds the lock; the content of the lock file does not matter.
    let lock = path.replace("sessions/", "sessions/.") + ".lock";
    sandbox.write(&lock, "{\"pid\":1,");
    take(&path, "0").success();
}

#[test]
fn v80_a_nested_lock_does_not_wait_and_background_processes_hold_no_lock() {
    let sandbox = Sandbox::new();
    let script =
        "claw-session lock s.jsonl --lock-timeout 0 -- echo again; sleep 5 >/dev/null 2>&1 &";
    session(&sandbox, &["lock", "./s.jsonl", "--", "sh", "-c", script])
        .assert()
        .success()
        .stdout("again\n");
    session(&sandbox, &["lock", "s.jsonl", "--lock-timeout", "0", "--", "true"]).assert().success();
    session(&sandbox, &["lock", "s.jsonl", "--", "sh", "-c", "exit 7"]).assert().code(7);
    session(&sandbox, &["lock", "s.jsonl", "--", "no-such-program"]).assert().code(78);
}

/// Returns a `claw-turn` command with the offline provider.
#[cfg(feature = "http")]
fn turn(sandbox: &Sandbox, args: &[&str]) -> Cmd {
    let cmd = sandbox.cmd("claw-turn").env("CLAW_PROVIDER", "offline");
    cmd.arg("--no-checkpoint").args(args)
}

#[test]
#[cfg(feature = "http")]
fn a_turn_finds_its_session_by_name_and_leaves_no_lock() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "work"]);
    let words = "it's \"$HOME\" `x`\n\n";
    turn(&sandbox, &["-m", words, "wor"]).assert().success();
    let path = output(&sandbox, &["path", "work"]);
    assert_eq!(sandbox.read_json(&path)[1]["content"], words);
    assert!(!sandbox.exists(&(path.replace("sessions/", "sessions/.") + ".lock")));
    turn(&sandbox, &["-m", "x", "nobody"]).assert().code(1).stderr(contains("claw-session new"));
    sandbox.cmd("claw-retry").arg("work").assert().success();
    sandbox.cmd("claw-retry").arg("nobody").assert().code(1);
    // A path can be spelled in any way.
    turn(&sandbox, &["-m", "x", "a//.//-s.jsonl"]).assert().success();
    turn(&sandbox, &["-m", "x", "--", "-s.jsonl"]).assert().success();
    assert!(sandbox.exists("a/-s.jsonl") && sandbox.exists("-s.jsonl"));
}

#[test]
#[cfg(feature = "http")]
fn v80_turns_on_one_transcript_do_not_interleave() {
    let sandbox = Sandbox::new();
    let mut child = holder(&sandbox, "./s.jsonl");
    turn(&sandbox, &["--lock-timeout", "0.05", "-m", "x", "s.jsonl"])
        .assert()
        .code(75)
        .stderr(contains("another turn"));
    assert!(!sandbox.exists("s.jsonl"));
    kill_group(child.id());
    child.wait().expect("an exit status");
    let four = "for n in 1 2 3 4; do claw-turn --no-checkpoint -m \"$n\" s.jsonl & done; wait";
    sandbox.sh(four).env("CLAW_PROVIDER", "offline").assert().success();
    let records = sandbox.read_json("s.jsonl");
    let kinds: Vec<&str> = records.iter().filter_map(|record| record["type"].as_str()).collect();
    assert_eq!(kinds, ["user", "assistant"].repeat(4));
    // Several turns can run under one lock.
    let both = "claw-turn -m a s.jsonl && claw-turn -m b s.jsonl && test -e .s.jsonl.lock";
    let run = session(&sandbox, &["lock", "s.jsonl", "--", "sh", "-c", both]);
    run.env("CLAW_PROVIDER", "offline").assert().success();
}

#[test]
#[cfg(feature = "http")]
fn audit_27_a_turn_in_an_expired_session_begins_a_new_session() {
    let sandbox = Sandbox::new();
    output(&sandbox, &["new", "--label", "work"]);
    let at = |minutes: u64, name: &str| {
        let now = (1_767_225_600 + minutes * 60).to_string();
        let run = turn(&sandbox, &["--idle", "30", "--reset", "daily@04:00", "-m", "hi", name]);
        run.env("SOURCE_DATE_EPOCH", now).assert().success().stdout_text()
    };
    for (minutes, name, messages) in [
        (0, "work", 1),
        (30, "main:cli:user", 3),
        (61, "work", 1),
        (90, "work", 3),
        (100, "main:cli:user", 5),
        (240, "main:cli:user", 1),
    ] {
        assert_eq!(at(minutes, name), format!("{}\n", reply_to(messages, "hi")), "{minutes}");
    }
    assert_eq!(list(&sandbox).len(), 3);
    turn(&sandbox, &["--idle", "30", "-m", "hi", "./s.jsonl"])
        .assert()
        .code(2)
        .stderr(contains("--reset and --idle need a session name, but './s.jsonl' is a path"));
}

#[test]
#[cfg(feature = "http")]
fn audit_27_a_turn_sends_only_the_last_turns() {
    let sandbox = Sandbox::new();
    for n in [1, 3, 3, 3] {
        turn(&sandbox, &["--limit-turns", "2", "-m", "hi", "s.jsonl"])
            .assert()
            .success()
            .stdout(format!("{}\n", reply_to(n, "hi")));
    }
    turn(&sandbox, &["-m", "hi", "s.jsonl"]).assert().success().stdout("Reply to 9 messages: hi\n");
    for (wrong, why) in [
        ("0", "invalid value '0' for --limit-turns: "),
        ("x", "invalid value 'x' for --limit-turns: "),
        ("1x", "invalid value '1x' for --limit-turns: "),
        ("", "a value is required for --limit-turns; "),
    ] {
        turn(&sandbox, &["--limit-turns", wrong, "-m", "hi", "s.jsonl"])
            .assert()
            .code(2)
            .stderr(contains(why));
    }
}
