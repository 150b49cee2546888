//! The three bundled tools: they do what they say, and stay inside the workspace. Directories of tools: their
//! descriptions are sent to the model, and count as part of the request.

#[cfg(feature = "mcp")]
mod frames;
mod mcp;

use std::path::Path;

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::{Value, json};

use crate::common::{AssertExt, Sandbox};

/// Returns the path of the tools in the repository.
fn shipped() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").display().to_string()
}

/// Returns a sandbox with a workspace, and files beside it that tools must not reach.
fn workspace() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("secret", "secret");
    sandbox.write("workspace/docs/notes.md", "庭のメモ\n");
    sandbox
        .sh("cd workspace && ln -s ../secret up && ln -s /etc away && ln -s docs fine")
        .assert()
        .success();
    sandbox
}

/// Runs calls with `claw-exec` and returns their results.
fn exec(sandbox: &Sandbox, calls: &[(&str, Value)]) -> Vec<Value> {
    let call = |(name, input): &(&str, Value)| {
        let call = json!({"type": "tool_use", "tool_use_id": "t", "name": name, "input": input});
        call.to_string() + "\n"
    };
    let numbered = |(n, text): (usize, String)| text.replace("\"t\"", &format!("\"t{n}\""));
    let input: String = calls.iter().map(call).enumerate().map(numbered).collect();
    let run = sandbox.cmd("claw-exec").args(["--tools", &shipped()]).write_stdin(input).assert();
    run.success().stderr("").json()
}

#[test]
fn the_bundled_tools_do_what_their_descriptions_say() {
    let results = exec(
        &workspace(),
        &[
            ("read_file", json!({"file_path": "docs/notes.md"})),
            ("read_file", json!({"file_path": "fine/notes.md"})),
            ("list_directory", json!({"directory": "."})),
            ("list_directory", json!({})),
            ("get_current_time", json!({})),
        ],
    );
    let list = "[link] away\n[dir]  docs\n[link] fine\n[link] up\n";
    let expected = ["庭のメモ\n", "庭のメモ\n", list, list, "2026-01-01 00:00:00 UTC\n"];
    let contents: Vec<&Value> = results.iter().map(|result| &result["content"]).collect();
    assert_eq!(contents, expected);
    assert!(results.iter().all(|result| result.get("is_error").is_none()));
}

#[test]
fn t_4_no_path_from_the_model_reaches_outside_the_workspace() {
    let sandbox = workspace();
    let secret = sandbox.path("secret").display().to_string();
    let paths = [
        "../secret",
        "up",
        "away/passwd",
        "docs/../../secret",
        "/etc/passwd",
        &secret,
        "fine/../../secret",
    ];
    let calls = paths.map(|path| ("read_file", json!({"file_path": path})));
    let calls = [&calls[..], &[("list_directory", json!({"directory": ".."}))]].concat();
    for (result, (_, input)) in exec(&sandbox, &calls).iter().zip(&calls) {
        assert_eq!(result["is_error"], true, "{input}");
        let text = result["content"].as_str().expect("text");
        assert!(
            text.contains("it leads out of the workspace") && text.contains("status 77"),
            "{text}"
        );
    }
    let calls = [
        json!({}),
        json!({"file_path": 5}),
        json!({"file_path": "gone"}),
        json!({"file_path": "docs"}),
    ];
    let results = exec(&sandbox, &calls.map(|input| ("read_file", input)));
    let whys = ["no 'file_path'", "no 'file_path'", "no such file", "not a file"];
    for (result, why) in results.iter().zip(whys) {
        assert!(
            result["is_error"] == true && result["content"].to_string().contains(why),
            "{result}"
        );
    }
}

#[test]
fn audit_21_tools_cannot_reach_sessions() {
    let sandbox = workspace();
    sandbox.write("workspace/.sessions/agents/main/sessions/s.jsonl", "secret");
    sandbox.sh("cd workspace && ln -s ../.sessions/agents docs/link").assert().success();
    for (name, member, path) in [
        ("read_file", "file_path", ".sessions/agents/main/sessions/s.jsonl"),
        ("read_file", "file_path", "docs/link/main/sessions/s.jsonl"),
        ("list_directory", "directory", ".sessions"),
        ("list_directory", "directory", "docs/link/main"),
    ] {
        let result = &exec(&sandbox, &[(name, json!({member: path}))])[0];
        assert!(result["content"].to_string().contains("tools may not read sessions"), "{result}");
    }
    let list = &exec(&sandbox, &[("list_directory", json!({}))])[0];
    assert_eq!(list["content"], "[link] away\n[dir]  docs\n[link] fine\n[link] up\n");
}

/// Returns a sandbox whose directory `box` has two tools with descriptions, and files that are not tools: a description
/// without a program, one whose program is not executable, and a program without a description.
fn directory() -> Sandbox {
    let sandbox = Sandbox::new();
    let schema = json!({"type": "object", "properties": {}});
    let description = json!({"description": "Say b.", "input_schema": schema}).to_string();
    for name in ["b_tool", "plain", "gone"] {
        sandbox.write(&format!("box/{name}.json"), &description);
    }
    sandbox.write(
        "box/A-tool.json",
        "{\n \"name\": \"A-tool\",\r\n \"input_schema\": {}, \"n\": 1e2\n}\n",
    );
    sandbox
        .sh("cd box && touch b_tool A-tool plain none && chmod 755 b_tool A-tool none")
        .assert()
        .success();
    sandbox
}

const DESCRIPTIONS: &str = concat!(
    r#"[{"name":"A-tool","input_schema":{},"n":1e2},"#,
    r#"{"name":"b_tool","description":"Say b.","input_schema":{"properties":{},"type":"object"}}]"#
);

#[cfg(feature = "http")]
#[test]
fn the_descriptions_in_a_directory_are_sent_sorted_by_name() {
    let sandbox = directory();
    let dry = |tools: &str| {
        let cmd = sandbox.cmd("claw-call").args(["--provider", "offline", "--dry-run"]);
        cmd.args(["--tools", tools]).write_stdin("{\"role\":\"user\",\"content\":\"x\"}\n").assert()
    };
    let run = dry("box").success().stdout(contains(format!(r#""tools":{DESCRIPTIONS}"#)));
    sandbox.write("tools.json", DESCRIPTIONS);
    assert_eq!(run.get_output().stdout, dry("tools.json").get_output().stdout);
    let run = dry(&shipped());
    let request = run.success().json_one();
    let names = request["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["get_current_time", "list_directory", "read_file"]);
}

#[test]
fn i_1_every_program_counts_a_directory_like_the_equivalent_file() {
    let sandbox = directory();
    sandbox.write("tools.json", DESCRIPTIONS);
    let words = "snow ".repeat(300);
    let message =
        |role: &str| json!({"role": role, "content": words, "_meta": {"id": "a"}}).to_string();
    let conversation: Vec<String> = (0..8).map(|n| message(["user", "assistant"][n % 2])).collect();
    for (program, args) in [
        ("claw-estimate", &["--json"][..]),
        ("claw-truncate", &["--window", "900"]),
        ("claw-compact", &["--window", "4000", "--plan"]),
        ("claw-checkpoint", &["--if-due", "--window", "400000"]),
    ] {
        let run = |tools: &str| -> Assert {
            sandbox
                .cmd(program)
                .args(args)
                .args(["--tools", tools])
                .write_stdin(conversation.join("\n"))
                .assert()
        };
        let (of_directory, of_file) = (run("box"), run("tools.json"));
        assert_eq!(
            (&of_directory.get_output().stdout, &of_directory.stderr_text()),
            (&of_file.get_output().stdout, &of_file.stderr_text())
        );
        assert!(
            !of_directory.get_output().stdout.is_empty() || !of_directory.stderr_text().is_empty(),
            "{program}"
        );
        of_directory.stderr(contains("tools").not());
    }
}

#[test]
fn a_directory_that_cannot_be_described_is_an_error() {
    let sandbox = directory();
    let run = || {
        let cmd = sandbox.cmd("claw-estimate").args(["--tools", "box"]);
        cmd.write_stdin("{\"role\":\"user\",\"content\":\"x\"}\n").assert()
    };
    run().success();
    for (text, why) in [
        ("[]", "not a JSON object"),
        (r#"{"description":"x"}"#, "no 'input_schema' object"),
        (r#"{"name":"other","input_schema":{}}"#, "'name' differs from the name of the file"),
    ] {
        sandbox.write("box/b_tool.json", text);
        run().code(65).stdout("").stderr(contains(format!("box/b_tool.json': {why}")));
    }
    sandbox.sh("rm box/*.json").assert().success();
    run().code(78).stderr(contains("cannot use tools '"));
}
