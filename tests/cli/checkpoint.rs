//! claw-checkpoint: when a checkpoint is due, the request for it, usable and unusable replies, and the checkpoint in
//! the messages of claw-rebuild --meta.

mod behind;

use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};
use crate::conversations::{Conversation, append, rebuild_meta, undo_last, words};
use crate::summaries::{self, asked, calls, reply, says};

/// Returns a checkpoint record that covers the records up to the one with the id `covers`.
fn checkpoint(covers: &Value, tokens: u64) -> Value {
    json!({"type": "checkpoint", "summary": "So far.", "topics": ["t"], "key_decisions": ["d"],
        "open_questions": [], "tokens_at_checkpoint": tokens, "message_count_at_checkpoint": 4,
        "covers_up_to": covers, "generated_by": "m"})
}

/// Returns the messages of the transcript.
fn messages(sandbox: &Sandbox) -> Vec<Value> {
    let lines = rebuild_meta(sandbox, "s.jsonl");
    lines.lines().map(|line| serde_json::from_str(line).expect("a message")).collect()
}

/// Returns the checkpoint in the messages; only the first message may have it.
fn meta_checkpoint(sandbox: &Sandbox) -> Value {
    let messages = messages(sandbox);
    assert!(messages[1..].iter().all(|message| message["_meta"].get("checkpoint").is_none()));
    messages[0]["_meta"]["checkpoint"].clone()
}

fn add(sandbox: &Sandbox, record: &Value) {
    append(sandbox, "s.jsonl", record.to_string());
}

/// Returns the ids of the records in the transcript.
fn ids(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.read_json("s.jsonl").iter().map(|record| record["id"].clone()).collect()
}

// ---- the checkpoint in the messages ----------------------------------------------------------

#[test]
fn the_newest_checkpoint_is_in_the_first_message_and_can_be_retracted() {
    let sandbox = Sandbox::new();
    Conversation::plain(6, 20).append(&sandbox, "s.jsonl");
    assert_eq!(meta_checkpoint(&sandbox), Value::Null);
    let ids = ids(&sandbox);
    add(&sandbox, &checkpoint(&ids[1], 10));
    add(&sandbox, &checkpoint(&ids[3], 20));
    // A checkpoint without `covers_up_to` is ignored.
    add(&sandbox, &json!({"type": "checkpoint", "summary": "Of what?"}));
    let mut expected = checkpoint(&ids[3], 20);
    let members = expected.as_object_mut().expect("an object");
    members.remove("type");
    members.insert("id".into(), sandbox.read_json("s.jsonl")[7]["id"].clone());
    members.insert("is_current".into(), true.into());
    assert_eq!(meta_checkpoint(&sandbox), expected);
    // Without --meta, the messages do not contain it.
    let plain = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert();
    assert!(!plain.success().stdout_text().contains("So far."));

    let newest = json!({"type": "retract", "target": expected["id"]});
    add(&sandbox, &newest);
    assert_eq!(meta_checkpoint(&sandbox)["covers_up_to"], ids[1]);
    undo_last(&sandbox, "s.jsonl");
    assert_eq!(meta_checkpoint(&sandbox)["covers_up_to"], ids[3]);
}

#[test]
fn a_checkpoint_is_in_the_messages_unless_it_is_older_than_the_first_kept_record() {
    let sandbox = Sandbox::new();
    Conversation::plain(2, 20).append(&sandbox, "s.jsonl");
    add(&sandbox, &checkpoint(&ids(&sandbox)[1], 10));
    Conversation::plain(4, 20).append(&sandbox, "s.jsonl");
    let compaction = |first: &Value| {
        json!({"type": "compaction", "summary": "Compacted.", "first_kept_entry_id": first,
            "tokens_after": 77, "turns_since_checkpoint": 2})
    };
    let ids = ids(&sandbox);
    // The checkpoint is before the first kept record, then after it.
    add(&sandbox, &compaction(&ids[3]));
    assert_eq!(meta_checkpoint(&sandbox), Value::Null);
    let summary = &messages(&sandbox)[0]["_meta"]["compaction"];
    assert_eq!(
        (&summary["tokens_after"], &summary["turns_since_checkpoint"]),
        (&77.into(), &2.into())
    );
    undo_last(&sandbox, "s.jsonl");
    add(&sandbox, &compaction(&ids[1]));
    assert_eq!(
        (&meta_checkpoint(&sandbox)["is_current"], &meta_checkpoint(&sandbox)["id"]),
        (&false.into(), &ids[2])
    );
    add(&sandbox, &checkpoint(&ids[4], 20));
    assert_eq!(meta_checkpoint(&sandbox)["is_current"], true);
    let all =
        sandbox.cmd("claw-rebuild").args(["--meta", "--ignore-compactions", "s.jsonl"]).assert();
    assert_eq!(all.success().json()[0]["_meta"]["checkpoint"]["covers_up_to"], ids[4]);
}

#[test]
fn d54_no_checkpoint_is_written_into_a_transcript_of_another_program() {
    let sandbox = Sandbox::new();
    let header = r#"{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00Z"}"#;
    sandbox.write("s.jsonl", format!("{header}\n"));
    let record = checkpoint(&"x".into(), 5).to_string();
    sandbox.cmd("claw-append").arg("s.jsonl").write_stdin(record).assert().code(65);
    assert_eq!(sandbox.read_text("s.jsonl"), format!("{header}\n"));
}

// ---- when a checkpoint is due ----------------------------------------------------------------

/// Returns a sandbox whose model answers with a checkpoint.
fn with_model() -> Sandbox {
    let sandbox = summaries::with_model();
    sandbox.write("reply", says(r#"{"summary":"They talked.","topics":["talk"]}"#));
    sandbox
}

fn run(sandbox: &Sandbox, args: &[&str]) -> Assert {
    let messages = rebuild_meta(sandbox, "s.jsonl");
    sandbox.cmd("claw-checkpoint").args(args).write_stdin(messages).assert()
}

/// Runs claw-checkpoint --if-due and appends its output; returns true if a checkpoint was due.
#[track_caller]
fn is_made(sandbox: &Sandbox, args: &[&str]) -> bool {
    let run = run(sandbox, &[&["--if-due"], args].concat()).success();
    let made = run.stdout_text();
    if made.is_empty() {
        run.stderr(contains("claw-checkpoint: skipped: "));
    } else {
        run.stderr(contains("claw-checkpoint: checkpoint of "));
        append(sandbox, "s.jsonl", made.clone());
    }
    !made.is_empty()
}

fn tokens(sandbox: &Sandbox) -> u64 {
    let run = sandbox.cmd("claw-estimate").write_stdin(rebuild_meta(sandbox, "s.jsonl")).assert();
    run.success().json_one().as_u64().expect("a number")
}

#[test]
fn v71_d54_one_checkpoint_is_made_at_each_threshold_of_the_window() {
    let sandbox = with_model();
    Conversation::plain(4, 1600).append(&sandbox, "s.jsonl");
    let tokens = tokens(&sandbox);
    let window = |percent: u64, more: u64| (tokens * 100 / percent + more).to_string();
    // Not at 24.9 % but at 25 %, and not a second time, because this threshold already has a checkpoint.
    assert!(!is_made(&sandbox, &["--turns", "0", "--min-tokens", "0", "--window", &window(25, 5)]));
    let options = ["--turns", "0", "--min-tokens", "0", "--window", &window(25, 0)];
    assert!(is_made(&sandbox, &options) && !is_made(&sandbox, &options));
    let record = sandbox.read_json("s.jsonl").pop().expect("a record");
    assert_eq!(record["tokens_at_checkpoint"], tokens);
    // More messages, but still below the next threshold; then past two thresholds at once.
    Conversation::plain(2, 100).append(&sandbox, "s.jsonl");
    assert!(!is_made(&sandbox, &options));
    Conversation::plain(4, 4000).append(&sandbox, "s.jsonl");
    assert!(is_made(&sandbox, &options) && !is_made(&sandbox, &options));
    assert_eq!(calls(&sandbox), 2);
    // Without a known window, percentages do not apply.
    let none = ["--turns", "0", "--percents", "1,2", "--min-tokens", "0"];
    assert!(!is_made(&sandbox, &none));
}

#[test]
fn v71_the_system_prompt_and_the_tools_are_counted() {
    let sandbox = with_model();
    Conversation::plain(4, 10).append(&sandbox, "s.jsonl");
    sandbox.write("system", words(2000));
    let options = ["--min-tokens", "1000", "--window", "4000"];
    assert!(!is_made(&sandbox, &options));
    assert!(is_made(&sandbox, &[&options[..], &["--system", "system"]].concat()));
}

#[test]
fn v72_turns_are_counted_since_the_last_checkpoint_across_compactions() {
    let sandbox = with_model();
    let options = ["--turns", "10", "--min-tokens", "0"];
    Conversation::plain(18, 20).append(&sandbox, "s.jsonl");
    assert!(!is_made(&sandbox, &options), "made after nine turns");
    Conversation::plain(2, 20).append(&sandbox, "s.jsonl");
    assert!(is_made(&sandbox, &options), "not made after ten turns");
    assert!(!is_made(&sandbox, &options), "made without a turn since the checkpoint");
    Conversation::plain(12, 20).append(&sandbox, "s.jsonl");
    // Six turns since the checkpoint; the compactions remove some of them from the messages.
    for _ in 0..2 {
        sandbox.write("summary", "Compacted.");
        let messages = rebuild_meta(&sandbox, "s.jsonl");
        let args = ["--record", "--summary", "summary", "--keep-user", "0"];
        let compaction = sandbox.cmd("claw-compact").args(args).write_stdin(messages).assert();
        append(&sandbox, "s.jsonl", compaction.success().get_output().stdout.clone());
    }
    let compaction = sandbox.read_json("s.jsonl").pop().expect("a record");
    assert!(compaction["turns_since_checkpoint"].as_u64() > Some(0), "{compaction}");
    assert_eq!(
        meta_checkpoint(&sandbox),
        Value::Null,
        "the checkpoint is before the first kept record"
    );
    assert!(!is_made(&sandbox, &options));
    Conversation::plain(6, 20).append(&sandbox, "s.jsonl");
    assert!(!is_made(&sandbox, &options), "made after nine turns");
    Conversation::plain(2, 20).append(&sandbox, "s.jsonl");
    assert!(is_made(&sandbox, &options), "not made after ten turns");
    assert!(!is_made(&sandbox, &options), "made without a turn since the checkpoint");
}

#[test]
fn v73_after_a_compaction_the_next_threshold_is_above_the_compacted_size() {
    let sandbox = with_model();
    Conversation::plain(12, 1000).append(&sandbox, "s.jsonl");
    let options = ["--turns", "0", "--min-tokens", "0", "--window", "9000"];
    assert!(is_made(&sandbox, &options));
    sandbox.write("summary", "Compacted.");
    let messages = rebuild_meta(&sandbox, "s.jsonl");
    let args = ["--record", "--summary", "summary", "--window", "9000"];
    let compaction =
        sandbox.cmd("claw-compact").args(args).write_stdin(messages).assert().success();
    append(&sandbox, "s.jsonl", compaction.get_output().stdout.clone());
    // After the compaction, more than a quarter of the window is in use, so the next threshold is a half.
    let after = compaction.json_one()["tokens_after"].as_u64().expect("a number");
    assert!(after * 4 > 9000 && after * 2 < 9000, "{after}");
    assert!(!is_made(&sandbox, &options));
    Conversation::plain(4, 1000).append(&sandbox, "s.jsonl");
    assert!(is_made(&sandbox, &options) && !is_made(&sandbox, &options));
}

#[test]
fn options_override_the_configuration() {
    let sandbox = with_model();
    Conversation::plain(4, 20).append(&sandbox, "s.jsonl");
    let config = |checkpoint: Value| {
        sandbox.write("config", json!({"session": {"checkpoint": checkpoint}}).to_string());
    };
    let made = |args: &[&str]| is_made(&sandbox, &[&["--config", "config"], args].concat());
    config(json!({"turnThreshold": 2, "minTokensForGen": 1}));
    assert!(!made(&["--turns", "3"]) && made(&[]));
    config(json!({"enabled": false, "turnThreshold": 0, "minTokensForGen": 1}));
    Conversation::plain(4, 20).append(&sandbox, "s.jsonl");
    assert!(!made(&["--turns", "1"]));
    // Without --if-due, a checkpoint is always made.
    run(&sandbox, &["--config", "config"]).success().stderr(contains("checkpoint of 8 messages"));
    config(json!({"tokenThresholdPercents": [10], "minTokensForGen": 1}));
    assert!(made(&["--window", "1000"]));
    run(&sandbox, &["--percents", "0"]).code(2);
}

#[test]
fn a_checkpoint_needs_an_answered_message() {
    let sandbox = with_model();
    sandbox.write("s.jsonl", "");
    assert!(!is_made(&sandbox, &["--min-tokens", "0", "--turns", "1"]));
    Conversation::new().user("Hello?").append(&sandbox, "s.jsonl");
    assert!(!is_made(&sandbox, &["--min-tokens", "0", "--turns", "1"]));
    run(&sandbox, &[])
        .code(5)
        .stdout("")
        .stderr(contains("nothing to cover: no message has been answered"));
    sandbox
        .cmd("claw-checkpoint")
        .write_stdin(r#"{"role":"user","content":"x"}"#)
        .assert()
        .code(65)
        .stdout("")
        .stderr(contains("message 1 has no _meta"));
    assert_eq!(calls(&sandbox), 0);
}

// ---- the request and the reply --------------------------------------------

#[test]
fn a_checkpoint_records_its_coverage_and_origin() {
    let sandbox = with_model();
    Conversation::plain(4, 20).user("And what is pending?").append(&sandbox, "s.jsonl");
    let record = run(&sandbox, &["--model", "some", "--window", "8000"]).success().json_one();
    let expected = json!({"type": "checkpoint", "summary": "They talked.", "topics": ["talk"],
        "key_decisions": [], "open_questions": [], "tokens_at_checkpoint": tokens(&sandbox),
        "message_count_at_checkpoint": 5, "covers_up_to": ids(&sandbox)[3], "generated_by": "m",
        "usage": {"input_tokens": 900, "output_tokens": 5}});
    assert_eq!(record, expected);
    let args = sandbox.read_text("args.1");
    assert_eq!(args, "--max-tokens\n700\n--model\nsome\n--window\n8000\n");
    assert!(asked(&sandbox, 1).contains("question 2") && !asked(&sandbox, 1).contains("pending"));
}

#[test]
fn a_new_checkpoint_updates_the_last_one() {
    let sandbox = with_model();
    Conversation::plain(4, 20).append(&sandbox, "s.jsonl");
    append(&sandbox, "s.jsonl", run(&sandbox, &[]).success().get_output().stdout.clone());
    Conversation::new().user("new words").assistant("Yes.").append(&sandbox, "s.jsonl");
    append(&sandbox, "s.jsonl", run(&sandbox, &[]).success().get_output().stdout.clone());
    let asked = asked(&sandbox, 2);
    assert!(asked.contains("  They talked.\n  \n  Topics: talk\n") && asked.contains("new words"));
    assert!(!asked.contains("question 2"), "{asked}");
    assert_eq!(meta_checkpoint(&sandbox)["covers_up_to"], ids(&sandbox)[6]);
}

#[test]
fn a_request_that_is_too_long_is_shortened_and_never_repeated() {
    let sandbox = with_model();
    Conversation::plain(8, 2000).append(&sandbox, "s.jsonl");
    (1..=2).for_each(|n| drop(sandbox.write(&format!("status.{n}"), "3")));
    run(&sandbox, &[])
        .success()
        .stderr(contains("retrying with half of it"))
        .stderr(contains(" (6 calls, "));
    let sizes: Vec<usize> = (1..=3).map(|n| asked(&sandbox, n).len()).collect();
    assert!(sizes[1] < sizes[0] * 2 / 3 && sizes[2] < sizes[1] * 2 / 3, "{sizes:?}");
    (1..=9).for_each(|n| drop(sandbox.write(&format!("status.{n}"), "3")));
    sandbox.write("calls", "0");
    run(&sandbox, &[])
        .code(5)
        .stdout("")
        .stderr(contains("even the shortest summary request does not fit"));
    assert!(calls(&sandbox) <= 6);
}

#[test]
fn v75_any_text_becomes_fields_or_a_plain_summary() {
    let sandbox = with_model();
    Conversation::plain(2, 20).append(&sandbox, "s.jsonl");
    for (text, summary, topics) in [
        (r#"{"summary":"s","topics":["t"]}"#, "s", json!(["t"])),
        ("```json\n{\"summary\":\"s\",\"topics\":[\"t\"]}\n```", "s", json!(["t"])),
        (r#"Sure: {"summary":"{s}","topics":"t"} - good?"#, "{s}", json!(["t"])),
        ("They talked.", "They talked.", json!([])),
        (r#"{"summary":"s","topics":["#, r#"{"summary":"s","topics":["#, json!([])),
        (r#"{"summary":"s","topics":[1,{}],"key_decisions":7}"#, "s", json!([])),
    ] {
        sandbox.write("reply", says(text));
        let record = run(&sandbox, &[]).success().json_one();
        assert_eq!((&record["summary"], &record["topics"]), (&json!(summary), &topics), "{text}");
        append(&sandbox, "s.jsonl", record.to_string());
    }
}

#[test]
fn v75_an_unusable_reply_writes_nothing() {
    let sandbox = with_model();
    Conversation::plain(2, 20).append(&sandbox, "s.jsonl");
    let text = [json!({"type": "text", "text": "They"})];
    let call = json!({"type": "tool_use", "tool_use_id": "t", "name": "f", "input": {}});
    for (reply, why) in [
        (says(" "), "is blank"),
        (says(r#"{"summary":""}"#), "is blank"),
        (reply(&text, "max_tokens"), "stop reason 'max_tokens'"),
        (reply(&text, "refusal"), "stop reason 'refusal'"),
        (format!("{}{call}", reply(&text, "tool_use")), "the model called a tool"),
        (String::new(), "the reply has no stop reason"),
        ("no record".to_owned(), "line 1: not a record"),
    ] {
        sandbox.write("reply", &reply);
        run(&sandbox, &[]).code(69).stdout("").stderr(contains(why));
    }
    for (status, code) in [("75", 75), ("8", 8), ("1", 1), ("127", 78)] {
        sandbox.write(&format!("status.{}", calls(&sandbox) + 1), status);
        run(&sandbox, &[])
            .code(code)
            .stdout("")
            .stderr(contains("cannot get a summary: 'claw-call'"));
    }
}

#[test]
#[cfg(feature = "http")]
fn the_offline_provider_makes_a_checkpoint() {
    let sandbox = Sandbox::new();
    Conversation::plain(4, 20).append(&sandbox, "s.jsonl");
    let record = run(&sandbox, &["--provider", "offline"]).success().json_one();
    assert_eq!(record["topics"], json!(["question 0", "question 2"]));
    assert_eq!(record["generated_by"], "offline");
}
