//! What a provider's own tools did: kept in the transcript, sent back where it came from, and text everywhere else.

use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// A search and a run of code by Anthropic, with a text that cites the search.
fn by_anthropic() -> Value {
    json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rust release"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "https://blog.example/1", "title": "Rust 1.93", "encrypted_content": "RUFB", "page_age": null}]},
        {"type": "text", "text": "It is 1.93.", "citations": [{"type": "web_search_result_location", "url": "https://blog.example/1", "title": "Rust 1.93", "cited_text": "We announce 1.93.", "encrypted_index": "RUFB"}]},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "print(6 * 7)"}},
        {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": {"type": "code_execution_result", "stdout": "42\n", "stderr": "", "return_code": 0, "content": []}},
    ])
}

fn transcript(content: &Value) -> String {
    let lines = [
        json!({"type": "user", "content": "Search."}),
        json!({"type": "assistant", "content": content}),
        json!({"type": "user", "content": "And?"}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn each_api_gets_what_the_tools_of_another_did_as_text() {
    let sandbox = Sandbox::new();
    sandbox.write("anthropic.jsonl", transcript(&by_anthropic()));
    let item = json!({"type": "mcp_call", "id": "mcp_1", "server_label": "crm", "name": "find", "arguments": "{\"a\":1}", "output": "found it", "error": null});
    let kept = json!([{"type": "reasoning", "api": "responses", "server": "0", "model": "m", "item": item}]);
    sandbox.write("responses.jsonl", transcript(&kept));
    let rebuild = |file: &str, to: &str| {
        let run = sandbox.cmd("claw-rebuild").args(["--to", to, "--", file]).assert();
        run.success().stderr("").stdout_text()
    };
    for to in ["openai", "responses", "ollama", "gemini"] {
        let messages = rebuild("anthropic.jsonl", to);
        for part in [
            "[web search: rust release]",
            "[result of web search]\\n1. Rust 1.93 <https://blog.example/1>",
            "[sources]\\n1. Rust 1.93 <https://blog.example/1>\\n   \\\"We announce 1.93.\\\"",
            "[code execution: print(6 * 7)]",
            "[result of code execution]\\n  42",
        ] {
            assert!(messages.contains(part), "{to}: {part}: {messages}");
        }
        assert!(!messages.contains("RUFB") && !messages.contains("citations"), "{messages}");
    }
    let own: Value = serde_json::from_str(
        rebuild("anthropic.jsonl", "anthropic").lines().nth(1).expect("a reply"),
    )
    .expect("JSON");
    assert_eq!(own["content"], by_anthropic());
    for to in ["anthropic", "openai", "responses", "ollama", "gemini"] {
        let messages = rebuild("responses.jsonl", to);
        let text = r#"[MCP tool crm/find: {\"a\":1}]\n[result of MCP tool crm/find]\n  found it"#;
        assert!(messages.contains(text), "{to}: {messages}");
        assert!(!messages.contains("mcp_1"), "{messages}");
    }
}
