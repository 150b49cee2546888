//! Tests with small rollout files.

use crate::dialect::tests::rebuild;

/// Returns a record with this payload.
fn record(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-01T00:00:01Z","type":"{kind}","payload":{{{payload}}}}}"#)
}

fn item(payload: &str) -> String {
    record("response_item", payload)
}

fn user(text: &str) -> String {
    item(&format!(
        r#""type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]"#
    ))
}

fn assistant(text: &str) -> String {
    item(&format!(
        r#""type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]"#
    ))
}

fn check(records: &[String], messages: &str, findings: &[&str]) {
    let meta = record("session_meta", r#""id":"t1","cli_version":"0.169.0""#);
    let text = [&[meta], records].concat().join("\n");
    let (words, found) = rebuild(&text, None);
    assert_eq!(
        (words.as_str(), found),
        (messages, findings.iter().map(|it| (*it).to_owned()).collect())
    );
}

#[test]
fn items_become_messages() {
    let call = item(r#""type":"function_call","name":"t","arguments":"{\"a\":1}","call_id":"c1""#);
    let custom = item(r#""type":"custom_tool_call","name":"p","input":"*** text","call_id":"c2""#);
    let shell = item(r#""type":"local_shell_call","call_id":"c3","action":{"type":"exec"}"#);
    let output = |kind: &str, id: &str, output: &str| {
        item(&format!(r#""type":"{kind}_output","call_id":"{id}","output":{output}"#))
    };
    check(
        &[
            item(
                r#""type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]"#,
            ),
            user("one"),
            record("event_msg", r#""type":"user_message","message":"one""#),
            item(
                r#""type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x""#,
            ),
            assistant("look"),
            call,
            custom,
            shell,
            output("function_call", "c1", r#""r1""#),
            output("custom_tool_call", "c2", r#"{"content":"failed","success":false}"#),
            output("function_call", "c3", r#"[{"type":"input_text","text":"r3"}]"#),
            assistant("done"),
        ],
        "U|one|A|look|call c1|call c2|call c3|U|[r1]|[error]|[r3]|A|done",
        &[],
    );
    let open = item(r#""type":"function_call","name":"t","arguments":"not json","call_id":"c1""#);
    check(&[user("one"), open, user("two")], "U|one|A|call c1|U|[error]|two", &["open-call 3 -"]);
    check(&[user("one"), item(r#""type":"novelty""#)], "U|one", &["unknown-type 3 -"]);
    check(&[user("one"), record("novelty", "")], "U|one", &["unknown-type 3 -"]);
}

#[test]
fn a_compaction_replaces_what_came_before() {
    let summary = "U|[Previous conversation summary]\nsum";
    let compacted = record(
        "compacted",
        r#""message":"sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"sum"}]}]"#,
    );
    check(
        &[user("one"), assistant("two"), compacted, user("three")],
        &format!("{summary}|A|Agreed. Let me build on this summary.|U|kept|three"),
        &[],
    );
    // Version 0.80.0 writes no `replacement_history`; all prompts are kept.
    check(
        &[
            user("<environment_context>x"),
            user("one"),
            assistant("two"),
            record("compacted", r#""message":"sum""#),
            assistant("three"),
        ],
        &format!("{summary}\n\n[Words of the user, kept as they were]\none|A|three"),
        &[],
    );
}

#[test]
fn a_file_that_continues_a_missing_one_is_reported() {
    let meta = record(
        "session_meta",
        r#""id":"t2","history_base":{"thread_id":"t1","end_ordinal_exclusive":5}"#,
    );
    let (words, found) = rebuild(&[meta, user("one")].join("\n"), None);
    assert_eq!((words.as_str(), found.as_slice()), ("U|one", &["missing-base 1 -".to_owned()][..]));
}

#[test]
fn a_file_has_no_branches() {
    let (error, _) =
        rebuild(&[record("session_meta", r#""id":"t2""#), user("one")].join("\n"), Some("x"));
    assert_eq!(error, "cannot choose a leaf in 't': it has no branches");
}

#[test]
fn dialects_6_the_types_of_the_newest_version_are_known() {
    // The types of records and items in Codex 0.171.0 that do not become messages.
    let records = [
        "dynamic_tools_updated",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "realtime_item",
    ];
    let items = [
        "additional_tools",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
        "image_generation_call",
        "configuration_update",
        "compaction_trigger",
        "other",
    ];
    let records = records.map(|kind| record(kind, ""));
    let items = items.map(|kind| item(&format!(r#""type":"{kind}""#)));
    check(&[&[user("one")][..], &records, &items].concat(), "U|one", &[]);
    let agent = item(
        r#""type":"agent_message","author":"a","recipient":"b","content":[{"type":"input_text","text":"hello"}]"#,
    );
    check(&[user("one"), agent], "U|one|hello", &[]);
    for lost in [
        record("inter_agent_communication", r#""content":"x""#),
        item(r#""type":"compaction","encrypted_content":"x""#),
    ] {
        check(&[user("one"), lost], "U|one", &["unknown-type 3 -"]);
    }
}
