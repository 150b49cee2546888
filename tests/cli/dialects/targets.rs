//! `claw-rebuild --to`: messages written for another API are read back as the same conversation.

use super::run;
use crate::common::{AssertExt, Sandbox};

const SESSION: &str = r#"{"type":"user","content":"List \u00e9."}
{"type":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s="},{"type":"text","text":"I look."}]}
{"type":"tool_use","tool_use_id":"c1","name":"ls","input":{"path":"."}}
{"type":"tool_result","tool_use_id":"c1","content":"a\nb"}
{"type":"assistant","content":[{"type":"text","text":"Two."}]}
"#;

#[test]
fn messages_written_for_another_api_are_read_back_as_the_same_conversation() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", SESSION);
    let plain = |words: &[&str]| super::plain(&run(&sandbox, words));
    let expected = plain(&["claw-rebuild", "--thinking", "strip", "s.jsonl"]);
    for (api, dialect) in [("openai", "openai"), ("gemini", "gemini"), ("ollama", "openai")] {
        let write = format!("claw-rebuild --array --to {api} s.jsonl >{api}.json");
        sandbox.sh(&write).assert().success();
        let file = format!("{api}.json");
        assert_eq!(plain(&["claw-rebuild", "--from", dialect, &file]), expected, "{api}");
    }
    // Without --from, an array of messages and the body of a request are recognised.
    assert_eq!(plain(&["claw-rebuild", "openai.json"]), expected);
    assert_eq!(plain(&["claw-rebuild", "gemini.json"]), expected);
    sandbox.sh(r#"printf '{"model":"m","messages":%s}' "$(cat openai.json)" >body.json"#).assert();
    assert_eq!(plain(&["claw-rebuild", "body.json"]), expected);
}

#[test]
fn the_request_of_claw_call_has_the_same_messages() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", format!("{SESSION}{{\"type\":\"user\",\"content\":\"Thanks.\"}}\n"));
    for api in ["openai", "ollama"] {
        let own = run(&sandbox, &["claw-rebuild", "--to", api, "s.jsonl"]);
        let call = format!(
            "claw-rebuild s.jsonl | claw-call --provider {api} --model m --window 8000 --dry-run"
        );
        let sent = sandbox.sh(&call).env("OPENAI_API_KEY", "k").assert().success().json_one();
        assert_eq!(sent["messages"], serde_json::Value::from(own), "{api}");
    }
}
