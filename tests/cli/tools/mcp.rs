//! claw-tool mcp: the tools of servers of the Model Context Protocol, with a server that is a shell script.

use crate::common::{AssertExt, Sandbox};
use assert_cmd::assert::Assert;
use predicates::str::contains;
use serde_json::{Value, json};

/// A server. `$1` is the result of tools/list, and `$2` what it does for tools/call. `$line` is the request, `$id` its id.
const SERVER: &str = r#"
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { result '{"content":[{"type":"text","text":"'"$1"'"}]}'; }
while read -r line
do
	id=${line#*\"id\":} id=${id%%,*}
	case $line in
	*'"method":"initialize"'*)
		result '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}' ;;
	*'"method":"tools/list"'*) eval "$1" ;;
	*'"method":"tools/call"'*) eval "$2" ;;
	esac
done
"#;

/// Returns a sandbox with the server.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("server", SERVER);
    sandbox.write("workspace/.keep", "");
    sandbox
}

/// Returns a command of the server that lists these tools and does this for a call.
fn list(tools: Value) -> String {
    let list = json!({"tools": tools}).to_string().replace('\'', r"'\''");
    format!("result '{list}'")
}

/// Returns a tool.
fn tool(name: &str) -> Value {
    json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object"}})
}

/// Runs `claw-tool mcp` to write tools.
fn write(sandbox: &Sandbox, options: &[&str], list: &str, call: &str) -> Assert {
    let server = sandbox.path("server").display().to_string();
    let command = ["--", "sh", &server, list, call];
    sandbox.cmd("claw-tool").args(["mcp", "--output", "t"]).args(options).args(command).assert()
}

/// Runs a tool with claw-exec, and returns its result and true if it is an error.
fn exec(sandbox: &Sandbox, name: &str, input: Value, options: &[&str]) -> (String, bool) {
    let call = json!({"type": "tool_use", "tool_use_id": "c", "name": name, "input": input});
    let exec = sandbox.cmd("claw-exec").args(["--tools", "t"]).args(options);
    let result = &exec.write_stdin(call.to_string()).assert().success().json()[0];
    let text = result["content"].as_str().expect("a text").to_owned();
    (text, result["is_error"] == true)
}

/// Writes one tool, which answers with `call`, and calls it.
fn answer(call: &str) -> (String, bool) {
    answer_within("60", call)
}

/// As [`answer`], with a time limit in seconds.
fn answer_within(seconds: &str, call: &str) -> (String, bool) {
    let sandbox = sandbox();
    write(&sandbox, &[], &list(json!([tool("f")])), call).success();
    exec(&sandbox, "f", json!({}), &["--exec-timeout", seconds])
}

#[test]
fn audit_42_the_tools_of_a_server_become_a_directory_of_tools() {
    let sandbox = sandbox();
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tools = json!([
        {"name": "say", "description": "Say it.\nTwice.", "inputSchema": schema,
            "annotations": {"readOnlyHint": true}},
        {"name": "rm", "title": "Remove", "inputSchema": {}, "annotations": {"destructiveHint": true}},
    ]);
    write(
        &sandbox,
        &[],
        &list(tools),
        r#"text "$(pwd | sed 's/.*\///') $(echo "$line" | tr -cd a-z0-9)""#,
    )
    .success()
    .stdout("say\treads\tSay it.\nrm\tchanges\tRemove\n")
    .stderr("");
    let definition: Value = serde_json::from_str(&sandbox.read_text("t/say.json")).expect("JSON");
    assert_eq!(definition, json!({"description": "Say it.\nTwice.", "input_schema": schema}));
    assert_eq!(
        sandbox.read_text("t/rm.json"),
        "{\"description\":\"Remove\",\"input_schema\":{\"type\":\"object\"}}\n"
    );
    let estimate = sandbox.cmd("claw-estimate").args(["--tools", "t"]);
    estimate.write_stdin(r#"{"role":"user","content":"Hi."}"#).assert().success();
    let (text, is_error) = exec(&sandbox, "say", json!({"a": 1}), &[]);
    assert!(!is_error && text.starts_with("workspace ") && text.contains("argumentsa1"), "{text}");
    let (text, is_error) = exec(&sandbox, "say", json!({}), &["--deny", "say"]);
    assert!(is_error && text.contains("not allowed"), "{text}");
}

#[test]
fn audit_42_an_update_changes_only_the_tools_of_its_server() {
    let sandbox = sandbox();
    // The list is in a file, so that the command of the server stays the same.
    let update = |names: &[&str], options: &[&str]| {
        let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        sandbox.write("list", json!({"tools": tools}).to_string());
        write(&sandbox, options, r#"result "$(cat list)""#, "text ok")
    };
    sandbox.sh("mkdir t && echo other >t/b && echo '{}' >t/d.json").assert().success();
    update(&["a", "c"], &[]).success();
    update(&["a", "b"], &[]).code(2).stderr(contains("'t/b': a file that is not from this server"));
    update(&["d"], &[]).code(2).stderr(contains("give --prefix"));
    sandbox.sh("ls t | xargs").assert().stdout("a a.json b c c.json d.json\n");
    update(&["a", "b"], &["--prefix", "x_"]).success();
    sandbox.sh("ls t | xargs").assert().stdout("b d.json x_a x_a.json x_b x_b.json\n");
    assert_eq!(sandbox.read_text("t/b"), "other\n");
    assert_eq!(exec(&sandbox, "x_a", json!({}), &[]), ("ok\n".to_owned(), false));
    update(&[], &[]).code(69).stderr(contains("the server offers none"));
}

#[test]
fn audit_42_hostile_names_are_neither_paths_nor_commands() {
    let sandbox = sandbox();
    let names = [
        "../up",
        "/etc/x",
        "a;touch pwned",
        "$(touch pwned)",
        "'; touch pwned; '",
        "a\ntouch pwned\n",
        "--help",
        "日本",
        "a.b",
        "a/b",
        "",
        &"x".repeat(200),
        "f",
    ];
    let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    let run = write(&sandbox, &[], &list(json!(tools)), r#"text "$(echo "$line" | tr -cd a-z)""#)
        .success();
    let written: Vec<String> = run
        .stdout_text()
        .lines()
        .map(|line| line.split('\t').next().unwrap_or("").to_owned())
        .collect();
    assert_eq!(written.len(), names.len());
    for name in &written {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(name.len() <= 64 && name.chars().all(is_plain), "{name}");
        exec(&sandbox, name, json!({}), &[]);
    }
    sandbox.sh("find . -name pwned -o -name up").assert().stdout("");
    let count = 2 * names.len();
    sandbox.sh("ls t | wc -l | tr -d ' '").assert().stdout(format!("{count}\n"));
}

#[test]
fn audit_42_tools_that_cannot_be_used_are_left_out_with_a_reason() {
    let sandbox = sandbox();
    let schema = |schema: Value| json!({"name": "g", "inputSchema": schema});
    let deep = "[".repeat(70) + &"]".repeat(70);
    let deep: Value = serde_json::from_str(&deep).expect("JSON");
    let tools = json!([
        tool("f"),
        tool("F"),
        tool("a\u{0}b"),
        tool(&"n".repeat(300)),
        schema(json!({"type": "string"})),
        schema(json!({"a": deep})),
        schema(json!({"a": "x".repeat(70_000)})),
        {"name": "g", "description": "x".repeat(20_000), "inputSchema": {}},
        {"name": "h"},
        {"name": "i", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}},
        {"inputSchema": {}},
        "j",
        tool("k"),
    ]);
    sandbox.write("list", json!({"tools": tools}).to_string());
    let run = write(&sandbox, &[], r#"result "$(cat list)""#, "")
        .success()
        .stdout("f\tunknown\tDoes it.\nk\tunknown\tDoes it.\n");
    let text = run.stderr_text();
    assert_eq!(text.lines().filter(|line| line.contains("leaving out")).count(), 11, "{text}");
    for why in [
        "a tool: 'F': 'f' is kept, which has the same name here",
        "'a\\u{0}b': its name has a NUL",
        "'nnn",
        "not an object",
        "too deep",
        "longer than 16 KiB",
        "a tool: 'h': missing field `inputSchema`",
        "a tool: 'i': invalid type: string \"yes\"",
        "a tool: it has no name: missing field `name`",
        "a tool: it has no name: invalid type: string \"j\"",
    ] {
        assert!(text.contains(why), "{why}: {text}");
    }
}

#[test]
fn audit_42_all_content_of_a_result_becomes_text() {
    let content = json!([
        {"type": "text", "text": "one"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "A"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "B"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
    ]);
    let result = |value: Value| answer(&format!("result '{value}'"));
    let left_out = "3 bytes, left out: only text can be shown here]";
    let expected = format!(
        "one\n[image/png, {left_out}\n[audio/wav, {left_out}\n[link to A: file:///a]\n[file:///b]\nB\n\
        [file:///c] [binary data, {left_out}\n"
    );
    assert_eq!(result(json!({"content": content})), (expected, false));
    let structured = json!({"content": [], "structuredContent": {"a": 1}});
    assert_eq!(result(structured), ("{\"a\":1}\n".to_owned(), false));
    let both = json!({"content": [content[0]], "structuredContent": {"a": 1}});
    assert_eq!(result(both), ("one\n".to_owned(), false));
    let (text, is_error) = result(json!({"content": [content[0]], "isError": true}));
    assert!(is_error && text.ends_with("standard error:\none"), "{text}");
    let (text, is_error) =
        result(json!({"content": [{"type": "text", "text": "é".repeat(9000)}], "isError": true}));
    assert!(
        is_error && text.contains("standard error:\néé") && text.ends_with("more bytes)"),
        "{text}"
    );
}

#[test]
fn audit_42_what_a_server_does_wrong_becomes_an_error_result() {
    let error = r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id""#;
    for (call, why) in [
        (&format!("{error} -32602 'Unknown tool'")[..], "Unknown tool; if the server was updated"),
        (
            &format!("{error} -32000 'No \\u001b[31m way'"),
            "it refused tools/call: No \\u{1b}[31m way",
        ),
        (
            "echo 'no key' >&2; exit 3",
            "it ended too early (exit status: 3), or wrote more than 64 MiB; it wrote: no key",
        ),
        ("kill -9 $$", "it ended too early (signal: 9"),
        (
            "result '{\"resultType\":\"input_required\",\"inputRequests\":{}}'",
            "cannot use the server",
        ),
        ("result 7", "its answer to tools/call has another form than the protocol defines"),
        ("exec >&-; sleep 9", "it ended too early, or"),
        ("yes | tr -d '\\n'", "wrote more than 64 MiB"),
    ] {
        let (text, is_error) = answer(call);
        assert!(is_error && text.contains(why) && text.len() < 5000, "{call}: {text}");
    }
    // What is not a message does no harm.
    assert_eq!(answer("echo hello; echo; echo '[]'; text ok"), ("ok\n".to_owned(), false));
}

#[test]
fn audit_42_a_server_that_never_answers_is_killed() {
    for call in [
        "sleep 99",
        "yes >&2",
        "yes '{}'",
        "while :; do echo '{\"jsonrpc\":\"2.0\",\"method\":\"x\"}'; done",
    ] {
        let (text, is_error) = answer_within("0.5", call);
        assert!(is_error && text.contains("did not end in 0.5 s"), "{call}: {text}");
    }
}

#[test]
fn audit_42_a_server_that_lists_no_tools_as_it_should_is_an_error() {
    let sandbox = sandbox();
    let endless = r#"result '{"tools":[],"nextCursor":"again"}'"#;
    let many = r#"result "{\"tools\":[$(yes '{"name":"f","inputSchema":{}},' | head -n 1100 | tr -d '\n'){\"name\":\"f\",\"inputSchema\":{}}]}""#;
    let silent = ("sleep 99", "it did not answer in 1 seconds; see --start-timeout");
    for (list, why) in [
        (endless, "more than 1000 tools, or in more than 100 parts"),
        (many, "more than 1000 tools, or in more than 100 parts"),
        silent,
        ("exit 1", "it ended too early (exit status: 1)"),
        ("result 7", "'sh': its answer to tools/list has another form than the protocol defines"),
        ("result '{\"tools\":7}'", "its answer to tools/list has another form"),
        (
            r#"printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}\n' "$id""#,
            "it refused tools/list: no",
        ),
    ] {
        let limit = if list == silent.0 { "1" } else { "50" };
        write(&sandbox, &["--start-timeout", limit], list, "")
            .code(69)
            .stdout("")
            .stderr(contains(why));
    }
    let none = ["mcp", "--output", "t", "--", "./nothing"];
    sandbox
        .cmd("claw-tool")
        .args(none)
        .assert()
        .code(74)
        .stderr(contains("cannot run './nothing'"));
    let no_server = ["mcp", "--output", "t", "--start-timeout", "1", "--", "cat"];
    sandbox
        .cmd("claw-tool")
        .args(no_server)
        .assert()
        .code(69)
        .stderr(contains("cannot use the server 'cat'"));
    sandbox.sh("ls t 2>/dev/null").assert().stdout("");
}

#[test]
fn audit_42_a_list_in_parts_is_read_to_its_end() {
    let sandbox = sandbox();
    let parts = r#"case $line in *cursor*) result '{"tools":[{"name":"b","inputSchema":{}}]}' ;;
        *) result '{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"2"}' ;; esac"#;
    write(&sandbox, &[], parts, "").success().stdout("a\tunknown\t\nb\tunknown\t\n");
}

#[test]
fn audit_42_a_server_gets_no_credentials_unless_they_are_passed() {
    let sandbox = sandbox();
    let show = |options: &[&str]| {
        let list = r#"result "{\"tools\":[{\"name\":\"f\",\"description\":\"<$A_TOKEN>\",\"inputSchema\":{}}]}""#;
        let server = sandbox.path("server").display().to_string();
        let command = ["--", "sh", &server, list, r#"text "<$A_TOKEN>""#];
        let tool = sandbox.cmd("claw-tool").env("A_TOKEN", "secret").args(["mcp", "--output", "t"]);
        tool.args(options).args(command).assert().success().stdout_text()
    };
    assert_eq!(show(&[]), "f\tunknown\t<>\n");
    assert_eq!(show(&["--pass-env", "A_TOKEN"]), "f\tunknown\t<secret>\n");
    assert!(!sandbox.read_text("t/f").contains("secret"));
    let call =
        json!({"type": "tool_use", "tool_use_id": "c", "name": "f", "input": {}}).to_string();
    for (options, expected) in [(&[][..], "<>\n"), (&["--pass-env", "A_TOKEN"], "<secret>\n")] {
        let exec = sandbox.cmd("claw-exec").env("A_TOKEN", "secret").args(["--tools", "t"]);
        let run = exec.args(options).write_stdin(call.clone()).assert().success();
        assert_eq!(run.json()[0]["content"], expected);
    }
}

#[test]
fn audit_42_a_server_that_ignores_the_end_of_its_input_is_ended() {
    let sandbox = sandbox();
    sandbox.write("stay", "trap '' HUP; sh \"$@\"; echo $$ >pid; sleep 999 >/dev/null 2>&1");
    let (stay, server) = (sandbox.path("stay"), sandbox.path("server"));
    let list = list(json!([tool("f")]));
    let run = sandbox.cmd("claw-tool").args(["mcp", "--output", "t", "--", "sh"]);
    run.args([&stay, &server]).args([&list, "text ok"]).assert().success();
    sandbox.sh("! kill -0 $(cat pid)").assert().success();
}
