//! claw-checkpoint: when one is due, what is asked, what becomes of any reply, and who knows of it.

use serde_json::{Value, json};

use crate::common::Sandbox;
use crate::talks::{Talk, append, rebuild_meta, undo_last};

/// A checkpoint record that covers everything up to the record with this id.
fn checkpoint(covers: &Value, tokens: u64) -> Value {
    json!({"type": "checkpoint", "summary": "So far.", "topics": ["t"], "key_decisions": ["d"],
        "open_questions": [], "tokens_at_checkpoint": tokens, "message_count_at_checkpoint": 4,
        "covers_up_to": covers, "generated_by": "m"})
}

/// The messages of the transcript.
fn messages(sandbox: &Sandbox) -> Vec<Value> {
    let lines = rebuild_meta(sandbox, "s.jsonl");
    lines.lines().map(|line| serde_json::from_str(line).expect("a message")).collect()
}

/// The checkpoint that the messages know of; it is in the first of them or nowhere.
fn known(sandbox: &Sandbox) -> Value {
    let messages = messages(sandbox);
    assert!(messages[1..].iter().all(|message| message["_meta"].get("checkpoint").is_none()));
    messages[0]["_meta"]["checkpoint"].clone()
}

fn add(sandbox: &Sandbox, record: &Value) {
    append(sandbox, "s.jsonl", record.to_string());
}

/// The ids of the records in the transcript.
fn ids(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.read_json("s.jsonl").iter().map(|record| record["id"].clone()).collect()
}

// ---- who knows of it -------------------------------------------------------------------------

#[test]
fn the_newest_checkpoint_is_in_the_first_message_and_can_be_taken_back() {
    let sandbox = Sandbox::new();
    Talk::plain(6, 20).append(&sandbox, "s.jsonl");
    assert_eq!(known(&sandbox), Value::Null);
    let ids = ids(&sandbox);
    add(&sandbox, &checkpoint(&ids[1], 10));
    add(&sandbox, &checkpoint(&ids[3], 20));
    // One that says nothing, or not up to where, is as if it were not there.
    add(&sandbox, &json!({"type": "checkpoint", "summary": "Of what?"}));
    let mut expected = checkpoint(&ids[3], 20);
    let members = expected.as_object_mut().expect("an object");
    members.remove("type");
    members.insert("id".into(), sandbox.read_json("s.jsonl")[7]["id"].clone());
    members.insert("is_current".into(), true.into());
    assert_eq!(known(&sandbox), expected);
    // Without _meta nothing of it is to be seen.
    let plain = sandbox.cmd("claw-rebuild").arg("s.jsonl").run();
    assert!(!plain.ok().stdout_text().contains("So far."));

    let newest = json!({"type": "retract", "target": expected["id"]});
    add(&sandbox, &newest);
    assert_eq!(known(&sandbox)["covers_up_to"], ids[1]);
    undo_last(&sandbox, "s.jsonl");
    assert_eq!(known(&sandbox)["covers_up_to"], ids[3]);
}

#[test]
fn a_checkpoint_is_known_from_the_first_kept_record_on() {
    let sandbox = Sandbox::new();
    Talk::plain(2, 20).append(&sandbox, "s.jsonl");
    add(&sandbox, &checkpoint(&ids(&sandbox)[1], 10));
    Talk::plain(4, 20).append(&sandbox, "s.jsonl");
    let compaction = |first: &Value| {
        json!({"type": "compaction", "summary": "Compacted.", "first_kept_entry_id": first,
            "tokens_after": 77, "turns_since_checkpoint": 2})
    };
    let ids = ids(&sandbox);
    // The checkpoint stands before what is kept, then after it.
    add(&sandbox, &compaction(&ids[3]));
    assert_eq!(known(&sandbox), Value::Null);
    let summary = &messages(&sandbox)[0]["_meta"]["compaction"];
    assert_eq!(
        (&summary["tokens_after"], &summary["turns_since_checkpoint"]),
        (&77.into(), &2.into())
    );
    undo_last(&sandbox, "s.jsonl");
    add(&sandbox, &compaction(&ids[1]));
    assert_eq!((&known(&sandbox)["is_current"], &known(&sandbox)["id"]), (&false.into(), &ids[2]));
    add(&sandbox, &checkpoint(&ids[4], 20));
    assert_eq!(known(&sandbox)["is_current"], true);
    let all = sandbox.cmd("claw-rebuild").args(["--meta", "--ignore-compactions", "s.jsonl"]).run();
    assert_eq!(all.ok().json()[0]["_meta"]["checkpoint"]["covers_up_to"], ids[4]);
}
