//! Tests with small chats.

use crate::dialect::tests::rebuild;

const HEADER: &str = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}"#;

fn user(id: &str, text: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:01.000Z","type":"user","content":[{{"text":"{text}"}}]}}"#
    )
}

fn reply(id: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:02.000Z","type":"gemini","content":"{text}","thoughts":[],"model":"gemini-2.5-pro"{more}}}"#
    )
}

fn calls(calls: &[&str]) -> String {
    format!(r#","toolCalls":[{}]"#, calls.join(","))
}

/// Returns a call with its result, a list of parts.
fn call(id: &str, parts: &str) -> String {
    format!(r#"{{"id":"{id}","name":"t","args":{{}},"result":[{parts}],"status":"success"}}"#)
}

fn answer(id: &str, text: &str) -> String {
    format!(r#"{{"functionResponse":{{"id":"{id}","name":"t","response":{{"output":"{text}"}}}}}}"#)
}

fn check(lines: &[String], words: &str, findings: &[&str]) {
    let text = std::iter::once(HEADER).chain(lines.iter().map(String::as_str));
    let (found, told) = rebuild(&text.collect::<Vec<_>>().join("\n"), None);
    assert_eq!(
        (found.as_str(), told),
        (words, findings.iter().map(|it| (*it).to_owned()).collect())
    );
}

#[test]
fn a_line_takes_the_place_of_the_one_with_its_id() {
    let answered = calls(&[&call("c", &answer("c", "r"))]);
    let lines =
        [user("1", "one"), reply("2", "", ""), user("3", "two"), reply("2", "look", &answered)];
    check(&lines, "U|one|A|look|call c|U|[r]|two", &[]);
}

#[test]
fn messages_are_replaced_and_removed_as_the_program_does_it() {
    let set =
        |messages: &[String]| format!(r#"{{"$set":{{"messages":[{}]}}}}"#, messages.join(","));
    let lines = [
        user("1", "one"),
        set(&[user("4", "summary"), reply("5", "Got it.", "")]),
        user("6", "two"),
        reply("7", "three", ""),
    ];
    check(&lines, "U|summary|A|Got it.|U|two|A|three", &[]);
    let rewind = |id: &str| {
        [&lines[..], &[format!(r#"{{"$rewindTo":"{id}"}}"#), user("8", "four")]].concat()
    };
    check(&rewind("6"), "U|summary|A|Got it.|U|four", &[]);
    check(&rewind("none"), "U|four", &[]);
}

#[test]
fn a_copy_of_results_and_context_are_not_read_as_prompts() {
    let image = r#"{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}"#;
    // Each call can have the parts of all.
    let parts = [answer("c", "r"), answer("d", "s"), image.to_owned()].join(",");
    let copy = format!(r#"{{"id":"3","type":"user","content":[{parts}]}}"#);
    let both = calls(&[&call("c", &parts), &call("d", &parts)]);
    let lines = [
        user("0", "<session_context>x</session_context>"),
        user("1", "one"),
        reply("2", "", &both),
        copy,
        user("4", "/help"),
        reply("5", "done", ""),
    ];
    check(&lines, "U|one|A|call c|call d|U|[r]|[s image]|A|done", &[]);
}

/// A resume makes messages of what was members before, and keeps the copy.
#[test]
fn after_a_resume_the_results_of_calls_are_messages() {
    let call = r#"{"id":"2","type":"gemini","content":[{"text":"hm","thought":true},{"functionCall":{"id":"c","name":"t","args":{}}}]}"#;
    let results =
        |id: &str| format!(r#"{{"id":"{id}","type":"user","content":[{}]}}"#, answer("c", "r"));
    let before = [user("1", "one"), reply("2", "", &calls(&[&self::call("c", &answer("c", "r"))]))];
    let list = [user("1", "one"), call.to_owned(), results("2_response"), results("3")].join(",");
    let set = format!(r#"{{"$set":{{"messages":[{list}]}}}}"#);
    let lines = [&before[..], &[results("3"), set, user("4", "two")]].concat();
    check(&lines, "U|one|A|call c|U|[r]|two", &[]);
    // A prompt can be in the message of the results.
    let with_prompt = answer("c", "r") + r#",{"text":"two"}"#;
    let message = format!(r#"{{"id":"3","type":"user","content":[{with_prompt}]}}"#);
    check(&[user("1", "one"), call.to_owned(), message], "U|one|A|call c|U|[r]|two", &[]);
}

#[test]
fn a_call_without_a_result_and_old_results_are_read() {
    let open = r#"{"id":"d","name":"t","args":{},"status":"cancelled"}"#;
    let old = r#"{"id":"c","name":"t","args":{},"result":"plain","status":"error"}"#;
    let lines = [user("1", "one"), reply("2", "", &calls(&[old, open])), user("3", "two")];
    check(&lines, "U|one|A|call c|call d|U|[error]|[error]|two", &["open-call 3 -"]);
    let info = r#"{"id":"9","type":"info","content":"hint"}"#.to_owned();
    let new = r#"{"id":"8","type":"widget","content":"x"}"#.to_owned();
    check(&[user("1", "one"), info, new], "U|one", &["unknown-type 4 -"]);
}

#[test]
fn a_chat_of_an_old_version_is_one_object() {
    let text = format!(
        "{{\n \"sessionId\": \"s\",\n \"projectHash\": \"h\",\n \"messages\": [\n  {},\n  {}\n ]\n}}\n",
        user("1", "one"),
        reply("2", "two", "")
    );
    // Each member has a line.
    let text = text.replace("{\"", "{\n\"");
    assert_eq!(rebuild(&text, None), ("U|one|A|two".to_owned(), Vec::new()));
}
