//! Tests with small sessions of pi. In the tables, a record is `id parent kind:text`. The kind `u` is a prompt, `a` a
//! reply, `c` a reply with a call, and `r` a result. For other kinds, see [`record`].

use crate::dialect::tests::rebuild;
use crate::dialect::{Choice, Dialect, open};
use crate::input::Input;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}"#;

/// Converts a line of a table to a record.
fn record(line: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (id, parent, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let parent = if parent == "-" { "null".to_owned() } else { format!("\"{parent}\"") };
    let (kind, text) = rest.split_once(':').unwrap();
    let message = |inner: String| format!(r#""type":"message","message":{{{inner}}}"#);
    let members = match kind {
        "u" => message(format!(r#""role":"user","content":"{text}""#)),
        "a" | "aborted" | "error" => {
            let stop = if kind == "a" { "stop" } else { kind };
            message(format!(
                r#""role":"assistant","content":[{{"type":"text","text":"{text}"}}],"stopReason":"{stop}""#
            ))
        }
        "c" | "ec" => {
            let stop = if kind == "c" { "toolUse" } else { "error" };
            message(format!(
                r#""role":"assistant","content":[{{"type":"toolCall","id":"{text}","name":"t","arguments":{{}}}}],"stopReason":"{stop}""#
            ))
        }
        "r" => message(format!(
            r#""role":"toolResult","toolCallId":"{text}","content":[{{"type":"text","text":"r {text}"}}],"isError":false"#
        )),
        "compaction" => {
            let (kept, summary) = text.split_once(' ').unwrap();
            format!(r#""type":"compaction","firstKeptEntryId":"{kept}","summary":"{summary}""#)
        }
        "json" => text.to_owned(),
        kind => format!(r#""type":"{kind}","summary":"{text}","name":"{text}","label":"{text}""#),
    };
    format!(r#"{{"id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01Z",{members}}}"#)
}

fn session(lines: &str) -> String {
    let records = lines.lines().map(str::trim_start).filter(|line| !line.is_empty()).map(record);
    [HEADER.to_owned()].into_iter().chain(records).collect::<Vec<_>>().join("\n")
}

/// Checks the messages and findings of a session.
#[track_caller]
fn check(lines: &str, leaf: Option<&str>, messages: &str, findings: &[&str]) {
    let (words, found) = rebuild(&session(lines), leaf);
    assert_eq!(
        (words.as_str(), found),
        (messages, findings.iter().map(|it| (*it).to_owned()).collect())
    );
}

#[test]
fn v26_all_versions_are_read() {
    let v1 = r#"{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/x"}
{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"one"}}
{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":[{"type":"text","text":"two"}]}}
{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"three"}}
{"type":"compaction","timestamp":"2026-01-01T00:00:00Z","summary":"sum","firstKeptEntryIndex":3,"tokensBefore":9}
{"type":"message","timestamp":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":[{"type":"text","text":"four"}]}}"#;
    let summary = "U|[Previous conversation summary]\nsum|A|Agreed. Let me build on this summary.";
    assert_eq!(rebuild(v1, None), (format!("{summary}|U|three|A|four"), vec![]));
    let hook = r#"a1 - json:"type":"message","message":{"role":"hookMessage","content":"hook"}"#;
    let v2 = session(hook).replace("\"version\":3", "\"version\":2");
    assert_eq!(rebuild(&v2, None), ("U|hook".to_owned(), vec![]));
    let version =
        |number| session("a1 - u:new").replace("\"version\":3", &format!("\"version\":{number}"));
    assert_eq!(rebuild(&version(4), None), ("U|new".to_owned(), vec![]));
    let newer = rebuild(&version(5), None);
    assert_eq!(newer, ("U|new".to_owned(), vec!["unknown-version 1 -".to_owned()]));
}

#[test]
fn v27_a_header_may_be_missing_damaged_late_or_long() {
    let rest = session("a1 - u:one\na2 a1 a:two").replace(HEADER, "").trim().to_owned();
    let messages = "U|one|A|two".to_owned();
    assert_eq!(rebuild(&rest, None), (messages.clone(), vec![]));
    let damaged = format!("{}\n{rest}", &HEADER[..40]);
    assert_eq!(rebuild(&damaged, None), (messages.clone(), vec!["torn-line 1 -".to_owned()]));
    assert_eq!(rebuild(&format!("{rest}\n{HEADER}"), None), (messages.clone(), vec![]));
    let long = HEADER.replace("/x", &"/x".repeat(5000));
    assert_eq!(rebuild(&format!("{long}\n{rest}"), None), (messages, vec![]));
}

const BRANCHES: &str = "a1 - u:one
    a2 a1 a:two
    a3 a2 u:old
    a4 a3 a:answer
    b3 a2 u:new
    b4 b3 label:mark";

#[test]
fn v28_the_last_record_is_the_leaf_unless_one_is_chosen() {
    let other = ["other-branch 5 a4"];
    check(BRANCHES, None, "U|one|A|two|U|new", &other);
    let before_label = BRANCHES.rsplit_once('\n').unwrap().0;
    check(before_label, None, "U|one|A|two|U|new", &other);
    check(BRANCHES, Some("a4"), "U|one|A|two|U|old|A|answer", &["other-branch 7 b4"]);
    check(BRANCHES, Some("a1"), "U|one", &["other-branch 5 a4", "other-branch 7 b4"]);
    let error = "cannot find leaf 'zz' in 't'; claw-check lists branches";
    check(BRANCHES, Some("zz"), error, &[]);
}

#[test]
fn v29_damaged_parents_end_the_walk_with_a_finding() {
    check("a1 a2 u:one\na2 a1 a:two", None, "U|one|A|two", &["parent-cycle 2 a1"]);
    check("a1 a1 u:one", None, "U|one", &["parent-cycle 2 a1"]);
    check("a1 - u:lost\na3 a2 u:one", None, "U|one", &["missing-parent 3 a3", "other-root 2 a1"]);
    check("a2 a1 a:two\na1 - u:one\na3 a2 u:three", None, "U|one|A|two|U|three", &[]);
    check("a1 - u:one\nb1 - u:two", None, "U|two", &["other-root 2 a1"]);
    let twins = "a1 - u:one\na2 a1 u:twin\na2 a1 a:two\na3 a2 u:three";
    check(twins, None, "U|one|A|two|U|three", &["duplicate-id 4 a2", "other-branch 3 @208"]);
}

#[test]
fn v30_a_compaction_keeps_its_first_kept_record_and_all_later_ones() {
    let summary = |text: &str| {
        format!("U|[Previous conversation summary]\n{text}|A|Agreed. Let me build on this summary.")
    };
    let start = "a1 - u:one\na2 a1 a:two\na3 a2 u:three\na4 a3 a:four\n";
    let check = |lines: &str, messages: String, findings: &[&str]| {
        check(&format!("{start}{lines}"), None, &messages, findings);
    };
    check("k1 a4 compaction:a3 sum", format!("{}|U|three|A|four", summary("sum")), &[]);
    // The second compaction keeps a range that begins before the first compaction.
    check(
        "k1 a4 compaction:a3 sum\na5 k1 u:five\nk2 a5 compaction:a3 again",
        format!("{}|U|three|A|four|U|five", summary("again")),
        &[],
    );
    // A record without a message can be the first kept one.
    check(
        "m1 a4 model_change:x\na5 m1 u:five\nk1 a5 compaction:m1 sum",
        format!("{}|U|five", summary("sum")),
        &[],
    );
    check(
        "k1 a4 compaction:a3 other\nb1 a4 u:five",
        "U|one|A|two|U|three|A|four|U|five".to_owned(),
        &["other-branch 6 k1"],
    );
    // If the first kept record is missing, or is not before the compaction, the compaction is ignored.
    let whole = "U|one|A|two|U|three|A|four|U|five".to_owned();
    for lines in ["k1 a4 compaction:zz sum\na5 k1 u:five", "k1 a4 compaction:a5 sum\na5 k1 u:five"]
    {
        check(lines, whole.clone(), &["unknown-first-kept 6 k1"]);
    }
    let no_first = r#"k1 a4 json:"type":"compaction","summary":"sum""#;
    check(&format!("{no_first}\na5 k1 u:five"), whole, &["unknown-first-kept 6 k1"]);
    check(
        "k1 a4 compaction:a3 sum\nk2 k1 compaction:zz bad",
        format!("{}|U|three|A|four", summary("sum")),
        &["unknown-first-kept 7 k2"],
    );
    check("k1 a4 compaction:a3 ", format!("{}|U|three|A|four", summary("")), &[]);
}

#[test]
fn v31_interrupted_replies_are_left_out_with_their_results() {
    let orphan = ["orphan-result 4 a3"];
    check("a1 - u:one\na2 a1 ec:c1\na3 a2 r:c1\na4 a3 u:two", None, "U|one|two", &orphan);
    check("a1 - u:one\na2 a1 aborted:half\na3 a2 u:two", None, "U|one|two", &[]);
    check(
        "a1 - u:one\na2 a1 c:c1\na3 a2 r:c1\na4 a3 error:half\na5 a4 a:done",
        None,
        "U|one|A|call c1|U|[r c1]|A|done",
        &[],
    );
}

#[test]
fn v32_other_kinds_of_records_become_prompts_or_are_ignored() {
    let bash = |rest: &str| {
        format!(
            r#"a1 - json:"type":"message","message":{{"role":"bashExecution","command":"ls",{rest}}}"#
        )
    };
    for (lines, messages) in [
        (
            "a1 - branch_summary:sum".to_owned(),
            "U|The following is a summary of a branch that this conversation came back from:\n\n<summary>\nsum</summary>",
        ),
        ("a1 - branch_summary:".to_owned(), ""),
        (r#"a1 - json:"type":"custom_message","customType":"x","content":"note""#.to_owned(), "U|note"),
        (bash(r#""output":"out","exitCode":0"#), "U|Ran `ls`\n```\nout\n```"),
        (bash(r#""output":"","exitCode":2"#), "U|Ran `ls`\n(no output)\n\nCommand exited with code 2"),
        (
            bash(r#""output":"","cancelled":true,"truncated":true,"fullOutputPath":"/o""#),
            "U|Ran `ls`\n(no output)\n\n(command cancelled)\n\n[Output truncated. Full output: /o]",
        ),
        (bash(r#""output":"out","excludeFromContext":true"#), ""),
        (
            r#"a1 - json:"type":"message","message":{"role":"user","content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==","mimeType":"image/png"}]}"#.to_owned(),
            "U|image",
        ),
        ("a1 - thinking_level_change:low".to_owned(), ""),
    ] {
        check(&lines, None, messages, &[]);
    }
    check("a1 - novelty:x\na2 a1 novelty:y\na3 a2 u:one", None, "U|one", &["unknown-type 2 -"]);
}

#[test]
fn thinking_goes_back_only_to_the_model_that_wrote_it() {
    let thinking = r#"[{"type":"thinking","thinking":"hm","thinkingSignature":"s="},{"type":"thinking","thinking":"[Reasoning redacted]","thinkingSignature":"d=","redacted":true},{"type":"text","text":"done"}]"#;
    let reply = |model: &str, api: &str| {
        format!(
            r#"a2 a1 json:"type":"message","message":{{"role":"assistant","provider":"p","api":"{api}","model":"{model}","content":{thinking},"stopReason":"stop"}}"#
        )
    };
    let now = r#"a3 a2 json:"type":"model_change","provider":"p","modelId":"m""#;
    for (model, api, messages) in [
        ("m", "anthropic-messages", "U|one|A|thinking|redacted_thinking|done"),
        ("m", "openai-responses", "U|one|A|done"),
        ("other", "anthropic-messages", "U|one|A|hm|done"),
    ] {
        check(&format!("a1 - u:one\n{}\n{now}", reply(model, api)), None, messages, &[]);
    }
    // Newer versions of pi, which write system messages, do not send it to another model.
    let system =
        r#"a0 - json:"type":"message","message":{"role":"system","content":"","sections":{}}"#;
    let other = reply("other", "anthropic-messages");
    check(&format!("{system}\na1 a0 u:one\n{other}\n{now}"), None, "U|one|A|done", &[]);
}

#[test]
fn the_dialect_can_be_named() {
    let choice = Choice { from: Some(Dialect::Pi), ..Choice::default() };
    let text = record("a1 - custom:x");
    let input = open(Input::memory("t", text.clone().into_bytes()), &choice).unwrap();
    assert!(input.origin().is_some());
    let written = String::from_utf8(input.bytes().unwrap().into_owned()).unwrap();
    assert!(written.contains(r#""type":"imported","id":"a1""#), "{written}");
    assert!(written.contains(&text), "{written}");
}

/// Returns a session of the directory tests/data/dialects/pi.
fn data(name: &str) -> String {
    let path = format!("{}/tests/data/dialects/pi/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn dialects_1_an_edit_omits_a_record_or_replaces_its_content() {
    let messages = "U|First prompt|A|Second attempt|call c1|U|[shortened]|Next";
    assert_eq!(rebuild(&data("context-edit"), None), (messages.to_owned(), vec![]));
}

#[test]
fn dialects_2_a_compaction_that_names_itself_keeps_nothing() {
    let messages = "U|[Previous conversation summary]\nSUM|A|Agreed. Let me build on this summary.|U|After compaction";
    let (found, findings) = rebuild(&data("compaction-keeps-nothing"), None);
    assert_eq!((found.as_str(), findings), (messages, vec![]));
}

#[test]
fn the_last_edit_on_the_path_applies() {
    let edit = |id: &str, parent: &str, target: &str, replacement: &str| {
        format!(
            r#"{id} {parent} json:"type":"context_edit","targetId":"{target}","replacement":{replacement}"#
        )
    };
    let start = "a1 - u:one\na2 a1 c:c1\na3 a2 r:c1\na4 a3 a:two";
    let with = |edits: &[String]| format!("{start}\n{}", edits.join("\n"));
    let omit = |id: &str, parent: &str, target: &str| edit(id, parent, target, "null");
    let text = |id: &str, parent: &str, target: &str, text: &str| {
        edit(id, parent, target, &format!(r#"{{"content":"{text}"}}"#))
    };
    let blocks = r#"{"content":[{"type":"text","text":"new"},{"type":"toolCall","id":"c1","name":"t","arguments":{}}]}"#;
    for (edits, messages) in [
        (vec![omit("e1", "a4", "a4")], "U|one|A|call c1|U|[r c1]"),
        (vec![text("e1", "a4", "a1", "uno")], "U|uno|A|call c1|U|[r c1]|A|two"),
        (vec![text("e1", "a4", "a4", "dos")], "U|one|A|call c1|U|[r c1]|A|dos"),
        (vec![text("e1", "a4", "a3", "short")], "U|one|A|call c1|U|[short]|A|two"),
        (vec![edit("e1", "a4", "a2", blocks)], "U|one|A|new|call c1|U|[r c1]|A|two"),
        (
            vec![omit("e1", "a4", "a4"), text("e2", "e1", "a4", "dos")],
            "U|one|A|call c1|U|[r c1]|A|dos",
        ),
        (vec![text("e1", "a4", "a4", "dos"), omit("e2", "e1", "a4")], "U|one|A|call c1|U|[r c1]"),
        (vec![omit("e1", "a4", "a2"), omit("e2", "e1", "a3"), omit("e3", "e2", "a4")], "U|one"),
    ] {
        check(&with(&edits), None, messages, &[]);
    }
    // An edit on another branch does not apply.
    let apart = format!("{}\nb1 a4 u:three", with(&[omit("e1", "a4", "a1")]));
    check(&apart, None, "U|one|A|call c1|U|[r c1]|A|two|U|three", &["other-branch 6 e1"]);
    // An edit without a target is reported.
    let lost = with(&[omit("e1", "a4", "zz")]);
    check(&lost, None, "U|one|A|call c1|U|[r c1]|A|two", &["unknown-target 6 e1"]);
    // A compaction can keep everything from an edited record on.
    let kept = format!(
        "{}\nk1 e1 compaction:a1 sum\na5 k1 u:five",
        with(&[text("e1", "a4", "a1", "uno")])
    );
    check(
        &kept,
        None,
        "U|[Previous conversation summary]\nsum|A|Agreed. Let me build on this summary.|U|uno|A|call c1|U|[r c1]|A|two|U|five",
        &[],
    );
}

#[test]
fn audit_41_openclaw_says_where_it_goes_on_and_where_it_begins_anew() {
    let leaf =
        |target: &str, more: &str| format!(r#"json:"type":"leaf","targetId":{target}{more}"#);
    let talk = "a - u:one\nb a a:two\nc b u:three\nd c a:four\n";
    // The last record is a leaf, or follows one.
    check(&format!("{talk}l d {}", leaf("\"b\"", "")), None, "U|one|A|two", &["other-branch 5 d"]);
    let on = format!("{talk}l d {}\ne l u:five", leaf("\"b\"", ""));
    check(&on, None, "U|one|A|two|U|five", &["other-branch 5 d"]);
    let anew = format!("{talk}l d {}\ne l u:five", leaf("null", ""));
    check(&anew, None, "U|five", &["other-root 5 d"]);
    // Records beside the conversation.
    let side =
        r#"json:"type":"message","appendMode":"side","message":{"role":"user","content":"aside"}"#;
    check(&format!("{talk}s d {side}"), None, "U|one|A|two|U|three|A|four", &["other-branch 6 s"]);
    let after = format!("{talk}s d {side}\ne s u:five");
    check(&after, None, "U|one|A|two|U|three|A|four|U|five", &["other-branch 6 s"]);
    // A reset keeps nothing, or messages from a record on.
    let reset = |kept: &str| format!(r#"json:"type":"reset","reason":"new"{kept}"#);
    check(&format!("{talk}r d {}\ne r u:five", reset("")), None, "U|five", &[]);
    let kept = reset(r#","firstKeptEntryId":"c""#);
    check(&format!("{talk}r d {kept}\ne r u:five"), None, "U|three|A|four|U|five", &[]);
    let lost = reset(r#","firstKeptEntryId":"zz""#);
    check(&format!("{talk}r d {lost}\ne r u:five"), None, "U|five", &[]);
    // Messages that are not part of the context.
    let hidden = r#"json:"type":"message","message":{"role":"user","content":"/new","excludeFromContext":true}"#;
    check(
        &format!("{talk}h d {hidden}\ne h u:five"),
        None,
        "U|one|A|two|U|three|A|four|U|five",
        &[],
    );
}
