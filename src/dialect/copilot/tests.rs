//! Tests with small sessions. What each event becomes is what version 1.0.102 sent when it resumed a session with it.

use crate::dialect::tests::rebuild;
use crate::dialect::{Choice, open};
use crate::input::Input;

/// Returns an event.
fn event(kind: &str, data: &str) -> String {
    format!(
        r#"{{"type":"{kind}","data":{data},"id":"e","timestamp":"2026-01-01T00:00:01.000Z","parentId":null}}"#
    )
}

fn user(text: &str) -> String {
    event("user.message", &format!(r#"{{"content":"{text}"}}"#))
}

fn reply(text: &str, more: &str) -> String {
    event("assistant.message", &format!(r#"{{"content":"{text}","toolRequests":[]{more}}}"#))
}

fn calls(calls: &str) -> String {
    event("assistant.message", &format!(r#"{{"content":"","toolRequests":[{calls}]}}"#))
}

fn result(id: &str, outcome: &str) -> String {
    event("tool.execution_complete", &format!(r#"{{"toolCallId":"{id}",{outcome}}}"#))
}

fn check(events: &[String], words: &str, findings: &[&str]) {
    let start = event("session.start", r#"{"sessionId":"s","context":{"cwd":"/w"}}"#);
    let lines: Vec<String> =
        std::iter::once(start).chain(events.iter().cloned()).enumerate().map(number).collect();
    let (found, told) = rebuild(&lines.join("\n"), None);
    let findings: Vec<String> = findings.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!((found.as_str(), told), (words, findings));
}

/// Gives an event an id of its own.
fn number((number, event): (usize, String)) -> String {
    event.replace(r#""id":"e""#, &format!(r#""id":"e{number}""#))
}

#[test]
fn audit_41_results_of_parallel_calls_are_read_in_any_order() {
    let both = r#"{"toolCallId":"a","name":"view","arguments":{"path":"x"}},{"toolCallId":"b","name":"apply_patch","arguments":"P","type":"custom"}"#;
    let done = result("b", r#""success":false,"error":{"message":"no","code":"denied"}"#);
    let more = result("a", r#""success":true,"result":{"content":"one","detailedContent":"1"}"#);
    let events = [user("go"), calls(both), done, more, reply("ok", "")];
    check(&events, "U|go|A|call a|call b|U|[one]|[error]|A|ok", &[]);
}

#[test]
fn a_prompt_is_sent_with_its_images_and_the_text_around_it() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";
    let asset = event(
        "session.binary_asset",
        &format!(
            r#"{{"assetId":"h","type":"image","mimeType":"image/png","data":"{png}","description":"at /p.png"}}"#
        ),
    );
    let prompt = event(
        "user.message",
        r#"{"content":"look","transformedContent":"<current_datetime>1</current_datetime>\n\nlook","attachments":[{"type":"file","path":"/p.png","assetId":"h"},{"type":"file","path":"/q"}]}"#,
    );
    let events = [asset, prompt];
    check(&events, "U|<current_datetime>1</current_datetime>\n\nlook|at /p.png|image", &[]);
}

#[test]
fn signed_thinking_is_sent_and_what_a_subagent_says_is_not() {
    let blocks = r#","reasoningText":"t","reasoningBlocks":{"provider":"anthropic-messages","blocks":[{"type":"thinking","thinking":"t","signature":"c2ln"}]}"#;
    let sub = reply("sub", "").replace(r#""parentId""#, r#""agentId":"g","parentId""#);
    let tool = reply("sub", r#","parentToolCallId":"c""#);
    let unsigned = reply("two", r#","reasoningText":"t","reasoningOpaque":"o""#);
    let events = [user("go"), reply("one", blocks), sub, tool, user("on"), unsigned];
    check(&events, "U|go|A|thinking|one|U|on|A|two", &[]);
}

#[test]
fn audit_41_a_compaction_keeps_the_prompts_and_a_cleared_context_nothing() {
    let done = event(
        "session.compaction_complete",
        r#"{"success":true,"summaryContent":"sum","preCompactionTokens":9}"#,
    );
    let failed =
        event("session.compaction_complete", r#"{"success":false,"summaryContent":"none"}"#);
    let begin = [user("first"), reply("one", ""), failed, done];
    let events = [&begin[..], &[user("second"), reply("two", "")]].concat();
    let summary =
        "[Previous conversation summary]\nsum\n\n[Words of the user, kept as they were]\nfirst";
    let (found, _) = rebuild(&events.join("\n"), None);
    assert!(found.starts_with(&format!("U|{summary}|A|")), "{found}");
    assert!(found.ends_with("|U|second|A|two"), "{found}");
    let cleared =
        event("session.context_cleared", r#"{"messagesCleared":2,"initialMessage":"anew"}"#);
    let events = [&begin[..], &[cleared, user("second")]].concat();
    check(&events, "U|anew|second", &[]);
}

#[test]
fn texts_of_the_program_and_commands_of_the_user_are_sent() {
    let note = event("system.notification", r#"{"content":"note"}"#);
    let skill = event("skill.context_delivered", r#"{"content":"skill","source":"skill-a"}"#);
    let mode = event("session.mode_notice_delivered", r#"{"mode":"plan","content":"mode"}"#);
    let asked = event(
        "tool.user_requested",
        r#"{"toolCallId":"u","toolName":"bash","arguments":{"command":"ls"}}"#,
    );
    let ran = result("u", r#""success":true,"isUserRequested":true,"result":{"content":"out"}"#);
    let words = "U|note|skill|mode|<user_shell_command_output>\nCommand:\nls\n\nOutput:\nout\n</user_shell_command_output>";
    check(&[note, skill, mode, asked, ran], words, &[]);
}

#[test]
fn what_ended_a_turn_is_kept_and_not_sent() {
    let abort = event("abort", r#"{"reason":"user initiated"}"#);
    let error = event("session.error", r#"{"errorType":"quota","message":"no credit"}"#);
    let events = [user("one"), reply("half", ""), abort, user("two"), error].join("\n");
    assert_eq!(rebuild(&events, None).0, "U|one|A|half|U|two");
    let input = Input::memory("t", events.into_bytes());
    let translated = open(input, &Choice::default()).unwrap();
    let bytes = translated.bytes().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(r#""class":"interrupted","message":"user initiated""#), "{text}");
    assert!(text.contains(r#""class":"quota","message":"no credit""#), "{text}");
}

#[test]
fn audit_41_types_that_could_change_the_context_are_reported() {
    let known =
        ["session.shutdown", "assistant.turn_start", "hook.start", "skill.invoked", "abort"];
    let mut events = vec![user("go")];
    events.extend(known.map(|kind| event(kind, "{}")));
    check(&events, "U|go", &[]);
    for kind in ["novelty", "session.fusion_handoff", "skill.context_delivered_ref"] {
        check(&[user("go"), event(kind, "{}")], "U|go", &["unknown-type 3 -"]);
    }
}
