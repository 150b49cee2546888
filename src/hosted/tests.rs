use super::*;

fn shown(block: &str) -> Option<String> {
    text(&Object::parse(block).unwrap())
}

fn item(item: &str) -> Option<String> {
    shown(&format!(r#"{{"type":"reasoning","item":{item}}}"#))
}

#[test]
fn the_blocks_of_anthropics_tools_are_text() {
    for (block, expected) in [
        (
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"rust \u00e9"}}"#,
            "[web search: rust é]",
        ),
        (
            r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://a.example","title":"A","encrypted_content":"EEE","page_age":null},{"type":"web_search_result","url":"https://b.example","title":"B","encrypted_content":"EEE"}]}"#,
            "[result of web search]\n1. A <https://a.example>\n2. B <https://b.example>",
        ),
        (
            r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#,
            "[result of web search: nothing]",
        ),
        (
            r#"{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}"#,
            "[web search failed: max_uses_exceeded]",
        ),
        (
            r#"{"type":"web_fetch_tool_result","tool_use_id":"s","content":{"type":"web_fetch_result","url":"https://a.example","content":{"type":"document","title":"A","source":{"type":"text","media_type":"text/plain","data":"All of it.\nMore."}}}}"#,
            "[result of web fetch]\n1. A <https://a.example>\n  All of it.\n  More.",
        ),
        (
            r#"{"type":"web_fetch_tool_result","tool_use_id":"s","content":{"type":"web_fetch_result","url":"https://a.example","content":{"type":"document","title":null,"source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}}}"#,
            "[result of web fetch]\n1. <https://a.example>\n  [document]",
        ),
        (
            r#"{"type":"server_tool_use","id":"s","name":"code_execution","input":{"code":"a = 1\nprint(a)"}}"#,
            "[code execution]\n  a = 1\n  print(a)",
        ),
        (
            r#"{"type":"code_execution_tool_result","tool_use_id":"s","content":{"type":"code_execution_result","stdout":"1\n","stderr":"warn","return_code":2,"content":[{"type":"code_execution_output","file_id":"file_1"}]}}"#,
            "[result of code execution]\n  1\n  warn\n  [file file_1]\n  [exit status 2]",
        ),
        (
            r#"{"type":"code_execution_tool_result","tool_use_id":"s","content":{"type":"encrypted_code_execution_result","encrypted_stdout":"EEE","stderr":"","return_code":0,"content":[]}}"#,
            "[result of code execution]\n  [only its provider can read it]",
        ),
        (
            r#"{"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{"type":"bash_code_execution_result","stdout":"a","stderr":"","return_code":0,"content":[]}}"#,
            "[result of bash code execution]\n  a",
        ),
        (
            r#"{"type":"text_editor_code_execution_tool_result","tool_use_id":"s","content":{"type":"text_editor_code_execution_view_result","file_type":"text","content":"line 1\nline 2"}}"#,
            "[result of text editor code execution]\n  line 1\n  line 2",
        ),
        (
            r#"{"type":"text_editor_code_execution_tool_result","tool_use_id":"s","content":{"type":"text_editor_code_execution_str_replace_result","lines":["-a","+b"],"new_lines":1}}"#,
            "[result of text editor code execution]\n  -a\n  +b",
        ),
        (
            r#"{"type":"text_editor_code_execution_tool_result","tool_use_id":"s","content":{"type":"text_editor_code_execution_tool_result_error","error_code":"file_not_found","error_message":"no b"}}"#,
            "[text editor code execution failed: file_not_found: no b]",
        ),
        (
            r#"{"type":"tool_search_tool_result","tool_use_id":"s","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"f"},{"type":"tool_reference","tool_name":"g"}]}}"#,
            "[result of tool search]\n  f\n  g",
        ),
        (
            r#"{"type":"advisor_tool_result","tool_use_id":"s","content":{"type":"advisor_result","text":"Do it.","stop_reason":null}}"#,
            "[result of advisor]\n  Do it.",
        ),
        (
            r#"{"type":"mcp_tool_use","id":"m","name":"find","server_name":"crm","input":{"a":1,"b":"x"}}"#,
            r#"[MCP tool crm/find: {"a":1,"b":"x"}]"#,
        ),
        (
            r#"{"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[{"type":"text","text":"found"}]}"#,
            "[result of MCP tool]\n  found",
        ),
        (
            r#"{"type":"mcp_tool_result","tool_use_id":"m","is_error":true,"content":"no"}"#,
            "[MCP tool failed: no]",
        ),
        (
            r#"{"type":"mcp_tool_listing","mcp_server_name":"crm","tools":[{"name":"find","input_schema":{}},{"name":"put","input_schema":{}}]}"#,
            "[result of MCP tools of crm]\n  find\n  put",
        ),
        (r#"{"type":"container_upload","file_id":"file_1"}"#, "[container upload: file_1]"),
        (
            r#"{"type":"fallback","from":{"model":"a"},"to":{"model":"b"},"trigger":{"type":"refusal"}}"#,
            "[change of the model: from a to b]",
        ),
        (r#"{"type":"compaction","content":"So far.","encrypted_content":"EEE"}"#, "So far."),
        (
            r#"{"type":"smell_tool_result","tool_use_id":"s","content":{"type":"x","text":"roses"}}"#,
            "[result of smell]\n  roses",
        ),
    ] {
        assert_eq!(shown(block).as_deref(), Some(expected), "{block}");
    }
    for block in [
        r#"{"type":"text","text":"a"}"#,
        r#"{"type":"thinking","thinking":"a","signature":"s"}"#,
        r#"{"type":"tool_use","id":"a","name":"f","input":{}}"#,
        r#"{"type":"tool_result","tool_use_id":"a","content":"b"}"#,
        r#"{"type":"compaction","content":null}"#,
        r#"{"type":"image","source":{"type":"url","url":"x"}}"#,
    ] {
        assert_eq!(shown(block), None, "{block}");
    }
}

#[test]
fn the_items_of_the_responses_api_are_text() {
    for (own, expected) in [
        (
            r#"{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"rust","sources":[{"type":"url","url":"https://a.example"}]}}"#,
            "[web search: rust]\n[result of web search]\n1. <https://a.example>",
        ),
        (
            r#"{"type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://a.example"}}"#,
            "[web search: https://a.example]",
        ),
        (
            r#"{"type":"web_search_call","status":"failed","action":{"type":"find_in_page","pattern":"p","url":"https://a.example"}}"#,
            "[web search: 'p' in https://a.example]\n[web search failed: no reason given]",
        ),
        (
            r#"{"type":"file_search_call","queries":["a","b"],"status":"completed","results":[{"file_id":"f","filename":"a.pdf","score":0.5,"text":"the words"}]}"#,
            "[file search]\n  a\n  b\n[result of file search]\n1. a.pdf\n   \"the words\"",
        ),
        (
            r#"{"type":"code_interpreter_call","code":"print(1)","container_id":"c","outputs":[{"type":"logs","logs":"1"},{"type":"image","url":"https://i"}],"status":"completed"}"#,
            "[code interpreter: print(1)]\n[result of code interpreter]\n  1\n  [image]",
        ),
        (
            r#"{"type":"image_generation_call","status":"completed","result":"iVBORw0KGgo=","revised_prompt":"a cat"}"#,
            "[image generation: a cat]\n[result of image generation]\n  [image]",
        ),
        (
            r#"{"type":"mcp_call","server_label":"crm","name":"find","arguments":"{\"a\":1}","output":"found","error":null}"#,
            "[MCP tool crm/find: {\"a\":1}]\n[result of MCP tool crm/find]\n  found",
        ),
        (
            r#"{"type":"mcp_call","server_label":"crm","name":"find","arguments":"{}","output":null,"error":{"type":"http_error","code":404,"message":"gone"}}"#,
            "[MCP tool crm/find: {}]\n[MCP tool crm/find failed: http_error: gone]",
        ),
        (
            r#"{"type":"mcp_list_tools","server_label":"crm","tools":[{"name":"find","input_schema":{}}]}"#,
            "[MCP list tools of crm]\n  find",
        ),
        (
            r#"{"type":"mcp_approval_request","server_label":"crm","name":"put","arguments":"{}"}"#,
            "[MCP approval request crm/put: {}]",
        ),
        (
            r#"{"type":"local_shell_call","call_id":"c","status":"completed","action":{"type":"exec","command":["ls","-l"],"env":{}}}"#,
            "[local shell: ls -l]",
        ),
        (
            r#"{"type":"local_shell_call_output","id":"c","output":"a"}"#,
            "[result of local shell]\n  a",
        ),
        (
            r#"{"type":"shell_call","call_id":"c","status":"completed","action":{"commands":["ls","cat a"],"timeout_ms":9}}"#,
            "[shell]\n  ls\n  cat a",
        ),
        (
            r#"{"type":"shell_call_output","call_id":"c","status":"completed","output":[{"stdout":"a","stderr":"b","outcome":{"type":"exit","exit_code":0}}]}"#,
            "[result of shell]\n  a\n  b",
        ),
        (
            r#"{"type":"apply_patch_call","call_id":"c","status":"completed","operation":{"type":"delete_file","path":"a"}}"#,
            "[apply patch: {\"type\":\"delete_file\",\"path\":\"a\"}]",
        ),
        (
            r#"{"type":"apply_patch_call_output","call_id":"c","status":"failed","output":"no such file"}"#,
            "[apply patch failed: no reason given]\n  no such file",
        ),
        (
            r#"{"type":"computer_call","call_id":"c","pending_safety_checks":[],"status":"completed","action":{"type":"click","x":1}}"#,
            "[computer: {\"type\":\"click\",\"x\":1}]",
        ),
        (
            r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:x"}}"#,
            "[result of computer]\n  [image]",
        ),
        (
            r#"{"type":"custom_tool_call","call_id":"c","name":"sql","input":"select 1"}"#,
            "[custom tool sql: select 1]",
        ),
        (
            r#"{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"1"}]}"#,
            "[result of custom tool]\n  1",
        ),
        (
            r#"{"type":"tool_search_call","arguments":{"goal":"mail"},"execution":"server","status":"completed"}"#,
            "[tool search: mail]",
        ),
        (
            r#"{"type":"tool_search_output","tools":[{"type":"function","name":"send","parameters":{}}],"status":"completed"}"#,
            "[result of tool search]\n  send",
        ),
        (r#"{"type":"program","call_id":"c","code":"f()","fingerprint":"x"}"#, "[program: f()]"),
        (
            r#"{"type":"program_output","call_id":"c","result":"3","status":"completed"}"#,
            "[result of program]\n  3",
        ),
        (
            r#"{"type":"smell_call","input":"roses","output":"sweet"}"#,
            "[smell: roses]\n[result of smell]\n  sweet",
        ),
    ] {
        assert_eq!(item(own).as_deref(), Some(expected), "{own}");
    }
    for own in [
        r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}"#,
        r#"{"type":"compaction","encrypted_content":"EEE"}"#,
        r#"{"type":"message","content":[]}"#,
    ] {
        assert_eq!(item(own), None, "{own}");
    }
}

#[test]
fn the_citations_of_a_text_are_its_sources() {
    let block = r#"{"type":"text","text":"So.","citations":[{"type":"web_search_result_location","url":"https://a.example","title":"A","cited_text":"the  words\nof A","encrypted_index":"EEE"},{"type":"char_location","document_index":0,"document_title":"D","cited_text":"of D"}]}"#;
    let block = Object::parse(block).unwrap();
    let expected = "[sources]\n1. A <https://a.example>\n   \"the words of A\"\n2. D\n   \"of D\"";
    assert_eq!(cited_text(&block).as_deref(), Some(expected));
    for none in [r#"{"type":"text","text":"a"}"#, r#"{"type":"text","text":"a","citations":null}"#]
    {
        assert_eq!(cited_text(&Object::parse(none).unwrap()), None);
    }
}

#[test]
fn text_is_bounded_and_always_the_same() {
    let page = "é".repeat(MAX_TEXT);
    let results: Vec<String> = (0..200)
        .map(|n| format!(r#"{{"url":"https://{n}.example","title":"{page}","text":"{page}"}}"#))
        .collect();
    let own = format!(r#"{{"type":"file_search_call","results":[{}]}}"#, results.join(","));
    let text = item(&own).unwrap();
    assert!(text.len() < MAX_TEXT + 50, "{}", text.len());
    assert!(text.ends_with("bytes left out]"), "{text}");
    assert_eq!(item(&own), Some(text));
    let deep = format!(r#"{{"type":"x_call","output":{}1{}}}"#, "[".repeat(90), "]".repeat(90));
    assert_eq!(item(&deep).as_deref(), Some("[x]"));
}

#[test]
fn what_is_kept_is_not_reasoning() {
    for (block, is) in [
        (r#"{"type":"reasoning","item":{"type":"web_search_call"}}"#, true),
        (r#"{"type":"reasoning","item":{"type":"compaction","encrypted_content":"E"}}"#, true),
        (r#"{"type":"reasoning","item":{"type":"reasoning"}}"#, false),
        (r#"{"type":"reasoning","part":{"executableCode":{}}}"#, true),
        (r#"{"type":"reasoning","part":{"text":"hm","thought":true}}"#, false),
        (r#"{"type":"reasoning","annotations":[]}"#, true),
        (r#"{"type":"reasoning","container":{"id":"c"}}"#, true),
        (r#"{"type":"reasoning","phase":"commentary"}"#, false),
        (r#"{"type":"reasoning","reasoning_content":"hm"}"#, false),
    ] {
        assert_eq!(is_kept(&Object::parse(block).unwrap()), is, "{block}");
    }
}
