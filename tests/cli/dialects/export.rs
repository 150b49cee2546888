//! `claw-session export`: a session exported in another program's format rebuilds to the same
//! messages.

use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::{Value, json};

use super::{plain, run, sessions};
use crate::common::{AssertExt, Sandbox};

const SESSION: &str = r#"{"type":"user","ts":1767225600.25,"content":"one"}
{"type":"assistant","ts":1767225601,"model":"m","usage":{"input_tokens":5,"output_tokens":2},"content":[{"type":"thinking","thinking":"hm","signature":"s="},{"type":"redacted_thinking","data":"d="},{"type":"text","text":"look é"}]}
{"type":"tool_use","tool_use_id":"c1","name":"ls","input":{"path":"."}}
{"type":"tool_use","tool_use_id":"c2","name":"ls","input":{}}
{"type":"tool_result","tool_use_id":"c1","content":"r1"}
{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"r2"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}],"is_error":true}
{"type":"user","content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="}}]}
{"type":"assistant","model":"m","content":"three"}
"#;
/// A compaction, and a prompt after it. `OFFSET` stands for the offset of the first kept record.
const COMPACTION: &str = r#"{"type":"compaction","summary":"sum","kept_user":["word for word"],"first_kept_entry_id":"@OFFSET"}
{"type":"user","content":"four"}
"#;

/// Returns a session that another program wrote, so that its calls are of tools of this program.
fn session_of(program: &str, records: &str) -> String {
    let header = json!({"type": "session", "id": "s", "source": {"dialect": program, "cwd": "/w"}});
    format!("{header}\n{{\"type\":\"label\",\"label\":\"Wörter\"}}\n{records}")
}

/// Returns the messages of a file in a normal form.
fn messages(sandbox: &Sandbox, file: &str) -> Vec<Value> {
    plain(&run(sandbox, &["claw-rebuild", file]))
}

#[test]
fn exported_files_rebuild_to_the_same_messages() {
    let compacted = |program: &str, text: &str| {
        let plain = session_of(program, SESSION);
        let offset = plain.find(text).expect("a record").to_string();
        plain + &COMPACTION.replace("OFFSET", &offset)
    };
    for form in ["pi", "claude-code", "codex", "gemini-cli"] {
        for text in [
            session_of(form, SESSION),
            compacted(form, r#"{"type":"user","content":[{"type":"text","text":"two"#),
            compacted(form, r#"{"type":"assistant","model":"m","content":"three"#),
        ] {
            // Only Anthropic's models take thinking back. Codex has no mark of failed calls.
            let is_error = if form == "codex" { r#","is_error":true"# } else { "none" };
            let text = match form {
                "codex" | "gemini-cli" => text
                    .replace(r#"{"type":"thinking","thinking":"hm","signature":"s="},"#, "")
                    .replace(r#"{"type":"redacted_thinking","data":"d="},"#, "")
                    .replace(is_error, ""),
                _ => text,
            };
            let sandbox = Sandbox::new();
            sandbox.write("s.jsonl", &text);
            let file = format!("{form}.jsonl");
            sandbox
                .sh(&format!("claw-session export --to {form} ./s.jsonl >{file}"))
                .assert()
                .success();
            assert_eq!(messages(&sandbox, &file), messages(&sandbox, "s.jsonl"), "{form}: {text}");
            sandbox
                .sh(&format!("chmod 600 {file}; claw-check {file}"))
                .assert()
                .success()
                .stdout("");
        }
    }
}

#[test]
fn an_exported_import_rebuilds_to_the_messages_of_its_source() {
    for form in ["pi", "claude-code", "codex"] {
        for directory in sessions(form) {
            let source = directory.join("session.jsonl");
            let source = source.to_str().expect("a path");
            let sandbox = Sandbox::new();
            let import =
                format!("claw-session export --to {form} \"$(claw-session import '{source}')\"");
            sandbox.sh(&format!("{import} >out.jsonl")).assert().success();
            assert_eq!(messages(&sandbox, "out.jsonl"), messages(&sandbox, source), "{source}");
        }
    }
}

#[test]
fn exported_records_have_what_the_programs_require() {
    let sandbox = Sandbox::new();
    let records = |form: &str| {
        sandbox.write("s.jsonl", session_of(form, SESSION));
        run(&sandbox, &["claw-session", "export", "--to", form, "./s.jsonl"])
    };
    let pi = records("pi");
    assert_eq!((&pi[0]["type"], &pi[0]["version"]), (&Value::from("session"), &Value::from(3)));
    assert_eq!(pi[1]["timestamp"], "2026-01-01T00:00:00.250Z");
    assert_eq!(pi[2]["message"]["usage"]["totalTokens"], 7);
    assert_eq!(pi[2]["message"]["stopReason"], "toolUse");
    assert_eq!(pi[3]["message"]["toolName"], "ls");
    assert_eq!((&pi[0]["cwd"], &pi.last().unwrap()["name"]), (&json!("/w"), &json!("Wörter")));
    for (before, record) in pi[1..].iter().zip(&pi[2..]) {
        assert_eq!(record["parentId"], before["id"]);
    }
    let mut claude = records("claude-code");
    let title = claude.pop().expect("a title");
    assert_eq!(
        (&title["customTitle"], &title["sessionId"]),
        (&json!("Wörter"), &claude[0]["sessionId"])
    );
    assert_eq!(claude[0]["cwd"], "/w");
    for (before, record) in claude.iter().zip(&claude[1..]) {
        assert_eq!(record["parentUuid"], before["uuid"]);
        assert_eq!(record["uuid"].as_str().expect("an id").len(), 36);
        // Claude Code resumes from the newest record.
        assert!(record["timestamp"].as_str() > before["timestamp"].as_str(), "{record}");
    }
    let codex = records("codex");
    let meta = &codex[0]["payload"];
    assert_eq!((&codex[0]["type"], &meta["cwd"]), (&json!("session_meta"), &json!("/w")));
    // Codex lists a session by its first prompt, and shows texts, that are events.
    let events = codex.iter().filter(|record| record["type"] == "event_msg");
    let events: Vec<&Value> = events.map(|record| &record["payload"]["message"]).collect();
    assert_eq!(events, [&json!("one"), &json!("look é"), &json!("two"), &json!("three")]);
    let body = &records("openai")[0];
    assert_eq!(body["messages"][0]["content"], "one");
    let none = sandbox.cmd("claw-session").args(["export", "--to", "pi", "none"]).assert();
    none.code(1).stderr(contains("no session 'none'"));
}

/// A call that all programs have a tool for, one that none has, context of the program, and thinking.
const CODEX: &str = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"c","cwd":"/w"}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"timestamp":"2026-01-01T00:00:02.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."}]}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\",\"workdir\":\"/w\"}","call_id":"c1"}}
{"timestamp":"2026-01-01T00:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"update_plan","arguments":"{\"plan\":[]}","call_id":"c2"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.txt"}}
{"timestamp":"2026-01-01T00:00:04.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"Plan updated"}}
{"timestamp":"2026-01-01T00:00:05.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}
"#;

#[test]
fn calls_become_those_of_the_other_program_or_text_and_what_is_lost_is_listed() {
    let sandbox = Sandbox::new();
    sandbox.write("c.jsonl", CODEX);
    let export = |to: &str| {
        let line = format!("claw-session export --to {to} ./c.jsonl >{to}.jsonl");
        let run = sandbox.sh(&line).assert().success();
        (run.stderr_text().to_owned(), messages(&sandbox, &format!("{to}.jsonl")))
    };
    let text = "[Codex called its tool 'update_plan', which PROGRAM does not have, with {\"plan\":[]}]\n[its result]";
    for (to, program, call) in [
        (
            "claude-code",
            "Claude Code",
            json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}),
        ),
        (
            "pi",
            "pi",
            json!({"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}),
        ),
    ] {
        let (told, sent) = export(to);
        let text = text.replace("PROGRAM", program);
        let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"});
        let texts =
            [text.as_str(), "Plan updated"].map(|text| json!({"type": "text", "text": text}));
        assert_eq!(sent[0]["content"], json!([{"type": "text", "text": "Look."}]), "{sent:?}");
        assert_eq!(sent[1]["content"], json!([call]), "{sent:?}");
        assert_eq!(sent[2]["content"], json!([result, texts[0], texts[1]]), "{sent:?}");
        let expected = [
            "left out: context that Codex had added".to_owned(),
            "left out: thinking, which only the model that wrote it can use".to_owned(),
            "left out: 'workdir' in a call of 'exec_command'".to_owned(),
            format!("as text: a call of 'update_plan', because {program} has no such tool"),
        ];
        assert_eq!(told, expected.map(|line| format!("claw-session: {line}\n")).concat());
    }
    // The program that wrote the session loses nothing that it sends in clear text.
    assert_eq!(export("codex"), (String::new(), messages(&sandbox, "c.jsonl")));
}

/// The header of a session names the program that wrote it, whose tools and added texts are known, or which is named in the
/// text of its calls.
#[test]
fn a_session_of_any_program_is_carried_as_one_of_that_program() {
    let sandbox = Sandbox::new();
    let copilot = include_str!("../../data/dialects/injected/copilot.jsonl");
    sandbox.write("copilot.jsonl", copilot);
    let carried = |file: &str| {
        let line = format!("claw-session export --to claude-code ./{file} >out.jsonl");
        let run = sandbox.sh(&line).assert().success();
        let sent = Value::Array(messages(&sandbox, "out.jsonl")).to_string();
        (run.stderr_text().to_owned(), sent)
    };
    let (told, sent) = carried("copilot.jsonl");
    let context = "claw-session: left out: context that Copilot CLI had added (2 times)\n";
    assert_eq!(told, context);
    assert!(sent.contains(r#""input":{"file_path":"cart.py"}"#), "{sent}");
    assert!(sent.contains(r#""name":"Read""#) && sent.contains("@PROMPT@"), "{sent}");
    // A skill was loaded for the conversation, not added to each prompt.
    assert!(sent.contains("@TYPED@") && sent.matches("ADDED").eq(["ADDED"]), "{sent}");
    assert!(sent.contains("ADDED skill"), "{sent}");
    // White space around a prompt is not what a program added.
    sandbox
        .write("s.jsonl", session_of("copilot", "{\"type\":\"user\",\"content\":\"  one \\n\"}\n"));
    let (told, sent) = carried("s.jsonl");
    assert!(told.is_empty() && sent.contains(r#""  one \n""#), "{told} {sent}");
    for (dialect, name) in [
        ("goclaw", "GoClaw"),
        ("llm", "llm"),
        ("openclaw", "OpenClaw"),
        ("clawutils", "clawutils"),
        ("openai", "another program"),
    ] {
        sandbox.write("s.jsonl", session_of(dialect, SESSION));
        let (told, sent) = carried("s.jsonl");
        let text = format!("[{name} called its tool 'ls', which Claude Code does not have");
        assert!(told.contains("as text: a call of 'ls'") && sent.contains(&text), "{sent}");
    }
}

#[test]
fn a_session_is_carried_to_where_the_other_program_looks_for_it() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session_of("clawutils", SESSION));
    let carry = |to: &str| {
        let home = sandbox.path("home");
        let cmd = sandbox.cmd("claw-session").args(["carry", "--to", to, "./s.jsonl"]);
        cmd.env("HOME", home).assert().success()
    };
    for (to, directory, command, listed) in [
        ("claude-code", ".claude/projects/-w", "claude --resume ", None),
        ("gemini-cli", ".gemini/tmp/w/chats", "gemini --resume ", None),
        (
            "codex",
            ".codex/sessions/2026/01/01",
            "codex resume ",
            Some(".codex/session_index.jsonl"),
        ),
        ("pi", ".pi/agent/sessions/--w--", "pi --session ", None),
    ] {
        let run = carry(to);
        let line = run.stdout_text();
        let id = line.trim_end().strip_prefix(&format!("cd '/w' && {command}")).expect("a command");
        let directory = sandbox.path("home").join(directory);
        let names = || -> Vec<String> {
            let entries = std::fs::read_dir(&directory).expect("a directory");
            let name =
                |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect()
        };
        let named = if to == "gemini-cli" { &id[..8] } else { id };
        assert!(names()[0].ends_with(&format!("{named}.jsonl")), "{:?}", names());
        // Carried again, it is the same session, until it has changed on one side.
        assert_eq!(carry(to).stdout_text(), line);
        assert_eq!(names().len(), 1);
        let path = directory.join(&names()[0]);
        let text = std::fs::read_to_string(&path).expect("a session");
        std::fs::write(&path, text.clone() + "{}\n").expect("a session");
        assert_ne!(carry(to).stdout_text(), line);
        assert_eq!(names().len(), 2);
        assert_eq!(std::fs::read_to_string(&path).expect("a session"), text + "{}\n");
        if let Some(index) = listed {
            let index = std::fs::read_to_string(sandbox.path("home").join(index)).expect("titles");
            let first: Value =
                serde_json::from_str(index.lines().next().expect("a title")).expect("JSON");
            assert_eq!((&first["id"], &first["thread_name"]), (&json!(id), &json!("Wörter")));
            assert_eq!(index.lines().count(), 2);
        }
    }
    assert_eq!(sandbox.read_text("home/.gemini/tmp/w/.project_root"), "/w");
    // The variables of the programs say where their homes are.
    for (variable, to) in [
        ("CLAUDE_CONFIG_DIR", "claude-code"),
        ("CODEX_HOME", "codex"),
        ("GEMINI_CLI_HOME", "gemini-cli"),
        ("PI_CODING_AGENT_DIR", "pi"),
    ] {
        let other = sandbox.path("other");
        let cmd = sandbox.cmd("claw-session").args(["carry", "--to", to, "./s.jsonl"]);
        cmd.env(variable, &other)
            .env_remove("HOME")
            .assert()
            .success()
            .stderr(contains("the session is in '").and(contains("other/")));
    }
}

#[test]
fn a_carried_session_is_completed_after_an_interruption() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session_of("clawutils", SESSION));
    let carry = |to: &str| {
        let cmd = sandbox.cmd("claw-session").args(["carry", "--to", to, "./s.jsonl"]);
        cmd.env("HOME", sandbox.path("home")).assert()
    };
    // The title cannot be written yet.
    let index = "home/.codex/session_index.jsonl";
    std::fs::create_dir_all(sandbox.path(index)).expect("a directory");
    carry("codex").failure();
    std::fs::remove_dir(sandbox.path(index)).expect("an empty directory");
    carry("codex").success();
    assert!(sandbox.read_text(index).contains("thread_name"));
    // A process made the directory of the project, and was killed.
    let projects = sandbox.path("home/.gemini/tmp");
    std::fs::create_dir_all(projects.join("w")).expect("a directory");
    carry("gemini-cli").success();
    assert_eq!(std::fs::read_dir(&projects).expect("projects").count(), 1);
}

#[test]
fn a_session_for_opencode_has_a_call_and_its_result_in_one_part() {
    let sandbox = Sandbox::new();
    sandbox.write("s.jsonl", session_of("opencode", SESSION));
    let cmd = sandbox.cmd("claw-session").args(["carry", "--to", "opencode", "./s.jsonl"]);
    let run = cmd.env("XDG_DATA_HOME", sandbox.path("data")).assert().success();
    let line = run.stdout_text().trim_end().to_owned();
    let command = line.strip_prefix("cd '/w' && opencode import '").expect("a command");
    let (path, session) = command.split_once("' && opencode --session ").expect("a session");
    let text = std::fs::read_to_string(path).expect("a session");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let info = &file["info"];
    assert_eq!((&info["id"], &info["directory"]), (&json!(session), &json!("/w")));
    assert_eq!((&info["title"], session.starts_with("ses_")), (&json!("Wörter"), true));
    let messages = file["messages"].as_array().expect("messages");
    let kinds = |index: usize| -> Vec<&str> {
        let parts = messages[index]["parts"].as_array().expect("parts");
        parts.iter().map(|part| part["type"].as_str().expect("a type")).collect()
    };
    let reply = ["step-start", "reasoning", "reasoning", "text", "tool", "tool"];
    assert_eq!(
        (kinds(0), kinds(1), kinds(2)),
        (vec!["text"], reply.to_vec(), vec!["text", "file"])
    );
    let state = |part: usize| &messages[1]["parts"][part]["state"];
    assert_eq!((&state(4)["status"], &state(4)["output"]), (&json!("completed"), &json!("r1")));
    assert_eq!((&state(5)["status"], &state(5)["error"]), (&json!("error"), &json!("r2")));
    assert_eq!(messages[1]["info"]["parentID"], messages[0]["info"]["id"]);
    // opencode sorts messages by their ids.
    for pair in messages.windows(2) {
        assert!(pair[0]["info"]["id"].as_str() < pair[1]["info"]["id"].as_str());
    }
}
