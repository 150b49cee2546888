//! What a provider's own tools did: kept in the transcript, sent back where it came from, and text everywhere else.

#[cfg(feature = "http")]
use crate::common::provider::{FakeProvider, Step};
use crate::common::{AssertExt, Sandbox};
use serde_json::{Value, json};

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

#[test]
fn claw_show_shows_what_the_tools_did() {
    let sandbox = Sandbox::new();
    let item = json!({"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "a <b>", "sources": [{"type": "url", "url": "https://s.example/?a=1&b=\"2"}, {"type": "url", "url": "javascript:alert(1)"}]}});
    let mcp = json!({"type": "mcp_call", "server_label": "crm", "name": "find", "arguments": "{}", "output": "found\u{1b}[31m it", "error": null});
    let kept = |members: Value| {
        let mut block = json!({"type": "reasoning", "api": "x", "server": "0", "model": "m"});
        let own = members.as_object().expect("members").clone();
        block.as_object_mut().expect("a block").extend(own);
        block
    };
    let mut blocks = by_anthropic().as_array().expect("blocks").clone();
    blocks.push(kept(json!({"item": item})));
    blocks.push(kept(json!({"item": mcp})));
    blocks.push(kept(
        json!({"part": {"executableCode": {"language": "PYTHON", "code": "a = 1\nprint(a)\n"}}}),
    ));
    blocks.push(kept(json!({"item": {"type": "compaction", "encrypted_content": "RUFB"}})));
    blocks.push(json!({"type": "compaction", "content": (1..10).map(|n| format!("Fact {n}.\n")).collect::<String>()}));
    sandbox.write("s.jsonl", transcript(&json!(blocks)));
    let show = |format: &str| {
        let run = sandbox.cmd("claw-show").args(["--format", format, "s.jsonl"]).assert();
        run.success().stderr("").stdout_text()
    };
    let text = show("text");
    let begin = text.find("  ▸ web search").expect("a search");
    let end = text.find("── turn 2").expect("a turn");
    let shown = text[begin..end].trim_end();
    for part in [
        "  ▸ web search: rust release\n  ◂ web search · 1 source\n    1. Rust 1.93\n       https://blog.example/1\n",
        "  It is 1.93.\n\n  ◂ sources · 1 source\n    1. Rust 1.93\n",
        "  ▸ code execution: print(6 * 7)\n  ◂ code execution\n    42\n",
        "  ▸ MCP tool crm/find: {}\n    found\\u{1b}[31m it\n",
        "  ▸ code execution\n    a = 1\n    print(a)\n  [compaction, ",
        "  ◂ summary by the provider\n    Fact 1.\n",
        "    Fact 6.\n    … 3 more lines (--full)",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!text.contains("RUFB") && !text.contains('\u{1b}'), "{text}");
    let page = show("html");
    assert!(page.contains("<a href=\"https://blog.example/1\">Rust 1.93</a>"), "{page}");
    assert!(page.contains("<a href=\"https://s.example/?a=1&amp;b=&quot;2\">"), "{page}");
    assert!(page.contains("web search: a &lt;b&gt;"), "{page}");
    assert!(!page.contains("href=\"javascript"), "{page}");
    let markdown = show("markdown");
    assert!(markdown.contains("1. [Rust 1.93](<https://blog.example/1>)"), "{markdown}");
    assert!(!markdown.contains("](<javascript"), "{markdown}");
}

#[cfg(feature = "http")]
mod container {
    use super::*;

    /// Returns an answer of Anthropic's with a container that expires at a time in 2026.
    fn answer(stop_reason: &str, container: &str, expires: &str) -> Step {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let expires = format!("2026-{expires}Z");
        let body = json!({"model": "m", "stop_reason": stop_reason, "content": by_anthropic(), "usage": {"input_tokens": 9, "output_tokens": 5}, "container": {"id": container, "expires_at": expires}});
        Step::Raw { status: 200, headers, body: body.to_string().into() }
    }

    /// Returns the containers that the requests name, in order.
    fn named(provider: &FakeProvider) -> Vec<Value> {
        let body = |request: &crate::common::provider::Recorded| {
            let body: Value = serde_json::from_slice(&request.body).expect("a body");
            body["container"]["id"].clone()
        };
        provider.requests().iter().map(body).collect()
    }

    #[test]
    fn the_next_request_names_it_until_it_expires() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        // The tests' clock stands at the beginning of 2026.
        provider.script(answer("end_turn", "c_1", "01-01T00:30:00"));
        provider.script(answer("end_turn", "c_2", "01-01T00:00:05"));
        provider.script(Step::text("Done."));
        for _ in 0..3 {
            let args = ["--no-checkpoint", "-m", "Go on.", "./s.jsonl"];
            sandbox.cmd("claw-turn").envs(provider.env()).args(args).assert().success();
        }
        assert_eq!(named(&provider), [Value::Null, json!("c_1"), Value::Null]);
        let last = provider.requests().pop().expect("a request");
        assert_eq!(last.messages()[1]["content"], by_anthropic());
        let record = &sandbox.read_json("s.jsonl")[1]["content"][0];
        assert_eq!(record["container"]["id"], "c_1", "{record}");
    }

    #[test]
    fn a_paused_turn_goes_on_in_it() {
        let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
        provider.script(answer("pause_turn", "c_1", "01-01T00:30:00"));
        provider.script(Step::text("Done."));
        let args = ["--no-checkpoint", "-m", "Go on.", "./s.jsonl"];
        let run = sandbox.cmd("claw-turn").envs(provider.env()).args(args).assert();
        assert!(run.success().stdout_text().ends_with("Done.\n"));
        assert_eq!(named(&provider), [Value::Null, json!("c_1")]);
        let last = provider.requests().pop().expect("a request");
        assert_eq!(last.messages().last().expect("a message")["content"], by_anthropic());
    }
}
