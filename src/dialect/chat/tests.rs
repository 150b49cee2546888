//! Tests for reading OpenAI and Gemini API messages.

use crate::dialect::tests::rebuild;
use crate::dialect::{Choice, Dialect, open};
use crate::input::Input;

#[track_caller]
fn check(text: &str, messages: &str, findings: &[&str]) {
    let (words, found) = rebuild(text, None);
    assert_eq!(
        (words.as_str(), found),
        (messages, findings.iter().map(|it| (*it).to_owned()).collect())
    );
}

const CHAT: [&str; 6] = [
    r#"{"role":"system","content":"rules"}"#,
    r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}]}"#,
    r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":"{\"a\": 1}"}},{"id":"c2","type":"function","function":{"name":"t","arguments":""}}]}"#,
    r#"{"role":"tool","tool_call_id":"c1","content":"r1"}"#,
    r#"{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"r2"}]}"#,
    r#"{"role":"assistant","content":"done"}"#,
];
const MESSAGES: &str = "U|look|image|A|call c1|call c2|U|[r1]|[r2]|A|done";

#[test]
fn chat_messages_are_read_from_arrays_lines_and_request_bodies() {
    let array = format!("[\n{}\n]", CHAT.join(",\n"));
    check(&array, MESSAGES, &["system-prompt 2 -"]);
    check(&CHAT.join("\n"), MESSAGES, &["system-prompt 1 -"]);
    check(&format!(r#"{{"model":"m","messages":{array}}}"#), MESSAGES, &["system-prompt 2 -"]);
    let body = format!(r#"{{"model":"m","system":"rules","messages":[{}]}}"#, CHAT[1..].join(","));
    check(&body, MESSAGES, &["system-prompt 1 -"]);
    let body = r#"{"model":"m","input":[{"type":"message","role":"user","content":"one"},{"type":"function_call","call_id":"c1","name":"t","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"r1"}]}"#;
    check(body, "U|one|A|call c1|U|[r1]", &[]);
}

#[test]
fn unusual_chat_messages_are_read_or_reported() {
    for (text, messages, findings) in [
        (
            r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"}]"#,
            "U|q|A|call call_31|U|[r]",
            vec![],
        ),
        (
            r#"[{"role":"user","content":"q"},{"role":"assistant","content":null,"refusal":"no"}]"#,
            "U|q|A|no",
            vec![],
        ),
        (
            r#"[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}]"#,
            "U|q|A|call c1|U|[r]",
            vec![],
        ),
        (
            r#"[{"role":"user","content":"q"},{"role":"narrator","content":"x"},5]"#,
            "U|q",
            vec!["unknown-type 1 -", "unknown-type 1 -"],
        ),
    ] {
        check(text, messages, &findings);
    }
}

#[test]
fn gemini_contents_are_read() {
    let contents = r#"[{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}]},
{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"f","args":{}}}]},
{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r1"}}},{"functionResponse":{"name":"f","response":{"a":2}}}]},
{"role":"model","parts":[{"text":"done"}]}]"#;
    let messages = r#"U|look|image|A|I look.|call call_1|call call_2|U|[r1]|[{"a":2}]|A|done"#;
    check(contents, messages, &[]);
    check(
        &format!(r#"{{"systemInstruction":{{}},"contents":{contents}}}"#),
        messages,
        &["system-prompt 1 -"],
    );
    check(r#"{"role":"user","parts":[{"text":"one"}]}"#, "U|one", &[]);
}

#[test]
fn plain_messages_are_read_only_if_the_dialect_is_named() {
    let text = r#"{"role":"user","content":"hi"}"#;
    let input = || Input::memory("t", text.as_bytes().to_vec());
    assert!(open(input(), &Choice::default()).is_err());
    let choice = Choice { from: Some(Dialect::Openai), ..Choice::default() };
    assert!(open(input(), &choice).is_ok());
    for (text, why) in
        [("{}", "no messages"), ("\u{feff}[", "no messages"), ("text", "no messages")]
    {
        let error = open(Input::memory("t", text.as_bytes().to_vec()), &choice).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}
