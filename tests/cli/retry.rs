//! claw-retry and claw-compact --retry: which missing summaries are made later, when, and what they replace.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox, kill_group};
use crate::conversations::{Conversation, append, rebuild, undo_last, words};
use crate::summaries::{TALKED, asked, calls, compacted, covered, says, with_model};

/// Appends a conversation of twelve messages, with `name` in the first, and a stub, which is a compaction without a
/// summary. Returns the stub.
#[track_caller]
fn stub(sandbox: &Sandbox, name: &str) -> Value {
    append_conversation(sandbox, name);
    compacted(sandbox, &["--max-calls", "0", "--emergency"]);
    sandbox.read_json("s.jsonl").pop().expect("a record")
}

fn append_conversation(sandbox: &Sandbox, name: &str) {
    let conversation = Conversation::new().user(&format!("wish {name}")).assistant(&words(60));
    let conversation = (0..5).fold(conversation, |conversation, n| {
        conversation.user(&format!("{name} {n}")).assistant(&words(60))
    });
    conversation.append(sandbox, "s.jsonl");
}

/// Returns a sandbox that has a model and a transcript with one stub, and the stub.
fn with_stub() -> (Sandbox, Value) {
    let sandbox = with_model();
    let stub = stub(&sandbox, "one");
    (sandbox, stub)
}

fn retry_at(sandbox: &Sandbox, seconds: u64, args: &[&str]) -> Assert {
    let cmd = sandbox.cmd("claw-retry").args(args).arg("s.jsonl");
    cmd.env("SOURCE_DATE_EPOCH", (1_767_225_600 + seconds).to_string()).assert()
}

fn retry(sandbox: &Sandbox) -> Assert {
    retry_at(sandbox, 0, &[])
}

/// Runs `claw-compact --retry`. Returns the run and the records that it prints, which are not appended.
fn made(sandbox: &Sandbox, args: &[&str]) -> (Assert, Vec<Value>) {
    let run = sandbox.cmd("claw-compact").arg("--retry").args(args).arg("s.jsonl").assert();
    let records = run.json();
    (run, records)
}

/// Returns the ids of the compactions whose summaries are still to be made.
fn pending(sandbox: &Sandbox) -> Vec<Value> {
    let shown = sandbox.cmd("claw-compact").args(["--retry", "--show", "s.jsonl"]).assert();
    let shown = shown.success().json_one();
    let list = shown["pending"].as_array().expect("a list").clone();
    list.into_iter().map(|one| one["id"].clone()).collect()
}

/// Returns the text that replaces the covered messages.
fn summary(sandbox: &Sandbox) -> String {
    let messages = rebuild(sandbox, "s.jsonl");
    let first = messages.lines().next().unwrap_or_default();
    let first: Value = serde_json::from_str(first).expect("a message");
    first["content"].as_str().expect("a string").to_owned()
}

fn last(sandbox: &Sandbox) -> Value {
    sandbox.read_json("s.jsonl").pop().expect("a record")
}

fn retract(sandbox: &Sandbox, target: &Value) {
    append(sandbox, "s.jsonl", json!({"type": "retract", "target": target}).to_string());
}

#[track_caller]
fn assert_sound(sandbox: &Sandbox) {
    sandbox.cmd("claw-check").arg("s.jsonl").assert().success().stdout("");
}

// ---- the summaries ---------------------------------------------------------------------------

#[test]
fn v76_a_later_summary_replaces_the_same_messages() {
    let (sandbox, stub) = with_stub();
    Conversation::plain(2, 20).append(&sandbox, "s.jsonl");
    let before = rebuild(&sandbox, "s.jsonl");
    sandbox.write("reply", says(&format!("What they said.\n{TALKED}")));
    assert_eq!(pending(&sandbox), [stub["id"].clone()]);
    retry(&sandbox).success().stdout("");

    let record = last(&sandbox);
    assert_eq!((&record["retry_of"], &record["strategy"]), (&stub["id"], &json!("llm")));
    for name in ["first_kept_entry_id", "first_kept_offset", "tokens_before", "kept_user"] {
        assert_eq!(record[name], stub[name], "{name}");
    }
    assert_eq!(record["needs_summary_retry"], false);
    // The summary request has all messages that the stub covers, and no others.
    let request = asked(&sandbox, 1);
    let (kept, removed) = (12 - covered(&sandbox, &stub), covered(&sandbox, &stub));
    assert_eq!((kept, removed), (4, 8));
    assert!(request.contains("  wish one\n") && request.contains("  one 2\n"), "{request}");
    assert!(!request.contains("  one 3\n") && !request.contains("left out here"), "{request}");
    // Only the text differs; the kept records are the same.
    let rebuilt = rebuild(&sandbox, "s.jsonl");
    assert_eq!(rebuilt.split_once('\n').map(|two| two.1), before.split_once('\n').map(|two| two.1));
    assert!(summary(&sandbox).starts_with("[Previous conversation summary]\nWhat they said.\n"));
    assert_sound(&sandbox);

    // Nothing is left to do, so no call is made.
    assert!(pending(&sandbox).is_empty());
    retry(&sandbox).success().stderr("claw-compact: no summary is missing\n");
    assert_eq!((calls(&sandbox), last(&sandbox)), (1, record.clone()));

    // Retracting the new summary restores the stub; retracting the stub removes both.
    undo_last(&sandbox, "s.jsonl");
    assert_eq!(rebuild(&sandbox, "s.jsonl"), before);
    assert_eq!(pending(&sandbox), [stub["id"].clone()]);
    undo_last(&sandbox, "s.jsonl");
    assert_eq!(rebuild(&sandbox, "s.jsonl"), rebuilt);
    retract(&sandbox, &stub["id"]);
    let ignored = sandbox.cmd("claw-rebuild").args(["--ignore-compactions", "s.jsonl"]).assert();
    assert_eq!(ignored.success().stdout_text(), rebuild(&sandbox, "s.jsonl"));
    assert!(pending(&sandbox).is_empty());
    retry(&sandbox).success();
    assert_eq!(calls(&sandbox), 1);
    assert_sound(&sandbox);
}

#[test]
fn v76_if_the_oldest_summary_fails_the_next_is_still_made() {
    let (sandbox, first) = with_stub();
    // The transcript has a second stub; one run tries both.
    let second = stub(&sandbox, "two");
    sandbox.write("status.1", "69");
    let (run, records) = made(&sandbox, &[]);
    let run = run
        .code(69)
        .stderr(contains(format!("no summary for '{}': ", first["id"].as_str().unwrap_or("?"))));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["retry_of"], second["id"]);
    // This summary continues a stub, so it has to be made again.
    assert_eq!(records[0]["needs_summary_retry"], true);
    append(&sandbox, "s.jsonl", run.get_output().stdout.clone());
    assert_eq!(pending(&sandbox), [first["id"].clone(), second["id"].clone()]);
    // The second summary is not requested again before the first one exists.
    let (_, records) = made(&sandbox, &[]);
    assert_eq!((records.len(), calls(&sandbox)), (0, 2));
    retry_at(&sandbox, 61, &[]).success();
    assert_eq!(calls(&sandbox), 4);
    assert!(pending(&sandbox).is_empty());
    assert_sound(&sandbox);
}

#[test]
fn v76_a_compaction_of_an_empty_or_missing_range_fails_and_stays_pending() {
    let sandbox = with_model();
    append_conversation(&sandbox, "one");
    let ids: Vec<Value> =
        sandbox.read_json("s.jsonl").iter().map(|record| record["id"].clone()).collect();
    let flagged = |kept: &Value| {
        json!({"type": "compaction", "summary": "?", "first_kept_entry_id": kept, "strategy": "stub",
            "needs_summary_retry": true})
        .to_string()
    };
    for kept in [&json!("nowhere"), &ids[0]] {
        append(&sandbox, "s.jsonl", flagged(kept));
        let before = sandbox.read("s.jsonl");
        retry(&sandbox).code(65).stderr(contains("cannot repeat the compaction: no cut at"));
        assert!(sandbox.read("s.jsonl") == before);
        assert_eq!(pending(&sandbox), [last(&sandbox)["id"].clone()]);
        retract(&sandbox, &last(&sandbox)["id"]);
    }
    assert_eq!(calls(&sandbox), 0);
    // Nothing precedes this compaction.
    sandbox.write("s.jsonl", "");
    append(&sandbox, "s.jsonl", flagged(&json!("nowhere")));
    retry(&sandbox).code(65);
}

#[test]
fn summaries_are_made_oldest_first_and_each_continues_the_one_before_it() {
    let (sandbox, _) = with_stub();
    let second = stub(&sandbox, "two");
    let old = rebuild(&sandbox, "s.jsonl");
    sandbox.write("reply.1", says("First summary."));
    sandbox.write("reply.2", says("Second summary. They agreed."));
    retry(&sandbox).success();
    assert!(asked(&sandbox, 1).contains("  wish one\n"));
    let request = asked(&sandbox, 2);
    assert!(
        request.contains("  First summary.\n") && request.contains("  wish two\n"),
        "{request}"
    );
    assert!(!request.contains("left out here"), "{request}");
    assert_eq!(last(&sandbox)["retry_of"], second["id"]);
    assert_eq!(last(&sandbox)["needs_summary_retry"], false);
    assert!(summary(&sandbox).contains("\nSecond summary. They agreed.\n"));
    assert_ne!(rebuild(&sandbox, "s.jsonl"), old);
    assert!(pending(&sandbox).is_empty());
    assert_sound(&sandbox);
}

#[test]
fn a_summary_over_a_stub_waits_for_the_summary_of_the_stub() {
    let (sandbox, first) = with_stub();
    append_conversation(&sandbox, "two");
    sandbox.write("reply", says("Over a stub."));
    let over = compacted(&sandbox, &[]);
    assert_eq!((&over["strategy"], &over["needs_summary_retry"]), (&json!("llm"), &json!(true)));
    let over = last(&sandbox);
    assert_eq!(pending(&sandbox), [first["id"].clone(), over["id"].clone()]);
    let governing = rebuild(&sandbox, "s.jsonl");

    // After the stub gets its summary, the newer compaction still applies unchanged until it gets its own.
    sandbox.write("reply.2", says("The first part."));
    sandbox.write("reply.3", says("All of it."));
    let (run, records) = made(&sandbox, &[]);
    run.success();
    assert_eq!(records[0]["retry_of"], first["id"]);
    assert_eq!(records[1]["retry_of"], over["id"]);
    append(&sandbox, "s.jsonl", records[0].to_string());
    assert_eq!(rebuild(&sandbox, "s.jsonl"), governing);
    assert_eq!(pending(&sandbox), [over["id"].clone()]);
    append(&sandbox, "s.jsonl", records[1].to_string());
    assert!(asked(&sandbox, 3).contains("  The first part.\n"));
    assert!(summary(&sandbox).contains("\nAll of it.\n") && pending(&sandbox).is_empty());
    assert_sound(&sandbox);
}

#[test]
fn a_summary_over_a_retracted_stub_is_not_requested() {
    let (sandbox, first) = with_stub();
    append_conversation(&sandbox, "two");
    compacted(&sandbox, &[]);
    retract(&sandbox, &first["id"]);
    let (before, spent) = (sandbox.read("s.jsonl"), calls(&sandbox));
    for _ in 0..3 {
        retry(&sandbox).success().stderr(contains("it continues a summary that is still missing"));
    }
    assert!(sandbox.read("s.jsonl") == before);
    assert_eq!(calls(&sandbox), spent);
    // Once the stub is restored, both summaries are made.
    undo_last(&sandbox, "s.jsonl");
    retry(&sandbox).success();
    assert_eq!((calls(&sandbox), pending(&sandbox).len()), (spent + 2, 0));
}

// ---- attempts --------------------------------------------------------------------------------

#[test]
fn v76_the_pause_doubles_up_to_a_day_across_runs() {
    let (sandbox, stub) = with_stub();
    sandbox.write("status", "69");
    sandbox.write("config", r#"{"session":{"compaction":{"retryIntervalSeconds":600}}}"#);
    let args = ["--config", "config"];
    let (mut now, mut pause) = (0, 600);
    for failures in 1..=10 {
        retry_at(&sandbox, now, &args).code(69);
        assert_eq!(calls(&sandbox), failures);
        retry_at(&sandbox, now + pause - 1, &args)
            .success()
            .stderr(contains("it failed before; next attempt in 1 s"));
        assert_eq!(calls(&sandbox), failures, "{failures}");
        now += pause;
        pause = (pause * 2).min(86_400);
    }
    assert_eq!(pause, 86_400);
    let shown = sandbox.cmd("claw-compact").args(["--retry", "--show", "s.jsonl"]).assert();
    let shown = &shown.success().json_one()["pending"][0];
    assert_eq!((&shown["id"], &shown["failures"]), (&stub["id"], &json!(10)));
    // Each summary has its own pause, so a new summary is tried at once.
    let second = self::stub(&sandbox, "two");
    sandbox.write("status", "0");
    retry_at(&sandbox, now - 1, &args).success();
    assert_eq!(last(&sandbox)["retry_of"], second["id"]);
    retry_at(&sandbox, now, &args).success();
    assert!(pending(&sandbox).is_empty());
}

#[test]
fn a_damaged_log_of_attempts_does_not_prevent_an_attempt() {
    let (sandbox, stub) = with_stub();
    for ts in ["1e999", "4000000000", "1e300", "\"x\""] {
        let line = format!(
            "{{\"key\":\"retry:{}\",\"ts\":{ts},\"ok\":false}}\n",
            stub["id"].as_str().unwrap_or("?")
        );
        sandbox.write("state/attempts.jsonl", line.repeat(3) + "{torn");
        assert_eq!(pending(&sandbox), [stub["id"].clone()], "the output must be JSON");
        let (run, records) = made(&sandbox, &[]);
        assert_eq!(run.success().json().len(), records.len());
        assert_eq!(records.len(), 1, "{ts}");
    }
}

#[test]
fn the_every_option_takes_its_pause_from_the_configuration_and_a_signal_ends_the_program() {
    let (sandbox, _) = with_stub();
    let configure = |seconds: u64| {
        let text =
            format!(r#"{{"session":{{"compaction":{{"retryIntervalSeconds":{seconds}}}}}}}"#);
        sandbox.write("config", text);
    };
    configure(0);
    let args = ["--config", "config", "--every", "s.jsonl"];
    sandbox.cmd("claw-retry").args(args).assert().success().stderr(contains("retry-interval is 0"));
    assert_eq!(calls(&sandbox), 0);
    sandbox.cmd("claw-retry").args(["--every=0", "s.jsonl"]).assert().code(2);
    sandbox.cmd("claw-retry").args(["--every=x", "s.jsonl"]).assert().code(2);
    configure(1);
    for (signal, status, every, passes) in
        [("TERM", 143, "--config config --every", 2), ("HUP", 129, "--every 30", 1)]
    {
        sandbox.sh("rm -f said").assert().success();
        // The signal arrives during a pause. No process may keep the outputs open after the program has ended.
        let script = format!(
            "claw-retry {every} s.jsonl 2>said & pid=$!
            until test -e said && test $(grep -c 'no summary is missing' said) -ge {passes}
            do sleep 0.05; done; sleep 0.1
            kill -{signal} $pid; wait $pid"
        );
        let begun = Instant::now();
        sandbox.sh(&script).assert().code(status);
        assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    }
    assert_eq!(calls(&sandbox), 1, "the first pass must do everything");
    // A shell without job control makes its background processes ignore QUIT, so claw-retry runs in the foreground here.
    sandbox.sh("rm said").assert().success();
    let kill = "until grep -q 'no summary is missing' said; do sleep 0.05; done; kill -s QUIT $0";
    let script = "sh -c \"$1\" $$ & exec claw-retry --every 30 s.jsonl 2>said";
    sandbox.sh(script).arg("sh").arg(kill).assert().code(131);
}

#[test]
fn a_failing_session_does_not_block_other_sessions() {
    let (sandbox, _) = with_stub();
    sandbox.sh("cp s.jsonl t.jsonl").assert().success();
    sandbox.write("bad.jsonl", "");
    append(
        &sandbox,
        "bad.jsonl",
        json!({"type": "compaction", "summary": "?", "strategy": "stub",
        "first_kept_entry_id": "nowhere", "needs_summary_retry": true})
        .to_string(),
    );
    let sessions = ["bad.jsonl", "s.jsonl", "t.jsonl"];
    sandbox.cmd("claw-retry").args(sessions).assert().code(65);
    assert_eq!(calls(&sandbox), 2);
    assert_eq!(sandbox.read("s.jsonl"), sandbox.read("t.jsonl"));
    assert!(pending(&sandbox).is_empty());
    sandbox.cmd("claw-retry").args(["s.jsonl", "missing.jsonl"]).assert().code(74);
}

#[test]
fn claw_retry_passes_settings_from_every_source_to_the_programs_that_it_runs() {
    let (sandbox, _) = with_stub();
    // `idle` does not apply to a session that is given as a path.
    sandbox.write("config", r#"{"idle":1,"profiles":{"own":{"call":"own 'a b'"}}}"#);
    sandbox.program("own", r#"printf '%s\n' "$1" >>seen; exec claw-call"#);
    for args in [
        &["s.jsonl", "--config", "config", "--profile=own"][..],
        &["--call", "own 'a b'", "--config=config", "--", "s.jsonl"],
    ] {
        let before = sandbox.read("s.jsonl");
        sandbox.cmd("claw-retry").args(args).assert().success().stdout("");
        assert!(pending(&sandbox).is_empty());
        sandbox.write("s.jsonl", before);
        sandbox.sh("rm -f state/attempts.jsonl").assert().success();
    }
    assert_eq!(sandbox.read_text("seen"), "a b\na b\n");
    for (args, why) in [
        (&["--window", "x", "s.jsonl"][..], "invalid value 'x' for --window"),
        (&["--call", "nowhere", "s.jsonl"], "cannot run 'nowhere'"),
        (&["s.jsonl", "none.jsonl"], "cannot read 'none.jsonl'"),
    ] {
        sandbox
            .cmd("claw-retry")
            .args(args)
            .assert()
            .stderr(contains(format!("claw-retry: {why}")));
    }
    assert!(!pending(&sandbox).is_empty(), "work began before all settings were checked");
}

/// After a kill at any moment, the transcript is intact, and the next run makes the missing summaries.
#[test]
fn a_kill_at_any_step_loses_nothing() {
    let (sandbox, _) = with_stub();
    stub(&sandbox, "two");
    let before = sandbox.read("s.jsonl");
    sandbox.program("slow", r#"sleep 0.1; exec claw-call "$@""#);
    for wait in [20, 60, 100, 140, 180, 220, 260, 300, 340] {
        sandbox.write("s.jsonl", &before);
        sandbox.sh("rm -f state/attempts.jsonl").assert().success();
        let cmd = sandbox.cmd("claw-retry").args(["--call", "slow", "s.jsonl"]);
        let mut child = cmd.spawn();
        std::thread::sleep(Duration::from_millis(wait));
        kill_group(child.id());
        let ended = child.wait().expect("an exit status");
        assert!(ended.signal() == Some(9) || ended.success(), "{ended:?}");
        assert!(sandbox.read("s.jsonl").starts_with(&before), "the transcript lost bytes");
        // The process that holds the lock may still be ending.
        sandbox.sh("claw-session lock --retry s.jsonl true").assert().success();
        retry_at(&sandbox, 1000, &[]).success();
        assert!(pending(&sandbox).is_empty() && summary(&sandbox).contains("They talked."));
        assert_sound(&sandbox);
    }
}

#[test]
fn a_finished_summary_is_appended_even_if_the_next_one_fails() {
    let (sandbox, first) = with_stub();
    stub(&sandbox, "two");
    // claw-compact is killed while it requests the second summary.
    let call = r#"test -e calls && kill -9 $PPID; claw-call"#;
    sandbox.cmd("claw-retry").args(["--call", call, "s.jsonl"]).assert();
    assert_eq!(last(&sandbox)["retry_of"], first["id"]);
    assert_eq!(pending(&sandbox).len(), 1);
    retry(&sandbox).success();
    assert!(pending(&sandbox).is_empty());
    assert_sound(&sandbox);
}

// ---- rebuilding ------------------------------------------------------------------------------

#[test]
fn the_newest_summary_that_follows_a_stub_replaces_it() {
    let (sandbox, stub) = with_stub();
    let stubbed = rebuild(&sandbox, "s.jsonl");
    sandbox.write("reply", says("Later. They agreed."));
    retry(&sandbox).success();
    let (whole, better) = (rebuild(&sandbox, "s.jsonl"), last(&sandbox));
    assert!(whole.contains("Later."));
    let at = |id: &Value| {
        let args = ["--strict", "--at", id.as_str().unwrap_or("?"), "s.jsonl"];
        sandbox.cmd("claw-rebuild").args(args).assert().success().stdout_text()
    };
    assert_eq!((at(&stub["id"]), at(&better["id"])), (stubbed.clone(), whole.clone()));
    // Of two summaries, the newer one applies.
    let mut again = better.clone();
    again["summary"] = json!("Later still.");
    again.as_object_mut().map(|members| members.remove("id"));
    append(&sandbox, "s.jsonl", again.to_string());
    assert_eq!(rebuild(&sandbox, "s.jsonl"), whole.replace("Later. They agreed.", "Later still."));
    let all =
        sandbox.cmd("claw-rebuild").args(["--strict", "--ignore-compactions", "s.jsonl"]).assert();
    assert_eq!(all.success().lines().len(), 12);
    // A record that precedes the stub does not replace it.
    let lines = sandbox.read_text("s.jsonl");
    let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
    lines.truncate(14);
    lines.swap(12, 13);
    sandbox.write("turned.jsonl", lines.concat());
    let run = sandbox.cmd("claw-rebuild").arg("turned.jsonl").assert();
    assert_eq!(run.success().stdout_text(), stubbed);
}

#[test]
fn a_summary_that_replaces_no_compaction_is_only_a_finding() {
    let sandbox = with_model();
    append_conversation(&sandbox, "one");
    let before = rebuild(&sandbox, "s.jsonl");
    let first = sandbox.read_json("s.jsonl")[0]["id"].clone();
    let lost = |place: &Value| {
        let kept = sandbox.read_json("s.jsonl")[8]["id"].clone();
        json!({"type": "compaction", "summary": "x", "first_kept_entry_id": kept, "retry_of": place,
            "needs_summary_retry": true})
        .to_string()
    };
    // A missing record and a record that is not a compaction: one finding each.
    append(&sandbox, "s.jsonl", lost(&json!("nowhere")) + "\n" + &lost(&first));
    sandbox
        .cmd("claw-rebuild")
        .arg("s.jsonl")
        .assert()
        .success()
        .stdout(before.clone())
        .stderr(contains("unknown-target: 's.jsonl' line "))
        .stderr(contains("'nowhere'"));
    let found = sandbox.cmd("claw-check").arg("s.jsonl").assert();
    let rules: Vec<Value> = found.code(65).json().iter().map(|one| one["rule"].clone()).collect();
    assert_eq!(rules, ["unknown-target", "unknown-target"]);
    retry(&sandbox).success().stderr(contains("no summary is missing"));
    assert_eq!(calls(&sandbox), 0);
    // With a newer compaction, claw-check still reports the findings, but claw-rebuild does not.
    let script =
        "claw-rebuild --meta s.jsonl 2>said | claw-compact --record --max-calls 0 --emergency |
        claw-append s.jsonl";
    sandbox.sh(script).assert().success();
    assert!(rebuild(&sandbox, "s.jsonl").contains("left out here without a summary"));
    assert_eq!(sandbox.cmd("claw-check").arg("s.jsonl").assert().code(65).lines().len(), 2);
}
