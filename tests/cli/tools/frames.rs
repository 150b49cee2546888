//! claw-tool mcp: frames that a server may send by mistake or by intent, at random. Its status is a documented one, what it
//! prints is for a terminal, and only plain files of tools are written.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};

use crate::choices::Choices;
use crate::common::{AssertExt, Sandbox, frames};

/// The number of servers in a short and in a full run.
const SERVERS: [u64; 2] = [30, 4000];
/// A server that answers each of its first lines with the next file, and ends. Two lines begin the session.
const SERVER: &str = "read -r line; cat 1; read -r line; cat 2; read -r line; cat 3";
/// The answers to `initialize` and to the requests for tools and for the result of a call.
#[rustfmt::skip]
const ANSWERS: [&str; 4] = [
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"t","version":"1"},"instructions":"i"}"#,
    r#"{"tools":[{"name":"f","title":"F","description":"Does it.","inputSchema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},"annotations":{"readOnlyHint":true,"destructiveHint":false}},{"name":"g","inputSchema":{},"outputSchema":{"type":"object"}}]}"#,
    r#"{"content":[{"type":"text","text":"r"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"file:///a","name":"A"},{"type":"resource","resource":{"uri":"file:///c","blob":"AAAA"}}],"structuredContent":{"a":1},"isError":false}"#,
    r#"{"content":[{"type":"text","text":"no such file"}],"isError":true}"#,
];
/// Frames that a server sends on its own.
#[rustfmt::skip]
const OTHERS: [&str; 6] = [
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"d"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m","data":{"a":1}}}"#,
];

/// Returns the frames of a server as the content of a file: some of its own, and its answer to a request.
fn answer(id: u64, result: &str, choices: &mut Choices) -> Vec<u8> {
    let result: Value = serde_json::from_str(result).expect("JSON");
    let mut lines = Vec::new();
    for _ in 0..choices.below(3) {
        let frame = serde_json::from_str(choices.of_these(&OTHERS)).expect("JSON");
        lines.push(frames::changed(&frame, choices));
    }
    let frame = json!({"jsonrpc": "2.0", "id": id, "result": result});
    lines.push(match choices.one_in(3) {
        true => frame.to_string().into_bytes(),
        false => frames::changed(&frame, choices),
    });
    lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
}

/// Runs claw-tool with a server. Returns its status, or what is wrong.
fn run(seed: u64, sandbox: &Sandbox) -> Result<i32, String> {
    let choices = &mut Choices::seeded(seed);
    let is_call = choices.one_in(2);
    // Without an answer that begins the session, nothing else is read.
    let is_begun = !choices.one_in(4);
    let first = match is_begun {
        true => {
            format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}}\n", ANSWERS[0]).into_bytes()
        }
        false => answer(0, ANSWERS[0], choices),
    };
    sandbox.write("1", first);
    sandbox.write("2", "");
    let result = if is_call { ANSWERS[2 + choices.below(2)] } else { ANSWERS[1] };
    sandbox.write("3", answer(1, result, choices));
    let options = if is_call { ["--call", "f"] } else { ["--output", "t"] };
    // A server waits for the request that no client sends.
    let limit = if is_begun { "30" } else { "0.5" };
    let server = ["--start-timeout", limit, "--", "sh", "-c", SERVER];
    let tool = sandbox.cmd("claw-tool").arg("mcp").args(options).args(server);
    let run = tool.write_stdin("{}").assert();
    let (status, stdout, stderr) =
        (run.get_output().status.code(), run.stdout_text(), run.stderr_text());
    let status = match status {
        Some(status @ (0 | 69)) => status,
        Some(1) if is_call => 1,
        status => return Err(format!("status {status:?}: {stderr}")),
    };
    let is_shown = |c: char| !c.is_control() || c == '\n' || (c == '\t' && !is_call);
    // The result of a tool is for the model, as it is; what is for a person is not.
    if !stderr.chars().all(is_shown) || (!is_call && !stdout.chars().all(is_shown)) {
        return Err(format!("a control character: {stdout:?} {stderr:?}"));
    }
    if status != 0 && (!stdout.is_empty() || stderr.is_empty() || stderr.len() > 5000) {
        return Err(format!("status {status}: {stdout:?} {stderr:?}"));
    }
    if stderr.contains("panicked")
        || (!is_call && !stderr.lines().all(|it| it.starts_with("claw-tool: ")))
    {
        return Err(format!("not a diagnostic: {stderr}"));
    }
    match is_call || status != 0 {
        true => Ok(status),
        false => written(&sandbox.path("t"), stdout.lines().count()).map(|()| status),
    }
}

/// Checks the names of the files in a directory of so many tools, and their definitions.
fn written(directory: &Path, count: usize) -> Result<(), String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let name = entry.expect("a file").file_name().into_string().expect("UTF-8");
        let tool = name.strip_suffix(".json").unwrap_or(&name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if tool.is_empty() || tool.len() > 64 || !tool.chars().all(is_plain) {
            return Err(format!("the file '{name}'"));
        }
        if tool != name {
            let text = fs::read_to_string(directory.join(&name)).expect("a file");
            let definition: Value =
                serde_json::from_str(&text).map_err(|why| format!("{why}: {text}"))?;
            if !definition["description"].is_string() || !definition["input_schema"].is_object() {
                return Err(format!("the definition {text}"));
            }
        }
        names.push(name);
    }
    fs::remove_dir_all(directory).expect("a directory");
    if names.len() == 2 * count { Ok(()) } else { Err(format!("{count} tools in {names:?}")) }
}

#[test]
fn no_frame_of_a_server_does_harm() {
    let sandbox = Sandbox::new();
    let seeds = match env::var("CLAW_TEST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..=seed,
        None => 1..=SERVERS[usize::from(env::var_os("CLAW_TEST_FULL").is_some())],
    };
    let is_one = seeds.clone().count() == 1;
    let mut statuses = Vec::new();
    for seed in seeds {
        let status = run(seed, &sandbox);
        statuses.push(status.unwrap_or_else(|why| {
            let frames =
                ["1", "3"].map(|name| String::from_utf8_lossy(&sandbox.read(name)).into_owned());
            panic!("CLAW_TEST_SEED={seed}: {why}\n{}", frames.concat())
        }));
    }
    let all = [0, 1, 69];
    assert!(is_one || all.iter().all(|it| statuses.contains(it)), "{statuses:?}");
}
