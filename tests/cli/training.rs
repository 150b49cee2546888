//! `claw-session export` for fine-tuning and for tracing backends: only accepted turns, nothing that a program wrote, and
//! spans in the form of OTLP. `scripts/dev/exports` reads the same output with the official packages.

use crate::common::{AssertExt, Sandbox};
use predicates::str::contains;
use serde_json::{Value, json};

fn line(record: &Value) -> String {
    format!("{record}\n")
}

fn user(text: &str) -> String {
    line(&json!({"type": "user", "content": text}))
}

fn reply(text: &str, stop: &str) -> String {
    line(&json!({"type": "assistant", "content": text, "model": "claude-x", "stop_reason": stop}))
}

fn call(id: &str) -> String {
    line(
        &json!({"type": "tool_use", "tool_use_id": id, "name": "read file", "input": {"path": "a", "n": 1}}),
    )
}

fn result(id: &str, text: &str) -> String {
    line(&json!({"type": "tool_result", "tool_use_id": id, "content": text}))
}

/// A session with an accepted turn before, between and after turns that are not accepted.
fn session() -> String {
    let reminder = "<system-reminder>\nToday is Monday.\n</system-reminder>\n";
    [
        user(&format!("{reminder}List the files.")),
        reply("I look.", "tool_use"),
        call("toolu_1"),
        call("toolu_2"),
        result("toolu_2", "b"),
        result("toolu_1", &format!("a\n\n{reminder}")),
        reply("Two.", "end_turn"),
        user("Cut"),
        reply("Because", "max_tokens"),
        user("Full"),
        reply("Because", "model_context_window_exceeded"),
        user("Paused"),
        reply("I search.", "pause_turn"),
        user("Lost"),
        reply("I look.", "tool_use"),
        user("Stopped"),
        line(&json!({"type": "assistant", "content": "I", "interrupted": true})),
        user("Refused"),
        line(&json!({"type": "error", "class": "billing", "message": "no credit"})),
        user("Open"),
        reply("I look.", "tool_use"),
        call("toolu_3"),
        line(&json!({"type": "user", "id": "gone", "content": "Withdrawn"})),
        line(&json!({"type": "assistant", "id": "gone2", "content": "No."})),
        line(&json!({"type": "retract", "target": "gone"})),
        line(&json!({"type": "retract", "target": "gone2"})),
        user("Danke"),
        reply("Bitte", "end_turn"),
        user("No answer"),
    ]
    .concat()
}

#[test]
fn audit_42_only_accepted_turns_become_examples() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session());
    let run = |form: &str| {
        sandbox.cmd("claw-session").args(["export", "--to", form, "s.jsonl"]).assert().success()
    };
    let tools = json!([{"type": "function", "function": {"name": "read_file", "parameters":
        {"type": "object", "properties": {"n": {"type": "number"}, "path": {"type": "string"}}}}}]);
    let asked = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": "{\"n\":1,\"path\":\"a\"}"}});
    let openai = run("openai-jsonl");
    let example: Value = serde_json::from_str(&openai.stdout_text()).expect("one line");
    let expected = json!({"messages": [
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": "I look.", "tool_calls": [asked("call_1"), asked("call_2")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "a"},
        {"role": "tool", "tool_call_id": "call_2", "content": "b"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Danke"},
        {"role": "assistant", "content": "Bitte"},
    ], "tools": tools});
    assert_eq!(example, expected, "{openai}");
    let notes = "\
claw-session: left out: failed turns (1)
claw-session: left out: interrupted turns (1)
claw-session: left out: turns with a call that has no result (1)
claw-session: left out: turns with a reply that is cut off (3)
claw-session: left out: turns without a reply (2)
claw-session: left out: withdrawn turns (1)
claw-session: 1 example with 2 turns
";
    assert_eq!(openai.stderr_text(), notes);
    let sharegpt = run("sharegpt");
    let example: Value = serde_json::from_str(&sharegpt.stdout_text()).expect("one line");
    let calls = r#"[{"name":"read_file","arguments":{"n":1,"path":"a"}},{"name":"read_file","arguments":{"n":1,"path":"a"}}]"#;
    assert_eq!(
        example["conversations"],
        json!([
            {"from": "human", "value": "List the files."},
            {"from": "function_call", "value": calls},
            {"from": "observation", "value": "[\"a\",\"b\"]"},
            {"from": "gpt", "value": "Two."},
            {"from": "human", "value": "Danke"},
            {"from": "gpt", "value": "Bitte"},
        ])
    );
    let own: Value =
        serde_json::from_str(example["tools"].as_str().expect("a string")).expect("JSON");
    assert_eq!(own, tools);
    assert!(
        sharegpt.stderr_text().contains("left out: text of the model before calls (1)"),
        "{sharegpt}"
    );
}

#[test]
fn audit_42_a_result_before_its_call_and_a_retry_are_part_of_an_example() {
    let sandbox = Sandbox::new();
    let interrupted = line(&json!({"type": "assistant", "content": "I b", "interrupted": true}));
    // claw0's first format has results before their calls. The reply that broke off was asked for again.
    let text =
        [user("List"), result("c1", "a"), call("c1"), interrupted, reply("Done.", "end_turn")];
    sandbox.write("s.jsonl", text.concat());
    let run = sandbox.cmd("claw-session").args(["export", "--to", "sharegpt", "s.jsonl"]).assert();
    let example: Value = serde_json::from_str(&run.success().stdout_text()).expect("a line");
    let values: Vec<&Value> = example["conversations"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|it| &it["value"])
        .collect();
    assert_eq!(
        values,
        ["List", r#"{"name":"read_file","arguments":{"n":1,"path":"a"}}"#, "a", "Done."]
    );
}

#[test]
fn audit_42_words_of_programs_and_secrets_are_in_no_example() {
    let sandbox = Sandbox::new();
    let data =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialects/injected");
    for name in ["claude-code", "codex", "codex-old", "pi"] {
        let text = std::fs::read_to_string(data.join(format!("{name}.jsonl"))).expect("a session");
        for prompt in
            ["Fix it", "直してください", "请修复", "고쳐 주세요", "исправь это", "corrige ça"]
        {
            sandbox.write(
                "s.jsonl",
                text.replace("@PROMPT@", prompt).replace("@TYPED@", "echo total"),
            );
            let run = sandbox
                .cmd("claw-session")
                .args(["export", "--to", "openai-jsonl", "s.jsonl"])
                .assert();
            let Ok(example) = serde_json::from_str::<Value>(&run.stdout_text()) else {
                assert!(run.stderr_text().contains("no turn is accepted"), "{name}: {run}");
                continue;
            };
            for message in example["messages"].as_array().expect("messages") {
                let text = message["content"].as_str().unwrap_or_default();
                let is_user = message["role"] == "user";
                assert!(
                    !is_user || !text.contains('<') && !text.contains("AGENTS.md"),
                    "{name}: {text}"
                );
            }
        }
    }
    // Secrets are in text, in inputs, and in the names of their members.
    let input = json!({"sk-1234": "sk-1235", "n": 1});
    let call = json!({"type": "tool_use", "tool_use_id": "c", "name": "f", "input": input});
    let prompt = json!({"type": "user", "ts": 100, "content": "my key is sk-123"});
    let (prompt, call) = (line(&prompt), line(&call));
    let replies =
        [reply("thanks", "tool_use"), call, result("c", "sk-1236"), reply("ok", "end_turn")];
    sandbox.write("s.jsonl", prompt + &replies.concat());
    sandbox.write("patterns", "key sk-[0-9]+\n");
    for (form, content) in [("openai-jsonl", None), ("sharegpt", None), ("otel", Some("--content"))]
    {
        let command = ["export", "--to", form, "--redact", "patterns", "s.jsonl"];
        let run = sandbox.cmd("claw-session").args(command).args(content).assert().success();
        assert!(run.stdout_text().contains("[REDACTED:key]"), "{run}");
        assert!(!run.stdout_text().contains("sk-123"), "{run}");
    }
}

#[test]
fn audit_42_sessions_are_selected_by_label_and_by_a_query() {
    let sandbox = Sandbox::new();
    let make = |label: &str, text: &str| {
        sandbox.write("t.jsonl", user(text) + &reply("ok", "end_turn"));
        let script = format!(
            "claw-session new --label {label} >/dev/null && claw-append \"$(claw-session path {label})\" <t.jsonl >/dev/null"
        );
        sandbox.sh(&script).assert().success();
    };
    make("good-1", "one");
    make("good-2", "two");
    make("bad", "three");
    let prompts = |args: &[&str]| {
        let run = sandbox
            .cmd("claw-session")
            .args(["export", "--to", "openai-jsonl"])
            .args(args)
            .assert()
            .success();
        let mut prompts: Vec<String> = run
            .stdout_text()
            .lines()
            .map(|line| {
                let example: Value = serde_json::from_str(line).expect("a line");
                example["messages"][0]["content"].as_str().expect("text").to_owned()
            })
            .collect();
        prompts.sort();
        prompts
    };
    assert_eq!(prompts(&["--label", "good-*"]), ["one", "two"]);
    assert_eq!(prompts(&["--label", "bad"]), ["three"]);
    assert_eq!(prompts(&["bad", "good-1", "bad", "--label", "good-1"]), ["one", "three"]);
    sandbox.sh("claw-index update >/dev/null").assert().success();
    let query =
        "SELECT DISTINCT session_key FROM messages WHERE content LIKE '%t%' AND role = 'user'";
    assert_eq!(prompts(&["--query", query]), ["three", "two"]);
    for (args, code, error) in [
        (&["--label", "none"][..], 1, "no session is selected"),
        (&["--query", "SELECT 1"], 2, "the first column of the query has no paths"),
        (&["--query", "SELEC"], 2, "cannot select sessions"),
        (&["--label", "[x"], 2, "invalid pattern '[x'"),
        (&[], 2, "no session is named"),
        (&["bad", "--content"], 2, "--content is only for --to otel"),
        (&["nothing"], 1, "no session 'nothing'"),
    ] {
        let run = sandbox
            .cmd("claw-session")
            .args(["export", "--to", "openai-jsonl"])
            .args(args)
            .assert();
        run.code(code).stdout("").stderr(contains(error));
    }
    for args in [&["good-1", "bad"][..], &[], &["--label", "bad"], &["bad", "--redact", "x"]] {
        sandbox
            .cmd("claw-session")
            .args(["export", "--to", "pi"])
            .args(args)
            .assert()
            .code(2)
            .stdout("");
    }
    // A session that cannot be read does not keep the others from being written.
    let command = ["export", "--to", "openai-jsonl", "bad", "missing.jsonl", "good-1"];
    let run = sandbox.cmd("claw-session").args(command).assert().code(74);
    assert_eq!(run.stdout_text().lines().count(), 2, "{run}");
    assert!(run.stderr_text().contains("missing.jsonl"), "{run}");
    sandbox.write("t.jsonl", user("no reply"));
    sandbox
        .cmd("claw-session")
        .args(["export", "--to", "sharegpt", "t.jsonl"])
        .assert()
        .code(65)
        .stdout("");
}

/// A span with its attributes by name.
fn spans(line: &str) -> Vec<Value> {
    let line: Value = serde_json::from_str(line).expect("a line");
    line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
}

fn attribute<'s>(span: &'s Value, name: &str) -> &'s Value {
    let mut pairs = span["attributes"].as_array().expect("attributes").iter();
    pairs.find(|pair| pair["key"] == name).map_or(&Value::Null, |pair| &pair["value"])
}

#[test]
fn records_without_times_get_the_nearest_time_and_sessions_without_any_are_left_out() {
    let sandbox = Sandbox::new();
    let prompt = |n: u64| json!({"type": "user", "content": format!("question {n}")});
    let reply = |n: u64| json!({"type": "assistant", "content": format!("answer {n}"), "stop_reason": "end_turn"});
    let at = |mut record: Value, ts: f64| {
        record["ts"] = json!(ts);
        record
    };
    let write = |file: &str, records: &[Value]| {
        sandbox.write(file, records.iter().map(line).collect::<String>());
    };
    let late = [
        prompt(1),
        reply(1),
        prompt(2),
        at(reply(2), 100.0),
        prompt(3),
        reply(3),
        at(prompt(4), 200.0),
    ];
    write("late.jsonl", &late);
    write("never.jsonl", &[prompt(1), reply(1)]);
    write("zero.jsonl", &[at(prompt(1), 0.0), at(reply(1), 0.0)]);
    let export = |files: &[&str]| {
        sandbox.cmd("claw-session").args(["export", "--to", "otel"]).args(files).assert()
    };
    let run = export(&["late.jsonl", "never.jsonl", "zero.jsonl"]).success();
    let times = |span: &Value| {
        ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|name| span[name].as_str().expect("a time").len())
    };
    let text = run.stdout_text();
    assert_eq!(text.lines().count(), 4);
    let starts: Vec<Value> =
        text.lines().map(|line| spans(line)[0]["startTimeUnixNano"].clone()).collect();
    assert_eq!(starts, ["100000000000", "100000000000", "100000000000", "200000000000"]);
    assert!(text.lines().flat_map(spans).all(|span| times(&span) == [12, 12]), "{text}");
    let notes = run.stderr_text();
    for file in ["never.jsonl", "zero.jsonl"] {
        assert!(
            notes.contains(&format!("left out: '{file}', because no record in it has a time")),
            "{notes}"
        );
    }
    export(&["never.jsonl"]).code(65).stdout("").stderr(contains("no record has a time"));
}

#[test]
fn audit_42_a_turn_becomes_a_trace_with_a_span_for_each_request_and_call() {
    let sandbox = Sandbox::new();
    let at = |record: Value, ts: f64| {
        let mut record = record;
        record["ts"] = json!(ts);
        line(&record)
    };
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 7});
    let text = [
        line(&json!({"type": "session", "id": "s-1"})),
        at(json!({"type": "user", "content": "a secret question"}), 100.0),
        at(json!({"type": "assistant", "content": "I look.", "model": "claude-x", "stop_reason": "tool_use", "usage": usage}), 102.5),
        at(json!({"type": "tool_use", "tool_use_id": "c1", "name": "sh", "input": {"command": "ls"}}), 102.5),
        at(json!({"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": true}), 103.0),
        at(json!({"type": "error", "class": "overloaded", "message": "m"}), 103.25),
        at(json!({"type": "assistant", "content": "Done.", "model": "claude-x", "stop_reason": "end_turn"}), 104.0),
        at(json!({"type": "user", "content": "next"}), 200.0),
    ]
    .concat();
    sandbox.write("s.jsonl", &text);
    let export = |args: &[&str]| {
        sandbox
            .cmd("claw-session")
            .args(["export", "--to", "otel", "s.jsonl"])
            .args(args)
            .assert()
            .success()
            .stderr("")
            .stdout_text()
    };
    let plain = export(&[]);
    assert_eq!(plain, export(&[]), "the same ids");
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines.len(), 2);
    let all = spans(lines[0]);
    let times = |span: &Value| {
        let nano = |name: &str| {
            span[name].as_str().expect("a string").parse::<u64>().expect("a number") / 1_000_000
        };
        (nano("startTimeUnixNano"), nano("endTimeUnixNano"))
    };
    let shown: Vec<_> = all
        .iter()
        .map(|span| (span["name"].as_str().expect("a name"), times(span), &span["kind"]))
        .collect();
    let expected = [
        ("invoke_agent clawutils", (100_000, 104_000), &json!(1)),
        ("chat claude-x", (100_000, 102_500), &json!(3)),
        ("execute_tool sh", (102_500, 103_000), &json!(1)),
        ("chat claude-x", (103_000, 103_250), &json!(3)),
        ("chat claude-x", (103_250, 104_000), &json!(3)),
    ];
    assert_eq!(shown, expected);
    let root = &all[0]["spanId"];
    for span in &all[1..] {
        assert_eq!((&span["parentSpanId"], &span["traceId"]), (root, &all[0]["traceId"]));
    }
    assert_ne!(spans(lines[1])[0]["traceId"], all[0]["traceId"]);
    for (name, value) in [
        ("gen_ai.usage.input_tokens", "105"),
        ("gen_ai.usage.cache_read.input_tokens", "90"),
        ("gen_ai.usage.cache_write.input_tokens", "5"),
        ("gen_ai.usage.output_tokens", "7"),
    ] {
        assert_eq!(attribute(&all[1], name), &json!({"intValue": value}), "{name}");
    }
    let text_of = |span: &Value, name: &str| attribute(span, name)["stringValue"].clone();
    assert_eq!(text_of(&all[1], "gen_ai.provider.name"), "anthropic");
    assert_eq!(text_of(&all[1], "gen_ai.conversation.id"), "s-1");
    assert_eq!(text_of(&all[2], "error.type"), "tool_error");
    assert_eq!(
        (text_of(&all[3], "error.type"), &all[3]["status"]),
        (json!("overloaded"), &json!({"code": 2}))
    );
    assert_eq!(attribute(&all[0], "clawutils.turn"), &json!({"intValue": "1"}));
    assert!(!plain.contains("secret") && !plain.contains("Done."), "{plain}");
    let with = spans(export(&["--content"]).lines().next().expect("a line"));
    let input: Value =
        serde_json::from_str(text_of(&with[4], "gen_ai.input.messages").as_str().expect("text"))
            .expect("JSON");
    assert_eq!(
        input,
        json!([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "no"}]}])
    );
    assert_eq!(text_of(&with[2], "gen_ai.tool.call.arguments"), "{\"command\":\"ls\"}");
    assert!(
        text_of(&with[0], "gen_ai.input.messages")
            .as_str()
            .expect("text")
            .contains("a secret question")
    );
}

/// A session of each program in which the first of two prompts was not answered, as the program stores it.
fn unanswered() -> [(&'static str, Vec<Value>); 5] {
    let ts = "2026-03-01T09:00:00.000Z";
    let claude = |kind: &str, id: &str, parent: Option<&str>, text: &str| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": ts, "isSidechain": false,
            "message": {"role": kind, "id": id, "model": "m", "content": [{"type": "text", "text": text}]}})
    };
    let mut error = claude("assistant", "e", Some("u1"), "API Error: 429 too many requests");
    error["isApiErrorMessage"] = true.into();
    error["error"] = "rate_limit".into();
    error["apiErrorStatus"] = 429.into();
    let codex =
        |kind: &str, payload: Value| json!({"timestamp": ts, "type": kind, "payload": payload});
    let item = |role: &str, kind: &str, text: &str| {
        codex(
            "response_item",
            json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
        )
    };
    let meta = codex(
        "session_meta",
        json!({"id": "s", "timestamp": ts, "cwd": "/w", "cli_version": "0.171.0"}),
    );
    let ended = json!({"type": "task_complete", "turn_id": "t", "last_agent_message": null, "error": {"message": "refused"}});
    let gemini = |kind: &str, id: &str, content: Value| json!({"id": id, "timestamp": ts, "type": kind, "content": content});
    let pi = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": ts, "message": message});
    let copilot = |kind: &str, id: &str, data: Value| json!({"type": kind, "id": id, "timestamp": ts, "parentId": null, "data": data});
    [
        (
            "claude-code",
            vec![
                claude("user", "u1", None, "Lost"),
                error,
                claude("user", "u2", Some("e"), "Danke"),
                claude("assistant", "a2", Some("u2"), "Bitte"),
            ],
        ),
        (
            "codex",
            vec![
                meta,
                item("user", "input_text", "Lost"),
                codex("event_msg", ended),
                item("user", "input_text", "Danke"),
                item("assistant", "output_text", "Bitte"),
            ],
        ),
        (
            "gemini-cli",
            vec![
                json!({"sessionId": "s", "projectHash": "h", "startTime": ts, "lastUpdated": ts, "kind": "main"}),
                gemini("user", "u1", json!([{"text": "Lost"}])),
                gemini("error", "e", json!("[API Error: refused]")),
                gemini("user", "u2", json!([{"text": "Danke"}])),
                gemini("gemini", "a2", json!("Bitte")),
            ],
        ),
        (
            "copilot",
            vec![
                copilot(
                    "session.start",
                    "s",
                    json!({"sessionId": "s", "version": 1, "producer": "copilot-agent", "startTime": ts}),
                ),
                copilot(
                    "user.message",
                    "u1",
                    json!({"content": "Lost", "transformedContent": "Lost"}),
                ),
                copilot(
                    "session.error",
                    "e",
                    json!({"errorType": "query", "message": "refused", "statusCode": 400}),
                ),
                copilot(
                    "user.message",
                    "u2",
                    json!({"content": "Danke", "transformedContent": "Danke"}),
                ),
                copilot("assistant.message", "a2", json!({"messageId": "m", "content": "Bitte"})),
            ],
        ),
        (
            "pi",
            vec![
                json!({"type": "session", "version": 3, "id": "s", "timestamp": ts, "cwd": "/w"}),
                pi("u1", None, json!({"role": "user", "content": "Lost"})),
                pi(
                    "e",
                    Some("u1"),
                    json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "refused"}),
                ),
                pi("u2", Some("e"), json!({"role": "user", "content": "Danke"})),
                pi(
                    "a2",
                    Some("u2"),
                    json!({"role": "assistant", "content": [{"type": "text", "text": "Bitte"}], "stopReason": "stop"}),
                ),
            ],
        ),
    ]
}

#[test]
fn audit_41_a_prompt_whose_answer_failed_is_no_part_of_the_next_turn() {
    let sandbox = Sandbox::new();
    for (program, records) in unanswered() {
        sandbox.write("s.jsonl", records.iter().map(line).collect::<String>());
        let run = sandbox.cmd("claw-session").args(["export", "--to", "openai-jsonl", "s.jsonl"]);
        let run = run.assert().success();
        let example: Value = serde_json::from_str(&run.stdout_text()).expect("one line");
        let expected = json!({"messages": [
            {"role": "user", "content": "Danke"}, {"role": "assistant", "content": "Bitte"}]});
        assert_eq!(example, expected, "{program}");
        let why = if program == "pi" { "interrupted turns (1)" } else { "failed turns (1)" };
        assert!(run.stderr_text().contains(why), "{program}: {run}");
        // Both prompts are sent, as by the program.
        let sent = sandbox.cmd("claw-rebuild").arg("s.jsonl").assert().success().stdout_text();
        assert!(sent.contains("Lost") && sent.contains("Danke"), "{program}: {sent}");
        assert!(!sent.contains("refused") && !sent.contains("429"), "{program}: {sent}");
    }
}
